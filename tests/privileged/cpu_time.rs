//! CPU time by cgroup against `cpu.stat`, and by kernel function against `perf`.

use std::{
    collections::HashMap,
    env, fs,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use tlbd::model::symbols::{Aliases, fold};

use crate::{
    host::{Cgroup, Load, turn, within},
    support::{Daemon, Metrics, skip},
};

const CPU: &str = "tlbd_cgroup_cpu_seconds_total";

fn cpu(metrics: &Metrics, cgroup: &Cgroup, mode: &str) -> f64 {
    metrics
        .value(CPU, &[("cgroup", &cgroup.path), ("mode", mode)])
        .unwrap_or_default()
}

fn all_cpu(metrics: &Metrics, cgroup: &Cgroup) -> f64 {
    metrics.sum(CPU, &[("cgroup", &cgroup.path)])
}

#[test]
fn a_burners_cpu_time_is_its_cgroups_cpu_stat() {
    let Some(_turn) = turn() else { return };
    let daemon = Daemon::start(&["--tick-seconds=1"]);
    daemon.wait_ticks(1);
    let cgroup = Cgroup::new("burner");
    Load::start(&cgroup, &["burn", "10"]).finish();
    daemon.wait_ticks(2);
    let (truth, ..) = cgroup.cpu_stat();
    let measured = all_cpu(&daemon.metrics(), &cgroup);
    assert!(within("CPU seconds", measured, truth, 0.03));
}

#[test]
fn user_and_system_time_split_as_in_cpu_stat() {
    let Some(_turn) = turn() else { return };
    let daemon = Daemon::start(&["--tick-seconds=1"]);
    daemon.wait_ticks(1);
    let cgroup = Cgroup::new("mix");
    Load::start(&cgroup, &["mix", "10"]).finish();
    daemon.wait_ticks(2);
    let (all, user, _) = cgroup.cpu_stat();
    let metrics = daemon.metrics();
    let measured = cpu(&metrics, &cgroup, "user") / all_cpu(&metrics, &cgroup);
    println!("user share {measured:.3}, by cpu.stat {:.3}", user / all);
    assert!((0.1..0.9).contains(&measured), "the load is to do both");
    assert!((measured - user / all).abs() < 0.05);
}

#[test]
fn two_cgroups_at_three_to_one_are_seen_so() {
    let Some(_turn) = turn() else { return };
    let daemon = Daemon::start(&["--tick-seconds=1", "--sample-hz=997"]);
    daemon.wait_ticks(1);
    let (three, one) = (Cgroup::new("three"), Cgroup::new("one"));
    let loads = [&three, &three, &three, &one].map(|cgroup| Load::start(cgroup, &["burn", "10"]));
    loads.into_iter().for_each(Load::finish);
    daemon.wait_ticks(2);
    let metrics = daemon.metrics();
    let measured = all_cpu(&metrics, &three) / all_cpu(&metrics, &one);
    let truth = three.cpu_stat().0 / one.cpu_stat().0;
    assert!(within("ratio", measured, truth, 0.05));
}

#[test]
fn kernel_functions_share_time_as_perf_sees_it() {
    let Some(_turn) = turn() else { return };
    let Some(perf) = perf() else {
        return skip("needs perf (linux-perf)");
    };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("perf.data");
    let daemon = Daemon::start(&["--tick-seconds=0.5", "--sample-hz=997"]);
    daemon.wait_ticks(2);
    let (sockets, pipes) = (Cgroup::new("sockets"), Cgroup::new("pipes"));
    let loads = [
        Load::start(&sockets, &["poll-tcp", "13"]),
        Load::start(&pipes, &["pipes", "13"]),
    ];
    thread::sleep(Duration::from_secs(1));
    daemon.wait_ticks(1);
    let before = daemon.metrics();
    let recorded = Command::new(&perf)
        .args(["record", "-q", "-a", "-e", "cpu-clock", "-F", "997", "-o"])
        .arg(&data)
        .args(["--", "sleep", "10"])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(recorded.success());
    let after = daemon.metrics();
    drop(loads);
    let measured = shares(growth(&before, &after));
    let truth = shares(perf_samples(&perf, &data));
    let mut names: Vec<_> = truth.iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(a.1));
    for (name, truth) in names.iter().take(10) {
        let measured = measured.get(*name).copied().unwrap_or_default();
        println!(
            "{name}: {:.1} %, by perf {:.1} %",
            measured * 100.0,
            *truth * 100.0
        );
        assert!((measured - *truth).abs() < 0.03, "{name}");
    }
    for name in ["tcp_poll", "fget_light"] {
        assert!(
            measured.get(name).is_some_and(|share| *share > 0.01),
            "{name} costs something here"
        );
    }
}

fn perf() -> Option<String> {
    let perf = env::var("TLBD_PERF").unwrap_or_else(|_| "perf".into());
    let works = Command::new(&perf)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    works.is_ok_and(|status| status.success()).then_some(perf)
}

/// Seconds by function between two scrapes.
fn growth(before: &Metrics, after: &Metrics) -> HashMap<String, f64> {
    const NAME: &str = "tlbd_function_cpu_seconds_total";
    let by_function = |metrics: &Metrics| -> HashMap<String, f64> {
        let samples = metrics.family(NAME);
        samples
            .map(|sample| (sample.label("function").to_owned(), sample.value))
            .collect()
    };
    let before = by_function(before);
    let mut growth = by_function(after);
    growth
        .iter_mut()
        .for_each(|(name, value)| *value -= before.get(name).unwrap_or(&0.0));
    growth
}

/// Samples by kernel function in a recording, named as tlbd names them.
fn perf_samples(perf: &str, data: &std::path::Path) -> HashMap<String, f64> {
    let aliases = Aliases::parse(Aliases::SHIPPED).unwrap();
    let output = Command::new(perf)
        .args(["script", "-F", "pid,ip,sym", "-i"])
        .arg(data)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    fs::remove_file(data).unwrap();
    let mut samples: HashMap<String, f64> = HashMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(pid), Some(address), Some(symbol)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        // The idle task is nobody's; user addresses are below the middle.
        if pid != "0" && address.starts_with("ffff") {
            let symbol = symbol.split('+').next().unwrap();
            *samples
                .entry(aliases.join(fold(symbol)).to_owned())
                .or_default() += 1.0;
        }
    }
    assert!(
        samples.values().sum::<f64>() > 5000.0,
        "perf has samples: {}",
        text.len()
    );
    samples
}

fn shares(costs: HashMap<String, f64>) -> HashMap<String, f64> {
    let total: f64 = costs.values().sum();
    // A module's tag is tlbd's own; perf names the module elsewhere.
    let bare = |name: String| name.split(" [").next().unwrap_or_default().to_owned();
    costs
        .into_iter()
        .map(|(name, cost)| (bare(name), cost / total))
        .collect()
}

#[test]
fn the_sum_over_cgroups_is_all_that_was_sampled() {
    let Some(_turn) = turn() else { return };
    let daemon = Daemon::start(&["--tick-seconds=0.5", "--max-cgroups=2", "--max-functions=5"]);
    daemon.wait_ticks(1);
    let cgroups = ["a", "b", "c", "d"].map(Cgroup::new);
    let loads = cgroups
        .each_ref()
        .map(|cgroup| Load::start(cgroup, &["mix", "3"]));
    loads.into_iter().for_each(Load::finish);
    daemon.wait_ticks(2);
    let metrics = daemon.metrics();
    let period = metrics.value("tlbd_sampling_period", &[]).unwrap() / 1e9;
    let sampled = metrics.value("tlbd_samples_total", &[]).unwrap() * period;
    assert!(within(
        "sum over cgroups",
        metrics.sum(CPU, &[]),
        sampled,
        1e-9
    ));
    let kernel = metrics.sum(CPU, &[("mode", "kernel")]);
    let functions = metrics.sum("tlbd_function_cpu_seconds_total", &[]);
    assert!(within("sum over functions", functions, kernel, 1e-9));
    let own: Vec<_> = metrics
        .family(CPU)
        .map(|sample| sample.label("cgroup").to_owned())
        .collect();
    let named = own
        .iter()
        .filter(|name| name.starts_with('/'))
        .collect::<std::collections::HashSet<_>>();
    assert!(named.len() <= 2, "{own:?}");
    assert!(metrics.sum(CPU, &[("cgroup", "other")]) > 0.0);
}

#[test]
fn the_idle_task_is_charged_to_nobody() {
    let Some(_turn) = turn() else { return };
    let daemon = Daemon::start(&["--tick-seconds=0.5"]);
    daemon.wait_ticks(2);
    let (before, start) = (daemon.metrics().sum(CPU, &[]), busy_seconds());
    thread::sleep(Duration::from_secs(5));
    daemon.wait_ticks(1);
    let (measured, busy) = (
        daemon.metrics().sum(CPU, &[]) - before,
        busy_seconds() - start,
    );
    println!("{measured:.2} s sampled, {busy:.2} s busy by /proc/stat, in 5 s on all CPUs");
    assert!(measured < busy + 0.5);
}

/// Seconds that all CPUs were not idle, from `/proc/stat`, in 100ths.
fn busy_seconds() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let fields: Vec<f64> = text
        .lines()
        .next()
        .unwrap()
        .split_whitespace()
        .skip(1)
        .map(|v| v.parse().unwrap())
        .collect();
    // user, nice, system, then idle and iowait, then irq, softirq, steal.
    (fields[0] + fields[1] + fields[2] + fields[5] + fields[6]) / 100.0
}
