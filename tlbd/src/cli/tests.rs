//! Command lines and what they become. Each names its configuration file, so that the one of this
//! machine does not matter.

use std::fs;

use clap::CommandFactory;
use clap::error::ErrorKind;
use tempfile::NamedTempFile;

use super::*;

fn parsed(line: &str) -> Result<Invocation, Refusal> {
    parse_from(line.split(' '), &["clock"])
}

/// A line that clap refuses, and why.
fn refused(line: &str) -> ErrorKind {
    match parsed(line) {
        Err(Refusal::Usage(error)) => error.kind(),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn declarations_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn run_has_its_configuration_and_can_load_it_again() {
    let file = NamedTempFile::new().unwrap();
    let line = format!(
        "tlbd run --replay captures/a --sample-hz 7 --config {}",
        file.path().display()
    );
    let Ok(Invocation::Run {
        config,
        flags,
        replay,
    }) = parsed(&line)
    else {
        panic!()
    };
    assert_eq!((config.sample_hz, config.max_cgroups), (7, 500));
    assert_eq!(replay, Some(PathBuf::from("captures/a")));
    fs::write(&file, "max_cgroups = 5\nsample_hz = 1").unwrap();
    let config = flags.load(&[]).unwrap();
    assert_eq!((config.sample_hz, config.max_cgroups), (7, 5));
}

#[test]
fn check_and_capture_take_their_arguments_and_the_configuration() {
    let config = "--config /dev/null --disable clock";
    let check = parsed(&format!("tlbd check --json {config}")).unwrap();
    assert!(
        matches!(check, Invocation::Check { json: true, config } if config.disable == ["clock"])
    );
    let capture = parsed(&format!(
        "tlbd capture {config} --seconds 3 --bpf-stats true d"
    ))
    .unwrap();
    let Invocation::Capture {
        config,
        directory,
        duration,
    } = capture
    else {
        panic!()
    };
    assert!(config.bpf_stats);
    assert_eq!(
        (directory, duration),
        (PathBuf::from("d"), Duration::from_secs(3))
    );
}

#[test]
fn config_check_answers_ok_or_the_error() {
    let file = NamedTempFile::new().unwrap();
    let name = file.path().display();
    let line = format!("tlbd config check {name}");
    let answer = parsed(&line).unwrap();
    assert!(matches!(answer, Invocation::Print(text) if text == format!("{name}: ok\n")));
    fs::write(&file, "disable = [\"x\"]").unwrap();
    let error = parsed(&line).unwrap_err().to_string();
    assert!(
        error.ends_with("no collector is called `x`; there are clock"),
        "{error}"
    );
}

#[test]
fn config_default_prints_the_default_file() {
    let answer = parsed("tlbd config default").unwrap();
    assert!(matches!(answer, Invocation::Print(text) if text == config::default_toml()));
}

#[test]
fn wrong_configuration_is_refused_before_anything_runs() {
    let error = parsed("tlbd run --config /dev/null --disable clocks").unwrap_err();
    assert!(matches!(
        error,
        Refusal::Config(config::Error::UnknownCollector { .. })
    ));
    assert_eq!(error.report(), ExitCode::from(2));
}

#[test]
fn wrong_usage_is_refused() {
    assert_eq!(refused("tlbd run --smapz"), ErrorKind::UnknownArgument);
    assert_eq!(refused("tlbd walk"), ErrorKind::InvalidSubcommand);
    assert_eq!(refused("tlbd capture"), ErrorKind::MissingRequiredArgument);
    assert_eq!(
        refused("tlbd capture d --seconds 0"),
        ErrorKind::ValueValidation
    );
    assert_eq!(refused("tlbd --version"), ErrorKind::DisplayVersion);
    assert_eq!(
        refused("tlbd"),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
}

#[test]
fn help_names_every_setting_signal_and_exit_code() {
    let mut cli = Cli::command();
    cli.build();
    let mut help = |name| {
        cli.find_subcommand_mut(name)
            .unwrap()
            .render_long_help()
            .to_string()
    };
    for name in ["run", "check", "capture"] {
        let text = help(name);
        for part in [
            "--config <FILE>",
            "--smaps <BOOL>",
            "range: 1 to 10000",
            "TLBD_DISABLE",
        ] {
            assert!(text.contains(part), "{name}: {part}");
        }
        assert!(
            text.contains("Exit codes:\n  0  ") && text.contains("Examples:"),
            "{name}"
        );
    }
    assert!(help("run").contains("SIGHUP"));
}
