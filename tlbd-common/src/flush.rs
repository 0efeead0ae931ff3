//! TLB flushes, by the cgroup that ran and the kernel's reason.

use crate::OVERFLOW_CGROUP;

/// The `pages` of a flush that empties the whole TLB (`TLB_FLUSH_ALL`,
/// `arch/x86/include/asm/tlbflush.h`): a marker, not a number of pages.
pub const FULL_FLUSH: u64 = u64::MAX;

/// Where a flush belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct FlushKey {
    /// Id of the cgroup of the task that ran while its CPU flushed: for a remote shootdown the
    /// one that was interrupted, for a sent IPI the one that caused it.
    pub cgroup: u64,
    /// `enum tlb_flush_reason` of the running kernel; its names are in tracefs.
    pub reason: u32,
    /// Always 0: keys are compared byte for byte.
    pub zero: u32,
}

const _: () = assert!(size_of::<FlushKey>() == 16);

impl FlushKey {
    /// The key of a flush.
    #[must_use]
    pub const fn new(cgroup: u64, reason: u32) -> Self {
        Self {
            cgroup,
            reason,
            zero: 0,
        }
    }

    /// The key that takes the count when the map is full.
    #[must_use]
    pub const fn overflow(self) -> Self {
        Self {
            cgroup: OVERFLOW_CGROUP,
            ..self
        }
    }
}

/// What was flushed under one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct FlushCount {
    /// Flushes of either kind.
    pub flushes: u64,
    /// Flushes of the whole TLB among them.
    pub full: u64,
    /// Pages flushed one by one by the others.
    pub pages: u64,
}

const _: () = assert!(size_of::<FlushCount>() == 24);

impl FlushCount {
    /// One flush of `pages` pages, or of everything if `pages` is [`FULL_FLUSH`].
    #[must_use]
    pub const fn one(pages: u64) -> Self {
        if pages == FULL_FLUSH {
            Self {
                flushes: 1,
                full: 1,
                pages: 0,
            }
        } else {
            Self {
                flushes: 1,
                full: 0,
                pages,
            }
        }
    }
}

impl core::ops::AddAssign for FlushCount {
    fn add_assign(&mut self, other: Self) {
        self.flushes = self.flushes.saturating_add(other.flushes);
        self.full = self.full.saturating_add(other.full);
        self.pages = self.pages.saturating_add(other.pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_flush_is_not_two_to_the_64_pages() {
        let mut count = FlushCount::one(FULL_FLUSH);
        count += FlushCount::one(3);
        assert_eq!(
            count,
            FlushCount {
                flushes: 2,
                full: 1,
                pages: 3
            }
        );
    }
}
