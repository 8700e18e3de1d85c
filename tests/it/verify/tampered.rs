//! What may be done to an evidence bundle on its way, and by whoever made it.

use super::bench::{self, APPROVAL, Bench};
use super::bundles::files;
use super::{claim, json};
use crate::support::forge::Renderer;
use expedite::evidence::archive::{Archive, ArchiveRefusal};
use expedite::model::id::Digest;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

/// A tar as an evidence bundle is written, of these files; sums are made right unless they are among them.
fn packed(mut files: BTreeMap<String, Vec<u8>>, sums: bool) -> Vec<u8> {
    const SUMS: &str = "expedite/SHA256SUMS";
    if sums {
        files.remove(SUMS);
        let mut text = String::new();
        for (name, bytes) in &files {
            let _ = writeln!(text, "{}  {name}", Digest::hash_bytes(bytes).format_hex());
        }
        files.insert(SUMS.into(), text.into_bytes());
    }
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in &files {
        let mut header = tar::Header::new_ustar();
        header.set_path(name).unwrap();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        tar.append(&header, &bytes[..]).unwrap();
    }
    tar.into_inner().unwrap()
}

fn refused(bytes: &[u8]) -> Option<String> {
    match Archive::read_from(&mut &bytes[..]) {
        Ok(_) => None,
        Err(ArchiveRefusal::Content(why)) => Some(why),
        Err(ArchiveRefusal::Io(error)) => panic!("{error}"),
    }
}

#[test]
fn a_changed_byte_anywhere_is_told() {
    let bench = Bench::whole();
    let good = bench.saved("podinfo.tar");
    assert_eq!(refused(&good), None);
    assert_eq!(packed(files(&good), true), good, "the test packs as the product does");
    // Every place of a header and its neighbourhood would take long in all files; a stride that is no divisor
    // of a block's length walks through all of them.
    let places: Vec<usize> = (0..good.len()).step_by(53).collect();
    assert!(places.len() > 300, "{} bytes", good.len());
    for at in places {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        assert!(refused(&bytes).is_some(), "byte {at} of {}", good.len());
    }
    for cut in (0..good.len()).step_by(997) {
        assert!(refused(&good[..cut]).is_some(), "cut at {cut}");
    }
    // And through the binary, with a word that says which.
    for (name, part) in [
        ("index.json", "index.json does not match its hash in expedite/SHA256SUMS"),
        ("expedite/bundle.json", "expedite/bundle.json does not match"),
        ("expedite/SHA256SUMS", "SHA256SUMS"),
        (&format!("blobs/{}", bench.digest.replace(':', "/")), "does not hash to its name"),
    ] {
        let mut all = files(&good);
        let bytes = all.get_mut(name).unwrap();
        bytes[0] ^= 1;
        fs::write(bench.place.path("changed.tar"), packed(all, false)).unwrap();
        let said = bench.verify(&["--bundle", "changed.tar"]);
        said.exits(5);
        assert!(said.stderr.contains("changed.tar: the evidence bundle: "), "{}", said.stderr);
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
        assert_eq!(said.stdout, "");
    }
}

#[test]
fn foreign_files_links_and_names_are_refused() {
    let bench = Bench::whole();
    let good = bench.saved("podinfo.tar");
    let all = files(&good);
    let with = |name: &str| {
        let mut all = all.clone();
        all.insert(name.into(), b"x".to_vec());
        refused(&packed(all, true)).unwrap()
    };
    assert!(with("expedite/more.json").contains("not a file of an evidence bundle"));
    assert!(with("blobs/sha256/short").contains("not a file of an evidence bundle"));
    assert!(with(&format!("blobs/sha256/{}", "A".repeat(64))).contains("not a file of an evidence bundle"));
    assert!(with(&format!("blobs/sha256/{}", "7".repeat(64))).contains("does not hash to its name"));
    for gone in ["expedite/bundle.json", "expedite/SHA256SUMS", "index.json", "oci-layout"] {
        let mut all = all.clone();
        all.remove(gone);
        let why = refused(&packed(all, gone != "expedite/SHA256SUMS")).unwrap();
        assert!(why.contains(&format!("it has no {gone}")), "{why}");
    }
    // By the binary: a way out of the folder, a link to the machine's own files, a name twice, gzip.
    let entry = |path: &[u8], kind: tar::EntryType, link: Option<&str>| {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..path.len()].copy_from_slice(path);
        header.set_size(0);
        header.set_entry_type(kind);
        if let Some(link) = link {
            header.set_link_name(link).unwrap();
        }
        header.set_cksum();
        [header.as_bytes().to_vec(), good.clone()].concat()
    };
    let regular = tar::EntryType::Regular;
    for (bytes, part) in [
        (entry(b"../../outside", regular, None), "is outside the folder"),
        (entry(b"/etc/passwd", regular, None), "is outside the folder"),
        (entry(b"blobs/sha256/x", tar::EntryType::Symlink, Some("/etc/passwd")), "is a link"),
        (entry(b"index.json", tar::EntryType::Link, Some("/etc/passwd")), "is a link"),
        ([good.clone(), good.clone()].concat(), "there is data after its end"),
        ([&[0x1f, 0x8b][..], &good].concat(), "compressed"),
        (b"not a tar at all".to_vec(), "not a tar archive"),
        (Vec::new(), "not a tar archive"),
    ] {
        fs::write(bench.place.path("hostile.tar"), bytes).unwrap();
        let said = bench.verify(&["--bundle", "hostile.tar", "--bundled-trust"]);
        said.exits(5);
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    assert!(!bench.place.path("../outside").exists());
}

#[test]
fn a_bomb_costs_nothing() {
    let bench = Bench::whole();
    let good = bench.saved("podinfo.tar");
    let name = format!("blobs/sha256/{}", "0".repeat(64));
    // It says that it is 8 GiB long, and the file even is (with nothing in it).
    let mut header = tar::Header::new_ustar();
    header.set_path(&name).unwrap();
    header.set_size((8 << 30) - 1);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    let path = bench.place.path("bomb.tar");
    fs::write(&path, header.as_bytes()).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(8 << 30).unwrap();
    let start = std::time::Instant::now();
    let said = bench.verify(&["--bundle", "bomb.tar", "--bundled-trust"]);
    said.exits(5);
    assert!(said.stderr.contains("more than is read"), "{}", said.stderr);
    assert!(start.elapsed().as_secs() < 5);
    // More files than anybody needs.
    let mut all = files(&good);
    for n in 0..8200_u32 {
        all.insert(
            format!("blobs/sha256/{}", Digest::hash_bytes(&n.to_le_bytes()).format_hex()),
            n.to_le_bytes().to_vec(),
        );
    }
    assert!(refused(&packed(all, true)).unwrap().contains("no more are read"));
}

#[test]
fn whoever_makes_the_file_proves_nothing_by_it() {
    let bench = Bench::whole();
    let good = bench.saved("podinfo.tar");
    let all = files(&good);
    let judged = |files: BTreeMap<String, Vec<u8>>, more: &[&str], status: i32| {
        fs::write(bench.place.path("made.tar"), packed(files, true)).unwrap();
        let said = bench.verify(&[&["--bundle", "made.tar", "-o", "json"], more].concat());
        said.exits(status);
        json(&said)
    };
    // A seal is taken out of the list: it is not there.
    let seal = bench.layout.bundle(&bench.digest, APPROVAL);
    let mut without = all.clone();
    let mut index: serde_json::Value = serde_json::from_slice(&all["index.json"]).unwrap();
    index["manifests"].as_array_mut().unwrap().retain(|e| e["digest"] != seal.as_str());
    without.insert("index.json".into(), index.to_string().into_bytes());
    assert_eq!(claim(&judged(without, &[], 5), "approvals")["outcome"], "Missing");
    // A blob is taken out: what it held could not be read.
    let mut without = all.clone();
    let layer = bench.layout.manifest(&seal)["layers"][0]["digest"].as_str().unwrap().to_owned();
    without.remove(&format!("blobs/{}", layer.replace(':', "/"))).unwrap();
    assert_eq!(claim(&judged(without, &[], 1), "approvals")["outcome"], "Unread");
    // The trust inside is exchanged: nobody asked for it.
    let stranger = Renderer::new(9);
    let mut other = all.clone();
    let about = String::from_utf8(all["expedite/bundle.json"].clone()).unwrap();
    let about = about.replace(
        &bench.renderer.public_key().replace('\n', "\\n"),
        &stranger.public_key().replace('\n', "\\n"),
    );
    other.insert("expedite/bundle.json".into(), about.into_bytes());
    assert_eq!(judged(other.clone(), &[], 0)["trust"]["whose"], "Own");
    assert_eq!(claim(&judged(other, &["--bundled-trust"], 5), "signature")["outcome"], "Invalid");
    // What it demands is made less: the reader's own Order counts.
    let mut less = all.clone();
    let mut about: serde_json::Value = serde_json::from_slice(&all["expedite/bundle.json"]).unwrap();
    about["demands"] = serde_json::json!({"environment": null, "approvals": null, "checks": []});
    less.insert("expedite/bundle.json".into(), about.to_string().into_bytes());
    assert_eq!(judged(less, &[], 0)["demands"]["approvals"]["requiredApprovals"], 2);
    // A version of later on, an unknown member, a name twice.
    for (from, to, part) in [
        ("expedite.kokumi.dev/v1", "expedite.kokumi.dev/v2", "this build reads"),
        ("\"digest\":", "\"more\": 1, \"digest\":", "unknown field"),
        ("\"kind\":", "\"kind\": \"a\", \"kind\":", "twice"),
    ] {
        let mut other = all.clone();
        let about = String::from_utf8(all["expedite/bundle.json"].clone()).unwrap();
        assert!(about.contains(from), "{about}");
        other.insert("expedite/bundle.json".into(), about.replacen(from, to, 1).into_bytes());
        fs::write(bench.place.path("made.tar"), packed(other, true)).unwrap();
        let said = bench.verify(&["--bundle", "made.tar"]);
        said.exits(5);
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    // A record that a stranger signed.
    let mut more = all.clone();
    let record = b"{\"mediaType\": \"x\"}";
    more.insert(
        format!("expedite/records/{}.json", Digest::hash_bytes(record).format_hex()),
        record.to_vec(),
    );
    assert_eq!(
        claim(&judged(more, &[], 0), "promotion")["outcome"],
        "Proven",
        "the good one counts all the same"
    );
    assert_eq!(bench::REPOSITORY, "r.example/shop/podinfo");
}
