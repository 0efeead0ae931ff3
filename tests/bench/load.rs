//! Loads as the measurements see them: copies of this program that do known work.

use std::{
    env,
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::Context as _;

use crate::{account, janitor, work};

/// Where a load runs if no cgroup is named: where the benchmark runs.
pub const HERE: &str = "-";

/// Longest that a load of no fixed work goes on, should nobody end it.
const AT_MOST: &str = "200";

/// A running load; killed at the end.
pub struct Load(Child);

impl Load {
    /// Starts a kind of [`work`] that goes on until it is dropped.
    pub fn start(cgroup: &str, kind: &str) -> anyhow::Result<Self> {
        Self::with(cgroup, kind, &[AT_MOST])
    }

    /// One on each CPU.
    pub fn on_each_cpu(cpus: usize, kind: &str) -> anyhow::Result<Vec<Self>> {
        (0..cpus).map(|_| Self::start(HERE, kind)).collect()
    }

    pub fn with(cgroup: &str, kind: &str, arguments: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.args([work::FLAG, cgroup, kind]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        janitor::dies_with_parent(&mut command, libc::SIGKILL);
        own_session(&mut command);
        Ok(Self(
            command
                .spawn()
                .with_context(|| format!("starting the load {kind}"))?,
        ))
    }

    /// Waits for a load of fixed work; gives the CPU time of its whole life.
    pub fn finish(mut self) -> anyhow::Result<Duration> {
        let time = account::wait(&mut self.0)?;
        // Waited for: its id may be another process's from now on, so it must not be killed.
        std::mem::forget(self);
        Ok(time)
    }
}

/// As a service is. Under one session's autogroup, pairs that wake each other can keep everything
/// outside it from running for seconds, the kernel's own RCU thread included (seen on 6.18).
fn own_session(command: &mut Command) {
    // SAFETY: setsid is a plain system call that may be made between fork and exec.
    #[allow(unsafe_code, reason = "there is no safe way to ask for it")]
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            Ok(())
        });
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
