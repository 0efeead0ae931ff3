//! How much memory each cgroup has, and how much of it is huge: its `memory.stat`.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use super::{Collector, Context, Entry, Tick};
use crate::{
    export::metric::{Kind, Metric, Series},
    model::{
        accounts::Accounts,
        memory_stat,
        view::{CgroupMemory, CgroupMemoryRow, FoldedRow, View},
    },
    source::{
        Unavailable,
        cgroupfs::{self, Mounts},
        root::Root,
    },
};

/// Time between readings as a multiple of what one takes: with thousands of cgroups they are
/// read less often, so that reading stays below 0.2 % of a CPU.
const REST: u32 = 500;
/// But not less often than this.
const REST_MAX: Duration = Duration::from_secs(300);

pub(super) const ENTRY: Entry = Entry {
    name: "cgroup_memory",
    answers: "memory and huge pages by cgroup",
    metrics: &[&MEMORY, &HUGE, &PAGE_TABLES, &AGE],
    open,
};

const MEMORY: Metric = Metric {
    name: "tlbd_cgroup_memory_bytes",
    kind: Kind::Gauge,
    help: "Memory of a cgroup and its descendants by kind, from memory.stat; file includes shmem",
    labels: &["cgroup", "kind"],
    read: |view, series| {
        each(
            view,
            series,
            &[
                ("anon", |m| m.anon),
                ("file", |m| m.file),
                ("shmem", |m| m.shmem),
            ],
        );
    },
};

const HUGE: Metric = Metric {
    name: "tlbd_cgroup_huge_bytes",
    kind: Kind::Gauge,
    help: "Memory of a cgroup and its descendants in transparent huge pages by kind, from memory.stat",
    labels: &["cgroup", "kind"],
    read: |view, series| {
        let kinds: [Kinds; 3] = [
            ("anon", |m| m.anon_huge),
            ("file", |m| m.file_huge),
            ("shmem", |m| m.shmem_huge),
        ];
        each(view, series, &kinds);
    },
};

const PAGE_TABLES: Metric = Metric {
    name: "tlbd_cgroup_pagetable_bytes",
    kind: Kind::Gauge,
    help: "Page tables of a cgroup and its descendants; secondary ones belong to hypervisors and IOMMUs",
    labels: &["cgroup", "kind"],
    read: |view, series| {
        let kinds: [Kinds; 2] = [
            ("primary", |m| m.page_tables),
            ("secondary", |m| m.secondary_page_tables),
        ];
        each(view, series, &kinds);
    },
};

const AGE: Metric = Metric {
    name: "tlbd_cgroup_memory_age_seconds",
    kind: Kind::Gauge,
    help: "Seconds between the reading of memory.stat and the view that shows it",
    labels: &[],
    read: |view, series| {
        if let Some(age) = view.cgroup_memory_age {
            series.measure(&[], age.as_secs_f64());
        }
    },
};

type Kinds = (&'static str, fn(&CgroupMemory) -> Option<u64>);

fn each(view: &View, series: &mut Series<'_>, kinds: &[Kinds]) {
    for row in &view.cgroup_memory {
        for (kind, value) in kinds {
            if let Some(bytes) = value(&row.memory) {
                series.count(&[&row.cgroup, kind], bytes);
            }
        }
    }
}

fn open(context: &Context) -> Result<Box<dyn Collector>, Unavailable> {
    let mounts = Mounts::find(&context.root).map_err(|error| Unavailable::File {
        path: error.path.display().to_string(),
        error: error.error.to_string(),
    })?;
    let (mount, _) = mounts.memory.ok_or_else(|| Unavailable::Kernel {
        lacks: "cgroup hierarchy with the memory controller".into(),
    })?;
    Ok(Box::new(Memory {
        mount,
        read: None,
        rows: Vec::new(),
        left_out: 0,
        folded: 0,
    }))
}

struct Memory {
    mount: PathBuf,
    /// When it was read last, and when it is to be read again.
    read: Option<(Instant, Instant)>,
    rows: Vec<CgroupMemoryRow>,
    /// Cgroups beyond the bound now, and those that came to be so since start.
    left_out: u64,
    folded: u64,
}

impl Collector for Memory {
    fn collect(
        &mut self,
        tick: &Tick<'_>,
        _: &mut Accounts,
        view: &mut View,
    ) -> anyhow::Result<()> {
        let now = tick.now;
        if self.read.is_none_or(|(_, due)| due <= now) {
            let start = Instant::now();
            self.rows = read(&tick.context.root, &self.mount)?;
            let bound = tick.context.config.max_cgroups;
            let left_out = self.rows.len().saturating_sub(bound) as u64;
            self.folded += left_out.saturating_sub(self.left_out);
            self.left_out = left_out;
            self.rows.truncate(bound);
            let rest = start.elapsed().saturating_mul(REST).min(REST_MAX);
            self.read = Some((now, now + rest));
        }
        view.cgroup_memory.clone_from(&self.rows);
        view.cgroup_memory_age = self
            .read
            .map(|(read, _)| now.saturating_duration_since(read));
        let series = self.rows.len() as u64;
        view.folded.push(FoldedRow {
            family: "cgroup_memory",
            series,
            folded: self.folded,
        });
        Ok(())
    }
}

/// Every cgroup's memory, biggest first. Cgroups that vanish meanwhile are left out; the root of
/// a v2 hierarchy has no `memory.stat` before 5.x and is left out then.
fn read(root: &Root, mount: &std::path::Path) -> anyhow::Result<Vec<CgroupMemoryRow>> {
    let mut rows: Vec<CgroupMemoryRow> = cgroupfs::walk(root, mount)?
        .into_iter()
        .filter_map(|cgroup| {
            let text = root.read_text(cgroup.folder.join("memory.stat")).ok()?;
            Some(CgroupMemoryRow {
                cgroup: cgroup.path.into(),
                memory: memory_stat::parse(&text),
            })
        })
        .collect();
    let size = |row: &CgroupMemoryRow| {
        row.memory
            .anon
            .unwrap_or(0)
            .saturating_add(row.memory.file.unwrap_or(0))
    };
    rows.sort_by(|a, b| size(b).cmp(&size(a)).then_with(|| a.cgroup.cmp(&b.cgroup)));
    // Two hostile names may print alike; a series may be there only once.
    let mut seen = std::collections::HashSet::new();
    rows.retain(|row| seen.insert(row.cgroup.clone()));
    Ok(rows)
}
