//! One tick's answer: what every reader (scrape, page, capture) reads, and nothing else.
//!
//! A view is built once by the tick thread and never changed. An `Option` that is `None` and a
//! list that is empty mean "not measured here", never zero.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tlbd_common::{Access, FlushCount, Mode};

/// Everything that tlbd knows at one instant.
#[derive(Clone, Debug)]
pub struct View {
    /// Number of the tick that built this view, from 1.
    pub tick: u64,
    /// When its inputs were read.
    pub at: SystemTime,
    /// The machine.
    pub host: Host,
    /// Where hardware events come from.
    pub pmu: Pmu,
    /// Totals since start by cgroup, most expensive first; then `other`, `unknown` and `retired`
    /// where they hold anything.
    pub cgroups: Vec<CgroupRow>,
    /// Names of the kernel's TLB flush reasons, by index; empty without flush events.
    pub flush_reasons: Arc<[String]>,
    /// Kernel-mode totals since start by function, most expensive first; then `other`, `unknown`
    /// and `retired`.
    pub functions: Vec<FunctionRow>,
    /// The sampled events.
    pub events: Vec<EventRow>,
    /// What could not be filed where it belongs, since start.
    pub losses: Vec<LossRow>,
    /// Memory of each cgroup, by its own path in the memory hierarchy, biggest first.
    pub cgroup_memory: Vec<CgroupMemoryRow>,
    /// How long before this view that was read.
    pub cgroup_memory_age: Option<Duration>,
    /// `/proc/meminfo`, `/proc/vmstat` and the huge-page settings.
    pub memory: Option<HostMemory>,
    /// What the smaps reader has found so far.
    pub smaps: Option<Smaps>,
    /// Each collector's state, in registry order.
    pub collectors: Vec<CollectorRow>,
    /// Series that a bound kept back, by family group.
    pub folded: Vec<FoldedRow>,
    /// What tlbd itself costs.
    pub own: Own,
}

impl View {
    /// A view in which nothing was measured.
    #[must_use]
    pub fn empty(tick: u64, at: SystemTime) -> Self {
        Self {
            tick,
            at,
            host: Host::default(),
            pmu: Pmu::default(),
            cgroups: Vec::new(),
            flush_reasons: Arc::new([]),
            functions: Vec::new(),
            events: Vec::new(),
            losses: Vec::new(),
            cgroup_memory: Vec::new(),
            cgroup_memory_age: None,
            memory: None,
            smaps: None,
            collectors: Vec::new(),
            folded: Vec::new(),
            own: Own::default(),
        }
    }
}

/// The machine that tlbd runs on.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// CPU model name, empty where `/proc/cpuinfo` names none.
    pub cpu: String,
    /// CPUs that are sampled.
    pub cpus: usize,
}

/// Where hardware events come from, as the labels of `tlbd_pmu_info`.
#[derive(Clone, Debug, Default)]
pub struct Pmu {
    /// Name of the core PMU in sysfs, or `none`.
    pub name: String,
    /// Core microarchitecture, or `unknown`.
    pub microarch: String,
    /// `none` where no hardware event is counted.
    pub source: String,
    /// How walk cycles are to be read, or `absent`.
    pub walk_cycles: String,
    /// Why there are no hardware events, for people.
    pub reason: String,
}

/// A cgroup's totals since start.
#[derive(Clone, Debug, PartialEq)]
pub struct CgroupRow {
    /// Path from the root of the hierarchy, or one of [`OTHER`], [`UNKNOWN`], [`RETIRED`].
    pub cgroup: Arc<str>,
    /// What was counted for its tasks.
    pub counts: CgroupCounts,
}

/// Label of the live series that have no room of their own.
pub const OTHER: &str = "other";
/// Label of what belongs to an id or address without a name.
pub const UNKNOWN: &str = "unknown";
/// Label of the final totals of series that are no longer published: removed cgroups, and
/// functions and cgroups that others displaced. It jumps when a series joins it, so leave it out
/// of rates; with it the sum over a family equals all that was counted.
pub const RETIRED: &str = "retired";

/// Flush reasons that are told apart; the kernels of today have six.
pub const FLUSH_REASONS: usize = 8;

/// What is counted for the tasks of a cgroup, not of its descendants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupCounts {
    /// CPU time in nanoseconds, by [`Mode`].
    pub cpu_ns: [u64; Mode::ALL.len()],
    /// Page faults, by [`Mode`] and [`Access`].
    pub faults: [[u64; Access::ALL.len()]; Mode::ALL.len()],
    /// TLB flushes, by reason.
    pub flushes: [FlushCount; FLUSH_REASONS],
}

/// A kernel function's totals since start.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionRow {
    /// Folded name of the function, with its module in brackets; or `other`, `unknown`, `retired`.
    pub function: Arc<str>,
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// Callers of its heaviest sample in the last tick, innermost first; empty where it had none.
    pub callers: Vec<Arc<str>>,
}

/// A sampled event.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// Name of its role.
    pub event: &'static str,
    /// Samples taken since start.
    pub samples: u64,
    /// Its period, in the event's unit (nanoseconds for the clock).
    pub period: u64,
}

/// One way to lose precision.
#[derive(Clone, Debug, PartialEq)]
pub struct LossRow {
    /// What was counted.
    pub event: &'static str,
    /// Why it could not be filed where it belongs.
    pub reason: &'static str,
    /// How often, since start.
    pub count: u64,
}

/// A cgroup's memory, descendants included, as its `memory.stat` says.
#[derive(Clone, Debug, PartialEq)]
pub struct CgroupMemoryRow {
    /// Path in the hierarchy of the memory controller.
    pub cgroup: Arc<str>,
    /// The figures.
    pub memory: CgroupMemory,
}

/// Bytes from a `memory.stat`; a field that the kernel does not give is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupMemory {
    /// Anonymous memory, huge pages included (v2 `anon`, v1 `total_rss`).
    pub anon: Option<u64>,
    /// Page cache, shared memory included (v2 `file`, v1 `total_cache`).
    pub file: Option<u64>,
    /// Shared memory (v2 `shmem`, v1 `total_shmem`).
    pub shmem: Option<u64>,
    /// Anonymous memory in transparent huge pages (v2 `anon_thp`, v1 `total_rss_huge`).
    pub anon_huge: Option<u64>,
    /// Page cache in transparent huge pages (v2 `file_thp`).
    pub file_huge: Option<u64>,
    /// Shared memory in transparent huge pages (v2 `shmem_thp`).
    pub shmem_huge: Option<u64>,
    /// Page tables (v2 `pagetables`).
    pub page_tables: Option<u64>,
    /// Secondary page tables, such as a hypervisor's (v2 `sec_pagetables`).
    pub secondary_page_tables: Option<u64>,
}

/// The host's memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostMemory {
    /// Bytes from `/proc/meminfo`: kind and value.
    pub bytes: Vec<(&'static str, u64)>,
    /// The `thp_*` counters of `/proc/vmstat` without their prefix.
    pub thp_events: Vec<(String, u64)>,
    /// Chosen values in `/sys/kernel/mm/transparent_hugepage`: setting and value.
    pub thp_settings: Vec<(String, String)>,
}

/// What per-process `smaps_rollup` files say, by cgroup.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Smaps {
    /// The cgroups that were read, biggest anonymous memory first.
    pub cgroups: Vec<SmapsRow>,
    /// Processes that were not read, since start, by reason.
    pub skipped: Vec<(&'static str, u64)>,
    /// CPU time of the reading thread in nanoseconds, since start.
    pub cpu_ns: u64,
}

/// Sums over the processes of a cgroup.
#[derive(Clone, Debug, PartialEq)]
pub struct SmapsRow {
    /// Path in the hierarchy that samples use.
    pub cgroup: Arc<str>,
    /// Processes in the sums.
    pub processes: u64,
    /// Bytes by kind, in the order of [`SMAPS_KINDS`].
    pub bytes: [u64; SMAPS_KINDS.len()],
    /// How long before this view the oldest of the readings was taken.
    pub age: Duration,
}

/// What is summed from `smaps_rollup`: the label, and the kernel's name of the field.
pub const SMAPS_KINDS: [(&str, &str); 8] = [
    ("rss", "Rss"),
    ("anonymous", "Anonymous"),
    ("anonymous_huge", "AnonHugePages"),
    ("shmem_huge", "ShmemPmdMapped"),
    ("file_huge", "FilePmdMapped"),
    ("hugetlb_private", "Private_Hugetlb"),
    ("hugetlb_shared", "Shared_Hugetlb"),
    ("swap", "Swap"),
];

/// A collector's state.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectorRow {
    /// Its name.
    pub collector: &'static str,
    /// Whether it gave its share of this view.
    pub up: bool,
    /// Why not, and what would mend it; empty when up.
    pub reason: String,
    /// Seconds that it took this tick.
    pub seconds: f64,
}

/// Series that a bound kept back.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldedRow {
    /// Which group of families: `cgroup`, `function` or `cgroup_memory`.
    pub family: &'static str,
    /// Members that have series of their own now.
    pub series: u64,
    /// Members folded since start: into `retired` when displaced, or left out.
    pub folded: u64,
}

/// What tlbd itself costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Own {
    /// CPU time of the process, all threads, in seconds.
    pub cpu_seconds: f64,
    /// Resident memory in bytes.
    pub resident_bytes: u64,
    /// Run statistics of the BPF programs, where they were asked for.
    pub programs: Vec<ProgramRow>,
}

/// A BPF program's run statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramRow {
    /// Its name.
    pub program: String,
    /// Nanoseconds that it ran.
    pub run_ns: u64,
    /// Times that it ran.
    pub runs: u64,
}
