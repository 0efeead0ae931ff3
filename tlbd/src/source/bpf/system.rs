//! What the programs need of the system around them: its CPUs, its locked-memory limit, its RCU.

use std::time::Duration;

use crate::{
    model::cpu_list,
    source::{Unavailable, root::Root},
};

/// Time for programs under way to end where the kernel cannot be asked to wait for them.
const GRACE: Duration = Duration::from_millis(20);

/// The CPUs that are online: `/sys/devices/system/cpu/online`, such as `0-3,8`.
pub(super) fn online_cpus(root: &Root) -> Result<Vec<u32>, Unavailable> {
    const PATH: &str = "/sys/devices/system/cpu/online";
    let unusable = |error: String| Unavailable::File {
        path: PATH.into(),
        error,
    };
    let text = root
        .read_text(PATH)
        .map_err(|error| unusable(error.error.to_string()))?;
    cpu_list::parse(&text).ok_or_else(|| unusable(format!("not a CPU list: {text:?}")))
}

/// Waits until every program that started before this call has ended.
///
/// `membarrier(2)`'s global command is the kernel's `synchronize_rcu()`, and programs run inside
/// an RCU read section (`kernel/sched/membarrier.c`). Kernels with full dynticks refuse it.
pub(super) fn wait_for_programs() {
    const GLOBAL: libc::c_int = 1; // MEMBARRIER_CMD_GLOBAL
    // SAFETY: the command takes no pointer.
    if unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) } < 0 {
        std::thread::sleep(GRACE);
    }
}

/// Before Linux 5.11 BPF maps count as locked memory. Where the limit may not be raised, loading
/// fails later with its own message.
pub(super) fn allow_locked_memory() {
    let unlimited = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit is a whole value that lives through the call.
    let _ = unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const unlimited) };
}
