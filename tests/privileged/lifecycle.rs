//! Starting, churning, stopping: nothing leaks, nothing is lost, nothing is left in the kernel.

use std::{
    fs,
    io::Write as _,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    host::{Cgroup, program, turn},
    support::Daemon,
};

const PROGRAMS: [&str; 6] = [
    "sample_clock",
    "page_fault_user",
    "page_fault_kernel",
    "tlb_flush",
    "cgroup_mkdir",
    "cgroup_rmdir",
];

/// tlbd's programs in the kernel; names are cut to 15 characters there.
fn programs_in_kernel() -> usize {
    let ours = |name: &[u8]| {
        PROGRAMS
            .iter()
            .any(|own| own.as_bytes().starts_with(name) && name.len() > 8)
    };
    aya::programs::loaded_programs()
        .flatten()
        .filter(|program| ours(program.name()))
        .count()
}

/// Freeing programs takes the kernel a moment.
fn gone_from_kernel() -> bool {
    let end = Instant::now() + Duration::from_secs(3);
    while programs_in_kernel() > 0 && Instant::now() < end {
        thread::sleep(Duration::from_millis(20));
    }
    programs_in_kernel() == 0
}

#[test]
fn stopping_takes_everything_out_of_the_kernel() {
    let Some(_turn) = turn() else { return };
    let daemon = Daemon::start(&["--tick-seconds=0.5"]);
    daemon.wait_ticks(2);
    assert_eq!(programs_in_kernel(), PROGRAMS.len());
    let start = Instant::now();
    let status = daemon.stop();
    println!("stopped in {:?}", start.elapsed());
    assert_eq!(status.code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(2));
    assert!(gone_from_kernel());
}

#[test]
fn being_killed_leaves_nothing_in_the_kernel() {
    let Some(_turn) = turn() else { return };
    let daemon = Daemon::start(&["--tick-seconds=0.5"]);
    daemon.wait_ticks(2);
    assert_eq!(programs_in_kernel(), PROGRAMS.len());
    drop(daemon); // SIGKILL
    assert!(gone_from_kernel());
}

#[test]
fn a_reload_keeps_the_totals() {
    let Some(_turn) = turn() else { return };
    let daemon = Daemon::start(&["--tick-seconds=0.5"]);
    daemon.wait_ticks(4);
    let all = |name| daemon.metrics().sum(name, &[]);
    let before = all("tlbd_cgroup_page_faults_total");
    daemon.signal(libc::SIGHUP);
    daemon.wait_ticks(3);
    assert!(before > 0.0 && all("tlbd_cgroup_page_faults_total") >= before);
    assert_eq!(programs_in_kernel(), PROGRAMS.len());
}

/// Makes a cgroup, lets a program fault in it, removes it; gives the program's own count.
fn faults_in_short_cgroup(number: usize) -> f64 {
    let cgroup = Cgroup::new(&number.to_string());
    let mut child = Command::new(program())
        .args([cgroup.folder.to_str().unwrap(), "touch", "100"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.as_mut().unwrap().write_all(b"\n\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let faults = said
        .lines()
        .find_map(|line| line.strip_prefix("faults "))
        .unwrap();
    faults.parse().unwrap()
}

#[test]
fn thousands_of_short_cgroups_leak_nothing_and_lose_nothing() {
    const CGROUPS: usize = 2000;
    const FAULTS: &str = "tlbd_cgroup_page_faults_total";
    let Some(_turn) = turn() else { return };
    let daemon = Daemon::start(&["--tick-seconds=0.5", "--smaps=false", "--max-cgroups=100"]);
    daemon.wait_ticks(2);
    let descriptors = || {
        fs::read_dir(format!("/proc/{}/fd", daemon.pid()))
            .unwrap()
            .count()
    };
    let resident = || {
        daemon
            .metrics()
            .value("tlbd_own_resident_bytes", &[])
            .unwrap()
    };
    let mut truth = 0.0;
    let (fds, before) = (descriptors(), daemon.metrics());
    let resident_before = resident();
    for number in 0..CGROUPS {
        truth += faults_in_short_cgroup(number);
    }
    daemon.wait_ticks(4);
    let after = daemon.metrics();
    // All of them are dead: their counts are in `retired`, or in `other` where a hundred dearer
    // ones had the series. A program faults a little before and after it counts.
    let dead = |labels: &[(&str, &str)]| after.sum(FAULTS, labels) - before.sum(FAULTS, labels);
    let folded = dead(&[("cgroup", "retired"), ("mode", "user")])
        + dead(&[("cgroup", "other"), ("mode", "user")]);
    println!("{folded} user faults of dead cgroups, {truth} by the programs' own count");
    assert!(folded >= truth && folded <= truth * 2.0);
    let left: Vec<_> = after
        .family(FAULTS)
        .map(|sample| sample.label("cgroup").to_owned())
        .filter(|cgroup| cgroup.starts_with("/tlbd-test"))
        .collect();
    assert!(left.is_empty(), "series of dead cgroups: {left:?}");
    assert_eq!(after.sum(FAULTS, &[("cgroup", "unknown")]), 0.0);
    // A connection of this test may be closing on either occasion.
    assert!(descriptors() <= fds + 2);
    let growth = resident() - resident_before;
    println!("resident memory grew by {:.1} MiB", growth / 1048576.0);
    assert!(growth < 8.0 * 1048576.0);
    assert_eq!(
        after.sum("tlbd_samples_lost_total", &[("reason", "map_full")]),
        0.0
    );
    assert_eq!(
        after.sum("tlbd_samples_lost_total", &[("reason", "ring_full")]),
        0.0
    );
}

/// A copy of the binary where every user may run it, as they may not in a build folder.
fn copy_for_everybody() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("tlbd");
    fs::copy(env!("CARGO_BIN_EXE_tlbd"), &copy).unwrap();
    (folder, copy)
}

#[test]
fn without_root_it_says_what_is_missing_and_does_the_rest() {
    const NOBODY: u32 = 65534;
    let Some(_turn) = turn() else { return };
    let (_folder, copy) = copy_for_everybody();
    let daemon = Daemon::start_as(&copy, NOBODY, &["--tick-seconds=0.5"]);
    daemon.wait_ticks(2);
    let metrics = daemon.metrics();
    let up = |collector| metrics.value("tlbd_up", &[("collector", collector)]);
    assert_eq!((up("cpu_time"), up("page_faults")), (Some(0.0), Some(0.0)));
    assert_eq!(
        (up("host_memory"), up("cgroup_memory")),
        (Some(1.0), Some(1.0))
    );
    assert!(metrics.sum("tlbd_host_memory_bytes", &[("kind", "total")]) > 0.0);
    assert_eq!(
        metrics.family("tlbd_cgroup_cpu_seconds_total").count(),
        0,
        "not measured is absent"
    );
    let said = daemon.stderr();
    assert!(
        said.contains("cpu_time is off") && said.contains("CAP_BPF"),
        "{said}"
    );
    assert_eq!(daemon.stop().code(), Some(0));
    let check = Command::new(&copy)
        .arg("check")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&check.stdout);
    assert_eq!(check.status.code(), Some(1), "{report}");
    assert!(report.contains("missing  CAP_BPF: needed to"), "{report}");
}

#[test]
fn the_units_five_capabilities_are_enough_for_everything_but_tracefs() {
    const CAPABILITIES: &str = "+bpf,+perfmon,+syslog,+sys_ptrace,+dac_read_search";
    let Some(_turn) = turn() else { return };
    let (_folder, copy) = copy_for_everybody();
    let daemon = Daemon::spawn(
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(format!("--inh-caps={CAPABILITIES}"))
            .arg(format!("--ambient-caps={CAPABILITIES}"))
            .arg(format!("--bounding-set=-all,{CAPABILITIES}"))
            .arg(&copy)
            .args(["run", "--listen=127.0.0.1:0", "--tick-seconds=0.5"]),
    );
    daemon.wait_ticks(3);
    let metrics = daemon.metrics();
    for sample in metrics.family("tlbd_up") {
        assert_eq!(sample.value, 1.0, "{}", sample.label("collector"));
    }
    assert!(metrics.sum("tlbd_function_cpu_seconds_total", &[]) > 0.0);
    assert!(metrics.sum("tlbd_cgroup_page_faults_total", &[]) > 0.0);
}

#[test]
fn check_as_root_names_what_this_host_lacks() {
    let Some(_turn) = turn() else { return };
    let check = Command::new(env!("CARGO_BIN_EXE_tlbd"))
        .args(["check", "--json"])
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&check.stdout).unwrap();
    let lines = report["lines"].as_array().unwrap();
    let line = |name: &str| {
        lines
            .iter()
            .find(|line| line["name"] == name)
            .unwrap()
            .clone()
    };
    for name in [
        "cpu_time",
        "page_faults",
        "tlb_flushes",
        "cgroup_changes",
        "host_memory",
    ] {
        assert_eq!(line(name)["ok"], true, "{name}: {}", line(name)["reason"]);
    }
    let has_pmu = fs::exists("/sys/bus/event_source/devices/cpu").unwrap();
    if !has_pmu {
        assert!(
            line("pmu")["reason"]
                .as_str()
                .unwrap()
                .contains("no core PMU")
        );
        assert_eq!(check.status.code(), Some(1));
    }
    assert!(gone_from_kernel());
}
