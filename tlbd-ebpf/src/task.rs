//! Who runs on this CPU: the helper calls about the current task.

use aya_ebpf::helpers::{bpf_get_current_pid_tgid, generated::bpf_get_current_cgroup_id};

/// The v2 cgroup id of the current task, or `None` for the idle task, which is nobody's.
#[inline(always)]
pub(crate) fn busy_cgroup() -> Option<u64> {
    // The idle task of every CPU has thread id 0, and no other task has.
    (bpf_get_current_pid_tgid() != 0).then(cgroup)
}

/// The v2 cgroup id of the current task, idle or not.
#[inline(always)]
pub(crate) fn cgroup() -> u64 {
    // SAFETY: the helper takes no argument and every program type used here may call it.
    unsafe { bpf_get_current_cgroup_id() }
}
