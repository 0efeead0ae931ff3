//! A captured host: its files in a folder, and what its kernel counted in one file among them.
//!
//! The folder holds every file that the collectors read, under its own path, and
//! `tlbd-events.json`. Kernel addresses are replaced by made-up ones (they would tell where the
//! kernel is in memory), with a `proc/kallsyms` that names just those.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::{Drained, Hooks, KernelEvents, Unavailable, root};
use crate::model::{symbols::Symbols, view::ProgramRow};

const EVENTS: &str = "tlbd-events.json";
/// Format of the events file; others are refused.
const VERSION: u32 = 1;
/// Where made-up addresses start, and the room between two functions.
const BASE: u64 = 0xffff_ffff_8100_0000;
const STEP: u64 = 0x1000;

/// What the kernel of a captured host counted.
#[derive(Debug, Serialize, Deserialize)]
pub struct Captured {
    version: u32,
    /// Which hooks the host had.
    sampler: bool,
    faults: bool,
    flushes: bool,
    cgroups: bool,
    /// The clock's period in nanoseconds, and its CPUs.
    period: u64,
    cpus: usize,
    flush_reasons: Vec<String>,
    names: Vec<(u64, String)>,
    drained: Drained,
    #[serde(skip, default = "not_captured")]
    hooks: Hooks,
}

fn not_captured() -> Hooks {
    Hooks::none(&Unavailable::NotCaptured)
}

impl Captured {
    /// Takes one drain from a running kernel, with made-up addresses for the functions that
    /// `symbols` knows, and the kallsyms text for those. Without symbols there are no addresses.
    ///
    /// # Errors
    /// If the kernel's maps or cgroups cannot be read.
    pub fn take(
        events: &mut dyn KernelEvents,
        symbols: Option<&Symbols>,
    ) -> anyhow::Result<(Self, String)> {
        let mut drained = events.drain()?;
        let kallsyms = hide_addresses(&mut drained, symbols);
        let hooks = events.hooks().clone();
        let (period, cpus) = events.sampling();
        let captured = Self {
            version: VERSION,
            sampler: hooks.sampler.is_ok(),
            faults: hooks.faults.is_ok(),
            flushes: hooks.flushes.is_ok(),
            cgroups: hooks.cgroups.is_ok(),
            period,
            cpus,
            flush_reasons: events.flush_reasons().to_vec(),
            names: events.cgroups()?,
            drained,
            hooks,
        };
        Ok((captured, kallsyms))
    }

    /// Writes a capture's own two files.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn save(&self, folder: &Path, kallsyms: &str) -> io::Result<()> {
        fs::create_dir_all(folder.join("proc"))?;
        fs::write(folder.join("proc/kallsyms"), kallsyms)?;
        fs::write(folder.join(EVENTS), serde_json::to_vec_pretty(self)?)
    }

    /// Reads a capture's events file.
    ///
    /// # Errors
    /// [`Unavailable::NotCaptured`] if the folder has none; else what is wrong with it.
    pub fn load(folder: &Path) -> Result<Self, Unavailable> {
        let path = folder.join(EVENTS);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Unavailable::NotCaptured);
            }
            Err(error) => return Err(unusable(&path, error.to_string())),
        };
        let mut captured: Self =
            serde_json::from_slice(&text).map_err(|error| unusable(&path, error.to_string()))?;
        if captured.version != VERSION {
            let found = captured.version;
            return Err(unusable(
                &path,
                format!("format {found}; this tlbd reads format {VERSION}"),
            ));
        }
        let hook = |there: bool| {
            if there {
                Ok(())
            } else {
                Err(Unavailable::NotCaptured)
            }
        };
        captured.hooks = Hooks {
            sampler: hook(captured.sampler),
            faults: hook(captured.faults),
            flushes: hook(captured.flushes),
            cgroups: hook(captured.cgroups),
        };
        Ok(captured)
    }
}

fn unusable(path: &Path, error: String) -> Unavailable {
    Unavailable::File {
        path: path.display().to_string(),
        error,
    }
}

impl KernelEvents for Captured {
    fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    fn flush_reasons(&self) -> &[String] {
        &self.flush_reasons
    }

    fn sampling(&self) -> (u64, usize) {
        (self.period, self.cpus)
    }

    /// The same counts each time, so that a replay moves on at the captured host's pace; cgroups
    /// come and go only in the first.
    fn drain(&mut self) -> anyhow::Result<Drained> {
        let drained = self.drained.clone();
        self.drained.changes.clear();
        Ok(drained)
    }

    fn cgroups(&self) -> Result<Vec<(u64, String)>, root::Error> {
        Ok(self.names.clone())
    }

    fn programs(&self) -> Vec<ProgramRow> {
        Vec::new()
    }
}

/// Replaces every kernel address by a made-up one for its function, and gives the kallsyms text
/// that names those.
fn hide_addresses(drained: &mut Drained, symbols: Option<&Symbols>) -> String {
    let mut made_up: BTreeMap<String, u64> = BTreeMap::new();
    let mut hide = |address: &mut u64| {
        let name = symbols.and_then(|symbols| symbols.resolve(*address));
        *address = match name {
            Some(name) => {
                let next = BASE + made_up.len() as u64 * STEP;
                *made_up.entry(name.to_owned()).or_insert(next)
            }
            // Below the first symbol, so that it stays unknown; the top bit stays set.
            None => 1 << 63,
        };
    };
    for (key, _) in drained
        .samples
        .iter_mut()
        .filter(|(key, _)| key.address != 0)
    {
        hide(&mut key.address);
    }
    drained.stacks.values_mut().flatten().for_each(hide);
    let mut kallsyms = String::new();
    for (name, address) in made_up {
        // A module's tag is part of the name that `Symbols` gives: `hook [nf_tables]`.
        let line = name.replacen(" [", "\t[", 1);
        let _ = writeln!(kallsyms, "{address:016x} t {line}");
    }
    kallsyms
}

/// A folder for a new capture.
///
/// # Errors
/// If it is there and not empty, or cannot be made.
pub fn fresh_folder(folder: &Path) -> anyhow::Result<PathBuf> {
    let named = || format!("making {}", folder.display());
    fs::create_dir_all(folder).with_context(named)?;
    if fs::read_dir(folder).with_context(named)?.next().is_some() {
        anyhow::bail!("{} is not empty: name a new folder", folder.display());
    }
    Ok(folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::symbols::Aliases;
    use tlbd_common::{Mode, SampleCount, SampleKey};

    fn symbols(text: &str) -> Symbols {
        Symbols::parse(text.as_bytes(), &Aliases::default()).unwrap()
    }

    #[test]
    fn real_addresses_do_not_leave_the_host_but_names_do() {
        let real = symbols("ffffffff9a000000 t tcp_poll\nffffffff9a000100 t hook\t[nf_tables]\n");
        let sample = |address| {
            let key = SampleKey {
                cgroup: 1,
                address,
                stack: 5,
                role: 0,
                mode: Mode::Kernel as u32,
            };
            (
                key,
                SampleCount {
                    samples: 1,
                    weight: 1,
                },
            )
        };
        let mut drained = Drained {
            samples: vec![
                sample(0xffff_ffff_9a00_0010),
                sample(0xffff_ffff_9a00_0110),
                sample(0xffff_ffff_0000_0000),
            ],
            stacks: [(5, vec![0xffff_ffff_9a00_0020])].into(),
            ..Drained::default()
        };
        let kallsyms = hide_addresses(&mut drained, Some(&real));
        assert!(!kallsyms.contains("ffffffff9a"));
        let made_up = symbols(&kallsyms);
        let names: Vec<_> = drained
            .samples
            .iter()
            .map(|(key, _)| made_up.resolve(key.address))
            .collect();
        assert_eq!(names, [Some("tcp_poll"), Some("hook [nf_tables]"), None]);
        assert_eq!(made_up.resolve(drained.stacks[&5][0]), Some("tcp_poll"));
        assert!(
            drained
                .samples
                .iter()
                .all(|(key, _)| Mode::of_address(key.address) == Mode::Kernel)
        );
    }

    #[test]
    fn a_folder_with_something_in_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(fresh_folder(folder.path()).is_ok());
        fs::write(folder.path().join("x"), "").unwrap();
        assert!(
            fresh_folder(folder.path())
                .unwrap_err()
                .to_string()
                .contains("not empty")
        );
    }

    #[test]
    fn a_broken_events_file_says_where() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            Captured::load(folder.path()).unwrap_err(),
            Unavailable::NotCaptured
        );
        fs::write(folder.path().join(EVENTS), "{\"version\": 1").unwrap();
        let error = Captured::load(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains(EVENTS) && error.contains("line 1"),
            "{error}"
        );
    }
}
