//! What evidence costs: `cargo bench --bench evidence [-- ARTIFACTS…]` (100 and 1,000 when none is given),
//! three claims each (signature, provenance for its Order, a seal of approvals) besides the artifact's own
//! soundness, read from a real registry with the referrers API on loopback; each artifact has its own repository.
//!
//! Cold is a new process's view: no connection, no token, nothing remembered. Warm is the run after the one that
//! promoted, which lives on the verdicts that were kept. Requests are counted between client and registry,
//! for cosign too, whose `verify` and twice `verify-attestation` are called in a loop over the same artifacts
//! in the same run; of its loop only the first artifacts are measured, and the figure is per artifact. The
//! registry wants no login: the two requests for a token that another asks per repository are not in here.
//! The Orders of the two runs want no approvals, so their seals are not read there.

// A table on stdout is the result; a registry that cannot be filled is a failed benchmark.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

#[path = "evidence/cosign.rs"]
mod cosign;
#[path = "evidence/counter.rs"]
mod counter;
#[allow(dead_code)] // It uses a part of the file.
#[path = "../tests/it/support/peers.rs"]
mod peers;
#[path = "evidence/promotion.rs"]
mod promotion;
#[allow(dead_code)] // It uses a part of the file.
#[path = "../tests/it/support/servers.rs"]
mod servers;
#[path = "../tests/it/support/setup.rs"]
mod setup;
#[allow(dead_code)] // It uses a part of the file.
#[path = "../tests/it/support/shelf.rs"]
mod shelf;
#[allow(dead_code)] // It uses a part of the file.
#[path = "../tests/it/support/signing.rs"]
mod signing;
#[path = "evidence/stock.rs"]
mod stock;

use cosign::Cosign;
use counter::Counter;
use expedite::evidence::gather::{GatherOptions, gather_blocking, make_runtime};
use expedite::model::evidence::{Ask, Claim, Evidence};
use oci_registry::{HostConfig, Registries, RegistriesConfig};
use promotion::Fleet;
use signing::{Key, ring};
use std::fs;
use std::time::{Duration, Instant};
use stock::{Item, Layers};

/// Tries per time; the best counts.
const TRIES: usize = 3;
/// How many artifacts cosign's loop is measured on.
const SAMPLE: usize = 10;

/// The targets: requests per artifact with separate and with embedded layers, and what part of cosign's they
/// are at most; times faster than cosign's loop, MiB.
const REQUESTS: [usize; 2] = [11, 8];
const PART: f64 = 0.25;
const FASTER: f64 = 50.0;
const MEMORY: u64 = 200;

fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|word| word.replace(',', "").parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![100, 1_000] } else { sizes };
    let Some(server) = servers::refreg() else { return };
    let key = Key::p256();
    let counter = Counter::before(&server.address);
    for (round, artifacts) in sizes.into_iter().enumerate() {
        println!("\n{artifacts} artifacts × 3 claims, one repository each");
        println!("{:<52} {:>12} {:>12}", "", "separate", "embedded");
        let figures = [Layers::Separate, Layers::Embedded].map(|layers| {
            let prefix = format!("round-{round}/{layers:?}").to_lowercase();
            let items = stock::fill(&server.address, &prefix, &key, artifacts, layers);
            Figures::of(&server.address, &counter, &key, &items, layers == Layers::Embedded)
        });
        print(&figures);
        for (figures, target) in figures.iter().zip(REQUESTS) {
            assert!(figures.cold_requests <= artifacts * target, "more than {target} requests per artifact");
            assert_eq!(figures.warm_requests, 0, "a settled fleet asks nothing");
        }
    }
}

/// What one set of artifacts came to.
struct Figures {
    artifacts: usize,
    /// cosign, too, is spared the request for a layer that stands in its manifest.
    embedded: bool,
    cold_requests: usize,
    cold: Duration,
    /// MiB.
    peak: u64,
    run_requests: usize,
    run: Duration,
    warm_requests: usize,
    warm: Duration,
    /// Requests and time of cosign's loop, per artifact.
    cosign: Option<(f64, Duration)>,
}

impl Figures {
    fn of(address: &str, counter: &Counter, key: &Key, items: &[Item], embedded: bool) -> Self {
        let counted = counter.during(|| gather(&counter.address, key, items).1);
        assert_eq!(counted.0, counted.1, "what is sent and what is logged");
        forget_peak();
        let cold = (0..TRIES).map(|_| gather(address, key, items).0).min().unwrap();
        let peak = peak();
        let fleet = Fleet::new(&counter.address, key, items);
        let (run_requests, run) = counter.during(|| fleet.run(items.len()));
        let (warm_requests, warm) = counter.during(|| fleet.run(0));
        let sample = &items[..items.len().min(SAMPLE)];
        let cosign = Cosign::new(key).map(|cosign| {
            let (requests, _) = counter.during(|| cosign.verify(&counter.address, &sample[..1]));
            (requests as f64, cosign.verify(address, sample) / u32::try_from(sample.len()).unwrap())
        });
        Self {
            artifacts: items.len(),
            embedded,
            cold_requests: counted.0,
            cold,
            peak,
            run_requests,
            run,
            warm_requests,
            warm,
            cosign,
        }
    }

    /// What part of cosign's requests ours are.
    fn part(&self) -> Option<f64> {
        let (requests, _) = self.cosign?;
        Some(self.cold_requests as f64 / self.artifacts as f64 / requests)
    }

    fn faster(&self) -> Option<f64> {
        let (_, each) = self.cosign?;
        Some(each.as_secs_f64() * self.artifacts as f64 / self.cold.as_secs_f64())
    }
}

/// All claims of all artifacts, as a new process asks them: how long it took, and how many requests it
/// logged.
fn gather(address: &str, key: &Key, items: &[Item]) -> (Duration, usize) {
    let (ring, options) = (ring(key), GatherOptions::default());
    let asks: Vec<Ask> = items
        .iter()
        .map(|item| Ask {
            artifact: item.artifact(address),
            claims: [
                Claim::Artifact,
                Claim::Signature,
                Claim::Provenance(item.order.clone()),
                Claim::Approvals(item.seal()),
            ]
            .into(),
        })
        .collect();
    let start = Instant::now();
    let registries = registries(address);
    let facts = gather_blocking(&make_runtime().unwrap(), &asks, &ring, &registries, &options);
    let took = start.elapsed();
    for (ask, item) in asks.iter().zip(items) {
        let found = &facts.artifacts[&ask.artifact];
        assert!(matches!(found.artifact, Some(Evidence::Proven(_))), "{found:?}");
        assert!(matches!(found.signature, Some(Evidence::Proven(_))), "{found:?}");
        assert!(matches!(found.provenance[&item.order], Evidence::Proven(_)), "{found:?}");
        assert!(matches!(found.approvals[&item.seal()], Evidence::Proven(_)), "{found:?}");
    }
    (took, registries.collect_requests().len())
}

/// The registry at `address`, of which nothing is known yet.
fn registries(address: &str) -> Registries {
    let host = HostConfig { plain_http: true, ..HostConfig::default() };
    let hosts = [(address.to_owned(), host)].into();
    Registries::new(RegistriesConfig { hosts, ..RegistriesConfig::default() }).unwrap()
}

fn print(figures: &[Figures; 2]) {
    let row = |name: &str, cell: &dyn Fn(&Figures) -> String| {
        println!("{name:<52} {:>12} {:>12}", cell(&figures[0]), cell(&figures[1]));
    };
    let each = |requests: usize, f: &Figures| format!("{:.2}", requests as f64 / f.artifacts as f64);
    let seconds = |time: Duration| format!("{:.3}", time.as_secs_f64());
    let or = |value: Option<String>| value.unwrap_or_else(|| "no cosign".into());
    row("cold: requests per artifact (at most 11 and 8)", &|f| each(f.cold_requests, f));
    row("cold: seconds", &|f| seconds(f.cold));
    row("cold: peak memory, MiB (under 200)", &|f| target(f.peak.to_string(), f.peak < MEMORY));
    row("first run, promoting all: requests per artifact", &|f| each(f.run_requests, f));
    row("first run, promoting all: seconds", &|f| seconds(f.run));
    row("warm, the run after it: requests (0)", &|f| f.warm_requests.to_string());
    row("warm, the run after it: seconds", &|f| seconds(f.warm));
    row("cosign's loop: requests per artifact", &|f| or(f.cosign.map(|(n, _)| n.to_string())));
    row("cold: part of cosign's requests (0.25 of separate)", &|f| {
        or(f.part().map(|part| target(format!("{part:.2}"), f.embedded || part <= PART)))
    });
    let measured = figures[0].artifacts.min(SAMPLE);
    row(&format!("cosign's loop: seconds per artifact, of {measured}"), &|f| {
        or(f.cosign.map(|(_, time)| seconds(time)))
    });
    row("cold, times faster than cosign's loop (50)", &|f| {
        or(f.faster().map(|faster| target(format!("{faster:.0}"), faster >= FASTER)))
    });
}

/// A figure, and a word where it misses its target: time and memory depend on the machine, so this ends
/// nothing.
fn target(figure: String, met: bool) -> String {
    if met { figure } else { format!("MISSED {figure}") }
}

/// From here on the peak is counted anew.
fn forget_peak() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// The most memory of this process since [`forget_peak`], MiB, the filled registry's bytes included.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().split(' ').next().unwrap().parse::<u64>().unwrap() >> 10
}
