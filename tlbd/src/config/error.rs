//! What may be wrong with a configuration, and how it is said: where, what, and the mend.
//!
//! What a message repeats of a file is cut and escaped.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What a message repeats of a value or a name, in characters.
const MAX_SHOWN: usize = 60;

/// Names less alike than this (Jaro-Winkler) are not proposed for each other.
const ALIKE: f64 = 0.75;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is missing or may not be read.
    #[error(
        "{}: cannot be read: {source}; `tlbd config default` prints a file to start from",
        path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The file is too large to be a configuration.
    #[error("{}: larger than 1 MiB, so hardly a configuration; name another file", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file holds bytes that are not UTF-8.
    #[error("{place}: not UTF-8 text; a configuration is a text file in TOML")]
    NotText {
        /// The first wrong byte.
        place: Place,
    },
    /// The file is not TOML.
    #[error("{place}: not valid TOML: {message}; a line is `key = value` or a # comment")]
    Syntax {
        /// Where the parser stopped.
        place: Place,
        /// What the parser said.
        message: String,
    },
    /// The file has a key that does not exist.
    #[error("{given}: unknown key; {mend}")]
    UnknownKey {
        /// The place and the key.
        given: String,
        /// The nearest key, or all.
        mend: String,
    },
    /// A value of the wrong type or out of its range.
    #[error("{given}: expected {expected}, as in `{example}`{detail}")]
    Value {
        /// The place, the key and its value.
        given: String,
        /// The type and the range.
        expected: String,
        /// The default, written for the same place.
        example: String,
        /// What the value's own parser said, in brackets.
        detail: String,
    },
    /// `disable` names a collector that does not exist.
    #[error("{given}: no collector is called `{name}`; {mend}")]
    UnknownCollector {
        /// The place, the key and its value.
        given: String,
        /// The name.
        name: String,
        /// The nearest collector, or all.
        mend: String,
    },
    /// Every value may stand, but not all of them together.
    #[error("the settings contradict each other: {0}")]
    Together(toml::de::Error),
}

/// A place in a file; lines and columns count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    path: PathBuf,
    line: usize,
    column: usize,
}

impl Place {
    /// The place of a byte of a file's text.
    pub(super) fn new(path: &Path, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            path: path.into(),
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

/// The nearest of `known`, or all of them when none is near.
pub(super) fn nearest(name: &str, known: &[&str]) -> String {
    let name = shown(name);
    let alike = |other: &&str| strsim::jaro_winkler(&name, other);
    let best = known
        .iter()
        .copied()
        .max_by(|a, b| alike(a).total_cmp(&alike(b)));
    match best.filter(|best| alike(best) >= ALIKE) {
        Some(best) => format!("did you mean `{best}`?"),
        None => format!("there are {}", known.join(", ")),
    }
}

/// `text` cut, and safe for a terminal and a log.
pub(super) fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (index, character) in text.chars().enumerate() {
        match character {
            _ if index == MAX_SHOWN => {
                shown.push_str("...");
                break;
            }
            '"' | '\'' | '\\' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown
}
