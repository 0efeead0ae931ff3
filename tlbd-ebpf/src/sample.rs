//! The sampler: one overflow of a perf event adds the event's own period to its key.

use aya_ebpf::{
    macros::perf_event,
    programs::{PerfEventContext, tracing::StackIdContext as _},
};
use tlbd_common::{Loss, Mode, NO_STACK, Role, SampleCount, SampleKey};

use crate::{
    count::count,
    maps::{SAMPLES_0, SAMPLES_1, STACKS_0, STACKS_1, Stacks, epoch, lose},
    task,
};

/// `cpu-clock`: CPU time.
#[perf_event]
fn sample_clock(ctx: PerfEventContext) -> u32 {
    sample(&ctx, Role::Clock);
    0
}

#[inline(always)]
fn sample(ctx: &PerfEventContext, role: Role) {
    let Some(cgroup) = task::busy_cgroup() else {
        return;
    };
    let address = instruction(ctx);
    let mode = Mode::of_address(address);
    let epoch = epoch();
    let mut key = SampleKey {
        cgroup,
        address: 0,
        stack: NO_STACK,
        role: role as u32,
        mode: mode as u32,
    };
    if mode == Mode::Kernel {
        key.address = address;
        key.stack = kernel_stack(ctx, if epoch == 0 { &STACKS_0 } else { &STACKS_1 });
    }
    // SAFETY: the verifier lets perf_event programs read any field of their context.
    let weight = unsafe { (*ctx.ctx).sample_period };
    let one = SampleCount { samples: 1, weight };
    let table = if epoch == 0 { &SAMPLES_0 } else { &SAMPLES_1 };
    count(table, &key, || key.overflow(), &one, Loss::SampleMapFull);
}

/// The sampled instruction.
#[inline(always)]
fn instruction(ctx: &PerfEventContext) -> u64 {
    // SAFETY: the verifier lets perf_event programs read any field of their context.
    let regs = unsafe { &(*ctx.ctx).regs };
    #[cfg(bpf_target_arch = "x86_64")]
    return regs.rip;
    #[cfg(bpf_target_arch = "aarch64")]
    return regs.pc;
}

/// The id of the kernel stack, or [`NO_STACK`] where its map has no room.
#[inline(always)]
fn kernel_stack(ctx: &PerfEventContext, stacks: &'static Stacks) -> i64 {
    match ctx.get_stackid(stacks, 0) {
        Ok(id) => id,
        Err(_) => {
            lose(Loss::StackNotKept);
            NO_STACK
        }
    }
}
