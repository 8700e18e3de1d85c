//! Checkouts: a person's, and those that CI systems leave.

use super::{changes, fsck, git, identity, open, proposal};
use git_commits::GitError;
use git_commits::WriteOutcome;
use std::path::Path;

/// A checkout of `main` with a file, that follows nothing.
fn checkout(folder: &Path) {
    git(folder, &["init", "-q", "-b", "main", "."]);
    std::fs::create_dir(folder.join("applications")).unwrap();
    std::fs::write(folder.join("applications/a.yaml"), "a\n").unwrap();
    std::fs::write(folder.join("README"), "text\n").unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "-qm", "first"]);
}

fn write(folder: &Path, of: &[(&str, Option<&str>)]) -> Result<WriteOutcome, GitError> {
    let repository = open(folder);
    let base = repository.read_snapshot("main").unwrap();
    let changed = of.iter().map(|(p, b)| changes([(*p, *b)])).reduce(|mut a, b| {
        a.extend(b);
        a
    });
    let done =
        git_commits::write_changes(&repository, &base, &changed.unwrap(), proposal("ours", &identity()));
    assert_eq!(repository.take_notes(), []);
    done
}

#[test]
fn a_clean_checkout_is_brought_along() {
    let dir = crate::git::folder();
    let work = dir.path();
    checkout(work);
    std::fs::write(work.join("untracked"), "mine").unwrap();
    let done = write(
        work,
        &[
            ("applications/a.yaml", None),
            ("applications/shop/b.yaml", Some("b\n")),
            ("servings/shop/c.yaml", Some("c\n")),
        ],
    );
    assert!(matches!(done, Ok(WriteOutcome::Pushed(_))), "{done:?}");
    assert_eq!(git(work, &["status", "--porcelain"]), "?? untracked");
    assert_eq!(std::fs::read_to_string(work.join("applications/shop/b.yaml")).unwrap(), "b\n");
    assert!(!work.join("applications/a.yaml").exists());
    let again = write(work, &[("applications/shop/b.yaml", None), ("servings/shop/c.yaml", None)]);
    assert!(matches!(again, Ok(WriteOutcome::Pushed(_))), "{again:?}");
    assert_eq!(git(work, &["status", "--porcelain"]), "?? untracked");
    assert!(!work.join("applications").exists(), "empty folders go");
    assert_eq!(git(work, &["log", "--format=%s"]), "ours\nours\nfirst");
    fsck(work);
}

#[test]
fn what_is_not_clean_is_left_alone() {
    type Spoil = fn(&Path);
    let spoils: [(&str, Spoil); 9] = [
        ("modified", |w| std::fs::write(w.join("applications/a.yaml"), "mine\n").unwrap()),
        ("staged", |w| {
            std::fs::write(w.join("applications/a.yaml"), "mine\n").unwrap();
            git(w, &["add", "."]);
            git(w, &["checkout", "-q", "HEAD", "--", "README"]);
        }),
        ("deleted", |w| std::fs::remove_file(w.join("applications/a.yaml")).unwrap()),
        ("deleted and staged", |w| {
            git(w, &["rm", "-q", "applications/a.yaml"]);
        }),
        ("untracked in the way", |w| std::fs::write(w.join("applications/b.yaml"), "mine\n").unwrap()),
        ("ignored in the way", |w| {
            std::fs::write(w.join(".git/info/exclude"), "b.yaml\n").unwrap();
            std::fs::write(w.join("applications/b.yaml"), "mine\n").unwrap();
        }),
        ("a folder in the way", |w| std::fs::create_dir_all(w.join("applications/b.yaml/x")).unwrap()),
        ("a link in the way", |w| {
            std::fs::rename(w.join("applications"), w.join("elsewhere")).unwrap();
            std::os::unix::fs::symlink("elsewhere", w.join("applications")).unwrap();
        }),
        ("a merge under way", |w| {
            git(w, &["checkout", "-qb", "other"]);
            git(w, &["commit", "-q", "--allow-empty", "-m", "other"]);
            git(w, &["checkout", "-q", "main"]);
            git(w, &["merge", "-q", "--no-ff", "--no-commit", "other"]);
        }),
    ];
    for (name, spoil) in spoils {
        let dir = crate::git::folder();
        let work = dir.path();
        checkout(work);
        spoil(work);
        let status = git(work, &["status", "--porcelain", "--ignored"]);
        let head = git(work, &["rev-parse", "HEAD"]);
        let refused =
            write(work, &[("applications/a.yaml", Some("ours\n")), ("applications/b.yaml", Some("b\n"))]);
        let refused = refused.expect_err(name);
        assert_eq!(refused.code, "checkout-not-clean", "{name}: {refused}");
        assert_eq!(git(work, &["status", "--porcelain", "--ignored"]), status, "{name}");
        assert_eq!(git(work, &["rev-parse", "HEAD"]), head, "{name}");
        fsck(work);
    }
}

#[test]
fn b20_only_our_paths_are_in_the_commit_and_in_the_checkout() {
    let dir = crate::git::folder();
    let (origin, work) = (dir.path().join("origin.git"), dir.path().join("work"));
    std::fs::create_dir_all(&work).unwrap();
    checkout(&work);
    std::fs::write(work.join(".gitattributes"), "* text=auto\n*.bin filter=lfs -text\n").unwrap();
    std::fs::create_dir(work.join("docs")).unwrap();
    std::fs::write(work.join("docs/script.sh"), "#!/bin/sh\n").unwrap();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    std::fs::write(work.join("docs/big.bin"), pointer).unwrap();
    git(&work, &["add", "."]);
    git(&work, &["update-index", "--chmod=+x", "docs/script.sh"]);
    // A file stored with CRLF although the attributes would turn it.
    std::fs::write(work.join("crlf-source"), "one\r\ntwo\r\n").unwrap();
    let blob = git(&work, &["hash-object", "-w", "--no-filters", "crlf-source"]);
    std::fs::remove_file(work.join("crlf-source")).unwrap();
    git(&work, &["update-index", "--add", "--cacheinfo", &format!("100644,{blob},docs/crlf.txt")]);
    git(
        &work,
        &["update-index", "--add", "--cacheinfo", "160000,0123456789abcdef0123456789abcdef01234567,sub"],
    );
    git(&work, &["commit", "-qm", "mixed"]);
    git(dir.path(), &["clone", "-q", "--bare", "work", "origin.git"]);
    std::fs::remove_dir_all(&work).unwrap();
    git(dir.path(), &["clone", "-q", "--no-checkout", "origin.git", "work"]);
    git(&work, &["sparse-checkout", "set", "--cone", "applications"]);
    git(&work, &["checkout", "-q", "main"]);
    assert!(!work.join("docs").exists(), "the checkout is sparse");
    std::fs::write(work.join("README"), "changed by CI\n").unwrap();
    let before = git(&work, &["status", "--porcelain"]);

    let done =
        write(&work, &[("applications/shop/b.yaml", Some("b\n")), ("docs/ours.yaml", Some("hidden\n"))]);
    assert!(matches!(done, Ok(WriteOutcome::Pushed(_))), "{done:?}");
    assert_eq!(
        git(&work, &["diff", "--name-status", "HEAD~", "HEAD"]),
        "A\tapplications/shop/b.yaml\nA\tdocs/ours.yaml"
    );
    assert_eq!(git(&origin, &["rev-parse", "main"]), git(&work, &["rev-parse", "HEAD"]));
    assert_eq!(git(&work, &["status", "--porcelain"]), before);
    assert!(work.join("applications/shop/b.yaml").exists());
    assert!(!work.join("docs").exists(), "what is kept out stays out");
    for path in [&origin, &work] {
        git(path, &["fsck", "--strict"]);
    }
}

#[test]
fn line_ends_are_those_the_checkout_wants() {
    let dir = crate::git::folder();
    let work = dir.path();
    checkout(work);
    std::fs::write(work.join(".gitattributes"), "*.yaml text eol=crlf\n").unwrap();
    git(work, &["add", "."]);
    git(work, &["commit", "-qm", "attributes"]);
    git(work, &["rm", "-q", "--cached", "-r", "."]);
    git(work, &["reset", "-q", "--hard"]);
    assert_eq!(std::fs::read(work.join("applications/a.yaml")).unwrap(), b"a\r\n");
    let done = write(work, &[("applications/a.yaml", Some("x\ny\n"))]);
    assert!(matches!(done, Ok(WriteOutcome::Pushed(_))), "{done:?}");
    assert_eq!(std::fs::read(work.join("applications/a.yaml")).unwrap(), b"x\r\ny\r\n");
    assert_eq!(git(work, &["cat-file", "-p", "HEAD:applications/a.yaml"]), "x\ny");
    assert_eq!(git(work, &["status", "--porcelain"]), "");
    fsck(work);
}

#[test]
fn a_checkout_of_another_branch_or_of_none_is_not_touched() {
    let dir = crate::git::folder();
    let work = dir.path();
    checkout(work);
    git(work, &["checkout", "-q", "--detach"]);
    std::fs::write(work.join("applications/a.yaml"), "mine\n").unwrap();
    let done = write(work, &[("applications/a.yaml", Some("ours\n"))]);
    assert!(matches!(done, Ok(WriteOutcome::Pushed(_))), "{done:?}");
    assert_eq!(std::fs::read_to_string(work.join("applications/a.yaml")).unwrap(), "mine\n");
    assert_eq!(git(work, &["log", "--format=%s", "main"]), "ours\nfirst");
    assert_eq!(git(work, &["log", "--format=%s", "HEAD"]), "first");
    fsck(work);
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_is_refused() {
    let dir = crate::git::folder();
    let (work, tree) = (dir.path().join("work"), dir.path().join("tree"));
    std::fs::create_dir(&work).unwrap();
    checkout(&work);
    git(&work, &["checkout", "-qb", "side"]);
    git(&work, &["worktree", "add", "-q", "../tree", "main"]);
    let refused = write(&work, &[("x", Some("x"))]).unwrap_err();
    assert_eq!(refused.code, "branch-checked-out");
    assert!(refused.cause.contains("tree"), "{refused}");
    // B81: a work tree whose git directory lies elsewhere.
    let done = write(&tree, &[("x", Some("x"))]);
    assert!(matches!(done, Ok(WriteOutcome::Pushed(_))), "{done:?}");
    assert_eq!(git(&tree, &["status", "--porcelain"]), "");
    assert!(tree.join("x").exists());

    // The same, seen from a clone of that checkout.
    let clone = dir.path().join("clone");
    git(&work, &["checkout", "-q", "--ignore-other-worktrees", "main"]);
    git(dir.path(), &["clone", "-q", "work", "clone"]);
    let refused = write(&clone, &[("y", Some("y"))]).unwrap_err();
    assert_eq!(refused.code, "branch-checked-out");
    fsck(&work);
}

#[test]
fn a_checkout_follows_its_remote() {
    let dir = crate::git::folder();
    let (seed, origin) = (dir.path().join("seed"), dir.path().join("origin.git"));
    std::fs::create_dir(&seed).unwrap();
    checkout(&seed);
    git(dir.path(), &["clone", "-q", "--bare", "seed", "origin.git"]);
    git(dir.path(), &["clone", "-q", "origin.git", "work"]);
    git(dir.path(), &["clone", "-q", "origin.git", "person"]);
    let (work, person) = (dir.path().join("work"), dir.path().join("person"));
    std::fs::write(person.join("README"), "newer\n").unwrap();
    git(&person, &["commit", "-qam", "person"]);
    git(&person, &["push", "-q"]);

    // Behind: the decision is made on what the remote has, and the person's commit comes along.
    let repository = open(&work);
    let base = repository.read_snapshot("main").unwrap();
    assert_eq!(base.read_file("README").unwrap().as_deref(), Some(&b"newer\n"[..]));
    let done = write(&work, &[("applications/b.yaml", Some("b\n"))]);
    assert!(matches!(done, Ok(WriteOutcome::Pushed(_))), "{done:?}");
    assert_eq!(git(&origin, &["log", "--format=%s", "main"]), "ours\nperson\nfirst");
    assert_eq!(git(&work, &["log", "--format=%s"]), "ours\nperson\nfirst");
    assert_eq!(git(&work, &["status", "--porcelain", "--branch"]), "## main...origin/main");
    assert_eq!(std::fs::read_to_string(work.join("README")).unwrap(), "newer\n");
    assert_eq!(
        git_commits::write_changes(
            &repository,
            &base,
            &changes([("z", Some("z"))]),
            proposal("late", &identity())
        )
        .unwrap(),
        WriteOutcome::Moved
    );
    assert_eq!(git(&work, &["status", "--porcelain", "--branch"]), "## main...origin/main");

    // Ahead: a person's commits are not published by us.
    git(&work, &["commit", "-q", "--allow-empty", "-m", "not pushed"]);
    let refused = write(&work, &[("applications/c.yaml", Some("c\n"))]).unwrap_err();
    assert_eq!(refused.code, "checkout-ahead");
    assert_eq!(git(&origin, &["log", "--format=%s", "-1", "main"]), "ours");
    for path in [&origin, &work] {
        fsck(path);
    }
}

/// A new repository that was cloned while it was empty: the first commit is here alone.
#[test]
fn a_first_commit_that_was_not_pushed_is_said() {
    let dir = crate::git::folder();
    git(dir.path(), &["init", "-q", "--bare", "-b", "main", "origin.git"]);
    git(dir.path(), &["clone", "-q", "origin.git", "work"]);
    let work = dir.path().join("work");
    assert!(open(&work).read_snapshot("main").is_ok(), "both are empty");
    git(&work, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let failed = open(&work).read_snapshot("main").unwrap_err();
    assert_eq!(failed.code, "not-pushed");
    assert_eq!(failed.hints, ["push them first: git push -u origin HEAD:main"]);
    git(&work, &["push", "-q", "-u", "origin", "HEAD:main"]);
    assert!(open(&work).read_snapshot("main").is_ok());
}

#[test]
fn what_a_killed_run_began_is_finished() {
    let dir = crate::git::folder();
    let work = dir.path();
    checkout(work);
    let from = git(work, &["rev-parse", "HEAD"]);
    assert!(write(work, &[("applications/a.yaml", Some("ours\n")), ("n/b.yaml", Some("b\n"))]).is_ok());
    let to = git(work, &["rev-parse", "HEAD"]);
    // As if it had been killed after the branch moved and before index and files did, but for one file.
    git(work, &["reset", "-q", "--hard", &from]);
    git(work, &["update-ref", "refs/heads/main", &to]);
    std::fs::create_dir(work.join("n")).unwrap();
    std::fs::write(work.join("n/b.yaml"), "b\n").unwrap();
    std::fs::write(work.join(".git/expedite-unfinished"), format!("{from} {to}\n")).unwrap();
    assert_ne!(git(work, &["status", "--porcelain"]), "");
    assert_eq!(write(work, &[("applications/a.yaml", Some("ours\n"))]).unwrap(), WriteOutcome::Unchanged);
    assert_eq!(git(work, &["status", "--porcelain"]), "");
    assert!(!work.join(".git/expedite-unfinished").exists());
    fsck(work);
}

#[test]
fn two_runs_in_one_checkout_do_not_meet() {
    let dir = crate::git::folder();
    let work = dir.path().to_path_buf();
    checkout(&work);
    let runs: Vec<_> = (0..4)
        .map(|n| {
            let work = work.clone();
            std::thread::spawn(move || {
                for turn in 0..3 {
                    let file = format!("applications/n{n}/{turn}.yaml");
                    while write(&work, &[(&file, Some("x\n"))]).unwrap() == WriteOutcome::Moved {}
                }
            })
        })
        .collect();
    for run in runs {
        run.join().unwrap();
    }
    assert_eq!(git(&work, &["rev-list", "--count", "HEAD"]), "13");
    assert_eq!(git(&work, &["status", "--porcelain"]), "");
    fsck(&work);
}
