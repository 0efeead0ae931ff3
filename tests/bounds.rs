//! Bounds on series keep the totals.

use std::collections::BTreeSet;

use crate::{
    replay::{POLYGLOT, capture, polyglot},
    support::Metrics,
};

const CPU: &str = "tlbd_cgroup_cpu_seconds_total";
const FUNCTIONS: &str = "tlbd_function_cpu_seconds_total";

/// The values that a label has in a family.
fn values(metrics: &Metrics, family: &str, label: &str) -> BTreeSet<String> {
    let samples = metrics.family(family);
    samples
        .map(|sample| sample.label(label).to_owned())
        .collect()
}

/// Equal but for what adding floats loses.
fn assert_same(sum: f64, truth: f64) {
    assert!(
        truth > 0.0 && (sum / truth - 1.0).abs() < 1e-12,
        "{sum} is not {truth}"
    );
}

/// Sampled nanoseconds in the captured events: all, and in kernel mode.
fn sampled() -> (u64, u64) {
    let text = std::fs::read(capture(POLYGLOT).join("tlbd-events.json")).unwrap();
    let events: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let samples = events["drained"]["samples"].as_array().unwrap();
    let weight = |sample: &serde_json::Value| sample[1]["weight"].as_u64().unwrap();
    let kernel = samples.iter().filter(|sample| sample[0]["mode"] == 1);
    (samples.iter().map(weight).sum(), kernel.map(weight).sum())
}

#[test]
fn no_more_cgroups_and_functions_have_series_than_configured() {
    let daemon = polyglot(&["--max-cgroups=2", "--max-functions=3"]);
    let metrics = daemon.metrics();
    for family in [CPU, "tlbd_cgroup_page_faults_total"] {
        let mut cgroups = values(&metrics, family, "cgroup");
        assert!(cgroups.remove("other"), "{family}: {cgroups:?}");
        cgroups.remove("retired");
        cgroups.remove("unknown");
        assert!(cgroups.len() <= 2, "{family}: {cgroups:?}");
    }
    let mut functions = values(&metrics, FUNCTIONS, "function");
    assert!(
        functions.remove("other") && functions.len() == 3,
        "{functions:?}"
    );
    for family in ["tlbd_cgroup_memory_bytes", "tlbd_cgroup_smaps_bytes"] {
        let mut cgroups = values(&metrics, family, "cgroup");
        cgroups.remove("other");
        assert_eq!(cgroups.len(), 2, "{family}: {cgroups:?}");
    }
}

#[test]
fn bounds_do_not_change_the_sum_over_cgroups() {
    let metrics = polyglot(&["--max-cgroups=2"]).metrics();
    let samples = metrics.value("tlbd_samples_total", &[]).unwrap();
    let period = metrics.value("tlbd_sampling_period", &[]).unwrap();
    assert_same(metrics.sum(CPU, &[]), samples * period / 1e9);
    assert_same(metrics.sum(CPU, &[]), sampled().0 as f64 / 1e9);
}

#[test]
fn functions_sum_up_to_the_kernels_part() {
    let metrics = polyglot(&["--max-functions=3", "--max-cgroups=2"]).metrics();
    let kernel = metrics.sum(CPU, &[("mode", "kernel")]);
    assert_same(metrics.sum(FUNCTIONS, &[]), kernel);
    assert_same(kernel, sampled().1 as f64 / 1e9);
}

#[test]
fn bounds_do_not_change_other_totals_by_cgroup() {
    let free = polyglot(&[]).metrics();
    let bound = polyglot(&["--max-cgroups=1"]).metrics();
    for family in [
        "tlbd_cgroup_page_faults_total",
        "tlbd_cgroup_tlb_flushes_total",
        "tlbd_cgroup_tlb_flushed_pages_total",
        "tlbd_cgroup_smaps_bytes",
        "tlbd_cgroup_smaps_processes",
    ] {
        assert_same(bound.sum(family, &[]), free.sum(family, &[]));
        let named = |metrics| {
            let cgroups = values(metrics, family, "cgroup");
            cgroups.iter().filter(|name| name.starts_with('/')).count()
        };
        assert!(named(&bound) < named(&free), "{family}");
    }
}

#[test]
fn what_the_bounds_keep_back_is_counted() {
    let metrics = polyglot(&["--max-cgroups=2", "--max-functions=3"]).metrics();
    let series = |family| metrics.value("tlbd_series", &[("family", family)]);
    assert_eq!(series("cgroup"), Some(2.0));
    assert_eq!(series("function"), Some(3.0));
    let folded = metrics.value("tlbd_series_folded_total", &[("family", "cgroup_memory")]);
    assert!(folded.is_some_and(|folded| folded > 0.0), "{folded:?}");
}
