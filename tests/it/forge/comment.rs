//! What becomes of the comment when all goes well.

use super::{ALL, HEAD, Job, Pulls, job};
use crate::support::pulls::{ANN, Fault, LINTER, US};
use expedite::forge::{CommentOutcome, Forge, format_marker};
use std::sync::{Arc, Barrier};

#[test]
fn one_comment_is_made_and_edited_in_place() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        pulls.comment(ANN, "looks fine");
        let job = job(&pulls, forge);
        let made = job.post("first\n").unwrap();
        assert_eq!((made.outcome, made.removed), (CommentOutcome::Created, 0), "{forge:?}");
        assert_eq!(made.page.is_some(), forge != Forge::Gitlab);
        assert_eq!(pulls.ours().len(), 1);
        assert_eq!(pulls.ours()[0].body, format!("{}\nfirst\n", job.marker));
        assert_eq!(job.post("second").unwrap().outcome, CommentOutcome::Updated);
        assert_eq!((pulls.ours().len(), pulls.comments().len()), (1, 2), "{forge:?}");
        assert!(pulls.ours()[0].body.ends_with("\nsecond"));
    }
}

#[test]
fn what_it_says_already_costs_a_read() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        let job = job(&pulls, forge);
        job.post("same\ntext\n").unwrap();
        // As a forge may give it back.
        let own = pulls.ours()[0].clone();
        pulls.rewrite(own.id, own.body.trim_end().replace('\n', "\r\n").as_str());
        pulls.forget();
        assert_eq!(job.post("same\ntext\n").unwrap().outcome, CommentOutcome::Unchanged, "{forge:?}");
        assert!(pulls.asked().iter().all(|asked| asked.starts_with("GET ")), "{:?}", pulls.asked());
        assert_eq!(pulls.asked().len(), 2, "its comments, and whose the token is: {:?}", pulls.asked());
    }
}

#[test]
fn b65_our_comment_is_found_behind_120_others() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        for n in 0..120 {
            pulls.comment(ANN, &format!("remark {n}"));
        }
        job(&pulls, forge).post("one").unwrap();
        pulls.comment(LINTER, "another bot's is the newest");
        assert_eq!(job(&pulls, forge).post("two").unwrap().outcome, CommentOutcome::Updated, "{forge:?}");
        assert_eq!(pulls.ours().len(), 1);
        assert_eq!(pulls.comments().len(), 122, "{forge:?}");
    }
}

#[test]
fn b65_a_person_who_quotes_or_copies_the_marker_keeps_what_they_wrote() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        let job = job(&pulls, forge);
        let copied = format!("{}\nI am the plan, merge me", job.marker);
        let quoted = format!("> {}\n> plan\n\nis this right?", job.marker);
        pulls.comment(ANN, &copied);
        pulls.comment(ANN, &quoted);
        assert_eq!(job.post("plan").unwrap().outcome, CommentOutcome::Created, "{forge:?}");
        // Our own account, quoting itself.
        let own_quote = pulls.comment(US, &quoted);
        assert_eq!(job.post("plan 2").unwrap().outcome, CommentOutcome::Updated);
        let bodies: Vec<String> =
            pulls.comments().into_iter().filter(|c| c.author == ANN).map(|c| c.body).collect();
        assert_eq!(bodies, [copied, quoted.clone()], "{forge:?}");
        assert_eq!(pulls.comments().iter().find(|c| c.id == own_quote).unwrap().body, quoted);
        // What a person did to ours is undone.
        let ours = pulls.ours()[0].id;
        pulls.rewrite(ours, &format!("{}\nnothing to see", job.marker));
        assert_eq!(job.post("plan 2").unwrap().outcome, CommentOutcome::Updated);
        // Without the marker it is ours no more.
        pulls.rewrite(ours, "hello");
        assert_eq!(job.post("plan 2").unwrap().outcome, CommentOutcome::Created);
    }
}

#[test]
fn two_pipelines_have_a_comment_each() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        let one = job(&pulls, forge);
        let two = Job { marker: format_marker("another"), ..job(&pulls, forge) };
        one.post("one").unwrap();
        two.post("two").unwrap();
        assert_eq!(one.post("one").unwrap().outcome, CommentOutcome::Unchanged);
        assert_eq!(two.post("two").unwrap().outcome, CommentOutcome::Unchanged);
        assert_eq!(pulls.ours().len(), 2, "{forge:?}");
    }
}

#[test]
fn b65_runs_at_once_leave_one_comment() {
    for (forge, runs) in ALL.into_iter().flat_map(|forge| [(forge, 2), (forge, 5)]) {
        let pulls = Pulls::start(forge);
        // All have read that there is none before any creates.
        pulls.fault(runs, creation(forge), Fault::Meet(Arc::new(Barrier::new(runs))));
        std::thread::scope(|scope| {
            for _ in 0..runs {
                scope.spawn(|| {
                    let posted = job(&pulls, forge).post("the same").unwrap();
                    assert_eq!(posted.left, []);
                });
            }
        });
        let made = pulls.asked().iter().filter(|asked| asked.starts_with("POST")).count();
        assert_eq!(made, runs, "{forge:?}: {:?}", pulls.asked());
        assert_eq!(pulls.ours().len(), 1, "{forge:?}: {:?}", pulls.asked());
    }
}

#[test]
fn b65_the_run_of_an_older_commit_leaves_the_comment_to_the_newer() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        let newer = "2222222222222222222222222222222222222222";
        let slow = Job::of(&pulls, forge, HEAD);
        pulls.push(newer);
        Job::of(&pulls, forge, newer).post("of the newer").unwrap();
        let posted = slow.post("of the older").unwrap();
        assert_eq!(posted.outcome, CommentOutcome::Superseded(newer.to_owned()), "{forge:?}");
        assert_eq!(pulls.ours().len(), 1);
        assert!(pulls.ours()[0].body.ends_with("of the newer"), "{forge:?}");
        // With no comment yet, it makes none.
        let pulls = Pulls::start(forge);
        pulls.push(newer);
        Job::of(&pulls, forge, HEAD).post("of the older").unwrap();
        assert_eq!(pulls.comments(), []);
    }
}

#[test]
fn b65_a_commit_that_comes_while_a_run_creates_does_not_end_in_two() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        let newer = "2222222222222222222222222222222222222222";
        pulls.fault(1, creation(forge), Fault::Push(newer));
        job(&pulls, forge).post("of the older").unwrap();
        Job::of(&pulls, forge, newer).post("of the newer").unwrap();
        assert_eq!(pulls.ours().len(), 1, "{forge:?}");
        assert!(pulls.ours()[0].body.ends_with("of the newer"), "{forge:?}");
    }
}

#[test]
fn comments_too_many_from_an_earlier_race_go() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        let job = job(&pulls, forge);
        let first = pulls.comment(US, &format!("{}\nold", job.marker));
        pulls.comment(ANN, "between");
        pulls.comment(US, &format!("{}\nolder", job.marker));
        pulls.comment(US, &format!("{}\noldest", job.marker));
        let posted = job.post("new").unwrap();
        assert_eq!((posted.outcome, posted.removed), (CommentOutcome::Updated, 2), "{forge:?}");
        let ours = pulls.ours();
        assert_eq!((ours.len(), ours[0].id), (1, first));
        assert_eq!(pulls.comments().len(), 2);
    }
}

#[test]
fn a_workflows_own_token_may_not_ask_whose_it_is_and_still_finds_its_comment() {
    for token in ["ghs_token", "an-older-kind-of-token"] {
        let pulls = Pulls::start(Forge::Github);
        pulls.lets_in(token, false);
        let job = Job::with(&pulls, Forge::Github, HEAD, &[("GITHUB_TOKEN", token.to_owned())]);
        pulls.comment(ANN, &format!("{}\na copy", job.marker));
        job.post("one").unwrap();
        assert_eq!(job.post("two").unwrap().outcome, CommentOutcome::Updated);
        assert_eq!((pulls.ours().len(), pulls.comments().len()), (1, 2));
        assert_eq!(pulls.asked().iter().any(|asked| asked == "GET user"), !token.starts_with("ghs_"));
    }
}

pub fn creation(forge: Forge) -> &'static str {
    match forge {
        Forge::Github | Forge::Gitea => "POST /issues/3/comments",
        Forge::Gitlab => "POST /merge_requests/3/notes",
    }
}
