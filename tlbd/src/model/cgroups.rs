//! Cgroup ids to names: births, deaths, and those that were never announced.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// Ticks for which the name of a removed cgroup is kept: its last tasks may still be exiting.
const KEPT: u64 = 12;

/// Ids that are remembered as nameless; beyond this they are looked for again.
const NAMELESS_MAX: usize = 10_000;

/// The cgroups of one hierarchy.
#[derive(Debug, Default)]
pub struct Cgroups {
    live: HashMap<u64, Arc<str>>,
    removed: HashMap<u64, (Arc<str>, u64)>,
    nameless: HashSet<u64>,
}

impl Cgroups {
    /// A cgroup was made. Says its name.
    pub fn made(&mut self, id: u64, path: String) -> Arc<str> {
        let path: Arc<str> = path.into();
        self.nameless.remove(&id);
        self.live.insert(id, path.clone());
        path
    }

    /// A cgroup was removed during `tick`. Says its name, if it was known.
    pub fn removed(&mut self, id: u64, tick: u64) -> Option<Arc<str>> {
        let path = self.live.remove(&id)?;
        self.removed.insert(id, (path.clone(), tick));
        Some(path)
    }

    /// Takes a complete list of the cgroups there are. Says which names are gone.
    pub fn replace(&mut self, found: Vec<(u64, String)>, tick: u64) -> Vec<Arc<str>> {
        let ids: HashSet<u64> = found.iter().map(|(id, _)| *id).collect();
        let gone: Vec<u64> = self
            .live
            .keys()
            .copied()
            .filter(|id| !ids.contains(id))
            .collect();
        let gone = gone
            .into_iter()
            .filter_map(|id| self.removed(id, tick))
            .collect();
        for (id, path) in found {
            self.live.entry(id).or_insert_with(|| path.into());
        }
        gone
    }

    /// The name of an id, also of one that was removed a short while ago.
    #[must_use]
    pub fn name(&self, id: u64) -> Option<&Arc<str>> {
        self.live
            .get(&id)
            .or_else(|| self.removed.get(&id).map(|(path, _)| path))
    }

    /// Whether this id's cgroup was removed and no other was made under its name since. Few ids
    /// are asked about: those of tasks that outlive their cgroup.
    #[must_use]
    pub fn is_gone(&self, id: u64) -> bool {
        let Some((path, _)) = self.removed.get(&id) else {
            return false;
        };
        !self.live.values().any(|live| live == path)
    }

    /// Whether it is worth looking for the name of this id: it has none, and was not looked for.
    #[must_use]
    pub fn is_new(&self, id: u64) -> bool {
        self.name(id).is_none() && !self.nameless.contains(&id)
    }

    /// Says that no name was found for this id.
    pub fn give_up(&mut self, id: u64) {
        if self.nameless.len() >= NAMELESS_MAX {
            self.nameless.clear();
        }
        self.nameless.insert(id);
    }

    /// Forgets the cgroups that were removed long before `tick`.
    pub fn forget(&mut self, tick: u64) {
        self.removed
            .retain(|_, (_, removed)| tick.saturating_sub(*removed) < KEPT);
    }

    /// How many cgroups there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether no cgroup is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_cgroup_keeps_its_name_for_a_while() {
        let mut cgroups = Cgroups::default();
        cgroups.made(7, "/a".into());
        assert_eq!(cgroups.removed(7, 1).as_deref(), Some("/a"));
        assert_eq!(cgroups.name(7).map(|name| &**name), Some("/a"));
        cgroups.forget(1 + KEPT);
        assert_eq!(cgroups.name(7), None);
    }

    #[test]
    fn a_scan_finds_the_new_and_says_which_are_gone() {
        let mut cgroups = Cgroups::default();
        cgroups.made(7, "/a".into());
        cgroups.made(8, "/b".into());
        let gone = cgroups.replace(vec![(8, "/b".into()), (9, "/c".into())], 1);
        assert_eq!(gone.iter().map(|name| &**name).collect::<Vec<_>>(), ["/a"]);
        assert_eq!(cgroups.name(9).map(|name| &**name), Some("/c"));
        assert_eq!(cgroups.len(), 2);
    }

    #[test]
    fn an_id_without_a_name_is_looked_for_once() {
        let mut cgroups = Cgroups::default();
        assert!(cgroups.is_new(7));
        cgroups.give_up(7);
        assert!(!cgroups.is_new(7));
        cgroups.made(7, "/a".into());
        assert!(cgroups.name(7).is_some());
    }
}
