//! What a run costs on a large fleet: `cargo bench --bench fleet [-- ORDERS…]` (1,000 and 10,000 when none
//! is given), each with three Clusters and three Preparations an Order.
//!
//! Two runs are measured, stage by stage and together: the first, which promotes every Order, and the one
//! after it, which finds nothing to do. No registry is read: the first run's evidence is handed in as
//! proven, the second lives on the verdicts that the first kept. Each figure is the best of several tries,
//! in milliseconds; objects are read from real files, commits go to a real bare repository.

// A table on stdout is the result; a fleet that cannot be built is a failed benchmark.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

#[path = "fleet/objects.rs"]
mod objects;
#[path = "fleet/stages.rs"]
mod stages;
#[path = "../tests/it/support/setup.rs"]
mod setup;

use objects::Shape;
use stages::{Fleet, Times};
use std::fs;
use std::time::Duration;

/// Tries per figure.
const TRIES: usize = 3;

fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|word| word.replace(',', "").parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000, 10_000] } else { sizes };
    println!("{}", machine());
    for orders in sizes {
        let shape = Shape { orders, clusters: 3, preparations: 3 };
        let fleet = Fleet::new(shape);
        println!(
            "\n{orders} Orders × {} Clusters × {} Preparations: {} files, {} Applications",
            shape.clusters,
            shape.preparations,
            fleet.files,
            orders * shape.clusters
        );
        // Every try of the first run starts on an empty repository.
        let first = best((0..TRIES).map(|_| fleet.first_run()));
        let idle = best((0..TRIES).map(|_| fleet.idle_run()));
        let whole = (0..TRIES).map(|_| fleet.whole_idle_run()).min().unwrap();
        println!("{:<34} {:>12} {:>16}", "milliseconds", "first run", "nothing to do");
        for (i, (name, time)) in first.iter().enumerate() {
            println!("{name:<34} {:>12.1} {:>16.1}", ms(*time), ms(idle[i].1));
        }
        let sum = |times: &Times| times.iter().map(|(_, time)| *time).sum::<Duration>();
        println!("{:<34} {:>12.1} {:>16.1}", "all stages", ms(sum(&first)), ms(sum(&idle)));
        println!("{:<34} {:>12} {:>16.1}", "run, as the verb calls it", "", ms(whole));
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Per stage, the best of all tries.
fn best(tries: impl Iterator<Item = Times>) -> Times {
    tries.reduce(|a, b| a.iter().zip(&b).map(|((name, x), (_, y))| (*name, *x.min(y))).collect()).unwrap()
}

/// The machine's size, as far as Linux tells.
fn machine() -> String {
    let value = |file: &str, key: &str| -> Option<String> {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory =
        value("/proc/meminfo", "MemTotal").and_then(|kib| kib.split(' ').next()?.parse::<u64>().ok());
    format!(
        "machine: {cores} cores ({}), {} GiB, {} {}",
        value("/proc/cpuinfo", "model name").unwrap_or_else(|| "model unknown".into()),
        memory.map_or_else(|| "?".into(), |kib| (kib >> 20).to_string()),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}
