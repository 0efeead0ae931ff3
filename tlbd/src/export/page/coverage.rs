//! How much memory is in huge pages: of the host, of cgroups, of processes.

use maud::{Markup, html};

use super::{
    cell, human,
    human::{bytes, count, or_dash, share},
    more_row, name_cell, section, share_cell, table, unmeasured,
};
use crate::model::view::{CgroupMemoryRow, HostMemory, SMAPS_KINDS, Smaps, SmapsRow, View};

const CGROUPS: usize = 15;

/// The host's memory.
pub(super) fn host(view: &View) -> Markup {
    const TITLE: &str = "Huge pages of the host";
    let Some(memory) = &view.memory else {
        return section(TITLE, "", &unmeasured());
    };
    let rows = html! {
        (host_row("anonymous", of(memory, "anon"), of(memory, "anon_huge")))
        (host_row("shared memory", of(memory, "shmem"), of(memory, "shmem_huge")))
        (host_row("page cache", None, of(memory, "file_huge")))
    };
    let content = html! {
        div.pair {
            div { (table(&["memory", "all of it", "in huge pages", "coverage"], &rows)) }
            div { (facts(memory)) }
        }
        (events(memory))
    };
    section(TITLE, "", &content)
}

fn host_row(what: &str, all: Option<u64>, huge: Option<u64>) -> Markup {
    html! {
        tr {
            (name_cell(what))
            (cell(&or_dash(all, bytes)))
            (cell(&or_dash(huge, bytes)))
            (share_cell(covered(huge, all)))
        }
    }
}

/// Figures without a coverage, and the settings.
fn facts(memory: &HostMemory) -> Markup {
    let total = of(memory, "total");
    html! {
        dl {
            dt { "Available" }
            dd { (or_dash(of(memory, "available"), bytes)) " of " (or_dash(total, bytes)) }
            dt { "Page tables" }
            dd {
                (or_dash(of(memory, "page_tables"), bytes))
                @if let Some(percent) = covered(of(memory, "page_tables"), total) {
                    " (" (human::percent(percent)) " of memory)"
                }
                ", secondary " (or_dash(of(memory, "secondary_page_tables"), bytes))
            }
            dt { "hugetlb pool" }
            dd { (or_dash(of(memory, "hugetlb"), bytes)) }
            @for (setting, value) in &memory.thp_settings {
                dt { "THP " (setting) }
                dd { (value) }
            }
        }
    }
}

/// The kernel's counters of huge-page events, folded away.
fn events(memory: &HostMemory) -> Markup {
    let happened = || memory.thp_events.iter().filter(|(_, times)| *times > 0);
    let rows = html! {
        @for (event, times) in happened() { tr { (name_cell(event)) (cell(&count(*times))) } }
    };
    html! {
        @if happened().next().is_some() {
            details {
                summary { "Huge-page events since boot" }
                (table(&["event", "times"], &rows))
            }
        }
    }
}

/// Huge pages' share of the host's anonymous memory, in percent.
pub(super) fn share_of_host(view: &View) -> Option<f64> {
    let memory = view.memory.as_ref()?;
    covered(of(memory, "anon_huge"), of(memory, "anon"))
}

/// Each cgroup's memory.
pub(super) fn cgroups(view: &View) -> Markup {
    const COLUMNS: [&str; 7] = [
        "cgroup",
        "anonymous",
        "in huge pages",
        "coverage",
        "page cache, huge",
        "shared, huge",
        "page tables",
    ];
    let rows = html! {
        @for row in view.cgroup_memory.iter().take(CGROUPS) { (cgroup(row)) }
        (more_row(view.cgroup_memory.len().saturating_sub(CGROUPS), "cgroups", COLUMNS.len()))
    };
    let content = if view.cgroup_memory.is_empty() {
        unmeasured()
    } else {
        table(&COLUMNS, &rows)
    };
    let age = or_dash(view.cgroup_memory_age, human::age);
    let reading = format!("From memory.stat, descendants included; read {age} before this view.");
    section("Huge pages of cgroups", &reading, &content)
}

fn cgroup(row: &CgroupMemoryRow) -> Markup {
    let memory = &row.memory;
    html! {
        tr {
            (name_cell(&row.cgroup))
            (cell(&or_dash(memory.anon, bytes)))
            (cell(&or_dash(memory.anon_huge, bytes)))
            (share_cell(covered(memory.anon_huge, memory.anon)))
            (cell(&or_dash(memory.file_huge, bytes)))
            (cell(&or_dash(memory.shmem_huge, bytes)))
            (cell(&or_dash(memory.page_tables, bytes)))
        }
    }
}

/// What processes' `smaps_rollup` files say, by cgroup.
pub(super) fn smaps(view: &View) -> Markup {
    const TITLE: &str = "Huge pages of processes";
    let Some(smaps) = &view.smaps else {
        return section(TITLE, "", &unmeasured());
    };
    let columns = [
        "cgroup",
        "processes",
        "resident",
        "anonymous",
        "in huge pages",
        "coverage",
    ];
    let columns =
        columns
            .into_iter()
            .chain(["shared, huge", "file, huge", "hugetlb", "swap", "age"]);
    let columns: Vec<&str> = columns.collect();
    let rows = html! {
        @for row in smaps.cgroups.iter().take(CGROUPS) { (process_row(row)) }
        (more_row(smaps.cgroups.len().saturating_sub(CGROUPS), "cgroups", columns.len()))
    };
    let content = html! {
        @if smaps.cgroups.is_empty() { p { "None read yet." } } @else { (table(&columns, &rows)) }
        (effort(smaps))
    };
    section(
        TITLE,
        "From smaps_rollup, one process at a time; age is that of the oldest reading.",
        &content,
    )
}

fn process_row(row: &SmapsRow) -> Markup {
    let (anon, huge) = (kind(row, "anonymous"), kind(row, "anonymous_huge"));
    let hugetlb = kind(row, "hugetlb_private").zip(kind(row, "hugetlb_shared"));
    html! {
        tr {
            (name_cell(&row.cgroup))
            (cell(&count(row.processes)))
            (cell(&or_dash(kind(row, "rss"), bytes)))
            (cell(&or_dash(anon, bytes)))
            (cell(&or_dash(huge, bytes)))
            (share_cell(covered(huge, anon)))
            (cell(&or_dash(kind(row, "shmem_huge"), bytes)))
            (cell(&or_dash(kind(row, "file_huge"), bytes)))
            (cell(&or_dash(hugetlb.map(|(private, shared)| private.saturating_add(shared)), bytes)))
            (cell(&or_dash(kind(row, "swap"), bytes)))
            (cell(&human::age(row.age)))
        }
    }
}

/// What the reading cost and left out.
fn effort(smaps: &Smaps) -> Markup {
    html! {
        p {
            "Reading took " (human::nanoseconds(smaps.cpu_ns)) " of CPU time"
            @for (reason, times) in smaps.skipped.iter().filter(|(_, times)| *times > 0) {
                "; not read, " (reason.replace('_', " ")) ": " (count(*times))
            }
            "."
        }
    }
}

fn of(memory: &HostMemory, kind: &str) -> Option<u64> {
    memory
        .bytes
        .iter()
        .find_map(|(name, value)| (*name == kind).then_some(*value))
}

fn kind(row: &SmapsRow, kind: &str) -> Option<u64> {
    SMAPS_KINDS
        .iter()
        .zip(row.bytes)
        .find_map(|((name, _), value)| (*name == kind).then_some(value))
}

/// Huge pages' share of `all`, where both are known.
fn covered(huge: Option<u64>, all: Option<u64>) -> Option<f64> {
    share(huge?, all?)
}
