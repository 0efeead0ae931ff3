//! Perf events: opening them, and hanging a BPF program on one.
//!
//! aya's own attach knows neither exclude bits nor groups, and uses a BPF link, which kernels
//! before 5.15 do not make for perf events; so the events are opened here and the program is set
//! with the older ioctl, which every kernel has.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
};

use perf_event_open_sys::{
    bindings::{
        PERF_COUNT_SW_CPU_CLOCK, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT,
        perf_event_attr,
    },
    ioctls, perf_event_open,
};

/// Opens the clock that ticks every `period` nanoseconds while its CPU is not idle.
///
/// # Errors
/// If the kernel refuses: `EACCES` or `EPERM` without CAP_PERFMON.
pub fn clock(cpu: u32, period: u64) -> io::Result<OwnedFd> {
    let mut attr = of_type(PERF_TYPE_SOFTWARE);
    attr.config = u64::from(PERF_COUNT_SW_CPU_CLOCK);
    attr.__bindgen_anon_1.sample_period = period;
    attr.set_exclude_idle(1);
    open(&mut attr, cpu)
}

/// Opens a tracepoint by the id in its tracefs folder. One event on one CPU is enough: programs
/// on a tracepoint run on all of them.
///
/// # Errors
/// If the kernel refuses: `EACCES` or `EPERM` without CAP_PERFMON.
pub fn tracepoint(id: u64, cpu: u32) -> io::Result<OwnedFd> {
    let mut attr = of_type(PERF_TYPE_TRACEPOINT);
    attr.config = id;
    attr.__bindgen_anon_1.sample_period = 1;
    open(&mut attr, cpu)
}

fn of_type(kind: u32) -> perf_event_attr {
    let mut attr = perf_event_attr::default();
    attr.type_ = kind;
    attr.size = u32::try_from(size_of::<perf_event_attr>()).unwrap_or_default();
    attr.set_disabled(1);
    attr
}

fn open(attr: &mut perf_event_attr, cpu: u32) -> io::Result<OwnedFd> {
    let cpu = i32::try_from(cpu).map_err(io::Error::other)?;
    let flags = u64::from(PERF_FLAG_FD_CLOEXEC);
    // SAFETY: `attr` is a whole attribute with its own size in it, and lives through the call.
    let fd = unsafe { perf_event_open(attr, -1, cpu, -1, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call just made this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Hangs a loaded program on an event and starts the event.
///
/// # Errors
/// If the kernel refuses the program for this event.
pub fn attach(event: &OwnedFd, program: BorrowedFd<'_>) -> io::Result<()> {
    let program = u32::try_from(program.as_raw_fd()).map_err(io::Error::other)?;
    // SAFETY: both descriptors are open; the ioctl takes a descriptor by value.
    check(unsafe { ioctls::SET_BPF(event.as_raw_fd(), program) })?;
    // SAFETY: the descriptor is an open perf event; the ioctl takes a flag.
    check(unsafe { ioctls::ENABLE(event.as_raw_fd(), 0) })
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
