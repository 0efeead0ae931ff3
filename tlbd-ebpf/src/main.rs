//! tlbd's BPF programs: read a context, ask `tlbd-common` where it belongs, add to a map.

#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]

mod cgroup;
mod count;
mod fault;
mod flush;
mod maps;
mod sample;
mod task;

#[cfg(not(test))]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    // The programs have no panicking path; the verifier would refuse one that could get here.
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
