//! The whole `/metrics` of a captured host, byte for byte.
//!
//! `UPDATE_GOLDEN=1 cargo test --test main golden` writes what the binary says now; look at the
//! difference before you commit it.

use std::{env, fmt::Write as _, fs, path::Path};

use crate::{
    replay::{ONE_TICK, POLYGLOT, capture, polyglot, replay, workspace},
    support::Daemon,
};

/// What depends on the run and not on the captured host.
const VOLATILE: [&str; 7] = [
    "tlbd_build_info",
    "tlbd_cgroup_memory_age_seconds",
    "tlbd_cgroup_smaps_age_seconds",
    "tlbd_collect_duration_seconds",
    "tlbd_own_cpu_seconds_total",
    "tlbd_own_resident_bytes",
    "tlbd_smaps_cpu_seconds_total",
];

pub(crate) const OPENMETRICS: &str = "Accept: application/openmetrics-text; version=1.0.0\r\n";

/// The metrics once there is a view.
pub(crate) fn text(daemon: &Daemon, headers: &str) -> String {
    daemon.metrics();
    let (status, _, body) = daemon.get("/metrics", headers);
    assert_eq!(status, 200);
    body
}

fn normalised(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let name = line.split(['{', ' ']).next().unwrap();
        let line = match (line.rsplit_once(' '), name) {
            // Its value is in its label.
            (Some(_), "tlbd_build_info") => "tlbd_build_info VOLATILE".into(),
            (Some((series, _)), name) if VOLATILE.contains(&name) => format!("{series} VOLATILE"),
            _ => line.to_owned(),
        };
        writeln!(lines, "{line}").unwrap();
    }
    lines
}

/// Compares with a file of the workspace; writes it where `UPDATE_GOLDEN` is set.
pub(crate) fn assert_golden(path: &str, text: &str) {
    let file = workspace().join(path);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(file.parent().unwrap_or(Path::new("."))).unwrap();
        fs::write(&file, text).unwrap();
        return;
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    let differing = golden
        .lines()
        .zip(text.lines())
        .enumerate()
        .find(|(_, (golden, now))| golden != now);
    if let Some((line, (golden, now))) = differing {
        let line = line + 1;
        panic!("{path}:{line}\n  golden: {golden}\n  now:    {now}\nUPDATE_GOLDEN=1 rewrites it");
    }
    assert_eq!(
        golden.lines().count(),
        text.lines().count(),
        "lines of {path}; UPDATE_GOLDEN=1 rewrites it"
    );
    assert_eq!(golden, text, "{path}");
}

#[test]
fn the_openmetrics_text_of_a_captured_host_is_the_golden_one() {
    let daemon = polyglot(&[]);
    let text = normalised(&text(&daemon, OPENMETRICS));
    assert_golden(&format!("tests/golden/{POLYGLOT}.openmetrics"), &text);
}

#[test]
fn the_prometheus_text_of_a_captured_host_is_the_golden_one() {
    let daemon = polyglot(&[]);
    let text = normalised(&text(&daemon, ""));
    assert_golden(&format!("tests/golden/{POLYGLOT}.prom"), &text);
}

#[test]
fn a_host_with_cgroup_v2_only_has_its_golden_text_too() {
    const DEBIAN: &str = "debian-6.12";
    let daemon = replay(&capture(DEBIAN), &[ONE_TICK]);
    let text = normalised(&text(&daemon, ""));
    assert_golden(&format!("tests/golden/{DEBIAN}.prom"), &text);
}

#[test]
fn both_formats_have_the_same_samples() {
    let daemon = polyglot(&[]);
    let samples = |text: String| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(ToOwned::to_owned).collect()
    };
    let openmetrics = samples(text(&daemon, OPENMETRICS));
    assert!(openmetrics.len() > 100);
    assert_eq!(openmetrics, samples(text(&daemon, "")));
}

#[test]
fn every_volatile_family_is_in_the_text() {
    let text = text(&polyglot(&[]), "");
    for name in VOLATILE {
        assert!(text.contains(&format!("\n{name}")), "{name}");
    }
}
