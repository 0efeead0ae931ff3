//! What was counted for whom since start: the ledgers that collectors add to.

use std::{collections::HashMap, ops::AddAssign, sync::Arc};

use tlbd_common::OVERFLOW_CGROUP;

use crate::model::{
    cgroups::Cgroups,
    ledger::{Ledger, Total},
    view::{CgroupCounts, CgroupRow, FoldedRow, FunctionRow, OTHER, RETIRED, UNKNOWN},
};

/// A page fault and a TLB flush weigh this many nanoseconds of CPU time when cgroups are ranked:
/// about what each costs. Only the ranking uses it; no exported figure does.
const RANKED_NS: f64 = 1000.0;

impl AddAssign for CgroupCounts {
    fn add_assign(&mut self, more: Self) {
        add_each(&mut self.cpu_ns, &more.cpu_ns);
        add_each(self.faults.as_flattened_mut(), more.faults.as_flattened());
        for (total, more) in self.flushes.iter_mut().zip(more.flushes) {
            *total += more;
        }
    }
}

/// Totals that reach the end of the range stay there: captured counts may be anything.
fn add_each(totals: &mut [u64], more: &[u64]) {
    for (total, more) in totals.iter_mut().zip(more) {
        *total = total.saturating_add(*more);
    }
}

impl Total for CgroupCounts {
    fn cost(&self) -> f64 {
        let sum = |counts: &[u64]| counts.iter().map(|count| *count as f64).sum::<f64>();
        let flushes = self.flushes.map(|count| count.flushes);
        sum(&self.cpu_ns) + (sum(self.faults.as_flattened()) + sum(&flushes)) * RANKED_NS
    }
}

/// What was sampled in a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCounts {
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
}

impl AddAssign for FunctionCounts {
    fn add_assign(&mut self, more: Self) {
        self.cpu_ns = self.cpu_ns.saturating_add(more.cpu_ns);
    }
}

impl Total for FunctionCounts {
    fn cost(&self) -> f64 {
        self.cpu_ns as f64
    }
}

/// The ledgers, and the names that cgroup ids have.
#[derive(Debug)]
pub struct Accounts {
    /// Names of cgroup ids.
    pub names: Cgroups,
    /// Totals by cgroup.
    pub cgroups: Ledger<CgroupCounts>,
    /// Totals by kernel function.
    pub functions: Ledger<FunctionCounts>,
    /// Samples of the clock.
    pub samples: u64,
    /// Callers of each function's heaviest sample in this tick, innermost first.
    pub callers: HashMap<Arc<str>, Vec<Arc<str>>>,
    unknown: Arc<str>,
}

impl Default for Accounts {
    fn default() -> Self {
        Self {
            names: Cgroups::default(),
            cgroups: Ledger::default(),
            functions: Ledger::default(),
            samples: 0,
            callers: HashMap::new(),
            unknown: UNKNOWN.into(),
        }
    }
}

impl Accounts {
    /// What a cgroup counted since the last settle, to be added to. Ids without a name share one
    /// account, and counts that a full map could not file go to `other`.
    pub fn cgroup(&mut self, id: u64) -> &mut CgroupCounts {
        if id == OVERFLOW_CGROUP {
            return self.cgroups.other_mut();
        }
        let name = self.names.name(id).unwrap_or(&self.unknown);
        if self.names.is_gone(id) {
            // A late count must not keep the name's series for ever.
            self.cgroups.close(name);
        }
        self.cgroups.entry(name)
    }

    /// A cgroup was made.
    pub fn made(&mut self, id: u64, path: String) {
        let name = self.names.made(id, path);
        self.cgroups.open(&name);
    }

    /// A cgroup was removed in `tick`.
    pub fn removed(&mut self, id: u64, tick: u64) {
        if let Some(name) = self.names.removed(id, tick) {
            self.cgroups.close(&name);
        }
    }

    /// Takes a complete list of the cgroups there are.
    pub fn replace(&mut self, found: Vec<(u64, String)>, tick: u64) {
        let gone = self.names.replace(found, tick);
        gone.iter().for_each(|name| self.cgroups.close(name));
    }

    /// Files what this tick added, under these bounds.
    pub fn settle(&mut self, tick: u64, max_cgroups: usize, max_functions: usize) {
        self.cgroups.settle(max_cgroups);
        self.functions.settle(max_functions);
        self.names.forget(tick);
    }

    /// The cgroups for a view.
    #[must_use]
    pub fn cgroup_rows(&self) -> Vec<CgroupRow> {
        rows(&self.cgroups, |cgroup, counts| CgroupRow {
            cgroup,
            counts: counts.clone(),
        })
    }

    /// The functions for a view; their callers are handed over.
    pub fn function_rows(&mut self) -> Vec<FunctionRow> {
        let mut callers = std::mem::take(&mut self.callers);
        rows(&self.functions, |function, counts| {
            let callers = callers.remove(&function).unwrap_or_default();
            FunctionRow {
                function,
                cpu_ns: counts.cpu_ns,
                callers,
            }
        })
    }

    /// How many series the bounds let through and kept back.
    #[must_use]
    pub fn folded(&self) -> [FoldedRow; 2] {
        let row = |family, series: usize, folded| FoldedRow {
            family,
            series: series as u64,
            folded,
        };
        [
            row(
                "cgroup",
                self.cgroups.ranked().len(),
                self.cgroups.displaced(),
            ),
            row(
                "function",
                self.functions.ranked().len(),
                self.functions.displaced(),
            ),
        ]
    }
}

/// Members by rank, then the special rows that hold anything.
fn rows<V: Total + PartialEq, R>(
    ledger: &Ledger<V>,
    mut row: impl FnMut(Arc<str>, &V) -> R,
) -> Vec<R> {
    let (special, named): (Vec<_>, Vec<_>) = ledger
        .ranked()
        .into_iter()
        .partition(|(name, _)| &***name == UNKNOWN);
    let mut rows: Vec<R> = named
        .into_iter()
        .map(|(name, value)| row(name.clone(), value))
        .collect();
    let folded = [(OTHER, ledger.other()), (RETIRED, ledger.retired())];
    rows.extend(
        special
            .into_iter()
            .map(|(name, value)| row(name.clone(), value)),
    );
    for (name, value) in folded {
        if *value != V::default() {
            rows.push(row(name.into(), value));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(accounts: &Accounts) -> Vec<(String, u64)> {
        let rows = accounts.cgroup_rows();
        rows.iter()
            .map(|row| (row.cgroup.to_string(), row.counts.cpu_ns[0]))
            .collect()
    }

    #[test]
    fn ids_without_a_name_share_one_account() {
        let mut accounts = Accounts::default();
        accounts.made(7, "/a".into());
        for id in [7, 8, 9] {
            accounts.cgroup(id).cpu_ns[0] += 10;
        }
        accounts.settle(1, 10, 10);
        assert_eq!(
            shown(&accounts),
            [("/a".to_owned(), 10), ("unknown".to_owned(), 20)]
        );
    }

    #[test]
    fn what_a_full_map_could_not_file_is_other() {
        let mut accounts = Accounts::default();
        accounts.cgroup(OVERFLOW_CGROUP).cpu_ns[0] += 10;
        accounts.settle(1, 10, 10);
        assert_eq!(shown(&accounts), [("other".to_owned(), 10)]);
    }

    #[test]
    fn a_cgroup_that_is_made_again_under_its_old_name_goes_on_counting() {
        let mut accounts = Accounts::default();
        accounts.made(7, "/a".into());
        accounts.cgroup(7).cpu_ns[0] += 10;
        accounts.settle(1, 10, 10);
        accounts.removed(7, 2);
        accounts.made(8, "/a".into());
        accounts.cgroup(8).cpu_ns[0] += 5;
        accounts.settle(2, 10, 10);
        accounts.settle(3, 10, 10);
        assert_eq!(shown(&accounts), [("/a".to_owned(), 15)]);
    }

    #[test]
    fn a_count_that_comes_after_its_cgroup_retired_is_published_and_retires_too() {
        let mut accounts = Accounts::default();
        accounts.made(7, "/a".into());
        accounts.cgroup(7).cpu_ns[0] += 10;
        accounts.removed(7, 1);
        (1..=2).for_each(|tick| accounts.settle(tick, 10, 10));
        accounts.cgroup(7).cpu_ns[0] += 5;
        accounts.settle(3, 10, 10);
        assert_eq!(
            shown(&accounts),
            [("/a".to_owned(), 5), ("retired".to_owned(), 10)]
        );
        accounts.settle(4, 10, 10);
        assert_eq!(shown(&accounts), [("retired".to_owned(), 15)]);
    }

    #[test]
    fn a_removed_cgroup_retires_after_its_last_view() {
        let mut accounts = Accounts::default();
        accounts.made(7, "/a".into());
        accounts.cgroup(7).cpu_ns[0] += 10;
        accounts.removed(7, 1);
        accounts.settle(1, 10, 10);
        assert_eq!(shown(&accounts), [("/a".to_owned(), 10)]);
        accounts.settle(2, 10, 10);
        assert_eq!(shown(&accounts), [("retired".to_owned(), 10)]);
    }
}
