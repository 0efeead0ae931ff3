//! Every CPU there can be is identified exactly as models.csv does.

use super::*;

/// A row of models.csv.
struct Listed {
    vendor: String,
    pattern: String,
    stepping: bool,
    midr: String,
    arch: String,
    pmu: String,
    core_type: String,
}

fn listed() -> Vec<Listed> {
    let text = fixture("models.csv");
    let mut lines = text.lines();
    let names = fields(lines.next().unwrap());
    lines
        .map(|line| {
            let values = fields(line);
            let get = |name: &str| {
                let column = names.iter().position(|other| other == name).unwrap();
                values[column].clone()
            };
            Listed {
                vendor: get("vendor"),
                pattern: get("match"),
                stepping: !get("stepping").is_empty(),
                midr: get("midr"),
                arch: get("arch"),
                pmu: get("pmu"),
                core_type: get("core_type"),
            }
        })
        .collect()
}

/// Whether a pattern of models.csv (the part of POSIX regular expressions that it uses) matches a
/// whole text.
fn matches(pattern: &str, text: &str) -> bool {
    if let Some((before, group, after)) = group(pattern) {
        return group
            .split('|')
            .any(|choice| matches(&format!("{before}{choice}{after}"), text));
    }
    let Some(first) = pattern.chars().next() else {
        return text.is_empty();
    };
    let (class, rest) = match pattern.strip_prefix("[[:xdigit:]]") {
        Some(rest) => ("0123456789ABCDEF".to_owned(), rest),
        None if first == '[' => {
            let end = pattern.find(']').unwrap();
            (expand(&pattern[1..end]), &pattern[end + 1..])
        }
        None => (first.to_string(), &pattern[first.len_utf8()..]),
    };
    let Some(next) = text.chars().next().filter(|next| class.contains(*next)) else {
        return false;
    };
    let tail = &text[next.len_utf8()..];
    match rest.strip_prefix('+') {
        Some(after) => matches(after, tail) || matches(pattern, tail),
        None => matches(rest, tail),
    }
}

fn group(pattern: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = pattern.split_once('(')?;
    let (group, after) = rest.split_once(')')?;
    Some((before, group, after))
}

/// `0-9A-F` as the characters that it stands for.
fn expand(class: &str) -> String {
    let characters: Vec<char> = class.chars().collect();
    let mut expanded = String::new();
    let mut at = 0;
    while at < characters.len() {
        if characters.get(at + 1) == Some(&'-') {
            expanded.extend(characters[at]..=characters[at + 2]);
            at += 3;
        } else {
            expanded.push(characters[at]);
            at += 1;
        }
    }
    expanded
}

/// The architecture and PMU of each core, as models.csv has them: the first match by PMU, where an
/// Intel row and an AMD row differ only in how many may match.
fn expected(listed: &[Listed], family: &str, stepping: u32) -> BTreeSet<(String, String)> {
    let full = format!("{family}-{stepping:X}");
    let found = listed.iter().filter(|row| {
        let text = if row.stepping { &full } else { family };
        row.midr.is_empty() && matches(&row.pattern, text)
    });
    let mut cores: Vec<(String, String)> = Vec::new();
    for row in found {
        if cores.iter().all(|(_, pmu)| *pmu != row.pmu) {
            cores.push((row.arch.clone(), row.pmu.clone()));
        }
    }
    cores.into_iter().collect()
}

fn found(catalogue: &Catalogue, cpu: &CpuId) -> BTreeSet<(String, String)> {
    let cores = catalogue.identify(cpu).cores;
    let models = cores.iter().filter_map(|core| core.model);
    models
        .map(|model| (model.arch.clone(), model.pmu.clone()))
        .collect()
}

/// Every CPU with a vendor and a family that models.csv has, and some that it has not.
fn x86() -> impl Iterator<Item = (String, u32)> {
    let intel = [5, 6, 15, 18, 19].map(|family| ("GenuineIntel", family));
    let amd = [22, 23, 24, 25, 26, 27].map(|family| ("AuthenticAMD", family));
    intel.into_iter().chain(amd).flat_map(|(vendor, family)| {
        (0..=0xff).flat_map(move |model| {
            (0..=0xf).map(move |stepping| (format!("{vendor}-{family}-{model:X}"), stepping))
        })
    })
}

#[test]
fn every_cpuid_gets_the_cores_of_models_csv() {
    let (catalogue, listed) = (catalogue(), listed());
    for (family, stepping) in x86() {
        let cpu: CpuId = format!("{family}-{stepping:X}").parse().unwrap();
        let expected = expected(&listed, &family, stepping);
        assert_eq!(found(catalogue, &cpu), expected, "{cpu}");
        assert_eq!(catalogue.identify(&cpu).note.is_some(), expected.is_empty());
    }
}

#[test]
fn no_two_files_claim_a_core() {
    let catalogue = catalogue();
    let arm = listed()
        .into_iter()
        .filter(|row| row.midr.starts_with("0x"));
    let cpus = x86().map(|(family, stepping)| format!("{family}-{stepping:X}"));
    for cpu in cpus.chain(arm.map(|row| row.midr)) {
        let cpu: CpuId = cpu.parse().unwrap();
        let models = catalogue.iter().flat_map(|uarch| &uarch.models);
        let mut pmus: Vec<_> = models
            .filter(|model| model.claims(&cpu))
            .map(|model| &model.pmu)
            .collect();
        let claims = pmus.len();
        pmus.sort();
        pmus.dedup();
        assert_eq!(pmus.len(), claims, "{cpu}");
    }
}

#[test]
fn every_row_of_models_csv_resolves() {
    let catalogue = catalogue();
    let all: BTreeSet<_> = catalogue
        .iter()
        .flat_map(|uarch| &uarch.models)
        .map(|model| {
            let core_type = model.core_type.map(|kind| format!("{kind:#x}"));
            (
                model.arch.clone(),
                model.pmu.clone(),
                core_type.unwrap_or_default(),
            )
        })
        .collect();
    let rows = listed().into_iter().filter(|row| row.midr != "*");
    let rows: BTreeSet<_> = rows.map(|row| (row.arch, row.pmu, row.core_type)).collect();
    assert_eq!(all, rows);
}

#[test]
fn an_arm_core_is_known_in_every_variant_and_revision() {
    let catalogue = catalogue();
    for row in listed().iter().filter(|row| row.vendor == "Arm") {
        let Ok(CpuId::Arm { midr }) = row.midr.parse() else {
            assert_eq!(row.midr, "*");
            continue;
        };
        for changed in [0, 1, 0xf, 0x0030_0002, 0x00f0_000f] {
            let cpu = CpuId::Arm {
                midr: midr | changed,
            };
            let cores = catalogue.identify(&cpu).cores;
            assert_eq!(cores[0].model.unwrap().arch, row.arch);
        }
        let cpu = CpuId::Arm { midr: midr ^ 0x10 };
        let cores = catalogue.identify(&cpu).cores;
        assert!(cores[0].model.is_none_or(|model| model.arch != row.arch));
    }
}

#[test]
fn an_unknown_cpu_gets_a_stand_in_and_a_line_that_says_so() {
    let catalogue = catalogue();
    for (cpu, id, words) in [
        ("GenuineIntel-6-FF", GENERIC, "generic TLB events"),
        ("GenuineIntel-19-1", GENERIC, "generic TLB events"),
        ("CentaurHauls-7-3B", GENERIC, "generic TLB events"),
        ("AuthenticAMD-21-2", GENERIC, "generic TLB events"),
        ("AuthenticAMD-27-0", AMD_UNKNOWN, "every Zen"),
        ("HygonGenuine-24-1-1", AMD_UNKNOWN, "by inference"),
        ("0x410fd0b0", ARM_UNKNOWN, "sysfs"),
    ] {
        let identified = catalogue.identify(&cpu.parse().unwrap());
        assert_eq!(identified.cores.len(), 1, "{cpu}");
        assert_eq!(identified.cores[0].uarch.id, id, "{cpu}");
        let note = identified.note.unwrap();
        assert!(note.contains(cpu) && note.contains(words), "{note}");
        let roles = identified.cores[0].uarch.events.keys();
        assert!(
            roles
                .clone()
                .all(|role| !matches!(role, Role::WalkCycles(_)))
        );
    }
    let note = catalogue
        .identify(&"GenuineIntel-6-55".parse().unwrap())
        .note;
    assert!(note.unwrap().contains("stepping"));
}

#[test]
fn a_hybrid_has_its_performance_cores_first() {
    let catalogue = catalogue();
    let cores = catalogue
        .identify(&"GenuineIntel-6-C5".parse().unwrap())
        .cores;
    let shown: Vec<_> = cores.iter().map(|core| (core.pmu(), core.name())).collect();
    assert_eq!(shown[0], ("cpu_core", "Lion Cove"));
    assert_eq!(shown.len(), 3);
}

#[test]
fn walkers_are_the_models_own_where_they_differ() {
    let catalogue = catalogue();
    let walkers = |cpu: &str| catalogue.identify(&cpu.parse().unwrap()).cores[0].walkers();
    assert_eq!(walkers("GenuineIntel-6-3D"), Some(1));
    assert_eq!(walkers("GenuineIntel-6-4F"), Some(2));
    assert_eq!(walkers("GenuineIntel-6-8F"), Some(4));
    assert_eq!(walkers("AuthenticAMD-25-11"), None);
}

#[test]
fn a_text_that_names_no_cpu_is_refused() {
    for text in [
        "",
        "-",
        "GenuineIntel",
        "GenuineIntel-6",
        "GenuineIntel-6-",
        "GenuineIntel-6-8F-",
        "GenuineIntel-6-8F-3-1",
        "GenuineIntel-6-100",
        "GenuineIntel-6-8F-10",
        "Genuine Intel-6-8F",
        "GenuineIntel-+6-8F",
        "GenuineIntel-6-+8",
        "-6-8F",
        "0x",
        "0x+1",
        "0x1410fd490",
        "410fd490",
    ] {
        assert!(text.parse::<CpuId>().is_err(), "{text}");
    }
}
