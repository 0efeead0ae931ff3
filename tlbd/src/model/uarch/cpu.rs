//! Who a CPU is, and which CPUs an entry of the catalogue claims.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A CPU's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuId {
    /// CPUID leaves 0 and 1, with the extended family and model added in.
    X86 {
        /// Twelve characters, such as `GenuineIntel`.
        vendor: String,
        /// Decimal where it is written.
        family: u32,
        /// 0 to 0xff; hexadecimal where it is written.
        model: u32,
        /// 0 to 0xf; `None` if it was not given.
        stepping: Option<u32>,
    },
    /// `MIDR_EL1`.
    Arm {
        /// The register's lower half; the upper one is reserved.
        midr: u32,
    },
}

impl CpuId {
    /// This CPU with every stepping, if it has none and could have.
    pub(super) fn steppings(&self) -> impl Iterator<Item = Self> {
        let open = match self {
            Self::X86 {
                vendor,
                family,
                model,
                stepping: None,
            } => Some((vendor.clone(), *family, *model)),
            _ => None,
        };
        open.into_iter().flat_map(|(vendor, family, model)| {
            (0..=0xf).map(move |stepping| Self::X86 {
                vendor: vendor.clone(),
                family,
                model,
                stepping: Some(stepping),
            })
        })
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::X86 {
                vendor,
                family,
                model,
                stepping,
            } => {
                write!(f, "{vendor}-{family}-{model:X}")?;
                stepping.map_or(Ok(()), |stepping| write!(f, "-{stepping:X}"))
            }
            Self::Arm { midr } => write!(f, "{midr:#010x}"),
        }
    }
}

/// A text that names no CPU.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no CPU is written like that; x86: VENDOR-FAMILY-MODEL[-STEPPING], family decimal, model and \
     stepping hexadecimal, as GenuineIntel-6-55-4; Arm: MIDR_EL1, as 0x410fd490"
)]
pub struct NotACpu;

impl FromStr for CpuId {
    type Err = NotACpu;

    fn from_str(text: &str) -> Result<Self, NotACpu> {
        if let Some(midr) = text.strip_prefix("0x") {
            let midr = hexadecimal(midr, u64::from(u32::MAX)).ok_or(NotACpu)?;
            let midr = u32::try_from(midr).map_err(|_| NotACpu)?;
            return Ok(Self::Arm { midr });
        }
        x86(text).ok_or(NotACpu)
    }
}

fn x86(text: &str) -> Option<CpuId> {
    let mut parts = text.split('-');
    let (vendor, family, model) = (parts.next()?, parts.next()?, parts.next()?);
    let stepping = match parts.next() {
        Some(stepping) => Some(u32::try_from(hexadecimal(stepping, 0xf)?).ok()?),
        None => None,
    };
    let written = !vendor.is_empty() && vendor.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let decimal = !family.is_empty() && family.bytes().all(|byte| byte.is_ascii_digit());
    if !written || !decimal || vendor.len() > 12 || parts.next().is_some() {
        return None;
    }
    Some(CpuId::X86 {
        vendor: vendor.to_owned(),
        // The largest that CPUID can say is 15 + 255.
        family: family.parse().ok().filter(|family| *family <= 270)?,
        model: u32::try_from(hexadecimal(model, 0xff)?).ok()?,
        stepping,
    })
}

fn hexadecimal(text: &str, max: u64) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u64::from_str_radix(text, 16).ok()?;
    (digits && number <= max).then_some(number)
}

/// Numbers from the first to the last, both included; written `3`, `0-7`, `0x8f` or `0x20-0x2f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span {
    /// The smallest.
    pub first: u32,
    /// The largest.
    pub last: u32,
}

impl Span {
    /// Whether the number is one of them.
    #[must_use]
    pub fn contains(self, number: u32) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return write!(f, "{}", self.first);
        }
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

/// A text that is no span of numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a number or a range of numbers, as 3, 0-7, 0x8f or 0x20-0x2f")]
pub struct NotASpan;

impl TryFrom<String> for Span {
    type Error = NotASpan;

    fn try_from(text: String) -> Result<Self, NotASpan> {
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        let (first, last) = number(first).zip(number(last)).ok_or(NotASpan)?;
        if first > last {
            return Err(NotASpan);
        }
        Ok(Self { first, last })
    }
}

/// A number of at most 0xff, which is more than any model, stepping or counter.
fn number(text: &str) -> Option<u32> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits, 0xff)?,
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
        None => return None,
    };
    u32::try_from(number).ok().filter(|number| *number <= 0xff)
}

/// CPUs that have a microarchitecture.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Which CPUs.
    pub cpus: Cpus,
    /// The folder of the kernel's event lists that its events come from.
    pub arch: String,
    /// The core's name, where it is not the microarchitecture's.
    pub name: Option<String>,
    /// Its PMU in sysfs; on Arm the name that the PMU's begins with.
    pub pmu: String,
    /// CPUID leaf 0x1a's core type, on a hybrid.
    pub core_type: Option<u8>,
    /// CPUID leaf 0x1a's native model, on a hybrid.
    pub native_model: Option<u32>,
    /// Page walkers per core, where it is not the microarchitecture's.
    pub walkers: Option<u8>,
}

/// A set of CPUs.
#[derive(Clone, Debug, PartialEq)]
pub enum Cpus {
    /// By CPUID.
    X86 {
        /// As CPUID leaf 0 says it.
        vendor: String,
        /// The family.
        family: u32,
        /// Any of these models.
        models: Vec<Span>,
        /// Any of these steppings; none: every one.
        steppings: Vec<Span>,
    },
    /// By `MIDR_EL1`.
    Arm {
        /// The register's value,
        midr: u32,
        /// compared in these bits.
        mask: u32,
    },
}

impl Model {
    /// Whether the CPU is one of these.
    #[must_use]
    pub fn claims(&self, cpu: &CpuId) -> bool {
        match (&self.cpus, cpu) {
            (Cpus::Arm { midr, mask }, CpuId::Arm { midr: own }) => own & mask == midr & mask,
            (
                Cpus::X86 {
                    vendor,
                    family,
                    models,
                    steppings,
                },
                CpuId::X86 {
                    vendor: own_vendor,
                    family: own_family,
                    model,
                    stepping,
                },
            ) => {
                let any = |spans: &[Span], number| spans.iter().any(|span| span.contains(number));
                let stepping = stepping.is_some_and(|stepping| any(steppings, stepping));
                vendor == own_vendor
                    && family == own_family
                    && any(models, *model)
                    && (steppings.is_empty() || stepping)
            }
            _ => false,
        }
    }
}
