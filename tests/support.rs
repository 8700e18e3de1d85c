//! The support files themselves.

#[path = "support/peers.rs"]
mod peers;

#[test]
fn a_program_that_is_nowhere_is_not_found() {
    assert_eq!(peers::find("no-such-program-of-this-name"), None);
}

#[test]
fn a_program_on_the_path_is_found() {
    assert!(peers::find("git").is_some(), "git is a prerequisite of the tests");
}
