//! What the programs must know of this kernel's tracepoints: ids, offsets, names of reasons.

use crate::{
    model::{
        tracepoint::{Format, label},
        view::FLUSH_REASONS,
    },
    source::{Unavailable, tracefs::Tracefs},
};

/// The tracepoints' formats, each there or not for a reason of its own.
pub(super) struct Formats {
    pub(super) user: Result<Format, Unavailable>,
    pub(super) kernel: Result<Format, Unavailable>,
    pub(super) flush: Result<Format, Unavailable>,
    pub(super) mkdir: Result<Format, Unavailable>,
    pub(super) rmdir: Result<Format, Unavailable>,
}

impl Formats {
    /// Reads them from tracefs.
    pub(super) fn read() -> Self {
        match Tracefs::open() {
            Ok(tracefs) => Self {
                user: tracefs.format("exceptions", "page_fault_user"),
                kernel: tracefs.format("exceptions", "page_fault_kernel"),
                flush: tracefs.format("tlb", "tlb_flush"),
                mkdir: tracefs.format("cgroup", "cgroup_mkdir"),
                rmdir: tracefs.format("cgroup", "cgroup_rmdir"),
            },
            Err(reason) => {
                let none = || Err(reason.clone());
                Self {
                    user: none(),
                    kernel: none(),
                    flush: none(),
                    mkdir: none(),
                    rmdir: none(),
                }
            }
        }
    }
}

/// Checks that a raw tracepoint hands over what its program takes, in that order: its record is
/// filled from its arguments one by one. Where tracefs cannot be read there is nothing to check
/// by; the arguments have been the same on every kernel since 4.14.
pub(super) fn hands_over(
    format: &Result<Format, Unavailable>,
    fields: &[&str],
) -> Result<(), Unavailable> {
    match format {
        Ok(format) if format.own_fields().eq(fields.iter().copied()) => Ok(()),
        Ok(format) => Err(Unavailable::Kernel {
            lacks: format!(
                "tracepoint with the arguments {} (it has {})",
                fields.join(", "),
                format.own_fields().collect::<Vec<_>>().join(", ")
            ),
        }),
        Err(reason @ Unavailable::Kernel { .. }) => Err(reason.clone()),
        Err(_) => Ok(()),
    }
}

/// Where the fields are that the programs read, the same in both cgroup tracepoints; all 0 where
/// those are not there.
#[derive(Default)]
pub(super) struct Offsets {
    pub(super) cgroup_root: u32,
    pub(super) cgroup_id: u32,
    pub(super) cgroup_id_size: u32,
    pub(super) cgroup_path: u32,
}

impl Offsets {
    /// The offsets that these formats give.
    pub(super) fn of(formats: &Formats) -> Result<Self, Unavailable> {
        let (mkdir, rmdir) = (
            Self::in_format(&formats.mkdir)?,
            Self::in_format(&formats.rmdir)?,
        );
        let same = [mkdir.cgroup_root, mkdir.cgroup_id, mkdir.cgroup_path]
            == [rmdir.cgroup_root, rmdir.cgroup_id, rmdir.cgroup_path];
        let unlike = || Unavailable::Kernel {
            lacks: "cgroup tracepoints that are alike".into(),
        };
        if same { Ok(mkdir) } else { Err(unlike()) }
    }

    fn in_format(format: &Result<Format, Unavailable>) -> Result<Self, Unavailable> {
        let format = format.as_ref().map_err(Clone::clone)?;
        let field = |name: &str| {
            format.field(name).ok_or_else(|| Unavailable::Kernel {
                lacks: format!("field {name} in its cgroup tracepoints"),
            })
        };
        let id = field("id")?;
        Ok(Self {
            cgroup_root: field("root")?.offset,
            cgroup_id: id.offset,
            cgroup_id_size: id.size,
            cgroup_path: field("path")?.offset,
        })
    }
}

/// The reasons' labels by their code, numbered where the kernel's names cannot be read. Codes
/// beyond the ones we tell apart share the last slot.
pub(super) fn flush_reasons(format: &Result<Format, Unavailable>) -> Vec<String> {
    let symbols = format.as_ref().map_or(&[][..], |format| &format.symbols);
    let name = |code: usize| {
        let known = symbols.iter().find(|(value, _)| *value == code as u64);
        known.map_or_else(|| format!("reason_{code}"), |(_, name)| label(name))
    };
    (0..FLUSH_REASONS).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush() -> Result<Format, Unavailable> {
        let text = include_str!("../../../../tests/fixtures/tracefs/6.12/tlb_flush.format");
        Ok(Format::parse(text).unwrap())
    }

    #[test]
    fn a_tracepoint_with_other_arguments_is_refused_and_not_misread() {
        assert_eq!(hands_over(&flush(), &["reason", "pages"]), Ok(()));
        let refusal = hands_over(&flush(), &["pages", "reason"])
            .unwrap_err()
            .to_string();
        assert!(refusal.contains("it has reason, pages"), "{refusal}");
    }

    #[test]
    fn a_missing_tracepoint_is_refused_and_a_missing_tracefs_is_not() {
        let missing = Unavailable::Kernel {
            lacks: "tracepoint".into(),
        };
        assert!(hands_over(&Err(missing), &["reason"]).is_err());
        assert!(
            hands_over(
                &Err(Unavailable::NotMounted {
                    filesystem: "tracefs"
                }),
                &["reason"]
            )
            .is_ok()
        );
    }

    #[test]
    fn reasons_are_named_or_numbered() {
        assert_eq!(flush_reasons(&flush())[1], "remote_shootdown");
        let numbered = flush_reasons(&Err(Unavailable::NotMounted {
            filesystem: "tracefs",
        }));
        assert_eq!(numbered[1], "reason_1");
    }
}
