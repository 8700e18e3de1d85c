//! Properties over any text and any bytes.

use super::*;

/// One file in memory.
struct Memory(Vec<u8>);

impl Files for Memory {
    fn name(&self) -> String {
        "memory".into()
    }
    fn list_entries(&self, prefix: &str) -> (Vec<FileEntry>, Vec<Unreadable>) {
        let path = if prefix.is_empty() { "a.yaml".into() } else { format!("{prefix}/shop/a.yaml") };
        (vec![FileEntry { path, kind: EntryKind::File, id: None }], Vec::new())
    }
    fn read_file(&self, _: &str) -> Result<Option<Vec<u8>>, Unreadable> {
        Ok(Some(self.0.clone()))
    }
}

proptest! {
    /// A text is read, or something is said about it and the source is not whole; never a panic.
    #[test]
    fn no_text_is_lost(pieces in proptest::collection::vec(
        prop_oneof![
            Just(HEAD.to_owned()),
            Just(order("shop/a", "  environment: e\n")),
            Just(preparation("p", "a", "")),
            Just(approval("v", "2026-01-01T00:00:00Z", "Reject")),
            Just("---\n".to_owned()),
            "kind: (Order|Approval|Secret|List|Kitchen|Oder)\n",
            "(metadata|spec|items|status|labels): ?(\\{|\\[|\n|&a |\\*a|<<: )?",
            "[ \\t]{0,4}- ?",
            "[ -~\\n]{0,12}",
            "\\PC{0,6}",
        ],
        0..8,
    )) {
        let text = pieces.concat();
        let files = Memory(text.clone().into_bytes());
        let loaded = world_of(&[input(&files)]);
        let source = &loaded.sources[0];
        prop_assert!(source.whole || source.why.is_some());
        // Whatever stands before it, a vote is read, or something says that it may not have been.
        let vote = format!("{text}\n---\n{}", approval("last", "2026-01-01T00:00:00Z", "Reject"));
        let after = world_of(&[input(&Memory(vote.into_bytes()))]);
        let held = after.problems.iter().any(|p| p.holds != Holds::Nothing);
        prop_assert!(held || after.approvals.keys().any(|(_, name)| name == "last"));
        let read = read_gitops(&files, None);
        prop_assert_eq!(read.servings.len() + read.applications.len(), 2);
        let observed = Observed { source: "observed".into(), file: "o".into(), bytes: Ok(text.into_bytes()) };
        let seen = read_world(&[], Some(&observed));
        prop_assert!(seen.applications.is_some() != seen.problems.iter().any(|p| p.holds == Holds::Everything));
    }

    #[test]
    fn no_bytes_of_a_file_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let files = Memory(bytes);
        let world = world_of(&[input(&files)]);
        prop_assert!(!world.sources[0].whole, "it holds no object");
        let _ = read_gitops(&files, None);
    }
}
