//! The measurements, a file each.

pub mod memory;
pub mod perf;
pub mod programs;
pub mod scrape;
pub mod share;
pub mod slowdown;
pub mod start;

use std::{thread, time::Duration};

fn pause(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}
