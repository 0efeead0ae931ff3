//! Why something cannot be measured here: data, with one wording for logs, `check` and the page.

use std::{error::Error, fmt, io};

/// A reason, and what would mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The configuration leaves it out.
    Disabled,
    /// The process lacks a capability.
    Capability {
        /// The kernel's name of it.
        needed: &'static str,
        /// What was refused.
        refused: String,
    },
    /// This tlbd was built without its programs, or with others.
    Build {
        /// What is missing.
        lacks: String,
    },
    /// The kernel has no such feature.
    Kernel {
        /// The feature.
        lacks: String,
    },
    /// A filesystem is not mounted and could not be opened.
    NotMounted {
        /// Its type.
        filesystem: &'static str,
    },
    /// The kernel hides symbol addresses.
    HiddenSymbols,
    /// A file could not be read or made no sense.
    File {
        /// Its path.
        path: String,
        /// What was wrong.
        error: String,
    },
    /// A system call failed in a way that has no simple mend.
    Refused {
        /// What was tried, and on what.
        tried: String,
        /// What the kernel said.
        error: String,
    },
    /// It waits for something else that is unavailable.
    Needs {
        /// Which.
        other: &'static str,
    },
    /// A capture holds no such input.
    NotCaptured,
}

impl Unavailable {
    /// From a system call's error: a missing capability if that is what it says.
    #[must_use]
    pub fn from_io(tried: impl Into<String>, error: &io::Error, capability: &'static str) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Capability {
                needed: capability,
                refused: tried.into(),
            },
            _ => Self::Refused {
                tried: tried.into(),
                error: error.to_string(),
            },
        }
    }

    /// What would mend it.
    #[must_use]
    pub fn mend(&self) -> String {
        match self {
            Self::Disabled => "take it out of `disable` in the configuration".into(),
            Self::Capability { needed, .. } => {
                format!("run as root, or give the process {needed}")
            }
            Self::Build { .. } => "build tlbd with `make build`".into(),
            Self::Kernel { .. } => "none on this kernel and CPU".into(),
            Self::NotMounted { filesystem } => {
                format!("mount {filesystem}, or give the process CAP_SYS_ADMIN")
            }
            Self::HiddenSymbols => {
                "run as root or with CAP_SYSLOG, and set kernel.kptr_restrict to 0 or 1".into()
            }
            Self::File { path, .. } => format!("see that {path} can be read"),
            Self::Refused { .. } => "see docs/troubleshooting.md".into(),
            Self::Needs { other } => format!("see `{other}`"),
            Self::NotCaptured => "capture again where it is available".into(),
        }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => write!(f, "disabled by the configuration"),
            Self::Capability { needed, refused } => {
                write!(f, "{refused}: not permitted without {needed}")
            }
            Self::Build { lacks } => write!(f, "this tlbd was built without {lacks}"),
            Self::Kernel { lacks } => write!(f, "the kernel has no {lacks}"),
            Self::NotMounted { filesystem } => write!(f, "{filesystem} is not mounted"),
            Self::HiddenSymbols => write!(f, "the kernel hides the addresses in /proc/kallsyms"),
            Self::File { path, error } => write!(f, "{path}: {error}"),
            Self::Refused { tried, error } => write!(f, "{tried}: {error}"),
            Self::Needs { other } => write!(f, "`{other}` is not available"),
            Self::NotCaptured => write!(f, "the capture has no such input"),
        }
    }
}

impl Error for Unavailable {}
