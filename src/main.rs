//! The `expedite` binary: parse, call, print the failure, exit status.

fn main() {}
