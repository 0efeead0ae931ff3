//! Which hardware events answer which question, on which CPU.
//!
//! One file of `tlbd/data/uarch` per core microarchitecture names its CPUs and, by [`Role`], its
//! events. [`Catalogue::identify`] finds the cores of a CPU, [`Uarch::event`] an event, and
//! [`Event::encoding`] what `perf_event_open` wants. Reading who the CPU is, and what its PMUs
//! accept, is left to `source`.

pub mod cpu;
pub mod event;
mod parse;
pub mod role;
mod shipped;

use std::{cmp::Reverse, collections::BTreeMap};

pub use cpu::{CpuId, Model};
pub use event::{Counts, Encoding, Event, Layout, Nested, PerfType, Reading};
pub use parse::Error;
pub use role::{Access, Role, Size};

#[cfg(test)]
mod tests;

/// What is used for a CPU that no file names. These three have no models.
const GENERIC: &str = "generic";
const AMD_UNKNOWN: &str = "amd-unknown";
const ARM_UNKNOWN: &str = "arm-unknown";

/// The first AMD and Hygon family with Zen's event encodings (Zen 1).
const ZEN: u32 = 23;

/// One core microarchitecture: a file of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Uarch {
    /// The file's name without its ending.
    pub id: String,
    /// The vendor's name for the core.
    pub name: String,
    /// How its events are encoded.
    pub layout: Layout,
    /// Page walkers per core, by the vendor's utilisation formula.
    pub walkers: Option<u8>,
    /// What to know before its figures are believed.
    pub notes: Vec<String>,
    /// The CPUs that have it.
    pub models: Vec<Model>,
    /// Its events.
    pub events: BTreeMap<Role, Event>,
}

impl Uarch {
    /// Parses a file; `file` is its name in errors.
    ///
    /// # Errors
    /// If it is not TOML of that form, or says what cannot be: with the line.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        parse::parse(file, text)
    }

    /// The event for a role; `None` where the vendor lists none.
    #[must_use]
    pub fn event(&self, role: Role) -> Option<&Event> {
        self.events.get(&role)
    }

    /// What `perf_event_open` wants for a role.
    #[must_use]
    pub fn encoding(&self, role: Role) -> Option<Encoding> {
        Some(self.event(role)?.encoding(self.layout))
    }
}

/// Every microarchitecture that tlbd knows.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// The user's own first: they win.
    uarchs: Vec<Uarch>,
}

impl Catalogue {
    /// The files that tlbd ships.
    ///
    /// # Errors
    /// Never in a build whose tests passed.
    pub fn shipped() -> Result<Self, Error> {
        let parse = |(id, text): &(&str, &str)| Uarch::parse(&format!("{id}.toml"), text);
        let uarchs = shipped::SHIPPED.iter().map(parse);
        Ok(Self {
            uarchs: uarchs.collect::<Result<_, _>>()?,
        })
    }

    /// Adds a microarchitecture, which replaces the one of its id, and takes its models from
    /// others.
    pub fn add(&mut self, uarch: Uarch) {
        self.uarchs.retain(|other| other.id != uarch.id);
        self.uarchs.insert(0, uarch);
    }

    /// All of them, in the order in which they are asked.
    pub fn iter(&self) -> impl Iterator<Item = &Uarch> {
        self.uarchs.iter()
    }

    /// The microarchitecture of that id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Uarch> {
        self.uarchs.iter().find(|uarch| uarch.id == id)
    }

    /// The cores of a CPU: one, or one for each PMU of a hybrid, or what stands in for them.
    #[must_use]
    pub fn identify(&self, cpu: &CpuId) -> Identified<'_> {
        let mut cores: Vec<Core<'_>> = Vec::new();
        for uarch in &self.uarchs {
            for model in uarch.models.iter().filter(|model| model.claims(cpu)) {
                if cores.iter().all(|core| core.pmu() != model.pmu) {
                    let model = Some(model);
                    cores.push(Core { uarch, model });
                }
            }
        }
        if !cores.is_empty() {
            cores.sort_by_key(|core| (Reverse(core.core_type()), core.pmu()));
            return Identified { cores, note: None };
        }
        let (id, why) = fall_back(cpu);
        let wants_stepping = cpu.steppings().any(|exact| self.knows(&exact));
        Identified {
            cores: self
                .get(id)
                .map(|uarch| Core { uarch, model: None })
                .into_iter()
                .collect(),
            note: Some(if wants_stepping {
                format!("{cpu} is not enough: its events depend on the stepping, as in {cpu}-4")
            } else {
                format!("{cpu} is not in the catalogue: {why}")
            }),
        }
    }

    fn knows(&self, cpu: &CpuId) -> bool {
        self.uarchs
            .iter()
            .any(|uarch| uarch.models.iter().any(|model| model.claims(cpu)))
    }
}

/// What stands in for the events of a CPU that no file names, and the words that say so.
fn fall_back(cpu: &CpuId) -> (&'static str, &'static str) {
    match cpu {
        CpuId::Arm { .. } => (
            ARM_UNKNOWN,
            "only the architected events, where sysfs advertises them; no walk cycles",
        ),
        CpuId::X86 { vendor, family, .. } if vendor == "HygonGenuine" && *family >= ZEN => (
            AMD_UNKNOWN,
            "the counts of walks that every AMD Zen shares, by inference; no walk cycles",
        ),
        CpuId::X86 { vendor, family, .. } if vendor == "AuthenticAMD" && *family >= ZEN => (
            AMD_UNKNOWN,
            "the counts of walks that every Zen has shared so far; no walk cycles",
        ),
        CpuId::X86 { .. } => (
            GENERIC,
            "the kernel's generic TLB events for walks, where they open; no walk cycles",
        ),
    }
}

/// The cores of one CPU.
#[derive(Clone, Debug)]
pub struct Identified<'a> {
    /// Each with a PMU of its own, the fastest first.
    pub cores: Vec<Core<'a>>,
    /// That, and how, a stand-in is used; `None` for a CPU of the catalogue.
    pub note: Option<String>,
}

/// One kind of core of a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Core<'a> {
    /// Its events.
    pub uarch: &'a Uarch,
    /// The entry that claims the CPU; `None` for a stand-in.
    pub model: Option<&'a Model>,
}

impl<'a> Core<'a> {
    /// The vendor's name for this core.
    #[must_use]
    pub fn name(&self) -> &'a str {
        let own = self.model.and_then(|model| model.name.as_deref());
        own.unwrap_or(&self.uarch.name)
    }

    /// Its PMU in sysfs; on Arm the name that the PMU's begins with.
    #[must_use]
    pub fn pmu(&self) -> &'a str {
        let own = self.model.map(|model| model.pmu.as_str());
        own.unwrap_or(self.uarch.layout.pmu())
    }

    /// CPUID leaf 0x1a's core type on a hybrid.
    #[must_use]
    pub fn core_type(&self) -> Option<u8> {
        self.model.and_then(|model| model.core_type)
    }

    /// Page walkers per core, where the vendor's formulas tell.
    #[must_use]
    pub fn walkers(&self) -> Option<u8> {
        let own = self.model.and_then(|model| model.walkers);
        own.or(self.uarch.walkers)
    }
}
