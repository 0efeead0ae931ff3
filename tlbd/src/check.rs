//! `tlbd check`: what this host can and cannot do, each line with its reason and mend.

use std::{fmt::Write as _, process::ExitCode};

use serde::Serialize;

use crate::{
    collector::engine::Engine,
    config::Config,
    daemon,
    source::{capability, cgroupfs::Mounts, root::Root},
};

/// The whole report.
#[derive(Debug, Serialize)]
pub struct Report {
    /// `full`, `degraded` or `cannot run`.
    pub verdict: Verdict,
    /// Kernel release.
    pub kernel: String,
    /// CPU model.
    pub cpu: String,
    /// Where cgroup ids get their names, if anywhere.
    pub cgroups: Option<String>,
    /// Where memory by cgroup is read, if anywhere.
    pub memory: Option<String>,
    /// Capabilities that are missing, with what they are for.
    pub missing_capabilities: Vec<(&'static str, &'static str)>,
    /// One line for each thing that tlbd measures.
    pub lines: Vec<Line>,
}

/// Whether one thing can be measured here.
#[derive(Debug, Serialize)]
pub struct Line {
    /// The collector, or the part of one.
    pub name: &'static str,
    /// What it answers.
    pub answers: &'static str,
    /// Whether it works.
    pub ok: bool,
    /// Why not; empty when it works.
    pub reason: String,
}

/// What a host is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything works.
    Full,
    /// Something does not; the rest does.
    Degraded,
    /// Nothing does.
    CannotRun,
}

impl Verdict {
    /// The exit code that stands for it: 0, 1 or 2.
    #[must_use]
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Full => 0,
            Self::Degraded => 1,
            Self::CannotRun => 2,
        })
    }

    fn of(lines: &[Line]) -> Self {
        // What tlbd costs and which machine it is on can be told anywhere.
        let measures = |line: &&Line| line.ok && !matches!(line.name, "own" | "pmu");
        match (
            lines.iter().all(|line| line.ok),
            lines.iter().any(|line| measures(&line)),
        ) {
            (true, _) => Self::Full,
            (false, true) => Self::Degraded,
            (false, false) => Self::CannotRun,
        }
    }
}

/// Starts everything as `tlbd run` would, takes one view, and reports.
#[must_use]
pub fn check(config: Config) -> Report {
    let root = Root::host();
    let events = daemon::host_events(&config);
    let mut engine = Engine::open(config, root.clone(), events);
    let view = engine.tick();
    let mut lines: Vec<Line> = engine
        .states()
        .map(|(entry, _)| {
            let row = view
                .collectors
                .iter()
                .find(|row| row.collector == entry.name);
            Line {
                name: entry.name,
                answers: entry.answers,
                ok: row.is_some_and(|row| row.up),
                reason: row.map(|row| row.reason.clone()).unwrap_or_default(),
            }
        })
        .collect();
    if view.pmu.source == "none" {
        for line in lines.iter_mut().filter(|line| line.name == "pmu") {
            (line.ok, line.reason) = (false, view.pmu.reason.clone());
        }
    }
    lines.push(announcements(&engine));
    let mounts = Mounts::find(&root).unwrap_or_default();
    Report {
        verdict: Verdict::of(&lines),
        kernel: view.host.kernel,
        cpu: view.host.cpu,
        cgroups: mounts
            .unified
            .map(|mount| format!("cgroup v2 at {}", mount.display())),
        memory: mounts.memory.map(|(mount, version)| {
            format!("cgroup {version:?} at {}", mount.display()).to_lowercase()
        }),
        missing_capabilities: capability::missing(&root)
            .iter()
            .map(|c| (c.name, c.purpose))
            .collect(),
        lines,
    }
}

/// Cgroups are named by a scan where their births and deaths are not announced.
fn announcements(engine: &Engine) -> Line {
    let state = &engine.context().hooks.cgroups;
    Line {
        name: "cgroup_changes",
        answers: "names of cgroups that live shorter than a tick",
        ok: state.is_ok(),
        reason: state
            .as_ref()
            .err()
            .map(|r| format!("{r} ({})", r.mend()))
            .unwrap_or_default(),
    }
}

impl Report {
    /// The report for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let none = || "none found: everything is counted as one unknown cgroup".to_owned();
        writeln!(text, "kernel   {}", self.kernel)?;
        writeln!(text, "cpu      {}", self.cpu)?;
        writeln!(
            text,
            "cgroups  {}",
            self.cgroups.clone().unwrap_or_else(none)
        )?;
        writeln!(
            text,
            "memory   {}",
            self.memory
                .as_deref()
                .unwrap_or("no memory controller found")
        )?;
        for (name, purpose) in &self.missing_capabilities {
            writeln!(text, "missing  {name}: needed to {purpose}")?;
        }
        writeln!(text)?;
        for line in &self.lines {
            let mark = if line.ok { "yes" } else { "no " };
            writeln!(text, "{mark}  {:<15} {}", line.name, line.answers)?;
            if !line.ok {
                writeln!(text, "     {:<15} {}", "", line.reason)?;
            }
        }
        let verdict = match self.verdict {
            Verdict::Full => "full: everything works here",
            Verdict::Degraded => "degraded: tlbd runs here without the lines marked no",
            Verdict::CannotRun => "cannot run: nothing can be measured here",
        };
        writeln!(text, "\n{verdict}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &'static str, ok: bool) -> Line {
        Line {
            name,
            answers: "",
            ok,
            reason: String::new(),
        }
    }

    #[test]
    fn one_missing_thing_degrades_and_own_figures_alone_are_not_enough() {
        assert_eq!(
            Verdict::of(&[line("a", true), line("b", true)]),
            Verdict::Full
        );
        assert_eq!(
            Verdict::of(&[line("a", true), line("b", false)]),
            Verdict::Degraded
        );
        assert_eq!(
            Verdict::of(&[line("own", true), line("b", false)]),
            Verdict::CannotRun
        );
    }
}
