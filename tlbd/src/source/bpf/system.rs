//! What the programs need of the system around them: its CPUs, its locked-memory limit, its RCU.

use std::{
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

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

/// Waits, on a thread of its own, until every program that started before this call has ended;
/// the receiver hears of it.
///
/// `membarrier(2)`'s global command is the kernel's `synchronize_rcu()`, and programs run inside
/// an RCU read section (`kernel/sched/membarrier.c`). That takes some 10 ms, but has no bound: on
/// a busy machine the kernel's RCU thread may wait for a CPU for seconds.
pub(super) fn programs_ended() -> Receiver<()> {
    let (ended, heard) = mpsc::channel();
    let wait = move || {
        wait_for_programs();
        // Nobody listens any more when tlbd stops.
        let _ = ended.send(());
    };
    // Without a thread the sender is dropped, which is heard too.
    if thread::Builder::new()
        .name("tlbd-rcu".into())
        .spawn(wait)
        .is_err()
    {
        wait_for_programs();
    }
    heard
}

/// Kernels with full dynticks refuse the command.
fn wait_for_programs() {
    const GLOBAL: libc::c_int = 1; // MEMBARRIER_CMD_GLOBAL
    // SAFETY: the command takes no pointer.
    if unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) } < 0 {
        thread::sleep(GRACE);
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
