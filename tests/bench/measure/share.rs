//! The part of the machine's CPU that tlbd takes with default settings on a busy host of 200
//! cgroups and 500 processes, and how long its ticks take there.

use std::time::Instant;

use crate::{
    Bench, account,
    daemon::{Daemon, Scrape},
    load::Load,
    report::{Report, Spread},
};

use super::pause;

const CGROUPS: usize = 200;
const PROCESSES: usize = 500;
/// Services for each CPU.
const SERVICES: usize = 4;
/// Until the first reading of all processes' memory is over.
const SETTLE: f64 = 12.0;
/// As long as the memory of a process is taken as fresh, so that each is read once in it.
const SECONDS: f64 = 60.0;
const TICK: f64 = 5.0;

pub fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let tree = bench.tree()?;
    let cgroups = tree.cgroups(CGROUPS)?;
    let mut loads = Vec::new();
    for number in 0..PROCESSES {
        let mib = (1 + number % 5).to_string();
        loads.push(Load::with(
            &cgroups[number % CGROUPS],
            "sleep",
            &["200", &mib],
        )?);
    }
    for number in 0..bench.cpus * SERVICES {
        let cpu = (number % bench.cpus).to_string();
        loads.push(Load::with(&cgroups[number * 3], "service", &["200", &cpu])?);
    }
    pause(1.0);
    let process = process(bench, &tree, report)?;
    let (programs, rates) = programs(bench)?;
    report.row("BPF programs, same load", programs, "% machine", &rates);
    report.bounded(
        "daemon and BPF programs together",
        process + programs,
        "% machine",
        0.3,
        "sum of the two",
    );
    report.note(format!(
        "share: {CGROUPS} cgroups and {PROCESSES} sleeping processes of 1 to 5 MiB, all CPUs busy with request loops (user time, TCP, fresh pages); \
         not counted: the tracepoints' and the timer's own overhead in the kernel, for which see the slowdown"
    ));
    Ok(())
}

/// CPU share of the process.
fn process(bench: &Bench, tree: &crate::cgroups::Tree, report: &mut Report) -> anyhow::Result<f64> {
    let daemon = Daemon::start(&[])?;
    pause(SETTLE);
    let (mut ticks, first) = (Vec::new(), daemon.scrape()?);
    let at = || {
        anyhow::Ok((
            account::machine_busy()?,
            tree.cpu_seconds()?,
            daemon.cpu_time()?.as_secs_f64(),
        ))
    };
    let (start, split, before) = (Instant::now(), account::user_system(daemon.pid())?, at()?);
    // Scraped as Prometheus would, every 15 s.
    for _ in 0..4 {
        pause(SECONDS / 4.0);
        ticks.push(daemon.scrape()?);
    }
    let (seconds, after) = (start.elapsed().as_secs_f64(), at()?);
    let (user, system) = account::user_system(daemon.pid())?;
    let share = bench.percent(after.2 - before.2, seconds);
    report.row(
        "daemon, default settings",
        share,
        "% machine",
        &format!(
            "its CPU clock over {seconds:.0} s: user {:.2} s, system {:.2} s; scraped every 15 s",
            user - split.0,
            system - split.1
        ),
    );
    let others = (after.0 - before.0) - (after.1 - before.1) - (after.2 - before.2);
    report.note(format!(
        "share: meanwhile the loads took {:.0} % of the machine, and processes that are none of the benchmark's {:.0} %",
        bench.percent(after.1 - before.1, seconds),
        bench.percent(others.max(0.0), seconds)
    ));
    of_smaps(bench, &first, ticks.last().unwrap_or(&first), report);
    duration_of_ticks(&ticks, report);
    Ok(share)
}

/// The part of the thread that reads smaps_rollup; its budget is 1 % of one core, to 10 %.
fn of_smaps(bench: &Bench, first: &Scrape, last: &Scrape, report: &mut Report) {
    let grown = |family: &str| last.value(family) - first.value(family);
    let share = bench.percent(
        grown("tlbd_smaps_cpu_seconds_total"),
        grown("tlbd_ticks_total") * TICK,
    );
    report.bounded(
        "  of that, the thread that reads smaps_rollup",
        share,
        "% machine",
        1.1 / bench.cpus as f64,
        "tlbd_smaps_cpu_seconds_total",
    );
}

fn duration_of_ticks(scrapes: &[Scrape], report: &mut Report) {
    const FAMILY: &str = "tlbd_collect_duration_seconds";
    let sum = |scrape: &Scrape| scrape.by_label(FAMILY).values().sum::<f64>() * 1e3;
    report.row(
        "one tick, same setup",
        Spread::of(scrapes.iter().map(sum)),
        "ms",
        "tlbd_collect_duration_seconds, wall time, sum",
    );
    let Some(last) = scrapes.last() else { return };
    let mut parts: Vec<_> = last.by_label(FAMILY).into_keys().collect();
    parts.sort_unstable();
    for part in parts {
        let values = scrapes
            .iter()
            .filter_map(|scrape| scrape.by_label(FAMILY).get(part).map(|value| value * 1e3));
        report.row(&format!("  {part}"), Spread::of(values), "ms", "");
    }
}

/// CPU share of the BPF programs, and how often they ran.
fn programs(bench: &Bench) -> anyhow::Result<(f64, String)> {
    let daemon = Daemon::start(&["--bpf-stats=true"])?;
    let first = daemon.next_tick(None)?;
    let last = daemon.next_tick(Some(&first))?;
    let seconds = TICK * (last.ticks() - first.ticks());
    let grown = |family: &str| {
        let before = first.by_label(family);
        let after = last.by_label(family).into_iter();
        let mut grown: Vec<(String, f64)> = after
            .map(|(program, value)| {
                (
                    program.to_owned(),
                    value - before.get(program).unwrap_or(&0.0),
                )
            })
            .collect();
        grown.sort_by(|a, b| b.1.total_cmp(&a.1));
        grown
    };
    let share = grown("tlbd_bpf_run_seconds_total")
        .iter()
        .map(|(_, seconds)| seconds)
        .sum::<f64>();
    let rates: Vec<String> = grown("tlbd_bpf_runs_total")
        .iter()
        .filter(|(_, runs)| *runs > 0.0)
        .map(|(program, runs)| format!("{program} {:.0}/s", runs / seconds))
        .collect();
    Ok((
        bench.percent(share, seconds),
        format!("run statistics: {}", rates.join(", ")),
    ))
}
