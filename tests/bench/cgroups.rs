//! Cgroups for the loads, in the v2 hierarchy and, on a hybrid host, in that of v1's memory
//! controller too, as systemd makes them there.

#![allow(
    unsafe_code,
    reason = "what is left in a cgroup is killed by a system call"
)]

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::Context as _;

/// Cgroups under one of their own; all are removed at the end.
pub struct Tree {
    /// The folder of the base cgroup in each hierarchy, v2's first.
    bases: Vec<PathBuf>,
}

impl Tree {
    pub fn make(base: &str) -> anyhow::Result<Self> {
        let bases = bases(base)?;
        bases.iter().try_for_each(|base| create(base))?;
        Ok(Self { bases })
    }

    /// A new cgroup: its folders, joined by colons, as a load takes them.
    pub fn cgroup(&self, name: &str) -> anyhow::Result<String> {
        let folders: Vec<PathBuf> = self.bases.iter().map(|base| base.join(name)).collect();
        folders.iter().try_for_each(|folder| create(folder))?;
        let folders: Vec<String> = folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        Ok(folders.join(":"))
    }

    pub fn cgroups(&self, count: usize) -> anyhow::Result<Vec<String>> {
        (0..count)
            .map(|number| self.cgroup(&format!("service-{number:04}.service")))
            .collect()
    }

    /// CPU time of all loads in these cgroups, in seconds.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let text = fs::read_to_string(self.bases[0].join("cpu.stat"))?;
        let usage = text
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "));
        Ok(usage.context("no usage_usec in cpu.stat")?.parse::<f64>()? / 1e6)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.bases.iter().for_each(|base| sweep(base));
    }
}

fn create(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir(folder).with_context(|| format!("making the cgroup {}", folder.display()))
}

/// Removes what a run under this base left behind.
pub fn clean(base: &str) {
    for base in bases(base).unwrap_or_default() {
        sweep(&base);
    }
}

/// Where a base cgroup's folders are, v2's first.
fn bases(name: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let unified =
        mount(&mounts, |kind, _| kind == "cgroup2").context("there is no cgroup v2 mount")?;
    let memory = mount(&mounts, |kind, options| {
        kind == "cgroup" && options.split(',').any(|option| option == "memory")
    });
    Ok(std::iter::once(unified)
        .chain(memory)
        .map(|mount| mount.join(name))
        .collect())
}

fn mount(mountinfo: &str, wanted: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    let line = mountinfo.lines().find(|line| {
        let tail = line.split_once(" - ").map_or("", |(_, tail)| tail);
        let mut fields = tail.split(' ');
        wanted(
            fields.next().unwrap_or_default(),
            fields.nth(1).unwrap_or_default(),
        )
    })?;
    line.split(' ').nth(4).map(PathBuf::from)
}

fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            sweep(&entry.path());
        }
    }
    for _ in 0..200 {
        let Err(error) = fs::remove_dir(folder) else {
            return;
        };
        if error.kind() == io::ErrorKind::NotFound {
            return;
        }
        kill_all(folder);
        thread::sleep(Duration::from_millis(5));
    }
    eprintln!(
        "bench: the cgroup {} is still there: remove it with rmdir",
        folder.display()
    );
}

fn kill_all(folder: &Path) {
    let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    for pid in members.lines().flat_map(str::parse::<libc::pid_t>) {
        // SAFETY: only signals; the process is in a cgroup that this benchmark made.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}
