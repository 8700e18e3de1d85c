//! Expedite promotes rendered manifests through environments.
//!
//! # Architecture
//!
//! ```text
//!  load ──▶ resolve ──▶ gates.ask ──▶ evidence ──▶ gates.judge ──▶ decide ──▶ render ──▶ commit ──▶ attest ──▶ notify ──▶ report
//!  read     pure         pure          read          pure            pure       pure       write      write      write      pure → out
//!    ▲                                                              │ asks for a seal?       │ moved?
//!    └────────────────────── read and decide again ◀───────────────┴── attest.seal ◀───────┘
//! ```
//!
//! Decisions depend on values that were read, never on reading while deciding. The modules below stand in
//! pipeline order: a module may use those above it, never one below (`tests/layers.rs` reads the `pub mod`
//! lines and fails on an arrow that points back). Begin with [`run`]: it is the table of contents.
//!
//! # Rooms
//!
//! | room | takes → gives | touches | knows nothing of |
//! |---|---|---|---|
//! | [`error`], [`model`], [`files`] | the words of everything else | – | everything else |
//! | [`settings`] | `expedite.yaml` → valid settings, all problems at once | one file | what they are used for |
//! | [`load`] | sources → `World`, repository → `GitOps` | disk, API server (read) | gates, registries |
//! | [`policy::resolve`] | `World`, `GitOps` → one `Case` per Order | – | time's passing, network |
//! | [`policy::gates`] | `Case` → asks; `Case`, `Facts`, now → verdicts | – | how facts were fetched |
//! | [`evidence`] | asks → `Facts` | registries, layouts, a blob cache (read) | Orders' policies |
//! | [`ledger`] | an Order's signed statements → what happened | – | git, registries, policy |
//! | [`policy::decide`] | cases, verdicts, now → `Plan` | – | YAML, git, OCI |
//! | [`render`] | `Plan` → files | – | who asked |
//! | [`attest`] | `Plan`, key → records, attached | registries (write) | why it was decided |
//! | [`compare`] | two artifacts' objects → what changes | – | where they came from |
//! | [`report`] | `Plan`, outcomes → text | the writer handed in | how it was done |
//! | [`forge`] | a text, a CI's variables → one comment on a pull request | a forge's API (write) | plans |
//! | [`notify`] | Servings in git, what a cluster says of them → status and Events | API servers (write) | why it was decided |
//! | [`run`] | all of the above, in order | what it calls | flags |
//! | [`verbs`] | flags → settings → `run` → `report`; one file or folder a verb | what it calls | decisions |
//!
//! Libraries that know nothing of the rooms stand below `crates/`, each with a README; the compiler holds that
//! they use nothing of this crate:
//!
//! | crate | takes → gives | knows nothing of |
//! |---|---|---|
//! | [`git_commits`] | a repository → a snapshot; files, expected head → pushed, unchanged, moved or refused | objects, what files mean |
//! | [`child_process`] | a command, its input → its output within bounds | what the program is for |
//! | [`kube_yaml`] | text → a tree with places and exact characters, and back | Kubernetes, files, policy |
//! | [`oci_registry`] | questions to registries and image layouts → found, absent or unread; attaching | claims, keys, policy |
//!
//! A [`model::world::World`] holds what was read, broken objects as problems that name what they bear on. A
//! `Case` is one Order with all that concerns it. A [`model::plan::Plan`] is total: bad input became a row of
//! it, so that nothing behind it fails on what was checked before it.
//!
//! # What is repeated
//!
//! Three things, all bounded and all in [`run`], nowhere else.
//! - *A seal is due*: [`policy::decide`] asks for it ([`model::plan::SealRequest`]), `run` signs and attaches it, and
//!   decides again with the new fact. A seal that was made is never asked for twice.
//! - *The branch moved*: [`git_commits`] pushes against the head that was decided on and answers `Moved`; `run`
//!   reads the repository again and decides again, up to `limits.maxTries`.
//! - *A promotion under `limits.maxPromotions` cannot be written*: `run` looks once without that limit for all that
//!   cannot be rendered or has no place, and decides a last time without those Orders. The signer's failures count
//!   through all three.
//!
//! Within each, [`policy::decide`] runs again while rendering finds more that taking an Application over would lose.
//!
//! Evidence that was read whole is kept between two tries ([`run::Known`]): bytes under a digest do not change.
//!
//! # Adding something
//!
//! `CONTRIBUTING.md` has a recipe for a gate, a claim, a member of a kind, a verb and a code: which files to touch,
//! and which tests say what is missing. It also says how to run one test and what CI wants.
//!
//! # Tests
//!
//! - Beside the code: one function's corners. Property tests stand where a rule has many inputs.
//! - `tests/it`: one binary for the scenarios and for the tests against real programs, one module an area,
//!   `cargo test --test it gates::` runs one. What several areas need is in `tests/it/support`.
//!   - `gates`, `decide`, `approvals`: scenarios of the rules through `support/sim.rs`, with neither git nor YAML
//!     nor a registry. `gates_reference` and `decide_properties` hold random histories against a naive model and
//!     against promises.
//!   - `load`, `evidence`, `registry`, `git`, `cluster`: one outside thing each, against real ones and hostile
//!     ones on loopback.
//!   - `e2e`, `chain`, `crash`, `argocd`: the real binary, in a hermetic place (`support/harness.rs`).
//! - `fixtures/cases/<name>`: what the binary says and commits, found by walking, rewritten by `BLESS=1`.
//! - `tests/it/readme.rs`: every command of the README is run. `tests/layers.rs`: this map.
//!
//! - `benches/`: what it costs, each with its own words at the top. 10,000 Orders with every gate in use are to be
//!   decided in under a second (`benches/gates.rs`), evidence read and verified apart (`benches/evidence.rs`).
//!
//! A case from the field (`docs/design/field-cases.md`) has its number in the test's name
//! (`b26_eight_writers_lose_nothing`). A program that is
//! missing is said on stderr and left out; with `CI=true` it is a failure (`support/peers.rs`).
//!
//! # What to know before a change
//!
//! - **Unread is not missing.** Wherever something is fetched there are four outcomes, and matches on them have
//!   no `_` arm.
//! - **What is deployed is rendered from the Serving's pins**, not from a Preparation that may be edited or gone.
//! - **Every message that is committed is stable from run to run**: absolute instants, no durations left. A
//!   message that flaps is a commit every run.
//! - **Names depend on nothing that may change** ([`model::naming`]): another name is another Application, and
//!   the old one's workload goes.
//! - **libgit2 answers Ok to pushes that were refused**, and a push to a path is no compare-and-swap: all of it
//!   goes through [`git_commits`].
//! - **YAML that we write reads alike under 1.1 and 1.2**: write through [`kube_yaml::emit`] or a template, never by
//!   formatting a value into text.
//! - **Foreign text is neutralised where it is printed** (`report::escape`), and kept as it came until then.

// Only the binary of this package uses this library; an item has a docstring where its name does not say enough.
#![allow(missing_docs)]

pub mod error;
pub mod model;
pub mod files;
pub mod settings;
pub mod load;
pub mod evidence;
pub mod ledger;
pub mod policy;
pub mod render;
pub mod attest;
pub mod compare;
pub mod report;
pub mod forge;
pub mod notify;
pub mod run;
pub mod verbs;
