//! One overflow of a sampled event, as the sampler files it.

use crate::OVERFLOW_CGROUP;

/// What a sampled event stands for, apart from how a CPU encodes it.
///
/// A role is a small index, not a perf event number: the daemon picks the event for a role and
/// attaches the role's program to it, so the same BPF code serves every CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum Role {
    /// CPU time by the software clock `cpu-clock`; weights are nanoseconds.
    Clock = 0,
}

impl Role {
    /// Every sampled role, in index order.
    pub const ALL: [Self; 1] = [Self::Clock];

    /// The role of an index read from a map, if there is one.
    #[must_use]
    pub fn from_index(index: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|role| *role as u32 == index)
    }

    /// The value of the `event` label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clock => "cpu_clock",
        }
    }
}

/// The privilege level in which an event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum Mode {
    /// User mode.
    User = 0,
    /// Kernel mode.
    Kernel = 1,
}

impl Mode {
    /// Both modes, in index order.
    pub const ALL: [Self; 2] = [Self::User, Self::Kernel];

    /// The mode of an instruction address.
    ///
    /// On the 64-bit architectures Linux gives the upper half of the address space to the kernel
    /// (`Documentation/arch/x86/x86_64/mm.rst`, `Documentation/arch/arm64/memory.rst`), so the top
    /// bit decides without knowing the register layout. x86's emulated vsyscall page is the one
    /// user page above it; it can no longer be executed on current kernels.
    #[must_use]
    pub const fn of_address(address: u64) -> Self {
        if address >> 63 == 1 {
            Self::Kernel
        } else {
            Self::User
        }
    }

    /// The mode of an index read from a map, if there is one.
    #[must_use]
    pub fn from_index(index: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| *mode as u32 == index)
    }

    /// The value of the `mode` label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Kernel => "kernel",
        }
    }
}

/// The `stack` of a sample without a kernel stack.
pub const NO_STACK: i64 = -1;

/// Where a sample belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct SampleKey {
    /// Id of the task's cgroup in the v2 hierarchy.
    pub cgroup: u64,
    /// Sampled kernel instruction address; 0 in user mode.
    pub address: u64,
    /// Id in the stack map, or [`NO_STACK`].
    pub stack: i64,
    /// Index of the [`Role`].
    pub role: u32,
    /// Index of the [`Mode`].
    pub mode: u32,
}

const _: () = assert!(size_of::<SampleKey>() == 32);

impl SampleKey {
    /// The key that takes the count when the map has no room for this one: it keeps what the
    /// totals need (role and mode) and gives up whose and where.
    #[must_use]
    pub const fn overflow(self) -> Self {
        Self {
            cgroup: OVERFLOW_CGROUP,
            address: 0,
            stack: NO_STACK,
            ..self
        }
    }
}

/// What was sampled under one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct SampleCount {
    /// Number of samples.
    pub samples: u64,
    /// Sum of the samples' own periods, in the event's unit.
    pub weight: u64,
}

const _: () = assert!(size_of::<SampleCount>() == 16);

impl core::ops::AddAssign for SampleCount {
    fn add_assign(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.weight = self.weight.saturating_add(other.weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_address_bit_tells_kernel_from_user() {
        assert_eq!(Mode::of_address(0x0000_7fff_ffff_f000), Mode::User);
        assert_eq!(Mode::of_address(0xffff_ffff_8100_0000), Mode::Kernel);
        assert_eq!(Mode::of_address(0xffff_8000_0801_0000), Mode::Kernel); // arm64, 48-bit VA
    }

    #[test]
    fn an_overflowing_sample_keeps_its_role_and_mode() {
        let key = SampleKey {
            cgroup: 7,
            address: 1,
            stack: 2,
            role: 0,
            mode: Mode::Kernel as u32,
        };
        let overflow = key.overflow();
        assert_eq!(
            (overflow.cgroup, overflow.address, overflow.stack),
            (OVERFLOW_CGROUP, 0, NO_STACK)
        );
        assert_eq!((overflow.role, overflow.mode), (key.role, key.mode));
    }

    #[test]
    fn indices_read_back_as_what_they_were() {
        assert!(
            Role::ALL
                .into_iter()
                .all(|role| Role::from_index(role as u32) == Some(role))
        );
        assert!(
            Mode::ALL
                .into_iter()
                .all(|mode| Mode::from_index(mode as u32) == Some(mode))
        );
        assert_eq!(Mode::from_index(9), None);
    }
}
