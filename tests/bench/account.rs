//! The kernel's accounts of processes and of the machine.

#![allow(unsafe_code, reason = "accounts are asked for by system calls")]

use std::{fs, io, process::Child, time::Duration};

use anyhow::Context as _;

/// CPU time of a process and all threads it has or had, to the nanosecond: what `/proc/PID/stat`
/// gives in hundredths of a second as user and system time together.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut clock = 0;
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: `clock` is a whole clockid_t that the call fills in.
    match unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } {
        0 => {}
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a whole timespec that the call fills in.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    ))
}

/// User and system CPU time of a process in seconds, from `/proc/PID/stat`.
pub fn user_system(pid: u32) -> anyhow::Result<(f64, f64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = text
        .rsplit_once(") ")
        .context("no name in /proc/PID/stat")?;
    let mut fields = fields.split(' ').skip(11).map(|field| field.parse::<f64>());
    let mut next = || anyhow::Ok(fields.next().context("a short /proc/PID/stat")?? / 100.0);
    Ok((next()?, next()?))
}

/// CPU time of a process's first thread.
pub fn first_thread(pid: u32) -> anyhow::Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat"))?;
    let nanoseconds = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// A field of `/proc/PID/status` in MiB.
pub fn status_mib(pid: u32, field: &str) -> anyhow::Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let value = value.with_context(|| format!("no {field} in /proc/{pid}/status"))?;
    let kib: f64 = value.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}

/// CPU time that all CPUs have spent on anything since boot, in seconds.
pub fn machine_busy() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .flat_map(str::parse)
        .collect();
    // user nice system - - irq softirq
    Ok([0, 1, 2, 5, 6]
        .iter()
        .filter_map(|&at| ticks.get(at))
        .sum::<f64>()
        / 100.0)
}

/// Waits for a child; gives the CPU time of its whole life, its own children's included.
pub fn wait(child: &mut Child) -> io::Result<Duration> {
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: zeros are a whole rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both places are whole and the call fills them in.
        if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(duration(usage.ru_utime) + duration(usage.ru_stime))
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_usec).unwrap_or(0) * 1000,
    )
}

pub fn signal(child: &Child, signal: i32) {
    if let Ok(pid) = libc::pid_t::try_from(child.id()) {
        // SAFETY: the child has not been waited for, so the id is still its own.
        unsafe { libc::kill(pid, signal) };
    }
}
