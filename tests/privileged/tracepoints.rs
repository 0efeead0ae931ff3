//! Page faults against a program's own `ru_minflt`, TLB flushes against its own unmaps.

use crate::{
    host::{Cgroup, Load, turn, within},
    support::Daemon,
};

const FAULTS: &str = "tlbd_cgroup_page_faults_total";

#[test]
fn a_program_that_touches_fresh_pages_faults_once_for_each() {
    let Some(_turn) = turn() else { return };
    let daemon = Daemon::start(&["--tick-seconds=0.5"]);
    daemon.wait_ticks(1);
    let cgroup = Cgroup::new("touch");
    let mut load = Load::start(&cgroup, &["touch", "50000"]);
    load.until("ready");
    daemon.wait_ticks(2);
    let user = |kind: &[(&str, &str)]| {
        let labels = [&[("cgroup", cgroup.path.as_str()), ("mode", "user")], kind].concat();
        daemon.metrics().sum(FAULTS, &labels)
    };
    let (before, stores) = (user(&[]), user(&[("access", "store")]));
    load.go_on();
    let truth = load.until("faults")["faults"] as f64;
    daemon.wait_ticks(2);
    assert!(within("user page faults", user(&[]) - before, truth, 0.01));
    assert!(within(
        "of them stores",
        user(&[("access", "store")]) - stores,
        truth,
        0.01
    ));
    load.go_on();
    load.finish();
}

#[test]
fn unmapping_pages_that_another_cpu_may_hold_flushes_both() {
    let Some(_turn) = turn() else { return };
    let daemon = Daemon::start(&["--tick-seconds=0.5"]);
    daemon.wait_ticks(1);
    let cgroup = Cgroup::new("shoot");
    let mut load = Load::start(&cgroup, &["shoot", "3"]);
    let unmaps = load.until("unmaps")["unmaps"] as f64;
    load.finish();
    daemon.wait_ticks(2);
    let metrics = daemon.metrics();
    let count = |name: &str, reason: &str| {
        metrics.sum(name, &[("cgroup", &cgroup.path), ("reason", reason)])
    };
    let flushes = |reason| count("tlbd_cgroup_tlb_flushes_total", reason);
    // The unmapping CPU flushes itself, and asks the other by an interrupt while it runs the
    // program's other thread, which is most of the time.
    assert!(within(
        "local flushes",
        flushes("local_mm_shootdown"),
        unmaps,
        0.05
    ));
    assert!(flushes("remote_ipi_send") > unmaps * 0.3);
    assert!(flushes("remote_shootdown") > unmaps * 0.3);
    let pages = count("tlbd_cgroup_tlb_flushed_pages_total", "local_mm_shootdown");
    let full = count("tlbd_cgroup_tlb_full_flushes_total", "local_mm_shootdown");
    println!("{pages} pages one by one, {full} full flushes, {unmaps} unmaps of 16 pages");
    assert!(pages + full * 16.0 >= unmaps * 15.0 && pages <= unmaps * 20.0);
}
