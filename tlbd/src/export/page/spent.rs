//! Who spends CPU time, where in the kernel, and what is flushed from the TLBs.
//!
//! A cgroup's counts carry no mark for "not measured"; a kind of count that is zero for every
//! cgroup is taken as such.

use std::sync::Arc;

use maud::{Markup, html};

use super::{
    cell, human,
    human::{ABSENT, count, or_dash, share},
    is_special, more_row, name_cell, row_class, section, share_cell, table, unmeasured,
};
use crate::model::view::{CgroupCounts, CgroupRow, FunctionRow, View};
use tlbd_common::{FlushCount, Mode};

const CGROUPS: usize = 15;
const FUNCTIONS: usize = 20;
/// Callers shown of a function.
const CALLERS: usize = 4;

/// The cgroups that use most CPU time.
pub(super) fn cgroups(view: &View) -> Markup {
    const COLUMNS: [&str; 6] = [
        "cgroup",
        "CPU, user",
        "CPU, kernel",
        "share of CPU time",
        "page faults",
        "TLB flushes",
    ];
    let total = Total::of(view);
    let (special, ordinary): (Vec<_>, Vec<_>) =
        view.cgroups.iter().partition(|row| is_special(&row.cgroup));
    let rows = html! {
        @for row in ordinary.iter().take(CGROUPS) { (cgroup(row, &total)) }
        (more_row(ordinary.len().saturating_sub(CGROUPS), "cgroups", COLUMNS.len()))
        @for row in special { (cgroup(row, &total)) }
    };
    let content = if view.cgroups.is_empty() {
        unmeasured()
    } else {
        table(&COLUMNS, &rows)
    };
    section(
        "Cgroups",
        "Each counts its own tasks, without its descendants.",
        &content,
    )
}

fn cgroup(row: &CgroupRow, total: &Total) -> Markup {
    let counts = &row.counts;
    html! {
        tr class=[row_class(&row.cgroup)] {
            (name_cell(&row.cgroup))
            @for ns in &counts.cpu_ns {
                (cell(&or_dash(total.cpu_ns.map(|_| *ns), human::nanoseconds)))
            }
            (share_cell(total.cpu_ns.and_then(|all| share(cpu_ns(counts), all))))
            (cell(&or_dash(total.faults.map(|_| faults(counts)), count)))
            (cell(&or_dash(total.flushes.map(|_| flushes_of(counts)), count)))
        }
    }
}

/// The kernel functions that use most CPU time.
pub(super) fn functions(view: &View) -> Markup {
    let total = view
        .functions
        .iter()
        .map(|row| row.cpu_ns)
        .fold(0, u64::saturating_add);
    let (special, ordinary): (Vec<_>, Vec<_>) = view
        .functions
        .iter()
        .partition(|row| is_special(&row.function));
    let content = html! {
        table {
            thead {
                tr {
                    th { "function" }
                    th { "CPU" }
                    th { "share of kernel time" }
                    th.text { "callers of its heaviest sample in the last tick" }
                }
            }
            tbody {
                @for row in ordinary.iter().take(FUNCTIONS) { (function(row, total)) }
                (more_row(ordinary.len().saturating_sub(FUNCTIONS), "functions", 4))
                @for row in special { (function(row, total)) }
            }
        }
    };
    let content = if view.functions.is_empty() {
        unmeasured()
    } else {
        content
    };
    section("Kernel functions", "", &content)
}

fn function(row: &FunctionRow, total: u64) -> Markup {
    html! {
        tr class=[row_class(&row.function)] {
            (name_cell(&row.function))
            (cell(&human::nanoseconds(row.cpu_ns)))
            (share_cell(share(row.cpu_ns, total)))
            td.text title=[chain(&row.callers, usize::MAX)] {
                (chain(&row.callers, CALLERS).as_deref().unwrap_or(ABSENT))
            }
        }
    }
}

/// `a <- b <- c`, innermost first; none without callers.
fn chain(callers: &[Arc<str>], limit: usize) -> Option<String> {
    const FROM: &str = " \u{2190} ";
    let shown: Vec<&str> = callers.iter().take(limit).map(AsRef::as_ref).collect();
    let rest = if callers.len() > limit {
        " \u{2190} \u{2026}"
    } else {
        ""
    };
    (!shown.is_empty()).then(|| shown.join(FROM) + rest)
}

/// TLB flushes of all cgroups by the kernel's reason.
pub(super) fn flushes(view: &View) -> Markup {
    let by_reason = || {
        view.flush_reasons
            .iter()
            .enumerate()
            .map(|(i, name)| (name, flushed(view, i)))
    };
    let total = by_reason()
        .map(|(_, count)| count.flushes)
        .fold(0, u64::saturating_add);
    let rows = html! {
        @for (reason, flush) in by_reason().filter(|(_, flush)| flush.flushes > 0) {
            tr {
                (name_cell(reason))
                (cell(&count(flush.flushes)))
                (share_cell(share(flush.flushes, total)))
                (cell(&count(flush.full)))
                (cell(&count(flush.pages)))
            }
        }
    };
    let columns = [
        "reason",
        "flushes",
        "share",
        "of everything",
        "single pages",
    ];
    let content = if total == 0 {
        unmeasured()
    } else {
        table(&columns, &rows)
    };
    section("TLB flushes by reason", "", &content)
}

/// All cgroups' flushes for the reason with this index.
fn flushed(view: &View, reason: usize) -> FlushCount {
    let mut sum = FlushCount::default();
    for count in view
        .cgroups
        .iter()
        .filter_map(|row| row.counts.flushes.get(reason))
    {
        sum += *count;
    }
    sum
}

/// TLB flushes of all cgroups, if any were seen.
pub(super) fn flush_total(view: &View) -> Option<u64> {
    Total::of(view).flushes
}

/// Kernel mode's share of the CPU time of all cgroups, in percent.
pub(super) fn kernel_share(view: &View) -> Option<f64> {
    let kernel = Mode::Kernel as usize;
    let spent = view
        .cgroups
        .iter()
        .filter_map(|row| row.counts.cpu_ns.get(kernel))
        .fold(0_u64, |sum, ns| sum.saturating_add(*ns));
    share(spent, Total::of(view).cpu_ns?)
}

/// Sums over all cgroups; none where nothing was counted.
struct Total {
    cpu_ns: Option<u64>,
    faults: Option<u64>,
    flushes: Option<u64>,
}

impl Total {
    fn of(view: &View) -> Self {
        let sum = |of: fn(&CgroupCounts) -> u64| {
            Some(
                view.cgroups
                    .iter()
                    .map(|row| of(&row.counts))
                    .fold(0, u64::saturating_add),
            )
            .filter(|sum| *sum > 0)
        };
        Self {
            cpu_ns: sum(cpu_ns),
            faults: sum(faults),
            flushes: sum(flushes_of),
        }
    }
}

fn cpu_ns(counts: &CgroupCounts) -> u64 {
    all(&counts.cpu_ns)
}

fn faults(counts: &CgroupCounts) -> u64 {
    all(counts.faults.as_flattened())
}

fn flushes_of(counts: &CgroupCounts) -> u64 {
    all(&counts.flushes.map(|count| count.flushes))
}

/// A sum that stops at the end of the range: captured counts may be anything.
fn all(counts: &[u64]) -> u64 {
    counts.iter().copied().fold(0, u64::saturating_add)
}
