//! What per-process readings of `smaps_rollup` add up to, and how a reader keeps to its budget.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::model::printable::printable;
use crate::model::view::{OTHER, SMAPS_KINDS, SmapsRow};

/// One process's reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// When it started, in clock ticks since boot: with its pid, who it is.
    pub started: u64,
    /// Its cgroup.
    pub cgroup: Arc<str>,
    /// Bytes by kind, in the order of [`SMAPS_KINDS`].
    pub bytes: [u64; SMAPS_KINDS.len()],
    /// When it was read.
    pub at: Instant,
}

/// Sums readings by cgroup as seen at `now`, biggest anonymous memory first; those beyond `bound` become `other`.
pub fn by_cgroup(readings: &HashMap<u32, Reading>, now: Instant, bound: usize) -> Vec<SmapsRow> {
    let mut sums: HashMap<&Arc<str>, SmapsRow> = HashMap::new();
    for reading in readings.values() {
        let row = sums.entry(&reading.cgroup).or_insert_with(|| SmapsRow {
            cgroup: reading.cgroup.clone(),
            processes: 0,
            bytes: Default::default(),
            age: Duration::ZERO,
        });
        row.processes += 1;
        row.bytes
            .iter_mut()
            .zip(reading.bytes)
            .for_each(|(sum, bytes)| *sum = sum.saturating_add(bytes));
        row.age = row.age.max(now.saturating_duration_since(reading.at));
    }
    let mut rows: Vec<_> = sums.into_values().collect();
    rows.sort_by(|a, b| {
        anonymous(b)
            .cmp(&anonymous(a))
            .then_with(|| a.cgroup.cmp(&b.cgroup))
    });
    let rest = rows.split_off(rows.len().min(bound));
    rows.extend(rest.into_iter().reduce(join).map(|row| SmapsRow {
        cgroup: OTHER.into(),
        ..row
    }));
    rows
}

fn anonymous(row: &SmapsRow) -> u64 {
    let kinds = SMAPS_KINDS.iter().zip(row.bytes);
    kinds
        .filter(|((kind, _), _)| *kind == "anonymous")
        .map(|(_, bytes)| bytes)
        .fold(0, u64::saturating_add)
}

fn join(mut row: SmapsRow, more: SmapsRow) -> SmapsRow {
    row.processes += more.processes;
    row.bytes
        .iter_mut()
        .zip(more.bytes)
        .for_each(|(sum, bytes)| *sum = sum.saturating_add(bytes));
    row.age = row.age.max(more.age);
    row
}

/// The cgroup that a `/proc/PID/cgroup` file names: the unified hierarchy's, else that of the
/// memory controller. `None` if it names neither.
#[must_use]
pub fn cgroup_of(file: &[u8]) -> Option<String> {
    let path = |line: &[u8], is_wanted: fn(&[u8], &[u8]) -> bool| {
        let mut parts = line.splitn(3, |byte| *byte == b':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        is_wanted(number, controllers).then(|| printable(path))
    };
    let find = |is_wanted| {
        file.split(|byte| *byte == b'\n')
            .find_map(|line| path(line, is_wanted))
    };
    find(|number, controllers| number == b"0" && controllers.is_empty()).or_else(|| {
        find(|_, controllers| {
            controllers
                .split(|byte| *byte == b',')
                .any(|name| name == b"memory")
        })
    })
}

/// How long to rest after work that took `spent` of CPU time, so that work stays within
/// `percent` of one CPU.
#[must_use]
pub fn rest_after(spent: Duration, percent: f64) -> Duration {
    let factor = (100.0 / percent - 1.0).max(0.0);
    Duration::try_from_secs_f64(spent.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(cgroup: &str, anonymous: u64, at: Instant) -> Reading {
        let mut bytes = [0; SMAPS_KINDS.len()];
        bytes[1] = anonymous;
        Reading {
            started: 0,
            cgroup: cgroup.into(),
            bytes,
            at,
        }
    }

    fn numbered(readings: &[Reading]) -> HashMap<u32, Reading> {
        (0..).zip(readings.iter().cloned()).collect()
    }

    #[test]
    fn processes_of_a_cgroup_are_summed_and_the_oldest_tells_the_age() {
        let (read, now) = (Instant::now(), Instant::now() + Duration::from_secs(50));
        let readings = [
            reading("/a", 1, now),
            reading("/a", 2, read),
            reading("/b", 9, now),
        ];
        let rows = by_cgroup(&numbered(&readings), now, 9);
        assert_eq!(
            rows.iter().map(|row| &*row.cgroup).collect::<Vec<_>>(),
            ["/b", "/a"]
        );
        assert_eq!((rows[1].processes, rows[1].bytes[1]), (2, 3));
        assert_eq!((rows[0].age, rows[1].age), (Duration::ZERO, now - read));
    }

    #[test]
    fn cgroups_beyond_the_bound_become_other() {
        let now = Instant::now();
        let readings = [
            reading("/a", 5, now),
            reading("/b", 2, now),
            reading("/c", 1, now),
        ];
        let rows = by_cgroup(&numbered(&readings), now, 1);
        assert_eq!(
            rows.iter().map(|row| &*row.cgroup).collect::<Vec<_>>(),
            ["/a", "other"]
        );
        assert_eq!(rows[1].bytes[1], 3);
    }

    #[test]
    fn a_process_belongs_to_its_unified_cgroup_or_else_to_its_memory_cgroup() {
        let hybrid = b"4:memory:/v1/a\n1:name=systemd:/\n0::/system.slice/x:y.service\n";
        assert_eq!(
            cgroup_of(hybrid).as_deref(),
            Some("/system.slice/x:y.service")
        );
        assert_eq!(cgroup_of(b"4:cpu,memory:/v1/a\n").as_deref(), Some("/v1/a"));
        assert_eq!(cgroup_of(b"0::/\xff\n").as_deref(), Some("/\\xff"));
        assert_eq!(cgroup_of(b"0:"), None);
    }

    #[test]
    fn one_percent_rests_99_times_as_long_as_it_works() {
        assert_eq!(
            rest_after(Duration::from_millis(4), 1.0),
            Duration::from_millis(396)
        );
        assert_eq!(rest_after(Duration::from_millis(4), 100.0), Duration::ZERO);
    }
}
