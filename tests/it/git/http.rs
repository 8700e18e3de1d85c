//! Servers over HTTP: git's own backend behind nginx, and servers that misbehave.

use super::{changes, fsck, git, identity, proposal};
use crate::support::gitserver::{self, GitServer, Http};
use git_commits::GitError;
use git_commits::WriteOutcome;
use git_commits::{Environment, Repository, RepositoryOptions, RepositoryTarget, Timeouts};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Options with these variables, `PATH` and nothing of the machine's.
fn options(variables: &[(&str, &str)]) -> RepositoryOptions {
    let path = std::env::var("PATH").unwrap();
    let fixed = [("PATH", path.as_str()), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")];
    RepositoryOptions {
        environment: Environment::new(fixed.iter().chain(variables).copied()),
        ..RepositoryOptions::default()
    }
}

fn url(server: &GitServer, repository: &str) -> RepositoryTarget {
    RepositoryTarget::Url(format!("http://127.0.0.1:{}/{repository}", server.port))
}

fn open(target: &RepositoryTarget, variables: &[(&str, &str)]) -> Result<Repository, GitError> {
    Repository::open_target(target, options(variables))
}

/// Reads the head, writes one file on top.
fn write(repository: &Repository, file: &str) -> Result<WriteOutcome, GitError> {
    let base = repository.read_snapshot("main")?;
    git_commits::write_changes(
        repository,
        &base,
        &changes([(file, Some("x\n"))]),
        proposal(file, &identity()),
    )
}

/// Makes `repository` hold `count` commits.
fn seed(repository: &Path, count: usize) {
    let dir = crate::git::folder();
    let work = dir.path().join("work");
    git(dir.path(), &["clone", "-q", repository.to_str().unwrap(), "work"]);
    for n in 0..count {
        std::fs::write(work.join("README"), format!("{n}\n")).unwrap();
        git(&work, &["add", "."]);
        git(&work, &["commit", "-qm", &format!("person {n}")]);
    }
    git(&work, &["push", "-q", "origin", "HEAD:refs/heads/main"]);
}

#[test]
fn b23_the_first_commit_reaches_an_empty_server() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    let repository = open(&url(&server, "gitops.git"), &[]).unwrap();
    assert_eq!(repository.read_snapshot("main").unwrap().head, None);
    assert!(matches!(write(&repository, "a/b.yaml"), Ok(WriteOutcome::Pushed(_))));
    assert!(matches!(write(&repository, "a/c.yaml"), Ok(WriteOutcome::Pushed(_))));
    assert_eq!(write(&repository, "a/c.yaml").unwrap(), WriteOutcome::Unchanged);
    assert_eq!(git(&path, &["log", "--format=%s", "main"]), "a/c.yaml\na/b.yaml");
    let refused = repository.read_snapshot("trunk").unwrap_err();
    assert_eq!(refused.code, "branch-absent");
    assert!(refused.cause.contains("main"), "{refused}");
    assert_eq!(repository.find_default_branch().unwrap().as_deref(), Some("main"));
    fsck(&path);
}

#[test]
fn b19_from_a_shallow_checkout_the_history_stays_whole() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    seed(&path, 50);
    let tip = git(&path, &["rev-parse", "main"]);
    let dir = crate::git::folder();
    let address = format!("http://127.0.0.1:{}/gitops.git", server.port);
    git(dir.path(), &["clone", "-q", "--depth=1", &address, "work"]);
    let work = dir.path().join("work");
    assert!(work.join(".git/shallow").exists());
    // In the checkout, by URL, and in a checkout that somebody has overtaken.
    let checkout = open(&RepositoryTarget::Path(work.clone()), &[]).unwrap();
    assert!(matches!(write(&checkout, "one"), Ok(WriteOutcome::Pushed(_))));
    let apart = open(&RepositoryTarget::Url(address), &[]).unwrap();
    assert!(matches!(write(&apart, "two"), Ok(WriteOutcome::Pushed(_))));
    let checkout = open(&RepositoryTarget::Path(work.clone()), &[]).unwrap();
    assert!(matches!(write(&checkout, "three"), Ok(WriteOutcome::Pushed(_))));
    assert_eq!(checkout.take_notes(), []);
    assert_eq!(git(&path, &["rev-list", "--count", "main"]), "53");
    git(&path, &["merge-base", "--is-ancestor", &tip, "main"]);
    assert_eq!(git(&work, &["log", "--format=%s", "-4"]), "three\ntwo\none\nperson 49");
    assert_eq!(git(&work, &["status", "--porcelain", "--branch"]), "## main...origin/main");
    assert!(work.join("two").exists());
    fsck(&path);
    fsck(&work);
}

#[test]
fn a_partial_clone_is_read_from_its_server() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    git(&path, &["config", "uploadpack.allowfilter", "true"]);
    seed(&path, 3);
    let dir = crate::git::folder();
    let address = format!("http://127.0.0.1:{}/gitops.git", server.port);
    git(dir.path(), &["clone", "-q", "--filter=blob:none", "--no-checkout", &address, "work"]);
    let work = dir.path().join("work");
    let checkout = open(&RepositoryTarget::Path(work.clone()), &[]).unwrap();
    assert_eq!(
        checkout.read_snapshot("main").unwrap().read_file("README").unwrap().as_deref(),
        Some(&b"2\n"[..])
    );
    assert!(matches!(write(&checkout, "one"), Ok(WriteOutcome::Pushed(_))));
    let notes = checkout.take_notes();
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].code, "checkout-left");
    assert_eq!(git(&path, &["rev-list", "--count", "main"]), "4");
    fsck(&path);
}

#[test]
fn b15_a_refused_push_is_refused_with_the_servers_words() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    seed(&path, 2);
    let tip = git(&path, &["rev-parse", "main"]);
    for hook in ["pre-receive", "update"] {
        GitServer::hook(&path, hook, "echo 'author not allowed' >&2; exit 1");
        let repository = open(&url(&server, "gitops.git"), &[]).unwrap();
        let WriteOutcome::Refused(words) = write(&repository, "one").unwrap() else { panic!("not refused") };
        assert!(words.contains("author not allowed") && words.contains("declined"), "{words}");
        assert_eq!(git(&path, &["rev-parse", "main"]), tip);
        std::fs::remove_file(path.join("hooks").join(hook)).unwrap();
    }
    // In a checkout: nothing of ours stays in it.
    GitServer::hook(&path, "pre-receive", "echo protected; exit 1");
    let dir = crate::git::folder();
    git(dir.path(), &["clone", "-q", &format!("http://127.0.0.1:{}/gitops.git", server.port), "work"]);
    let work = dir.path().join("work");
    let checkout = open(&RepositoryTarget::Path(work.clone()), &[]).unwrap();
    assert!(matches!(write(&checkout, "one"), Ok(WriteOutcome::Refused(_))));
    assert_eq!(git(&work, &["status", "--porcelain", "--branch"]), "## main...origin/main");
    assert_eq!(git(&work, &["rev-parse", "HEAD"]), tip);
    assert!(!work.join(".git/expedite-unfinished").exists());
    fsck(&path);
}

/// A hook that lets another commit in, once, before it goes on with `then`.
fn overtaken(path: &Path, then: &str) {
    GitServer::hook(
        path,
        "pre-receive",
        &format!(
            "[ -e overtaken ] && exit 0\ntouch overtaken\n\
             unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n\
             export GIT_AUTHOR_NAME=P GIT_AUTHOR_EMAIL=p@x GIT_COMMITTER_NAME=P GIT_COMMITTER_EMAIL=p@x\n\
             new=$(git commit-tree -p main -m person 'main^{{tree}}') && git update-ref refs/heads/main $new || exit 9\n{then}"
        ),
    );
}

#[test]
fn b16_a_moved_head_is_seen_whatever_the_server_says() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let sayings = [
        ("a", "echo 'failed to lock refs/heads/main'; exit 1"),
        ("b", "echo 'reference is at 123 but expected 456'; exit 1"),
        ("c", "echo 'flux capacitor empty'; exit 1"),
        ("d", "exit 0"),
    ];
    for (name, then) in sayings {
        let path = server.create(&format!("{name}.git"));
        seed(&path, 2);
        overtaken(&path, then);
        let repository = open(&url(&server, &format!("{name}.git")), &[]).unwrap();
        assert_eq!(write(&repository, "ours").unwrap(), WriteOutcome::Moved, "{name}");
        assert!(matches!(write(&repository, "ours"), Ok(WriteOutcome::Pushed(_))), "{name}");
        assert_eq!(git(&path, &["log", "--format=%s", "main"]), "ours\nperson\nperson 1\nperson 0", "{name}");
        fsck(&path);
    }
    let path = server.create("e.git");
    seed(&path, 2);
    GitServer::hook(&path, "pre-receive", "echo 'non-fast-forward: fetch first'; exit 1");
    let repository = open(&url(&server, "e.git"), &[]).unwrap();
    let WriteOutcome::Refused(words) = write(&repository, "ours").unwrap() else { panic!("not refused") };
    assert!(words.contains("fetch first"), "{words}");
}

#[test]
fn a_commit_that_is_overtaken_at_once_is_found_again() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    seed(&path, 2);
    GitServer::hook(
        &path,
        "post-receive",
        "export GIT_AUTHOR_NAME=P GIT_AUTHOR_EMAIL=p@x GIT_COMMITTER_NAME=P GIT_COMMITTER_EMAIL=p@x\n\
         git update-ref refs/heads/main $(git commit-tree -p main -m person 'main^{tree}')",
    );
    let repository = open(&url(&server, "gitops.git"), &[]).unwrap();
    let base = repository.read_snapshot("main").unwrap();
    let done = git_commits::write_changes(
        &repository,
        &base,
        &changes([("a", Some("a"))]),
        proposal("ours", &identity()),
    );
    let WriteOutcome::Pushed(ours) = done.unwrap() else { panic!("not pushed") };
    assert_eq!(git(&path, &["rev-parse", "main~"]), ours.as_str());
    fsck(&path);
}

#[test]
fn commits_that_were_taken_back_do_not_return() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    seed(&path, 3);
    let repository = open(&url(&server, "gitops.git"), &[]).unwrap();
    let base = repository.read_snapshot("main").unwrap();
    git(&path, &["update-ref", "refs/heads/main", "main~"]);
    let tip = git(&path, &["rev-parse", "main"]);
    let done = git_commits::write_changes(
        &repository,
        &base,
        &changes([("a", Some("a"))]),
        proposal("ours", &identity()),
    );
    assert_eq!(done.unwrap(), WriteOutcome::Moved);
    assert_eq!(git(&path, &["rev-parse", "main"]), tip);
    assert!(matches!(write(&repository, "ours"), Ok(WriteOutcome::Pushed(_))));
    assert_eq!(git(&path, &["log", "--format=%s", "main"]), "ours\nperson 1\nperson 0");
    fsck(&path);
}

#[test]
fn b26_eight_writers_over_http_lose_nothing() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    let target = url(&server, "gitops.git");
    let writers: Vec<_> = (0..8)
        .map(|n| {
            let target = target.clone();
            std::thread::spawn(move || {
                let repository = open(&target, &[]).unwrap();
                let mut tries = 0;
                while write(&repository, &format!("applications/{n}.yaml")).unwrap() == WriteOutcome::Moved {
                    tries += 1;
                    assert!(tries < 50);
                    std::thread::sleep(Duration::from_millis(n * 7 + tries * 3));
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(git(&path, &["rev-list", "--count", "main"]), "8");
    assert_eq!(git(&path, &["ls-tree", "-r", "--name-only", "main"]).lines().count(), 8);
    fsck(&path);
}

#[test]
fn b30_each_credential_is_tried_once() {
    let Some(server) = gitserver::http(&Http { user: Some(("me", "s3cret")), ..Http::default() }) else {
        return;
    };
    server.create("gitops.git");
    let port = server.port;
    let wrong = RepositoryTarget::Url(format!("http://me:wrong@127.0.0.1:{port}/gitops.git"));
    let nobody = url(&server, "gitops.git");
    type Case<'a> = (&'a RepositoryTarget, &'a [(&'a str, &'a str)], &'a str, usize);
    let table: [Case<'_>; 3] = [
        (&wrong, &[], "user and password of the URL", 1),
        (&nobody, &[("EXPEDITE_GIT_TOKEN", "wrong")], "EXPEDITE_GIT_TOKEN", 1),
        (&nobody, &[], "there are none", 1),
    ];
    for (target, variables, named, requests) in table {
        let before = server.log().len();
        let start = Instant::now();
        let failed = write(&open(target, variables).unwrap(), "a").unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(5));
        assert_eq!(failed.code, "unauthorized");
        assert!(failed.to_string().contains(named) && failed.to_string().contains("127.0.0.1"), "{failed}");
        assert!(!format!("{failed:?}").contains("wrong"), "{failed:?}");
        assert_eq!(server.log().len() - before, requests, "{:?}", server.log());
    }
    let right = RepositoryTarget::Url(format!("http://me:s3cret@127.0.0.1:{port}/gitops.git"));
    let repository = open(&right, &[]).unwrap();
    assert!(!repository.name().contains("s3cret") && !format!("{repository:?}").contains("s3cret"));
    assert!(matches!(write(&repository, "a"), Ok(WriteOutcome::Pushed(_))));
}

#[test]
fn credential_helpers_are_asked_and_told() {
    let Some(server) = gitserver::http(&Http { user: Some(("me", "s3cret")), ..Http::default() }) else {
        return;
    };
    server.create("gitops.git");
    let dir = crate::git::folder();
    let told = dir.path().join("told");
    let helper = |password: &str| {
        format!(
            "!f() {{ cat >> {0}; echo \"== $1\" >> {0}; [ $1 = get ] && echo username=me && echo password={password}; }}; f",
            told.display()
        )
    };
    let with = |password: &str, path: &str| {
        let line = helper(password);
        let variables = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "credential.helper"),
            ("GIT_CONFIG_VALUE_0", line.as_str()),
            ("PATH", path),
        ];
        let _ = std::fs::remove_file(&told);
        let done = write(&open(&url(&server, "gitops.git"), &variables).unwrap(), "a");
        (done, std::fs::read_to_string(&told).unwrap())
    };
    let path = std::env::var("PATH").unwrap();
    let (failed, said) = with("wrong", &path);
    assert!(failed.unwrap_err().to_string().contains("a credential helper"));
    assert_eq!((said.matches("== get").count(), said.matches("== erase").count()), (1, 1), "{said}");
    let (done, said) = with("s3cret", &path);
    assert!(matches!(done, Ok(WriteOutcome::Pushed(_))), "{done:?}");
    assert_eq!((said.matches("== get").count(), said.matches("== store").count()), (1, 1), "{said}");
    // Without the git program the helper is asked all the same.
    let bare = dir.path().join("bin");
    std::fs::create_dir(&bare).unwrap();
    for name in ["sh", "cat"] {
        let real = std::env::split_paths(&path).map(|p| p.join(name)).find(|p| p.exists()).unwrap();
        std::os::unix::fs::symlink(real, bare.join(name)).unwrap();
    }
    let (done, _) = with("s3cret", bare.to_str().unwrap());
    assert_eq!(done.unwrap(), WriteOutcome::Unchanged);
}

#[test]
fn b29_one_authorization_header_and_a_token_of_ours_wins() {
    use base64::Engine as _;
    let Some(server) = gitserver::http(&Http { user: Some(("x-access-token", "s3cret")), ..Http::default() })
    else {
        return;
    };
    server.create("gitops.git");
    let basic = |password: &str| {
        format!("basic {}", base64::prelude::BASE64_STANDARD.encode(format!("x-access-token:{password}")))
    };
    let dir = crate::git::folder();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    git(&work, &["init", "-q", "-b", "main", "."]);
    let address = format!("http://127.0.0.1:{}/", server.port);
    git(&work, &["remote", "add", "origin", &format!("{address}gitops.git")]);
    let key = format!("http.{address}.extraheader");
    let leave =
        |password: &str| git(&work, &["config", &key, &format!("AUTHORIZATION: {}", basic(password))]);
    // (a) the header is all there is: by the checkout, and by the URL from within it.
    leave("s3cret");
    assert!(matches!(
        write(&open(&RepositoryTarget::Path(work.clone()), &[]).unwrap(), "a"),
        Ok(WriteOutcome::Pushed(_))
    ));
    let within = RepositoryOptions { working: Some(work.clone()), ..options(&[]) };
    let repository = Repository::open_target(&url(&server, "gitops.git"), within.clone()).unwrap();
    assert!(matches!(write(&repository, "b"), Ok(WriteOutcome::Pushed(_))));
    // (b) the header is of somebody else: ours is sent, and only ours.
    leave("other");
    let before = server.log().len();
    let variables = [("EXPEDITE_GIT_TOKEN", "s3cret\n")];
    let ours = RepositoryOptions { working: Some(work.clone()), ..options(&variables) };
    let repository = Repository::open_target(&url(&server, "gitops.git"), ours).unwrap();
    assert!(matches!(write(&repository, "c"), Ok(WriteOutcome::Pushed(_))));
    for line in &server.log()[before..] {
        assert!(line.ends_with(&format!("\"B{}\"", &basic("s3cret")[1..])), "{line}");
    }
    let refused = Repository::open_target(&url(&server, "gitops.git"), within)
        .unwrap()
        .read_snapshot("main")
        .unwrap_err();
    assert!(refused.cause.contains("extraheader"), "{refused}");
    assert!(!format!("{refused:?}").contains(&basic("other")[6..]));
    // (c) the header in a file that is included for this git directory only.
    git(&work, &["config", "--unset", &key]);
    let file = dir.path().join("credentials.config");
    git(
        &work,
        &["config", "--file", file.to_str().unwrap(), &key, &format!("AUTHORIZATION: {}", basic("s3cret"))],
    );
    let gitdir = work.join(".git").canonicalize().unwrap();
    git(&work, &["config", &format!("includeIf.gitdir:{}.path", gitdir.display()), file.to_str().unwrap()]);
    assert!(open(&RepositoryTarget::Path(work.clone()), &[]).unwrap().read_snapshot("main").is_ok());
}

#[test]
fn a_private_ca_is_trusted_where_it_is_named() {
    let Some(server) = gitserver::http(&Http { tls: true, ..Http::default() }) else { return };
    server.create("gitops.git");
    let target = RepositoryTarget::Url(format!("https://127.0.0.1:{}/gitops.git", server.port));
    let failed = open(&target, &[]).unwrap().read_snapshot("main").unwrap_err();
    assert!(failed.hints[0].contains("SSL_CERT_FILE"), "{failed:?}");
    let ca = server.etc.join("ca.pem");
    let ca = ca.to_str().unwrap();
    for name in ["SSL_CERT_FILE", "GIT_SSL_CAINFO"] {
        assert!(open(&target, &[(name, ca)]).unwrap().read_snapshot("main").is_ok(), "{name}");
    }
    let key = format!("http.https://127.0.0.1:{}.sslCAInfo", server.port);
    let set = [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", key.as_str()), ("GIT_CONFIG_VALUE_0", ca)];
    assert!(matches!(write(&open(&target, &set).unwrap(), "a"), Ok(WriteOutcome::Pushed(_))));
    assert_eq!(open(&target, &[("SSL_CERT_FILE", "/nowhere")]).unwrap_err().code, "http-setting");
}

/// A server that answers every request with `answer` and keeps their heads; `None`: with nothing at all.
fn canned(answer: Option<String>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heads);
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while reader.read_line(&mut head).is_ok_and(|n| n > 2) {}
            kept.lock().unwrap().push(head);
            match &answer {
                Some(answer) => {
                    let _ = stream.write_all(answer.as_bytes());
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                    let _ = reader.read_to_end(&mut Vec::new());
                }
                None => open.push(stream),
            }
        }
    });
    (address, heads)
}

fn answer(status: &str, more: &str) -> Option<String> {
    Some(format!("HTTP/1.1 {status}\r\n{more}content-length: 0\r\nconnection: close\r\n\r\n"))
}

#[test]
fn odd_answers_are_named_and_not_repeated() {
    let table = [
        (answer("403 Forbidden", ""), "http-status", "403"),
        (answer("404 Not Found", ""), "http-status", "404"),
        (answer("502 Bad Gateway", ""), "http-status", "502"),
        (answer("200 OK", "content-type: text/html\r\n"), "not-git", "text/html"),
        (answer("302 Found", "location: https://login.example/?next=/x\r\n"), "redirect", "login.example"),
        (
            answer("302 Found", "location: http://127.0.0.2:1/x/info/refs?service=git-upload-pack\r\n"),
            "redirect",
            "another host",
        ),
    ];
    for (answer, code, named) in table {
        let (address, heads) = canned(answer);
        let target = RepositoryTarget::Url(format!("http://me:s3cret@{address}/x"));
        let failed = open(&target, &[]).unwrap().read_snapshot("main").unwrap_err();
        assert_eq!(failed.code, code, "{failed}");
        assert!(failed.to_string().contains(named), "{failed}");
        assert!(!format!("{failed:?}").contains("s3cret"), "{failed:?}");
        let heads = heads.lock().unwrap();
        assert_eq!(heads.len(), 1, "{named}");
        assert_eq!(heads[0].to_lowercase().matches("\r\nauthorization:").count(), 1);
        assert!(heads[0].contains("user-agent: git/"), "{}", heads[0]);
    }
}

#[test]
fn a_silent_server_is_given_up() {
    let (address, _) = canned(None);
    let timeouts = Timeouts { connect: Duration::from_secs(1), silence: Duration::from_millis(300) };
    let options = RepositoryOptions { timeouts, ..options(&[]) };
    let repository =
        Repository::open_target(&RepositoryTarget::Url(format!("http://{address}/x")), options).unwrap();
    let start = Instant::now();
    let failed = repository.read_snapshot("main").unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(failed.code, "repository-unreachable");
    assert!(failed.cause.contains("no answer in time"), "{failed}");
}

#[test]
fn an_answer_that_does_not_come_is_asked_for_again() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    seed(&path, 1);
    let timeouts = Timeouts { silence: Duration::from_secs(1), ..Timeouts::default() };
    let impatient = || {
        Repository::open_target(&url(&server, "gitops.git"), RepositoryOptions { timeouts, ..options(&[]) })
            .unwrap()
    };
    // Taken, and then nothing is heard: the commit is there, and that is what counts.
    GitServer::hook(&path, "post-receive", "exec >/dev/null 2>&1; sleep 4");
    assert!(matches!(write(&impatient(), "one"), Ok(WriteOutcome::Pushed(_))));
    std::fs::remove_file(path.join("hooks/post-receive")).unwrap();
    // Not taken within the time: nobody knows yet.
    GitServer::hook(&path, "pre-receive", "sleep 4");
    let failed = write(&impatient(), "two").unwrap_err();
    assert!(failed.hints.iter().any(|h| h.contains("may still arrive")), "{failed:?}");
}

#[test]
fn a_proxy_is_used_where_one_is_named() {
    let (proxy, heads) = canned(answer("403 Forbidden", ""));
    let target = RepositoryTarget::Url("http://git.example.invalid/x".to_owned());
    let failed = open(&target, &[("http_proxy", &format!("http://{proxy}"))])
        .unwrap()
        .read_snapshot("main")
        .unwrap_err();
    assert_eq!(failed.code, "http-status", "{failed}");
    assert!(heads.lock().unwrap()[0].starts_with("GET http://git.example.invalid/x/info/refs"));
}

#[test]
fn redirects_on_the_same_host_are_followed_once_for_all() {
    let more = "location /old/ { return 301 /new$request_uri; } rewrite ^/new/old/(.*)$ /$1 last;";
    let Some(server) = gitserver::http(&Http { more, ..Http::default() }) else { return };
    server.create("gitops.git");
    let repository = open(&url(&server, "old/gitops.git"), &[]).unwrap();
    assert!(matches!(write(&repository, "a"), Ok(WriteOutcome::Pushed(_))));
}

#[test]
fn a_proxy_that_wants_credentials_is_named() {
    for (scheme, variable, first) in [
        ("http", "http_proxy", "GET http://git.example.invalid/x/info/refs"),
        ("https", "https_proxy", "CONNECT git.example.invalid:443"),
    ] {
        let (proxy, heads) =
            canned(answer("407 Proxy Authentication Required", "Proxy-Authenticate: Basic\r\n"));
        let target = RepositoryTarget::Url(format!("{scheme}://git.example.invalid/x"));
        let url = format!("http://me:s3cret@{proxy}");
        let failed = open(&target, &[(variable, &url)]).unwrap().read_snapshot("main").unwrap_err();
        let shown = format!("{failed} {:?}", failed.hints);
        assert!(shown.contains("proxy") && shown.contains(&proxy.to_string()), "{shown}");
        assert!(!format!("{failed:?}").contains("s3cret"), "{failed:?}");
        let heads = heads.lock().unwrap();
        assert!(heads[0].starts_with(first), "{heads:?}");
        assert!(heads.len() <= 2, "it is not asked again and again: {heads:?}");
    }
}

/// A server that asks for a user name first: the URL names one, and the password comes from elsewhere or from nowhere.
#[test]
fn b30_a_user_name_without_a_password() {
    let Some(server) = gitserver::http(&Http { user: Some(("me", "s3cret")), ..Http::default() }) else {
        return;
    };
    server.create("gitops.git");
    let target = RepositoryTarget::Url(format!("http://me@127.0.0.1:{}/gitops.git", server.port));
    let before = server.log().len();
    let failed = write(&open(&target, &[]).unwrap(), "a").unwrap_err();
    assert_eq!(failed.code, "unauthorized");
    assert_eq!(server.log().len() - before, 1, "{:?}", server.log());
    let token = [("EXPEDITE_GIT_TOKEN", "s3cret")];
    assert!(matches!(write(&open(&target, &token).unwrap(), "a"), Ok(WriteOutcome::Pushed(_))));
}
