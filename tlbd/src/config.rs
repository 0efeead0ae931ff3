//! What may be configured, where the values come from, and what is wrong with them.
//!
//! A field of [`Config`] is a TOML key, a flag and an environment variable at once; its doc
//! comment is the help text and the explanation in `tlbd config default`. A new key is a field,
//! its default in [`Config::default`] and, for a number, its range in `RANGES`. Flags win over
//! variables, variables over the file, the file over the defaults. One value from any of them is
//! an `entry`, and what may be wrong with it an `error`.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

mod entry;
mod error;
#[cfg(test)]
mod tests;

use entry::Entry;
pub use error::{Error, Place};

/// The file that is read when none is named, if it exists.
pub const DEFAULT_FILE: &str = "/etc/tlbd/tlbd.toml";

/// The environment variable that names another file.
pub const FILE_VARIABLE: &str = "TLBD_CONFIG";

/// Settings of the daemon, each within its range.
// The first paragraph of a field is its help in `-h`, all of them in `--help` and in the file.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// IP address and port of the HTTP server.
    ///
    /// 127.0.0.1 answers this host only. 0.0.0.0 and `[::]` answer everybody who can reach the
    /// port: there is no password and no encryption.
    #[arg(long, env = "TLBD_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,

    /// Seconds between two collections.
    ///
    /// All series move at this pace: a scrape reads the last collection and starts none. Longer
    /// is cheaper.
    #[arg(long, env = "TLBD_TICK_SECONDS", value_name = "SECONDS")]
    pub tick_seconds: f64,

    /// Samples per second and CPU of the clock that gives CPU time to cgroups and functions.
    ///
    /// Cost grows with it, and the error of a share shrinks with the square root of it. 99 and
    /// not 100, so that it does not run in step with periodic work.
    #[arg(long, env = "TLBD_SAMPLE_HZ", value_name = "HZ")]
    pub sample_hz: u32,

    /// Cgroups that get series of their own; the rest is summed up as `other`.
    ///
    /// The bound on what a host with many containers costs Prometheus.
    #[arg(long, env = "TLBD_MAX_CGROUPS", value_name = "COUNT")]
    pub max_cgroups: usize,

    /// Kernel functions that get series of their own; the rest is summed up as `other`.
    #[arg(long, env = "TLBD_MAX_FUNCTIONS", value_name = "COUNT")]
    pub max_functions: usize,

    /// Read the smaps_rollup file of processes: anonymous memory, and how much of it is huge.
    ///
    /// A read takes 4 to 6 ms per GiB in 4 KiB pages, and the process waits that long in mmap
    /// and munmap. Needs CAP_SYS_PTRACE for the processes of other users.
    #[arg(long, env = "TLBD_SMAPS", value_name = "BOOL")]
    pub smaps: bool,

    /// CPU time that reading smaps_rollup may take, in percent of one core.
    #[arg(long, env = "TLBD_SMAPS_CPU_PERCENT", value_name = "PERCENT")]
    pub smaps_cpu_percent: f64,

    /// Seconds until the smaps_rollup of a process is read again, at the earliest.
    ///
    /// It is later where the CPU budget does not suffice; the age of each figure is exported.
    #[arg(long, env = "TLBD_SMAPS_REFRESH_SECONDS", value_name = "SECONDS")]
    pub smaps_refresh_seconds: f64,

    /// Resident GiB above which the smaps_rollup of a process is not read.
    ///
    /// The process waits in mmap and munmap for as long as a read takes: up to 0.4 s for 64
    /// GiB in 4 KiB pages. Skipped processes are counted.
    #[arg(long, env = "TLBD_SMAPS_MAX_GIB", value_name = "GIB")]
    pub smaps_max_gib: u64,

    /// Let the kernel measure what tlbd's BPF programs cost, for as long as tlbd runs.
    ///
    /// The kernel then measures all BPF programs of the host, which costs each about 20 ns a run.
    #[arg(long, env = "TLBD_BPF_STATS", value_name = "BOOL")]
    pub bpf_stats: bool,

    /// Collectors to leave out; the flag and the variable take them separated by commas.
    ///
    /// An unknown name is refused with the list of those that exist.
    #[arg(long, env = "TLBD_DISABLE", value_name = "COLLECTOR,...")]
    pub disable: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9469)),
            tick_seconds: 5.0,
            sample_hz: 99,
            max_cgroups: 500,
            max_functions: 200,
            smaps: true,
            smaps_cpu_percent: 1.0,
            smaps_refresh_seconds: 60.0,
            smaps_max_gib: 64,
            bpf_stats: false,
            disable: Vec::new(),
        }
    }
}

/// The smallest and the largest value of every key that is a number.
const RANGES: &[(&str, f64, f64)] = &[
    ("tick_seconds", 0.1, 3600.0),
    ("sample_hz", 1.0, 10_000.0),
    ("max_cgroups", 1.0, 100_000.0),
    ("max_functions", 1.0, 10_000.0),
    ("smaps_cpu_percent", 0.01, 100.0),
    ("smaps_refresh_seconds", 1.0, 86_400.0),
    ("smaps_max_gib", 1.0, 65_536.0),
];

/// The flags and variables `tlbd` was started with, and the file they name: all it takes to load
/// the configuration, and to load it again when the file has changed.
///
/// Flattened into a clap derive it brings `--config` and a flag for every key.
#[derive(Clone, Debug)]
pub struct Flags {
    file: PathBuf,
    /// False for the default file, which may be missing.
    named: bool,
    given: Vec<Entry>,
}

impl Flags {
    /// No flags and no variables, only this file.
    pub fn only_file(file: PathBuf) -> Self {
        Self {
            file,
            named: true,
            given: Vec::new(),
        }
    }

    /// The flags in `matches`; for keys without a flag, what `variable` gives for a name.
    fn new(matches: &ArgMatches, variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let named = matches.get_one("config").cloned().or_else(|| {
            let path = variable(FILE_VARIABLE).filter(|path| !path.is_empty())?;
            Some(PathBuf::from(path))
        });
        let defaults = defaults();
        let given = arguments()
            .iter()
            .filter_map(|argument| Entry::given(argument, &defaults, matches, variable))
            .collect();
        Self {
            named: named.is_some(),
            file: named.unwrap_or_else(|| DEFAULT_FILE.into()),
            given,
        }
    }

    /// Reads the file and puts variables and flags over it.
    ///
    /// Every value is checked, also one in the file that a flag replaces. `known_collectors` are
    /// the names that `disable` may hold.
    pub fn load(&self, known_collectors: &[&str]) -> Result<Config, Error> {
        let text = entry::read(&self.file, self.named)?;
        let defaults = defaults();
        let mut table = Table::new();
        for entry in entry::parse(&self.file, &text)?.chain(self.given.iter().cloned()) {
            entry.check(&defaults, known_collectors)?;
            table.insert(entry.key, entry.value);
        }
        table.try_into().map_err(Error::Together)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self::new(matches, &|name| std::env::var_os(name)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help(format!(
                "File to read the settings from [default: {DEFAULT_FILE}, if any]"
            ))
            .long_help(format!(
                "File to read the settings from; without one the default, if it exists.\n\n\
                 [default: {DEFAULT_FILE}, env: {FILE_VARIABLE}]"
            ));
        let defaults = defaults();
        let keys = arguments().into_iter().filter_map(|argument| {
            let default = defaults.get(argument.get_id().as_str())?;
            Some(flag(argument, default))
        });
        let all = std::iter::once(file).chain(keys).enumerate();
        command.args(
            all.map(|(order, argument)| {
                argument.display_order(order).help_heading("Configuration")
            }),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The configuration file with every key at its default and explained.
pub fn default_toml() -> String {
    let head = "The settings of tlbd with their defaults: what `tlbd config default` prints. A \
        missing key has its default, an unknown one is refused. A key's environment variable \
        wins over this file, and its flag over both. `tlbd config check FILE` checks a file.";
    let mut text = comment(head);
    let defaults = defaults();
    for argument in arguments() {
        let key = argument.get_id().as_str();
        let Some(default) = defaults.get(key) else {
            continue;
        };
        text.push('\n');
        text.push_str(&comment(&explanation(&argument)));
        text.push_str(&comment(&names_and_range(&argument)));
        text.push_str(&format!("{key} = {default}\n"));
    }
    text
}

/// The keys with their defaults, as the file holds them.
fn defaults() -> Table {
    // Fails for types that TOML lacks only; the tests compare the keys with the fields.
    Table::try_from(Config::default()).unwrap_or_default()
}

/// The keys in the order of their declaration, as clap sees them.
fn arguments() -> Vec<Arg> {
    Config::augment_args(Command::new(""))
        .get_arguments()
        .cloned()
        .collect()
}

/// The smallest and the largest value of a key.
fn range(key: &str) -> Option<(f64, f64)> {
    let (_, low, high) = RANGES.iter().find(|(name, ..)| *name == key)?;
    Some((*low, *high))
}

/// A key's flag. It takes any text, and clap does not read its variable, so that flags, variables
/// and file are all judged by [`Entry::check`].
fn flag(argument: Arg, default: &Value) -> Arg {
    let mut note = match default {
        Value::Array(_) => String::from("default: none"),
        other => format!("default: {}", entry::plain(other)),
    };
    if let Some((low, high)) = range(argument.get_id().as_str()) {
        note.push_str(&format!(", range: {low} to {high}"));
    }
    let variable = argument.get_env().unwrap_or_default().display();
    let long = format!("{}\n\n[{note}, env: {variable}]", explanation(&argument));
    let short = argument
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let argument = argument
        .help(format!("{short} [{note}]"))
        .long_help(long)
        .env(None::<&str>)
        .required(false)
        .value_parser(value_parser!(OsString));
    argument.action(match default {
        Value::Array(_) => ArgAction::Append,
        _ => ArgAction::Set,
    })
}

/// A key's doc comment.
fn explanation(argument: &Arg) -> String {
    let text = argument.get_long_help().or(argument.get_help());
    let text = text.map(ToString::to_string).unwrap_or_default();
    if text.ends_with('.') {
        text
    } else {
        text + "."
    }
}

/// A key's range, flag and variable.
fn names_and_range(argument: &Arg) -> String {
    let flag = argument.get_long().unwrap_or_default();
    let variable = argument.get_env().unwrap_or_default().display();
    match range(argument.get_id().as_str()) {
        Some((low, high)) => format!("From {low} to {high}; --{flag}, {variable}"),
        None => format!("--{flag}, {variable}"),
    }
}

/// `text` as comment lines of at most 80 characters.
fn comment(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > 80 {
            lines.push_str(&line);
            lines.push('\n');
            line.truncate(1);
        }
        line.push(' ');
        line.push_str(word);
    }
    lines + &line + "\n"
}
