//! One tick: drain the kernel, run every collector, file the accounts, build the view.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Instant, SystemTime},
};

use super::{Collector, Context, Entry, REGISTRY, Tick};
use crate::{
    config::Config,
    model::{
        accounts::Accounts,
        symbols::{self, Aliases, Symbols},
        view::{CollectorRow, LossRow, View},
    },
    source::{Drained, Hooks, KernelEvents, Unavailable, root::Root},
};

/// What is said of a collector that panicked.
const PANICKED: &str = "it panicked; this is a bug in tlbd, please report it";

/// A collector, or why it does not run.
type State = Result<Box<dyn Collector>, Unavailable>;

/// Owns the kernel's events, the collectors and the accounts.
pub struct Engine {
    context: Context,
    events: Option<Box<dyn KernelEvents>>,
    collectors: Vec<(&'static Entry, State)>,
    accounts: Accounts,
    tick: u64,
}

impl Engine {
    /// Starts every collector that can start. `events` may be unavailable for a reason, which
    /// then holds for each collector that needs them.
    #[must_use]
    pub fn open(
        config: Config,
        root: Root,
        events: Result<Box<dyn KernelEvents>, Unavailable>,
    ) -> Self {
        Self::start(config, root, events, Accounts::default(), 0)
    }

    /// As [`open`](Self::open), with what was counted until `tick`.
    fn start(
        config: Config,
        root: Root,
        events: Result<Box<dyn KernelEvents>, Unavailable>,
        accounts: Accounts,
        tick: u64,
    ) -> Self {
        let hooks = match &events {
            Ok(events) => events.hooks().clone(),
            Err(reason) => Hooks::none(reason),
        };
        let events = events.ok();
        let context = Context {
            symbols: symbols(&root),
            hooks,
            flush_reasons: events
                .as_ref()
                .map(|e| e.flush_reasons().to_vec())
                .unwrap_or_default(),
            sampling: events.as_ref().map(|e| e.sampling()).unwrap_or_default(),
            config,
            root,
        };
        let collectors = REGISTRY
            .iter()
            .map(|entry| (entry, open(entry, &context)))
            .collect();
        let mut engine = Self {
            context,
            events,
            collectors,
            accounts,
            tick,
        };
        engine.scan();
        engine
    }

    /// Each collector with the reason why it does not run, if it does not.
    pub fn states(&self) -> impl Iterator<Item = (&'static Entry, Option<&Unavailable>)> {
        self.collectors
            .iter()
            .map(|(entry, collector)| (*entry, collector.as_ref().err()))
    }

    /// What the collectors started with.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Goes on under another configuration; totals of cgroups and functions stay. The kernel's
    /// events are opened anew only if they are to be others, since meanwhile nothing is counted.
    #[must_use]
    pub fn reopen(
        mut self,
        config: Config,
        open: impl FnOnce(&Config) -> Result<Box<dyn KernelEvents>, Unavailable>,
    ) -> Self {
        let settings = |config: &Config| (config.sample_hz, config.tick_seconds, config.bpf_stats);
        let others = settings(&self.context.config) != settings(&config);
        if others {
            // What the old programs counted since the last tick is filed before they go.
            let _ = self.tick();
        }
        let Self {
            context,
            events,
            collectors,
            accounts,
            tick,
        } = self;
        drop(collectors);
        let events = match events.filter(|_| !others) {
            Some(events) => Ok(events),
            None => open(&config),
        };
        Self::start(config, context.root, events, accounts, tick)
    }

    /// Builds the view of this instant.
    pub fn tick(&mut self) -> View {
        self.tick += 1;
        let start = Instant::now();
        let drained = self.drain();
        let drain_seconds = start.elapsed().as_secs_f64();
        let mut view = View::empty(self.tick, SystemTime::now());
        view.collectors.push(CollectorRow {
            collector: "drain",
            up: drained.is_ok(),
            reason: drained
                .as_ref()
                .err()
                .map(|error| format!("{error:#}"))
                .unwrap_or_default(),
            seconds: drain_seconds,
        });
        let drained = drained.ok();
        if let Some(drained) = &drained {
            self.name(drained);
            view.losses = losses(drained);
        }
        let programs = self
            .events
            .as_ref()
            .map(|events| events.programs())
            .unwrap_or_default();
        let tick = Tick {
            now: start,
            drained: drained.as_ref(),
            programs: &programs,
            context: &self.context,
        };
        for (entry, collector) in &mut self.collectors {
            let row = run(entry, collector, &tick, &mut self.accounts, &mut view);
            view.collectors.push(row);
        }
        let config = &self.context.config;
        self.accounts
            .settle(self.tick, config.max_cgroups, config.max_functions);
        view.cgroups = self.accounts.cgroup_rows();
        view.functions = self.accounts.function_rows();
        view.folded.splice(0..0, self.accounts.folded());
        view
    }

    fn drain(&mut self) -> anyhow::Result<Drained> {
        match &mut self.events {
            Some(events) => events.drain(),
            None => Ok(Drained::default()),
        }
    }

    /// Brings the names up to date before counts are filed under them.
    fn name(&mut self, drained: &Drained) {
        // Births first: a count may belong to a cgroup that was made and removed in one tick.
        for change in &drained.changes {
            if let Some(path) = &change.made {
                self.accounts.made(change.id, path.clone());
            }
        }
        let ids = drained.samples.iter().map(|(key, _)| key.cgroup);
        let ids = ids.chain(drained.faults.iter().map(|(key, _)| key.cgroup));
        let ids = ids.chain(drained.flushes.iter().map(|(key, _)| key.cgroup));
        let strangers: Vec<u64> = ids.filter(|id| self.accounts.names.is_new(*id)).collect();
        // Without announcements a scan is the only way to hear of deaths.
        if !strangers.is_empty() || self.context.hooks.cgroups.is_err() {
            self.scan();
            for id in strangers {
                if self.accounts.names.is_new(id) {
                    self.accounts.names.give_up(id);
                }
            }
        }
        for change in drained
            .changes
            .iter()
            .filter(|change| change.made.is_none())
        {
            self.accounts.removed(change.id, self.tick);
        }
    }

    fn scan(&mut self) {
        if let Some(Ok(found)) = self.events.as_ref().map(|events| events.cgroups()) {
            self.accounts.replace(found, self.tick);
        }
    }
}

fn open(entry: &Entry, context: &Context) -> State {
    if context.config.disable.iter().any(|name| name == entry.name) {
        return Err(Unavailable::Disabled);
    }
    // As in `run`: a parser's bug takes out one collector.
    catch_unwind(AssertUnwindSafe(|| (entry.open)(context))).unwrap_or_else(|_| {
        Err(Unavailable::Refused {
            tried: format!("starting {}", entry.name),
            error: PANICKED.into(),
        })
    })
}

/// Runs one collector. A panic in it (a parser's bug on an odd input) is a failure of that
/// collector, not the end of the daemon.
fn run(
    entry: &Entry,
    collector: &mut State,
    tick: &Tick<'_>,
    accounts: &mut Accounts,
    view: &mut View,
) -> CollectorRow {
    let start = Instant::now();
    let reason = match collector {
        Ok(collector) => {
            match catch_unwind(AssertUnwindSafe(|| collector.collect(tick, accounts, view))) {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{error:#}")),
                Err(_) => Some(PANICKED.to_owned()),
            }
        }
        Err(reason) => Some(format!("{reason} ({})", reason.mend())),
    };
    CollectorRow {
        collector: entry.name,
        up: reason.is_none(),
        reason: reason.unwrap_or_default(),
        seconds: start.elapsed().as_secs_f64(),
    }
}

fn losses(drained: &Drained) -> Vec<LossRow> {
    let row = |(loss, count): &(tlbd_common::Loss, u64)| {
        let (event, reason) = loss.labels();
        LossRow {
            event,
            reason,
            count: *count,
        }
    };
    drained.losses.iter().map(row).collect()
}

/// The kernel's symbols, or why there are none.
///
/// # Errors
/// If `/proc/kallsyms` cannot be read, or hides its addresses.
pub fn symbols(root: &Root) -> Result<Symbols, Unavailable> {
    const PATH: &str = "/proc/kallsyms";
    let unusable = |error: String| Unavailable::File {
        path: PATH.into(),
        error,
    };
    let aliases = Aliases::parse(Aliases::SHIPPED).map_err(|error| unusable(error.to_string()))?;
    let file = root.open(PATH).map_err(|error| {
        if root.is_live() {
            unusable(error.error.to_string())
        } else {
            Unavailable::NotCaptured
        }
    })?;
    Symbols::parse(file, &aliases).map_err(|error| match error {
        symbols::Error::Hidden => Unavailable::HiddenSymbols,
        error => unusable(error.to_string()),
    })
}
