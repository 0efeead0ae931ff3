//! The plain data that the BPF programs write and the daemon reads.
//!
//! Both sides compile these types, so every one is `repr(C)` without implicit padding (asserted
//! below each), and every decision with a branch worth testing is a pure function here rather
//! than code in a BPF program.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod cgroup;
mod fault;
mod flush;
mod loss;
mod sample;

pub use cgroup::{CGROUP_PATH_MAX, CgroupChange, CgroupEvent, DEFAULT_HIERARCHY};
pub use fault::{Access, FaultKey};
pub use flush::{FULL_FLUSH, FlushCount, FlushKey};
pub use loss::Loss;
pub use sample::{Mode, NO_STACK, Role, SampleCount, SampleKey};

/// The cgroup id of a key's last resort: where a map is full, the count goes here.
///
/// No kernel hands this id out: ids are 32 bit inode numbers with a generation on top.
pub const OVERFLOW_CGROUP: u64 = u64::MAX;

/// Frames kept of a kernel stack: deeper ones lose their outermost frames. Every place in a stack
/// map has room for so many, used or not, so a bound below the kernel's own (127) leaves room for
/// more stacks.
pub const STACK_FRAMES: usize = 64;
