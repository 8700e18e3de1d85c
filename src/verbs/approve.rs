//! `approve`: shows exactly what is voted on, has it signed by the voter's own key, and writes the vote's file.

use crate::error::{At, Failure, FailureKind};
use crate::model::approval::Ballot;
use crate::model::id::{Digest, PreparationName};
use crate::model::kitchen::{ApprovalTrust, KitchenSpec};
use crate::model::naming::API_VERSION;
use crate::model::world::Origin;
use crate::policy::decide::ballot::{self, BallotVoter};
use crate::policy::gates::{Context, ssh_vote};
use crate::policy::resolve;
use crate::report::{Output, escape};
use crate::run;
use crate::verbs::diff;
use crate::verbs::flags::Common;
use crate::verbs::setup;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::values::{OrderArg, parse_preparation_arg};
use child_process::{Bounds, ProgramFault, run_program};
use clap::Args;
use git_commits::Environment;
use kube_yaml::emit;
use serde_json::json;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Vote on a Preparation: show what it is, sign, write the vote's file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite approve shop/podinfo --sign-key ~/.ssh/id_ed25519
  expedite approve shop/podinfo podinfo-d7ce0c46a686 --reject --comment 'loses orders' --sign-key ~/.ssh/id_ed25519
  expedite approve shop/podinfo --sign-key ~/.ssh/id_ed25519.pub    an agent or a security key signs")]
pub struct Approve {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// The Preparation [default: what could be promoted, else the newest]
    #[arg(value_name = "PREPARATION", value_parser = parse_preparation_arg)]
    pub preparation: Option<PreparationName>,
    /// Vote against it: a veto
    #[arg(long)]
    pub reject: bool,
    /// Why, for people
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// SSH key that signs the vote: the private key, or the .pub file of one that an agent holds
    #[arg(long, value_name = "FILE", env = "EXPEDITE_SIGN_KEY", hide_env_values = true)]
    pub sign_key: Option<PathBuf>,
    /// Who votes, where votes are not signed: username or subject of a Kitchen approver
    #[arg(long = "as", value_name = "USER")]
    pub voter: Option<String>,
    /// File to write; - prints it [default: approvals/ in the folder that the Preparation came from]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Longest name of the vote's object, before its hash.
const NAME: usize = 200;

/// How long `ssh-keygen` may take: a person types a passphrase, or looks for the security key.
const PATIENCE: Duration = Duration::from_secs(300);

/// Most bytes of a signature that are read.
const SIGNATURE: usize = 64 << 10;

/// Judges, shows, signs, writes.
///
/// # Errors
/// It is refused, the key does not sign, or the file cannot be written.
pub fn run_approve(
    common: &Common,
    args: &Approve,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let setup = opened.make_setup(Access::Read, None);
    let read = run::read_inputs(&setup, &mut |text| output.show_progress(text)).map_err(wrap_failure)?;
    let cases = resolve::resolve_cases(&read.world, &read.gitops, &setup.argocd_namespace);
    let case = setup::find_case(&cases, &args.order, common).map_err(wrap_failure)?;
    let order = &case.order;
    let none = KitchenSpec::default();
    let kitchen = read.world.kitchen.as_ref().map_or(&none, |k| &k.object.spec);
    let context = Context::new(outside.clock, Some(kitchen));
    let voter = resolve_voter(args, kitchen.approval_trust).map_err(wrap_failure)?;
    let vote = ballot::judge_vote(case, args.preparation.as_ref(), &voter, &kitchen.approvers, &context)
        .map_err(wrap_failure)?;
    let decision = if args.reject { Ballot::Reject } else { Ballot::Approve };

    // Whole seconds, as Kubernetes stores them: what is signed is what is read back.
    let submitted = outside.clock.cut_to_second();
    let candidate = &vote.candidate;
    let mut shown = format!("{} {order}\n", ballot::format_ballot(decision));
    let mut line = |name: &str, text: String| {
        shown.push_str(&format!("  {name:<12} {}\n", escape::escape_line(&text)));
    };
    line("preparation", candidate.name.to_string());
    line("artifact", candidate.artifact.format_oci_ref());
    line("environment", case.place.as_ref().map_or("<none>".to_owned(), |p| p.name.to_string()));
    if let Some(message) = &candidate.commit_message {
        line("message", message.lines().next().unwrap_or("").to_owned());
    }
    let deployed = case.deployed.as_ref();
    line(
        "deployed",
        deployed.map_or("<none>".to_owned(), |d| format!("{} {}", d.preparation, d.artifact.digest)),
    );
    line(
        "voter",
        format!("{} ({} at {})", vote.approver.username, vote.approver.subject, vote.approver.issuer),
    );
    shown.lines().for_each(|line| output.write_note(line));
    let from = deployed.map(|d| (d.artifact.clone(), Some(d.target_namespace.clone())));
    match diff::format_difference(&setup, from, diff::make_place(candidate), false, false) {
        Ok(text) => text.lines().for_each(|line| output.write_note(line)),
        Err(failure) => output.report_warning(
            &failure.with_hint("what is inside cannot be shown; the digest above is what you vote on"),
        ),
    }

    let message = ssh_vote::build_vote_bytes(
        &order.namespace,
        &candidate.name,
        candidate.artifact.digest,
        decision,
        submitted,
    );
    let signature = match (&voter, &args.sign_key) {
        (BallotVoter::Key(key), Some(path)) => {
            let signature = sign_vote(path, &message, &opened.environment, PATIENCE).map_err(wrap_failure)?;
            ssh_vote::verify_signature(&signature, &message, std::slice::from_ref(&**key)).map_err(
                |why| {
                    wrap_failure(make_signing_failure(
                        path,
                        format!("what ssh-keygen signed does not verify: {why}"),
                    ))
                },
            )?;
            Some(signature)
        }
        (BallotVoter::Key(_) | BallotVoter::Name(_), _) => None,
    };
    let hash = Digest::hash_bytes(&[message.as_slice(), vote.approver.subject.as_bytes()].concat());
    let mut name = format!("{}-{}", candidate.name, ballot::format_ballot(decision).to_lowercase());
    name.truncate(NAME);
    let name = format!("{}-{}", name.trim_end_matches(['-', '.']), &hash.format_hex()[..8]);
    let mut spec = json!({
        "preparationRef": {"name": candidate.name, "artifactDigest": candidate.artifact.digest},
        "approver": {
            "issuer": vote.approver.issuer, "subject": vote.approver.subject, "username": vote.approver.username,
        },
        "decision": ballot::format_ballot(decision),
    });
    if let Some(uid) = &candidate.uid {
        spec["preparationRef"]["uid"] = json!(uid);
    }
    if matches!(kitchen.approval_trust, ApprovalTrust::Repository) {
        spec["approver"]["groups"] = json!(vote.approver.groups);
    }
    if let Some(comment) = &args.comment {
        spec["comment"] = json!(comment);
    }
    spec["submittedTime"] = json!(submitted);
    if let Some(signature) = signature {
        spec["signature"] = json!(signature);
    }
    let text = emit::format_document(&json!({
        "apiVersion": API_VERSION,
        "kind": "Approval",
        "metadata": {"name": name, "namespace": order.namespace},
        "spec": spec,
    }));
    let loaded = case.preparations.get(&candidate.name).map(|loaded| &loaded.origin);
    let file = format!("{}-{name}.yaml", order.namespace);
    write_vote(args, &opened, loaded, &file, &text, kitchen.approval_trust, output).map_err(wrap_failure)
}

/// Under `Signed` a key is needed; otherwise a name will do.
fn resolve_voter(args: &Approve, trust: ApprovalTrust) -> Result<BallotVoter, Failure> {
    match (&args.sign_key, &args.voter, trust) {
        (Some(path), _, _) => read_public_half(path).map(|key| BallotVoter::Key(Box::new(key))),
        (None, Some(name), ApprovalTrust::Cluster | ApprovalTrust::Repository) => {
            Ok(BallotVoter::Name(name.clone()))
        }
        (None, _, ApprovalTrust::Signed) => Err(Failure::new(
            FailureKind::Usage,
            "no-sign-key",
            "votes are signed here (approvalTrust: Signed), and no key was named",
        )
        .with_hint(
            "--sign-key ~/.ssh/id_ed25519; the .pub file where an agent or a security key has the other half",
        )),
        (None, None, ApprovalTrust::Cluster | ApprovalTrust::Repository) => {
            Err(Failure::new(FailureKind::Usage, "no-voter", "nothing says who votes")
                .with_hint("--as USERNAME, or --sign-key"))
        }
    }
}

fn make_signing_failure(path: &Path, cause: impl Into<String>) -> Failure {
    Failure::new_input("sign-key", cause)
        .with_object("the vote's key")
        .with_place(At::from_file(path.display().to_string()))
}

/// The public half: of a private key file it stands in clear, encrypted or not.
fn read_public_half(path: &Path) -> Result<ssh_key::PublicKey, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| make_signing_failure(path, format!("cannot read it: {e}")))?;
    if text.trim_start().starts_with("-----BEGIN ") {
        return ssh_key::PrivateKey::from_openssh(text.trim())
            .map(|key| key.public_key().clone())
            .map_err(|e| make_signing_failure(path, format!("it is no OpenSSH private key: {e}")));
    }
    ssh_vote::parse_key(&text).map_err(|why| make_signing_failure(path, why))
}

/// Lets OpenSSH sign: it knows agents, passphrases and security keys.
fn sign_vote(
    path: &Path,
    message: &[u8],
    environment: &Environment,
    time: Duration,
) -> Result<String, Failure> {
    let failed = |cause: String| {
        make_signing_failure(path, cause)
            .with_hint("it must sign with: ssh-keygen -Y sign -n approval.delivery.kokumi.dev")
    };
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-Y", "sign", "-n", ssh_vote::NAMESPACE, "-f"]).arg(path);
    command.env_clear().envs(environment.iter());
    // On a terminal its own words are for the voter: it asks for the touch of a security key there, and
    // only there.
    let asks = std::io::stderr().is_terminal();
    command.stderr(if asks { Stdio::inherit() } else { Stdio::piped() });
    let ended = run_program(command, message, Bounds { time, output: SIGNATURE }).map_err(|fault| {
        let failure = failed(format!("ssh-keygen: {fault}"));
        match fault {
            ProgramFault::Absent => failure.with_hint("OpenSSH signs votes: install its client"),
            ProgramFault::Start(_)
            | ProgramFault::Late(_)
            | ProgramFault::TooMuch(_)
            | ProgramFault::Lost(_) => failure,
        }
    })?;
    if !ended.status.success() {
        let words = if ended.words.is_empty() { ended.status.to_string() } else { ended.words };
        return Err(failed(format!("ssh-keygen does not sign: {words}")));
    }
    String::from_utf8(ended.output).map_err(|_| failed("ssh-keygen wrote no text".into()))
}

/// What comes next where only an API server vouches for votes.
const APPLY: &str = "kubectl apply -f it as the voter: only what the API server shows counts here";

/// Where the vote goes: `--output`, else `approvals/` beside the Preparation's source folder; never over a file.
fn write_vote(
    args: &Approve,
    opened: &Opened,
    origin: Option<&Origin>,
    name: &str,
    text: &str,
    trust: ApprovalTrust,
    output: &mut Output,
) -> Result<(), Failure> {
    let folder = origin.and_then(|origin| opened.find_folder(&origin.source));
    let path: PathBuf = match (&args.output, folder) {
        (Some(path), _) if path.as_os_str() == "-" => {
            output.write_result(text);
            return Ok(());
        }
        (Some(path), _) => path.clone(),
        (None, Some(folder)) => folder.join("approvals").join(name),
        (None, None) => {
            output.write_result(text);
            output.write_note(match trust {
                ApprovalTrust::Cluster => APPLY,
                ApprovalTrust::Signed | ApprovalTrust::Repository => "commit this where Approvals are read",
            });
            return Ok(());
        }
    };
    let failed = |cause: String| {
        Failure::new(FailureKind::Input, "vote-file", cause)
            .with_object("the vote")
            .with_place(At::from_file(path.display().to_string()))
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|e| failed(format!("making its folder: {e}")))?;
    }
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(|e| failed(format!("cannot be written: {e}")))?;
    file.write_all(text.as_bytes()).map_err(|e| failed(format!("cannot be written: {e}")))?;
    output.write_result(&format!("{}\n", escape::escape_line(&path.display().to_string())));
    output.write_note(match trust {
        ApprovalTrust::Cluster => APPLY,
        ApprovalTrust::Signed | ApprovalTrust::Repository => {
            "commit it, and propose it as any other change; the vote counts once it is read"
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// What `sign` says where `ssh-keygen` is this script.
    fn with(script: &str, time: Duration) -> String {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("ssh-keygen");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let environment = Environment::new([("PATH", path)]);
        sign_vote(Path::new("key"), b"vote", &environment, time).unwrap_err().cause
    }

    #[test]
    fn a_signer_that_hangs_fails_or_is_absent_is_an_error_that_says_so() {
        let soon = Duration::from_secs(20);
        let hangs = with("exec sleep 60", Duration::from_millis(200));
        assert_eq!(hangs, "ssh-keygen: it did not finish within 0.2 s");
        let fails = with("echo 'no key' >&2; exit 255", soon);
        assert!(fails.starts_with("ssh-keygen does not sign: "), "{fails}");
        assert!(with("exec head -c 100000 /dev/zero", soon).contains("more than"));
        let none = Environment::new([("PATH", "/nowhere")]);
        let absent = sign_vote(Path::new("key"), b"vote", &none, soon).unwrap_err();
        assert_eq!(absent.cause, "ssh-keygen: the program was not found");
    }
}
