//! What needs neither root nor BPF: the real binary on a captured host, and the workspace itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed test is to end with a backtrace"
)]

mod bounds;
mod cli;
mod events;
mod golden;
mod hostile;
mod http;
mod prometheus;
mod replay;
mod service;
mod style;
#[allow(dead_code, reason = "the other test binary uses the rest")]
mod support;
