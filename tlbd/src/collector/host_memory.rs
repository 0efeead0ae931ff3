//! How much of the host's memory is huge, what the huge-page machinery did, and its settings.

use procfs::{FromRead as _, Meminfo, VmStat};

use super::{Collector, Context, Entry, Tick};
use crate::{
    export::metric::{Kind, Metric},
    model::{
        accounts::Accounts,
        plausible::is_sizes,
        thp,
        view::{HostMemory, View},
    },
    source::{Unavailable, root::Root},
};

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) const ENTRY: Entry = Entry {
    name: "host_memory",
    answers: "the host's memory, huge pages and huge-page settings",
    metrics: &[&BYTES, &THP_EVENTS, &THP_SETTING],
    open,
};

const BYTES: Metric = Metric {
    name: "tlbd_host_memory_bytes",
    kind: Kind::Gauge,
    help: "The host's memory by kind, from /proc/meminfo; the _huge kinds are parts of their kind",
    labels: &["kind"],
    read: |view, series| {
        for (kind, bytes) in view.memory.iter().flat_map(|memory| &memory.bytes) {
            series.count(&[kind], *bytes);
        }
    },
};

const THP_EVENTS: Metric = Metric {
    name: "tlbd_thp_events_total",
    kind: Kind::Counter,
    help: "Transparent huge page events since boot: the thp_ counters of /proc/vmstat",
    labels: &["event"],
    read: |view, series| {
        for (event, count) in view.memory.iter().flat_map(|memory| &memory.thp_events) {
            series.count(&[event], *count);
        }
    },
};

const THP_SETTING: Metric = Metric {
    name: "tlbd_thp_setting",
    kind: Kind::Gauge,
    help: "1 for the value that a file in /sys/kernel/mm/transparent_hugepage has now",
    labels: &["setting", "value"],
    read: |view, series| {
        for (setting, value) in view.memory.iter().flat_map(|memory| &memory.thp_settings) {
            series.count(&[setting, value], 1);
        }
    },
};

fn open(_: &Context) -> Result<Box<dyn Collector>, Unavailable> {
    Ok(Box::new(Host))
}

struct Host;

impl Collector for Host {
    fn collect(
        &mut self,
        tick: &Tick<'_>,
        _: &mut Accounts,
        view: &mut View,
    ) -> anyhow::Result<()> {
        let root = &tick.context.root;
        let meminfo = root.read("/proc/meminfo")?;
        anyhow::ensure!(
            is_sizes(&meminfo),
            "/proc/meminfo: not in the kernel's format"
        );
        let meminfo = Meminfo::from_read(&meminfo[..])?;
        view.memory = Some(HostMemory {
            bytes: bytes(&meminfo),
            thp_events: thp_events(root)?,
            thp_settings: thp_settings(root),
        });
        Ok(())
    }
}

fn bytes(meminfo: &Meminfo) -> Vec<(&'static str, u64)> {
    [
        ("total", Some(meminfo.mem_total)),
        ("available", meminfo.mem_available),
        ("anon", meminfo.anon_pages),
        ("anon_huge", meminfo.anon_hugepages),
        ("shmem", meminfo.shmem),
        ("shmem_huge", meminfo.shmem_hugepages),
        ("file_huge", meminfo.file_huge_pages),
        ("page_tables", meminfo.page_tables),
        ("secondary_page_tables", meminfo.secondary_page_tables),
        ("hugetlb", meminfo.hugetlb),
    ]
    .into_iter()
    .filter_map(|(kind, bytes)| Some((kind, bytes?)))
    .collect()
}

fn thp_events(root: &Root) -> anyhow::Result<Vec<(String, u64)>> {
    let VmStat(counters) = VmStat::from_read(&root.read("/proc/vmstat")?[..])?;
    let mut events: Vec<_> = counters
        .into_iter()
        .filter_map(|(name, count)| {
            Some((
                name.strip_prefix("thp_")?.to_owned(),
                u64::try_from(count).ok()?,
            ))
        })
        .collect();
    events.sort();
    Ok(events)
}

/// The settings that there are; a kernel without transparent huge pages has none.
fn thp_settings(root: &Root) -> Vec<(String, String)> {
    [
        "enabled",
        "defrag",
        "shmem_enabled",
        "use_zero_page",
        "khugepaged/defrag",
    ]
    .into_iter()
    .filter_map(|setting| {
        let text = root.read_text(format!("{THP}/{setting}")).ok()?;
        Some((setting.replace('/', "_"), thp::chosen(&text)?.to_owned()))
    })
    .collect()
}
