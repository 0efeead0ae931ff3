//! Where facts come from: every kernel interface and all `unsafe` of the daemon.
//!
//! Two things are read: files, through [`root::Root`], and kernel events, through
//! [`KernelEvents`]. Both have a second implementation that reads a captured host, so the whole
//! daemon runs without root or BPF on a folder.

pub mod bpf;
pub mod capability;
pub mod capture;
pub mod cgroupfs;
pub mod clock;
pub mod cpu;
pub mod perf;
pub mod root;
pub mod tracefs;
pub mod unavailable;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tlbd_common::{FaultKey, FlushCount, FlushKey, Loss, SampleCount, SampleKey};

use crate::model::view::ProgramRow;
pub use unavailable::Unavailable;

/// What the kernel counted since the last time it was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drained {
    /// Samples by key.
    pub samples: Vec<(SampleKey, SampleCount)>,
    /// Kernel stacks of the samples, innermost frame first.
    pub stacks: HashMap<i64, Vec<u64>>,
    /// Page faults by key.
    pub faults: Vec<(FaultKey, u64)>,
    /// TLB flushes by key.
    pub flushes: Vec<(FlushKey, FlushCount)>,
    /// Births and deaths of cgroups, in order.
    pub changes: Vec<Change>,
    /// Losses since start, by [`Loss`]; empty without programs.
    pub losses: Vec<(Loss, u64)>,
}

/// A cgroup that was made or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Its id.
    pub id: u64,
    /// Its path from the root of the hierarchy, printable; `None` for a removal.
    pub made: Option<String>,
}

/// The hooks that [`KernelEvents`] may have, each there or not for a reason of its own.
#[derive(Debug, Clone)]
pub struct Hooks {
    /// The clock sampler.
    pub sampler: Result<(), Unavailable>,
    /// The page-fault tracepoints.
    pub faults: Result<(), Unavailable>,
    /// The TLB-flush tracepoint.
    pub flushes: Result<(), Unavailable>,
    /// The cgroup tracepoints.
    pub cgroups: Result<(), Unavailable>,
}

impl Hooks {
    /// No hook, all for the same reason.
    #[must_use]
    pub fn none(reason: &Unavailable) -> Self {
        let none = || Err(reason.clone());
        Self {
            sampler: none(),
            faults: none(),
            flushes: none(),
            cgroups: none(),
        }
    }
}

/// Counts from the kernel, or from a captured one.
pub trait KernelEvents: Send {
    /// Which hooks are there.
    fn hooks(&self) -> &Hooks;

    /// The names of the TLB flush reasons, by index.
    fn flush_reasons(&self) -> &[String];

    /// The clock sampler's period in nanoseconds, and the CPUs it runs on.
    fn sampling(&self) -> (u64, usize);

    /// Takes what was counted since the last call.
    ///
    /// # Errors
    /// If a map cannot be read; what was counted stays for the next call.
    fn drain(&mut self) -> anyhow::Result<Drained>;

    /// Every cgroup there is, id and printable path.
    ///
    /// # Errors
    /// If the hierarchy cannot be walked.
    fn cgroups(&self) -> Result<Vec<(u64, String)>, root::Error>;

    /// Run statistics of the programs, where they were asked for.
    fn programs(&self) -> Vec<ProgramRow>;
}
