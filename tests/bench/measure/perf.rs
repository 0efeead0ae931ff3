//! Side by side with `perf record` on the same load.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Instant,
};

use anyhow::Context as _;

use crate::{
    Bench, account,
    daemon::Daemon,
    janitor,
    load::{HERE, Load},
    report::{Report, Spread},
};

use super::pause;

const PAIRS: usize = 3;
/// One tick of the daemon.
const SECONDS: f64 = 5.0;

pub fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("perf.data");
    if Command::new("perf").arg("--version").output().is_err() {
        report.note("perf: not measured: perf is not installed".to_owned());
        return Ok(());
    }
    let mut loads = Vec::new();
    for number in 0..bench.cpus * 2 {
        let cpu = (number % bench.cpus).to_string();
        loads.push(Load::with(HERE, "service", &["200", &cpu])?);
    }
    let (mut tlbd, mut perf, mut ratio, mut bytes) =
        (Sides::default(), Sides::default(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let ours = of_tlbd(bench)?;
        let (theirs, size) = of_perf(bench, &file)?;
        ratio.push(theirs.0 / ours.0);
        tlbd.push(ours);
        perf.push(theirs);
        bytes.push(size / 1e6);
    }
    let size = Spread::of(bytes);
    let how = "CPU clock of the process over 5 s (one tick), from 2 s after its start";
    report.row(
        "beside perf: tlbd, while it runs",
        Spread::of(tlbd.running),
        "% machine",
        how,
    );
    let command = format!("same, perf record -a -g -F 99 -e cpu-clock; writes {size} MB");
    report.row(
        "beside perf: perf, while it runs",
        Spread::of(perf.running),
        "% machine",
        &command,
    );
    report.row(
        "beside perf: perf / tlbd",
        Spread::of(ratio),
        "times",
        "of each pair",
    );
    let how =
        "CPU time of the whole life of about 7 s: start, end, and perf's processing of its file";
    report.row(
        "beside perf: tlbd, whole life",
        Spread::of(tlbd.whole),
        "CPU s",
        how,
    );
    report.row(
        "beside perf: perf, whole life",
        Spread::of(perf.whole),
        "CPU s",
        "same; `perf report` comes on top",
    );
    report.note("perf: not counted on either side: the timer interrupts, stack walks and, for tlbd, BPF programs in the kernel (see above)".to_owned());
    Ok(())
}

/// Percent of the machine while running, and CPU seconds of the whole life.
type Side = (f64, f64);

#[derive(Default)]
struct Sides {
    running: Vec<f64>,
    whole: Vec<f64>,
}

impl Sides {
    fn push(&mut self, (running, whole): Side) {
        self.running.push(running);
        self.whole.push(whole);
    }
}

fn of_tlbd(bench: &Bench) -> anyhow::Result<Side> {
    let daemon = Daemon::start(&[])?;
    let running = share(bench, daemon.pid())?;
    Ok((running, daemon.stop()?.as_secs_f64()))
}

fn of_perf(bench: &Bench, file: &Path) -> anyhow::Result<(Side, f64)> {
    let mut command = Command::new("perf");
    command
        .args([
            "record",
            "-q",
            "-a",
            "-g",
            "-F",
            "99",
            "-e",
            "cpu-clock",
            "-o",
        ])
        .arg(file);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    janitor::dies_with_parent(&mut command, libc::SIGTERM);
    let mut perf = Ended(Some(command.spawn().context("starting perf")?));
    let running = share(bench, perf.child()?.id())?;
    let mut child = perf.0.take().context("perf is gone")?;
    account::signal(&child, libc::SIGINT);
    let whole = account::wait(&mut child)?.as_secs_f64();
    Ok(((running, whole), fs::metadata(file)?.len() as f64))
}

fn share(bench: &Bench, pid: u32) -> anyhow::Result<f64> {
    pause(2.0);
    let (start, before) = (Instant::now(), account::cpu_time(pid)?);
    pause(SECONDS);
    let spent = account::cpu_time(pid).context("perf or tlbd ended early")? - before;
    Ok(bench.percent(spent.as_secs_f64(), start.elapsed().as_secs_f64()))
}

/// A child that is ended when something goes wrong before.
struct Ended(Option<Child>);

impl Ended {
    fn child(&self) -> anyhow::Result<&Child> {
        self.0.as_ref().context("perf is gone")
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            account::signal(&child, libc::SIGTERM);
            let _ = child.wait();
        }
    }
}
