//! Where values come from, and what an error says about a wrong one.
//!
//! Variables are handed in, so that no test reads or changes the environment of the process.

use std::fs;

use proptest::prelude::*;
use tempfile::NamedTempFile;

use super::*;

const COLLECTORS: &[&str] = &["clock", "faults", "flushes"];

/// The flags of a command line with these variables.
fn flags(arguments: &[&str], variables: &[(&str, &str)]) -> Flags {
    let command = Flags::augment_args(Command::new("tlbd").no_binary_name(true));
    let matches = command.try_get_matches_from(arguments).unwrap();
    Flags::new(&matches, &|name| {
        variables
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.into())
    })
}

/// What a file, flags and variables give together; the file is called FILE in errors.
fn load(
    file: impl AsRef<[u8]>,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<Config, String> {
    let named = NamedTempFile::new().unwrap();
    fs::write(&named, file).unwrap();
    let path = named.path().to_str().unwrap();
    let arguments = [&["--config", path], arguments].concat();
    let loaded = flags(&arguments, variables).load(COLLECTORS);
    loaded.map_err(|error| error.to_string().replace(path, "FILE"))
}

fn error(file: impl AsRef<[u8]>) -> String {
    load(file, &[], &[]).unwrap_err()
}

#[test]
fn flag_wins_over_variable_over_file_over_default() {
    let file = "sample_hz = 1\nmax_cgroups = 2\nmax_functions = 3\n";
    let variables = [("TLBD_SAMPLE_HZ", "10"), ("TLBD_MAX_CGROUPS", "20")];
    let config = load(file, &["--sample-hz", "100"], &variables).unwrap();
    let expected = Config {
        sample_hz: 100,
        max_cgroups: 20,
        max_functions: 3,
        ..Config::default()
    };
    assert_eq!(config, expected);
}

#[test]
fn flag_wins_even_when_it_repeats_the_default() {
    let config = load(
        "sample_hz = 1",
        &["--sample-hz=99"],
        &[("TLBD_SAMPLE_HZ", "2")],
    )
    .unwrap();
    assert_eq!(config.sample_hz, 99);
}

#[test]
fn every_key_can_be_given_by_flag_variable_and_file() {
    for argument in arguments() {
        let key = argument.get_id().as_str();
        let (text, toml) = match key {
            "listen" => ("[::1]:1", "\"[::1]:1\""),
            "smaps" => ("false", "false"),
            "bpf_stats" => ("true", "true"),
            "disable" => ("clock,faults", "[\"clock\", \"faults\"]"),
            _ => ("7", "7"),
        };
        let flag = format!("--{}={text}", argument.get_long().unwrap());
        let variable = argument.get_env().unwrap().to_str().unwrap();
        let by_flag = load("", &[&flag], &[]).unwrap();
        assert_ne!(by_flag, Config::default(), "{key}");
        assert_eq!(
            load("", &[], &[(variable, text)]).unwrap(),
            by_flag,
            "{key}"
        );
        assert_eq!(
            load(format!("{key} = {toml}"), &[], &[]).unwrap(),
            by_flag,
            "{key}"
        );
    }
}

#[test]
fn flags_and_variables_are_named_after_their_keys_and_numbers_have_ranges() {
    let defaults = defaults();
    assert_eq!(arguments().len(), defaults.len());
    for argument in arguments() {
        let key = argument.get_id().as_str();
        assert_eq!(argument.get_long().unwrap(), key.replace('_', "-"));
        let variable = format!("TLBD_{}", key.to_uppercase());
        assert_eq!(argument.get_env().unwrap().to_str().unwrap(), variable);
        let default = &defaults[key];
        let number = default.is_integer() || default.is_float();
        assert_eq!(range(key).is_some(), number, "{key}");
    }
    assert!(
        RANGES
            .iter()
            .all(|(key, low, high)| defaults.contains_key(*key) && low < high)
    );
}

#[test]
fn booleans_can_be_set_both_ways() {
    let smaps = |arguments: &[&str]| load("smaps = false", arguments, &[]).unwrap().smaps;
    assert!(!smaps(&[]) && smaps(&["--smaps=true"]) && smaps(&["--smaps", "true"]));
    assert!(!load("", &["--smaps=false"], &[]).unwrap().smaps);
    assert!(
        !load("smaps = true", &[], &[("TLBD_SMAPS", "false")])
            .unwrap()
            .smaps
    );
    assert!(
        load("", &[], &[("TLBD_BPF_STATS", "true")])
            .unwrap()
            .bpf_stats
    );
    let message = load("", &["--smaps=no"], &[]).unwrap_err();
    assert_eq!(
        message,
        "--smaps=no: expected true or false, as in `--smaps=true`"
    );
}

#[test]
fn lists_come_from_commas_and_repeated_flags_and_can_be_emptied() {
    let disable = |arguments: &[&str], variables: &[(&str, &str)]| {
        load("disable = [\"flushes\"]", arguments, variables)
            .unwrap()
            .disable
    };
    assert_eq!(disable(&[], &[]), ["flushes"]);
    assert_eq!(
        disable(&["--disable", "clock, faults"], &[]),
        ["clock", "faults"]
    );
    assert_eq!(
        disable(&["--disable=clock", "--disable=faults"], &[]),
        ["clock", "faults"]
    );
    assert_eq!(
        disable(&[], &[("TLBD_DISABLE", "clock,faults")]),
        ["clock", "faults"]
    );
    assert!(disable(&["--disable="], &[]).is_empty());
}

#[test]
fn unknown_key_is_refused_with_the_nearest() {
    assert_eq!(
        error("# a comment\n\n  tick_second = 5\n"),
        "FILE:3:3: tick_second: unknown key; did you mean `tick_seconds`?"
    );
    let message = error("colour = 1");
    assert!(message.starts_with("FILE:1:1: colour: unknown key; there are bpf_stats, disable,"));
    assert!(
        error("a.b = 1").starts_with("FILE:1:1: a: unknown key; there are bpf_stats, disable,")
    );
    assert!(error("[smaps_]\n").starts_with("FILE:1:2: smaps_: unknown key; did you mean `smaps`"));
}

#[test]
fn wrong_type_in_the_file_says_where_and_what_is_expected() {
    let cases = [
        (
            "sample_hz = \"fast\"",
            "a whole number from 1 to 10000, as in `sample_hz = 99`",
        ),
        (
            "sample_hz = 99.5",
            "a whole number from 1 to 10000, as in `sample_hz = 99`",
        ),
        (
            "tick_seconds = true",
            "a number from 0.1 to 3600, as in `tick_seconds = 5.0`",
        ),
        ("smaps = 1", "true or false, as in `smaps = true`"),
        (
            "disable = \"clock\"",
            "a list of names in quotes, as in `disable = []`",
        ),
        (
            "listen = 9469",
            "text in quotes, as in `listen = \"127.0.0.1:9469\"`",
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(
            error(format!("\n{line}")),
            format!("FILE:2:1: {line}: expected {expected}")
        );
    }
    assert!(error("listen = \"localhost:1\"").ends_with(" (invalid socket address syntax)"));
    assert!(error("disable = [1]").contains("integer `1`, expected a string"));
}

#[test]
fn wrong_type_from_flag_and_variable_says_which() {
    assert_eq!(
        load("", &["--sample-hz", "fast"], &[]).unwrap_err(),
        "--sample-hz=fast: expected a whole number from 1 to 10000, as in `--sample-hz=99`"
    );
    assert_eq!(
        load("", &[], &[("TLBD_TICK_SECONDS", "")]).unwrap_err(),
        "TLBD_TICK_SECONDS=: expected a number from 0.1 to 3600, as in `TLBD_TICK_SECONDS=5`"
    );
}

#[test]
fn out_of_range_is_refused_from_each_origin() {
    let expected = "expected a whole number from 1 to 10000, as in";
    assert_eq!(
        error("sample_hz = 0"),
        format!("FILE:1:1: sample_hz = 0: {expected} `sample_hz = 99`")
    );
    assert_eq!(
        load("", &["--sample-hz=10001"], &[]).unwrap_err(),
        format!("--sample-hz=10001: {expected} `--sample-hz=99`")
    );
    assert_eq!(
        load("", &[], &[("TLBD_SAMPLE_HZ", "-1")]).unwrap_err(),
        format!("TLBD_SAMPLE_HZ=-1: {expected} `TLBD_SAMPLE_HZ=99`")
    );
}

#[test]
fn ranges_hold_at_their_ends_and_for_odd_numbers() {
    for (key, low, high) in RANGES {
        for (value, good) in [
            (*low, true),
            (*high, true),
            (low / 2.0, false),
            (high * 2.0, false),
        ] {
            let result = load(format!("{key} = {value}"), &[], &[]);
            assert_eq!(result.is_ok(), good, "{key} = {value}: {result:?}");
        }
        for value in ["nan", "inf", "-inf", "-1", "9223372036854775807", "1e400"] {
            assert!(
                load(format!("{key} = {value}"), &[], &[]).is_err(),
                "{key} = {value}"
            );
        }
        let flag = format!("--{}=18446744073709551615", key.replace('_', "-"));
        assert!(load("", &[&flag], &[]).is_err(), "{flag}");
    }
}

#[test]
fn value_in_the_file_is_checked_even_where_a_flag_replaces_it() {
    let message = load("sample_hz = 0", &["--sample-hz=99"], &[]).unwrap_err();
    assert!(message.starts_with("FILE:1:1: sample_hz = 0:"));
}

#[test]
fn unknown_collector_is_refused_with_the_nearest() {
    assert_eq!(
        error("disable = [\"clock\", \"falts\"]"),
        "FILE:1:1: disable = [\"clock\", \"falts\"]: no collector is called `falts`; \
         did you mean `faults`?"
    );
    assert_eq!(
        load("", &["--disable=x"], &[]).unwrap_err(),
        "--disable=x: no collector is called `x`; there are clock, faults, flushes"
    );
}

#[test]
fn first_error_is_the_one_nearest_to_the_top() {
    assert!(error("smaps = 1\nlisten = 1\n").starts_with("FILE:1:1: smaps"));
}

#[test]
fn missing_file_is_an_error_only_if_it_was_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("absent.toml");
    let expected = format!(
        "{}: cannot be read: No such file or directory (os error 2); \
         `tlbd config default` prints a file to start from",
        path.display()
    );
    let name = path.to_str().unwrap();
    for named in [
        flags(&["--config", name], &[]),
        flags(&[], &[(FILE_VARIABLE, name)]),
    ] {
        assert_eq!(named.load(COLLECTORS).unwrap_err().to_string(), expected);
    }
    let unnamed = Flags {
        file: path,
        named: false,
        given: Vec::new(),
    };
    assert_eq!(unnamed.load(COLLECTORS).unwrap(), Config::default());
}

#[test]
fn flag_names_the_file_before_the_variable_does() {
    let chosen = |arguments: &[&str], variables: &[(&str, &str)]| flags(arguments, variables).file;
    let variable = (FILE_VARIABLE, "variable.toml");
    assert_eq!(chosen(&[], &[]), PathBuf::from(DEFAULT_FILE));
    assert_eq!(
        chosen(&[], &[(FILE_VARIABLE, "")]),
        PathBuf::from(DEFAULT_FILE)
    );
    assert_eq!(chosen(&[], &[variable]), PathBuf::from("variable.toml"));
    assert_eq!(
        chosen(&["--config=flag.toml"], &[variable]),
        PathBuf::from("flag.toml")
    );
}

#[test]
fn loading_again_reads_the_file_again_and_keeps_the_flags() {
    let file = NamedTempFile::new().unwrap();
    let flags = flags(
        &["--config", file.path().to_str().unwrap(), "--sample-hz=7"],
        &[],
    );
    fs::write(&file, "sample_hz = 1\nmax_cgroups = 1").unwrap();
    assert_eq!(flags.load(COLLECTORS).unwrap().max_cgroups, 1);
    fs::write(&file, "sample_hz = 2\nmax_cgroups = 2").unwrap();
    let config = flags.load(COLLECTORS).unwrap();
    assert_eq!((config.sample_hz, config.max_cgroups), (7, 2));
}

#[test]
fn syntax_error_says_line_and_column() {
    let message = error("sample_hz = 99\nsmaps = yes\n");
    assert!(
        message.starts_with("FILE:2:9: not valid TOML: "),
        "{message}"
    );
    let message = error("smaps = true\nsmaps = true\n");
    assert!(
        message.starts_with("FILE:2:1: not valid TOML: duplicate key"),
        "{message}"
    );
}

#[test]
fn columns_count_characters_and_lines_may_end_as_on_windows() {
    assert!(
        error("smaps = true\r\n\"\u{fc}\" = 1 # x\r\n")
            .starts_with("FILE:2:1: \u{fc}: unknown key")
    );
    assert!(error("listen = \"\u{e4}\u{f6}\u{fc}\" x").starts_with("FILE:1:16: not valid TOML"));
}

#[test]
fn what_is_not_a_text_file_is_an_error() {
    assert_eq!(
        error(b"smaps = true\nab\xff\xfe\x00"),
        "FILE:2:3: not UTF-8 text; a configuration is a text file in TOML"
    );
    let message = error(b"\x7fELF\x02\x01\x01\x00");
    assert!(
        message.starts_with("FILE:1:") && message.contains("not valid TOML"),
        "{message}"
    );
    let folder = tempfile::tempdir().unwrap();
    let directory = Flags::only_file(folder.path().into())
        .load(COLLECTORS)
        .unwrap_err();
    assert!(
        directory
            .to_string()
            .contains("cannot be read: Is a directory")
    );
}

#[test]
fn huge_file_is_refused_and_an_endless_one_ends() {
    let limit = 1 << 20;
    assert_eq!(
        load(vec![b'#'; limit], &[], &[]).unwrap(),
        Config::default()
    );
    let expected = "FILE: larger than 1 MiB, so hardly a configuration; name another file";
    assert_eq!(error(vec![b'#'; limit + 1]), expected);
    let endless = Flags::only_file("/dev/zero".into()).load(COLLECTORS);
    assert!(matches!(endless, Err(Error::TooLarge { .. })));
}

#[test]
fn deep_nesting_is_an_error() {
    for open in ["[", "{a=", "{a.b=["] {
        let message = error(format!("disable = {}", open.repeat(100_000)));
        assert!(message.starts_with("FILE:1:"), "{message}");
    }
    assert!(error(format!("a{} = 1", ".a".repeat(100_000))).starts_with("FILE:1:"));
}

#[test]
fn many_and_long_keys_cost_no_more_than_one() {
    let keys: String = (0..100_000).map(|n| format!("k{n}=1\n")).collect();
    assert!(error(keys).starts_with("FILE:1:1: k0: unknown key"));
    let message = error(format!("{} = 1", "k".repeat(1_000_000)));
    assert!(message.len() < 400, "{}", message.len());
}

#[test]
fn what_an_error_repeats_is_cut_and_escaped() {
    let message = error("\"a\\u001b[31m\\nb\" = 1");
    assert!(
        message.starts_with("FILE:1:1: a\\u{1b}[31m\\nb: unknown key"),
        "{message}"
    );
    let message = load("", &["--listen", "\u{1b}]0;x"], &[]).unwrap_err();
    assert!(
        message.starts_with("--listen=\\u{1b}]0;x: expected"),
        "{message}"
    );
    let message = error(format!("smaps = \"{}\"", "x".repeat(1000)));
    assert!(message.len() < 200, "{message}");
}

#[test]
fn default_file_is_the_default_and_explains_every_key() {
    let text = default_toml();
    assert_eq!(load(&text, &[], &[]).unwrap(), Config::default());
    for argument in arguments() {
        let key = argument.get_id().as_str();
        assert_eq!(text.matches(&format!("\n{key} = ")).count(), 1, "{key}");
        for name in [
            argument.get_env().unwrap().to_str().unwrap(),
            argument.get_long().unwrap(),
        ] {
            assert!(text.contains(name), "{name}");
        }
        assert!(argument.get_help().is_some(), "{key}");
    }
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert!(text.find("\nlisten").unwrap() < text.find("\ndisable").unwrap());
}

#[test]
fn deployed_file_is_the_default_file() {
    let deployed = include_str!("../../../deploy/tlbd.toml");
    assert!(
        deployed == default_toml(),
        "run: tlbd config default > deploy/tlbd.toml"
    );
}

/// Lines that look like a configuration, so that most get past the TOML parser.
fn lines() -> impl Strategy<Value = String> {
    let names: Vec<String> = defaults().keys().cloned().chain(["other".into()]).collect();
    let value = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}")),
        any::<bool>().prop_map(|truth| truth.to_string()),
        any::<String>().prop_map(|text| Value::from(text).to_string()),
        proptest::collection::vec("[a-z]{0,9}", 0..4).prop_map(|l| Value::from(l).to_string()),
        Just("{ a = 1979-05-27 }".to_owned()),
    ];
    let line = (proptest::sample::select(names), value).prop_map(|(k, v)| format!("{k} = {v}\n"));
    proptest::collection::vec(line, 0..3).prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>()) {
        let _ = load(bytes, &[], &[]);
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = load(&text, &[], &[("TLBD_LISTEN", &text), ("TLBD_DISABLE", &text)]);
    }

    #[test]
    fn what_loads_is_in_range_and_what_does_not_says_where(text in lines()) {
        match load(&text, &[], &[]) {
            Ok(config) => prop_assert!((1..=10_000).contains(&config.sample_hz)
                && (0.1..=3600.0).contains(&config.tick_seconds)
                && config.disable.iter().all(|name| COLLECTORS.contains(&name.as_str()))),
            Err(message) => prop_assert!(message.starts_with("FILE:") && !message.contains('\n')),
        }
    }
}
