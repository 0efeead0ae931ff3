//! Adding to a counting map so that nothing vanishes: to the key, or to its overflow key.

use core::arch::asm;

use aya_ebpf::{
    bindings::BPF_NOEXIST,
    maps::{HashMap, PerCpuHashMap},
};
use tlbd_common::{FlushCount, Loss, SampleCount};

use crate::maps::lose;

/// A hash map of counts, shared or per CPU.
pub(crate) trait Table<K, V> {
    /// The slot of a key that is there.
    fn slot(&self, key: &K) -> Option<*mut V>;
    /// Makes a slot; fails where one is there already or the map is full.
    fn make(&self, key: &K, zero: &V);
}

impl<K, V> Table<K, V> for HashMap<K, V> {
    #[inline(always)]
    fn slot(&self, key: &K) -> Option<*mut V> {
        self.get_ptr_mut(key)
    }
    #[inline(always)]
    fn make(&self, key: &K, zero: &V) {
        let _ = self.insert(key, zero, u64::from(BPF_NOEXIST));
    }
}

impl<K, V> Table<K, V> for PerCpuHashMap<K, V> {
    #[inline(always)]
    fn slot(&self, key: &K) -> Option<*mut V> {
        self.get_ptr_mut(key)
    }
    #[inline(always)]
    fn make(&self, key: &K, zero: &V) {
        let _ = self.insert(key, zero, u64::from(BPF_NOEXIST));
    }
}

/// A count that a program may add to while another CPU or an interrupt adds too.
pub(crate) trait Count: Sized {
    /// The count of a fresh slot.
    const ZERO: Self;
    /// Adds `self` to the slot.
    ///
    /// # Safety
    /// `slot` comes from a lookup in a map of this type, in this run of the program.
    unsafe fn add_to(&self, slot: *mut Self);
}

/// Adds to one word of a slot, atomically: even a per-CPU slot is shared with interrupts and,
/// where programs may be preempted, with the next task on the CPU.
///
/// # Safety
/// `word` points to an aligned word of a map value that the verifier let this program hold.
#[inline(always)]
unsafe fn add(word: *mut u64, amount: u64) {
    // The target declares no atomic read-modify-write (it cannot have all of them on every
    // kernel), but every kernel has this instruction (`BPF_ATOMIC | BPF_ADD`).
    // SAFETY: as the caller promises; map values are 8-byte aligned.
    unsafe {
        asm!("lock *(u64 *)({word} + 0) += {amount}", word = in(reg) word, amount = in(reg) amount)
    };
}

impl Count for u64 {
    const ZERO: Self = 0;
    #[inline(always)]
    unsafe fn add_to(&self, slot: *mut Self) {
        // SAFETY: `slot` is a map value of this type.
        unsafe { add(slot, *self) }
    }
}

impl Count for SampleCount {
    const ZERO: Self = Self {
        samples: 0,
        weight: 0,
    };
    #[inline(always)]
    unsafe fn add_to(&self, slot: *mut Self) {
        // SAFETY: `slot` is a map value of this type.
        unsafe {
            add(&raw mut (*slot).samples, self.samples);
            add(&raw mut (*slot).weight, self.weight);
        }
    }
}

impl Count for FlushCount {
    const ZERO: Self = Self {
        flushes: 0,
        full: 0,
        pages: 0,
    };
    #[inline(always)]
    unsafe fn add_to(&self, slot: *mut Self) {
        // SAFETY: `slot` is a map value of this type.
        unsafe {
            add(&raw mut (*slot).flushes, self.flushes);
            // A flush is of the one kind or of the other, and atomics cost.
            if self.full > 0 {
                add(&raw mut (*slot).full, self.full);
            } else {
                add(&raw mut (*slot).pages, self.pages);
            }
        }
    }
}

/// Adds `count` under `key`; where the map has no room, under `overflow`, which the daemon put
/// there beforehand, and to the loss counter.
#[inline(always)]
pub(crate) fn count<K, V: Count>(
    table: &impl Table<K, V>,
    key: &K,
    overflow: impl FnOnce() -> K,
    count: &V,
    loss: Loss,
) {
    let mut slot = table.slot(key);
    if slot.is_none() {
        // Made empty first, so that two CPUs with the same new key both add to it.
        table.make(key, &V::ZERO);
        slot = table.slot(key);
    }
    if slot.is_none() {
        lose(loss);
        slot = table.slot(&overflow());
    }
    if let Some(slot) = slot {
        // SAFETY: `slot` was looked up above, in this run.
        unsafe { count.add_to(slot) };
    }
}
