//! The captured host that the tests run on, and copies of it to spoil.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use tlbd::{
    collector::engine::Engine,
    config::Config,
    model::view::View,
    source::{KernelEvents, capture::Captured, root::Root},
};

use crate::support::Daemon;

/// The captured host.
pub(crate) const POLYGLOT: &str = "polyglot-6.18";

/// The folder of this workspace.
pub(crate) fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The folder of a captured host.
pub(crate) fn capture(name: &str) -> PathBuf {
    workspace().join("tests/captures").join(name)
}

/// Long enough that the first tick is the only one.
pub(crate) const ONE_TICK: &str = "--tick-seconds=3600";

/// The daemon on a captured host.
pub(crate) fn replay(folder: &Path, arguments: &[&str]) -> Daemon {
    let mut all = vec!["--replay", folder.to_str().unwrap()];
    all.extend(arguments);
    Daemon::start(&all)
}

/// The daemon on the captured host, at its first tick for as long as it runs.
pub(crate) fn polyglot(arguments: &[&str]) -> Daemon {
    replay(&capture(POLYGLOT), &[&[ONE_TICK], arguments].concat())
}

/// An engine on a captured host, as the daemon makes it.
pub(crate) fn engine(folder: &Path) -> Engine {
    let events = Captured::load(folder).map(|events| Box::new(events) as Box<dyn KernelEvents>);
    let config = Config {
        smaps_refresh_seconds: 1.0,
        ..Config::default()
    };
    Engine::open(config, Root::captured(folder), events)
}

/// The first view of a captured host.
pub(crate) fn first_view(folder: &Path) -> View {
    engine(folder).tick()
}

/// Runs the binary to its end.
pub(crate) fn tlbd(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tlbd"))
        .args(arguments)
        .output()
        .unwrap()
}

/// Whether something comes true in good time.
pub(crate) fn eventually(mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if done() {
            return true;
        }
        thread::sleep(Duration::from_millis(50));
    }
    false
}

/// A copy of the captured host, to be spoiled.
pub(crate) struct Copy(tempfile::TempDir);

impl Copy {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&capture(POLYGLOT), folder.path());
        Self(folder)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Where a file of the host is.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// The folders of its processes.
    pub(crate) fn processes(&self) -> Vec<PathBuf> {
        let is_process = |path: &PathBuf| {
            path.file_name()
                .and_then(|name| name.to_str()?.parse::<u32>().ok())
                .is_some()
        };
        let mut found: Vec<PathBuf> = entries(&self.path("proc"))
            .into_iter()
            .filter(is_process)
            .collect();
        found.sort();
        assert!(!found.is_empty(), "the capture has processes");
        found
    }
}

/// What is in a folder.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in entries(from) {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &target);
        } else {
            fs::copy(&entry, &target).unwrap();
        }
    }
}
