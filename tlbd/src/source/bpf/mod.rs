//! The BPF programs: loading them, hanging them on their events, reading their maps.

mod formats;
mod program;
mod sizes;
mod system;
mod table;

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

use anyhow::Context as _;
use aya::{
    Ebpf, EbpfLoader,
    maps::{Map, MapData, RingBuf, StackTraceMap},
};
use tlbd_common::{
    Access, CgroupChange, CgroupEvent, FaultKey, FlushCount, FlushKey, Loss, Mode, NO_STACK,
    OVERFLOW_CGROUP, Role, SampleCount, SampleKey,
};

use super::{
    Change, Drained, Hooks, KernelEvents, Unavailable,
    cgroupfs::{self, Mounts},
    root::{self, Root},
};
use crate::model::{
    period,
    printable::printable,
    tracepoint::Format,
    view::{FLUSH_REASONS, ProgramRow},
};
use formats::{Formats, Offsets, flush_reasons, hands_over};
use system::{allow_locked_memory, online_cpus, programs_ended};

use sizes::Sizes;

/// The object that `build.rs` made; empty where it was told to make none.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/tlbd"));

/// How long a drain waits for programs under way to end.
const PATIENCE: Duration = Duration::from_millis(250);

/// The loaded programs and their maps. Nothing is pinned: when the process ends, however it
/// ends, the kernel detaches and frees them.
pub struct BpfEvents {
    ebpf: Ebpf,
    /// The events that programs hang on; closing one detaches its program.
    _events: Vec<OwnedFd>,
    /// Keeps run statistics on while it is open.
    stats: Option<OwnedFd>,
    cgroup_events: RingBuf<MapData>,
    epoch: u32,
    /// An epoch that was turned away from, while programs may still write to it.
    turned: Option<(u32, Receiver<()>)>,
    lanes: usize,
    hooks: Hooks,
    flush_reasons: Vec<String>,
    period: u64,
    cpus: Vec<u32>,
    mounts: Mounts,
}

/// How to sample.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Samples of the clock per second and CPU.
    pub sample_hz: u32,
    /// Seconds between drains.
    pub tick_seconds: f64,
    /// Whether to keep run statistics of the programs.
    pub stats: bool,
    /// Most keys that a map may hold; `None` for as many as a tick can bring.
    pub most_keys: Option<u32>,
}

impl BpfEvents {
    /// Loads the programs and hangs each on its events. A hook that fails is reported in
    /// [`Hooks`] and does not stop the others.
    ///
    /// # Errors
    /// If nothing can be loaded at all.
    pub fn open(settings: Settings) -> Result<Self, Unavailable> {
        if OBJECT.is_empty() {
            return Err(Unavailable::Build {
                lacks: "its BPF programs".into(),
            });
        }
        allow_locked_memory();
        let root = Root::host();
        let cpus = online_cpus(&root)?;
        let lanes = aya::util::nr_cpus().map_err(|(path, error)| Unavailable::File {
            path: path.into(),
            error: error.to_string(),
        })?;
        let sizes = Sizes::new(cpus.len(), &settings);
        let formats = Formats::read();
        let offsets = Offsets::of(&formats);
        let mut ebpf = load(&sizes, offsets.as_ref().unwrap_or(&Offsets::default()))?;
        let ring = ebpf
            .take_map("CGROUP_EVENTS")
            .ok_or_else(|| broken("CGROUP_EVENTS"))?;
        let cgroup_events =
            RingBuf::try_from(ring).map_err(|error| refused("mapping CGROUP_EVENTS", &error))?;
        let mut source = Self {
            ebpf,
            _events: Vec::new(),
            stats: settings.stats.then(program::enable_stats).flatten(),
            cgroup_events,
            epoch: 0,
            turned: None,
            lanes,
            hooks: Hooks::none(&Unavailable::Disabled),
            flush_reasons: flush_reasons(&formats.flush),
            period: period::of_frequency(settings.sample_hz),
            cpus,
            mounts: Mounts::find(&root).unwrap_or_default(),
        };
        source
            .make_room(0)
            .and_then(|()| source.make_room(1))
            .map_err(|error| refused("filling maps", &error))?;
        source.hang(&formats, offsets.err());
        Ok(source)
    }

    fn hang(&mut self, formats: &Formats, no_offsets: Option<Unavailable>) {
        const FAULT: [&str; 3] = ["address", "ip", "error_code"];
        let cpu = self.cpus.first().copied().unwrap_or_default();
        let ebpf = &mut self.ebpf;
        self.hooks.faults = hands_over(&formats.user, &FAULT)
            .and_then(|()| hands_over(&formats.kernel, &FAULT))
            .and_then(|()| program::hang_on_raw_tracepoint(ebpf, "page_fault_user"))
            .and_then(|()| program::hang_on_raw_tracepoint(ebpf, "page_fault_kernel"));
        self.hooks.flushes = hands_over(&formats.flush, &["reason", "pages"])
            .and_then(|()| program::hang_on_raw_tracepoint(ebpf, "tlb_flush"));
        let mut events = Vec::new();
        let mut on_cgroups = |name, format: &Result<Format, Unavailable>| {
            let id = format.as_ref().map_err(Clone::clone)?.id;
            events.push(program::hang_on_tracepoint(ebpf, name, id, cpu)?);
            Ok(())
        };
        self.hooks.cgroups = no_offsets
            .map_or(Ok(()), Err)
            .and_then(|()| on_cgroups("cgroup_mkdir", &formats.mkdir))
            .and_then(|()| on_cgroups("cgroup_rmdir", &formats.rmdir));
        self.hooks.sampler = program::hang_on_clock(ebpf, "sample_clock", self.period, &self.cpus)
            .map(|clocks| events.extend(clocks));
        self._events = events;
    }

    /// Puts the overflow keys into the maps of an epoch, so that there is always room for them.
    fn make_room(&self, epoch: u32) -> anyhow::Result<()> {
        for mode in Mode::ALL {
            for role in Role::ALL {
                let key = SampleKey {
                    cgroup: OVERFLOW_CGROUP,
                    address: 0,
                    stack: NO_STACK,
                    role: role as u32,
                    mode: mode as u32,
                };
                table::put_zero::<_, SampleCount>(self.map("SAMPLES", epoch)?, 1, &key)?;
            }
            for access in Access::ALL {
                let key = FaultKey {
                    cgroup: OVERFLOW_CGROUP,
                    mode: mode as u32,
                    access: access as u32,
                };
                table::put_zero::<_, u64>(self.map("FAULTS", epoch)?, self.lanes, &key)?;
            }
        }
        for reason in 0..FLUSH_REASONS as u32 {
            let key = FlushKey::new(OVERFLOW_CGROUP, reason);
            table::put_zero::<_, FlushCount>(self.map("FLUSHES", epoch)?, self.lanes, &key)?;
        }
        Ok(())
    }

    /// The map of a pair that belongs to an epoch.
    fn map(&self, name: &str, epoch: u32) -> anyhow::Result<BorrowedFd<'_>> {
        self.fd(&format!("{name}_{epoch}"))
    }

    fn fd(&self, name: &str) -> anyhow::Result<BorrowedFd<'_>> {
        let map = self
            .ebpf
            .map(name)
            .with_context(|| format!("the BPF object has no map {name}"))?;
        match map {
            Map::HashMap(data) | Map::PerCpuHashMap(data) | Map::Array(data) => {
                Ok(data.fd().as_fd())
            }
            _ => anyhow::bail!("map {name} of the BPF object is of another kind"),
        }
    }

    /// Turns the epoch, and gives the old one once no program can still write to it. `None` if
    /// that takes too long: what the old one holds then comes with a later drain.
    fn turn(&mut self) -> anyhow::Result<Option<u32>> {
        let (old, ended) = match self.turned.take() {
            Some(turned) => turned,
            None => {
                let old = self.epoch;
                table::set_first(self.fd("EPOCH")?, 1 - old).context("turning the epoch")?;
                self.epoch = 1 - old;
                (old, programs_ended())
            }
        };
        if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            self.turned = Some((old, ended));
            return Ok(None);
        }
        Ok(Some(old))
    }

    /// Takes the counts of an epoch that nobody writes to, and leaves its maps as new.
    fn take(&mut self, epoch: u32) -> anyhow::Result<Drained> {
        let (mut samples, mut faults, mut flushes) =
            (HashMap::new(), HashMap::new(), HashMap::new());
        table::drain::<SampleKey, SampleCount>(self.map("SAMPLES", epoch)?, 1, &mut samples)
            .context("draining samples")?;
        table::drain::<FaultKey, u64>(self.map("FAULTS", epoch)?, self.lanes, &mut faults)
            .context("draining page faults")?;
        table::drain::<FlushKey, FlushCount>(self.map("FLUSHES", epoch)?, self.lanes, &mut flushes)
            .context("draining TLB flushes")?;
        let stacks = self.take_stacks(epoch).context("draining stacks")?;
        self.make_room(epoch)?;
        samples.retain(|_, count| count.samples > 0);
        faults.retain(|_, count| *count > 0);
        flushes.retain(|_, count| count.flushes > 0);
        Ok(Drained {
            samples: samples.into_iter().collect(),
            stacks,
            faults: faults.into_iter().collect(),
            flushes: flushes.into_iter().collect(),
            ..Drained::default()
        })
    }

    /// Takes the stacks of an epoch and empties their map.
    fn take_stacks(&mut self, epoch: u32) -> anyhow::Result<HashMap<i64, Vec<u64>>> {
        let name = format!("STACKS_{epoch}");
        let map = self
            .ebpf
            .map_mut(&name)
            .with_context(|| format!("the BPF object has no map {name}"))?;
        let mut stacks = StackTraceMap::try_from(map)?;
        let ids: Vec<u32> = stacks.stack_ids().filter_map(Result::ok).collect();
        let mut taken = HashMap::with_capacity(ids.len());
        for id in ids {
            if let Ok(stack) = stacks.get(&id, 0) {
                taken.insert(
                    i64::from(id),
                    stack.frames().iter().map(|frame| frame.ip).collect(),
                );
            }
            stacks.remove(&id)?;
        }
        Ok(taken)
    }

    fn take_changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        while let Some(record) = self.cgroup_events.next() {
            changes.extend(change(&record));
        }
        changes
    }

    fn losses(&self) -> Vec<(Loss, u64)> {
        let Some(map) = self.ebpf.map("LOSSES") else {
            return Vec::new();
        };
        let Ok(losses) = aya::maps::PerCpuArray::<_, u64>::try_from(map) else {
            return Vec::new();
        };
        let total = |loss: Loss| {
            losses
                .get(&(loss as u32), 0)
                .ok()
                .map(|lanes| (loss, lanes.iter().sum()))
        };
        Loss::ALL.into_iter().filter_map(total).collect()
    }
}

impl KernelEvents for BpfEvents {
    fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    fn flush_reasons(&self) -> &[String] {
        &self.flush_reasons
    }

    fn sampling(&self) -> (u64, usize) {
        (self.period, self.cpus.len())
    }

    fn drain(&mut self) -> anyhow::Result<Drained> {
        let mut drained = match self.turn()? {
            Some(old) => self.take(old)?,
            None => Drained::default(),
        };
        drained.changes = self.take_changes();
        drained.losses = self.losses();
        Ok(drained)
    }

    fn cgroups(&self) -> Result<Vec<(u64, String)>, root::Error> {
        let Some(mount) = &self.mounts.unified else {
            return Ok(Vec::new());
        };
        let found = cgroupfs::walk(&Root::host(), mount)?;
        Ok(found
            .into_iter()
            .map(|cgroup| (cgroup.inode, cgroup.path))
            .collect())
    }

    fn programs(&self) -> Vec<ProgramRow> {
        if self.stats.is_some() {
            program::stats(&self.ebpf)
        } else {
            Vec::new()
        }
    }
}

fn load(sizes: &Sizes, offsets: &Offsets) -> Result<Ebpf, Unavailable> {
    let mut loader = EbpfLoader::new();
    loader
        .override_global("CGROUP_ROOT", &offsets.cgroup_root, true)
        .override_global("CGROUP_ID", &offsets.cgroup_id, true)
        .override_global("CGROUP_ID_SIZE", &offsets.cgroup_id_size, true)
        .override_global("CGROUP_PATH", &offsets.cgroup_path, true);
    for (name, entries) in sizes.by_map() {
        loader.map_max_entries(name, entries);
    }
    loader.load(OBJECT).map_err(|error| {
        match program::os_error(&error).filter(|io| io.kind() == io::ErrorKind::PermissionDenied) {
            Some(io) => Unavailable::from_io("loading BPF maps", io, "CAP_BPF"),
            None => refused("loading BPF maps", &error),
        }
    })
}

/// The record of a change, or nothing if it is cut or of a kind we do not know.
fn change(record: &[u8]) -> Option<Change> {
    let word = |at: usize| Some(u32::from_ne_bytes(record.get(at..at + 4)?.try_into().ok()?));
    let id = u64::from_ne_bytes(record.get(..8)?.try_into().ok()?);
    let path = record
        .get(CgroupEvent::HEADER..)?
        .get(..word(12)? as usize)?;
    match word(8)? {
        kind if kind == CgroupChange::Made as u32 => Some(Change {
            id,
            made: Some(printable(path)),
        }),
        kind if kind == CgroupChange::Removed as u32 => Some(Change { id, made: None }),
        _ => None,
    }
}

fn refused(tried: &str, error: &dyn std::fmt::Display) -> Unavailable {
    Unavailable::Refused {
        tried: tried.into(),
        error: error.to_string(),
    }
}

fn broken(map: &str) -> Unavailable {
    Unavailable::Build {
        lacks: format!("the map {map}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_records_are_no_changes() {
        let mut record = Vec::new();
        record.extend(7_u64.to_ne_bytes());
        record.extend(0_u32.to_ne_bytes());
        record.extend(2_u32.to_ne_bytes());
        record.extend(b"/a");
        assert_eq!(
            change(&record),
            Some(Change {
                id: 7,
                made: Some("/a".into())
            })
        );
        for end in 0..record.len() {
            assert_eq!(change(&record[..end]), None);
        }
    }
}
