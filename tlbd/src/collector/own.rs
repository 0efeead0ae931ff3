//! What tlbd itself costs: its CPU time, its memory, its BPF programs.

use procfs::{FromRead as _, process::StatM};

use super::{Collector, Context, Entry, Tick};
use crate::{
    export::metric::{Kind, Metric},
    model::{
        accounts::Accounts,
        view::{Own, View},
    },
    source::{Unavailable, clock, root::Root},
};

pub(super) const ENTRY: Entry = Entry {
    name: "own",
    answers: "what tlbd itself costs",
    metrics: &[&BUILD, &CPU, &RESIDENT, &RUN_SECONDS, &RUNS],
    open,
};

const BUILD: Metric = Metric {
    name: "tlbd_build_info",
    kind: Kind::Info,
    help: "The version of tlbd that runs",
    labels: &["version"],
    read: |_, series| series.count(&[env!("CARGO_PKG_VERSION")], 1),
};

const CPU: Metric = Metric {
    name: "tlbd_own_cpu_seconds_total",
    kind: Kind::Counter,
    help: "CPU time of the tlbd process, all threads; its BPF programs run on top of that",
    labels: &[],
    read: |view, series| series.measure(&[], view.own.cpu_seconds),
};

const RESIDENT: Metric = Metric {
    name: "tlbd_own_resident_bytes",
    kind: Kind::Gauge,
    help: "Resident memory of the tlbd process",
    labels: &[],
    read: |view, series| {
        if view.own.resident_bytes > 0 {
            series.count(&[], view.own.resident_bytes);
        }
    },
};

const RUN_SECONDS: Metric = Metric {
    name: "tlbd_bpf_run_seconds_total",
    kind: Kind::Counter,
    help: "Time that a BPF program of tlbd ran, by the kernel's run statistics (bpf_stats = true)",
    labels: &["program"],
    read: |view, series| {
        for row in &view.own.programs {
            series.measure(&[&row.program], row.run_ns as f64 / 1e9);
        }
    },
};

const RUNS: Metric = Metric {
    name: "tlbd_bpf_runs_total",
    kind: Kind::Counter,
    help: "Runs of a BPF program of tlbd, by the kernel's run statistics (bpf_stats = true)",
    labels: &["program"],
    read: |view, series| {
        for row in &view.own.programs {
            series.count(&[&row.program], row.runs);
        }
    },
};

fn open(_: &Context) -> Result<Box<dyn Collector>, Unavailable> {
    Ok(Box::new(OwnCost))
}

struct OwnCost;

impl Collector for OwnCost {
    fn collect(
        &mut self,
        tick: &Tick<'_>,
        _: &mut Accounts,
        view: &mut View,
    ) -> anyhow::Result<()> {
        // This process's own files, whatever host it shows.
        let statm = StatM::from_read(&Root::host().read("/proc/self/statm")?[..])?;
        view.own = Own {
            cpu_seconds: clock::process_cpu().as_secs_f64(),
            resident_bytes: statm.resident * procfs::page_size(),
            programs: tick.programs.to_vec(),
        };
        Ok(())
    }
}
