//! The page for people: one view as plain HTML, without scripts and without anything from
//! elsewhere.
//!
//! Answers, from the top: what cannot be seen here and why, who pays, in which kernel functions,
//! how much memory is in huge pages, and what tlbd itself costs. What the view does not have is
//! shown as a dash, never as zero. Every list is bounded, whatever the view holds.

mod coverage;
mod human;
mod own;
mod spent;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use self::human::{ABSENT, count, or_dash, percent, shortened};
use crate::model::view::{Host, OTHER, Pmu, RETIRED, UNKNOWN, View};

/// Longest name in a table, in characters; the whole name is in its tooltip.
const NAME_MAX: usize = 56;

/// The view as an HTML page.
#[must_use]
pub fn page(view: &View) -> String {
    let body = html! {
        (head(view))
        (missing(view))
        (tiles(view))
        (spent::cgroups(view))
        (spent::functions(view))
        (coverage::host(view))
        (coverage::cgroups(view))
        (coverage::smaps(view))
        div.pair { (spent::flushes(view)) (own::events(view)) }
        div.pair { (own::collectors(view)) (own::cost(view)) }
        footer {
            "Counts are totals since tlbd started. This page loads itself anew every 10 seconds. \
             The same figures for Prometheus: " a href="/metrics" { "/metrics" } "."
        }
    };
    document(&body).into_string()
}

fn document(body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="refresh" content="10";
                title { "tlbd" }
                style { (PreEscaped(include_str!("page/style.css"))) }
            }
            body { (body) }
        }
    }
}

fn head(view: &View) -> Markup {
    let Host { kernel, cpu, cpus } = &view.host;
    let cpus = Some(*cpus as u64).filter(|cpus| *cpus > 0);
    html! {
        header {
            h1 { "tlbd" }
            span { "what address translation costs on this host" }
        }
        p {
            "Linux " (known(kernel)) " \u{b7} " (known(cpu)) ", " (or_dash(cpus, count)) " CPUs sampled \u{b7} "
            (human::utc(view.at)) ", tick " (count(view.tick))
        }
    }
}

fn known(fact: &str) -> &str {
    if fact.is_empty() { ABSENT } else { fact }
}

/// What a reader must know before believing that a thing is absent from this host.
fn missing(view: &View) -> Markup {
    let Pmu {
        name,
        microarch,
        source,
        walk_cycles,
        reason,
    } = &view.pmu;
    let without_pmu = source == "none";
    if !without_pmu && view.collectors.iter().all(|collector| collector.up) {
        return html! {
            p {
                "Nothing is missing: every collector is up; hardware events from " (name) " ("
                (microarch) "), walk cycles: " (walk_cycles) "."
            }
        };
    }
    html! {
        section.missing {
            h2 { "What is missing here, and why" }
            dl {
                @if without_pmu {
                    dt { "hardware events" }
                    dd { (known(reason)) }
                }
                @for collector in view.collectors.iter().filter(|collector| !collector.up) {
                    dt { (collector.collector) }
                    dd { (known(&collector.reason)) }
                }
            }
        }
    }
}

/// The four figures to look at first.
fn tiles(view: &View) -> Markup {
    html! {
        div.tiles {
            (tile("of CPU time in the kernel", or_dash(spent::kernel_share(view), percent)))
            (tile("of anonymous memory in huge pages", or_dash(coverage::share_of_host(view), percent)))
            (tile("TLB flushes", or_dash(spent::flush_total(view), count)))
            (tile("of CPU time by tlbd itself", or_dash(own::cpu_seconds(view), human::seconds)))
        }
    }
}

fn tile(what: &str, figure: String) -> Markup {
    html! { section { b { (figure) } small { (what) } } }
}

/// A section with a sentence on how to read it.
fn section(title: &str, explanation: &str, content: &Markup) -> Markup {
    html! {
        section {
            h2 { (title) }
            @if !explanation.is_empty() { p { (explanation) } }
            (content)
        }
    }
}

/// A table; the first column is text, the others are figures unless their cells say otherwise.
fn table(columns: &[&str], rows: &Markup) -> Markup {
    html! {
        table {
            thead { tr { @for column in columns { th { (column) } } } }
            tbody { (rows) }
        }
    }
}

/// What stands in place of a table without rows.
fn unmeasured() -> Markup {
    html! { p { "Not measured here." } }
}

fn name_cell(name: &str) -> Markup {
    let shown = shortened(name, NAME_MAX);
    html! {
        @if shown == name { td { (name) } } @else { td title=(name) { (shown) } }
    }
}

fn cell(figure: &str) -> Markup {
    html! { td { (figure) } }
}

/// A percentage with a bar behind it.
fn share_cell(share: Option<f64>) -> Markup {
    html! {
        @if let Some(share) = share {
            td.share style=(format!("--share:{:.1}%", share.clamp(0.0, 100.0))) { (percent(share)) }
        } @else {
            td { (ABSENT) }
        }
    }
}

/// The line for rows that are not shown.
fn more_row(hidden: usize, what: &str, columns: usize) -> Markup {
    html! {
        @if hidden > 0 {
            tr.more { td colspan=(columns) { "and " (count(hidden as u64)) " more " (what) } }
        }
    }
}

/// The class of a row with this name.
fn row_class(name: &str) -> Option<&'static str> {
    is_special(name).then_some("special")
}

/// Whether the row stands for no single cgroup or function.
fn is_special(name: &str) -> bool {
    [OTHER, UNKNOWN, RETIRED].contains(&name)
}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
