//! Files of the host, or of a captured one: every read goes through a prefix and has a bound.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufReader, Read as _},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// More than any file that is read whole can sensibly hold.
const FILE_MAX: u64 = 4 << 20;

/// A file that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct Error {
    /// Which.
    pub path: PathBuf,
    /// What the kernel said.
    #[source]
    pub error: io::Error,
}

impl Error {
    /// Whether the thing that the file was about is gone: no such file, or no such process.
    #[must_use]
    pub fn vanished(&self) -> bool {
        self.error.kind() == io::ErrorKind::NotFound
            || self.error.raw_os_error() == Some(libc::ESRCH)
    }
}

/// The root of a host's files.
#[derive(Clone, Debug)]
pub struct Root {
    prefix: PathBuf,
    /// Where every file that is read is also written to.
    copy: Option<PathBuf>,
}

impl Root {
    /// This host.
    #[must_use]
    pub fn host() -> Self {
        Self {
            prefix: "/".into(),
            copy: None,
        }
    }

    /// A captured host.
    #[must_use]
    pub fn captured(folder: &Path) -> Self {
        Self {
            prefix: folder.to_owned(),
            copy: None,
        }
    }

    /// This host, with a copy of every file that is read, the file's path under `folder`.
    #[must_use]
    pub fn recording(folder: &Path) -> Self {
        Self {
            prefix: "/".into(),
            copy: Some(folder.to_owned()),
        }
    }

    /// Whether this is the running host, watched over time: neither captured nor being captured.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.prefix == Path::new("/") && self.copy.is_none()
    }

    /// Where a path of the host is.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        under(&self.prefix, path.as_ref())
    }

    /// The bytes of a file, up to 4 MiB.
    ///
    /// # Errors
    /// If it cannot be read, or copied while recording.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, Error> {
        let path = path.as_ref();
        let named = |error| Error {
            path: path.to_owned(),
            error,
        };
        let mut bytes = Vec::new();
        let file = File::open(self.path(path)).map_err(named)?;
        file.take(FILE_MAX).read_to_end(&mut bytes).map_err(named)?;
        if let Some(copy) = &self.copy {
            save(&under(copy, path), &bytes).map_err(named)?;
        }
        Ok(bytes)
    }

    /// The text of a file; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_text(&self, path: impl AsRef<Path>) -> Result<String, Error> {
        let bytes = self.read(path)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// A file that is too big to hold, line by line; it is not copied while recording.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<BufReader<File>, Error> {
        let path = path.as_ref();
        let file = File::open(self.path(path));
        let file = file.map_err(|error| Error {
            path: path.to_owned(),
            error,
        })?;
        Ok(BufReader::with_capacity(1 << 16, file))
    }

    /// The names in a folder, sorted.
    ///
    /// # Errors
    /// If it cannot be opened; entries that vanish meanwhile are left out.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<OsString>, Error> {
        let path = path.as_ref();
        let entries = fs::read_dir(self.path(path));
        let entries = entries.map_err(|error| Error {
            path: path.to_owned(),
            error,
        })?;
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        Ok(names)
    }
}

fn under(prefix: &Path, path: &Path) -> PathBuf {
    let relative: PathBuf = path
        .components()
        .filter(|part| is_plain(part.as_os_str().as_bytes()))
        .collect();
    prefix.join(relative)
}

/// A captured folder's own names must not lead out of it.
fn is_plain(component: &[u8]) -> bool {
    !matches!(component, b"/" | b"..")
}

fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_captured_path_stays_in_its_folder() {
        let root = Root::captured(Path::new("/captures/host"));
        assert_eq!(
            root.path("/proc/meminfo"),
            Path::new("/captures/host/proc/meminfo")
        );
        assert_eq!(
            root.path("/sys/../../etc/passwd"),
            Path::new("/captures/host/sys/etc/passwd")
        );
    }

    #[test]
    fn a_recording_root_copies_what_it_reads() {
        let folder = tempfile::tempdir().unwrap();
        let read = Root::recording(folder.path())
            .read("/proc/version")
            .unwrap();
        assert_eq!(
            Root::captured(folder.path()).read("/proc/version").unwrap(),
            read
        );
    }

    #[test]
    fn an_error_names_the_file() {
        let error = Root::host().read("/proc/nothing").unwrap_err();
        assert!(error.to_string().starts_with("/proc/nothing: "));
    }
}
