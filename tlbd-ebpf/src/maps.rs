//! Every map and constant of the programs.
//!
//! The counting maps come in pairs. Programs write to the one that [`EPOCH`] names; each tick the
//! daemon turns the epoch, waits until no program can still hold the old one, and drains it at
//! leisure. So nothing is counted twice, and nothing falls between a read and a delete.
//! Capacities are set by the daemon at load; the ones here are the smallest that make sense.

use aya_ebpf::{
    Global,
    btf_maps::StackTrace,
    macros::{btf_map, map},
    maps::{Array, HashMap, PerCpuArray, PerCpuHashMap, RingBuf},
};
use tlbd_common::{
    CgroupEvent, FaultKey, FlushCount, FlushKey, Loss, STACK_FRAMES, SampleCount, SampleKey,
};

/// Which map of each pair is written to now: 0 or 1. Written by the daemon.
#[map]
pub(crate) static EPOCH: Array<u32> = Array::with_max_entries(1, 0);

/// Samples. One map for all CPUs: a CPU gives about a hundred samples a second, so contention is
/// rare, and a key's stack makes it too wide to hold once a CPU.
#[map]
pub(crate) static SAMPLES_0: HashMap<SampleKey, SampleCount> = HashMap::with_max_entries(1024, 0);
#[map]
pub(crate) static SAMPLES_1: HashMap<SampleKey, SampleCount> = HashMap::with_max_entries(1024, 0);

/// Kernel stacks of the samples of the same epoch, innermost frames first.
#[btf_map]
pub(crate) static STACKS_0: Stacks = StackTrace::new();
#[btf_map]
pub(crate) static STACKS_1: Stacks = StackTrace::new();
pub(crate) type Stacks = StackTrace<1024, 0, STACK_FRAMES>;

/// Page faults. Per CPU: one service may fault a million times a second on every CPU at once.
#[map]
pub(crate) static FAULTS_0: PerCpuHashMap<FaultKey, u64> = PerCpuHashMap::with_max_entries(1024, 0);
#[map]
pub(crate) static FAULTS_1: PerCpuHashMap<FaultKey, u64> = PerCpuHashMap::with_max_entries(1024, 0);

/// TLB flushes. Per CPU, as page faults.
#[map]
pub(crate) static FLUSHES_0: PerCpuHashMap<FlushKey, FlushCount> =
    PerCpuHashMap::with_max_entries(1024, 0);
#[map]
pub(crate) static FLUSHES_1: PerCpuHashMap<FlushKey, FlushCount> =
    PerCpuHashMap::with_max_entries(1024, 0);

/// What was given up, by [`Loss`].
#[map]
pub(crate) static LOSSES: PerCpuArray<u64> =
    PerCpuArray::with_max_entries(Loss::ALL.len() as u32, 0);

/// Births and deaths of cgroups, in order.
#[map]
pub(crate) static CGROUP_EVENTS: RingBuf = RingBuf::with_byte_size(1 << 18, 0);

/// Where a cgroup event is put together: it does not fit the BPF stack.
#[map]
pub(crate) static CGROUP_SCRATCH: PerCpuArray<CgroupEvent> = PerCpuArray::with_max_entries(1, 0);

/// Offset of `root` (the hierarchy's number) in `cgroup:cgroup_mkdir` and `_rmdir`.
#[unsafe(no_mangle)]
pub(crate) static CGROUP_ROOT: Global<u32> = Global::new(0);
/// Offset of `id` in the same.
#[unsafe(no_mangle)]
pub(crate) static CGROUP_ID: Global<u32> = Global::new(0);
/// Size of `id`: 8 bytes since 5.5, 4 before.
#[unsafe(no_mangle)]
pub(crate) static CGROUP_ID_SIZE: Global<u32> = Global::new(8);
/// Offset of `path`, a `__data_loc`, in the same.
#[unsafe(no_mangle)]
pub(crate) static CGROUP_PATH: Global<u32> = Global::new(0);

/// The epoch that programs write to now.
#[inline(always)]
pub(crate) fn epoch() -> u32 {
    EPOCH.get(0).copied().unwrap_or(0)
}

/// Counts one loss.
#[inline(always)]
pub(crate) fn lose(loss: Loss) {
    if let Some(count) = LOSSES.get_ptr_mut(loss as u32) {
        // SAFETY: the slot belongs to this CPU and lives as long as the map. An interrupt may
        // race with the addition; the counter may then miss one, and nothing else depends on it.
        unsafe { *count += 1 };
    }
}
