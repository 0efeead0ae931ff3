//! Time of a scrape on a host with series for 1,000 cgroups.

use std::{collections::BTreeMap, fs, process::Command};

use crate::{
    Bench, account,
    cgroups::Tree,
    daemon::{Daemon, Scrape},
    janitor,
    load::{HERE, Load},
    report::{Report, Spread},
};

use super::pause;

const CGROUPS: usize = 1000;
const TICKS: usize = 5;
const REPEATS: u32 = 20;
/// What a server may call to hear of a request, take it and answer it.
const SOCKET_CALLS: &[&str] = &[
    "accept4",
    "close",
    "epoll_ctl",
    "epoll_wait",
    "getsockopt",
    "read",
    "readv",
    "recvfrom",
    "sendto",
    "setsockopt",
    "shutdown",
    "write",
    "writev",
];

pub fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let tree = bench.tree()?;
    let daemon = Daemon::start(&["--max-cgroups=2000", "--tick-seconds=1", "--smaps=false"])?;
    let cgroups = fill(bench, &tree)?;
    let mut last = daemon.next_tick(None)?;
    let (mut first, mut repeated, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TICKS {
        // Almost until the next view; then the first scrape of it is told by its number.
        pause(0.8);
        last = daemon.next_tick(Some(&last))?;
        first.push(last.took.as_secs_f64() * 1e3);
        let before = account::first_thread(daemon.pid())?;
        let scrapes = (0..REPEATS)
            .map(|_| daemon.scrape())
            .collect::<anyhow::Result<Vec<Scrape>>>()?;
        if scrapes.iter().all(|scrape| scrape.ticks() == last.ticks()) {
            let spent = account::first_thread(daemon.pid())? - before;
            cpu.push(spent.as_secs_f64() * 1e3 / f64::from(REPEATS));
            repeated.extend(scrapes.iter().map(|scrape| scrape.took.as_secs_f64() * 1e3));
        }
    }
    let size = format!(
        "{} series, {:.2} MB, {cgroups} cgroups",
        last.series(),
        last.text.len() as f64 / 1e6
    );
    let how = format!("connect to last byte, rendering included; {size}");
    report.bounded(
        "scrape, first of a view",
        Spread::of(first),
        "ms",
        5.0,
        &how,
    );
    report.bounded(
        "scrape, repeated",
        Spread::of(repeated),
        "ms",
        5.0,
        "the same, rendered before",
    );
    report.row(
        "  CPU time of the server's thread",
        Spread::of(cpu),
        "ms",
        "schedstat of the thread, per repeated scrape",
    );
    count_calls(&daemon, last, report)
}

/// Makes the cgroups, and has something happen in each.
fn fill(bench: &Bench, tree: &Tree) -> anyhow::Result<usize> {
    let cgroups = tree.cgroups(CGROUPS)?;
    let loads: Vec<Load> = cgroups
        .chunks(CGROUPS.div_ceil(bench.cpus))
        .map(|part| {
            let part: Vec<&str> = std::iter::once("0")
                .chain(part.iter().map(String::as_str))
                .collect();
            Load::with(HERE, "brief", &part)
        })
        .collect::<anyhow::Result<_>>()?;
    loads
        .into_iter()
        .try_for_each(|load| load.finish().map(drop))?;
    Ok(cgroups.len())
}

/// The system calls of the server's thread while it answers repeated scrapes.
fn count_calls(daemon: &Daemon, last: Scrape, report: &mut Report) -> anyhow::Result<()> {
    let output = tempfile::NamedTempFile::new()?;
    let mut strace = Command::new("strace");
    strace
        .args(["-q", "-p", &daemon.pid().to_string(), "-o"])
        .arg(output.path());
    janitor::dies_with_parent(&mut strace, libc::SIGTERM);
    let Ok(mut strace) = strace.spawn() else {
        report.note("scrape: system calls not counted: strace is not there".to_owned());
        return Ok(());
    };
    pause(0.5);
    let tick = daemon.next_tick(Some(&last))?.ticks();
    let before = fs::metadata(output.path())?.len() as usize;
    let scrapes = (0..10)
        .map(|_| daemon.scrape())
        .collect::<anyhow::Result<Vec<Scrape>>>();
    account::signal(&strace, libc::SIGINT);
    strace.wait()?;
    let traced = fs::read_to_string(output.path())?;
    let scrapes = scrapes?;
    let mut calls: BTreeMap<&str, u32> = BTreeMap::new();
    for line in traced.get(before..).unwrap_or_default().lines() {
        if let Some((name, _)) = line.split_once('(') {
            *calls.entry(name).or_default() += 1;
        }
    }
    if calls.is_empty() || scrapes.iter().any(|scrape| scrape.ticks() != tick) {
        report.note(
            "scrape: system calls not counted: strace saw none, or a tick came between".to_owned(),
        );
        return Ok(());
    }
    let each = |count: u32| f64::from(count) / scrapes.len() as f64;
    let names: Vec<String> = calls
        .iter()
        .map(|(name, count)| format!("{name} {:.1}", each(*count)))
        .collect();
    let other: u32 = calls
        .iter()
        .filter(|(name, _)| !SOCKET_CALLS.contains(name))
        .map(|(_, count)| count)
        .sum();
    report.bounded(
        "  system calls but the socket's",
        each(other),
        "per scrape",
        0.0,
        &format!("strace of the server's thread: {}", names.join(", ")),
    );
    Ok(())
}
