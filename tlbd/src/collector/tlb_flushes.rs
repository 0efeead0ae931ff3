//! Whose CPU time TLB flushes interrupt, and why they happen.

use std::sync::Arc;

use tlbd_common::FlushCount;

use super::{Collector, Context, Entry, Tick};
use crate::{
    export::metric::{Kind, Metric, Series},
    model::{
        accounts::Accounts,
        view::{FLUSH_REASONS, View},
    },
    source::Unavailable,
};

pub(super) const ENTRY: Entry = Entry {
    name: "tlb_flushes",
    answers: "TLB flushes by cgroup and reason",
    metrics: &[&FLUSHES, &FULL_FLUSHES, &FLUSHED_PAGES],
    open,
};

const FLUSHES: Metric = Metric {
    name: "tlbd_cgroup_tlb_flushes_total",
    kind: Kind::Counter,
    help: "TLB flushes on a CPU that ran a task of the cgroup, by the kernel's reason; remote_shootdown hits whom it interrupts, remote_ipi_send is by whom caused it",
    labels: &["cgroup", "reason"],
    read: |view, series| each(view, series, |count| count.flushes),
};

const FULL_FLUSHES: Metric = Metric {
    name: "tlbd_cgroup_tlb_full_flushes_total",
    kind: Kind::Counter,
    help: "TLB flushes, of those in tlbd_cgroup_tlb_flushes_total, that emptied the whole TLB",
    labels: &["cgroup", "reason"],
    read: |view, series| each(view, series, |count| count.full),
};

const FLUSHED_PAGES: Metric = Metric {
    name: "tlbd_cgroup_tlb_flushed_pages_total",
    kind: Kind::Counter,
    help: "Pages flushed one by one; flushes of the whole TLB are left out",
    labels: &["cgroup", "reason"],
    read: |view, series| each(view, series, |count| count.pages),
};

fn each(view: &View, series: &mut Series<'_>, value: fn(&FlushCount) -> u64) {
    for row in &view.cgroups {
        let counts = view.flush_reasons.iter().zip(&row.counts.flushes);
        for (reason, count) in counts
            .map(|(reason, count)| (reason, value(count)))
            .filter(|(_, count)| *count > 0)
        {
            series.count(&[&row.cgroup, reason], count);
        }
    }
}

fn open(context: &Context) -> Result<Box<dyn Collector>, Unavailable> {
    context.hooks.flushes.clone()?;
    Ok(Box::new(TlbFlushes {
        reasons: context.flush_reasons.clone().into(),
    }))
}

struct TlbFlushes {
    reasons: Arc<[String]>,
}

impl Collector for TlbFlushes {
    fn collect(
        &mut self,
        tick: &Tick<'_>,
        accounts: &mut Accounts,
        view: &mut View,
    ) -> anyhow::Result<()> {
        for (key, count) in &tick.drained()?.flushes {
            // A reason that is newer than tlbd shares the last slot.
            let slot = (key.reason as usize).min(FLUSH_REASONS - 1);
            if let Some(total) = accounts.cgroup(key.cgroup).flushes.get_mut(slot) {
                *total += *count;
            }
        }
        view.flush_reasons = self.reasons.clone();
        Ok(())
    }
}
