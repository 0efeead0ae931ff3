//! The questions that events answer. An event is always asked for by its role, never by its name.

use std::{fmt, str::FromStr};

/// What an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Unhalted core cycles.
    Cycles,
    /// Retired instructions.
    Instructions,
    /// Cycles of page walks; see [`Reading`](super::Reading).
    WalkCycles(Access),
    /// Page walks, all or of one page size.
    Walks(Access, Option<Size>),
    /// First-level misses that hit the second level.
    StlbHits(Access),
    /// Cycles of the nested (EPT) part of walks.
    NestedWalkCycles,
    /// Retired instructions that missed, for precise samples.
    PreciseMiss(Access),
    /// TLB flushes.
    TlbFlush,
}

/// Which side of the core wants a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Data loads.
    Load,
    /// Data stores.
    Store,
    /// Loads and stores, where the CPU does not tell them apart.
    Data,
    /// Instruction fetches.
    Instruction,
}

/// The page size that a walk ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    /// 4 KiB.
    K4,
    /// 4 KiB pages that the CPU joined.
    Coalesced,
    /// 32 KiB of joined pages.
    K32,
    /// Below 2 MiB.
    Small,
    /// 2 MiB, or 4 MiB.
    M2,
    /// 1 GiB.
    G1,
    /// Over 4 KiB; on Arm 2 MiB or over.
    Large,
}

const ACCESSES: [(Access, &str); 4] = [
    (Access::Load, "load"),
    (Access::Store, "store"),
    (Access::Data, "data"),
    (Access::Instruction, "instruction"),
];

const SIZES: [(Size, &str); 7] = [
    (Size::K4, "4k"),
    (Size::Coalesced, "coalesced"),
    (Size::K32, "32k"),
    (Size::Small, "small"),
    (Size::M2, "2m"),
    (Size::G1, "1g"),
    (Size::Large, "large"),
];

fn name<T: PartialEq + Copy>(names: &[(T, &'static str)], value: T) -> &'static str {
    let found = names.iter().find(|(candidate, _)| *candidate == value);
    found.map_or("", |(_, name)| name)
}

fn value<T: Copy>(names: &[(T, &str)], text: &str) -> Option<T> {
    let found = names.iter().find(|(_, name)| *name == text);
    found.map(|(value, _)| *value)
}

impl Access {
    /// Its name, as a label's value.
    #[must_use]
    pub fn name(self) -> &'static str {
        name(&ACCESSES, self)
    }
}

impl Size {
    /// Its name, as a label's value.
    #[must_use]
    pub fn name(self) -> &'static str {
        name(&SIZES, self)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycles => f.write_str("cycles"),
            Self::Instructions => f.write_str("instructions"),
            Self::WalkCycles(access) => write!(f, "walk_cycles.{}", access.name()),
            Self::Walks(access, None) => write!(f, "walks.{}", access.name()),
            Self::Walks(access, Some(size)) => {
                write!(f, "walks.{}.{}", access.name(), size.name())
            }
            Self::StlbHits(access) => write!(f, "stlb_hits.{}", access.name()),
            Self::NestedWalkCycles => f.write_str("nested_walk_cycles"),
            Self::PreciseMiss(access) => write!(f, "precise_miss.{}", access.name()),
            Self::TlbFlush => f.write_str("tlb_flush"),
        }
    }
}

/// A role that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no role is called {0:?}; roles: cycles, instructions, walk_cycles.ACCESS, \
     walks.ACCESS[.SIZE], stlb_hits.ACCESS, nested_walk_cycles, precise_miss.ACCESS, tlb_flush; \
     ACCESS: load, store, data, instruction; SIZE: 4k, coalesced, 32k, small, 2m, 1g, large"
)]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        let mut parts = text.split('.');
        let kind = parts.next().unwrap_or_default();
        let rest: Vec<&str> = parts.collect();
        let access = |text| value(&ACCESSES, text);
        let role = match (kind, rest.as_slice()) {
            ("cycles", []) => Some(Self::Cycles),
            ("instructions", []) => Some(Self::Instructions),
            ("nested_walk_cycles", []) => Some(Self::NestedWalkCycles),
            ("tlb_flush", []) => Some(Self::TlbFlush),
            ("walk_cycles", [side]) => access(side).map(Self::WalkCycles),
            ("stlb_hits", [side]) => access(side).map(Self::StlbHits),
            ("precise_miss", [side]) => access(side).map(Self::PreciseMiss),
            ("walks", [side]) => access(side).map(|access| Self::Walks(access, None)),
            ("walks", [side, size]) => access(side)
                .zip(value(&SIZES, size))
                .map(|(access, size)| Self::Walks(access, Some(size))),
            _ => None,
        };
        role.ok_or_else(|| UnknownRole(text.chars().take(64).collect()))
    }
}

impl TryFrom<String> for Role {
    type Error = UnknownRole;

    fn try_from(text: String) -> Result<Self, UnknownRole> {
        text.parse()
    }
}
