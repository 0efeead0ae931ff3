//! `tlbd events`: which hardware event answers which question on a CPU, and what to know about it.
//!
//! The answer comes from the catalogue alone: whether this host lets anyone count is for
//! `tlbd check` to say.

use std::{fmt::Write as _, fs, path::Path, process::ExitCode};

use anyhow::Context as _;
use serde::Serialize;

use crate::{
    model::uarch::{Catalogue, Core, Counts, CpuId, Event, Nested, PerfType, Reading, Role, Uarch},
    source::{cpu, root::Root},
};

/// The shipped catalogue, and the user's file before it.
///
/// # Errors
/// If the file cannot be read or is wrong: with its name and the line.
pub fn catalogue(file: Option<&Path>) -> anyhow::Result<Catalogue> {
    let mut catalogue = Catalogue::shipped().context("the shipped catalogue")?;
    if let Some(file) = file {
        let shown = file.display().to_string();
        let text = fs::read_to_string(file).with_context(|| shown.clone())?;
        catalogue.add(Uarch::parse(&shown, &text)?);
    }
    Ok(catalogue)
}

/// What is printed.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The CPU, as `--cpu` takes it.
    cpu: String,
    /// Whether the catalogue has it.
    known: bool,
    /// What stands in for its events, and why; `None` for a CPU of the catalogue.
    note: Option<String>,
    /// Its kinds of cores.
    cores: Vec<CoreReport>,
}

#[derive(Debug, Serialize)]
struct CoreReport {
    /// The file of the catalogue.
    uarch: String,
    name: String,
    arch: Option<String>,
    pmu: String,
    core_type: Option<u8>,
    walkers: Option<u8>,
    notes: Vec<String>,
    events: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    role: String,
    /// `perf_event_attr.config`, hexadecimal as a text.
    config: String,
    #[serde(flatten)]
    event: Event,
}

/// Says which events the CPU has: `cpu`, or the host's own.
///
/// # Errors
/// If no CPU was named and the host does not say its own.
pub fn report(catalogue: &Catalogue, cpu: Option<CpuId>, root: &Root) -> anyhow::Result<Report> {
    let cpu = match cpu {
        Some(cpu) => cpu,
        None => cpu::identity(root)
            .context("cannot tell which CPU this is; name one with --cpu, as GenuineIntel-6-8F")?,
    };
    let identified = catalogue.identify(&cpu);
    Ok(Report {
        cpu: cpu.to_string(),
        known: identified.note.is_none(),
        note: identified.note,
        cores: identified.cores.iter().map(core).collect(),
    })
}

fn core(core: &Core<'_>) -> CoreReport {
    let uarch = core.uarch;
    let line = |(role, event): (&Role, &Event)| Line {
        role: role.to_string(),
        config: format!("{:#x}", event.encoding(uarch.layout).config),
        event: event.clone(),
    };
    CoreReport {
        uarch: uarch.id.clone(),
        name: core.name().to_owned(),
        arch: core.model.map(|model| model.arch.clone()),
        pmu: core.pmu().to_owned(),
        core_type: core.core_type(),
        walkers: core.walkers(),
        notes: uarch.notes.clone(),
        events: uarch.events.iter().map(line).collect(),
    }
}

impl Report {
    /// 0 for a CPU of the catalogue, else 1.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(u8::from(!self.known))
    }

    /// As a table for each kind of core.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(note) = &self.note {
            text += note;
            text.push_str("\n\n");
        }
        let tables = self.cores.iter().map(|core| core.text(&self.cpu));
        text + &tables.collect::<Vec<_>>().join("\n")
    }
}

impl CoreReport {
    fn text(&self, cpu: &str) -> String {
        let mut text = format!("{cpu}: {}", self.name);
        if let Some(arch) = &self.arch {
            let _ = write!(text, " ({arch})");
        }
        let _ = write!(text, ", PMU {}", self.pmu);
        if let Some(walkers) = self.walkers {
            let _ = write!(text, ", page walkers per core: {walkers}");
        }
        text.push_str("\n\n");
        let head = ["ROLE", "EVENT", "CONFIG", "READING", "COUNTERS", "CAVEATS"];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(self.events.iter().map(Line::row));
        text += &table(&rows);
        text.push('\n');
        for note in &self.notes {
            let _ = writeln!(text, "- {note}");
        }
        text
    }
}

impl Line {
    fn row(&self) -> [String; 6] {
        let event = &self.event;
        let mut config = match event.perf_type {
            PerfType::Raw => self.config.clone(),
            PerfType::Hardware => format!("hardware:{}", self.config),
            PerfType::HwCache => format!("hw_cache:{}", self.config),
        };
        if event.config1 != 0 {
            let _ = write!(config, ",config1={:#x}", event.config1);
        }
        [
            self.role.clone(),
            event.name.clone(),
            config,
            reading(event).to_owned(),
            counters(event),
            caveats(event),
        ]
    }
}

/// How cycles are read, or which walks are counted.
fn reading(event: &Event) -> &'static str {
    match (event.reading, event.counts) {
        (Some(Reading::Active), _) => "active",
        (Some(Reading::Pending), _) => "pending",
        (Some(Reading::Duration), _) => "duration",
        (Some(Reading::Proxy), _) => "proxy",
        (None, Some(Counts::Completed)) => "completed",
        (None, Some(Counts::Started)) => "started",
        (None, Some(Counts::Requested)) => "requested",
        (None, Some(Counts::Architected)) => "architected",
        (None, Some(Counts::Unspecified)) => "unspecified",
        (None, None) => "-",
    }
}

fn counters(event: &Event) -> String {
    let mut shown: Vec<String> = Vec::new();
    if event.fixed {
        shown.push("fixed".to_owned());
    }
    shown.extend(event.counters.map(|span| span.to_string()));
    if let Some(span) = event.counters_smt_off {
        shown.push(format!("SMT off {span}"));
    }
    if shown.is_empty() {
        return "-".to_owned();
    }
    shown.join(", ")
}

fn caveats(event: &Event) -> String {
    let mut shown: Vec<String> = event.caveat.iter().cloned().collect();
    match event.nested {
        Some(Nested::Included) => shown.push("includes nested time".to_owned()),
        Some(Nested::Excluded) => shown.push("without nested time".to_owned()),
        Some(Nested::Unstated) => shown.push("nested time: not stated".to_owned()),
        None => {}
    }
    match event.data_address {
        Some(true) => shown.push("with data address".to_owned()),
        Some(false) => shown.push("the list names no data address".to_owned()),
        None => {}
    }
    if !event.union_of.is_empty() {
        shown.push(format!("joins {} listed events", event.union_of.len()));
    }
    if event.umask_ext != 0 {
        shown.push("needs umask bits 40-47".to_owned());
    }
    if !event.errata.is_empty() {
        shown.push(format!("errata {}", event.errata.join(", ")));
    }
    shown.join("; ")
}

/// Columns side by side; nothing behind the last.
fn table(rows: &[[String; 6]]) -> String {
    let widths: [usize; 6] = std::array::from_fn(|column| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    });
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:width$}  "))
            .collect();
        text += line.trim_end();
        text.push('\n');
    }
    text
}
