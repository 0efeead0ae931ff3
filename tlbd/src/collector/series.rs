//! Metrics about the collectors and the series themselves; the engine fills them.

use crate::export::metric::{Kind, Metric};

pub(super) const METRICS: &[&Metric] = &[&UP, &TICKS, &DURATION, &LOST, &FAMILY, &FOLDED];

const UP: Metric = Metric {
    name: "tlbd_up",
    kind: Kind::Gauge,
    help: "1 if a collector filled its part of the last view; `tlbd check` says why not",
    labels: &["collector"],
    read: |view, series| {
        for row in &view.collectors {
            series.count(&[row.collector], u64::from(row.up));
        }
    },
};

const TICKS: Metric = Metric {
    name: "tlbd_ticks_total",
    kind: Kind::Counter,
    help: "Views built since start; all series of a scrape come from the same one",
    labels: &[],
    read: |view, series| series.count(&[], view.tick),
};

const DURATION: Metric = Metric {
    name: "tlbd_collect_duration_seconds",
    kind: Kind::Gauge,
    help: "Time that a collector took in the last tick; `drain` is the reading of the BPF maps",
    labels: &["collector"],
    read: |view, series| {
        for row in view.collectors.iter().filter(|row| row.seconds > 0.0) {
            series.measure(&[row.collector], row.seconds);
        }
    },
};

const LOST: Metric = Metric {
    name: "tlbd_samples_lost_total",
    kind: Kind::Counter,
    help: "Events whose cgroup, function or stack was not recorded; map_full: counted in `other`",
    labels: &["event", "reason"],
    read: |view, series| {
        for row in &view.losses {
            series.count(&[row.event, row.reason], row.count);
        }
    },
};

const FAMILY: Metric = Metric {
    name: "tlbd_series",
    kind: Kind::Gauge,
    help: "Members that have series of their own in a group of families",
    labels: &["family"],
    read: |view, series| {
        view.folded
            .iter()
            .for_each(|row| series.count(&[row.family], row.series));
    },
};

const FOLDED: Metric = Metric {
    name: "tlbd_series_folded_total",
    kind: Kind::Counter,
    help: "Members that a bound kept from having series: displaced by dearer ones, or left out",
    labels: &["family"],
    read: |view, series| {
        view.folded
            .iter()
            .for_each(|row| series.count(&[row.family], row.folded));
    },
};
