//! Every event of every file equals its row in the vendors' lists, and fits its counters.

use super::{
    rows::{Row, Rows, number, span},
    *,
};

/// What the vendor data call the role.
fn classified(layout: Layout, role: Role, event: &Event) -> Vec<String> {
    let side = |access: Access| match access {
        Access::Instruction => "instr",
        other => other.name(),
    };
    let size = |size: Size, arm: bool| match size {
        Size::M2 => vec!["2m4m", "2m"],
        Size::Large if arm => vec!["2mplus"],
        Size::Small => vec!["lt2m"],
        other => vec![other.name()],
    };
    let arm = layout == Layout::Arm;
    match role {
        Role::Cycles => vec!["cycles".into()],
        Role::Instructions => vec!["instructions".into()],
        Role::WalkCycles(access) => vec![format!(
            "{}:{}",
            match event.reading.unwrap() {
                Reading::Active => "walk_active_cycles",
                Reading::Pending => "walk_pending_cycles",
                Reading::Duration => "walk_duration_cycles",
                Reading::Proxy => "load_head_walk_cycles",
            },
            side(access)
        )],
        Role::Walks(access, of) => {
            let kind = match event.counts.unwrap() {
                Counts::Completed => "walk_completed",
                Counts::Started => "walk_started",
                Counts::Requested => "walk_requested",
                Counts::Architected => "walk",
                Counts::Unspecified => "",
            };
            let whole = format!("{kind}:{}", side(access));
            match of {
                None => vec![whole],
                Some(of) => size(of, arm)
                    .into_iter()
                    .map(|size| format!("{whole}:{size}"))
                    .collect(),
            }
        }
        Role::StlbHits(access) => vec![format!("stlb_hit:{}", side(access))],
        Role::NestedWalkCycles => vec![match event.reading.unwrap() {
            Reading::Duration => "ept_walk_cycles:any".into(),
            Reading::Pending => "ept_walk_pending_cycles:any".into(),
            other => format!("{other:?}"),
        }],
        Role::PreciseMiss(access) => vec![
            format!("retired_stlb_miss:{}", side(access)),
            format!("retired_dtlb_miss:{}", side(access)),
        ],
        Role::TlbFlush => vec!["tlb_flush".into()],
    }
}

/// What differs between an event and its row.
fn row_differs(uarch: &Uarch, role: Role, event: &Event, row: &Row, rows: &Rows) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut same = |what: &str, ours: String, theirs: String| {
        if ours != theirs {
            wrong.push(format!("{what}: {ours} is {theirs}"));
        }
    };
    let encoding = event.encoding(uarch.layout);
    same(
        "config",
        encoding.config.to_string(),
        number(&row["config"]).to_string(),
    );
    same(
        "config1",
        encoding.config1.to_string(),
        number(&row["config1"]).to_string(),
    );
    // A fixed counter's pseudo event has its own number; its config is checked above.
    let fixed = row["counter_constraint"].starts_with("Fixed");
    let pairs: [(&str, u64); 7] = [
        ("event_code", event.event.into()),
        ("umask", event.umask.into()),
        ("umask_ext", event.umask_ext.into()),
        ("cmask", event.cmask.into()),
        ("inv", event.inv.into()),
        ("edge", event.edge.into()),
        ("any", event.any.into()),
    ];
    for (name, ours) in pairs.into_iter().skip(if fixed { 2 } else { 0 }) {
        same(name, ours.to_string(), number(&row[name]).to_string());
    }
    same("deprecated", "0".into(), row["deprecated"].clone());
    let roles = classified(uarch.layout, role, event);
    // A part of a union has a role with a size.
    let part = |role: &String| {
        let size = row["role"].strip_prefix(role.as_str());
        !event.union_of.is_empty() && size.is_some_and(|size| size.starts_with(':'))
    };
    if !roles.contains(&row["role"]) && !roles.iter().any(part) {
        same("role", role.to_string(), row["role"].clone());
    }
    if uarch.layout == Layout::Intel {
        same("fixed", event.fixed.to_string(), fixed.to_string());
        let general = if fixed { rows.general(row) } else { row };
        let listed = span(&general["counter_constraint"]);
        let off = span(&general["counter_constraint_smt_off"]).or(listed.clone());
        let shown = |span: Option<cpu::Span>| format!("{:?}", span.map(|span| span.to_string()));
        same("counters", shown(event.counters), format!("{listed:?}"));
        let own = event.counters_smt_off.or(event.counters);
        same("counters_smt_off", shown(own), format!("{off:?}"));
    }
    if let Role::PreciseMiss(_) = role {
        let address = (row["data_la"] == "1").to_string();
        same(
            "data_address",
            event.data_address.unwrap().to_string(),
            address,
        );
        same("precise", "true".into(), (row["pebs"] != "0").to_string());
    }
    wrong
}

/// What differs between an event that joins others and their rows: each but for its umask.
fn union_differs(
    uarch: &Uarch,
    model: &Model,
    role: Role,
    event: &Event,
    rows: &Rows,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut joined = 0;
    for name in &event.union_of {
        let Some(row) = rows.get(model, name) else {
            wrong.push(format!("{} has no event {name}", model.arch));
            continue;
        };
        let mut part = event.clone();
        part.umask = u8::try_from(number(&row["umask"])).unwrap();
        joined |= part.umask;
        wrong.extend(row_differs(uarch, role, &part, row, rows));
    }
    if joined != event.umask {
        wrong.push(format!("its parts' umask is {joined:#x}"));
    }
    wrong
}

/// Everything in which a file differs from the vendors' lists.
fn differences(uarch: &Uarch, rows: &Rows) -> Vec<String> {
    let mut wrong = Vec::new();
    for (role, event) in &uarch.events {
        let mut errata = BTreeSet::new();
        for model in &uarch.models {
            let mut found = if event.union_of.is_empty() {
                rows.get(model, &event.name).map_or_else(
                    || vec![format!("{} has no such event", model.arch)],
                    |row| row_differs(uarch, *role, event, row, rows),
                )
            } else {
                union_differs(uarch, model, *role, event, rows)
            };
            for what in found.drain(..) {
                wrong.push(format!("{} {role}: {what}", uarch.id));
            }
            let row = rows.get(model, &event.name);
            let listed = row.map_or("", |row| &row["errata"]).split('|');
            errata.extend(listed.filter(|name| !name.is_empty()).map(str::to_owned));
        }
        if errata != event.errata.iter().cloned().collect() {
            wrong.push(format!("{} {role}: errata are {errata:?}", uarch.id));
        }
    }
    wrong
}

#[test]
fn every_event_equals_the_vendors() {
    let (catalogue, rows) = (catalogue(), Rows::read());
    let wrong: Vec<_> = catalogue
        .iter()
        .flat_map(|uarch| differences(uarch, &rows))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_of_the_fixture_is_used() {
    let rows = Rows::read();
    let archs: BTreeSet<_> = rows.0.keys().map(|[arch, ..]| arch.clone()).collect();
    let catalogue = catalogue();
    let models = catalogue.iter().flat_map(|uarch| &uarch.models);
    let mut named: BTreeSet<_> = models.map(|model| model.arch.clone()).collect();
    // Two cores whose own lists have none of the rows take those of the architecture.
    named.insert("arm-common".to_owned());
    for without in ["hisilicon-hip08", "cavium-thunderx2"] {
        assert!(named.remove(without));
    }
    assert_eq!(archs, named);
}

/// Ways to change one digit of an event.
fn damages() -> Vec<fn(&mut Event)> {
    vec![
        |event| event.event ^= 1,
        |event| event.event ^= 0x10,
        |event| event.umask ^= 1,
        |event| event.umask ^= 0x80,
        |event| event.umask_ext ^= 2,
        |event| event.cmask ^= 1,
        |event| event.inv = !event.inv,
        |event| event.edge = !event.edge,
        |event| event.any = !event.any,
        |event| event.config1 ^= 4,
        |event| event.name.push('x'),
        |event| event.errata.push("X1".to_owned()),
    ]
}

#[test]
fn one_changed_digit_is_found() {
    let rows = Rows::read();
    for uarch in catalogue().iter().filter(|uarch| !uarch.models.is_empty()) {
        for role in uarch.events.keys() {
            for (number, damage) in damages().into_iter().enumerate() {
                let mut damaged = uarch.clone();
                let event = damaged.events.get_mut(role).unwrap();
                let union = !event.union_of.is_empty();
                damage(event);
                // The name of a union is ours.
                let found = !differences(&damaged, &rows).is_empty() || (union && number == 10);
                assert!(found, "{} {role}: damage {number}", uarch.id);
            }
        }
    }
}

/// The file's text with one digit of its counters or a flag changed.
fn damaged_texts(text: &str) -> Vec<String> {
    let changes = [
        ("counters = \"0-", "counters = \"1-"),
        ("counters_smt_off = \"0-7\"", "counters_smt_off = \"0-6\""),
        ("data_address = true", "data_address = false"),
        ("data_address = false", "data_address = true"),
        ("\"pending\"", "\"active\""),
        ("\"active\"", "\"pending\""),
        ("\"duration\"", "\"pending\""),
        ("\"completed\"", "\"started\""),
        ("\"requested\"", "\"completed\""),
        ("walks.store", "walks.data"),
        ("stlb_hits.load", "stlb_hits.data"),
        (".4k\" =", ".32k\" ="),
        ("errata = [", "errata = [\"X1\", "),
    ];
    let damaged = changes.into_iter().flat_map(|(from, to)| {
        let places = text.match_indices(from).map(|(place, _)| place);
        places.map(move |place| {
            let (before, after) = text.split_at(place);
            format!("{before}{}", after.replacen(from, to, 1))
        })
    });
    damaged.collect()
}

#[test]
fn a_changed_counter_reading_or_role_is_found() {
    let rows = Rows::read();
    for (id, text) in shipped::SHIPPED {
        let uarch = Uarch::parse(id, text).unwrap();
        // The counters of AMD's and Arm's cores are not in their lists.
        if uarch.models.is_empty() || uarch.layout != Layout::Intel {
            continue;
        }
        for damaged in damaged_texts(text) {
            let found = Uarch::parse(id, &damaged).map(|uarch| differences(&uarch, &rows));
            assert!(found != Ok(Vec::new()), "{id}: not found in\n{damaged}");
        }
    }
}

#[test]
fn what_stands_in_for_unknown_cpus_has_shared_encodings() {
    let catalogue = catalogue();
    let amd = catalogue.get(AMD_UNKNOWN).unwrap();
    for zen in ["zen3", "zen4", "zen5", "zen6"] {
        let zen = catalogue.get(zen).unwrap();
        for role in amd.events.keys() {
            assert_eq!(
                amd.encoding(*role),
                zen.encoding(*role),
                "{} {role}",
                zen.id
            );
        }
    }
    let rows = Rows::read();
    for event in catalogue.get(ARM_UNKNOWN).unwrap().events.values() {
        let key = ["arm-common", "armv8_pmuv3", &event.name].map(str::to_owned);
        assert_eq!(number(&rows.0[&key]["config"]), u64::from(event.event));
    }
    // include/uapi/linux/perf_event.h: cache 3 dTLB, 4 iTLB; operation 0 read, 1 write; result 1 miss.
    let generic = catalogue.get(GENERIC).unwrap();
    let miss = |cache: u64, operation: u64| cache | operation << 8 | 1 << 16;
    for (access, config) in [
        (Access::Load, miss(3, 0)),
        (Access::Store, miss(3, 1)),
        (Access::Instruction, miss(4, 0)),
    ] {
        let encoding = generic.encoding(Role::Walks(access, None)).unwrap();
        assert_eq!(
            (encoding.perf_type, encoding.config),
            (PerfType::HwCache, config)
        );
    }
}

/// Whether every event can have a counter of its own at the same time.
fn fits(events: &[&Event], taken: &mut Vec<u32>) -> bool {
    let Some((event, rest)) = events.split_first() else {
        return true;
    };
    if event.fixed {
        return fits(rest, taken);
    }
    // Vendors that name no counters: nothing to check against.
    let Some(span) = event.counters else {
        return fits(rest, taken);
    };
    (span.first..=span.last).any(|counter| {
        if taken.contains(&counter) {
            return false;
        }
        taken.push(counter);
        let fit = fits(rest, taken);
        taken.pop();
        fit
    })
}

#[test]
fn cycles_and_all_walk_cycles_fit_the_counters_together() {
    for uarch in catalogue().iter() {
        let group: Vec<&Event> = uarch
            .events
            .iter()
            .filter(|(role, _)| matches!(role, Role::Cycles | Role::WalkCycles(_)))
            .map(|(_, event)| event)
            .collect();
        assert!(fits(&group, &mut Vec::new()), "{}", uarch.id);
    }
}
