//! The cgroup filesystem: where its hierarchies are mounted, and which cgroups there are.

use std::{
    fs,
    os::unix::{ffi::OsStrExt as _, fs::DirEntryExt as _},
    path::{Path, PathBuf},
};

use procfs::process::MountInfo;

use super::root::{Error, Root};
use crate::model::printable::printable;

/// Deepest nesting that is walked; `cgroup.max.depth` is unlimited, file names are not.
const DEPTH_MAX: usize = 64;
/// Most cgroups that are listed.
const CGROUPS_MAX: usize = 100_000;

/// Where the hierarchies that tlbd reads are mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts {
    /// cgroup v2: the hierarchy whose ids the BPF programs see.
    pub unified: Option<PathBuf>,
    /// The hierarchy that has the memory controller, and its version.
    pub memory: Option<(PathBuf, Version)>,
}

/// The version of a cgroup hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy of its own for each controller.
    V1,
    /// The unified hierarchy.
    V2,
}

impl Mounts {
    /// Reads the mounts of this process.
    ///
    /// # Errors
    /// If `/proc/self/mountinfo` cannot be read.
    pub fn find(root: &Root) -> Result<Self, Error> {
        let text = root.read_text("/proc/self/mountinfo")?;
        // Line by line: one odd mount must not hide the others.
        let mounts: Vec<_> = text
            .lines()
            .filter_map(|line| MountInfo::from_line(line).ok())
            .collect();
        let unified = mounts.iter().find(|mount| mount.fs_type == "cgroup2");
        let unified = unified.map(|mount| mount.mount_point.clone());
        let has_memory = |folder: &PathBuf| {
            let controllers = root.read_text(folder.join("cgroup.controllers"));
            controllers.is_ok_and(|names| names.split_whitespace().any(|name| name == "memory"))
        };
        let v1 = || {
            let is_memory = |mount: &&MountInfo| {
                mount.fs_type == "cgroup" && mount.super_options.contains_key("memory")
            };
            mounts
                .iter()
                .find(is_memory)
                .map(|mount| (mount.mount_point.clone(), Version::V1))
        };
        let memory = match &unified {
            Some(folder) if has_memory(folder) => Some((folder.clone(), Version::V2)),
            _ => v1(),
        };
        Ok(Self { unified, memory })
    }
}

/// A cgroup in the tree of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Inode of its folder: on v2, its id (`cgroup_id` in `include/linux/cgroup.h`).
    pub inode: u64,
    /// Folder of its files.
    pub folder: PathBuf,
    /// Its path from the mount, printable; `/` for the mount itself.
    pub path: String,
}

/// Every cgroup below a mount, the mount itself first.
///
/// # Errors
/// If the mount cannot be read; cgroups that vanish meanwhile are left out.
pub fn walk(root: &Root, mount: &Path) -> Result<Vec<Cgroup>, Error> {
    let named = |error| Error {
        path: mount.to_owned(),
        error,
    };
    let top = root.path(mount);
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&top).map_err(named)?);
    let mut found = vec![Cgroup {
        inode,
        folder: mount.to_owned(),
        path: "/".into(),
    }];
    let mut open = vec![(mount.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let Ok(entries) = fs::read_dir(root.path(&folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || found.len() >= CGROUPS_MAX {
                continue;
            }
            let folder = folder.join(entry.file_name());
            let path = relative(mount, &folder);
            found.push(Cgroup {
                inode: entry.ino(),
                folder: folder.clone(),
                path,
            });
            if depth < DEPTH_MAX {
                open.push((folder, depth + 1));
            }
        }
    }
    Ok(found)
}

fn relative(mount: &Path, folder: &Path) -> String {
    let path = folder.strip_prefix(mount).unwrap_or(folder);
    format!("/{}", printable(path.as_os_str().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(mountinfo: &str, controllers: Option<&str>) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/self/mountinfo", mountinfo);
        if let Some(controllers) = controllers {
            write("sys/fs/cgroup/cgroup.controllers", controllers);
        }
        folder
    }

    const V2_ONLY: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const HYBRID: &str = include_str!("../../../tests/fixtures/mountinfo/hybrid-6.18.txt");

    #[test]
    fn a_v2_host_has_its_memory_there() {
        let folder = host(V2_ONLY, Some("cpu io memory pids\n"));
        let mounts = Mounts::find(&Root::captured(folder.path())).unwrap();
        assert_eq!(mounts.memory, Some(("/sys/fs/cgroup".into(), Version::V2)));
    }

    #[test]
    fn a_hybrid_host_has_its_memory_in_v1() {
        let folder = host(HYBRID, None);
        let mounts = Mounts::find(&Root::captured(folder.path())).unwrap();
        assert_eq!(mounts.unified, Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(
            mounts.memory,
            Some(("/sys/fs/cgroup/memory".into(), Version::V1))
        );
    }

    #[test]
    fn one_odd_line_does_not_hide_the_other_mounts() {
        let folder = host(&format!("nonsense\n\n1 2\n{V2_ONLY}"), Some("memory\n"));
        let mounts = Mounts::find(&Root::captured(folder.path())).unwrap();
        assert!(mounts.unified.is_some());
    }

    #[test]
    fn a_walk_finds_nested_cgroups_with_hostile_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("cg/a\nb/c \"d\"")).unwrap();
        let found = walk(&Root::captured(folder.path()), Path::new("/cg")).unwrap();
        let paths: Vec<_> = found.iter().map(|cgroup| cgroup.path.as_str()).collect();
        assert_eq!(paths, ["/", "/a\\x0ab", "/a\\x0ab/c \"d\""]);
    }
}
