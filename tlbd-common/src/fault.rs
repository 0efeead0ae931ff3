//! Page faults, by whom they hit and what the access was.

use crate::{Mode, OVERFLOW_CGROUP};

/// What the faulting instruction wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum Access {
    /// A data read.
    Load = 0,
    /// A data write.
    Store = 1,
    /// An instruction fetch.
    Instruction = 2,
}

impl Access {
    /// Every access, in index order.
    pub const ALL: [Self; 3] = [Self::Load, Self::Store, Self::Instruction];

    /// Reads x86's page-fault error code: bit 1 is a write, bit 4 an instruction fetch
    /// (Intel SDM volume 3A, 5.7; `X86_PF_WRITE` and `X86_PF_INSTR` in
    /// `arch/x86/include/asm/trap_pf.h`).
    #[must_use]
    pub const fn of_error_code(code: u64) -> Self {
        if code & (1 << 4) != 0 {
            Self::Instruction
        } else if code & (1 << 1) != 0 {
            Self::Store
        } else {
            Self::Load
        }
    }

    /// The access of an index read from a map, if there is one.
    #[must_use]
    pub fn from_index(index: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|access| *access as u32 == index)
    }

    /// The value of the `access` label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Instruction => "instruction",
        }
    }
}

/// Where a page fault belongs; its value is a plain count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct FaultKey {
    /// Id of the faulting task's cgroup.
    pub cgroup: u64,
    /// Index of the [`Mode`] the fault came from.
    pub mode: u32,
    /// Index of the [`Access`].
    pub access: u32,
}

const _: () = assert!(size_of::<FaultKey>() == 16);

impl FaultKey {
    /// The key of a fault with this error code.
    #[must_use]
    pub const fn new(cgroup: u64, mode: Mode, error_code: u64) -> Self {
        Self {
            cgroup,
            mode: mode as u32,
            access: Access::of_error_code(error_code) as u32,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_code_names_the_access() {
        assert_eq!(Access::of_error_code(0x4), Access::Load); // user read, not present
        assert_eq!(Access::of_error_code(0x6), Access::Store); // user write, not present
        assert_eq!(Access::of_error_code(0x7), Access::Store); // user write, copy on write
        assert_eq!(Access::of_error_code(0x14), Access::Instruction); // user fetch, not present
    }
}
