//! Resident memory of the daemon on hosts with few and with many cgroups.

use crate::{Bench, account, cgroups::Tree, daemon::Daemon, load::Load, report::Report};

use super::pause;

const ACTIVE: usize = 20;

pub fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    for (count, bound) in [(100, 32.0), (5000, 64.0)] {
        let tree = bench.tree()?;
        let cgroups = tree.cgroups(count)?;
        at(&tree, &cgroups, bound, report)?;
    }
    Ok(())
}

fn at(tree: &Tree, cgroups: &[String], bound: f64, report: &mut Report) -> anyhow::Result<()> {
    let active = cgroups.iter().step_by(cgroups.len() / ACTIVE).take(ACTIVE);
    let _loads: Vec<Load> = active
        .map(|cgroup| Load::with(cgroup, "service", &["200", "0"]))
        .collect::<anyhow::Result<_>>()?;
    let daemon = Daemon::start(&[])?;
    // The ticks of 0, 1, 6 and 11 s, each of them scraped.
    for _ in 0..3 {
        pause(4.2);
        daemon.scrape()?;
    }
    let field = |name: &str| account::status_mib(daemon.pid(), name);
    let (anonymous, file) = (field("RssAnon")?, field("RssFile")?);
    let how = format!(
        "RssAnon {anonymous:.1} + RssFile {file:.1}, after 12 s and 3 scrapes; peak VmHWM {:.1}; {ACTIVE} cgroups active",
        field("VmHWM")?
    );
    let what = format!("resident memory, {} cgroups", cgroups.len());
    report.bounded(&what, anonymous + file, "MiB", bound, &how);
    drop(daemon);
    // Checked here so that a cgroup that was lost while measuring is noticed.
    tree.cpu_seconds().map(drop)
}
