//! Signed votes: the exact bytes a voter signs, and whether one of the voter's SSH keys signed them.
//!
//! The signature is OpenSSH's SSHSIG (`ssh-keygen -Y sign -n approval.delivery.kokumi.dev`), over the bytes
//! that [`build_vote_bytes()`] gives. It covers all that a vote says, so it survives squash, rebase and
//! shallow clones, and a vote file that was edited afterwards does not verify. Does not know policies.

use crate::model::approval::Ballot;
use crate::model::id::{Digest, Namespace, PreparationName};
use crate::model::time::Time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ssh_key::public::KeyData;
use ssh_key::{Algorithm, HashAlg, PublicKey, SshSig};

/// SSHSIG namespace of votes: a signature with another namespace does not count as a vote.
pub const NAMESPACE: &str = "approval.delivery.kokumi.dev";

const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";

/// Longest armored signature that is looked at, bytes. RSA 16384 needs about 6 KiB.
const LONGEST: usize = 16 * 1024;

/// The bytes that a voter signs: one JSON object, its members in this order, no white space, no final
/// newline, the time in UTC as this product prints it. For these members that is RFC 8785's canonical form.
///
/// ```
/// use expedite::policy::gates::ssh_vote::build_vote_bytes;
/// use expedite::model::{approval::Ballot, id::{Digest, Namespace, PreparationName}, time::Time};
/// let signed = build_vote_bytes(
///     &Namespace::parse("shop").unwrap(),
///     &PreparationName::parse("podinfo-1").unwrap(),
///     Digest::hash_bytes(b"{}"),
///     Ballot::Approve,
///     Time::parse("2026-01-02T10:00:00+01:00").unwrap(),
/// );
/// assert_eq!(
///     String::from_utf8(signed).unwrap(),
///     r#"{"decision":"Approve","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","namespace":"shop","preparation":"podinfo-1","submittedTime":"2026-01-02T09:00:00Z"}"#
/// );
/// ```
#[must_use]
pub fn build_vote_bytes(
    namespace: &Namespace,
    preparation: &PreparationName,
    digest: Digest,
    decision: Ballot,
    submitted: Time,
) -> Vec<u8> {
    let decision = match decision {
        Ballot::Approve => "Approve",
        Ballot::Reject => "Reject",
    };
    // Names, digests and instants hold no character that JSON escapes.
    format!(
        r#"{{"decision":"{decision}","digest":"{digest}","namespace":"{namespace}","preparation":"{preparation}","submittedTime":"{submitted}"}}"#
    )
    .into_bytes()
}

/// Reads one line of `sshKeys`: `ssh-ed25519 AAAA… comment`.
///
/// # Errors
/// It is not an OpenSSH public key, or it is too weak (DSA, RSA below 2048 bits), or it is a certificate.
pub fn parse_key(line: &str) -> Result<PublicKey, String> {
    let key = PublicKey::from_openssh(line.trim())
        .map_err(|e| format!("it is not an OpenSSH public key (expected ssh-ed25519 AAAA…): {e}"))?;
    match key.key_data() {
        KeyData::Rsa(rsa) => {
            let bits = rsa
                .n
                .as_positive_bytes()
                .map_or(0, |n| n.len() * 8 - n.first().map_or(0, |b| b.leading_zeros() as usize));
            if bits < 2048 {
                return Err(format!("an RSA key of {bits} bits is too weak; use 2048 or more"));
            }
            Ok(key)
        }
        KeyData::Ecdsa(_) | KeyData::Ed25519(_) | KeyData::SkEcdsaSha2NistP256(_) | KeyData::SkEd25519(_) => {
            Ok(key)
        }
        _ => Err(format!("keys of type {} are not accepted; use ed25519, ECDSA or RSA", key.algorithm())),
    }
}

/// Checks that `signature` (armored SSHSIG) is over `message` by one of `keys`, and gives that key's
/// fingerprint (`SHA256:…`). A security key (`sk-…`) must have been touched, as by OpenSSH's default.
///
/// # Errors
/// Why it does not count.
pub fn verify_signature(signature: &str, message: &[u8], keys: &[PublicKey]) -> Result<String, String> {
    let signature = parse_armor(signature)?;
    if signature.namespace() != NAMESPACE {
        return Err(format!("it was made for {:?}, not for {NAMESPACE}", signature.namespace()));
    }
    if !signature.reserved().is_empty() {
        return Err("its reserved field is in use".into());
    }
    let signer = PublicKey::from(signature.public_key().clone());
    let Some(key) = keys.iter().find(|key| key.key_data() == signature.public_key()) else {
        return Err(format!("{} is not a key of that approver", signer.fingerprint(HashAlg::Sha256)));
    };
    if matches!(signature.algorithm(), Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256) {
        // The last five bytes are the flags and the counter (OpenSSH PROTOCOL.u2f); bit 0: the key was
        // touched.
        let flags = signature.signature_bytes().iter().rev().nth(4).copied().unwrap_or(0);
        if flags & 1 == 0 {
            return Err("the security key was not touched".into());
        }
    }
    key.verify(NAMESPACE, message, &signature).map_err(|_| {
        "it does not sign this namespace, Preparation, digest, decision and submittedTime".to_owned()
    })?;
    Ok(key.fingerprint(HashAlg::Sha256).to_string())
}

/// Reads the armor with lines of any width: the crate accepts only OpenSSH's 70, but other programs use other
/// widths.
fn parse_armor(text: &str) -> Result<SshSig, String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    let body = text
        .trim()
        .strip_prefix(BEGIN)
        .and_then(|t| t.strip_suffix(END))
        .ok_or_else(|| format!("it is not armored by {BEGIN}"))?;
    let compact: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    let blob = STANDARD.decode(compact).map_err(|e| format!("its base64 is damaged: {e}"))?;
    let armored: Vec<String> = STANDARD
        .encode(blob)
        .as_bytes()
        .chunks(70)
        .map(|l| String::from_utf8_lossy(l).into_owned())
        .collect();
    SshSig::from_pem(format!("{BEGIN}\n{}\n{END}\n", armored.join("\n")))
        .map_err(|e| format!("it is not an SSHSIG signature: {e}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use ed25519_dalek::Signer as _;
    use sha2::Digest as _;
    use ssh_key::private::{Ed25519Keypair, KeypairData};
    use ssh_key::public::{Ed25519PublicKey, SkEd25519};
    use ssh_key::{LineEnding, PrivateKey, Signature};

    fn key(seed: u8) -> PrivateKey {
        PrivateKey::new(KeypairData::Ed25519(Ed25519Keypair::from_seed(&[seed; 32])), "ann").unwrap()
    }
    fn message(decision: Ballot) -> Vec<u8> {
        build_vote_bytes(
            &Namespace::parse("shop").unwrap(),
            &PreparationName::parse("podinfo-1").unwrap(),
            crate::model::id::Digest::hash_bytes(b"one"),
            decision,
            Time::parse("2026-01-02T10:00:00.5Z").unwrap(),
        )
    }
    fn signed(key: &PrivateKey, namespace: &str, message: &[u8]) -> String {
        key.sign(namespace, HashAlg::Sha512, message).unwrap().to_pem(LineEnding::LF).unwrap()
    }

    #[test]
    fn a_vote_is_by_one_of_the_keys_and_names_which() {
        let keys = [key(1).public_key().clone(), key(2).public_key().clone()];
        let vote = signed(&key(2), NAMESPACE, &message(Ballot::Approve));
        let by = verify_signature(&vote, &message(Ballot::Approve), &keys).unwrap();
        assert_eq!(by, keys[1].fingerprint(HashAlg::Sha256).to_string());
    }

    #[test]
    fn the_armor_may_have_lines_of_any_width() {
        let keys = [key(1).public_key().clone()];
        let vote = signed(&key(1), NAMESPACE, &message(Ballot::Approve));
        let body: String = vote.lines().filter(|l| !l.starts_with('-')).collect();
        for width in [8, 64, 76, 10_000] {
            let lines: Vec<String> =
                body.as_bytes().chunks(width).map(|c| String::from_utf8(c.to_vec()).unwrap()).collect();
            let text = format!(
                "\n-----BEGIN SSH SIGNATURE-----\r\n{}\r\n-----END SSH SIGNATURE-----\n\n",
                lines.join("\r\n")
            );
            verify_signature(&text, &message(Ballot::Approve), &keys).unwrap();
        }
    }

    #[test]
    fn what_is_no_vote_of_that_approver_says_why() {
        let keys = [key(1).public_key().clone()];
        let approve = message(Ballot::Approve);
        let good = signed(&key(1), NAMESPACE, &approve);
        let why = |signature: &str, message: &[u8]| verify_signature(signature, message, &keys).unwrap_err();
        assert!(why(&good, &message(Ballot::Reject)).contains("does not sign this"), "a flipped vote");
        assert!(why(&signed(&key(3), NAMESPACE, &approve), &approve).contains("not a key of that approver"));
        assert!(why(&signed(&key(1), "git", &approve), &approve).contains("made for \"git\""));
        assert!(why("", &approve).contains("not armored"));
        assert!(why(&good.replacen("U1NIU0lH", "U1NIU0lX", 1), &approve).contains("not an SSHSIG"));
        let mut letters: Vec<char> = good.chars().collect();
        let last = letters.len() - 40;
        letters[last] = if letters[last] == 'A' { 'B' } else { 'A' };
        assert!(!why(&letters.into_iter().collect::<String>(), &approve).is_empty(), "a damaged one");
        let longer = format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----", {
            let body: String = good.lines().filter(|l| !l.starts_with('-')).collect();
            STANDARD.encode([STANDARD.decode(body).unwrap(), vec![0]].concat())
        });
        assert!(why(&longer, &approve).contains("not an SSHSIG"), "something follows");
        assert!(why(&"A".repeat(LONGEST + 1), &approve).contains("longer than"));
        assert!(verify_signature(&good, &approve, &[]).unwrap_err().contains("not a key of that approver"));
    }

    #[test]
    fn a_security_key_counts_when_it_was_touched() {
        let secret = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
        let public = Ed25519PublicKey(*secret.verifying_key().as_bytes());
        let key = PublicKey::from(KeyData::SkEd25519(SkEd25519::new(public, "ssh:")));
        let approve = message(Ballot::Approve);
        let vote = |flags: u8| {
            let inner = SshSig::signed_data(NAMESPACE, HashAlg::Sha512, &approve).unwrap();
            let trailer = [flags, 0, 0, 0, 9];
            let over =
                [&sha2::Sha256::digest(b"ssh:")[..], &trailer, &sha2::Sha256::digest(&inner)[..]].concat();
            let raw = [&secret.sign(&over).to_bytes()[..], &trailer].concat();
            let signature = Signature::new(Algorithm::SkEd25519, raw).unwrap();
            SshSig::new(key.key_data().clone(), NAMESPACE, HashAlg::Sha512, signature)
                .unwrap()
                .to_pem(LineEnding::LF)
                .unwrap()
        };
        verify_signature(&vote(1), &approve, std::slice::from_ref(&key)).unwrap();
        let why = verify_signature(&vote(0), &approve, std::slice::from_ref(&key)).unwrap_err();
        assert_eq!(why, "the security key was not touched");
    }

    #[test]
    fn keys_that_are_none_or_too_weak_are_refused() {
        assert!(parse_key("ssh-ed25519 AAAA ann").is_err());
        assert!(parse_key("").is_err());
        assert!(parse_key("-----BEGIN PUBLIC KEY-----").is_err());
        let line = key(1).public_key().to_openssh().unwrap();
        assert!(parse_key(&format!("{line}\n")).is_ok());
        assert!(parse_key(&format!("cert-authority {line}")).is_err());
    }
}
