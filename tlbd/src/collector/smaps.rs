//! How much of each cgroup's processes is anonymous, huge, swapped: `smaps_rollup`, process by
//! process.
//!
//! Reading it takes the target's mmap lock and time in proportion to its pages, so it happens on
//! a thread of its own, one process at a time, biggest first, with rests that keep it within its
//! CPU budget. A tick only looks at what that thread has found so far.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use procfs::{
    FromRead as _,
    process::{SmapsRollup, Stat},
};

use super::{Collector, Context, Entry, Tick};
use crate::{
    export::metric::{Kind, Metric},
    model::{
        accounts::Accounts,
        plausible::{is_sizes, is_stat},
        smaps::{Reading, by_cgroup, cgroup_of, rest_after},
        view::{SMAPS_KINDS, Smaps, View},
    },
    source::{
        Unavailable, clock,
        root::{self, Root},
    },
};

pub(super) const ENTRY: Entry = Entry {
    name: "smaps",
    answers: "anonymous and huge memory by cgroup, from its processes",
    metrics: &[&BYTES, &AGE, &PROCESSES, &SKIPPED, &CPU],
    open,
};

const BYTES: Metric = Metric {
    name: "tlbd_cgroup_smaps_bytes",
    kind: Kind::Gauge,
    help: "Sum over the cgroup's own processes of /proc/PID/smaps_rollup by kind; memory that processes share counts once for each",
    labels: &["cgroup", "kind"],
    read: |view, series| {
        for row in view.smaps.iter().flat_map(|smaps| &smaps.cgroups) {
            for ((kind, _), bytes) in SMAPS_KINDS.iter().zip(row.bytes) {
                series.count(&[&row.cgroup, kind], bytes);
            }
        }
    },
};

const AGE: Metric = Metric {
    name: "tlbd_cgroup_smaps_age_seconds",
    kind: Kind::Gauge,
    help: "Age of the oldest smaps_rollup reading in the cgroup's sums",
    labels: &["cgroup"],
    read: |view, series| {
        for row in view.smaps.iter().flat_map(|smaps| &smaps.cgroups) {
            series.measure(&[&row.cgroup], row.age.as_secs_f64());
        }
    },
};

const PROCESSES: Metric = Metric {
    name: "tlbd_cgroup_smaps_processes",
    kind: Kind::Gauge,
    help: "Processes in the cgroup's smaps sums",
    labels: &["cgroup"],
    read: |view, series| {
        for row in view.smaps.iter().flat_map(|smaps| &smaps.cgroups) {
            series.count(&[&row.cgroup], row.processes);
        }
    },
};

const SKIPPED: Metric = Metric {
    name: "tlbd_smaps_skipped_total",
    kind: Kind::Counter,
    help: "Processes whose smaps_rollup was not read when its turn came, by reason",
    labels: &["reason"],
    read: |view, series| {
        for (reason, count) in view.smaps.iter().flat_map(|smaps| &smaps.skipped) {
            series.count(&[reason], *count);
        }
    },
};

const CPU: Metric = Metric {
    name: "tlbd_smaps_cpu_seconds_total",
    kind: Kind::Counter,
    help: "CPU time of the thread that reads smaps_rollup",
    labels: &[],
    read: |view, series| {
        if let Some(smaps) = &view.smaps {
            series.measure(&[], smaps.cpu_ns as f64 / 1e9);
        }
    },
};

fn open(context: &Context) -> Result<Box<dyn Collector>, Unavailable> {
    let config = &context.config;
    if !config.smaps {
        return Err(Unavailable::Disabled);
    }
    let found = Arc::new(Mutex::new(Found::default()));
    let (stop, stopped) = mpsc::channel();
    let mut reader = Reader {
        root: context.root.clone(),
        found: found.clone(),
        stopped,
        percent: config.smaps_cpu_percent,
        refresh: Duration::from_secs_f64(config.smaps_refresh_seconds),
        max_bytes: config.smaps_max_gib << 30,
        cpu_seen: Duration::ZERO,
        owed: Duration::ZERO,
    };
    let thread = if context.root.is_live() {
        let spawned = thread::Builder::new()
            .name("tlbd-smaps".into())
            .spawn(move || reader.run());
        Some(spawned.map_err(|error| Unavailable::Refused {
            tried: "starting the smaps thread".into(),
            error: error.to_string(),
        })?)
    } else {
        // A captured host stands still: once is enough, and nobody is kept waiting.
        reader.percent = 100.0;
        let _ = reader.round();
        None
    };
    Ok(Box::new(Findings {
        found,
        bound: config.max_cgroups,
        thread,
        _stop: stop,
    }))
}

/// The collector: a look at what the reader has found so far. Dropping it stops the reader.
struct Findings {
    found: Arc<Mutex<Found>>,
    bound: usize,
    thread: Option<JoinHandle<()>>,
    _stop: mpsc::Sender<()>,
}

impl Collector for Findings {
    fn collect(
        &mut self,
        tick: &Tick<'_>,
        _: &mut Accounts,
        view: &mut View,
    ) -> anyhow::Result<()> {
        let ended = self.thread.as_ref().is_some_and(JoinHandle::is_finished);
        anyhow::ensure!(
            !ended,
            "the smaps thread panicked; this is a bug in tlbd, please report it"
        );
        let found = lock(&self.found);
        let skips = Skip::ALL.iter().zip(found.skipped);
        view.smaps = Some(Smaps {
            cgroups: by_cgroup(&found.readings, tick.now, self.bound),
            skipped: skips.map(|((_, reason), count)| (*reason, count)).collect(),
            cpu_ns: u64::try_from(found.cpu.as_nanos()).unwrap_or(u64::MAX),
        });
        Ok(())
    }
}

#[derive(Default)]
struct Found {
    readings: HashMap<u32, Reading>,
    skipped: [u64; Skip::ALL.len()],
    cpu: Duration,
}

/// What is found is whole after every change, so a panic elsewhere does not spoil it.
fn lock(found: &Mutex<Found>) -> std::sync::MutexGuard<'_, Found> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a process is not read.
#[derive(Clone, Copy)]
enum Skip {
    TooBig,
    NotPermitted,
    Vanished,
    Unreadable,
}

impl Skip {
    const ALL: [(Self, &'static str); 4] = [
        (Self::TooBig, "too_big"),
        (Self::NotPermitted, "not_permitted"),
        (Self::Vanished, "vanished"),
        (Self::Unreadable, "unreadable"),
    ];

    fn of(error: &root::Error) -> Self {
        match error.error.kind() {
            _ if error.vanished() => Self::Vanished,
            io::ErrorKind::PermissionDenied => Self::NotPermitted,
            _ => Self::Unreadable,
        }
    }
}

struct Process {
    pid: u32,
    started: u64,
    resident: u64,
}

/// The collector was dropped.
struct Stopped;

struct Reader {
    root: Root,
    found: Arc<Mutex<Found>>,
    stopped: mpsc::Receiver<()>,
    percent: f64,
    refresh: Duration,
    max_bytes: u64,
    /// CPU time of this thread that rests have been taken for.
    cpu_seen: Duration,
    /// Rest that is due.
    owed: Duration,
}

impl Reader {
    fn run(&mut self) {
        // Often enough that a new process does not wait long for its first reading.
        let between = (self.refresh / 4).max(Duration::from_millis(100));
        while self.round().is_ok() && self.rest(between).is_ok() {}
    }

    /// Reads every process that is due, biggest first.
    fn round(&mut self) -> Result<(), Stopped> {
        let mut processes = self.processes();
        processes.sort_by_key(|process| std::cmp::Reverse(process.resident));
        self.forget_all_but(&processes);
        self.work_done()?;
        for process in &processes {
            if self.is_due(process) {
                self.read(process);
                self.work_done()?;
            }
        }
        Ok(())
    }

    /// The processes that have memory of their own; kernel threads have none.
    fn processes(&self) -> Vec<Process> {
        let names = self.root.list("/proc").unwrap_or_default();
        let pids = names.iter().filter_map(|name| name.to_str()?.parse().ok());
        pids.filter_map(|pid: u32| {
            let stat = self.root.read(format!("/proc/{pid}/stat")).ok()?;
            let stat = is_stat(&stat).then(|| Stat::from_read(&stat[..]).ok())??;
            let resident = stat.rss.checked_mul(procfs::page_size())?;
            (resident > 0).then_some(Process {
                pid,
                started: stat.starttime,
                resident,
            })
        })
        .collect()
    }

    fn forget_all_but(&self, processes: &[Process]) {
        let alive: HashMap<u32, u64> = processes.iter().map(|p| (p.pid, p.started)).collect();
        lock(&self.found)
            .readings
            .retain(|pid, reading| alive.get(pid) == Some(&reading.started));
    }

    fn is_due(&self, process: &Process) -> bool {
        let found = lock(&self.found);
        found
            .readings
            .get(&process.pid)
            .is_none_or(|reading| reading.at.elapsed() >= self.refresh)
    }

    fn read(&self, process: &Process) {
        let reading = if process.resident > self.max_bytes {
            Err(Skip::TooBig)
        } else {
            read(&self.root, process)
        };
        let mut found = lock(&self.found);
        match reading {
            Ok(reading) => {
                found.readings.insert(process.pid, reading);
            }
            Err(skip) => {
                // What was read before is no longer this process's state.
                found.readings.remove(&process.pid);
                if let Some(count) = found.skipped.get_mut(skip as usize) {
                    *count += 1;
                }
            }
        }
    }

    /// Rests for the work done since the last rest.
    fn work_done(&mut self) -> Result<(), Stopped> {
        let cpu = clock::thread_cpu();
        lock(&self.found).cpu = cpu;
        self.owed += rest_after(cpu.saturating_sub(self.cpu_seen), self.percent);
        self.cpu_seen = cpu;
        // Many small rests would cost more than they spare.
        if self.owed < Duration::from_millis(10) {
            return Ok(());
        }
        let owed = std::mem::take(&mut self.owed);
        self.rest(owed)
    }

    fn rest(&self, time: Duration) -> Result<(), Stopped> {
        match self.stopped.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Err(Stopped),
        }
    }
}

fn read(root: &Root, process: &Process) -> Result<Reading, Skip> {
    let pid = process.pid;
    let cgroups = root
        .read(format!("/proc/{pid}/cgroup"))
        .map_err(|error| Skip::of(&error))?;
    let rollup = root
        .read(format!("/proc/{pid}/smaps_rollup"))
        .map_err(|error| Skip::of(&error))?;
    let at = Instant::now();
    if !is_sizes(&rollup) {
        return Err(Skip::Unreadable);
    }
    let rollup = SmapsRollup::from_read(&rollup[..]).map_err(|_| Skip::Unreadable)?;
    let fields = &rollup
        .memory_map_rollup
        .0
        .first()
        .ok_or(Skip::Unreadable)?
        .extension
        .map;
    let mut bytes = [0; SMAPS_KINDS.len()];
    for (bytes, (_, field)) in bytes.iter_mut().zip(SMAPS_KINDS) {
        // Every kernel since 5.4 has them all: one without is cut, and nothing in it is a zero.
        *bytes = *fields.get(field).ok_or(Skip::Unreadable)?;
    }
    let cgroup = cgroup_of(&cgroups).ok_or(Skip::Unreadable)?;
    Ok(Reading {
        started: process.started,
        cgroup: cgroup.into(),
        bytes,
        at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ROLLUP: &str = include_str!("../../../tests/fixtures/smaps_rollup/6.12.txt");

    fn reading(rollup: &str) -> Result<Reading, Skip> {
        let host = tempfile::tempdir().unwrap();
        let process = host.path().join("proc/7");
        fs::create_dir_all(&process).unwrap();
        fs::write(process.join("cgroup"), "0::/db.service\n").unwrap();
        fs::write(process.join("smaps_rollup"), rollup).unwrap();
        let process = Process {
            pid: 7,
            started: 1,
            resident: 1,
        };
        read(&Root::captured(host.path()), &process)
    }

    #[test]
    fn a_whole_file_gives_every_kind() {
        let reading = reading(ROLLUP).ok().unwrap();
        assert_eq!(&*reading.cgroup, "/db.service");
        let huge = SMAPS_KINDS
            .iter()
            .position(|(kind, _)| *kind == "anonymous_huge");
        assert_eq!(reading.bytes[huge.unwrap()], 16 << 20);
    }

    #[test]
    fn a_file_without_a_field_is_unreadable_and_has_no_zeros() {
        for (_, field) in SMAPS_KINDS {
            let cut: String = (ROLLUP.lines())
                .filter(|line| !line.starts_with(&format!("{field}:")))
                .map(|line| format!("{line}\n"))
                .collect();
            assert!(matches!(reading(&cut), Err(Skip::Unreadable)), "{field}");
        }
    }
}
