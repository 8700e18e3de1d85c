//! A forge that refuses, fails, limits, redirects or dies.

use super::comment::creation;
use super::{ALL, HEAD, Job, Pulls, job, limits};
use crate::support::authority::Authority;
use crate::support::pulls::{ANN, Fault, TOKEN, US};
use expedite::error::{Failure, FailureKind};
use expedite::forge::{self, CommentOutcome, Forge, ForgeLimits, Unposted};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The list of comments.
fn list(forge: Forge) -> &'static str {
    match forge {
        Forge::Github | Forge::Gitea => "GET /issues/3/comments",
        Forge::Gitlab => "GET /merge_requests/3/notes",
    }
}

/// The failure, which never shows the token.
#[track_caller]
fn failed(posted: Result<forge::Posted, Unposted>) -> Failure {
    let failure = match posted.unwrap_err() {
        Unposted::Failed(failure) => failure,
        Unposted::Denied(failure) => panic!("denied: {failure}"),
    };
    assert!(!format!("{failure:?}").contains(TOKEN), "{failure:?}");
    assert_eq!(failure.kind, FailureKind::Repository);
    failure
}

#[test]
fn a_forge_that_fails_for_a_while_is_asked_again() {
    for forge in ALL {
        for status in [500, 502, 503, 504] {
            let pulls = Pulls::start(forge);
            pulls.fault(2, list(forge), Fault::status(status));
            assert_eq!(
                job(&pulls, forge).post("x").unwrap().outcome,
                CommentOutcome::Created,
                "{forge:?} {status}"
            );
        }
        let pulls = Pulls::start(forge);
        pulls.fault(1, list(forge), Fault::Dropped);
        pulls.fault(1, list(forge), Fault::Cut);
        assert_eq!(job(&pulls, forge).post("x").unwrap().outcome, CommentOutcome::Created, "{forge:?}");
    }
}

#[test]
fn a_forge_that_keeps_failing_is_an_error_that_names_the_request() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        pulls.fault(99, list(forge), Fault::status(502));
        let failure = failed(job(&pulls, forge).post("x"));
        assert!(failure.to_string().contains("GET http://127.0.0.1"), "{failure}");
        assert!(
            failure.to_string().contains("HTTP 502") && failure.to_string().contains("request"),
            "{failure}"
        );
        assert_eq!(pulls.asked().len(), limits().tries as usize);
    }
}

#[test]
fn a_comment_that_was_made_unheard_is_not_made_twice() {
    for forge in ALL {
        for fault in [Fault::DoneUnheard, Fault::Cut] {
            let pulls = Pulls::start(forge);
            pulls.fault(1, creation(forge), fault);
            job(&pulls, forge).post("x").unwrap();
            assert_eq!(pulls.ours().len(), 1, "{forge:?}: {:?}", pulls.asked());
            assert_eq!(pulls.asked().iter().filter(|asked| asked.starts_with("POST")).count(), 1);
        }
        // Nor where it failed before it was done: then it is made after another look.
        let pulls = Pulls::start(forge);
        pulls.fault(1, creation(forge), Fault::status(502));
        job(&pulls, forge).post("x").unwrap();
        assert_eq!(pulls.ours().len(), 1, "{forge:?}");
        // A run that was killed at that moment: the next one finds it.
        let pulls = Pulls::start(forge);
        pulls.fault(1, creation(forge), Fault::DoneUnheard);
        let impatient = ForgeLimits { patience: Duration::ZERO, tries: 1, ..limits() };
        let killed = job(&pulls, forge);
        let _ = forge::post_comment(&killed.target, &killed.marker, "x", &killed.environment, &impatient);
        job(&pulls, forge).post("x").unwrap();
        assert_eq!(pulls.ours().len(), 1, "{forge:?}: {:?}", pulls.asked());
    }
}

#[test]
fn a_comment_that_goes_while_it_is_edited_is_made_anew() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        let job = job(&pulls, forge);
        pulls.comment(US, &format!("{}\nold", job.marker));
        let edit = match forge {
            Forge::Github | Forge::Gitea => "PATCH /comments/",
            Forge::Gitlab => "PUT /notes/",
        };
        pulls.fault(1, edit, Fault::status(404));
        assert_eq!(job.post("new").unwrap().outcome, CommentOutcome::Updated, "{forge:?}");
    }
}

#[test]
fn rate_limits_are_honoured_within_a_bound() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        let wait = |seconds: &str| vec![("Retry-After", seconds.to_owned())];
        pulls.fault(1, creation(forge), Fault::Status(429, wait("1"), "{}".into()));
        let start = Instant::now();
        job(&pulls, forge).post("x").unwrap();
        assert!(start.elapsed() >= Duration::from_secs(1), "{forge:?}");
        assert_eq!(pulls.ours().len(), 1);

        let pulls = Pulls::start(forge);
        pulls.fault(1, creation(forge), Fault::Status(429, wait("3600"), "{}".into()));
        let failure = failed(job(&pulls, forge).post("x"));
        assert!(failure.hints.iter().any(|hint| hint.contains("3600 s")), "{failure:?}");
        assert_eq!(pulls.ours().len(), 0);
    }
}

#[test]
fn githubs_other_ways_to_say_so_are_no_lack_of_rights() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let spent = vec![("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-reset", (now + 1).to_string())];
    for headers in [spent, vec![("Retry-After", "1".to_owned())]] {
        let pulls = Pulls::start(Forge::Github);
        pulls.fault(1, creation(Forge::Github), Fault::Status(403, headers, "{}".into()));
        assert_eq!(job(&pulls, Forge::Github).post("x").unwrap().outcome, CommentOutcome::Created);
    }
    let pulls = Pulls::start(Forge::Github);
    let words = r#"{"message": "You have exceeded a secondary rate limit. Please wait."}"#;
    pulls.fault(1, creation(Forge::Github), Fault::Status(403, Vec::new(), words.into()));
    let failure = failed(job(&pulls, Forge::Github).post("x"));
    assert!(failure.hints.iter().any(|hint| hint.contains("60 s")), "{failure:?}");
}

#[test]
fn refusals_say_what_to_do() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        pulls.lets_in("another", true);
        let failure = failed(job(&pulls, forge).post("x"));
        assert!(failure.cause.contains("HTTP 401: Bad credentials"), "{failure}");
        let variable = failure.hints[0].split(' ').find(|word| word.ends_with("_TOKEN"));
        assert_eq!(variable, Some(forge.token_variable()), "{failure:?}");

        let pulls = Pulls::start(forge);
        pulls.fault(1, creation(forge), Fault::status(403));
        match job(&pulls, forge).post("x") {
            Err(Unposted::Denied(failure)) => {
                let right = match forge {
                    Forge::Github => "pull-requests: write",
                    Forge::Gitlab => "project access token",
                    Forge::Gitea => "write:issue",
                };
                assert!(failure.hints[0].contains(right), "{failure:?}");
            }
            other => panic!("{other:?}"),
        }

        let pulls = Pulls::start(forge);
        pulls.fault(1, list(forge), Fault::status(404));
        let failure = failed(job(&pulls, forge).post("x"));
        assert!(failure.hints[0].contains("no such pull request"), "{failure:?}");
    }
}

#[test]
fn the_token_goes_to_no_other_host() {
    for forge in ALL {
        let elsewhere = Pulls::start(forge);
        for line in [list(forge), creation(forge)] {
            for status in [301, 302, 307, 308] {
                let pulls = Pulls::start(forge);
                let location = vec![("Location", format!("{}/x", elsewhere.url()))];
                pulls.fault(1, line, Fault::Status(status, location, String::new()));
                let failure = failed(job(&pulls, forge).post("x"));
                assert!(failure.cause.contains("another host"), "{failure}");
            }
        }
        assert_eq!(elsewhere.asked(), Vec::<String>::new());
        // A repository that was renamed is on the same host.
        let pulls = Pulls::start(forge);
        let path = match forge {
            Forge::Github => "/repos/acme/gitops/issues/3/comments?per_page=100&page=1",
            Forge::Gitea => "/api/v1/repos/acme/gitops/issues/3/comments",
            Forge::Gitlab => "/api/v4/projects/12/merge_requests/3/notes",
        };
        pulls.fault(1, list(forge), Fault::Status(301, vec![("Location", path.to_owned())], String::new()));
        assert_eq!(job(&pulls, forge).post("x").unwrap().outcome, CommentOutcome::Created, "{forge:?}");
    }
}

#[test]
fn an_answer_of_somebody_else_is_not_taken_for_the_forges() {
    for forge in ALL {
        for body in ["<html>Sign in</html>", "", "{}", "[{}]", "[{\"id\": \"x\"}]"] {
            let pulls = Pulls::start(forge);
            pulls.fault(99, list(forge), Fault::Status(200, Vec::new(), body.to_owned()));
            let failure = failed(job(&pulls, forge).post("x"));
            assert_eq!(failure.code, "not-the-api", "{failure}");
            assert_eq!(pulls.comments(), []);
        }
    }
}

#[test]
fn what_a_forge_says_may_not_show_the_token() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        let echo = format!(r#"{{"message": "no such thing: {TOKEN}"}}"#);
        pulls.fault(1, list(forge), Fault::Status(422, Vec::new(), echo));
        let failure = failed(job(&pulls, forge).post("x"));
        assert!(failure.cause.ends_with("HTTP 422: no such thing: ***"), "{failure}");
        let target = format!("{:?}", job(&pulls, forge).target);
        assert!(!target.contains(TOKEN), "{target}");
    }
}

#[test]
fn a_page_that_cannot_be_read_makes_no_second_comment() {
    for forge in [Forge::Github, Forge::Gitlab] {
        let pulls = Pulls::start(forge);
        for n in 0..100 {
            pulls.comment(ANN, &format!("remark {n}"));
        }
        let job = Job::of(&pulls, forge, HEAD);
        job.post("x").unwrap();
        // The second page, where ours is.
        pulls.forget();
        pulls.fault_page(2, Fault::status(502));
        let failure = failed(job.post("y"));
        assert!(failure.cause.contains("HTTP 502"), "{failure}");
        assert_eq!(pulls.ours().len(), 1, "{forge:?}");
    }
}

#[test]
fn nobody_there_is_an_error() {
    for forge in ALL {
        let job = {
            let pulls = Pulls::start(forge);
            job(&pulls, forge)
        };
        let failure = failed(job.post("x"));
        assert_eq!(failure.code, "unreachable", "{failure}");
    }
}

#[test]
fn a_private_authority_is_that_of_the_environment() {
    for forge in ALL {
        let authority = Authority::new();
        let pulls = Pulls::start_tls(forge, authority.server.clone());
        let failure = failed(job(&pulls, forge).post("x"));
        assert!(failure.hints.iter().any(|hint| hint.contains("SSL_CERT_FILE")), "{failure:?}");
        assert_eq!(pulls.asked(), Vec::<String>::new());
        let file = [("SSL_CERT_FILE", authority.ca_file().to_str().unwrap().to_owned())];
        assert_eq!(
            Job::with(&pulls, forge, HEAD, &file).post("x").unwrap().outcome,
            CommentOutcome::Created,
            "{forge:?}"
        );
    }
}

#[test]
fn a_proxy_is_that_of_the_environment() {
    let pulls = Pulls::start(Forge::Github);
    // Nobody is there but the proxy.
    let proxied = [("GITHUB_API_URL", "http://127.0.0.1:1".to_owned()), ("http_proxy", pulls.url())];
    assert_eq!(
        Job::with(&pulls, Forge::Github, HEAD, &proxied).post("x").unwrap().outcome,
        CommentOutcome::Created
    );
    let past_it = [&proxied[..], &[("no_proxy", "127.0.0.1".to_owned())]].concat();
    assert_eq!(failed(Job::with(&pulls, Forge::Github, HEAD, &past_it).post("x")).code, "unreachable");
}

/// Runs of two commits at once, and a forge that fails at random: whatever was left, the next run of the newest
/// commit leaves one comment.
#[test]
fn b65_whatever_runs_and_faults_leave_one_comment_stays_in_the_end() {
    const NEWER: &str = "2222222222222222222222222222222222222222";
    for forge in ALL {
        for seed in 0..12_u64 {
            let pulls = Pulls::start(forge);
            pulls.comment(ANN, "looks fine");
            let mut state = seed;
            let mut dice = move |sides: u64| {
                // Knuth's multiplier: any sequence does, as long as it is the same every time.
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % sides
            };
            for _ in 0..dice(4) {
                let fault = match dice(5) {
                    0 => Fault::status(502),
                    1 => Fault::Dropped,
                    2 => Fault::DoneUnheard,
                    3 => Fault::Cut,
                    _ => Fault::Push(NEWER),
                };
                pulls.fault(1, if dice(2) == 0 { creation(forge) } else { list(forge) }, fault);
            }
            std::thread::scope(|scope| {
                for n in 0..3_u64 {
                    let head = if n < 2 { HEAD } else { NEWER };
                    let (pulls, job) = (&pulls, Job::of(&pulls, forge, head));
                    let text = format!("of {head}");
                    scope.spawn(move || {
                        std::thread::sleep(Duration::from_millis(n * seed % 7));
                        if head == NEWER {
                            pulls.push(NEWER);
                        }
                        let _ = job.post(&text);
                    });
                }
            });
            let last = Job::of(&pulls, forge, NEWER);
            pulls.push(NEWER);
            pulls.calm();
            last.post(&format!("of {NEWER}")).unwrap();
            let ours = pulls.ours();
            assert_eq!(ours.len(), 1, "{forge:?} {seed}: {:?}", pulls.asked());
            assert!(ours[0].body.ends_with(NEWER), "{forge:?} {seed}");
            assert_eq!(pulls.comments().len(), 2);
        }
    }
}
