//! Cleans up after a run, however it ends: the process the user started only waits for a copy of
//! itself that measures, and then removes the cgroups.

#![allow(unsafe_code, reason = "signals are handled by system calls")]

use std::{
    env, io,
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
    sync::atomic::{AtomicI32, Ordering},
};

use crate::cgroups;

/// Makes the process the one that measures; the name of its base cgroup follows.
pub const FLAG: &str = "--measure-under";

static MEASURER: AtomicI32 = AtomicI32::new(0);

pub fn watch(names: &[&str]) -> ExitCode {
    let base = format!("tlbd-bench-{}", std::process::id());
    let status = measurer(&base, names).and_then(|mut child| {
        MEASURER.store(child.id() as i32, Ordering::Relaxed);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let handler = stop_measurer as extern "C" fn(i32);
            // SAFETY: the handler only loads an atomic and calls kill, which it may.
            unsafe { libc::signal(signal, handler as libc::sighandler_t) };
        }
        child.wait()
    });
    cgroups::clean(&base);
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(status) => {
            eprintln!("bench: ended early: {status}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("bench: cannot run itself: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measurer(base: &str, names: &[&str]) -> io::Result<std::process::Child> {
    let mut command = Command::new(env::current_exe()?);
    dies_with_parent(&mut command, libc::SIGTERM);
    command.arg(FLAG).arg(base).args(names).spawn()
}

extern "C" fn stop_measurer(_: i32) {
    // SAFETY: only signals the child, which has not been waited for while handlers matter.
    unsafe { libc::kill(MEASURER.load(Ordering::Relaxed), libc::SIGTERM) };
}

/// Has the kernel send the child a signal when the thread that starts it ends.
pub fn dies_with_parent(command: &mut Command, signal: i32) {
    // SAFETY: prctl is a plain system call that may be made between fork and exec.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, signal);
            Ok(())
        });
    }
}
