//! What this process may do: its effective capabilities, by name.

use super::root::Root;

/// A capability that tlbd can use, and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Its bit (`include/uapi/linux/capability.h`).
    bit: u32,
    /// The kernel's name of it.
    pub name: &'static str,
    /// What is missing without it.
    pub purpose: &'static str,
}

/// Every capability that tlbd can use. CAP_SYS_ADMIN stands for the first two on kernels before
/// 5.8, and mounts tracefs where nobody did.
pub const WANTED: [Capability; 6] = [
    Capability {
        bit: 39,
        name: "CAP_BPF",
        purpose: "load the programs that count samples, page faults and TLB flushes",
    },
    Capability {
        bit: 38,
        name: "CAP_PERFMON",
        purpose: "open perf events on every CPU",
    },
    Capability {
        bit: 34,
        name: "CAP_SYSLOG",
        purpose: "read the names of kernel functions",
    },
    Capability {
        bit: 19,
        name: "CAP_SYS_PTRACE",
        purpose: "read the smaps of other users' processes",
    },
    Capability {
        bit: 2,
        name: "CAP_DAC_READ_SEARCH",
        purpose: "read tracefs and other users' files",
    },
    Capability {
        bit: 21,
        name: "CAP_SYS_ADMIN",
        purpose: "reach tracefs where it is not mounted",
    },
];

/// The capabilities that this process lacks; all of them if that cannot be read.
#[must_use]
pub fn missing(root: &Root) -> Vec<Capability> {
    let status = root.read_text("/proc/self/status").unwrap_or_default();
    let effective = effective(&status);
    WANTED
        .into_iter()
        .filter(|wanted| effective & (1 << wanted.bit) == 0)
        .collect()
}

fn effective(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_read_from_the_status() {
        assert_eq!(
            effective("Name:\tx\nCapEff:\t000001fffeffffff\n"),
            0x1ff_feff_ffff
        );
        assert_eq!(effective("Name:\tx\n"), 0);
        assert_eq!(effective("CapEff:\tzz\n"), 0);
    }
}
