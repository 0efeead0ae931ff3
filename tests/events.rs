//! `tlbd events`: what it prints for CPUs that were checked by hand, and what it refuses.

use std::{fs, process::Output};

use crate::{golden::assert_golden, replay::tlbd};

fn events(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = tlbd(&[&["events"], arguments].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn the_table_of_a_known_cpu() {
    for cpu in [
        "GenuineIntel-6-8F",
        "GenuineIntel-6-6A",
        "GenuineIntel-6-55-4",
        "AuthenticAMD-25-11",
        "0x410fd490",
        // A hybrid with three kinds of cores, and an extended umask.
        "GenuineIntel-6-C5",
    ] {
        let (code, said, wrong) = events(&["--cpu", cpu]);
        assert_eq!((code, wrong.as_str()), (Some(0), ""), "{cpu}");
        assert_golden(&format!("tests/golden/events/{cpu}.txt"), &said);
    }
}

#[test]
fn an_unknown_cpu_gets_what_stands_in_and_is_told_so() {
    for cpu in ["GenuineIntel-6-FF", "AuthenticAMD-27-1", "0x410fd0b0"] {
        let (code, said, _) = events(&["--cpu", cpu]);
        assert_eq!(code, Some(1), "{cpu}");
        let first = format!("{cpu} is not in the catalogue: ");
        assert!(said.starts_with(&first), "{said}");
        assert!(!said.contains("walk_cycles."), "{said}");
        assert_golden(&format!("tests/golden/events/{cpu}.txt"), &said);
    }
}

#[test]
fn json_has_what_the_table_has() {
    let (code, said, _) = events(&["--cpu", "GenuineIntel-6-55-4", "--json"]);
    assert_eq!(code, Some(0));
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["cpu"], "GenuineIntel-6-55-4");
    assert_eq!(report["known"], true);
    let core = &report["cores"][0];
    assert_eq!(
        (&core["uarch"], &core["walkers"]),
        (&"skylake".into(), &2.into())
    );
    let events = core["events"].as_array().unwrap();
    let load = events
        .iter()
        .find(|event| event["role"] == "walk_cycles.load")
        .unwrap();
    assert_eq!(load["name"], "DTLB_LOAD_MISSES.WALK_ACTIVE");
    assert_eq!(load["config"], "0x1001008");
    assert_eq!(load["reading"], "active");
    assert_eq!(load["nested"], "excluded");
    assert_eq!(load["counters"], "0-3");
}

#[test]
fn this_host_is_answered_for_or_said_to_be_unknown() {
    let (code, said, wrong) = events(&[]);
    match code {
        Some(0 | 1) => assert!(
            said.contains("ROLE") || wrong.contains("--cpu"),
            "{said}{wrong}"
        ),
        other => panic!("{other:?}: {wrong}"),
    }
}

#[test]
fn a_wrong_name_is_refused_with_how_to_write_it() {
    let (code, _, wrong) = events(&["--cpu", "Skylake"]);
    assert_eq!(code, Some(2));
    assert!(wrong.contains("GenuineIntel-6-55-4"), "{wrong}");
}

#[test]
fn a_users_file_is_used_and_a_wrong_one_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let path = file.to_str().unwrap();
    let arguments = ["--cpu", "GenuineIntel-6-FF", "--uarch-file", path];
    let text = "id = \"mine\"\nname = \"Mine\"\nlayout = \"intel\"\n\n\
                [[model]]\nvendor = \"GenuineIntel\"\nfamily = 6\nmodels = [\"0xff\"]\narch = \"a\"\n\n\
                [events]\ncycles = { name = \"C\", event = 0x3c }\n\
                instructions = { name = \"I\", event = 0xc0 }\n";
    fs::write(&file, text).unwrap();
    let (code, said, _) = events(&arguments);
    assert_eq!(code, Some(0));
    assert!(
        said.starts_with("GenuineIntel-6-FF: Mine (a), PMU cpu\n"),
        "{said}"
    );

    fs::write(&file, text.replace("0xc0", "0x1c0")).unwrap();
    let (code, said, wrong) = events(&arguments);
    assert_eq!((code, said.as_str()), (Some(2), ""));
    let expected = format!("tlbd: {path}:13: instructions: event 0x1c0 is over 0xff\n");
    assert_eq!(wrong, expected);

    fs::remove_file(&file).unwrap();
    let (code, _, wrong) = events(&arguments);
    assert_eq!(code, Some(2));
    assert!(wrong.starts_with(&format!("tlbd: {path}: ")), "{wrong}");
}
