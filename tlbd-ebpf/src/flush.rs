//! TLB flushes, from the tracepoint in x86's flush code.

use aya_ebpf::{macros::tracepoint, programs::TracePointContext};
use tlbd_common::{FlushCount, FlushKey, Loss};

use crate::{
    count::count,
    maps::{FLUSH_PAGES, FLUSH_REASON, FLUSHES_0, FLUSHES_1, epoch},
    task,
};

/// `tlb:tlb_flush(int reason, unsigned long pages)`
#[tracepoint]
fn tlb_flush(ctx: TracePointContext) -> u32 {
    flush(&ctx);
    0
}

#[inline(always)]
fn flush(ctx: &TracePointContext) -> Option<()> {
    // A flush on an idle CPU delays nobody.
    let cgroup = task::busy_cgroup()?;
    // SAFETY: the offsets come from this tracepoint's format; the helper checks the addresses.
    let (reason, pages) = unsafe {
        (
            ctx.read_at::<u32>(FLUSH_REASON.load() as usize).ok()?,
            ctx.read_at::<u64>(FLUSH_PAGES.load() as usize).ok()?,
        )
    };
    let key = FlushKey::new(cgroup, reason);
    let table = if epoch() == 0 { &FLUSHES_0 } else { &FLUSHES_1 };
    count(
        table,
        &key,
        || key.overflow(),
        &FlushCount::one(pages),
        Loss::FlushMapFull,
    );
    Some(())
}
