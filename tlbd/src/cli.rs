//! The command line: which command, with which arguments and configuration.
//!
//! The doc comments of the commands and their arguments are the help texts, and with the examples
//! and exit codes below them the manual. What a command does is not here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, value_parser};

use crate::{
    config::{self, Config, DEFAULT_FILE, FILE_VARIABLE, Flags},
    model::uarch::CpuId,
};

#[cfg(test)]
mod tests;

/// A command ready to run: its arguments are complete and its configuration is valid.
#[derive(Debug)]
pub enum Invocation {
    /// `tlbd run`.
    Run {
        /// The configuration at start.
        config: Config,
        /// Loads the configuration again, from the same flags and the file as it is then.
        flags: Flags,
        /// A folder of `tlbd capture` to run on, instead of this host.
        replay: Option<PathBuf>,
    },
    /// `tlbd check`.
    Check {
        /// The configuration to check the host for.
        config: Config,
        /// Print JSON instead of lines.
        json: bool,
    },
    /// `tlbd capture`.
    Capture {
        /// The configuration to capture with.
        config: Config,
        /// The folder to write.
        directory: PathBuf,
        /// How long to count and sample.
        duration: Duration,
    },
    /// `tlbd events`.
    Events {
        /// The CPU to answer for, instead of this host's.
        cpu: Option<CpuId>,
        /// Print JSON instead of a table.
        json: bool,
        /// A file of the user that adds to the catalogue, or replaces one of its own.
        uarch_file: Option<PathBuf>,
    },
    /// `tlbd config`: done, but for its answer to standard output.
    Print(String),
}

/// Why there is nothing to run.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The command line is wrong, or only asks for help or the version.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] config::Error),
}

impl Refusal {
    /// Prints it where it belongs and gives the exit code: 0 for help and version, else 2.
    pub fn report(&self) -> ExitCode {
        match self {
            Self::Usage(error) => {
                // Help may be piped into something that stops reading.
                let _ = error.print();
                ExitCode::from(if error.use_stderr() { 2 } else { 0 })
            }
            Self::Config(error) => {
                eprintln!("tlbd: {error}");
                ExitCode::from(2)
            }
        }
    }
}

/// The command that the process was started with. `known_collectors` are the names that the
/// configuration may disable.
pub fn parse(known_collectors: &[&str]) -> Result<Invocation, Refusal> {
    parse_from(std::env::args_os(), known_collectors)
}

/// As [`parse`], with the program's name and its arguments given.
pub fn parse_from<I>(arguments: I, known_collectors: &[&str]) -> Result<Invocation, Refusal>
where
    I: IntoIterator<Item: Into<OsString> + Clone>,
{
    Ok(match Cli::try_parse_from(arguments)?.command {
        Command::Run { replay, flags } => Invocation::Run {
            config: flags.load(known_collectors)?,
            flags,
            replay,
        },
        Command::Check { json, flags } => Invocation::Check {
            config: flags.load(known_collectors)?,
            json,
        },
        Command::Capture {
            directory,
            seconds,
            flags,
        } => Invocation::Capture {
            config: flags.load(known_collectors)?,
            directory,
            duration: Duration::from_secs(seconds),
        },
        Command::Events {
            cpu,
            json,
            uarch_file,
        } => Invocation::Events {
            cpu,
            json,
            uarch_file,
        },
        Command::Config(ConfigCommand::Default) => Invocation::Print(config::default_toml()),
        Command::Config(ConfigCommand::Check { file }) => {
            let answer = format!("{}: ok\n", file.display());
            Flags::only_file(file).load(known_collectors)?;
            Invocation::Print(answer)
        }
    })
}

/// Watches address translation: who pays for page walks, in which kernel code, and what huge pages
/// do about it.
///
/// tlbd runs on a Linux host and gives Prometheus, by cgroup (systemd unit, container, pod) and by
/// kernel function, the cycles that page walks cost, page faults, TLB flushes and the share of
/// memory in huge pages. Where the hardware has no counters for it, as in many VMs, the walk
/// series are absent and all others stay; `tlbd check` says what holds here.
#[derive(Debug, Parser)]
#[command(name = "tlbd", version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tlbd check                                what this host can and cannot show
  tlbd run                                  the daemon, on 127.0.0.1:9469
  curl -s http://127.0.0.1:9469/metrics     what it measured
  tlbd config default > /etc/tlbd/tlbd.toml a configuration to start from

`tlbd help COMMAND` explains a command with its options and exit codes.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon: collect, and serve /metrics, until a signal stops it.
    ///
    /// It serves /metrics (Prometheus), / (for people), /healthz and /readyz. What this host
    /// cannot measure is left out and said once, at the start. Nothing on the host is changed
    /// unless a setting asks for it.
    #[command(after_long_help = RUN_HELP)]
    Run {
        /// Run on a folder of `tlbd capture` instead of this host; needs no privilege
        #[arg(long, value_name = "DIR")]
        replay: Option<PathBuf>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Say what this host can and cannot measure, with the reason and the mend.
    ///
    /// It tries what the daemon would, with the same configuration and privileges, and leaves
    /// nothing behind. Run it as the daemon's user to see what the daemon sees.
    #[command(after_long_help = CHECK_HELP)]
    Check {
        /// Print one JSON document instead of lines
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Flags,
    },
    /// Say which hardware events answer which question, on this or any known CPU.
    ///
    /// For each role (cycles, walk cycles of loads, of stores ...): the vendor's event, its value
    /// for perf_event_attr.config, how it is to be read, the counters that take it, and what to
    /// know before its figures are believed. What the vendor lists no event for is left out. The
    /// answer comes from tlbd's catalogue; `tlbd check` says whether this host lets it count.
    #[command(after_long_help = EVENTS_HELP)]
    Events {
        /// The CPU, as GenuineIntel-6-55-4 (family decimal, model and stepping hexadecimal) or
        /// 0x410fd490 (MIDR_EL1), instead of this host's
        #[arg(long, value_name = "ID")]
        cpu: Option<CpuId>,
        /// Print one JSON document instead of a table
        #[arg(long)]
        json: bool,
        /// A microarchitecture to add to the catalogue, or to replace the one of its id
        #[arg(long, value_name = "FILE")]
        uarch_file: Option<PathBuf>,
    },
    /// Check a configuration file, or print one.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Write what the daemon reads on this host to a folder, for `tlbd run --replay`.
    ///
    /// For a bug report, a test or a demonstration. The folder names the cgroups and processes of
    /// this host: look at it before you give it away.
    #[command(after_long_help = CAPTURE_HELP)]
    Capture {
        /// The folder to write
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Seconds to count and sample
        #[arg(long, value_name = "N", default_value_t = 10,
              value_parser = value_parser!(u64).range(1..=3600))]
        seconds: u64,
        #[command(flatten)]
        flags: Flags,
    },
}

const RUN_HELP: &str = "\
Every setting is a flag, an environment variable and a key of the configuration file; the first
of them that is given wins. `tlbd config default` prints them as a file.

Signals:
  SIGTERM, SIGINT  finish the running collection and the open requests, and stop
  SIGHUP           read the configuration file again; a wrong one is reported and changes nothing
                   (a new listen address takes a restart)

Exit codes:
  0  stopped by a signal
  1  failed to start or while running, for instance because the port is taken
  2  wrong usage or configuration

Examples:
  tlbd run --listen 0.0.0.0:9469            answer other hosts too
  tlbd run --tick-seconds 15 --smaps=false  cheaper
  TLBD_SAMPLE_HZ=199 tlbd run               a setting from the environment
  tlbd run --replay captures/web-7          a recorded host";

const CHECK_HELP: &str = "\
Exit codes:
  0  everything can be measured
  1  something cannot; the rest runs
  2  tlbd cannot run here, or wrong usage or configuration

Examples:
  tlbd check
  sudo -u tlbd tlbd check --json";

const EVENTS_HELP: &str = "\
READING of walk cycles:
  active    cycles with at least one walk in flight
  pending   walks in flight, summed every cycle: may exceed cycles
  duration  cycles that a page walker is busy
  proxy     stall cycles: near, but not walk cycles
READING of walks: which are counted (completed, started, requested by a
second-level miss, or as the Arm architecture defines them).

Exit codes:
  0  the catalogue has this CPU
  1  it has not, and what stands in is printed; or it is not known which CPU this is
  2  wrong usage or a wrong FILE

Examples:
  tlbd events
  tlbd events --cpu GenuineIntel-6-8F
  tlbd events --cpu 0x410fd490 --json
  tlbd events --uarch-file new-core.toml";

const CAPTURE_HELP: &str = "\
Exit codes:
  0  written
  1  failed
  2  wrong usage or configuration

Examples:
  tlbd capture web-7
  tlbd capture web-7 --seconds 60
  tlbd run --replay web-7";

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Check a file as `tlbd run --config FILE` would, without flags and variables.
    ///
    /// Prints `FILE: ok`, or what is wrong, where, and the mend; exit code 0 or 2.
    Check {
        /// The file to check
        #[arg(value_name = "FILE", env = FILE_VARIABLE, default_value = DEFAULT_FILE)]
        file: PathBuf,
    },
    /// Print a file with every key, its default and its explanation.
    Default,
}
