use proptest::prelude::*;

use super::*;
use crate::{export::page::sample, model::view::CgroupRow};

const SECONDS: Metric = Metric {
    name: "tlbd_cgroup_cpu_seconds_total",
    kind: Kind::Counter,
    help: "CPU time, by \"sampling\": a\\b\nand more",
    labels: &["cgroup", "mode"],
    read: |view, series| {
        for row in &view.cgroups {
            series.measure(&[&row.cgroup, "user"], row.counts.cpu_ns[0] as f64 / 1e9);
            series.measure(&[&row.cgroup, "kernel"], row.counts.cpu_ns[1] as f64 / 1e9);
        }
    },
};
const TICK: Metric = Metric {
    name: "tlbd_tick",
    kind: Kind::Gauge,
    help: "Number of the tick",
    labels: &[],
    read: |view, series| series.count(&[], view.tick),
};
const PMU: Metric = Metric {
    name: "tlbd_pmu_info",
    kind: Kind::Info,
    help: "The PMU",
    labels: &["pmu", "source"],
    read: |view, series| series.count(&[&view.pmu.name, &view.pmu.source], 1),
};
const METRICS: Metrics = &[&[&SECONDS, &TICK], &[&PMU]];

fn named(cgroups: &[(&str, u64)]) -> Arc<View> {
    let mut view = sample::empty();
    let row = |(name, cpu): &(&str, u64)| {
        let mut row = CgroupRow {
            cgroup: (*name).into(),
            counts: Default::default(),
        };
        row.counts.cpu_ns = [*cpu, 0];
        row
    };
    view.cgroups = cgroups.iter().map(row).collect();
    Arc::new(view)
}

/// A sample line's name, labels and value.
#[derive(Debug, PartialEq)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: String,
}

/// Reads a sample line as the OpenMetrics grammar has it; `None` if it does not follow it.
fn sample_of(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => labels_of(rest)?,
        None => (Vec::new(), rest),
    };
    let value = value.strip_prefix(' ')?;
    value.parse::<f64>().ok()?;
    is_name(name).then(|| Sample {
        name: name.into(),
        labels,
        value: value.into(),
    })
}

type Pairs = Vec<(String, String)>;

/// Reads `name="value",...}` and gives what follows it.
fn labels_of(mut rest: &str) -> Option<(Pairs, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        if !labels.is_empty() {
            rest = rest.strip_prefix(',')?;
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let (value, after) = unquote(quoted)?;
        is_name(name).then(|| labels.push((name.to_owned(), value)))?;
        rest = after;
    }
}

fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    loop {
        match characters.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => value.push(match characters.next()?.1 {
                'n' => '\n',
                plain @ ('"' | '\\') => plain,
                _ => return None,
            }),
            (_, plain) => value.push(plain),
        }
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// All samples; panics at a line that is neither a sample nor a comment that `comments` allows.
fn samples(text: &str, comments: &[&str]) -> Vec<Sample> {
    let is_comment = |line: &&str| {
        comments
            .iter()
            .any(|comment| line.strip_prefix(comment).is_some_and(described))
    };
    let lines = text
        .split('\n')
        .filter(|line| !is_comment(line) && !line.is_empty());
    lines
        .map(|line| sample_of(line).unwrap_or_else(|| panic!("{line:?}")))
        .collect()
}

/// Whether a comment goes on with a metric's name and a text.
fn described(rest: &str) -> bool {
    rest.is_empty() || rest.split_once(' ').is_some_and(|(name, _)| is_name(name))
}

const OPENMETRICS: &[&str] = &["# HELP ", "# TYPE ", "# UNIT ", "# EOF"];
const PROMETHEUS: &[&str] = &["# HELP ", "# TYPE "];

#[test]
fn openmetrics_is_written_in_full() {
    let text = openmetrics(&named(&[("/a", 1_500_000_000)]), METRICS).unwrap();
    assert_eq!(
        text,
        r#"# HELP tlbd_cgroup_cpu_seconds CPU time, by \"sampling\": a\\b\nand more
# TYPE tlbd_cgroup_cpu_seconds counter
# UNIT tlbd_cgroup_cpu_seconds seconds
tlbd_cgroup_cpu_seconds_total{cgroup="/a",mode="user"} 1.5
tlbd_cgroup_cpu_seconds_total{cgroup="/a",mode="kernel"} 0.0
# HELP tlbd_tick Number of the tick
# TYPE tlbd_tick gauge
tlbd_tick 1
# HELP tlbd_pmu The PMU
# TYPE tlbd_pmu info
tlbd_pmu_info{pmu="none",source="none"} 1
# EOF
"#
    );
}

#[test]
fn prometheus_describes_full_names_and_has_no_unit_and_no_end() {
    let text = prometheus(&openmetrics(&named(&[("/a", 1_500_000_000)]), METRICS).unwrap());
    assert_eq!(
        text,
        r#"# HELP tlbd_cgroup_cpu_seconds_total CPU time, by "sampling": a\\b\nand more
# TYPE tlbd_cgroup_cpu_seconds_total counter
tlbd_cgroup_cpu_seconds_total{cgroup="/a",mode="user"} 1.5
tlbd_cgroup_cpu_seconds_total{cgroup="/a",mode="kernel"} 0.0
# HELP tlbd_tick Number of the tick
# TYPE tlbd_tick gauge
tlbd_tick 1
# HELP tlbd_pmu_info The PMU
# TYPE tlbd_pmu_info gauge
tlbd_pmu_info{pmu="none",source="none"} 1
"#
    );
}

#[test]
fn a_family_without_series_is_left_out() {
    let text = openmetrics(&named(&[]), METRICS).unwrap();
    assert!(!text.contains("tlbd_cgroup_cpu_seconds"), "{text}");
    assert!(text.contains("# TYPE tlbd_tick gauge"));
}

#[test]
fn no_metrics_at_all_are_an_empty_exposition() {
    assert_eq!(openmetrics(&named(&[]), &[]).unwrap(), "# EOF\n");
    assert_eq!(prometheus("# EOF\n"), "");
}

#[test]
fn a_measure_that_is_not_finite_has_no_line() {
    const RATIOS: Metric = Metric {
        name: "tlbd_share_ratio",
        kind: Kind::Gauge,
        help: "Shares",
        labels: &["of"],
        read: |_, series| {
            for (of, value) in [("a", f64::NAN), ("b", 0.25), ("c", f64::INFINITY)] {
                series.measure(&[of], value);
            }
        },
    };
    let text = openmetrics(&named(&[]), &[&[&RATIOS]]).unwrap();
    assert!(
        text.ends_with("# UNIT tlbd_share_ratio ratio\ntlbd_share_ratio{of=\"b\"} 0.25\n# EOF\n")
    );
}

#[test]
fn an_info_whose_name_ends_like_a_unit_has_none() {
    const CLOCK: Metric = Metric {
        name: "tlbd_clock_cycles_info",
        ..PMU
    };
    let text = openmetrics(&named(&[]), &[&[&CLOCK]]).unwrap();
    assert!(
        text.contains("# TYPE tlbd_clock_cycles info\ntlbd_clock_cycles_info{"),
        "{text}"
    );
}

#[test]
fn integers_are_exact() {
    const LARGEST: Metric = Metric {
        name: "tlbd_largest_total",
        kind: Kind::Counter,
        help: "Largest",
        labels: &[],
        read: |_, series| series.count(&[], u64::MAX),
    };
    let text = openmetrics(&named(&[]), &[&[&LARGEST]]).unwrap();
    assert!(text.contains("tlbd_largest_total 18446744073709551615\n"));
}

#[test]
fn a_series_with_the_wrong_number_of_labels_is_an_error() {
    const WRONG: Metric = Metric {
        name: "tlbd_wrong",
        kind: Kind::Gauge,
        help: "Wrong",
        labels: &["a", "b"],
        read: |_, series| series.count(&["only a"], 1),
    };
    assert!(openmetrics(&named(&[]), &[&[&WRONG]]).is_err());
}

#[test]
fn hostile_label_values_stay_inside_their_quotes() {
    let hostile = "a\nb\"c\\d\\n\"} 7\n# EOF\n\r\u{85}\u{2028}\0";
    let text = openmetrics(&named(&[(hostile, 0)]), METRICS).unwrap();
    let series = samples(&text, OPENMETRICS);
    assert_eq!(series[0].labels[0], ("cgroup".into(), hostile.into()));
    assert_eq!(text.matches("\n# EOF").count(), 1);
}

proptest! {
    #[test]
    fn every_line_parses_and_gives_back_what_went_in(
        cgroups in proptest::collection::vec(("(\\PC|[\n\"\\\\{}, #\0\r]){0,20}", any::<u64>()), 0..20)
    ) {
        let rows: Vec<_> = cgroups.iter().map(|(name, cpu)| (name.as_str(), *cpu)).collect();
        let text = openmetrics(&named(&rows), METRICS).unwrap();
        prop_assert!(text.ends_with("\n# EOF\n"));
        let read = samples(&text, OPENMETRICS);
        prop_assert_eq!(read.len(), 2 * rows.len() + 2);
        for ((name, cpu), sample) in rows.iter().zip(read.iter().step_by(2)) {
            prop_assert_eq!(&sample.labels[0].1, name);
            prop_assert_eq!(sample.value.parse::<f64>().unwrap(), *cpu as f64 / 1e9);
        }
        prop_assert_eq!(samples(&prometheus(&text), PROMETHEUS), read);
    }

    #[test]
    fn help_survives_both_formats(help in "(\\PC|[\n\"\\\\]){0,40}") {
        let line = format!("# HELP tlbd_x {}\n# TYPE tlbd_x gauge\n", escaped(&help));
        prop_assert_eq!(line.lines().count(), 2);
        let older = help.replace('\\', "\\\\").replace('\n', "\\n");
        prop_assert_eq!(prometheus(&line), format!("# HELP tlbd_x {older}\n# TYPE tlbd_x gauge\n"));
    }

    #[test]
    fn any_text_can_be_converted(text in "(# |HELP |TYPE |UNIT |counter|\\PC|[\n\\\\]){0,40}") {
        let _ = prometheus(&text);
    }
}
