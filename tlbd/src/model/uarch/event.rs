//! One hardware event: its fields as the vendor writes them, how to read it, and its encoding.

use serde::{Deserialize, Serialize};

use super::cpu::Span;

/// How the fields of an event become `perf_event_attr.config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Event 0-7, umask 8-15, edge 18, any 21, inv 23, cmask 24-31, umask extension 40-47.
    Intel,
    /// Event 0-7 and 32-35, umask 8-15, edge 18, inv 23, cmask 24-31.
    Amd,
    /// The event number, 16 bits.
    Arm,
}

impl Layout {
    /// The PMU in sysfs, where a model names no other; on Arm what its name begins with.
    #[must_use]
    pub fn pmu(self) -> &'static str {
        match self {
            Self::Intel | Self::Amd => "cpu",
            Self::Arm => "armv8_pmuv3",
        }
    }

    /// The largest event number that its bits hold.
    pub(super) fn event_max(self) -> u32 {
        match self {
            Self::Intel => 0xff,
            Self::Amd => 0xfff,
            Self::Arm => 0xffff,
        }
    }
}

/// The kind of `perf_event_attr.type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PerfType {
    /// The PMU's own number from sysfs; `PERF_TYPE_RAW` on x86 that is not hybrid.
    #[default]
    Raw,
    /// `PERF_TYPE_HARDWARE`: one of the kernel's generic events.
    Hardware,
    /// `PERF_TYPE_HW_CACHE`: one of the kernel's generic cache events.
    HwCache,
}

/// How walk cycles are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Cycles with at least one walk in flight.
    Active,
    /// Walks in flight, added up every cycle: may exceed cycles.
    Pending,
    /// Cycles that a page miss handler is busy.
    Duration,
    /// Something near: stall cycles, labelled wherever they are shown.
    Proxy,
}

/// Which walks are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// Walks that ended, with a translation or a fault.
    Completed,
    /// Walks that began.
    Started,
    /// AMD: second-level misses that ask for a walk.
    Requested,
    /// Arm: what the architecture's `DTLB_WALK` and `ITLB_WALK` count.
    Architected,
    /// Whatever the kernel's generic event counts on this CPU.
    Unspecified,
}

/// Whether walk cycles contain the nested (EPT) part of walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nested {
    /// They do, by the vendor's text.
    Included,
    /// They do not, by the vendor's text.
    Excluded,
    /// The vendor does not say.
    Unstated,
}

/// A hardware event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The vendor's name.
    pub name: String,
    /// What kind of event the kernel is asked for.
    #[serde(default, rename = "type")]
    pub perf_type: PerfType,
    /// Event number; for the generic types the whole config.
    pub event: u32,
    /// Which of the event's sub-events.
    #[serde(default)]
    pub umask: u8,
    /// Intel's `UMaskExt`: only where the PMU's format has config bits 40-47 for it.
    #[serde(default)]
    pub umask_ext: u8,
    /// Count cycles with at least so many, instead of occurrences.
    #[serde(default)]
    pub cmask: u8,
    /// Turn the comparison with `cmask` round.
    #[serde(default)]
    pub inv: bool,
    /// Count rising edges.
    #[serde(default)]
    pub edge: bool,
    /// Count for all threads of the core (old Intel cores).
    #[serde(default)]
    pub any: bool,
    /// `perf_event_attr.config1`: the value of an extra register.
    #[serde(default)]
    pub config1: u64,
    /// Where the vendor lists no such total: the events whose umasks are joined for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub union_of: Vec<String>,
    /// How its cycles are to be read; of walk cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
    /// Which walks it counts; of walks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Whether nested time is in it; of walk cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested: Option<Nested>,
    /// Has a fixed counter of its own.
    #[serde(default)]
    pub fixed: bool,
    /// The general counters that can count it; `None` where the vendor names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Span>,
    /// The same with hyper-threading off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters_smt_off: Option<Span>,
    /// Whether its precise record has the data address; of precise misses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_address: Option<bool>,
    /// Errata that the vendor names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errata: Vec<String>,
    /// What to know about this event alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
}

/// What `perf_event_open` wants of an event, without its type's number and the user and kernel
/// flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// What kind of type.
    pub perf_type: PerfType,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `perf_event_attr.config1`.
    pub config1: u64,
}

impl Event {
    /// Its encoding (`arch/x86/include/asm/perf_event.h`, `drivers/perf/arm_pmuv3.c`).
    #[must_use]
    pub fn encoding(&self, layout: Layout) -> Encoding {
        let event = u64::from(self.event);
        let config = match (self.perf_type, layout) {
            (PerfType::Hardware | PerfType::HwCache, _) | (PerfType::Raw, Layout::Arm) => event,
            (PerfType::Raw, Layout::Intel) => {
                event
                    | self.shared_x86_fields()
                    | u64::from(self.any) << 21
                    | u64::from(self.umask_ext) << 40
            }
            (PerfType::Raw, Layout::Amd) => {
                (event & 0xff) | (event >> 8 & 0xf) << 32 | self.shared_x86_fields()
            }
        };
        Encoding {
            perf_type: self.perf_type,
            config,
            config1: self.config1,
        }
    }

    fn shared_x86_fields(&self) -> u64 {
        u64::from(self.umask) << 8
            | u64::from(self.edge) << 18
            | u64::from(self.inv) << 23
            | u64::from(self.cmask) << 24
    }

    /// Whether a field beyond the event's number is set.
    pub(super) fn has_fields(&self) -> bool {
        self.shared_x86_fields() != 0 || self.any || self.umask_ext != 0
    }
}
