//! The keys that the Kitchen trusts: read and checked before any registry is asked.
//!
//! The trusted key decides the algorithm of a signature, never the registry. The sigstore crate parses and verifies;
//! this module refuses what that crate accepts: RSA below 2048 bits, PEM blocks after the first, compressed points,
//! Ed25519 points of small order.

use crate::model::evidence::KeyState;
use crate::model::id::Digest;
use crate::model::kitchen::{KitchenSpec, ProvenanceRules, Role};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p256::ecdsa::signature::hazmat::PrehashVerifier as _;
use p256::pkcs8::der::{Decode as _, Encode as _};
use p256::pkcs8::{DecodePublicKey as _, EncodePublicKey as _, ObjectIdentifier, SubjectPublicKeyInfoRef};
use rsa::pkcs1::DecodeRsaPublicKey as _;
use rsa::traits::PublicKeyParts as _;
use sha2::{Digest as _, Sha256, Sha512};
use sigstore::crypto::{CosignVerificationKey, Signature};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Smallest RSA modulus, bits.
pub const RSA_BITS: u32 = 2048;

const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// base64 SHA-256 of a SubjectPublicKeyInfo in DER: cosign's key hint in a bundle.
#[must_use]
pub fn compute_fingerprint(spki: &[u8]) -> String {
    STANDARD.encode(Sha256::digest(spki))
}

/// One public key that can verify.
#[derive(Clone)]
pub struct PublicKey {
    spki: Vec<u8>,
    fingerprint: String,
    first: CosignVerificationKey,
    second: Second,
}

/// A second algorithm to try after the key's usual one, because some tools sign with it.
#[derive(Clone)]
enum Second {
    /// Nothing.
    None,
    /// SHA-256 with P-384 (cosign's default verification expects it).
    P384(p384::ecdsa::VerifyingKey),
    /// SHA-256 with P-521 (cosign's default verification expects it).
    P521(p521::ecdsa::VerifyingKey),
    /// Ed25519ph with an empty context (what cosign signs with).
    Ed25519ph(ed25519_dalek::VerifyingKey),
}

impl PublicKey {
    /// Reads a DER SubjectPublicKeyInfo: ECDSA P-256, P-384, P-521, RSA of 2048 to 8192 bits, or Ed25519.
    ///
    /// # Errors
    /// Says what was found instead, or why it is too weak.
    pub fn from_spki(der: &[u8]) -> Result<Self, String> {
        let spki = SubjectPublicKeyInfoRef::from_der(der).map_err(|e| format!("it does not parse: {e}"))?;
        if spki.to_der().ok().as_deref() != Some(der) {
            return Err("it is not in DER".into());
        }
        let weak = |e: &dyn fmt::Display| format!("it does not parse: {e}");
        let second = match spki.algorithm.oid {
            EC => {
                let curve = spki.algorithm.parameters_oid().map_err(|e| weak(&e))?;
                if spki.subject_public_key.raw_bytes().first() != Some(&4) {
                    return Err(
                        "its point is compressed, which cosign does not support: write it uncompressed"
                            .into(),
                    );
                }
                match curve {
                    P256 => {
                        p256::ecdsa::VerifyingKey::from_public_key_der(der).map_err(|e| weak(&e))?;
                        Second::None
                    }
                    P384 => Second::P384(
                        p384::ecdsa::VerifyingKey::from_public_key_der(der).map_err(|e| weak(&e))?,
                    ),
                    P521 => Second::P521(
                        p521::ecdsa::VerifyingKey::from_public_key_der(der).map_err(|e| weak(&e))?,
                    ),
                    other => return Err(format!("its curve {other} is not one of P-256, P-384 and P-521")),
                }
            }
            RSA => {
                let key = rsa::PublicKey::from_public_key_der(der).map_err(|e| weak(&e))?;
                let bits = key.n().bit_width();
                if bits < RSA_BITS {
                    return Err(format!("it is RSA with {bits} bits; at least {RSA_BITS} are required"));
                }
                Second::None
            }
            ED25519 => {
                let key = ed25519_dalek::VerifyingKey::from_public_key_der(der).map_err(|e| weak(&e))?;
                if key.is_weak() {
                    return Err(
                        "it is an Ed25519 point of small order, for which anyone can make signatures".into(),
                    );
                }
                Second::Ed25519ph(key)
            }
            other => return Err(format!("its algorithm {other} is not one of ECDSA, RSA and Ed25519")),
        };
        let first = CosignVerificationKey::try_from_der(der).map_err(|e| weak(&e))?;
        Ok(Self { fingerprint: compute_fingerprint(der), spki: der.to_vec(), first, second })
    }

    /// Reads every block of a PEM text; any text is allowed between blocks.
    ///
    /// # Errors
    /// Says which block is not a public key, and why. No part of a private key appears in the message.
    pub fn from_pem(text: &str) -> Result<Vec<Self>, String> {
        let blocks = parse_pem_blocks(text)?;
        if blocks.is_empty() {
            return Err("there is no PUBLIC KEY block in it".into());
        }
        let mut keys = Vec::new();
        for (n, (label, der)) in blocks.iter().enumerate() {
            let wrong = |why: String| match blocks.len() {
                1 => why,
                count => format!("block {} of {count}: {why}", n + 1),
            };
            let spki = match label.as_str() {
                "PUBLIC KEY" => der.clone(),
                "RSA PUBLIC KEY" => rsa::PublicKey::from_pkcs1_der(der)
                    .map_err(|e| e.to_string())
                    .and_then(|key| key.to_public_key_der().map_err(|e| e.to_string()))
                    .map_err(|e| wrong(format!("it does not parse: {e}")))?
                    .into_vec(),
                private if private.contains("PRIVATE") => {
                    return Err(wrong(format!(
                        "{label} is a private key: remove it from there and create a new key"
                    )));
                }
                _ => return Err(wrong(format!("{label} is not a public key"))),
            };
            keys.push(Self::from_spki(&spki).map_err(wrong)?);
        }
        Ok(keys)
    }

    /// As in a bundle's hint.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The SubjectPublicKeyInfo, DER.
    #[must_use]
    pub fn spki(&self) -> &[u8] {
        &self.spki
    }

    /// Whether `signature` (raw bytes; DER for ECDSA) is by this key over `message`: first with the key's usual hash, then
    /// with the second one that other tools use.
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        if self.first.verify_signature(Signature::Raw(signature), message).is_ok() {
            return true;
        }
        match &self.second {
            Second::None => false,
            Second::P384(key) => p384::ecdsa::DerSignature::from_bytes(signature)
                .is_ok_and(|s| key.verify_prehash(&Sha256::digest(message), &s).is_ok()),
            Second::P521(key) => {
                // The crate requires at least half a field element; leading zeros do not change the number.
                let mut wide = [0; 66];
                wide[34..].copy_from_slice(&Sha256::digest(message));
                p521::ecdsa::DerSignature::from_bytes(signature)
                    .is_ok_and(|s| key.verify_prehash(&wide, &s).is_ok())
            }
            Second::Ed25519ph(key) => ed25519_dalek::Signature::from_slice(signature).is_ok_and(|s| {
                key.verify_prehashed_strict(Sha512::new().chain_update(message), None, &s).is_ok()
            }),
        }
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint)
    }
}

/// Label and bytes of every PEM block. A line with dashes that is not a valid begin or end is an error, so that a
/// typing error cannot hide a block.
fn parse_pem_blocks(text: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines().map(str::trim) {
        let boundary = |word: &str| {
            line.strip_prefix("-----")?.strip_suffix("-----")?.strip_prefix(word)?.strip_prefix(' ')
        };
        match (&mut open, boundary("BEGIN"), boundary("END")) {
            (None, Some(label), _) => open = Some((label.to_owned(), String::new())),
            (Some((label, body)), None, Some(end)) if end == label => {
                let der = STANDARD.decode(&*body).map_err(|_| format!("the {label} block is not base64"))?;
                blocks.push((std::mem::take(label), der));
                open = None;
            }
            _ if line.contains("-----") => return Err("a PEM block does not begin and end properly".into()),
            (Some((_, body)), ..) => body.push_str(line),
            (None, ..) => {}
        }
    }
    match open {
        Some((label, _)) => Err(format!("the {label} block has no end")),
        None => Ok(blocks),
    }
}

/// A key with its names and roles in the Kitchen.
#[derive(Debug, Clone)]
pub struct RingKey {
    /// The key.
    pub key: PublicKey,
    names: BTreeMap<Role, String>,
}

impl RingKey {
    /// Its name in the entry that trusts it for `role`.
    #[must_use]
    pub fn find_name(&self, role: Role) -> Option<&str> {
        self.names.get(&role).map(String::as_str)
    }

    /// Any of its names.
    #[must_use]
    pub fn pick_name(&self) -> &str {
        self.names.values().next().map_or("", String::as_str)
    }
}

/// All trusted keys, and their errors.
#[derive(Debug, Clone, Default)]
pub struct KeyRing {
    keys: Vec<RingKey>,
    state: KeyState,
    provenance: ProvenanceRules,
}

impl KeyRing {
    /// Reads the Kitchen's trust. Never fails: errors are in [`KeyRing::state`], and if there is any error, no key is
    /// usable.
    #[must_use]
    pub fn from_kitchen(spec: &KitchenSpec) -> Self {
        let mut errors = Vec::new();
        let mut names = BTreeSet::new();
        let mut keys: BTreeMap<String, RingKey> = BTreeMap::new();
        for entry in &spec.trust.keys {
            let mut wrong = |why: String| errors.push(format!("trust.keys {:?}: {why}", entry.name));
            if !names.insert(entry.name.as_str()) {
                wrong("the name occurs twice".into());
            }
            if entry.roles.is_empty() {
                wrong(
                    "roles is empty, so the key would not be trusted for anything: remove it for the default [signature, provenance]"
                        .into(),
                );
            }
            let Some(pem) = &entry.public_key else {
                wrong("it has neither publicKey nor publicKeyFile".into());
                continue;
            };
            match PublicKey::from_pem(pem) {
                Err(why) => wrong(why),
                Ok(read) => {
                    for key in read {
                        let known = keys
                            .entry(key.fingerprint.clone())
                            .or_insert_with(|| RingKey { key, names: BTreeMap::new() });
                        for role in &entry.roles {
                            known.names.entry(*role).or_insert_with(|| entry.name.clone());
                        }
                    }
                }
            }
        }
        for identity in &spec.trust.identities {
            if !names.insert(identity.name.as_str()) {
                errors.push(format!("trust.identities {:?}: the name occurs twice", identity.name));
            }
        }
        let keys: Vec<_> = keys.into_values().collect();
        let mut state = KeyState {
            usable: BTreeSet::new(),
            errors,
            fingerprint: Some(hash_trust(&keys, spec)),
            identities: spec.trust.identities.iter().map(|i| i.name.clone()).collect(),
        };
        if !state.errors.is_empty() {
            return Self { keys: Vec::new(), state, provenance: spec.provenance.clone() };
        }
        state.usable = keys.iter().flat_map(|k| k.names.keys().copied()).collect();
        Self { keys, state, provenance: spec.provenance.clone() }
    }

    /// The usable keys, or the errors.
    #[must_use]
    pub fn state(&self) -> &KeyState {
        &self.state
    }

    /// The allow-lists for provenance.
    #[must_use]
    pub fn provenance(&self) -> &ProvenanceRules {
        &self.provenance
    }

    /// All keys, sorted by fingerprint.
    #[must_use]
    pub fn keys(&self) -> &[RingKey] {
        &self.keys
    }

    /// The trusted key whose signature over `message` this is. `hint` (a fingerprint, unsigned) only says
    /// which key to try first.
    #[must_use]
    pub fn find_signer(&self, message: &[u8], signature: &[u8], hint: Option<&str>) -> Option<&RingKey> {
        let hinted = |k: &&RingKey| hint == Some(k.key.fingerprint());
        let first = self.keys.iter().filter(hinted);
        let rest = self.keys.iter().filter(|k| !hinted(k));
        first.chain(rest).find(|k| k.key.has_signed(message, signature))
    }
}

/// Hash over everything that affects a verdict on signature and provenance: keys with their roles, identities, roots
/// and allow-lists. Independent of the order of entries, of names and of line ends in the PEM.
fn hash_trust(keys: &[RingKey], spec: &KitchenSpec) -> Digest {
    let mut lines: Vec<String> = Vec::new();
    let mut line = |parts: &[&dyn fmt::Debug]| {
        let parts: Vec<String> = parts.iter().map(|p| format!("{p:?}")).collect();
        lines.push(parts.join(" "));
    };
    for key in keys {
        line(&[&"key", &key.key.fingerprint(), &key.names.keys().collect::<Vec<_>>()]);
    }
    for i in &spec.trust.identities {
        let roles: BTreeSet<Role> = i.roles.iter().copied().collect();
        line(&[&"identity", &i.issuer, &i.subject, &i.subject_pattern, &i.trusted_root, &roles]);
    }
    line(&[&"root", &spec.trust.trusted_root]);
    for id in &spec.provenance.builder_ids {
        line(&[&"builder", id]);
    }
    for kind in &spec.provenance.build_types {
        line(&[&"buildType", kind]);
    }
    lines.sort();
    lines.dedup();
    Digest::hash_bytes(lines.join("\n").as_bytes())
}
