//! The birth and death of a cgroup, as the kernel announces it.

/// Longest cgroup path that the tracepoint carries (`TRACE_CGROUP_PATH_LEN`,
/// `kernel/cgroup/cgroup-internal.h`), its terminating zero included.
pub const CGROUP_PATH_MAX: usize = 1024;

/// The hierarchy number of cgroup v2: `cgrp_dfl_root` is the first root the kernel makes.
pub const DEFAULT_HIERARCHY: u32 = 0;

/// What happened to a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CgroupChange {
    /// Its directory was made.
    Made = 0,
    /// Its directory was removed.
    Removed = 1,
}

/// One record of the cgroup ring buffer; the record is cut after `length` bytes of path.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CgroupEvent {
    /// Id in the v2 hierarchy.
    pub id: u64,
    /// A [`CgroupChange`].
    pub change: u32,
    /// Bytes of `path` in use.
    pub length: u32,
    /// Path from the root of the hierarchy; any bytes but zero.
    pub path: [u8; CGROUP_PATH_MAX],
}

const _: () = assert!(size_of::<CgroupEvent>() == 16 + CGROUP_PATH_MAX);

impl CgroupEvent {
    /// Bytes of a record before its path.
    pub const HEADER: usize = 16;
}
