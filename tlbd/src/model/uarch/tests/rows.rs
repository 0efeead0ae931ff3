//! The rows of the vendors' event lists.

use std::collections::HashMap;

use super::*;

pub(super) type Row = HashMap<String, String>;

/// The vendors' rows by architecture, PMU and event.
pub(super) struct Rows(pub(super) HashMap<[String; 3], Row>);

impl Rows {
    pub(super) fn read() -> Self {
        let text = fixture("events.csv");
        let mut lines = text.lines();
        let names = fields(lines.next().unwrap());
        let rows = lines.map(|line| {
            let row: Row = names.iter().cloned().zip(fields(line)).collect();
            let key = ["arch", "pmu", "event"].map(|name| row[name].clone());
            (key, row)
        });
        Self(rows.collect())
    }

    /// An Arm core's own list need not repeat the cycles and instructions of the architecture.
    pub(super) fn get(&self, model: &Model, event: &str) -> Option<&Row> {
        let own = [&model.arch, &model.pmu, event].map(ToString::to_string);
        let shared = ["arm-common", &model.pmu, event].map(ToString::to_string);
        let fixed = ["CPU_CYCLES", "INST_RETIRED"].contains(&event);
        let shared = self.0.get(&shared).filter(|_| fixed);
        self.0.get(&own).or(shared)
    }

    /// The same event on a general counter.
    pub(super) fn general(&self, row: &Row) -> &Row {
        let event = row["event"].clone() + "_P";
        &self.0[&[row["arch"].clone(), row["pmu"].clone(), event]]
    }
}

pub(super) fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None if text.is_empty() => 0,
        None => text.parse().unwrap(),
    }
}

/// `0|1|2|3` as `0-3`.
pub(super) fn span(list: &str) -> Option<String> {
    let counters: Vec<&str> = list.split('|').collect();
    match counters.as_slice() {
        [] | [""] => None,
        [one] => Some((*one).to_owned()),
        [first, .., last] => {
            let gapless = number(last) - number(first) + 1 == counters.len() as u64;
            assert!(gapless, "{list}");
            Some(format!("{first}-{last}"))
        }
    }
}
