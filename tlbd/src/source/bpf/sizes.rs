//! How big the BPF maps are: what one tick can bring, with room to spare.

/// Room for cgroups that fault or flush within one tick, times the kinds of each.
const COUNTED_KEYS: u32 = 16_384;

/// Capacities of the maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    samples: u32,
    stacks: u32,
}

impl Sizes {
    /// For so many CPUs sampled so often: at most each sample of a tick has a key of its own.
    ///
    /// Stacks are the big ones (1 KiB each in the kernel, allocated at once) and hash into
    /// buckets of one, so there are four times as many as distinct stacks are likely, and at
    /// most 16 MiB in each map of the pair.
    #[must_use]
    pub fn new(cpus: usize, sample_hz: u32, tick_seconds: f64) -> Self {
        let a_tick = cpus as f64 * f64::from(sample_hz) * tick_seconds.max(1.0);
        let fit =
            |entries: f64, most: f64| (entries.clamp(4096.0, most) as u32).next_power_of_two();
        Self {
            samples: fit(a_tick * 1.5, 262_144.0),
            stacks: fit(a_tick, 16_384.0),
        }
    }

    /// The capacity of each counting map, by name.
    pub fn by_map(&self) -> impl Iterator<Item = (&'static str, u32)> {
        [
            ("SAMPLES_0", self.samples),
            ("SAMPLES_1", self.samples),
            ("STACKS_0", self.stacks),
            ("STACKS_1", self.stacks),
            ("FAULTS_0", COUNTED_KEYS),
            ("FAULTS_1", COUNTED_KEYS),
            ("FLUSHES_0", COUNTED_KEYS),
            ("FLUSHES_1", COUNTED_KEYS),
        ]
        .into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_big_host_has_room_for_a_tick_and_bounded_stacks() {
        let big = Sizes::new(128, 99, 5.0);
        assert!(big.samples >= 128 * 99 * 5);
        assert_eq!(big.stacks, 16_384);
        assert_eq!(
            Sizes::new(2, 99, 5.0),
            Sizes {
                samples: 4096,
                stacks: 4096
            }
        );
    }
}
