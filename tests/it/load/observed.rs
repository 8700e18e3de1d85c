//! A dump of Applications.

use super::*;

#[test]
fn observed_applications() {
    let observe = |text: &str| {
        let observed = Observed {
            source: "observed".into(),
            file: "applications.yaml".into(),
            bytes: Ok(text.as_bytes().to_vec()),
        };
        read_world(&[], Some(&observed))
    };
    let item = |name: &str| {
        format!(
            "- {}\n  status: {{sync: {{status: Synced}}, reconciledAt: 2026-01-01T00:00:00Z}}\n",
            APPLICATION.trim_end().replace("a-00000000", name).replace('\n', "\n  ")
        )
    };
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}{}", item("a-1"), item("a-2"));
    let world = observe(&list);
    assert_eq!(said(&world), Vec::<String>::new());
    let applications = world.applications.unwrap();
    assert_eq!(applications.len(), 2);
    let one = &applications[&("argocd".to_owned(), "kokumi-shop-a-1".to_owned())];
    assert_eq!((one.object.status.as_ref().unwrap().sync.status.as_str(), one.origin.line), ("Synced", 4));
    assert_eq!(observe("apiVersion: v1\nkind: List\nitems: []\n").applications.map(|a| a.len()), Some(0));

    for (text, want) in [
        ("", "it is empty"),
        ("kind: List\nitems: [", "is not valid YAML"),
        ("kind: List\nmetadata: {continue: x}\nitems: []\n", "one page of a longer list"),
        (
            "kind: List\nitems:\n- kind: Application\n  metadata: {name: a}\n  status: {sync: [1]}\n",
            "status.sync: wanted a mapping",
        ),
        (&format!("kind: List\nitems:\n{}{}", item("a-1"), item("a-1")), "occurs twice"),
    ] {
        let world = observe(text);
        let messages = said(&world);
        assert!(messages[0].starts_with("everything | ") && messages[0].contains(want), "{messages:?}");
        assert!(world.applications.is_none(), "what was not read in full observes nothing");
    }
    let lost = Observed {
        source: "observed".into(),
        file: "applications.yaml".into(),
        bytes: Err("no such file".into()),
    };
    assert!(expedite::load::read_world(&[], Some(&lost)).applications.is_none());
    assert!(one_application_in_a_folder_is_ignored());
}

fn one_application_in_a_folder_is_ignored() -> bool {
    let world = one(APPLICATION);
    said(&world).is_empty() && world.applications.is_none()
}
