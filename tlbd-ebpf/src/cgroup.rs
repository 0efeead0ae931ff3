//! Births and deaths of cgroups, so that names are known before and after their directories.

use aya_ebpf::{
    EbpfContext as _, helpers::bpf_probe_read_kernel_str_bytes, macros::tracepoint,
    programs::TracePointContext,
};
use tlbd_common::{CgroupChange, CgroupEvent, DEFAULT_HIERARCHY, Loss};

use crate::maps::{
    CGROUP_EVENTS, CGROUP_ID, CGROUP_ID_SIZE, CGROUP_PATH, CGROUP_ROOT, CGROUP_SCRATCH, lose,
};

/// `cgroup:cgroup_mkdir(struct cgroup *cgrp, const char *path)`
#[tracepoint]
fn cgroup_mkdir(ctx: TracePointContext) -> u32 {
    announce(&ctx, CgroupChange::Made);
    0
}

/// `cgroup:cgroup_rmdir(struct cgroup *cgrp, const char *path)`
#[tracepoint]
fn cgroup_rmdir(ctx: TracePointContext) -> u32 {
    announce(&ctx, CgroupChange::Removed);
    0
}

#[inline(always)]
fn announce(ctx: &TracePointContext, change: CgroupChange) -> Option<()> {
    // SAFETY: here and below the offsets come from this tracepoint's format, and the helper
    // checks the addresses.
    if unsafe { ctx.read_at::<u32>(CGROUP_ROOT.load() as usize) }.ok()? != DEFAULT_HIERARCHY {
        return None;
    }
    // SAFETY: the slot is this CPU's own, and cgroup directories are changed under a mutex
    // (`cgroup_mutex`), so no other run of this program can hold it.
    let event = unsafe { &mut *CGROUP_SCRATCH.get_ptr_mut(0)? };
    event.id = id(ctx)?;
    event.change = change as u32;
    // `__data_loc`: the low half is the offset of the string in the record.
    // SAFETY: as above.
    let location = unsafe { ctx.read_at::<u32>(CGROUP_PATH.load() as usize) }.ok()? & 0xffff;
    // SAFETY: as above.
    let path = unsafe { ctx.as_ptr().cast::<u8>().add(location as usize) };
    // SAFETY: the helper checks the address and stops at the buffer's end.
    let length =
        unsafe { bpf_probe_read_kernel_str_bytes(path, &mut event.path) }.map_or(0, <[u8]>::len);
    event.length = length as u32;
    let size = (CgroupEvent::HEADER + length).min(size_of::<CgroupEvent>());
    output(event, size);
    Some(())
}

#[inline(always)]
fn id(ctx: &TracePointContext) -> Option<u64> {
    let offset = CGROUP_ID.load() as usize;
    // SAFETY: as in `announce`.
    unsafe {
        if CGROUP_ID_SIZE.load() == 8 {
            ctx.read_at::<u64>(offset).ok()
        } else {
            ctx.read_at::<u32>(offset).ok().map(u64::from)
        }
    }
}

#[inline(always)]
fn output(event: &CgroupEvent, size: usize) {
    let bytes = core::ptr::from_ref(event).cast::<u8>();
    // SAFETY: `size` is within the event.
    let record = unsafe { core::slice::from_raw_parts(bytes, size) };
    if CGROUP_EVENTS.output::<[u8]>(record, 0).is_err() {
        lose(Loss::CgroupRingFull);
    }
}
