//! What needs root and BPF: the real programs on the running kernel, against truth from outside
//! tlbd (`cpu.stat`, `ru_minflt`, `smaps_rollup`, `perf`).
//!
//! The tests take turns, since each loads the machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed test is to end with a backtrace"
)]

#[path = "privileged/host.rs"]
mod host;
#[allow(dead_code, reason = "the other test binary uses the rest")]
mod support;

#[path = "privileged/cpu_time.rs"]
mod cpu_time;
#[path = "privileged/lifecycle.rs"]
mod lifecycle;
#[path = "privileged/maps.rs"]
mod maps;
#[path = "privileged/memory.rs"]
mod memory;
#[path = "privileged/tracepoints.rs"]
mod tracepoints;
