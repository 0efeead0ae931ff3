//! Which machine the figures are from.

use std::{fs, process::Command, thread};

pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

pub fn is_root() -> bool {
    // SAFETY: the call has no argument and cannot fail.
    #[allow(unsafe_code, reason = "there is no safe way to ask")]
    let user = unsafe { libc::geteuid() };
    user == 0
}

/// CPU, kernel, date, and who else was busy.
pub fn describe() -> String {
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown CPU", |model| {
        model.trim_start_matches([' ', '\t', ':'])
    });
    let virtual_machine = if cpuinfo.contains(" hypervisor") {
        ", virtual machine"
    } else {
        ""
    };
    let kernel = read("/proc/sys/kernel/osrelease");
    let loads: Vec<String> = read("/proc/loadavg")
        .split(' ')
        .take(3)
        .map(str::to_owned)
        .collect();
    let date = Command::new("date")
        .args(["-u", "+%Y-%m-%d %H:%M UTC"])
        .output();
    let date = date.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    format!(
        "tlbd {} on {model}, {} CPUs{virtual_machine}, Linux {}, {}, load average before: {}",
        env!("CARGO_PKG_VERSION"),
        cpus(),
        kernel.trim(),
        date.unwrap_or_default(),
        loads.join(" ")
    )
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
