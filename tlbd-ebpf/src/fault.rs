//! Page faults, from the tracepoints at the head of the x86 fault handler.

use aya_ebpf::{macros::tracepoint, programs::TracePointContext};
use tlbd_common::{FaultKey, Loss, Mode};

use crate::{
    count::count,
    maps::{FAULT_ERROR_CODE, FAULTS_0, FAULTS_1, epoch},
    task,
};

/// `exceptions:page_fault_user(unsigned long address, struct pt_regs *regs, unsigned long error_code)`
#[tracepoint]
fn page_fault_user(ctx: TracePointContext) -> u32 {
    fault(&ctx, Mode::User);
    0
}

/// `exceptions:page_fault_kernel(unsigned long address, struct pt_regs *regs, unsigned long error_code)`
#[tracepoint]
fn page_fault_kernel(ctx: TracePointContext) -> u32 {
    fault(&ctx, Mode::Kernel);
    0
}

#[inline(always)]
fn fault(ctx: &TracePointContext, mode: Mode) {
    // SAFETY: the offset comes from this tracepoint's format; the helper checks the address.
    let Ok(error_code) = (unsafe { ctx.read_at::<u64>(FAULT_ERROR_CODE.load() as usize) }) else {
        return;
    };
    let key = FaultKey::new(task::cgroup(), mode, error_code);
    let table = if epoch() == 0 { &FAULTS_0 } else { &FAULTS_1 };
    count(table, &key, || key.overflow(), &1, Loss::FaultMapFull);
}
