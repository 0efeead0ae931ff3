//! The shipped catalogue against the vendors' data, and files that a user may write.

use std::{collections::BTreeSet, fs, path::Path, sync::LazyLock};

use proptest::prelude::*;

use super::*;

mod identity;
mod rows;
mod vendor;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::shipped().unwrap());

fn catalogue() -> &'static Catalogue {
    &CATALOGUE
}

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/pmu");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// A line of comma-separated values; quotes may hold commas.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut().unwrap().push(other),
        }
    }
    fields
}

const SMALL: &str = "\
id = \"mine\"
name = \"Mine\"
layout = \"intel\"
counters = \"0-3\"

[[model]]
vendor = \"GenuineIntel\"
family = 6
models = [\"0x8f\"]
arch = \"mine\"

[events]
cycles = { name = \"C\", event = 0x3c, fixed = true }
instructions = { name = \"I\", event = 0xc0, fixed = true }
\"walk_cycles.load\" = { name = \"W\", event = 0x12, umask = 0x10, cmask = 1, reading = \"active\" }
";

#[test]
fn every_file_of_the_folder_is_shipped_under_its_id() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/uarch");
    let files: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let shipped = shipped::SHIPPED.iter().map(|(id, _)| format!("{id}.toml"));
    assert_eq!(files, shipped.collect());
    let ids: Vec<_> = shipped::SHIPPED.iter().map(|(id, _)| *id).collect();
    let catalogue = catalogue();
    assert_eq!(
        ids,
        catalogue.iter().map(|u| u.id.as_str()).collect::<Vec<_>>()
    );
}

#[test]
fn only_the_stand_ins_have_no_models() {
    let catalogue = catalogue();
    let without = catalogue.iter().filter(|uarch| uarch.models.is_empty());
    let without: BTreeSet<_> = without.map(|uarch| uarch.id.as_str()).collect();
    assert_eq!(without, BTreeSet::from([GENERIC, AMD_UNKNOWN, ARM_UNKNOWN]));
}

#[test]
fn a_role_is_what_it_is_written_as() {
    for uarch in catalogue().iter() {
        for role in uarch.events.keys() {
            assert_eq!(role.to_string().parse(), Ok(*role));
        }
    }
    for wrong in [
        "",
        "walks",
        "walks.",
        "walks.load.5k",
        "cycles.load",
        "walk_cycles.load.4k",
    ] {
        assert!(wrong.parse::<Role>().is_err(), "{wrong}");
    }
}

#[test]
fn bits_go_where_the_layouts_say() {
    let mut event = Uarch::parse("f", SMALL).unwrap().events[&Role::Cycles].clone();
    event.event = 0x12;
    event.umask = 0x20;
    event.umask_ext = 3;
    assert_eq!(event.encoding(Layout::Intel).config, 0x300_0000_2012);
    event.cmask = 1;
    event.edge = true;
    event.inv = true;
    event.any = true;
    assert_eq!(event.encoding(Layout::Intel).config, 0x300_01a4_2012);
    (event.event, event.umask, event.cmask) = (0x1a0, 0x1e, 0);
    (event.edge, event.inv, event.any, event.umask_ext) = (false, false, false, 0);
    // de_no_dispatch_per_slot.backend_stalls, as perf encodes it.
    assert_eq!(event.encoding(Layout::Amd).config, 0x1_0000_1ea0);
    event.umask = 0;
    event.event = 0x8128;
    assert_eq!(event.encoding(Layout::Arm).config, 0x8128);
}

#[test]
fn no_amd_and_no_older_arm_core_has_walk_cycles() {
    for uarch in catalogue().iter() {
        let walk_cycles = uarch
            .events
            .keys()
            .any(|role| matches!(role, Role::WalkCycles(_)));
        let pending_on_arm = ["neoverse-n3", "neoverse-v3", "neoverse-v3ae", "nvidia-t410"];
        match uarch.layout {
            Layout::Amd => assert!(!walk_cycles, "{}", uarch.id),
            Layout::Arm => assert_eq!(walk_cycles, pending_on_arm.contains(&uarch.id.as_str())),
            Layout::Intel => {}
        }
    }
}

#[test]
fn a_users_file_wins_over_the_shipped_one() {
    let mut catalogue = catalogue().clone();
    let cpu = "GenuineIntel-6-8F".parse().unwrap();
    assert_eq!(catalogue.identify(&cpu).cores[0].uarch.id, "golden-cove");
    catalogue.add(Uarch::parse("mine.toml", SMALL).unwrap());
    let identified = catalogue.identify(&cpu);
    assert_eq!(identified.cores.len(), 1);
    assert_eq!(identified.cores[0].uarch.id, "mine");

    let count = catalogue.iter().count();
    let replacing = SMALL.replace("\"mine\"", "\"golden-cove\"");
    catalogue.add(Uarch::parse("mine.toml", &replacing).unwrap());
    assert_eq!(catalogue.iter().count(), count);
}

#[test]
fn counters_are_the_events_own_or_the_files() {
    let own = SMALL.replace("reading =", "counters = \"2\", reading =");
    let uarch = Uarch::parse("f", &own).unwrap();
    let shown = |role| uarch.event(role).unwrap().counters.unwrap().to_string();
    assert_eq!(shown(Role::WalkCycles(Access::Load)), "2");
    assert_eq!(shown(Role::Cycles), "0-3");
}

/// One change to [`SMALL`], the line that the error names, and words that are in it.
const WRONG: &[(&str, &str, usize, &str)] = &[
    ("id = \"mine\"", "id = \"a/b\"", 1, "letters"),
    ("id = \"mine\"", "id = ", 1, ""),
    ("name = \"Mine\"", "name = \"a\\u001b[2J\"", 2, "control"),
    ("\"intel\"", "\"sparc\"", 3, "sparc"),
    ("\"0-3\"", "\"3-0\"", 4, "range"),
    ("\"0-3\"", "\"0-64\"", 4, "63"),
    ("\"0-3\"", "\"0-3\"\ncolour = 1", 5, "colour"),
    ("family = 6\n", "", 6, "family"),
    ("\"0x8f\"", "\"0x8g\"", 9, "range"),
    ("\"0x8f\"", "\"0x8f\"]\nsteppings = [\"0x10\"", 6, "0xf"),
    ("arch = \"mine\"", "arch = \"mine\"\nmidr = 1", 6, "arm"),
    (
        "arch = \"mine\"",
        "arch = \"mine\"\npmu = \"../x\"",
        6,
        "sysfs",
    ),
    (
        "\"walk_cycles.load\"",
        "\"walk_cycle.load\"",
        15,
        "walk_cycle.load",
    ),
    ("\"walk_cycles.load\"", "cycles", 15, "duplicate"),
    ("\"walk_cycles.load\"", "\"walks.load\"", 15, "reading"),
    (", reading = \"active\"", "", 15, "need reading"),
    ("\"active\"", "\"lively\"", 15, "lively"),
    ("cmask = 1", "cmask = 256", 15, "256"),
    ("cmask = 1", "cmsk = 1", 15, "cmsk"),
    ("event = 0x12", "event = 0x112", 15, "0x112"),
    ("event = 0x12", "event = -1", 15, ""),
    (
        "event = 0x12",
        "type = \"hw_cache\", event = 0x10003",
        15,
        "number only",
    ),
    (
        "\"active\"",
        "\"active\", data_address = true",
        15,
        "precise",
    ),
    ("cycles = {", "tlb_flush = {", 12, "cycles"),
];

#[test]
fn an_error_names_the_file_and_the_line() {
    assert!(Uarch::parse("small.toml", SMALL).is_ok());
    for (from, to, line, words) in WRONG {
        let text = SMALL.replacen(from, to, 1);
        assert_ne!(text, SMALL, "{from}");
        let error = Uarch::parse("small.toml", &text).unwrap_err().to_string();
        let place = format!("small.toml:{line}: ");
        assert!(error.starts_with(&place), "{to}: {error}");
        assert!(error.contains(words), "{to}: {error}");
    }
}

#[test]
fn a_text_that_is_too_long_is_refused() {
    let text = format!("{SMALL}#{}", " ".repeat(1 << 20));
    assert!(Uarch::parse("f", &text).is_err());
}

fn check(text: &str) {
    if let Err(error) = Uarch::parse("f", text) {
        assert!((1..=1 + text.lines().count()).contains(&error.line));
        assert!(!error.what.is_empty());
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*|[a-z\\[\\]{}=\",.#\\n 0-9-]*") {
        check(&text);
    }

    #[test]
    fn no_cut_or_damaged_file_panics(
        file in 0..shipped::SHIPPED.len(),
        end in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = shipped::SHIPPED[file].1.as_bytes().to_vec();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(end.index(bytes.len()));
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_identity_panics(text in "\\PC*|[A-Za-z]{0,13}-[0-9]{0,4}-[0-9A-F]{0,4}(-[0-9A-F]{0,2})?|0x[0-9a-f]{0,17}") {
        if let Ok(cpu) = text.parse::<CpuId>() {
            prop_assert_eq!(&cpu.to_string().parse::<CpuId>(), &Ok(cpu.clone()));
            prop_assert!(!catalogue().identify(&cpu).cores.is_empty());
        }
    }
}
