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
//! Decisions use values that were read before; nothing is read while deciding. The modules below are in pipeline
//! order: a module may use those above it, never one below (`tests/layers.rs` reads the `pub mod` lines and fails
//! on a dependency that points back). Begin with [`run`]: it is the table of contents.
//!
//! # Rooms
//!
//! | room | takes → gives | touches | knows nothing of |
//! |---|---|---|---|
//! | [`error`], [`model`], [`files`] | the types that all other rooms use | – | everything else |
//! | [`settings`] | `expedite.yaml` → valid settings, all problems at once | one file | what they are used for |
//! | [`load`] | sources → `World`, repository → `GitOps` | disk, API server (read) | gates, registries |
//! | [`policy::resolve`] | `World`, `GitOps` → one `Case` per Order | – | the clock, network |
//! | [`policy::gates`] | `Case` → asks; `Case`, `Facts`, now → verdicts | – | how facts were fetched |
//! | [`evidence`] | asks → `Facts` | registries, layouts, a blob cache (read) | Orders' policies |
//! | [`ledger`] | an Order's signed statements → what happened | – | git, registries, policy |
//! | [`policy::decide`] | cases, verdicts, now → `Plan` | – | YAML, git, OCI |
//! | [`render`] | `Plan` → files | – | who requested it |
//! | [`attest`] | `Plan`, key → records, attached | registries (write) | why it was decided |
//! | [`compare`] | two artifacts' objects → what changes | – | where they came from |
//! | [`report`] | `Plan`, outcomes → text | the writer handed in | how it was done |
//! | [`forge`] | a text, a CI's variables → one comment on a pull request | a forge's API (write) | plans |
//! | [`notify`] | Servings in git and in a cluster → status and Events | API servers (write) | why it was decided |
//! | [`run`] | all of the above, in order | what it calls | flags |
//! | [`verbs`] | flags → settings → `run` → `report`; one file or folder for each verb | what it calls | decisions |
//!
//! Libraries that know nothing of the rooms are below `crates/`, each with a README; the compiler ensures that
//! they use nothing of this crate:
//!
//! | crate | takes → gives | knows nothing of |
//! |---|---|---|
//! | [`git_commits`] | a repository → a snapshot; files, expected head → pushed, unchanged, moved or refused | objects, what files mean |
//! | [`child_process`] | a command, its input → its output within bounds | what the program is for |
//! | [`kube_yaml`] | text → a tree with places and exact characters, and back | Kubernetes, files, policy |
//! | [`oci_registry`] | questions to registries and image layouts → found, absent or unread; attaching | claims, keys, policy |
//!
//! A [`model::world::World`] holds what was read; broken objects are problems that name the Orders they affect. A
//! `Case` is one Order with everything that concerns it. A [`model::plan::Plan`] is total: bad input is a row of
//! it, so that later stages never fail on what earlier stages checked.
//!
//! # Loops
//!
//! There are three loops, all bounded and all in [`run`], nowhere else.
//! - *A seal is due*: [`policy::decide`] asks for it ([`model::plan::SealRequest`]), `run` signs and attaches it, and
//!   decides again with the new fact. A seal is never requested twice.
//! - *The branch moved*: [`git_commits`] pushes against the head that was decided on and answers `Moved`; `run`
//!   reads the repository again and decides again, up to `limits.maxTries`.
//! - *A promotion under `limits.maxPromotions` cannot be written*: `run` searches once without that limit for all
//!   Orders that cannot be rendered or have no place, and decides a last time without them. The signer's failures
//!   are counted over all three.
//!
//! Within each, [`policy::decide`] runs again as long as rendering finds more settings that would be lost by taking
//! over an Application.
//!
//! Evidence that was read completely is kept between two tries ([`run::Known`]): bytes under a digest do not change.
//!
//! # Adding something
//!
//! `CONTRIBUTING.md` has a recipe for a gate, a claim, a member of a kind, a verb and a code: which files to touch,
//! and which tests report a forgotten one. It also says how to run one test and what CI checks.
//!
//! # Tests
//!
//! - Next to the code: corner cases of one function. Rules with many inputs have property tests.
//! - `tests/it`: one binary for the scenarios and for the tests against real programs, one module for each area;
//!   `cargo test --test it gates::` runs one. Shared code is in `tests/it/support`.
//!   - `gates`, `decide`, `approvals`: scenarios of the rules through `support/sim.rs`, without git, YAML
//!     or a registry. `gates_reference` and `decide_properties` compare random histories with a naive model and
//!     with promised properties.
//!   - `load`, `evidence`, `registry`, `git`, `cluster`: one external system each, against real and hostile
//!     servers on loopback.
//!   - `e2e`, `chain`, `crash`, `argocd`: the real binary, in a hermetic environment (`support/harness.rs`).
//! - `fixtures/cases/<name>`: expected output and commits of the binary. Every folder is found; `BLESS=1` rewrites them.
//! - `tests/it/readme.rs`: every command of the README is run. `tests/layers.rs`: this map.
//!
//! - `benches/`: measurements, each explained at its top. The goal is to decide 10,000 Orders with every gate in
//!   under a second (`benches/gates.rs`), without reading and verifying evidence (`benches/evidence.rs`).
//!
//! A case from the field (`docs/design/field-cases.md`) has its number in the test's name
//! (`b26_eight_writers_lose_nothing`). A test whose
//! external program is missing says so on stderr and is skipped; with `CI=true` it fails (`support/peers.rs`).
//!
//! # What to know before a change
//!
//! - **[`ledger`] is not used by a run yet.** It folds and verifies statements and reads heads; runs still write the
//!   records of before. Wire it only together with the ways back (`--recover`, `--accept`): without them, an Order whose
//!   branch was moved back could not be freed.
//! - **Unread is not missing.** Wherever something is fetched there are four outcomes, and matches on them have
//!   no `_` arm.
//! - **What is deployed is rendered from the Serving's pins**, not from a Preparation that may be edited or gone.
//! - **Every message that is committed is the same in each run**: absolute times, no remaining durations. A
//!   message that changes causes a commit in every run.
//! - **Names depend on nothing that may change** ([`model::naming`]): another name is another Application, and
//!   Argo CD removes the workload of the old one.
//! - **libgit2 returns Ok for pushes that were refused**, and a push to a path is not a compare-and-swap: every
//!   push goes through [`git_commits`].
//! - **YAML that we write means the same under 1.1 and 1.2**: write through [`kube_yaml::emit`] or a template, never by
//!   formatting a value into text.
//! - **Untrusted text is neutralised when it is printed** (`report::escape`), and kept unchanged until then.

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
