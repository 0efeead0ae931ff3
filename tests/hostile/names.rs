//! Names of cgroups that try to be more than a name.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _};

use serde_json::json;
use tlbd::export::page;

use super::{MEMORY, hostile_folders, survives, with_events};
use crate::replay::{Copy, first_view};

/// Names that a cgroup may have, and some that only a liar gives.
fn hostile_names() -> Vec<String> {
    [
        "/line\nbreak",
        "/quote\"quote",
        "/back\\slash\\",
        "/}\" 1\ntlbd_up{collector=\"x\"} 1",
        "/<script>alert(1)</script>",
        "/\u{0}\u{1b}[31m\u{202e}",
        "/# EOF",
        "",
        "other",
        "unknown",
        "retired",
        "/a",
        "/a",
    ]
    .into_iter()
    .map(ToOwned::to_owned)
    .chain([
        format!("/{}", "x".repeat(255)),
        format!("/{}", "y/".repeat(20_000)),
    ])
    .collect()
}

#[test]
fn hostile_names_of_cgroups_and_reasons_stay_inside_their_labels() {
    let names = hostile_names();
    let copy = with_events(|events| {
        events["names"] = names
            .iter()
            .enumerate()
            .map(|(id, name)| json!([id + 10, name]))
            .collect();
        let samples = names.iter().enumerate().map(|(id, _)| {
            json!([{"cgroup": id + 10, "address": 0, "stack": -1, "role": 0, "mode": 0},
                   {"samples": 1, "weight": 1_000_000 + id}])
        });
        events["drained"]["samples"] = samples.collect();
    });
    let metrics = survives(&copy, "hostile names").expect("no panic");
    let shown: Vec<_> = metrics
        .family("tlbd_cgroup_cpu_seconds_total")
        .map(|sample| sample.label("cgroup"))
        .collect();
    for name in [
        "/quote\"quote",
        "/back\\slash\\",
        "/<script>alert(1)</script>",
    ] {
        assert!(shown.contains(&name), "{name}: {shown:?}");
    }
    // The forged sample stayed in a label, and every `tlbd_up` is of a real collector.
    assert_eq!(metrics.sum("tlbd_up", &[("collector", "x")]), 0.0);
    let page = page::page(&first_view(copy.folder()));
    assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"));
}

#[test]
fn cgroup_folders_with_hostile_names_are_shown_escaped() {
    let copy = Copy::new();
    let names = hostile_folders(&copy);
    let metrics = survives(&copy, "hostile folders").expect("no panic");
    for name in names {
        let labels = [("cgroup", name.as_str()), ("kind", "anon")];
        assert!(
            metrics.value("tlbd_cgroup_memory_bytes", &labels).is_some(),
            "{name}"
        );
    }
}

#[test]
fn two_names_that_print_alike_are_one_series() {
    let copy = Copy::new();
    let top = copy.path(MEMORY);
    for name in [&b"twin\n"[..], b"twin\\x0a"] {
        let folder = top.join(OsStr::from_bytes(name));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("memory.stat"), "total_rss 4096\n").unwrap();
    }
    let metrics = survives(&copy, "twins").expect("no panic");
    let twins = [("cgroup", "/twin\\x0a"), ("kind", "anon")];
    assert!(metrics.value("tlbd_cgroup_memory_bytes", &twins).is_some());
}
