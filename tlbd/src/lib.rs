//! tlbd watches address translation on a Linux host.
//!
//! Read the folders in the order the data flows: [`source`] (all kernel I/O and all `unsafe`),
//! [`model`] (pure), [`collector`] (one file each, one registry), [`export`] (readers of the
//! view). [`daemon`] wires them; [`check`], [`capture`] and [`events`] are the other
//! commands.

#![deny(unsafe_code)]

pub mod capture;
pub mod check;
pub mod cli;
pub mod collector;
pub mod config;
pub mod daemon;
pub mod events;
pub mod export;
pub mod model;
mod notify;
#[expect(unsafe_code, reason = "system calls; every other module is free of it")]
pub mod source;
