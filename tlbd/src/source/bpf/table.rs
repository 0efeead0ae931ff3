//! Reading a whole counting map at once and leaving it empty.
//!
//! aya reads maps entry by entry; the kernel's batch commands (`BPF_MAP_LOOKUP_AND_DELETE_BATCH`,
//! Linux 5.6) take thousands of entries in one call.

use std::{
    collections::HashMap,
    hash::Hash,
    io,
    ops::AddAssign,
    os::fd::{AsRawFd as _, BorrowedFd},
};

use tlbd_common::{FaultKey, FlushCount, FlushKey, SampleCount, SampleKey};

/// `enum bpf_cmd`, `include/uapi/linux/bpf.h`.
const UPDATE_ELEM: libc::c_long = 2;
const LOOKUP_AND_DELETE_BATCH: libc::c_long = 25;

/// Entries asked for in one call. A call needs room for a whole bucket, and buckets hold a few.
const BATCH: usize = 1024;

/// A type that any bytes make a value of, without padding.
///
/// # Safety
/// `repr(C)` or a primitive integer, of integers only, and without implicit padding.
pub(super) unsafe trait Plain: Copy + Default {}

// SAFETY: a primitive integer.
unsafe impl Plain for u32 {}
// SAFETY: a primitive integer.
unsafe impl Plain for u64 {}
// SAFETY: `repr(C)`, integers only, size asserted where it is defined.
unsafe impl Plain for SampleCount {}
// SAFETY: as above.
unsafe impl Plain for FlushCount {}

/// The keys, which have no sensible default of their own.
///
/// # Safety
/// As [`Plain`].
pub(super) unsafe trait PlainKey: Copy + Eq + Hash {
    /// Any value, to make room with.
    const BLANK: Self;
}

// SAFETY: `repr(C)`, integers only, size asserted where it is defined.
unsafe impl PlainKey for SampleKey {
    const BLANK: Self = Self {
        cgroup: 0,
        address: 0,
        stack: 0,
        role: 0,
        mode: 0,
    };
}
// SAFETY: as above.
unsafe impl PlainKey for FaultKey {
    const BLANK: Self = Self {
        cgroup: 0,
        mode: 0,
        access: 0,
    };
}
// SAFETY: as above.
unsafe impl PlainKey for FlushKey {
    const BLANK: Self = Self {
        cgroup: 0,
        reason: 0,
        zero: 0,
    };
}

/// The batch commands' part of `union bpf_attr`.
#[repr(C)]
struct BatchAttr {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

/// The single-entry commands' part of `union bpf_attr`.
#[repr(C)]
struct ElemAttr {
    map_fd: u32,
    zero: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Takes every entry out of a hash map whose values are `lanes` times a `V` (the possible CPUs
/// for a per-CPU map, else 1) and adds the lanes up.
///
/// # Errors
/// What the kernel says; entries that were taken before the error are in `into`.
pub(super) fn drain<K: PlainKey, V: Plain + AddAssign>(
    map: BorrowedFd<'_>,
    lanes: usize,
    into: &mut HashMap<K, V>,
) -> io::Result<()> {
    let mut keys = vec![K::BLANK; BATCH];
    let mut values = vec![V::default(); BATCH * lanes];
    let mut position: Option<u32> = None;
    loop {
        let (next, count, last) = take(map, position, &mut keys, &mut values)?;
        for (key, value) in keys.iter().zip(values.chunks(lanes)).take(count) {
            let total = into.entry(*key).or_default();
            value.iter().for_each(|lane| *total += *lane);
        }
        if last {
            return Ok(());
        }
        position = Some(next);
    }
}

/// One call: where to go on, how many entries came, and whether they were the last.
fn take<K: PlainKey, V: Plain>(
    map: BorrowedFd<'_>,
    position: Option<u32>,
    keys: &mut [K],
    values: &mut [V],
) -> io::Result<(u32, usize, bool)> {
    // A hash map's position is the number of a bucket, 4 bytes.
    let (from, mut next) = (position.unwrap_or_default(), 0_u32);
    let mut attr = BatchAttr {
        in_batch: position.map_or(0, |_| address(&raw const from)),
        out_batch: address(&raw mut next),
        keys: address(keys.as_mut_ptr()),
        values: address(values.as_mut_ptr()),
        count: u32::try_from(keys.len()).unwrap_or(u32::MAX),
        map_fd: descriptor(map),
        elem_flags: 0,
        flags: 0,
    };
    // SAFETY: the attribute's pointers are to live memory of the sizes the kernel will fill:
    // `count` keys of the map's key size, as many values of its value size times its lanes (the
    // caller names the types that the map was made with), and 4 bytes of position.
    let result = unsafe { bpf(LOOKUP_AND_DELETE_BATCH, &raw mut attr) };
    let count = (attr.count as usize).min(keys.len());
    match result {
        Ok(()) => Ok((next, count, false)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok((next, count, true)),
        Err(error) => Err(error),
    }
}

/// Puts an entry of `lanes` zero values into a map, unless it is there.
///
/// # Errors
/// What the kernel says, `E2BIG` if the map is full.
pub(super) fn put_zero<K: PlainKey, V: Plain>(
    map: BorrowedFd<'_>,
    lanes: usize,
    key: &K,
) -> io::Result<()> {
    let zeros = vec![V::default(); lanes];
    put(map, key, &zeros)
}

/// Sets the only entry of an array map.
///
/// # Errors
/// What the kernel says.
pub(super) fn set_first(map: BorrowedFd<'_>, value: u32) -> io::Result<()> {
    put(map, &0_u32, &[value])
}

fn put<K: Copy, V: Plain>(map: BorrowedFd<'_>, key: &K, value: &[V]) -> io::Result<()> {
    let mut attr = ElemAttr {
        map_fd: descriptor(map),
        zero: 0,
        key: address(std::ptr::from_ref(key)),
        value: address(value.as_ptr()),
        flags: 0,
    };
    // SAFETY: key and value are live and as large as the map's, which the caller made with them.
    unsafe { bpf(UPDATE_ELEM, &raw mut attr) }
}

/// The `bpf(2)` system call.
///
/// # Safety
/// `attr` is the part of `union bpf_attr` that belongs to the command, and its pointers are to
/// live memory of the sizes that the map has.
unsafe fn bpf<A>(command: libc::c_long, attr: *mut A) -> io::Result<()> {
    // SAFETY: as the caller promises.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attr, size_of::<A>()) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

fn descriptor(map: BorrowedFd<'_>) -> u32 {
    // An open descriptor is never negative.
    map.as_raw_fd().unsigned_abs()
}
