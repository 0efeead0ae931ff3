//! Events files that stop in the middle, or hold numbers that no kernel counts.

use serde_json::{Value, json};

use super::{EVENTS, assert_sound, beginnings, garbage, survives, survives_all, with_events};
use crate::{
    replay::{Copy, first_view},
    support::Metrics,
};

#[test]
fn broken_events_are_survived() {
    let copy = Copy::new();
    let whole = copy.read(EVENTS);
    let mut contents = beginnings(&whole);
    contents.extend(garbage());
    survives_all(&copy, EVENTS, contents);
}

#[test]
fn truncated_events_are_refused_with_the_place() {
    let copy = Copy::new();
    let whole = copy.read(EVENTS);
    copy.write(EVENTS, &whole[..whole.len() / 2]);
    let view = first_view(copy.folder());
    let row = |name| {
        view.collectors
            .iter()
            .find(|row| row.collector == name)
            .unwrap()
    };
    let reason = &row("cpu_time").reason;
    assert!(
        reason.contains(EVENTS) && reason.contains("line "),
        "{reason}"
    );
    assert!(row("host_memory").up, "what needs no events goes on");
}

/// Sets a key's field in every row of a kind.
fn set_all(events: &mut Value, kind: &str, part: usize, field: &str, value: u64) {
    for row in events["drained"][kind].as_array_mut().unwrap() {
        row[part][field] = value.into();
    }
}

#[test]
fn indices_out_of_range_are_survived() {
    let mut tried = 0;
    for (kind, field) in [
        ("samples", "role"),
        ("samples", "mode"),
        ("faults", "mode"),
        ("faults", "access"),
        ("flushes", "reason"),
    ] {
        for value in [2, 3, 7, 8, 9, 255, u64::from(u32::MAX)] {
            let copy = with_events(|events| set_all(events, kind, 0, field, value));
            let metrics = survives(&copy, &format!("{kind} with {field} {value}"));
            let metrics = metrics.expect("no panic");
            assert_eq!(
                metrics.value("tlbd_up", &[("collector", "drain")]),
                Some(1.0),
                "{kind} {field} {value}: the events file is read"
            );
            tried += 1;
        }
    }
    assert_eq!(tried, 35);
}

#[test]
fn flushes_for_a_reason_that_has_no_name_are_not_lost() {
    let copy = with_events(|events| set_all(events, "flushes", 0, "reason", 250));
    let metrics = assert_sound(first_view(copy.folder()));
    let whole = assert_sound(first_view(Copy::new().folder()));
    let sum = |metrics: &Metrics| metrics.sum("tlbd_cgroup_tlb_flushes_total", &[]);
    assert!(sum(&whole) > 0.0);
    assert_eq!(sum(&metrics), sum(&whole));
}

#[test]
fn cgroup_ids_at_the_ends_of_the_range_are_survived() {
    for id in [0, u64::MAX - 1, u64::MAX] {
        let copy = with_events(|events| {
            for kind in ["samples", "faults", "flushes"] {
                set_all(events, kind, 0, "cgroup", id);
            }
            events["names"] = json!([[id, "/all"], [id, "/twice"], [1, "/"]]);
            events["drained"]["changes"] = json!([
                {"id": id, "made": null},
                {"id": id, "made": "/x"},
                {"id": id, "made": "/y"},
                {"id": id, "made": null},
                {"id": id, "made": null},
            ]);
        });
        let metrics = survives(&copy, &format!("cgroup id {id}")).expect("no panic");
        let samples = metrics.value("tlbd_samples_total", &[]).unwrap();
        let period = metrics.value("tlbd_sampling_period", &[]).unwrap();
        let sum = metrics.sum("tlbd_cgroup_cpu_seconds_total", &[]);
        assert!(
            (sum / (samples * period / 1e9) - 1.0).abs() < 1e-9,
            "{id}: {sum}"
        );
    }
}

#[test]
fn counts_at_the_end_of_the_range_are_survived() {
    let mut failed = Vec::new();
    for (kind, part, field) in [
        ("samples", 1, "samples"),
        ("samples", 1, "weight"),
        ("flushes", 1, "flushes"),
        ("flushes", 1, "full"),
        ("flushes", 1, "pages"),
    ] {
        let copy = with_events(|events| set_all(events, kind, part, field, u64::MAX));
        let what = format!("{kind}.{field} = u64::MAX");
        if survives(&copy, &what).is_none() {
            failed.push(what);
        }
    }
    let copy = with_events(|events| {
        for row in events["drained"]["faults"].as_array_mut().unwrap() {
            row[1] = u64::MAX.into();
        }
        for row in events["drained"]["losses"].as_array_mut().unwrap() {
            row[1] = u64::MAX.into();
        }
        events["period"] = u64::MAX.into();
        events["cpus"] = u64::MAX.into();
    });
    if survives(&copy, "faults and losses = u64::MAX").is_none() {
        failed.push("faults and losses".into());
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn stacks_and_addresses_of_any_kind_are_survived() {
    for address in [0, 1, 1 << 63, u64::MAX] {
        let copy = with_events(|events| {
            set_all(events, "samples", 0, "address", address);
            let stacks = events["drained"]["stacks"].as_object_mut().unwrap();
            for (index, stack) in stacks.values_mut().enumerate() {
                *stack = json!(vec![address; [0, 1, 2, 10_000][index % 4]]);
            }
        });
        assert!(survives(&copy, &format!("address {address:#x}")).is_some());
    }
}
