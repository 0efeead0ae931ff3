//! Who the CPU of a host is: CPUID by way of `/proc/cpuinfo`, or `MIDR_EL1` from sysfs.

use procfs::{CpuInfo, FromRead as _};

use super::root::{self, Root};
use crate::model::uarch::CpuId;

const CPUINFO: &str = "/proc/cpuinfo";
/// Of the boot CPU; Linux has it since 4.11 (`arch/arm64/kernel/cpuinfo.c`).
const MIDR: &str = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";

/// Why nobody knows who the CPU is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither file can be read.
    #[error(transparent)]
    Unreadable(#[from] root::Error),
    /// They can, and do not say it.
    #[error("neither {CPUINFO} (vendor_id, cpu family, model, stepping) nor {MIDR} names the CPU")]
    Unnamed,
}

/// The identity of a host's first CPU.
///
/// # Errors
/// If the files cannot be read or do not say it.
pub fn identity(root: &Root) -> Result<CpuId, Error> {
    if let Ok(midr) = root.read_text(MIDR) {
        return arm(&midr).ok_or(Error::Unnamed);
    }
    x86(&root.read(CPUINFO)?).ok_or(Error::Unnamed)
}

fn arm(text: &str) -> Option<CpuId> {
    // 64 bits, of which the upper half is reserved.
    let midr = u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()?;
    let midr = u32::try_from(midr).ok()?;
    Some(CpuId::Arm { midr })
}

fn x86(text: &[u8]) -> Option<CpuId> {
    let info = CpuInfo::from_read(text).ok()?;
    let number = |field| info.get_field(0, field)?.parse::<u32>().ok();
    let id = CpuId::X86 {
        vendor: info.vendor_id(0)?.trim().to_owned(),
        family: number("cpu family")?,
        model: number("model")?,
        stepping: Some(number("stepping")?),
    };
    // Only what could be written on a command line is a name.
    id.to_string().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use proptest::prelude::*;

    use super::*;

    fn host(path: &str, text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        folder
    }

    fn found(path: &str, text: &str) -> Result<String, Error> {
        let host = host(path, text);
        identity(&Root::captured(host.path())).map(|id| id.to_string())
    }

    #[test]
    fn an_x86_cpu_is_named_as_on_the_command_line() {
        let text = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\
                    model name\t: Xeon\nstepping\t: 4\n\nprocessor\t: 1\n\n";
        assert_eq!(found(CPUINFO, text).unwrap(), "GenuineIntel-6-55-4");
    }

    #[test]
    fn an_arm_cpu_is_its_midr() {
        let text = "0x00000000410fd490\n";
        assert_eq!(found(MIDR, text).unwrap(), "0x410fd490");
    }

    #[test]
    fn a_host_that_does_not_say_gets_an_error_that_says_where_it_was_looked_for() {
        for text in ["", "processor : 0\nmodel name : x\n", "\u{0}"] {
            let error = found(CPUINFO, text).unwrap_err().to_string();
            assert!(
                error.contains("vendor_id") && error.contains("midr_el1"),
                "{error}"
            );
        }
        assert!(matches!(found(MIDR, "x"), Err(Error::Unnamed)));
        let nothing = identity(&Root::captured(Path::new("/nonexistent")));
        assert!(nothing.unwrap_err().to_string().contains(CPUINFO));
    }

    proptest! {
        #[test]
        fn no_file_panics(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            text in "(processor|vendor_id|cpu family|model|stepping|[: \\n\\t]|[0-9]|GenuineIntel)*",
        ) {
            for bytes in [&bytes[..], text.as_bytes()] {
                let _ = x86(bytes);
                let _ = arm(&String::from_utf8_lossy(bytes));
            }
        }
    }
}
