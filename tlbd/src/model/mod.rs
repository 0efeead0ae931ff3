//! Pure logic: no file, no clock, no thread, no kernel. Everything here is tested without root.

pub mod accounts;
pub mod cgroups;
pub mod cpu_list;
pub mod ledger;
pub mod memory_stat;
pub mod period;
pub mod plausible;
pub mod printable;
pub mod smaps;
pub mod symbols;
pub mod thp;
pub mod tracepoint;
pub mod uarch;
pub mod view;
