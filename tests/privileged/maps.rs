//! The kernel's maps when they are full, and names that are hard to show.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, process::Command};

use tlbd::source::{
    KernelEvents as _,
    bpf::{BpfEvents, Settings},
};
use tlbd_common::{Loss, OVERFLOW_CGROUP};

use crate::{
    host::{Cgroup, Load, turn},
    support::Daemon,
};

fn events(sample_hz: u32, most_keys: u32) -> BpfEvents {
    let settings = Settings {
        sample_hz,
        tick_seconds: 1.0,
        stats: false,
        most_keys: Some(most_keys),
    };
    let mut events = BpfEvents::open(settings).unwrap();
    events.drain().unwrap();
    events
}

#[test]
fn a_full_sample_map_loses_whose_and_where_but_no_count() {
    let Some(_turn) = turn() else { return };
    let mut events = events(997, 32);
    let (period, _) = events.sampling();
    let cgroup = Cgroup::new("full");
    Load::start(&cgroup, &["poll-tcp", "3"]).finish();
    let drained = events.drain().unwrap();
    let overflowed: u64 = (drained.samples.iter())
        .filter(|(key, _)| key.cgroup == OVERFLOW_CGROUP)
        .map(|(_, count)| count.samples)
        .sum();
    let lost = drained
        .losses
        .iter()
        .find(|(loss, _)| *loss == Loss::SampleMapFull)
        .unwrap()
        .1;
    println!(
        "{} keys, {overflowed} samples without a key of their own",
        drained.samples.len()
    );
    assert!(drained.samples.len() <= 32 && overflowed > 100);
    assert_eq!(overflowed, lost);
    assert!(
        drained
            .samples
            .iter()
            .all(|(_, count)| count.weight == count.samples * period)
    );
    // Others run too, so all that was sampled is at least this load's time.
    let weight: u64 = drained.samples.iter().map(|(_, count)| count.weight).sum();
    let (sampled, truth) = (weight as f64 / 1e9, cgroup.cpu_stat().0);
    println!("{sampled} s sampled, {truth} s by cpu.stat");
    assert!(sampled > truth * 0.97);
}

#[test]
fn page_faults_of_more_cgroups_than_the_map_holds_are_all_counted() {
    let Some(_turn) = turn() else { return };
    let mut events = events(1, 16);
    let mut truth = 0;
    for number in 0..20 {
        let cgroup = Cgroup::new(&format!("fault{number}"));
        let mut load = Load::start(&cgroup, &["touch", "1000"]);
        load.go_on();
        truth += load.until("faults")["faults"];
        load.go_on();
        load.finish();
    }
    let drained = events.drain().unwrap();
    let counted: u64 = drained.faults.iter().map(|(_, count)| count).sum();
    let overflowed: u64 = (drained.faults.iter())
        .filter(|(key, _)| key.cgroup == OVERFLOW_CGROUP)
        .map(|(_, count)| count)
        .sum();
    let lost = drained
        .losses
        .iter()
        .find(|(loss, _)| *loss == Loss::FaultMapFull)
        .unwrap()
        .1;
    println!("{truth} faults, {counted} counted, {overflowed} of them without a key of their own");
    assert!(counted >= truth && overflowed > 1000);
    assert_eq!(overflowed, lost);
}

#[test]
fn cgroups_with_hostile_names_are_counted_under_printable_ones() {
    let Some(_turn) = turn() else { return };
    let daemon = Daemon::start(&["--tick-seconds=0.5"]);
    daemon.wait_ticks(1);
    let parent = Cgroup::new("hostile");
    // The kernel itself refuses newlines in cgroup names, and names of more than 255 bytes.
    let long = "x".repeat(255);
    let names: [(&[u8], &str); 4] = [
        (b"quote \" backslash \\", r#"quote " backslash \"#),
        (b"not \xff utf-8", r"not \xff utf-8"),
        (b"tab\t and \x1b[31m", r"tab\x09 and \x1b[31m"),
        (long.as_bytes(), &long),
    ];
    let cgroups = names.map(|(name, _)| {
        let folder = parent.folder.join(OsStr::from_bytes(name));
        fs::create_dir(&folder).unwrap();
        // `load` takes text as arguments, a shell takes any bytes.
        let burn =
            r#"echo $$ >"$0/cgroup.procs"; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"#;
        let status = Command::new("sh")
            .args(["-c", burn])
            .arg(&folder)
            .status()
            .unwrap();
        assert!(status.success());
        folder
    });
    daemon.wait_ticks(2);
    let metrics = daemon.metrics();
    for (_, shown) in names {
        let path = format!("{}/{shown}", parent.path);
        let seconds = metrics.sum("tlbd_cgroup_cpu_seconds_total", &[("cgroup", &path)]);
        println!("{path}: {seconds:.2} s");
        assert!(seconds > 0.0, "{path}");
    }
    cgroups
        .iter()
        .for_each(|folder| fs::remove_dir(folder).unwrap());
}
