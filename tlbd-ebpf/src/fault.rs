//! Page faults, from the tracepoints at the head of the x86 fault handler.
//!
//! A busy service faults a million times a second, so these are raw tracepoints: they hand over
//! the arguments themselves, where the others first write a record to read them from.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};
use tlbd_common::{FaultKey, Loss, Mode};

use crate::{
    count::count,
    maps::{FAULTS_0, FAULTS_1, epoch},
    task,
};

/// `page_fault_user(unsigned long address, struct pt_regs *regs, unsigned long error_code)`
#[raw_tracepoint(tracepoint = "page_fault_user")]
fn page_fault_user(ctx: RawTracePointContext) -> i32 {
    fault(Mode::User, ctx.arg(2));
    0
}

/// `page_fault_kernel(unsigned long address, struct pt_regs *regs, unsigned long error_code)`
#[raw_tracepoint(tracepoint = "page_fault_kernel")]
fn page_fault_kernel(ctx: RawTracePointContext) -> i32 {
    fault(Mode::Kernel, ctx.arg(2));
    0
}

#[inline(always)]
fn fault(mode: Mode, error_code: u64) {
    let key = FaultKey::new(task::cgroup(), mode, error_code);
    let table = if epoch() == 0 { &FAULTS_0 } else { &FAULTS_1 };
    count(table, &key, || key.overflow(), &1, Loss::FaultMapFull);
}
