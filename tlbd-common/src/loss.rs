//! Why a BPF program may have to give something up.

/// An index into the loss counters; each is exported, none is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum Loss {
    /// No room for a sample's key: counted under the overflow key.
    SampleMapFull = 0,
    /// No room for a page fault's key: counted under the overflow key.
    FaultMapFull = 1,
    /// No room for a TLB flush's key: counted under the overflow key.
    FlushMapFull = 2,
    /// A kernel stack was not kept: the sample is counted without it.
    StackNotKept = 3,
    /// A cgroup's birth or death was not announced: the next scan of the hierarchy finds it.
    CgroupRingFull = 4,
}

impl Loss {
    /// Every loss, in index order.
    pub const ALL: [Self; 5] = [
        Self::SampleMapFull,
        Self::FaultMapFull,
        Self::FlushMapFull,
        Self::StackNotKept,
        Self::CgroupRingFull,
    ];

    /// The `event` and `reason` labels of `tlbd_samples_lost_total`.
    #[must_use]
    pub const fn labels(self) -> (&'static str, &'static str) {
        match self {
            Self::SampleMapFull => ("sample", "map_full"),
            Self::FaultMapFull => ("page_fault", "map_full"),
            Self::FlushMapFull => ("tlb_flush", "map_full"),
            Self::StackNotKept => ("sample", "stack_not_kept"),
            Self::CgroupRingFull => ("cgroup_change", "ring_full"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_listed_in_index_order() {
        assert!(
            Loss::ALL
                .iter()
                .enumerate()
                .all(|(index, loss)| *loss as usize == index)
        );
    }
}
