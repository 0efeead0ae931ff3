//! Collectors: each answers one question, in one file, with one line in [`REGISTRY`].
//!
//! A collector fills its part of the view once a tick. One that cannot start says why and is not
//! called; one that fails leaves its part empty for that tick. Neither stops the others.

mod cgroup_memory;
mod cpu_time;
pub mod engine;
mod host_memory;
mod own;
mod page_faults;
mod pmu;
mod series;
mod smaps;
mod tlb_flushes;

use std::time::Instant;

use crate::{
    config::Config,
    export::metric::Metric,
    model::{
        accounts::Accounts,
        symbols::Symbols,
        view::{ProgramRow, View},
    },
    source::{Drained, Hooks, Unavailable, root::Root},
};

/// Every collector, in the order in which they run.
pub const REGISTRY: &[Entry] = &[
    pmu::ENTRY,
    cpu_time::ENTRY,
    page_faults::ENTRY,
    tlb_flushes::ENTRY,
    cgroup_memory::ENTRY,
    host_memory::ENTRY,
    smaps::ENTRY,
    own::ENTRY,
];

#[expect(
    clippy::indexing_slicing,
    reason = "computed by the compiler, where a panic is an error"
)]
/// The metrics of each collector, and those about the collectors themselves.
pub static METRICS: [&[&Metric]; REGISTRY.len() + 1] = {
    let mut metrics = [series::METRICS; REGISTRY.len() + 1];
    let mut index = 0;
    while index < REGISTRY.len() {
        metrics[index] = REGISTRY[index].metrics;
        index += 1;
    }
    metrics
};

/// The names of all collectors.
#[must_use]
pub fn names() -> Vec<&'static str> {
    REGISTRY.iter().map(|entry| entry.name).collect()
}

/// A collector's line in the registry.
pub struct Entry {
    /// Its name, in `tlbd_up` and in the configuration.
    pub name: &'static str,
    /// The question it answers, for `tlbd check`.
    pub answers: &'static str,
    /// The metrics it fills.
    pub metrics: &'static [&'static Metric],
    /// Starts it.
    pub open: fn(&Context) -> Result<Box<dyn Collector>, Unavailable>,
}

/// What there is to start with.
pub struct Context {
    /// The configuration.
    pub config: Config,
    /// The host's files.
    pub root: Root,
    /// The kernel's hooks.
    pub hooks: Hooks,
    /// The kernel's symbols.
    pub symbols: Result<Symbols, Unavailable>,
    /// Names of the TLB flush reasons.
    pub flush_reasons: Vec<String>,
    /// The clock sampler's period in nanoseconds and its CPUs.
    pub sampling: (u64, usize),
}

/// What a tick brings.
pub struct Tick<'a> {
    /// When the kernel's counts were taken, on a clock that never steps.
    pub now: Instant,
    /// What the kernel counted; `None` if it could not be read.
    pub drained: Option<&'a Drained>,
    /// Run statistics of the BPF programs.
    pub programs: &'a [ProgramRow],
    /// The shared context.
    pub context: &'a Context,
}

impl<'a> Tick<'a> {
    /// What the kernel counted.
    ///
    /// # Errors
    /// If it could not be read this time.
    pub fn drained(&self) -> anyhow::Result<&'a Drained> {
        self.drained
            .ok_or_else(|| anyhow::anyhow!("the BPF maps could not be read"))
    }
}

/// Fills a part of the view.
pub trait Collector: Send {
    /// Adds what this tick brought to the accounts and the view.
    ///
    /// # Errors
    /// If its part could not be filled; the reason is shown to people.
    fn collect(
        &mut self,
        tick: &Tick<'_>,
        accounts: &mut Accounts,
        view: &mut View,
    ) -> anyhow::Result<()>;
}
