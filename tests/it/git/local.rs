//! A bare repository on this machine.

use super::{changes, fsck, git, identity, open, proposal};
use expedite::files::EntryKind;
use git_commits::WriteOutcome;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn b23_the_first_commit_of_an_empty_repository_is_on_the_configured_branch() {
    let dir = crate::git::folder();
    git(dir.path(), &["init", "-q", "--bare", "-b", "main", "."]);
    let repository = open(dir.path());
    let empty = repository.read_snapshot("main\n").unwrap();
    assert_eq!(empty.head, None);
    assert_eq!(empty.list_entries("").0, []);
    let me = identity();
    assert_eq!(
        git_commits::write_changes(&repository, &empty, &changes([("gone", None)]), proposal("none", &me))
            .unwrap(),
        WriteOutcome::Unchanged
    );
    let wrote = git_commits::write_changes(
        &repository,
        &empty,
        &changes([("a/b.yaml", Some("b"))]),
        proposal("first", &me),
    );
    let WriteOutcome::Pushed(first) = wrote.unwrap() else { panic!("not pushed") };
    assert_eq!(git(dir.path(), &["rev-parse", "main"]), first.as_str());
    assert_eq!(
        git(dir.path(), &["log", "--format=%an <%ae> %cn %at %s", "main"]),
        "Expedite <expedite@localhost> Expedite 1790000000 first"
    );
    let late =
        git_commits::write_changes(&repository, &empty, &changes([("c", Some("c"))]), proposal("late", &me))
            .unwrap();
    assert_eq!(late, WriteOutcome::Moved, "a root commit replaces nothing");
    fsck(dir.path());
}

#[test]
fn b23_a_branch_that_is_not_there_is_refused_by_name() {
    let dir = crate::git::folder();
    git(dir.path(), &["init", "-q", "--bare", "-b", "trunk", "."]);
    let repository = open(dir.path());
    let me = identity();
    let empty = repository.read_snapshot("trunk").unwrap();
    git_commits::write_changes(&repository, &empty, &changes([("a", Some("a"))]), proposal("first", &me))
        .unwrap();
    let refused = repository.read_snapshot("main").unwrap_err();
    assert_eq!(refused.code, "branch-absent");
    assert!(refused.cause.contains("\"main\"") && refused.cause.contains("trunk"), "{refused}");
    assert_eq!(repository.read_snapshot("a..b").unwrap_err().code, "branch-name");
    fsck(dir.path());
}

#[test]
fn equal_files_make_no_commit_and_deletions_are_exact() {
    let dir = crate::git::folder();
    git(dir.path(), &["init", "-q", "--bare", "-b", "main", "."]);
    let repository = open(dir.path());
    let me = identity();
    let write = |changed, message| {
        let base = repository.read_snapshot("main").unwrap();
        git_commits::write_changes(&repository, &base, &changed, proposal(message, &me)).unwrap()
    };
    let both = changes([("a/1.yaml", Some("1")), ("a/2.yaml", Some("2"))]);
    assert!(matches!(write(both.clone(), "one"), WriteOutcome::Pushed(_)));
    assert_eq!(write(both, "again"), WriteOutcome::Unchanged);
    assert!(matches!(write(changes([("a/1.yaml", None)]), "less"), WriteOutcome::Pushed(_)));
    assert_eq!(git(dir.path(), &["ls-tree", "-r", "--name-only", "main"]), "a/2.yaml");
    assert_eq!(git(dir.path(), &["rev-list", "--count", "main"]), "2");
    fsck(dir.path());
}

#[test]
fn links_submodules_and_hidden_folders_are_told_apart() {
    let dir = crate::git::folder();
    let work = dir.path();
    git(work, &["init", "-q", "-b", "main", "."]);
    std::fs::create_dir_all(work.join("a/.hidden")).unwrap();
    std::fs::write(work.join("a/.hidden/x.yaml"), "x").unwrap();
    std::fs::write(work.join("a/.dotfile"), "x").unwrap();
    std::fs::write(work.join("a/f.yaml"), "f").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", work.join("a/link.yaml")).unwrap();
    git(work, &["add", "."]);
    git(
        work,
        &["update-index", "--add", "--cacheinfo", "160000,0123456789abcdef0123456789abcdef01234567,a/sub"],
    );
    git(work, &["commit", "-qm", "mixed"]);
    let snapshot = open(work).read_snapshot("main").unwrap();
    let (entries, unreadable) = snapshot.list_entries("a");
    assert_eq!(unreadable, []);
    let seen: Vec<_> = entries.iter().map(|e| (e.path.as_str(), e.kind)).collect();
    assert_eq!(
        seen,
        [
            ("a/.dotfile", EntryKind::File),
            ("a/f.yaml", EntryKind::File),
            ("a/link.yaml", EntryKind::Link),
            ("a/sub", EntryKind::Submodule)
        ]
    );
    assert_eq!(snapshot.read_file("a/f.yaml").unwrap().as_deref(), Some(&b"f"[..]));
    assert_eq!(snapshot.read_file("a/link.yaml").unwrap(), None, "a link is not followed");
    assert_eq!(snapshot.read_file("a/none").unwrap(), None);
    assert_eq!(snapshot.list_entries("a/f.yaml").0.len(), 1);
    assert_eq!(snapshot.list_entries("nowhere").0, []);
    let id = git(work, &["rev-parse", "main:a/f.yaml"]);
    assert_eq!(entries[1].id.as_deref(), Some(id.as_str()));
}

#[test]
fn b26_eight_writers_lose_nothing() {
    let dir = crate::git::folder();
    let path = Arc::new(dir.path().join("gitops.git"));
    std::fs::create_dir(&*path).unwrap();
    git(&path, &["init", "-q", "--bare", "-b", "main", "."]);
    let moved = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..8)
        .map(|n| {
            let (path, moved) = (Arc::clone(&path), Arc::clone(&moved));
            std::thread::spawn(move || {
                let repository = open(&path);
                let me = identity();
                for turn in 0..10 {
                    loop {
                        let base = repository.read_snapshot("main").unwrap();
                        let file = format!("applications/n{n}/{turn}.yaml");
                        let changed = changes([(file.as_str(), Some("x"))]);
                        match git_commits::write_changes(&repository, &base, &changed, proposal(&file, &me))
                            .unwrap()
                        {
                            WriteOutcome::Pushed(_) => break,
                            WriteOutcome::Moved => moved.fetch_add(1, Ordering::Relaxed),
                            WriteOutcome::Unchanged | WriteOutcome::Refused(_) => panic!("neither can be"),
                        };
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    assert!(moved.load(Ordering::Relaxed) > 0, "no two of them met: this proves nothing");
    assert_eq!(git(&path, &["rev-list", "--count", "main"]), "80");
    assert_eq!(git(&path, &["ls-tree", "-r", "--name-only", "main"]).lines().count(), 80);
    fsck(&path);
}
