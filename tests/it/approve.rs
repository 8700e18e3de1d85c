//! `approve`, `open`, `explain` and `diff` through the real binary, with the real `ssh-keygen`.

use crate::support::harness::Place;
use crate::support::{harness, peers};
use std::fs;
use std::path::Path;
use std::process::Command;

const BASKET: &str = "basket-b49b09790c53";

/// A key pair made by ssh-keygen; its public line.
fn key(place: &Place, ssh_keygen: &Path, name: &str, kind: &str) -> String {
    let path = place.path(name);
    let made = Command::new(ssh_keygen)
        .args(["-q", "-N", "", "-C", name, "-t", kind, "-f"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::read_to_string(path.with_extension("pub")).unwrap().trim().to_owned()
}

/// The shop, where the basket needs one approval of the platform team: Ann is of it, Eve is not.
fn shop(place: &Place, ssh_keygen: &Path) {
    let (ann, eve) = (key(place, ssh_keygen, "ann", "ed25519"), key(place, ssh_keygen, "eve", "ecdsa"));
    let job = fs::read_to_string(harness::shop().join("keys/test-renderer.pub")).unwrap();
    let job: String = job.lines().map(|l| format!("        {l}\n")).collect();
    place.write(
        "objects/kitchen.yaml",
        format!(
            "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Kitchen\nmetadata:\n  name: default\nspec:\n  trust:\n    keys:\n    - name: renderer\n      roles: [signature, provenance, approvals, records]\n      publicKey: |\n{job}  approvers:\n  - {{issuer: \"https://idp.example\", subject: \"1\", username: ann, groups: [platform], sshKeys: [\"{ann}\"]}}\n  - {{issuer: \"https://idp.example\", subject: \"2\", username: eve, groups: [interns], sshKeys: [\"{eve}\"]}}\n",
        ),
    );
    let orders = place.read("objects/orders/shop.yaml");
    let (before, after) = orders.split_once("  name: basket\n").unwrap();
    let after = after.replacen(
        "    mode: Manual\n",
        "    mode: Manual\n    approvals: {requiredApprovals: 1, allowedGroups: [platform]}\n",
        1,
    );
    place.write("objects/orders/shop.yaml", format!("{before}  name: basket\n{after}"));
}

fn votes(place: &Place) -> Vec<String> {
    let folder = place.path("objects/approvals");
    if !folder.exists() {
        return Vec::new();
    }
    let mut all: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    all.sort();
    all
}

#[test]
fn a_signed_vote_lets_a_promotion_through() {
    let Some(ssh_keygen) = peers::peer("ssh-keygen") else { return };
    let mut place = Place::with_shop();
    place.set("COSIGN_PASSWORD", "test");
    shop(&place, &ssh_keygen);
    let signing = harness::shop().join("keys/test-renderer.key");
    let signing = signing.to_str().unwrap();
    let run = |more: &[&str]| {
        let mut arguments = vec!["run", "-n", "shop", "--only", "shop/basket", "--key", signing];
        arguments.extend(more);
        place.expedite(&arguments)
    };
    place.expedite(&["promote", "shop/basket", BASKET]).ok();
    run(&[]).ok();

    let open =
        |viewer: &str| place.expedite(&["open", "--as", viewer, "--only", "shop/basket"]).ok().to_owned();
    assert!(open("ann").contains("Review"), "{}", open("ann"));
    assert!(open("eve").contains("waits for 0 of 1 approvals from platform"), "{}", open("eve"));
    let explained = place.expedite(&["explain", "shop/basket"]);
    assert!(explained.ok().contains("promotes     once Approvals passes"), "{}", explained.stdout);

    let refused = place.expedite(&["approve", "shop/basket", "--sign-key", "eve"]);
    refused.exits(5);
    assert!(
        refused.stderr.contains("eve is in none of the groups platform; found: interns"),
        "{}",
        refused.stderr
    );
    let refused = place.expedite(&["approve", "shop/basket"]);
    refused.exits(64);
    assert!(refused.stderr.contains("--sign-key"), "{}", refused.stderr);
    assert_eq!(votes(&place), Vec::<String>::new());

    let voted = place.expedite(&["approve", "shop/basket", "--sign-key", "ann", "--comment", "looks right"]);
    assert!(voted.ok().starts_with("./objects/approvals/shop-basket-"), "{}", voted.stdout);
    assert!(voted.stderr.contains(&format!("\n  preparation  {BASKET}\n")), "{}", voted.stderr);
    assert!(voted.stderr.contains("\nDeployment"), "what is inside is shown, line by line: {}", voted.stderr);
    let written = votes(&place);
    assert_eq!(written.len(), 1);
    assert!(written[0].contains("-----BEGIN SSH SIGNATURE-----") && written[0].contains("looks right"));

    let explained = place.expedite(&["explain", "shop/basket"]);
    assert!(explained.ok().contains("ann approves at"), "{}", explained.stdout);
    assert!(open("ann").contains("No open promotions."), "{}", open("ann"));
    let ran = run(&[]);
    assert!(ran.ok().contains(&format!("promotes {BASKET}")), "{}\n{}", ran.stdout, ran.stderr);
    assert!(run(&[]).ok().contains("unchanged"), "nothing is left to do");
    let history = place.expedite(&["get", "servings", "-n", "shop", "basket"]);
    assert!(history.ok().contains("Approved"), "{}", history.stdout);
}

#[test]
fn a_vote_that_was_edited_after_it_was_signed_counts_for_nothing() {
    let Some(ssh_keygen) = peers::peer("ssh-keygen") else { return };
    let place = Place::with_shop();
    shop(&place, &ssh_keygen);
    place.expedite(&["promote", "shop/basket", BASKET]).ok();
    place.expedite(&["approve", "shop/basket", "--reject", "--sign-key", "ann"]).ok();
    let rejected = place.expedite(&["explain", "shop/basket"]);
    assert!(rejected.ok().contains("ann rejects it"), "{}", rejected.stdout);
    let folder = place.path("objects/approvals");
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("decision: Reject", "decision: Approve")).unwrap();
    let flipped = place.expedite(&["explain", "shop/basket"]);
    assert!(flipped.ok().contains("SignatureInvalid"), "{}", flipped.stdout);
    assert!(flipped.ok().contains("0 of 1 approvals"), "{}", flipped.stdout);
}

#[test]
fn a_key_that_nobody_knows_is_refused_and_a_vote_can_be_printed() {
    let Some(ssh_keygen) = peers::peer("ssh-keygen") else { return };
    let place = Place::with_shop();
    shop(&place, &ssh_keygen);
    key(&place, &ssh_keygen, "stranger", "ed25519");
    let refused = place.expedite(&["approve", "shop/basket", "--sign-key", "stranger"]);
    refused.exits(5);
    assert!(refused.stderr.contains("does not belong to an approver of the Kitchen"), "{}", refused.stderr);
    let printed = place.expedite(&["approve", "shop/basket", "--sign-key", "ann", "-o", "-"]);
    assert!(printed.ok().contains("kind: Approval\n"), "{}", printed.stdout);
    assert_eq!(votes(&place), Vec::<String>::new());
}

#[test]
fn a_diff_shows_what_changes_inside() {
    let place = Place::with_shop();
    let all = place.expedite(&["get", "preparations", "-n", "shop", "-o", "json"]);
    assert!(all.ok().contains(BASKET));
    let said = place.expedite(&["diff", "shop/basket", BASKET, "basket-45e73b29b58b"]);
    assert!(said.ok().contains("changed"), "{}", said.stdout);
    let same = place.expedite(&["diff", "shop/basket", BASKET, BASKET]);
    assert_eq!(same.ok(), "No resource changes.\n");
    place.expedite(&["diff", "shop/basket", "basket-000000000000"]).exits(5);
}

/// The private half is in an agent alone: `--sign-key` names the public file.
#[test]
fn a_key_that_only_an_agent_has_signs_a_vote() {
    let (Some(ssh_keygen), Some(ssh_agent), Some(ssh_add)) =
        (peers::peer("ssh-keygen"), peers::peer("ssh-agent"), peers::peer("ssh-add"))
    else {
        return;
    };
    let mut place = Place::with_shop();
    shop(&place, &ssh_keygen);
    let socket = place.path("agent");
    place.set("SSH_AUTH_SOCK", socket.to_str().unwrap());
    let none = place.expedite(&["approve", "shop/basket", "--sign-key", "ann.pub", "-o", "-"]);
    assert!(none.ok().contains("SSH SIGNATURE"), "beside it lies the private key: {}", none.stderr);
    let mut agent = place.command(ssh_agent);
    let quiet = std::process::Stdio::null;
    let mut agent = agent.arg("-D").arg("-a").arg(&socket).stdout(quiet()).stderr(quiet()).spawn().unwrap();
    for _ in 0..200 {
        if socket.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let added = place.command(ssh_add).arg("-q").arg(place.path("ann")).output().unwrap();
    fs::remove_file(place.path("ann")).unwrap();
    let voted = place.expedite(&["approve", "shop/basket", "--sign-key", "ann.pub"]);
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    voted.ok();
    assert_eq!(votes(&place).len(), 1);
    let explained = place.expedite(&["explain", "shop/basket"]);
    assert!(
        explained.ok().contains("expedite promote shop/basket"),
        "nobody asked yet: {}",
        explained.stdout
    );
    let alone = place.expedite(&["approve", "shop/basket", "--reject", "--sign-key", "ann.pub"]);
    assert_ne!(alone.status, Some(0), "the agent is gone");
    assert!(alone.stderr.contains("ssh-keygen does not sign"), "{}", alone.stderr);
    assert_eq!(votes(&place).len(), 1);
}
