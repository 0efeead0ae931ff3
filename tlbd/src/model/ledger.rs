//! Totals by name under a bound: who gets a series of its own, and where the rest is counted.
//!
//! The sum over a ledger (members, `other`, `retired`) always equals all that was ever added, and
//! no member's total ever goes down while it is published.

use std::{collections::HashMap, ops::AddAssign, sync::Arc};

/// How much of a member's recent cost is left after each tick: about 20 ticks are remembered.
const MEMORY: f64 = 0.95;
/// A newcomer displaces a member only when it costs this much more, so that two of about the
/// same cost do not take turns.
const HYSTERESIS: f64 = 1.25;
/// A recent cost below this is forgotten.
const FORGOTTEN: f64 = 1e-3;

/// A total that can be ranked.
pub trait Total: Clone + Default + AddAssign {
    /// What ranks a member: the more, the sooner it has a series of its own.
    fn cost(&self) -> f64;
}

/// Totals by name.
#[derive(Debug)]
pub struct Ledger<V> {
    members: HashMap<Arc<str>, V>,
    fresh: HashMap<Arc<str>, V>,
    recent: HashMap<Arc<str>, f64>,
    /// Names that are gone, and whether they have been published since.
    closing: HashMap<Arc<str>, bool>,
    other: V,
    retired: V,
    displaced: u64,
}

impl<V: Total> Default for Ledger<V> {
    fn default() -> Self {
        Self {
            members: HashMap::new(),
            fresh: HashMap::new(),
            recent: HashMap::new(),
            closing: HashMap::new(),
            other: V::default(),
            retired: V::default(),
            displaced: 0,
        }
    }
}

impl<V: Total> Ledger<V> {
    /// What was counted for `name` since the last [`settle`](Self::settle), to be added to.
    pub fn entry(&mut self, name: &Arc<str>) -> &mut V {
        self.fresh.entry(name.clone()).or_default()
    }

    /// `other` itself, to be added to: for counts whose owner was not recorded.
    pub fn other_mut(&mut self) -> &mut V {
        &mut self.other
    }

    /// Says that `name` is gone. It is published once more with its last counts, and joins
    /// `retired` at the first settle after that which brings nothing new for it.
    pub fn close(&mut self, name: &Arc<str>) {
        self.closing.entry(name.clone()).or_insert(false);
    }

    /// Says that `name` is there (again).
    pub fn open(&mut self, name: &Arc<str>) {
        self.closing.remove(name);
    }

    /// Files all that was added since the last settle, with at most `bound` members.
    pub fn settle(&mut self, bound: usize) {
        self.retire_closed();
        self.remember();
        self.elect(bound);
        for (name, value) in self.fresh.drain() {
            match self.members.get_mut(&name) {
                Some(total) => *total += value,
                None => self.other += value,
            }
        }
    }

    /// Members with their totals, most expensive first.
    #[must_use]
    pub fn ranked(&self) -> Vec<(&Arc<str>, &V)> {
        let mut ranked: Vec<_> = self.members.iter().collect();
        ranked.sort_by(|(a, x), (b, y)| y.cost().total_cmp(&x.cost()).then_with(|| a.cmp(b)));
        ranked
    }

    /// The total of live names that are no members.
    #[must_use]
    pub fn other(&self) -> &V {
        &self.other
    }

    /// The final totals of names that are gone or were displaced.
    #[must_use]
    pub fn retired(&self) -> &V {
        &self.retired
    }

    /// How often a member was displaced by another.
    #[must_use]
    pub fn displaced(&self) -> u64 {
        self.displaced
    }

    fn retire_closed(&mut self) {
        let mut gone = Vec::new();
        for (name, published) in &mut self.closing {
            if *published && !self.fresh.contains_key(name) {
                gone.push(name.clone());
            }
            *published = true;
        }
        for name in gone {
            self.closing.remove(&name);
            self.recent.remove(&name);
            self.retire(&name);
        }
    }

    fn retire(&mut self, name: &Arc<str>) {
        if let Some(total) = self.members.remove(name) {
            self.retired += total;
        }
    }

    fn remember(&mut self) {
        for cost in self.recent.values_mut() {
            *cost *= MEMORY;
        }
        for (name, value) in &self.fresh {
            *self.recent.entry(name.clone()).or_default() += value.cost();
        }
        self.recent.retain(|_, cost| *cost > FORGOTTEN);
    }

    fn recent(&self, name: &Arc<str>) -> f64 {
        self.recent.get(name).copied().unwrap_or_default()
    }

    /// Admits newcomers, most expensive first, and displaces members that cost clearly less.
    fn elect(&mut self, bound: usize) {
        let mut newcomers: Vec<_> = (self.fresh.keys())
            .filter(|name| !self.members.contains_key(*name))
            .map(|name| (self.recent(name), name.clone()))
            .collect();
        let mut members: Vec<_> = self
            .members
            .keys()
            .map(|name| (self.recent(name), name.clone()))
            .collect();
        // Cheapest newcomer and dearest member first, so that `pop` gives the ones to compare.
        newcomers.sort_by(|(a, x), (b, y)| a.total_cmp(b).then_with(|| y.cmp(x)));
        members.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
        while members.len() > bound {
            self.displace(members.pop());
        }
        while let Some((cost, name)) = newcomers.pop() {
            if self.members.len() >= bound {
                match members.last() {
                    Some((least, _)) if cost > least * HYSTERESIS => self.displace(members.pop()),
                    _ => break,
                }
            }
            self.members.insert(name, V::default());
        }
    }

    fn displace(&mut self, member: Option<(f64, Arc<str>)>) {
        if let Some((_, name)) = member {
            self.retire(&name);
            self.displaced += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Cost(u64);

    impl AddAssign for Cost {
        fn add_assign(&mut self, more: Self) {
            self.0 += more.0;
        }
    }

    impl Total for Cost {
        fn cost(&self) -> f64 {
            self.0 as f64
        }
    }

    fn name(text: &str) -> Arc<str> {
        text.into()
    }

    fn sum(ledger: &Ledger<Cost>) -> u64 {
        ledger.members.values().map(|cost| cost.0).sum::<u64>() + ledger.other.0 + ledger.retired.0
    }

    fn shown(ledger: &Ledger<Cost>) -> Vec<(&str, u64)> {
        ledger
            .ranked()
            .into_iter()
            .map(|(name, cost)| (&**name, cost.0))
            .collect()
    }

    #[test]
    fn the_dearest_have_series_and_the_rest_is_other() {
        let mut ledger = Ledger::<Cost>::default();
        for (who, cost) in [("a", 5), ("b", 9), ("c", 1)] {
            ledger.entry(&name(who)).0 += cost;
        }
        ledger.settle(2);
        assert_eq!(shown(&ledger), [("b", 9), ("a", 5)]);
        assert_eq!(ledger.other().0, 1);
    }

    #[test]
    fn a_closed_name_is_published_once_with_its_last_counts_and_then_retires() {
        let mut ledger = Ledger::<Cost>::default();
        ledger.entry(&name("a")).0 += 5;
        ledger.close(&name("a"));
        ledger.settle(9);
        assert_eq!(shown(&ledger), [("a", 5)]);
        ledger.settle(9);
        assert_eq!(shown(&ledger), []);
        assert_eq!(ledger.retired().0, 5);
    }

    #[test]
    fn a_name_that_comes_back_keeps_its_series() {
        let mut ledger = Ledger::<Cost>::default();
        ledger.entry(&name("a")).0 += 5;
        ledger.close(&name("a"));
        ledger.settle(9);
        ledger.open(&name("a"));
        ledger.settle(9);
        assert_eq!(shown(&ledger), [("a", 5)]);
    }

    #[test]
    fn late_counts_of_a_closed_name_are_published_under_its_name() {
        let mut ledger = Ledger::<Cost>::default();
        ledger.entry(&name("a")).0 += 5;
        ledger.close(&name("a"));
        ledger.settle(9);
        ledger.entry(&name("a")).0 += 1;
        ledger.settle(9);
        assert_eq!(shown(&ledger), [("a", 6)]);
        ledger.settle(9);
        assert_eq!((shown(&ledger), ledger.retired().0), (vec![], 6));
    }

    #[test]
    fn names_of_about_the_same_cost_do_not_take_turns() {
        let mut ledger = Ledger::<Cost>::default();
        for tick in 0..50 {
            ledger.entry(&name("a")).0 += 100 + tick % 7;
            ledger.entry(&name("b")).0 += 100 + (tick + 3) % 7;
            ledger.settle(1);
        }
        assert_eq!(ledger.displaced(), 0);
    }

    #[test]
    fn a_name_that_becomes_clearly_dearer_displaces_the_cheapest() {
        let mut ledger = Ledger::<Cost>::default();
        ledger.entry(&name("a")).0 += 10;
        ledger.settle(1);
        ledger.entry(&name("b")).0 += 100;
        ledger.settle(1);
        assert_eq!(shown(&ledger), [("b", 100)]);
        assert_eq!(ledger.retired().0, 10);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_published_total_goes_down(
            steps in proptest::collection::vec((0..6_u8, 0..50_u64, 0..4_u8, 0..4_usize), 1..200)
        ) {
            let mut ledger = Ledger::<Cost>::default();
            let (mut added, mut before) = (0, HashMap::new());
            for (who, cost, action, bound) in steps {
                let who = name(&who.to_string());
                match action {
                    0 => ledger.close(&who),
                    1 => ledger.open(&who),
                    _ => {
                        ledger.entry(&who).0 += cost;
                        added += cost;
                    }
                }
                ledger.settle(bound);
                prop_assert_eq!(sum(&ledger), added);
                prop_assert!(ledger.members.len() <= bound);
                let now: HashMap<_, _> = ledger.members.iter().map(|(n, c)| (n.clone(), c.0)).collect();
                let fell = now.iter().any(|(n, c)| before.get(n).is_some_and(|old| c < old));
                prop_assert!(!fell);
                before = now;
            }
        }
    }
}
