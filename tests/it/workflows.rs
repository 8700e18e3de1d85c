//! What CI runs: every workflow that is committed here, the action, and every one that `init` writes. Read as their
//! own linters read them, held against rules of safety, and their scripts run as a runner would.

use crate::support::executable::executable;
use crate::support::harness::{Place, Said, package};
use crate::support::peers;
use crate::support::pulls::{HEAD, Pulls};
use expedite::forge::Forge;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;

const AT: &str = "2026-02-10T12:00:00Z";

/// A workflow or an action.
struct Written {
    name: String,
    text: String,
    yaml: Value,
}

impl Written {
    fn new(name: &str, text: String) -> Self {
        let yaml = serde_yaml::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        Self { name: name.to_owned(), text, yaml }
    }

    fn is_action(&self) -> bool {
        self.name == "action.yml"
    }

    /// Every step of every job.
    fn steps(&self) -> Vec<&Value> {
        if self.is_action() {
            return self.yaml["runs"]["steps"].as_array().unwrap().iter().collect();
        }
        let jobs = self.yaml["jobs"].as_object().unwrap().values();
        jobs.flat_map(|job| job["steps"].as_array().unwrap()).collect()
    }

    /// The script of the step with this name or id.
    #[track_caller]
    fn script(&self, name: &str) -> &str {
        let found = self.steps().into_iter().find(|step| step["name"] == name || step["id"] == name);
        found.unwrap_or_else(|| panic!("{}: no step {name}", self.name))["run"].as_str().unwrap()
    }
}

/// What `init` writes for this CI, for a branch and a registry with characters that YAML cares about.
fn init(ci: &str, branch: &str) -> Place {
    let place = Place::new();
    place.git(&["init", "-q", "gitops"]);
    let arguments = [
        "init",
        "--repo",
        "gitops",
        "--ci",
        ci,
        "--branch",
        branch,
        "--registry",
        "registry.shop.example:5000",
    ];
    place.expedite(&[&arguments[..], &["--url", "https://git.example/x.git"]].concat()).ok();
    place
}

fn of_github(branch: &str) -> Vec<Written> {
    let place = init("github", branch);
    ["expedite.yml", "expedite-preview.yml"]
        .map(|name| Written::new(name, place.read(&format!("gitops/.github/workflows/{name}"))))
        .into()
}

fn of_gitlab() -> Written {
    Written::new(".gitlab-ci.yml", init("gitlab", "main").read("gitops/.gitlab-ci.yml"))
}

/// All that GitHub reads.
fn all() -> Vec<Written> {
    let mut all = of_github("main");
    for entry in fs::read_dir(package().join(".github/workflows")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        all.push(Written::new(&name, fs::read_to_string(&path).unwrap()));
    }
    // Those that the documentation shows.
    for entry in walkdir::WalkDir::new(package().join("docs")) {
        let path = entry.unwrap().into_path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        if path.extension().is_some_and(|e| e == "yml" || e == "yaml") && text.contains("runs-on:") {
            let name = path.strip_prefix(package()).unwrap().to_str().unwrap().replace('/', "-");
            all.push(Written::new(&name, text));
        }
    }
    all.push(Written::new("action.yml", fs::read_to_string(package().join("action.yml")).unwrap()));
    assert!(all.len() >= 4);
    all
}

#[test]
fn actionlint_and_zizmor_find_nothing() {
    let place = Place::new();
    place.git(&["init", "-q"]);
    for written in all() {
        let folder = if written.is_action() { "" } else { ".github/workflows/" };
        place.write(&format!("{folder}{}", written.name), &written.text);
    }
    for (n, written) in of_github("a'b\"c").into_iter().enumerate() {
        place.write(&format!(".github/workflows/odd-{n}.yml"), written.text);
    }
    if let Some(actionlint) = peers::peer("actionlint") {
        let mut command = place.command(actionlint);
        command.arg("-no-color");
        let said = place.finish(command);
        assert_eq!((said.status, said.stdout.as_str()), (Some(0), ""), "{}", said.stderr);
        // It does find what is wrong.
        place.write(
            ".github/workflows/wrong.yml",
            "on: push\njobs: {a: {runs-on: x, steps: [{run: 'echo ${{ nothing.at.all }}'}]}}\n",
        );
        let said = place.finish(place.command(peers::find("actionlint").unwrap()));
        assert_eq!(said.status, Some(1), "{said:?}");
        fs::remove_file(place.path(".github/workflows/wrong.yml")).unwrap();
    }
    // Registries that CI may install from have no zizmor that this Rust builds: it is run where there is one.
    match peers::find("zizmor") {
        Some(zizmor) => {
            let mut command = place.command(zizmor);
            command.args(["--offline", "--no-progress", "--color=never", "."]);
            let said = place.finish(command);
            assert_eq!(said.status, Some(0), "{}", said.transcript("zizmor"));
        }
        None => {
            let _ = writeln!(
                std::io::stderr(),
                "LEFT OUT: zizmor is not installed; the rules below are checked all the same"
            );
        }
    }
}

#[test]
fn actions_are_pinned_by_commit_and_scripts_hold_no_expression() {
    for written in all() {
        for step in written.steps() {
            if let Some(uses) = step["uses"].as_str() {
                let (_, commit) = uses.split_once('@').unwrap_or_else(|| panic!("{}: {uses}", written.name));
                let pinned = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
                assert!(pinned, "{}: {uses} is not pinned by its commit", written.name);
                let line = written.text.lines().find(|line| line.contains(uses)).unwrap();
                assert!(line.contains(" # v"), "{}: {uses} does not say its version", written.name);
            }
            if let Some(run) = step["run"].as_str() {
                assert!(
                    !run.contains("${{"),
                    "{}: what is filled into a script can end it: {run}",
                    written.name
                );
            }
        }
    }
}

#[test]
fn a_workflow_has_no_more_rights_than_it_needs() {
    for written in all().into_iter().filter(|written| !written.is_action()) {
        let (name, yaml) = (&written.name, &written.yaml);
        assert!(yaml["on"].is_object() && yaml["on"]["pull_request_target"].is_null(), "{name}");
        assert_eq!(yaml["permissions"], serde_json::json!({}), "{name}: rights are given to jobs");
        assert!(yaml["concurrency"]["group"].is_string(), "{name}");
        for job in yaml["jobs"].as_object().unwrap().values() {
            assert!(job["permissions"].is_object() && job["timeout-minutes"].is_u64(), "{name}");
        }
    }
    let [run, preview] = of_github("main").try_into().unwrap_or_else(|_| panic!());
    assert_eq!(run.yaml["jobs"]["run"]["permissions"], serde_json::json!({"contents": "write"}));
    let rights = serde_json::json!({"contents": "read", "pull-requests": "write"});
    assert_eq!(preview.yaml["jobs"]["preview"]["permissions"], rights);
    // What a pull request brings comes last, and with no credentials in it.
    let place = |steps: &[Value], wanted: &str| {
        let at = steps
            .iter()
            .position(|s| s["name"] == wanted || s["uses"].as_str().is_some_and(|u| u.starts_with(wanted)));
        at.unwrap_or_else(|| panic!("{wanted}"))
    };
    let steps = preview.yaml["jobs"]["preview"]["steps"].as_array().unwrap();
    let checkout = place(steps, "actions/checkout");
    assert!(place(steps, "Install Expedite") < checkout);
    assert_eq!(steps[checkout]["with"]["persist-credentials"], false);
    assert_eq!(steps[checkout]["with"]["fetch-depth"], 0);
    // Nor does what is built find the key that writes to the GitOps repository.
    let documented = all().into_iter().find(|written| written.name == "docs-prepare-github.yml").unwrap();
    let steps = documented.yaml["jobs"]["prepare"]["steps"].as_array().unwrap();
    assert!(place(steps, "Install Expedite") < place(steps, "actions/checkout"));
    // One version of it everywhere.
    let used = all().into_iter().flat_map(|written| {
        let uses: Vec<String> =
            written.steps().iter().filter_map(|s| s["uses"].as_str().map(str::to_owned)).collect();
        uses
    });
    let checkouts: BTreeSet<String> = used.filter(|uses| uses.starts_with("actions/checkout@")).collect();
    assert_eq!(checkouts.len(), 1, "{checkouts:?}");
}

#[test]
fn init_takes_a_branch_of_any_name() {
    let odd = "release/a'b\"c";
    for written in of_github(odd) {
        assert!(!written.text.contains("{{ branch"), "{}", written.text);
        let on = &written.yaml["on"];
        let branches = ["push", "pull_request"].map(|event| &on[event]["branches"][0]);
        assert!(branches.iter().any(|branch| **branch == odd), "{on}");
    }
    let place = init("gitlab", odd);
    let written = Written::new(".gitlab-ci.yml", place.read("gitops/.gitlab-ci.yml"));
    assert_eq!(written.yaml["variables"]["EXPEDITE_BRANCH"], odd);
}

/// A pull request from a fork sees no variables of the repository: what it installs stands in the file.
#[test]
fn what_ci_installs_can_stand_in_its_files() {
    let (source, rev) = ("https://git.example/expedite.git", "0123456789abcdef0123456789abcdef01234567");
    for ci in ["github", "gitlab"] {
        let place = Place::new();
        place.git(&["init", "-q", "gitops"]);
        let arguments = ["init", "--repo", "gitops", "--ci", ci, "--url", "https://git.example/x.git"];
        place.expedite(&[&arguments[..], &["--source", source, "--rev", rev]].concat()).ok();
        place.expedite(&[&arguments[..], &["--source", source]].concat()).exits(64);
        if ci == "gitlab" {
            let written = Written::new(".gitlab-ci.yml", place.read("gitops/.gitlab-ci.yml"));
            assert_eq!(written.yaml["variables"]["EXPEDITE_SOURCE"], source);
            assert_eq!(written.yaml["variables"]["EXPEDITE_REV"], rev);
            continue;
        }
        for name in ["expedite.yml", "expedite-preview.yml"] {
            let written = Written::new(name, place.read(&format!("gitops/.github/workflows/{name}")));
            assert!(!written.text.contains("vars."), "{}", written.text);
            let steps = written.steps();
            let install = steps.iter().find(|step| step["name"] == "Install Expedite").unwrap();
            assert_eq!((&install["env"]["SOURCE"], &install["env"]["REV"]), (&source.into(), &rev.into()));
            assert!(
                steps.iter().any(|step| step["with"]["key"].as_str().is_some_and(|key| key.ends_with(rev)))
            );
        }
    }
}

#[test]
fn init_writes_one_file_for_gitlab_and_never_overwrites_it() {
    let place = Place::new();
    place.git(&["init", "-q", "gitops"]);
    place.write("gitops/.gitlab-ci.yml", "mine: {script: [make]}\n");
    let said =
        place.expedite(&["init", "--repo", "gitops", "--ci", "gitlab", "--url", "https://git.example/x.git"]);
    said.ok();
    assert!(said.stderr.contains("kept .gitlab-ci.yml: it is there already"), "{}", said.stderr);
    assert_eq!(place.read("gitops/.gitlab-ci.yml"), "mine: {script: [make]}\n");
    assert!(!place.path("gitops/.github").exists());
}

/// The fields that are relied on, by GitLab's reference of the keywords of `.gitlab-ci.yml`.
#[test]
fn gitlabs_file_says_when_and_one_at_a_time() {
    let written = of_gitlab();
    let keywords = [
        "extends",
        "image",
        "timeout",
        "variables",
        "before_script",
        "script",
        "rules",
        "interruptible",
        "resource_group",
        "artifacts",
    ];
    for (name, job) in written.yaml.as_object().unwrap().iter().filter(|(name, _)| *name != "variables") {
        for keyword in job.as_object().unwrap().keys() {
            assert!(keywords.contains(&keyword.as_str()), "{name}: {keyword}");
        }
        for script in ["before_script", "script"] {
            // A line with a colon in it is easily a mapping.
            let lines = job[script].as_array().map(Vec::as_slice).unwrap_or_default();
            assert!(lines.iter().all(Value::is_string), "{name}: {script}");
        }
    }
    let (preview, run) = (&written.yaml["expedite-preview"], &written.yaml["expedite-run"]);
    assert_eq!(preview["rules"][0]["if"], "$CI_PIPELINE_SOURCE == \"merge_request_event\"");
    assert!(run["rules"][0]["if"].as_str().unwrap().contains("$CI_COMMIT_BRANCH == $EXPEDITE_BRANCH"));
    assert_eq!(run["resource_group"], "expedite");
    assert!(preview["resource_group"].as_str().unwrap().contains("$CI_MERGE_REQUEST_IID"));
    assert_eq!(written.yaml[".expedite"]["variables"]["GIT_DEPTH"], "0");
    assert_eq!(preview["artifacts"]["paths"], serde_json::json!(["expedite-plan.md"]));
}

/// A checkout of the shop's objects and settings, with a change on a branch of its own, for which CI runs.
fn checkout(pulls: &Pulls) -> Place {
    let mut place = Place::with_shop();
    place.write(".gitignore", "home\nshop.git\nregistry\nkeys\nrunner\n*.json\n!objects/**/*.json\n");
    place.git(&["init", "-q"]);
    commit(&place, "main");
    place.git(&["init", "-q", "--bare", "upstream.git"]);
    place.git(&["remote", "add", "origin", place.path("upstream.git").to_str().unwrap()]);
    place.git(&["push", "-q", "-u", "origin", "main"]);
    place.git(&["switch", "-q", "-c", "change"]);
    place.edit("objects/orders/shop.yaml", "      requiredApprovals: 2\n", "      requiredApprovals: 1\n");
    commit(&place, "change");
    for (name, value) in pulls.variables(&place.path("event.json"), HEAD) {
        place.set(name, &value);
    }
    // As a runner has them.
    let binary = "runner/expedite/bin/expedite";
    let shim = format!("#!/bin/sh\nexec '{}' \"$@\" --at {AT}\n", env!("CARGO_BIN_EXE_expedite"));
    place.write(binary, shim);
    executable(&place.path(binary));
    place.set("RUNNER_TEMP", place.path("runner").to_str().unwrap());
    place.set("GITHUB_OUTPUT", place.path("runner/output").to_str().unwrap());
    let folders =
        format!("{}:{}", place.path("runner/expedite/bin").display(), std::env::var("PATH").unwrap());
    place.set("PATH", &folders);
    place
}

fn commit(place: &Place, message: &str) {
    place.git(&["add", "-A"]);
    place.git(&["commit", "-q", "-m", message]);
}

/// Runs a script as GitHub's runner does, with these variables.
fn bash(place: &Place, script: &str, variables: &[(&str, &str)]) -> Said {
    let mut command = place.command("bash");
    command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
    command.envs(variables.iter().copied());
    place.finish(command)
}

#[test]
fn the_preview_workflow_comments_and_the_merge_queue_holds_it_to_that() {
    let pulls = Pulls::start(Forge::Github);
    let place = checkout(&pulls);
    let workflow = &of_github("main")[1];
    let said = bash(&place, workflow.script("Preview"), &[("GITHUB_BASE_REF", "main")]);
    said.exits(0);
    let [comment] = pulls.ours().try_into().unwrap_or_else(|_| panic!("{said:?}"));
    assert!(comment.body.contains("1 must approve instead of 2"), "{}", comment.body);
    // In the queue there is no event of a pull request; the ref names it.
    place.write("event.json", "{\"merge_group\": {}}");
    let queue =
        [("BASE", "origin/main"), ("GITHUB_REF", "refs/heads/gh-readonly-queue/main/pr-3-0123456789")];
    let script = workflow.script("Still the plan of the comment");
    bash(&place, script, &queue).exits(0);
    // The comment is of another plan by then.
    let (page, _) = comment.body.rsplit_once("<!-- expedite:fingerprint ").unwrap();
    let other = "e1.AAAAAAAAAAAAAAAAAAAAAAAAAAA";
    pulls.rewrite(comment.id, &format!("{page}<!-- expedite:fingerprint {other} -->\n"));
    let said = bash(&place, script, &queue);
    assert_eq!(said.status, Some(5), "{said:?}");
}

#[test]
fn the_action_plans_comments_and_gives_the_fingerprint() {
    let pulls = Pulls::start(Forge::Github);
    let place = checkout(&pulls);
    let action = Written::new("action.yml", fs::read_to_string(package().join("action.yml")).unwrap());
    let script = action.script("expedite");
    fn inputs<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let mut all = vec![
            ("COMMAND", "plan"),
            ("BASE", ""),
            ("COMMENT", "true"),
            ("EXPECT", ""),
            ("ARGUMENTS", ""),
            ("QUEUE_BASE", ""),
            ("GITHUB_BASE_REF", "main"),
        ];
        all.extend_from_slice(more);
        all
    }
    let said = bash(&place, script, &inputs(&[]));
    said.exits(0);
    assert_eq!(pulls.ours().len(), 1, "{said:?}");
    assert!(said.stdout.contains("## Expedite"), "{said:?}");
    let output = place.read("runner/output");
    let fingerprint = output.trim().strip_prefix("fingerprint=").unwrap();
    assert!(fingerprint.starts_with("e1."), "{output}");
    // It is what --expect takes; arguments keep their spaces, and are no script.
    let evil = "$(touch evil); `touch evil`\n";
    let said = bash(&place, script, &inputs(&[("EXPECT", fingerprint)]));
    said.exits(0);
    let said = bash(&place, script, &inputs(&[("ARGUMENTS", evil)]));
    assert_eq!(said.status, Some(64), "{said:?}");
    assert!(!place.path("evil").exists());
    let said = bash(&place, script, &inputs(&[("COMMAND", "promote")]));
    said.exits(64);
    assert!(said.stdout.contains("::error::the input command is plan or run"), "{said:?}");
    // In a merge queue the base is a commit of the event: the plan is still that of the comment.
    let event = place.read("event.json");
    place.write("event.json", "{\"merge_group\": {}}");
    let base = place.git(&["rev-parse", "origin/main"]);
    let queue = [
        ("GITHUB_BASE_REF", ""),
        ("QUEUE_BASE", base.trim()),
        ("GITHUB_REF", "refs/heads/gh-readonly-queue/main/pr-3-0123456789"),
        ("EXPECT", "commented"),
    ];
    bash(&place, script, &inputs(&queue)).exits(0);
    let env = &action.steps().into_iter().find(|step| step["id"] == "expedite").unwrap()["env"];
    assert_eq!(env["QUEUE_BASE"], "${{ github.event.merge_group.base_sha }}");
    place.write("event.json", event);
    // The settings name a repository of their own: the checkout's is left alone.
    bash(&place, script, &inputs(&[("COMMAND", "run"), ("COMMENT", "false")])).exits(0);
    assert!(place.git(&["-C", "upstream.git", "for-each-ref"]).lines().count() == 1);
}

#[test]
fn gitlabs_preview_comments_and_keeps_the_page() {
    let pulls = Pulls::start(Forge::Gitlab);
    let place = checkout(&pulls);
    let written = of_gitlab();
    let lines = written.yaml["expedite-preview"]["script"].as_array().unwrap();
    let script: String = lines.iter().map(|line| format!("{}\n", line.as_str().unwrap())).collect();
    let said = bash(&place, &script, &[("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main")]);
    said.exits(0);
    let [comment] = pulls.ours().try_into().unwrap_or_else(|_| panic!("{said:?}"));
    assert!(comment.body.contains("1 must approve instead of 2"), "{}", comment.body);
    assert!(place.read("expedite-plan.md").contains("## Expedite"));
    let train =
        [("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"), ("CI_MERGE_REQUEST_EVENT_TYPE", "merge_train")];
    bash(&place, &script, &train).exits(0);
    pulls.rewrite(comment.id, "gone");
    let said = bash(&place, &script, &train);
    assert_eq!(said.status, Some(5), "{said:?}");
    assert!(pulls.comments().iter().all(|comment| comment.body == "gone"), "it makes none");
}

/// A checkout one commit deep of a bare repository, `upstream.git`, as `work`; the registry and the keys are beside it.
fn shallow() -> Place {
    let mut place = Place::with_shop();
    for (from, to) in [
        ("  url: ./shop.git", "  #"),
        ("./registry", "../registry"),
        ("keys/test-job.key", "../keys/test-job.key"),
    ] {
        place.edit("expedite.yaml", from, to);
    }
    place.edit("expedite.yaml", "  create: true\n", "");
    place.git(&["init", "-q", "mine"]);
    for part in ["objects", "expedite.yaml"] {
        fs::rename(place.path(part), place.path(&format!("mine/{part}"))).unwrap();
    }
    place.git(&["-C", "mine", "add", "-A"]);
    place.git(&["-C", "mine", "commit", "-q", "-m", "The shop"]);
    place.git(&["clone", "-q", "--bare", "mine", "upstream.git"]);
    place.git(&["clone", "-q", "upstream.git", "theirs"]);
    let url = format!("file://{}", place.path("upstream.git").display());
    place.git(&["clone", "-q", "--depth", "1", &url, "work"]);
    let shim = format!("#!/bin/sh\nexec '{}' \"$@\" --at {AT}\n", env!("CARGO_BIN_EXE_expedite"));
    place.write("runner/expedite", shim);
    executable(&place.path("runner/expedite"));
    let folders = format!("{}:{}", place.path("runner").display(), std::env::var("PATH").unwrap());
    place.set("PATH", &folders);
    place
}

/// Runs `script` in the checkout while somebody else pushes: first where there is much to promote, then where there
/// is nothing.
#[track_caller]
fn runs_while_others_push(place: &Place, script: &str, variables: &[(&str, &str)]) {
    for (note, promotes) in [("first", true), ("second", false)] {
        let before = place.git(&["-C", "upstream.git", "rev-list", "--count", "main"]);
        place.git(&["-C", "theirs", "pull", "-q", "--rebase"]);
        place.write(&format!("theirs/{note}"), note);
        place.git(&["-C", "theirs", "add", "-A"]);
        place.git(&["-C", "theirs", "commit", "-q", "-m", note]);
        place.git(&["-C", "theirs", "push", "-q"]);
        let mut command = place.command("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
        command.envs(variables.iter().copied()).current_dir(place.path("work"));
        let said = place.finish(command);
        said.exits(0);
        let tree = place.tree("upstream.git", "main");
        let has = |start: &str| tree.iter().any(|(path, _)| path.starts_with(start));
        assert!(has(note) && has("applications/shop/"), "{said:?}");
        let commits = |count: &str| count.trim().parse::<u32>().unwrap();
        let after = place.git(&["-C", "upstream.git", "rev-list", "--count", "main"]);
        assert_eq!(commits(&after) - commits(&before), 1 + u32::from(promotes), "{said:?}");
    }
}

#[test]
fn a_run_in_ci_pushes_by_itself_also_where_somebody_was_faster() {
    let [workflow, _] = of_github("main").try_into().unwrap_or_else(|_| panic!());
    let step = workflow.steps().into_iter().find(|step| step["name"] == "Run").unwrap();
    let given =
        step["env"].as_object().unwrap().iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap()));
    let given: Vec<_> = given.filter(|(_, value)| !value.contains("${{")).collect();
    runs_while_others_push(&shallow(), workflow.script("Run"), &given);

    let gitlab = of_gitlab();
    let lines = gitlab.yaml["expedite-run"]["script"].as_array().unwrap();
    let script: String = lines.iter().map(|line| format!("{}\n", line.as_str().unwrap())).collect();
    let place = shallow();
    // Its runner checks out a commit, and no branch.
    place.git(&["-C", "work", "checkout", "-q", "--detach"]);
    runs_while_others_push(&place, &script, &[]);
}

#[test]
fn gitlabs_job_logs_in_to_the_registry_with_what_it_is_given() {
    let place = Place::new();
    let written = of_gitlab();
    let script = written.yaml[".expedite"]["before_script"][1].as_str().unwrap();
    let given =
        [("EXPEDITE_REGISTRY", "r.example:5000"), ("REGISTRY_USER", "ann"), ("REGISTRY_PASSWORD", "p:%s w")];
    bash(&place, script, &given).exits(0);
    let config: Value = serde_json::from_str(&place.read("home/.docker/config.json")).unwrap();
    assert_eq!(config["auths"]["r.example:5000"]["auth"], "YW5uOnA6JXMgdw==");
    let bare = Place::new();
    bash(&bare, script, &given[..1]).exits(0);
    assert!(!bare.path("home/.docker").exists());
}
