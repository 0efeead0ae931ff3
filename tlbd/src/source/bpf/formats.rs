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

/// Where the fields are that the programs read; 0 for those of a tracepoint that is not there.
pub(super) struct Offsets {
    pub(super) error_code: u32,
    pub(super) reason: u32,
    pub(super) pages: u32,
    pub(super) cgroup_root: u32,
    pub(super) cgroup_id: u32,
    pub(super) cgroup_id_size: u32,
    pub(super) cgroup_path: u32,
}

impl Offsets {
    /// The offsets that these formats give.
    pub(super) fn of(formats: &Formats) -> Self {
        let place = |format: &Result<Format, Unavailable>, name: &str| {
            let field = format
                .as_ref()
                .ok()
                .and_then(|format| format.field(name).cloned());
            field.map_or((0, 0), |field| (field.offset, field.size))
        };
        let (cgroup_id, cgroup_id_size) = place(&formats.mkdir, "id");
        Self {
            error_code: place(&formats.user, "error_code").0,
            reason: place(&formats.flush, "reason").0,
            pages: place(&formats.flush, "pages").0,
            cgroup_root: place(&formats.mkdir, "root").0,
            cgroup_id,
            cgroup_id_size,
            cgroup_path: place(&formats.mkdir, "path").0,
        }
    }
}

/// The reasons' labels by their code. Codes beyond the ones we tell apart share the last slot.
pub(super) fn flush_reasons(format: &Result<Format, Unavailable>) -> Vec<String> {
    let symbols = format
        .as_ref()
        .map(|format| format.symbols.as_slice())
        .unwrap_or_default();
    let name = |code: usize| {
        let known = symbols.iter().find(|(value, _)| *value == code as u64);
        known.map_or_else(|| format!("reason_{code}"), |(_, name)| label(name))
    };
    if symbols.is_empty() {
        Vec::new()
    } else {
        (0..FLUSH_REASONS).map(name).collect()
    }
}
