//! What tlbd costs: `make bench` drives the release binary under known loads and prints a table
//! of figures beside the bounds that the project holds itself to.
//!
//! `make bench ARGS="scrape memory"` runs only the measurements with such a name. Every figure is
//! the kernel's own account (CPU clocks, run statistics of BPF programs, /proc), except where
//! wall time is the thing measured. It needs root for most; what cannot be measured is said in a
//! line, and a slow machine fails nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark that lost its footing is to end with a backtrace"
)]
#![allow(
    unreachable_pub,
    reason = "nothing of a benchmark is reachable from outside"
)]

mod account;
mod cgroups;
mod daemon;
mod janitor;
mod load;
mod machine;
mod measure;
mod report;
mod work;

use std::{env, process::ExitCode, time::Instant};

use cgroups::Tree;
use measure::{memory, perf, programs, scrape, share, slowdown, start};
use report::Report;

/// A topic: its name, whether it needs root, and what measures it.
type Measurement = (
    &'static str,
    bool,
    fn(&Bench, &mut Report) -> anyhow::Result<()>,
);

/// In the order in which they run.
const MEASUREMENTS: &[Measurement] = &[
    ("programs", true, programs::measure),
    ("share", true, share::measure),
    ("memory", true, memory::measure),
    ("scrape", true, scrape::measure),
    ("start", false, start::measure),
    ("perf", true, perf::measure),
    ("slowdown", true, slowdown::measure),
];

/// What every measurement may use.
struct Bench {
    /// Name of the cgroup that all others are made in.
    base: String,
    cpus: usize,
}

impl Bench {
    fn tree(&self) -> anyhow::Result<Tree> {
        Tree::make(&self.base)
    }

    /// What part of the machine this CPU time is, in percent.
    fn percent(&self, cpu_seconds: f64, wall_seconds: f64) -> f64 {
        cpu_seconds / wall_seconds / self.cpus as f64 * 100.0
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        [work::FLAG, cgroup, kind, rest @ ..] => work::run(cgroup, kind, rest),
        [janitor::FLAG, base, names @ ..] => run(base, names),
        names => return janitor::watch(names),
    }
    ExitCode::SUCCESS
}

fn run(base: &str, names: &[&str]) {
    let names: Vec<&str> = names
        .iter()
        .filter(|name| !name.starts_with('-'))
        .copied()
        .collect();
    let known = |name: &&str| MEASUREMENTS.iter().any(|(known, ..)| known.contains(*name));
    if let Some(name) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = MEASUREMENTS.iter().map(|(name, ..)| *name).collect();
        eprintln!(
            "bench: there is no measurement {name}: choose of {}",
            all.join(", ")
        );
        std::process::exit(2);
    }
    let bench = Bench {
        base: base.to_owned(),
        cpus: machine::cpus(),
    };
    let mut report = Report::new(machine::describe());
    let (root, start) = (machine::is_root(), Instant::now());
    for (name, needs_root, measure) in MEASUREMENTS {
        if !names.is_empty() && !names.iter().any(|wanted| name.contains(wanted)) {
            continue;
        }
        eprintln!("bench: {name} (at {:.0} s)", start.elapsed().as_secs_f64());
        if *needs_root && !root {
            report.note(format!("{name}: not measured: needs root"));
        } else if let Err(error) = measure(&bench, &mut report) {
            report.note(format!("{name}: stopped: {error:#}"));
        }
    }
    report.note(format!("{:.0} s in all", start.elapsed().as_secs_f64()));
    print!("{report}");
}
