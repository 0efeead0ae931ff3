//! Who takes page faults, from which mode, for which access.

use tlbd_common::{Access, Mode};

use super::{Collector, Context, Entry, Tick};
use crate::{
    export::metric::{Kind, Metric},
    model::{accounts::Accounts, view::View},
    source::Unavailable,
};

pub(super) const ENTRY: Entry = Entry {
    name: "page_faults",
    answers: "page faults by cgroup, mode and access",
    metrics: &[&PAGE_FAULTS],
    open,
};

const PAGE_FAULTS: Metric = Metric {
    name: "tlbd_cgroup_page_faults_total",
    kind: Kind::Counter,
    help: "Page faults of a cgroup's own tasks by the mode and access that faulted, counted at the kernel's fault handler",
    labels: &["cgroup", "mode", "access"],
    read: |view, series| {
        for row in &view.cgroups {
            for (mode, faults) in Mode::ALL.iter().zip(row.counts.faults) {
                for (access, faults) in Access::ALL
                    .iter()
                    .zip(faults)
                    .filter(|(_, faults)| *faults > 0)
                {
                    series.count(&[&row.cgroup, mode.name(), access.name()], faults);
                }
            }
        }
    },
};

fn open(context: &Context) -> Result<Box<dyn Collector>, Unavailable> {
    context.hooks.faults.clone()?;
    Ok(Box::new(PageFaults))
}

struct PageFaults;

impl Collector for PageFaults {
    fn collect(
        &mut self,
        tick: &Tick<'_>,
        accounts: &mut Accounts,
        _: &mut View,
    ) -> anyhow::Result<()> {
        for (key, count) in &tick.drained()?.faults {
            let by_mode = accounts
                .cgroup(key.cgroup)
                .faults
                .get_mut(key.mode as usize);
            if let Some(total) =
                by_mode.and_then(|by_access| by_access.get_mut(key.access as usize))
            {
                *total = total.saturating_add(*count);
            }
        }
        Ok(())
    }
}
