//! TLB flushes, from the tracepoint in x86's flush code: raw, as page faults are.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};
use tlbd_common::{FlushCount, FlushKey, Loss};

use crate::{
    count::count,
    maps::{FLUSHES_0, FLUSHES_1, epoch},
    task,
};

/// `tlb_flush(int reason, unsigned long pages)`
#[raw_tracepoint(tracepoint = "tlb_flush")]
fn tlb_flush(ctx: RawTracePointContext) -> i32 {
    // A flush on an idle CPU delays nobody.
    if let Some(cgroup) = task::busy_cgroup() {
        flush(cgroup, ctx.arg(0), ctx.arg(1));
    }
    0
}

#[inline(always)]
fn flush(cgroup: u64, reason: u32, pages: u64) {
    let key = FlushKey::new(cgroup, reason);
    let table = if epoch() == 0 { &FLUSHES_0 } else { &FLUSHES_1 };
    let one = FlushCount::one(pages);
    count(table, &key, || key.overflow(), &one, Loss::FlushMapFull);
}
