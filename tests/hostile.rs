//! Captured hosts that lie, stop in the middle of a word, or were made to do harm: whatever is in
//! a file, the daemon serves what it can and never panics.
//!
//! Most variants run through the library, where a tick is quick; some through the real binary.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use serde_json::Value;
use tlbd::{
    collector::METRICS,
    export::{page, text},
    model::view::View,
};

use crate::{
    golden,
    replay::{Copy, engine, first_view, replay},
    support::Metrics,
};

mod events;
mod names;

const EVENTS: &str = "tlbd-events.json";
const MEMORY: &str = "/sys/fs/cgroup/memory";

/// Asserts that no collector panicked, and that the view can be written and read back.
fn assert_sound(view: View) -> Metrics {
    for row in &view.collectors {
        assert!(
            !row.reason.contains("it panicked"),
            "{} panicked",
            row.collector
        );
    }
    let view = Arc::new(view);
    let openmetrics = text::openmetrics(&view, &METRICS).unwrap();
    let prometheus = text::prometheus(&openmetrics);
    assert!(page::page(&view).ends_with("</html>"));
    let metrics = Metrics::parse(&prometheus);
    assert_no_duplicates(&metrics);
    metrics
}

/// A server refuses a scrape with two samples of one series.
fn assert_no_duplicates(metrics: &Metrics) {
    let mut seen = std::collections::HashSet::new();
    for sample in metrics.all() {
        let series = (&sample.name, &sample.labels);
        assert!(seen.insert(series), "twice: {series:?}");
    }
}

/// Two ticks of a host that must not panic anywhere; says for what if it does.
fn survives(copy: &Copy, what: &str) -> Option<Metrics> {
    let ticks = || {
        let mut engine = engine(copy.folder());
        assert_sound(engine.tick());
        assert_sound(engine.tick())
    };
    let survived = catch_unwind(AssertUnwindSafe(ticks));
    if survived.is_err() {
        println!("panicked on {what}");
    }
    survived.ok()
}

/// Runs a host with each of these contents of one file; panics at the end if any was too much.
fn survives_all(copy: &Copy, path: &str, contents: impl IntoIterator<Item = Vec<u8>>) {
    let original = fs::read(copy.path(path)).ok();
    let (mut tried, mut failed) = (0, Vec::new());
    for content in contents {
        copy.write(path, &content);
        tried += 1;
        let length = content.len();
        let what = format!(
            "{path} with {length} bytes, ending in {:?}",
            String::from_utf8_lossy(&content[length.saturating_sub(40)..])
        );
        if survives(copy, &what).is_none() {
            failed.push(what);
        }
    }
    match original {
        Some(original) => copy.write(path, original),
        None => fs::remove_file(copy.path(path)).unwrap(),
    }
    assert!(tried > 0);
    assert!(
        failed.is_empty(),
        "{} of {tried}: {failed:#?}",
        failed.len()
    );
}

/// The beginnings of a file: all of a small one, many of a larger.
fn beginnings(whole: &[u8]) -> Vec<Vec<u8>> {
    let step = if whole.len() <= 400 {
        1
    } else {
        whole.len() / 150
    };
    (0..whole.len())
        .step_by(step)
        .map(|length| whole[..length].to_vec())
        .collect()
}

/// What no kernel writes.
fn garbage() -> Vec<Vec<u8>> {
    let all: Vec<u8> = (0..=255).collect();
    vec![
        Vec::new(),
        b"\n".to_vec(),
        b"\n\n\n \n".to_vec(),
        b" ".repeat(5000),
        vec![0; 4096],
        vec![0xff; 4096],
        all.repeat(20),
        b"a".repeat(100_000),
        b"a: 1 kB\n".repeat(2000),
        b":\n: \n::\n".to_vec(),
        b"0 (x) R".to_vec(),
        b"1 ( S".to_vec(),
        b"1 ) S".to_vec(),
        b"- - - - - - - - -\n".to_vec(),
        "\u{fffd}\u{0}: \u{1f4a9} kB\n".into(),
    ]
}

/// A line with every number replaced by this one.
fn with_numbers(line: &str, number: &str) -> String {
    let (mut text, mut inside) = (String::new(), false);
    for character in line.chars() {
        let is_digit = character.is_ascii_digit();
        match (is_digit, inside) {
            (true, false) => text.push_str(number),
            (true, true) => {}
            (false, _) => text.push(character),
        }
        inside = is_digit;
    }
    text
}

/// A line of the form `key: value` with its value's numbers replaced; others as they are.
fn with_values(line: &str, number: &str) -> String {
    match line.split_once(": ") {
        Some((key, value)) => format!("{key}: {}", with_numbers(value, number)),
        None => line.to_owned(),
    }
}

/// Every spoiled content of a file that is tried.
fn spoiled(whole: &[u8]) -> Vec<Vec<u8>> {
    let mut contents = beginnings(whole);
    contents.extend(garbage());
    for number in [
        "",
        "-1",
        "0",
        "18446744073709551615",
        "9223372036854775807",
        "99999999999999999999999",
        "1e309",
        "\u{0661}",
    ] {
        let text = String::from_utf8_lossy(whole);
        for replace in [with_numbers, with_values] {
            let lines = text.lines().map(|line| replace(line, number) + "\n");
            contents.push(lines.collect::<String>().into());
        }
    }
    contents
}

fn spoil(path: &str) {
    let copy = Copy::new();
    let whole = copy.read(path);
    survives_all(&copy, path, spoiled(&whole));
}

fn spoil_process(file: &str) {
    let copy = Copy::new();
    let process = copy.processes()[0].clone();
    let path = process.join(file);
    let path = path.strip_prefix(copy.folder()).unwrap().to_str().unwrap();
    survives_all(&copy, path, spoiled(&copy.read(path)));
}

#[test]
fn any_meminfo_is_survived() {
    spoil("proc/meminfo");
}

#[test]
fn any_vmstat_is_survived() {
    spoil("proc/vmstat");
}

#[test]
fn any_cpuinfo_is_survived() {
    spoil("proc/cpuinfo");
}

#[test]
fn any_kallsyms_is_survived() {
    spoil("proc/kallsyms");
}

#[test]
fn any_mountinfo_is_survived() {
    spoil("proc/self/mountinfo");
}

#[test]
fn any_process_stat_is_survived() {
    spoil_process("stat");
}

#[test]
fn any_process_smaps_rollup_is_survived() {
    spoil_process("smaps_rollup");
}

#[test]
fn processes_with_more_memory_than_there_can_be_are_survived() {
    let copy = Copy::new();
    let processes = copy.processes();
    let cgroup = fs::read(processes[0].join("cgroup")).unwrap();
    let most = (u64::MAX / 1024).to_string();
    for process in &processes {
        let rollup = fs::read_to_string(process.join("smaps_rollup")).unwrap();
        let lines = rollup.lines().map(|line| with_values(line, &most) + "\n");
        fs::write(process.join("smaps_rollup"), lines.collect::<String>()).unwrap();
        fs::write(process.join("cgroup"), &cgroup).unwrap();
    }
    assert!(survives(&copy, "sums of memory").is_some());
}

#[test]
fn any_process_cgroup_is_survived() {
    spoil_process("cgroup");
}

#[test]
fn any_memory_stat_is_survived() {
    spoil(&format!("{MEMORY}/polyglot.slice/db.service/memory.stat"));
}

#[test]
fn any_huge_page_setting_is_survived() {
    spoil("sys/kernel/mm/transparent_hugepage/enabled");
}

#[test]
fn any_kernel_release_is_survived() {
    spoil("proc/sys/kernel/osrelease");
}

/// The captured events, changed.
fn with_events(change: impl FnOnce(&mut Value)) -> Copy {
    let copy = Copy::new();
    let mut events = serde_json::from_slice(&copy.read(EVENTS)).unwrap();
    change(&mut events);
    copy.write(EVENTS, events.to_string());
    copy
}

/// Folders with hostile names below the memory hierarchy, and what they are called.
fn hostile_folders(copy: &Copy) -> Vec<String> {
    let top = copy.path(MEMORY).join("polyglot.slice");
    let text = fs::read(top.join("db.service/memory.stat")).unwrap();
    let names: [(&[u8], &str); 8] = [
        (b"line\nbreak", "line\\x0abreak"),
        (b"quote\"quote", "quote\"quote"),
        (b"back\\slash\\", "back\\slash\\"),
        (b"not-utf8-\xff\xfe", "not-utf8-\\xff\\xfe"),
        (b"bell\x07\x1b[31m", "bell\\x07\\x1b[31m"),
        (b"<b onmouseover=x>", "<b onmouseover=x>"),
        (b"} 1", "} 1"),
        (&[b'x'; 255], ""),
    ];
    for (name, _) in names {
        let folder = top.join(OsStr::from_bytes(name));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("memory.stat"), &text).unwrap();
    }
    names
        .into_iter()
        .map(|(_, shown)| match shown {
            "" => format!("/polyglot.slice/{}", "x".repeat(255)),
            shown => format!("/polyglot.slice/{shown}"),
        })
        .collect()
}

#[test]
fn a_deep_tree_of_cgroups_is_survived() {
    let copy = Copy::new();
    let deep = "d/".repeat(300);
    copy.write(&format!("{MEMORY}/{deep}/memory.stat"), "total_rss 4096\n");
    assert!(survives(&copy, "a deep tree").is_some());
}

#[test]
fn links_that_go_round_are_not_followed() {
    let copy = Copy::new();
    let top = copy.path(MEMORY);
    std::os::unix::fs::symlink(&top, top.join("round")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", top.join("polyglot.slice/zero")).unwrap();
    let metrics = survives(&copy, "links").expect("no panic");
    let names = metrics.family("tlbd_cgroup_memory_bytes");
    assert!(
        names
            .into_iter()
            .all(|sample| !sample.label("cgroup").contains("round"))
    );
}

#[test]
fn an_endless_file_is_read_up_to_a_bound() {
    let copy = Copy::new();
    for file in ["proc/meminfo", "proc/vmstat", "proc/cpuinfo"] {
        fs::remove_file(copy.path(file)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", copy.path(file)).unwrap();
    }
    assert!(survives(&copy, "endless files").is_some());
}

#[test]
fn processes_that_vanish_are_left_out_and_counted() {
    let copy = Copy::new();
    let processes = copy.processes();
    let whole = assert_sound(first_view(copy.folder()));
    fs::remove_file(processes[0].join("smaps_rollup")).unwrap();
    fs::remove_file(processes[1].join("cgroup")).unwrap();
    for file in ["stat", "cgroup", "smaps_rollup"] {
        fs::remove_file(processes[2].join(file)).unwrap();
    }
    fs::create_dir(copy.path("proc/4194304")).unwrap();
    let metrics = survives(&copy, "vanished processes").expect("no panic");
    let left = |metrics: &Metrics| metrics.sum("tlbd_cgroup_smaps_processes", &[]);
    assert_eq!(left(&metrics), left(&whole) - 3.0);
    let vanished = metrics.value("tlbd_smaps_skipped_total", &[("reason", "vanished")]);
    assert_eq!(vanished, Some(2.0));
}

#[test]
fn folders_in_place_of_files_are_survived() {
    for path in [
        EVENTS,
        "proc/meminfo",
        "proc/self/mountinfo",
        "proc/kallsyms",
    ] {
        let copy = Copy::new();
        fs::remove_file(copy.path(path)).unwrap();
        fs::create_dir(copy.path(path)).unwrap();
        assert!(survives(&copy, path).is_some(), "{path}");
    }
}

/// The real binary on a spoiled host: it serves, does not panic, and stops cleanly.
fn daemon_survives(folder: &Path) {
    let daemon = replay(folder, &["--tick-seconds=0.1"]);
    daemon.wait_ticks(3);
    assert_no_duplicates(&Metrics::parse(&golden::text(&daemon, "")));
    assert_no_duplicates(&Metrics::parse(&golden::text(&daemon, golden::OPENMETRICS)));
    assert_eq!(daemon.get("/", "").0, 200);
    assert_eq!(daemon.get("/healthz", "").0, 200);
    let said = daemon.stderr();
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn the_daemon_serves_a_host_of_truncated_files() {
    for part in [0, 1, 2, 3] {
        let copy = Copy::new();
        let mut files: Vec<String> = ["meminfo", "vmstat", "cpuinfo", "kallsyms", "self/mountinfo"]
            .map(|file| format!("proc/{file}"))
            .into();
        for process in copy.processes() {
            let pid = process.file_name().unwrap().to_str().unwrap().to_owned();
            files.extend(
                ["stat", "cgroup", "smaps_rollup"].map(|file| format!("proc/{pid}/{file}")),
            );
        }
        for file in files {
            let whole = copy.read(&file);
            copy.write(&file, &whole[..whole.len() * part / 4]);
        }
        daemon_survives(copy.folder());
    }
}

#[test]
fn the_daemon_serves_a_host_whose_processes_end_with_their_names() {
    let copy = Copy::new();
    for process in copy.processes() {
        let stat = fs::read_to_string(process.join("stat")).unwrap();
        let end = stat.find(')').unwrap() + 1;
        fs::write(process.join("stat"), &stat[..end]).unwrap();
    }
    daemon_survives(copy.folder());
}

#[test]
fn the_daemon_serves_a_host_of_hostile_names() {
    let copy = Copy::new();
    hostile_folders(&copy);
    daemon_survives(copy.folder());
}

#[test]
fn the_daemon_serves_a_host_of_noise() {
    let copy = Copy::new();
    let noise: Vec<u8> = (0..=255).collect::<Vec<u8>>().repeat(30);
    for file in ["meminfo", "vmstat", "cpuinfo", "kallsyms", "self/mountinfo"] {
        copy.write(&format!("proc/{file}"), &noise);
    }
    copy.write(EVENTS, &noise);
    daemon_survives(copy.folder());
}
