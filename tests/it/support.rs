//! What the tests share: places, servers, registries, forges, clusters, and evidence made by hand.
//!
//! Benchmarks take some of these files in with `#[path]`, so a file names its siblings by `super::`.

pub mod apiserver;
pub mod argo;
pub mod argocd;
pub mod authority;
pub mod clock;
pub mod crd;
pub mod executable;
pub mod fleet;
pub mod forge;
pub mod fsck;
pub mod gitserver;
pub mod harness;
pub mod hostile;
pub mod layout;
pub mod past;
pub mod peers;
pub mod pins;
pub mod pulls;
pub mod pyyaml;
pub mod servers;
pub mod setup;
pub mod shelf;
pub mod signing;
pub mod sim;
pub mod strace;
pub mod stubserver;
