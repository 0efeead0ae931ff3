//! The host side of a privileged test: cgroups, loads, the turn to use the machine.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use crate::support::skip;

static TURN: Mutex<()> = Mutex::new(());

/// The turn to use the machine; `None` if this machine cannot run privileged tests, which is
/// then reported as skipped.
pub(crate) fn turn() -> Option<MutexGuard<'static, ()>> {
    // SAFETY: the call has no argument and cannot fail.
    #[allow(unsafe_code, reason = "there is no safe way to ask")]
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        skip("needs root");
        return None;
    }
    if unified().is_none() {
        skip("needs a cgroup v2 mount");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

fn unified() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4).map(PathBuf::from)
}

/// A fresh cgroup in the v2 hierarchy; removed at the end.
pub(crate) struct Cgroup {
    pub(crate) folder: PathBuf,
    pub(crate) path: String,
}

impl Cgroup {
    pub(crate) fn new(name: &str) -> Self {
        let path = format!("/tlbd-test-{}-{name}", std::process::id());
        let folder = unified().unwrap().join(path.trim_start_matches('/'));
        fs::create_dir(&folder).unwrap();
        Self { folder, path }
    }

    /// CPU time by the kernel's own account, in seconds: all, user, system.
    pub(crate) fn cpu_stat(&self) -> (f64, f64, f64) {
        let text = fs::read_to_string(self.folder.join("cpu.stat")).unwrap();
        let field = |name| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap();
            line.trim().parse::<f64>().unwrap() / 1e6
        };
        (
            field("usage_usec"),
            field("user_usec"),
            field("system_usec"),
        )
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Its last process may still be on its way out.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() || !self.folder.exists() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A running load (`tests/load.rs`); killed at the end.
pub(crate) struct Load {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Load {
    pub(crate) fn start(cgroup: &Cgroup, arguments: &[&str]) -> Self {
        let mut child = Command::new(program())
            .arg(&cgroup.folder)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the load runs");
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
        }
    }

    /// Waits for a line that starts with `name`, and gives what was printed until then.
    pub(crate) fn until(&mut self, name: &str) -> HashMap<String, u64> {
        let mut said = HashMap::new();
        while !said.contains_key(name) {
            let mut line = String::new();
            assert_ne!(
                self.output.read_line(&mut line).unwrap(),
                0,
                "the load ended before {name}"
            );
            let (key, value) = line.trim().split_once(' ').unwrap();
            said.insert(key.to_owned(), value.parse().unwrap());
        }
        said
    }

    pub(crate) fn go_on(&mut self) {
        self.input.write_all(b"\n").unwrap();
    }

    pub(crate) fn finish(mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Cargo builds examples beside the binary when it builds the tests.
pub(crate) fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_tlbd"))
        .with_file_name("examples")
        .join("load");
    assert!(
        program.exists(),
        "{} is missing: cargo build --example load",
        program.display()
    );
    program
}

/// Whether `value` is within `tolerance` (relative) of `truth`; prints both.
pub(crate) fn within(what: &str, value: f64, truth: f64, tolerance: f64) -> bool {
    let error = value / truth - 1.0;
    println!(
        "{what}: {value:.4}, truth {truth:.4}, off by {:+.2} %",
        error * 100.0
    );
    error.abs() <= tolerance
}
