//! `tlbd capture`: this host's inputs as a folder, for `tlbd run --replay`.

use std::{fs, path::Path, thread, time::Duration};

use anyhow::Context as _;

use crate::{
    collector::engine::{Engine, symbols},
    config::Config,
    daemon::host_events,
    source::{
        KernelEvents, Unavailable,
        capture::{Captured, fresh_folder},
        root::Root,
    },
};

/// A capture of this host: counts for `duration`, then writes what the collectors read.
///
/// # Errors
/// If the folder is not new, or cannot be written.
pub fn capture(config: Config, folder: &Path, duration: Duration) -> anyhow::Result<()> {
    let folder = fresh_folder(folder)?;
    let events: Result<Box<dyn KernelEvents>, Unavailable> = match host_events(&config) {
        Ok(mut events) => {
            thread::sleep(duration);
            let symbols = symbols(&Root::host());
            let (captured, kallsyms) = Captured::take(events.as_mut(), symbols.as_ref().ok())?;
            captured
                .save(&folder, &kallsyms)
                .with_context(|| format!("writing {}", folder.display()))?;
            Ok(Box::new(captured))
        }
        Err(reason) => {
            eprintln!(
                "tlbd: no kernel events in this capture: {reason} ({})",
                reason.mend()
            );
            Err(reason)
        }
    };
    // One tick of the real collectors, on a root that copies what they read.
    let view = Engine::open(config, Root::recording(&folder), events).tick();
    for row in view.collectors.iter().filter(|row| !row.up) {
        eprintln!(
            "tlbd: {} is not in this capture: {}",
            row.collector, row.reason
        );
    }
    keep_cgroup_mounts(&folder)
}

/// Of the mounts only the cgroup hierarchies are read; the others are nobody else's business.
fn keep_cgroup_mounts(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join("proc/self/mountinfo");
    let Ok(text) = fs::read_to_string(&path) else {
        return Ok(());
    };
    let mounts = text.lines().filter(|line| line.contains(" - cgroup"));
    let kept: String = mounts.map(|line| format!("{line}\n")).collect();
    fs::write(&path, kept).with_context(|| format!("writing {}", path.display()))
}
