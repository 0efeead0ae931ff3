//! Which machine this is, and where its hardware events come from.

use procfs::{CpuInfo, FromRead as _};

use super::{Collector, Context, Entry, Tick};
use crate::{
    export::metric::{Kind, Metric},
    model::{
        accounts::Accounts,
        view::{Host, Pmu, View},
    },
    source::{Unavailable, root::Root},
};

const DEVICES: &str = "/sys/bus/event_source/devices";

pub(super) const ENTRY: Entry = Entry {
    name: "pmu",
    answers: "page walks and walk cycles from hardware counters",
    metrics: &[&PMU_INFO, &HOST_INFO],
    open,
};

const PMU_INFO: Metric = Metric {
    name: "tlbd_pmu_info",
    kind: Kind::Info,
    help: "Where hardware events come from; source is none where there are none",
    labels: &["pmu", "microarch", "source", "walk_cycles"],
    read: |view, series| {
        let pmu = &view.pmu;
        series.count(
            &[&pmu.name, &pmu.microarch, &pmu.source, &pmu.walk_cycles],
            1,
        );
    },
};

const HOST_INFO: Metric = Metric {
    name: "tlbd_host_info",
    kind: Kind::Info,
    help: "The machine: kernel release and CPU model",
    labels: &["kernel", "cpu"],
    read: |view, series| series.count(&[&view.host.kernel, &view.host.cpu], 1),
};

fn open(context: &Context) -> Result<Box<dyn Collector>, Unavailable> {
    let root = &context.root;
    let host = Host {
        kernel: kernel(root),
        cpu: cpu_model(root),
        cpus: context.sampling.1,
    };
    Ok(Box::new(Identity {
        host,
        pmu: pmu(root),
    }))
}

struct Identity {
    host: Host,
    pmu: Pmu,
}

impl Collector for Identity {
    fn collect(&mut self, _: &Tick<'_>, _: &mut Accounts, view: &mut View) -> anyhow::Result<()> {
        view.host = self.host.clone();
        view.pmu = self.pmu.clone();
        Ok(())
    }
}

fn kernel(root: &Root) -> String {
    let release = root
        .read_text("/proc/sys/kernel/osrelease")
        .unwrap_or_default();
    release.trim().to_owned()
}

fn cpu_model(root: &Root) -> String {
    let text = root.read("/proc/cpuinfo").unwrap_or_default();
    let info = CpuInfo::from_read(&text[..]).ok();
    info.and_then(|info| info.model_name(0).map(ToOwned::to_owned))
        .unwrap_or_default()
}

fn pmu(root: &Root) -> Pmu {
    let devices = root.list(DEVICES).unwrap_or_default();
    let core = devices
        .iter()
        .filter_map(|name| name.to_str())
        .find(|name| is_core(name));
    let reason = match core {
        None => format!(
            "no core PMU in {DEVICES}: this machine shows no hardware counters (most cloud VMs hide them)"
        ),
        Some(name) => format!(
            "the PMU {name} is there, but this version of tlbd counts no hardware events yet"
        ),
    };
    Pmu {
        name: core.unwrap_or("none").to_owned(),
        microarch: "unknown".into(),
        source: "none".into(),
        walk_cycles: "absent".into(),
        reason,
    }
}

/// Core PMUs are `cpu`, on hybrids `cpu_core` and `cpu_atom`, on Arm `armv8_...`.
fn is_core(name: &str) -> bool {
    name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv8_")
}
