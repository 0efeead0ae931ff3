//! tracefs: where the kernel describes its tracepoints.

use std::{
    fs, io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    path::PathBuf,
};

use super::{Unavailable, root::Root};
use crate::model::tracepoint::Format;

/// Where distributions mount it.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// An open tracefs.
#[derive(Debug)]
pub struct Tracefs {
    folder: PathBuf,
    /// Keeps a mount of our own alive; it vanishes with this descriptor.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds tracefs. Where nobody mounted it, makes a mount that has no place in the tree of
    /// files: only this process sees it, and it ends with this value, so the host stays as it is.
    ///
    /// # Errors
    /// If it is mounted nowhere and cannot be mounted.
    pub fn open() -> Result<Self, Unavailable> {
        for place in PLACES {
            let folder = PathBuf::from(place);
            match fs::read_dir(folder.join("events")) {
                Ok(_) => {
                    return Ok(Self {
                        folder,
                        _mount: None,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    let tried = format!("reading {place}");
                    return Err(Unavailable::from_io(tried, &error, "CAP_DAC_READ_SEARCH"));
                }
                Err(_) => {}
            }
        }
        let mount = mount().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Unavailable::NotMounted {
                filesystem: "tracefs",
            },
            _ => Unavailable::Kernel {
                lacks: format!("mountable tracefs ({error})"),
            },
        })?;
        let folder = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Self {
            folder,
            _mount: Some(mount),
        })
    }

    /// The format of a tracepoint.
    ///
    /// # Errors
    /// If the kernel has no such tracepoint, or describes it in a way we do not understand.
    pub fn format(&self, group: &str, name: &str) -> Result<Format, Unavailable> {
        let path = self
            .folder
            .join("events")
            .join(group)
            .join(name)
            .join("format");
        let text = Root::host()
            .read_text(&path)
            .map_err(|error| match error.error.kind() {
                io::ErrorKind::NotFound => Unavailable::Kernel {
                    lacks: format!("tracepoint {group}:{name}"),
                },
                _ => Unavailable::from_io(error.to_string(), &error.error, "CAP_DAC_READ_SEARCH"),
            })?;
        Format::parse(&text).ok_or_else(|| Unavailable::File {
            path: path.display().to_string(),
            error: "not a tracepoint format".into(),
        })
    }
}

/// A detached mount of tracefs (`fsopen(2)`, `fsmount(2)`; Linux 5.2).
fn mount() -> io::Result<OwnedFd> {
    // SAFETY: the name is a C string; the call makes a descriptor or fails.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), 1) })?;
    const CMD_CREATE: libc::c_uint = 6; // FSCONFIG_CMD_CREATE, include/uapi/linux/mount.h
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: the descriptor is open, and this command takes neither key nor value.
    let made = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            CMD_CREATE,
            none,
            none,
            0,
        )
    };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open; the call makes a descriptor or fails.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0) })
}

fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    let fd = i32::try_from(result).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a system call just made this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
