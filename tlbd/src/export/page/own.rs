//! What the figures rest on and what they cost: samples, losses, collectors, tlbd itself.

use maud::{Markup, html};

use super::{
    cell,
    human::{self, bytes, count, or_dash, seconds},
    name_cell, section, table, unmeasured,
};
use crate::model::view::{EventRow, View};

/// The sampled events, and what was lost of them.
pub(super) fn events(view: &View) -> Markup {
    let rows = html! {
        @for event in &view.events {
            tr {
                (name_cell(event.event))
                (cell(&count(event.samples)))
                (cell(&period(event)))
            }
        }
    };
    let content = html! {
        @if view.events.is_empty() {
            (unmeasured())
        } @else {
            (table(&["event", "samples", "period"], &rows))
        }
        (losses(view))
    };
    section("Sampled events and losses", "", &content)
}

/// The clock's period is a time; that of other events is a number of them.
fn period(event: &EventRow) -> String {
    if event.event == "cpu_clock" {
        human::nanoseconds(event.period)
    } else {
        count(event.period)
    }
}

fn losses(view: &View) -> Markup {
    let lost = || view.losses.iter().filter(|loss| loss.count > 0);
    let rows = html! {
        @for loss in lost() {
            tr {
                (name_cell(&format!("{}: {}", loss.event, loss.reason).replace('_', " ")))
                (cell(&count(loss.count)))
            }
        }
    };
    html! {
        @if lost().next().is_some() {
            (table(&["lost, or not filed where it belongs", "times"], &rows))
        } @else if !view.losses.is_empty() {
            p { "Nothing was lost." }
        }
    }
}

/// Each collector's state and time.
pub(super) fn collectors(view: &View) -> Markup {
    let rows = html! {
        @for row in &view.collectors {
            tr {
                (name_cell(row.collector))
                (cell(if row.up { "up" } else { "down" }))
                (cell(&or_dash(row.up.then_some(row.seconds), seconds)))
            }
        }
    };
    let columns = ["collector", "state", "time in the last tick"];
    let content = if view.collectors.is_empty() {
        unmeasured()
    } else {
        table(&columns, &rows)
    };
    section("Collectors", "", &content)
}

/// What tlbd itself costs, and how many series it keeps.
pub(super) fn cost(view: &View) -> Markup {
    let resident = Some(view.own.resident_bytes).filter(|bytes| *bytes > 0);
    let content = html! {
        dl {
            dt { "CPU time" }
            dd { (or_dash(cpu_seconds(view), seconds)) }
            dt { "Resident memory" }
            dd { (or_dash(resident, bytes)) }
            @for row in &view.folded {
                dt { (row.family.replace('_', " ")) " series" }
                dd { (count(row.series)) ", folded " (count(row.folded)) }
            }
        }
        (programs(view))
    };
    section("What tlbd itself costs", "", &content)
}

/// CPU time of tlbd, if it was read: a process that has run has used some.
pub(super) fn cpu_seconds(view: &View) -> Option<f64> {
    Some(view.own.cpu_seconds).filter(|seconds| *seconds > 0.0)
}

fn programs(view: &View) -> Markup {
    let rows = html! {
        @for row in &view.own.programs {
            tr {
                (name_cell(&row.program))
                (cell(&count(row.runs)))
                (cell(&human::nanoseconds(row.run_ns)))
                (cell(&or_dash(row.run_ns.checked_div(row.runs), |ns| format!("{} ns", count(ns)))))
            }
        }
    };
    html! {
        @if !view.own.programs.is_empty() {
            (table(&["BPF program", "runs", "time", "each"], &rows))
        }
    }
}
