//! A file of the catalogue from its text. Every error names the file and the line, because users
//! write such files too.

use std::{collections::BTreeMap, ops::Range};

use serde::Deserialize;
use toml::Spanned;

use super::{
    Uarch,
    cpu::{Cpus, Model, Span},
    event::{Event, Layout, PerfType},
    role::Role,
};

/// Longest text that is a file of the catalogue; the shipped ones have 8 KiB at most.
const FILE_MAX: usize = 1 << 20;
/// Counters that a CPU may have.
const COUNTERS_MAX: u32 = 63;

/// Why a text is not a file of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct Error {
    /// Which file.
    pub file: String,
    /// Where in it, from 1.
    pub line: usize,
    /// What is wrong there, and what would be right.
    pub what: String,
}

/// What is wrong, and at which bytes; nowhere means the start.
type Wrong = (Option<Range<usize>>, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    id: Spanned<String>,
    name: Spanned<String>,
    layout: Layout,
    walkers: Option<u8>,
    counters: Option<Spanned<Span>>,
    counters_smt_off: Option<Spanned<Span>>,
    #[serde(default)]
    notes: Vec<Spanned<String>>,
    #[serde(default)]
    model: Vec<Spanned<RawModel>>,
    events: Spanned<BTreeMap<Role, Spanned<Event>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    vendor: Option<String>,
    family: Option<u32>,
    #[serde(default)]
    models: Vec<Span>,
    #[serde(default)]
    steppings: Vec<Span>,
    midr: Option<u32>,
    mask: Option<u32>,
    arch: String,
    name: Option<String>,
    pmu: Option<String>,
    core_type: Option<u8>,
    native_model: Option<u32>,
    walkers: Option<u8>,
}

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::try_from(text).map_err(serde::de::Error::custom)
    }
}

pub(super) fn parse(file: &str, text: &str) -> Result<Uarch, Error> {
    build(text).map_err(|(place, what)| {
        let start = place.map_or(0, |place| place.start);
        let before = text.as_bytes().get(..start).unwrap_or_default();
        Error {
            file: file.to_owned(),
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            what,
        }
    })
}

fn build(text: &str) -> Result<Uarch, Wrong> {
    if text.len() > FILE_MAX {
        return Err((None, format!("longer than {FILE_MAX} bytes")));
    }
    let raw: RawFile =
        toml::from_str(text).map_err(|error| (error.span(), error.message().to_owned()))?;
    word(&raw.id)?;
    for shown in raw.notes.iter().chain([&raw.name]) {
        plain(shown.get_ref()).map_err(|what| (Some(shown.span()), what))?;
    }
    for span in [&raw.counters, &raw.counters_smt_off].into_iter().flatten() {
        counters(*span.get_ref()).map_err(|what| (Some(span.span()), what))?;
    }
    let here = raw.events.span();
    let defaults = Defaults {
        layout: raw.layout,
        counters: raw.counters.map(Spanned::into_inner),
        counters_smt_off: raw.counters_smt_off.map(Spanned::into_inner),
    };
    let mut events = BTreeMap::new();
    for (role, event) in raw.events.into_inner() {
        let place = event.span();
        let event = defaults.event(role, event.into_inner());
        let event = event.map_err(|what| (Some(place), format!("{role}: {what}")))?;
        events.insert(role, event);
    }
    if !events.contains_key(&Role::Cycles) || !events.contains_key(&Role::Instructions) {
        let what = "an event for cycles and one for instructions are needed".to_owned();
        return Err((Some(here), what));
    }
    let models = raw.model.into_iter().map(|model| {
        let place = model.span();
        let model = defaults.model(model.into_inner());
        model.map_err(|what| (Some(place), what))
    });
    Ok(Uarch {
        models: models.collect::<Result<_, _>>()?,
        id: raw.id.into_inner(),
        name: raw.name.into_inner(),
        layout: raw.layout,
        walkers: raw.walkers,
        notes: raw.notes.into_iter().map(Spanned::into_inner).collect(),
        events,
    })
}

/// What the file says once for all its events and models.
struct Defaults {
    layout: Layout,
    counters: Option<Span>,
    counters_smt_off: Option<Span>,
}

impl Defaults {
    fn event(&self, role: Role, mut event: Event) -> Result<Event, String> {
        self.encodable(&event)?;
        fits_role(role, &event)?;
        let texts = [&event.name].into_iter().chain(&event.caveat);
        for text in texts.chain(&event.union_of).chain(&event.errata) {
            plain(text)?;
        }
        for span in [event.counters, event.counters_smt_off] {
            span.map_or(Ok(()), counters)?;
        }
        let smt_off = event.counters_smt_off.or(self.counters_smt_off);
        let smt_off = smt_off.or(event.counters).or(self.counters);
        event.counters = event.counters.or(self.counters);
        event.counters_smt_off = smt_off.filter(|_| smt_off != event.counters);
        Ok(event)
    }

    fn encodable(&self, event: &Event) -> Result<(), String> {
        let generic = event.perf_type != PerfType::Raw;
        let max = match event.perf_type {
            PerfType::Raw => self.layout.event_max(),
            PerfType::Hardware | PerfType::HwCache => 0xff_ffff,
        };
        if event.event > max {
            return Err(format!("event {:#x} is over {max:#x}", event.event));
        }
        if (generic || self.layout == Layout::Arm) && event.has_fields() {
            return Err("such an event has a number only: no umask, cmask, edge ...".to_owned());
        }
        if self.layout != Layout::Intel && (event.any || event.umask_ext != 0) {
            return Err("any and umask_ext are Intel's".to_owned());
        }
        Ok(())
    }

    fn model(&self, raw: RawModel) -> Result<Model, String> {
        let cpus = match self.layout {
            Layout::Arm => arm(&raw)?,
            Layout::Intel | Layout::Amd => x86(&raw)?,
        };
        let pmu = raw.pmu.unwrap_or_else(|| self.layout.pmu().to_owned());
        for text in [&pmu, &raw.arch].into_iter().chain(&raw.name) {
            plain(text)?;
        }
        if pmu.contains('/') || pmu.starts_with('.') || pmu.is_empty() {
            return Err(format!("pmu {pmu:?} is no name of a folder in sysfs"));
        }
        Ok(Model {
            cpus,
            arch: raw.arch,
            name: raw.name,
            pmu,
            core_type: raw.core_type,
            native_model: raw.native_model,
            walkers: raw.walkers,
        })
    }
}

fn x86(raw: &RawModel) -> Result<Cpus, String> {
    let (Some(vendor), Some(family), false) = (&raw.vendor, raw.family, raw.models.is_empty())
    else {
        return Err("a model needs vendor, family and models".to_owned());
    };
    if raw.midr.is_some() || raw.mask.is_some() {
        return Err("midr and mask are for layout = \"arm\"".to_owned());
    }
    if raw.steppings.iter().any(|span| span.last > 0xf) {
        return Err("steppings end at 0xf".to_owned());
    }
    plain(vendor)?;
    Ok(Cpus::X86 {
        vendor: vendor.clone(),
        family,
        models: raw.models.clone(),
        steppings: raw.steppings.clone(),
    })
}

fn arm(raw: &RawModel) -> Result<Cpus, String> {
    let (Some(midr), Some(mask)) = (raw.midr, raw.mask) else {
        return Err("a model of layout = \"arm\" needs midr and mask".to_owned());
    };
    let x86 = raw.vendor.is_some() || raw.family.is_some();
    if x86 || !raw.models.is_empty() || !raw.steppings.is_empty() {
        return Err("vendor, family, models and steppings are for x86".to_owned());
    }
    if mask == 0 {
        return Err("mask = 0 claims every core".to_owned());
    }
    Ok(Cpus::Arm { midr, mask })
}

/// What belongs to some roles only is there with those, and not with others.
fn fits_role(role: Role, event: &Event) -> Result<(), String> {
    let cycles = matches!(role, Role::WalkCycles(_) | Role::NestedWalkCycles);
    let walks = matches!(role, Role::Walks(..));
    if event.reading.is_some() != cycles {
        return Err(belongs("reading", "walk cycles", cycles));
    }
    if event.counts.is_some() != walks {
        return Err(belongs("counts", "walks", walks));
    }
    if event.data_address.is_some() != matches!(role, Role::PreciseMiss(_)) {
        let needed = event.data_address.is_none();
        return Err(belongs("data_address", "precise misses", needed));
    }
    if event.nested.is_some() && !matches!(role, Role::WalkCycles(_)) {
        return Err(belongs("nested", "walk cycles", false));
    }
    Ok(())
}

fn belongs(key: &str, to: &str, needed: bool) -> String {
    match needed {
        true => format!("{to} need {key}"),
        false => format!("{key} is for {to} only"),
    }
}

fn counters(span: Span) -> Result<(), String> {
    if span.last > COUNTERS_MAX {
        return Err(format!("counters end at {COUNTERS_MAX}"));
    }
    Ok(())
}

/// Text that is shown to people must not steer their terminal.
fn plain(text: &str) -> Result<(), String> {
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(format!("{text:?} is empty or has control characters"));
    }
    Ok(())
}

fn word(id: &Spanned<String>) -> Result<(), Wrong> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if id.get_ref().is_empty() || !id.get_ref().bytes().all(plain) {
        let what = "an id has letters, digits, '-', '_' and '.' only".to_owned();
        return Err((Some(id.span()), what));
    }
    Ok(())
}
