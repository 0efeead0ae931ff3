//! The `tlbd` command: parse, dispatch, say what went wrong, exit.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use tlbd::{
    capture, check,
    cli::{self, Invocation},
    collector, daemon, events,
    source::root::Root,
};

fn main() -> ExitCode {
    match cli::parse(&collector::names()) {
        Ok(invocation) => run(invocation).unwrap_or_else(|error| {
            eprintln!("tlbd: {error:#}");
            ExitCode::FAILURE
        }),
        Err(refusal) => refusal.report(),
    }
}

fn run(invocation: Invocation) -> anyhow::Result<ExitCode> {
    match invocation {
        Invocation::Run {
            config,
            flags,
            replay,
        } => daemon::run(config, &flags, replay),
        Invocation::Check { config, json } => {
            let report = check::check(config);
            say(&if json {
                serde_json::to_string_pretty(&report)? + "\n"
            } else {
                report.text()
            });
            Ok(report.verdict.exit_code())
        }
        Invocation::Capture {
            config,
            directory,
            duration,
        } => {
            capture::capture(config, &directory, duration)?;
            let folder = directory.display();
            say(&format!(
                "captured to {folder}: run it with tlbd run --replay {folder}\n"
            ));
            Ok(ExitCode::SUCCESS)
        }
        Invocation::Events {
            cpu,
            json,
            uarch_file,
        } => {
            let catalogue = match events::catalogue(uarch_file.as_deref()) {
                Ok(catalogue) => catalogue,
                Err(wrong) => {
                    eprintln!("tlbd: {wrong:#}");
                    return Ok(ExitCode::from(2));
                }
            };
            let report = events::report(&catalogue, cpu, &Root::host())?;
            say(&if json {
                serde_json::to_string_pretty(&report)? + "\n"
            } else {
                report.text()
            });
            Ok(report.exit_code())
        }
        Invocation::Print(text) => {
            say(&text);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Prints to standard output, whose reader may have gone away: that is no error.
fn say(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}
