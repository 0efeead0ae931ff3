//! The command line, the configuration and what is said when they are wrong.

use std::{
    fs,
    net::TcpListener,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    replay::{ONE_TICK, POLYGLOT, capture, eventually, replay, tlbd, workspace},
    support::Daemon,
};

/// Exit code and standard error of a refusal; a daemon that starts after all is ended.
fn refused(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(10));
    }
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

fn run(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tlbd"));
    command
        .args(["run", "--listen=127.0.0.1:0"])
        .args(arguments);
    command
}

#[test]
fn a_wrong_variable_is_refused_with_what_was_expected() {
    let (code, said) = refused(run(&[]).env("TLBD_SAMPLE_HZ", "x"));
    assert_eq!(code, Some(2));
    assert!(
        said.starts_with("tlbd: TLBD_SAMPLE_HZ=x: expected a whole number from 1 to 10000"),
        "{said}"
    );
}

#[test]
fn a_wrong_flag_is_refused_with_what_was_expected() {
    let (code, said) = refused(&mut run(&["--tick-seconds=0"]));
    assert_eq!(code, Some(2));
    assert!(
        said.starts_with("tlbd: --tick-seconds=0: expected a number"),
        "{said}"
    );
    let (code, said) = refused(&mut run(&["--max-cgroup=1"]));
    assert_eq!(code, Some(2));
    assert!(said.contains("--max-cgroups"), "{said}");
}

#[test]
fn an_unknown_key_is_refused_with_its_place_and_the_nearest_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tlbd.toml");
    fs::write(&file, "# mine\nmax_cgroup = 7\n").unwrap();
    let file = file.to_str().unwrap();
    let expected =
        format!("tlbd: {file}:2:1: max_cgroup: unknown key; did you mean `max_cgroups`?");
    let (code, said) = refused(&mut run(&["--config", file]));
    assert_eq!((code, said.trim_end()), (Some(2), expected.as_str()));
    let checked = tlbd(&["config", "check", file]);
    assert_eq!(checked.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(checked.stderr).unwrap().trim_end(),
        expected
    );
}

#[test]
fn an_unknown_collector_is_refused_with_the_nearest_one() {
    let (code, said) = refused(&mut run(&["--disable=smap"]));
    assert_eq!(code, Some(2));
    assert!(said.contains("`smaps`"), "{said}");
}

#[test]
fn the_default_configuration_passes_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tlbd.toml");
    let printed = tlbd(&["config", "default"]);
    assert_eq!(printed.status.code(), Some(0));
    fs::write(&file, &printed.stdout).unwrap();
    let checked = tlbd(&["config", "check", file.to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(0));
    let said = String::from_utf8(checked.stdout).unwrap();
    assert_eq!(said, format!("{}: ok\n", file.display()));
}

#[test]
fn the_shipped_configuration_is_the_default_one() {
    let printed = tlbd(&["config", "default"]).stdout;
    let shipped = fs::read(workspace().join("deploy/tlbd.toml")).unwrap();
    assert_eq!(
        String::from_utf8(shipped).unwrap(),
        String::from_utf8(printed).unwrap(),
        "deploy/tlbd.toml is what `tlbd config default` prints"
    );
}

#[test]
fn a_taken_port_is_an_error_that_names_the_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = capture(POLYGLOT);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tlbd"));
    command
        .args(["run", "--listen", &address, "--replay"])
        .arg(folder);
    let (code, said) = refused(&mut command);
    assert_eq!(code, Some(1));
    assert!(
        said.contains(&address) && said.contains("--listen"),
        "{said}"
    );
}

#[test]
fn a_replay_of_a_missing_folder_is_an_error_that_names_it() {
    for missing in ["/nonexistent/host", "/proc/version"] {
        let (code, said) = refused(&mut run(&["--replay", missing]));
        assert_eq!(code, Some(1));
        assert!(
            said.starts_with(&format!("tlbd: {missing} is not a folder")),
            "{said}"
        );
    }
}

#[test]
fn a_replay_of_an_empty_folder_serves_and_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = replay(folder.path(), &[ONE_TICK]);
    let metrics = daemon.metrics();
    for (collector, up) in [("cpu_time", 0.0), ("host_memory", 0.0), ("own", 1.0)] {
        let value = metrics.value("tlbd_up", &[("collector", collector)]);
        assert_eq!(value, Some(up), "{collector}");
    }
    let complains = || daemon.stderr().contains("tlbd: cpu_time is off: ");
    assert!(eventually(complains), "{}", daemon.stderr());
    assert_eq!(metrics.family("tlbd_cgroup_cpu_seconds_total").count(), 0);
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn help_and_version_are_no_errors() {
    for arguments in [&["--help"][..], &["--version"], &["run", "--help"]] {
        let output = tlbd(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty());
    }
    assert_eq!(tlbd(&[]).status.code(), Some(2));
}

#[test]
fn flags_win_over_variables_and_variables_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tlbd.toml");
    fs::write(&file, "max_cgroups = 1\nmax_functions = 1\n").unwrap();
    let daemon = Daemon::spawn(
        run(&[ONE_TICK, "--max-cgroups=3", "--config"])
            .arg(&file)
            .arg("--replay")
            .arg(capture(POLYGLOT))
            .env("TLBD_MAX_CGROUPS", "2")
            .env("TLBD_MAX_FUNCTIONS", "4"),
    );
    let metrics = daemon.metrics();
    let series = |family| metrics.value("tlbd_series", &[("family", family)]);
    assert_eq!(
        (series("cgroup"), series("function")),
        (Some(3.0), Some(4.0))
    );
}
