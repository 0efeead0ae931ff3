//! CPU time of this process and of its threads.

use std::time::Duration;

/// CPU time of the whole process.
#[must_use]
pub fn process_cpu() -> Duration {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread.
#[must_use]
pub fn thread_cpu() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a whole timespec that the call fills in.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    match (
        result,
        u64::try_from(time.tv_sec),
        u32::try_from(time.tv_nsec),
    ) {
        (0, Ok(seconds), Ok(nanoseconds)) => Duration::new(seconds, nanoseconds),
        _ => Duration::ZERO,
    }
}
