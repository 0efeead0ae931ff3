//! The daemon under a service manager: notifications, the watchdog, reloads.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    replay::{ONE_TICK, POLYGLOT, capture, eventually, replay},
    support::Daemon,
};

/// Longest that a notification or an effect is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A service manager's end of `sd_notify(3)`.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            socket,
            path,
            _folder: folder,
        }
    }

    fn start(&self, watchdog_usec: u32, tick: &str) -> Daemon {
        Daemon::spawn(
            Command::new(env!("CARGO_BIN_EXE_tlbd"))
                .args(["run", "--listen=127.0.0.1:0", tick, "--replay"])
                .arg(capture(POLYGLOT))
                .env("NOTIFY_SOCKET", &self.path)
                .env("WATCHDOG_USEC", watchdog_usec.to_string())
                .env_remove("WATCHDOG_PID"),
        )
    }

    /// The assignments of the next message.
    fn next(&self) -> Option<String> {
        let mut message = [0; 4096];
        let length = self.socket.recv(&mut message).ok()?;
        Some(String::from_utf8_lossy(&message[..length]).into_owned())
    }

    /// The messages up to the first that starts so.
    fn until(&self, start: &str) -> Vec<String> {
        let (mut said, end) = (Vec::new(), Instant::now() + PATIENCE);
        while let Some(message) = self.next() {
            said.push(message);
            if said.last().is_some_and(|last| last.starts_with(start)) {
                return said;
            }
            assert!(Instant::now() < end, "no {start} in {said:?}");
        }
        panic!("no {start} after {said:?}");
    }

    /// All that is still to be read.
    fn rest(&self) -> Vec<String> {
        self.socket.set_nonblocking(true).unwrap();
        std::iter::from_fn(|| self.next()).collect()
    }
}

fn is(start: &'static str) -> impl Fn(&String) -> bool {
    move |message| message.starts_with(start)
}

#[test]
fn a_service_manager_hears_ready_alive_and_stopping_in_this_order() {
    let manager = Manager::new();
    let daemon = manager.start(400_000, "--tick-seconds=0.2");
    let mut said = manager.until("READY=1");
    assert!(!said.iter().any(is("STOPPING=1")));
    said.extend(manager.until("STATUS="));
    said.extend(manager.until("WATCHDOG=1"));
    said.extend(manager.until("WATCHDOG=1"));
    assert_eq!(said.iter().filter(|m| is("READY=1")(m)).count(), 1);
    let status = said.iter().find(|m| is("STATUS=")(m)).unwrap();
    assert!(
        status.contains("cgroups") && status.contains("functions"),
        "{status}"
    );
    assert_eq!(daemon.stop().code(), Some(0));
    let last = manager.rest();
    assert_eq!(
        last.iter().filter(|m| is("STOPPING=1")(m)).count(),
        1,
        "{last:?}"
    );
    assert!(!last.iter().any(is("READY=1")), "{last:?}");
}

#[test]
fn it_says_that_it_is_alive_at_half_the_watchdogs_time() {
    let manager = Manager::new();
    let _daemon = manager.start(400_000, ONE_TICK);
    manager.until("WATCHDOG=1");
    let start = Instant::now();
    for _ in 0..5 {
        manager.until("WATCHDOG=1");
    }
    let each = start.elapsed() / 5;
    assert!(
        (Duration::from_millis(100)..Duration::from_millis(400)).contains(&each),
        "{each:?} between signs of life"
    );
}

#[test]
fn a_reload_is_announced_with_a_clock_and_ends_with_ready() {
    let manager = Manager::new();
    let daemon = manager.start(60_000_000, "--tick-seconds=0.2");
    manager.until("READY=1");
    daemon.signal(libc::SIGHUP);
    let said = manager.until("RELOADING=1");
    assert!(said.last().unwrap().contains("MONOTONIC_USEC="), "{said:?}");
    manager.until("READY=1");
}

/// The number of cgroups that have series of their own.
fn cgroups(daemon: &Daemon) -> usize {
    let metrics = daemon.metrics();
    let mut names: Vec<_> = metrics
        .family("tlbd_cgroup_cpu_seconds_total")
        .map(|sample| sample.label("cgroup").to_owned())
        .filter(|name| name.starts_with('/'))
        .collect();
    names.dedup();
    names.len()
}

#[test]
fn a_reload_takes_the_new_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tlbd.toml");
    fs::write(&file, "max_cgroups = 4\n").unwrap();
    let daemon = replay(
        &capture(POLYGLOT),
        &["--tick-seconds=0.2", "--config", file.to_str().unwrap()],
    );
    daemon.wait_ticks(1);
    assert_eq!(cgroups(&daemon), 4);
    fs::write(&file, "max_cgroups = 1\n").unwrap();
    daemon.signal(libc::SIGHUP);
    assert!(
        eventually(|| cgroups(&daemon) == 1),
        "{} cgroups",
        cgroups(&daemon)
    );
    assert!(daemon.stderr().contains("configuration read again"));
}

#[test]
fn a_reload_of_a_broken_file_is_reported_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tlbd.toml");
    fs::write(&file, "max_cgroups = 3\n").unwrap();
    let daemon = replay(
        &capture(POLYGLOT),
        &["--tick-seconds=0.2", "--config", file.to_str().unwrap()],
    );
    daemon.wait_ticks(1);
    for (text, complaint) in [
        ("max_cgroups = [", "not valid TOML"),
        ("max_cgroups = 0", "expected a whole number from 1"),
        ("max_cgruops = 2", "did you mean `max_cgroups`?"),
    ] {
        fs::write(&file, text).unwrap();
        daemon.signal(libc::SIGHUP);
        assert!(
            eventually(|| daemon.stderr().contains(complaint)),
            "{}",
            daemon.stderr()
        );
    }
    assert!(
        daemon
            .stderr()
            .contains("tlbd: configuration not changed: ")
    );
    daemon.wait_ticks(2);
    assert_eq!(cgroups(&daemon), 3);
    assert_eq!(daemon.stop().code(), Some(0));
}
