//! Coverage against a program's own `smaps_rollup`.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    host::{Cgroup, Load, turn},
    support::Daemon,
};

#[test]
fn coverage_is_that_of_smaps_rollup_to_the_byte() {
    let Some(_turn) = turn() else { return };
    let cgroup = Cgroup::new("memory");
    let mut load = Load::start(&cgroup, &["memory", "32", "16"]);
    let truth = load.until("ready");
    let daemon = Daemon::start(&[
        "--tick-seconds=0.5",
        "--smaps-refresh-seconds=1",
        "--smaps-cpu-percent=50",
    ]);
    let value = |kind| {
        let labels = [("cgroup", cgroup.path.as_str()), ("kind", kind)];
        daemon
            .metrics()
            .value("tlbd_cgroup_smaps_bytes", &labels)
            .map(|bytes| bytes as u64)
    };
    let end = Instant::now() + Duration::from_secs(20);
    while value("anonymous").is_none() && Instant::now() < end {
        thread::sleep(Duration::from_millis(200));
    }
    assert!(
        truth["AnonHugePages"] >= 16 << 20,
        "the kernel gave no huge pages: {truth:?}"
    );
    for (kind, field) in [
        ("anonymous", "Anonymous"),
        ("anonymous_huge", "AnonHugePages"),
        ("swap", "Swap"),
    ] {
        // Printing the answer may touch a page more: the program reads its own figures before.
        let (measured, truth) = (value(kind).unwrap(), truth[field]);
        println!("{kind}: {measured}, by the program {truth}");
        assert!(measured.abs_diff(truth) <= 4096 * 2, "{kind}");
        if kind != "anonymous" {
            assert_eq!(measured, truth, "{kind}");
        }
    }
    load.go_on();
    load.finish();
}
