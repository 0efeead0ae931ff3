//! Where is CPU time spent: by cgroup, and by kernel function.
//!
//! Input: samples of the software clock, each worth its own period.

use std::{collections::HashMap, sync::Arc};

use tlbd_common::{Mode, Role, SampleCount};

use super::{Collector, Context, Entry, Tick};
use crate::{
    export::metric::{Kind, Metric},
    model::{
        accounts::{Accounts, FunctionCounts},
        symbols::Symbols,
        view::{EventRow, UNKNOWN, View},
    },
    source::Unavailable,
};

/// Callers that are shown of a function.
const CALLERS: usize = 6;

pub(super) const ENTRY: Entry = Entry {
    name: "cpu_time",
    answers: "CPU time by cgroup and kernel function",
    metrics: &[&CGROUP_CPU, &FUNCTION_CPU, &SAMPLES, &PERIOD],
    open,
};

const CGROUP_CPU: Metric = Metric {
    name: "tlbd_cgroup_cpu_seconds_total",
    kind: Kind::Counter,
    help: "CPU time of a cgroup's own tasks by privilege level, sampled by the software clock",
    labels: &["cgroup", "mode"],
    read: |view, series| {
        for row in &view.cgroups {
            for (mode, ns) in Mode::ALL
                .iter()
                .zip(row.counts.cpu_ns)
                .filter(|(_, ns)| *ns > 0)
            {
                series.measure(&[&row.cgroup, mode.name()], seconds(ns));
            }
        }
    },
};

const FUNCTION_CPU: Metric = Metric {
    name: "tlbd_function_cpu_seconds_total",
    kind: Kind::Counter,
    help: "CPU time in a kernel function itself, callees left out, sampled by the software clock",
    labels: &["function"],
    read: |view, series| {
        for row in view.functions.iter().filter(|row| row.cpu_ns > 0) {
            series.measure(&[&row.function], seconds(row.cpu_ns));
        }
    },
};

const SAMPLES: Metric = Metric {
    name: "tlbd_samples_total",
    kind: Kind::Counter,
    help: "Samples taken of an event; the relative error of a share is at most about 1/sqrt(its samples)",
    labels: &["event"],
    read: |view, series| {
        view.events
            .iter()
            .for_each(|row| series.count(&[row.event], row.samples));
    },
};

const PERIOD: Metric = Metric {
    name: "tlbd_sampling_period",
    kind: Kind::Gauge,
    help: "What one sample of an event stands for, in the event's own unit (cpu_clock: nanoseconds)",
    labels: &["event"],
    read: |view, series| {
        view.events
            .iter()
            .for_each(|row| series.count(&[row.event], row.period));
    },
};

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn open(context: &Context) -> Result<Box<dyn Collector>, Unavailable> {
    context.hooks.sampler.clone()?;
    Ok(Box::new(CpuTime))
}

struct CpuTime;

/// What one tick sampled in one function.
#[derive(Default)]
struct InFunction {
    cpu_ns: u64,
    heaviest: SampleCount,
    stack: Option<i64>,
}

impl Collector for CpuTime {
    fn collect(
        &mut self,
        tick: &Tick<'_>,
        accounts: &mut Accounts,
        view: &mut View,
    ) -> anyhow::Result<()> {
        let drained = tick.drained()?;
        let symbols = tick.context.symbols.as_ref().ok();
        let mut functions: HashMap<&str, InFunction> = HashMap::new();
        for (key, count) in &drained.samples {
            let (Some(Role::Clock), Some(mode)) =
                (Role::from_index(key.role), Mode::from_index(key.mode))
            else {
                continue;
            };
            accounts.samples = accounts.samples.saturating_add(count.samples);
            if let Some(ns) = accounts.cgroup(key.cgroup).cpu_ns.get_mut(mode as usize) {
                *ns = ns.saturating_add(count.weight);
            }
            if let (Mode::Kernel, Some(symbols)) = (mode, symbols) {
                let name = symbols.resolve(key.address).unwrap_or(UNKNOWN);
                let function = functions.entry(name).or_default();
                function.cpu_ns = function.cpu_ns.saturating_add(count.weight);
                if count.weight > function.heaviest.weight {
                    (function.heaviest, function.stack) = (*count, Some(key.stack));
                }
            }
        }
        for (name, function) in functions {
            let name: Arc<str> = name.into();
            *accounts.functions.entry(&name) += FunctionCounts {
                cpu_ns: function.cpu_ns,
            };
            let frames = function.stack.and_then(|stack| drained.stacks.get(&stack));
            if let (Some(frames), Some(symbols)) = (frames, symbols) {
                accounts.callers.insert(name, callers(frames, symbols));
            }
        }
        view.events.push(EventRow {
            event: Role::Clock.name(),
            samples: accounts.samples,
            period: tick.context.sampling.0,
        });
        // The time by cgroup is whole without symbols; only the functions are missing.
        if let Err(reason) = &tick.context.symbols {
            anyhow::bail!("no kernel functions: {reason} ({})", reason.mend());
        }
        Ok(())
    }
}

/// The names of the frames outside the sampled one.
fn callers(frames: &[u64], symbols: &Symbols) -> Vec<Arc<str>> {
    let outside = frames.iter().skip(1).take(CALLERS);
    outside
        .map(|frame| symbols.resolve(*frame).unwrap_or(UNKNOWN).into())
        .collect()
}
