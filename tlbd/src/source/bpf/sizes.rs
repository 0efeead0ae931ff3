//! How big the BPF maps are: what one tick can bring, with room to spare.

use super::Settings;

/// Room for cgroups that fault or flush within one tick, times the kinds of each.
const COUNTED_KEYS: u32 = 16_384;

/// Capacities of the maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    samples: u32,
    stacks: u32,
    counted: u32,
}

impl Sizes {
    /// For so many CPUs under these settings: at most each sample of a tick has a key of its own.
    ///
    /// Stacks are the big ones (half a KiB each in the kernel, allocated at once). They hash into
    /// buckets of one, so a map that is a tenth full loses some: there are sixteen places for
    /// each sample of a small host's tick, and 16 MiB in each map of the pair at most.
    pub(super) fn new(cpus: usize, settings: &Settings) -> Self {
        let tick = settings.tick_seconds.max(1.0);
        let samples = cpus as f64 * f64::from(settings.sample_hz) * tick;
        let fit = |entries: f64, most: f64| entries.clamp(4096.0, most) as u32;
        let most = settings.most_keys.unwrap_or(u32::MAX);
        Self {
            samples: fit(samples * 1.5, 262_144.0).min(most),
            // A stack map has a power of two.
            stacks: fit(samples * 16.0, 32_768.0).next_power_of_two(),
            counted: COUNTED_KEYS.min(most),
        }
    }

    /// The capacity of each counting map, by name.
    pub(super) fn by_map(&self) -> impl Iterator<Item = (&'static str, u32)> {
        [
            ("SAMPLES_0", self.samples),
            ("SAMPLES_1", self.samples),
            ("STACKS_0", self.stacks),
            ("STACKS_1", self.stacks),
            ("FAULTS_0", self.counted),
            ("FAULTS_1", self.counted),
            ("FLUSHES_0", self.counted),
            ("FLUSHES_1", self.counted),
        ]
        .into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(cpus: usize, most_keys: Option<u32>) -> Sizes {
        let settings = Settings {
            sample_hz: 99,
            tick_seconds: 5.0,
            stats: false,
            most_keys,
        };
        Sizes::new(cpus, &settings)
    }

    #[test]
    fn a_big_host_has_room_for_a_tick_and_bounded_stacks() {
        let big = sizes(128, None);
        assert!(big.samples >= 128 * 99 * 5);
        assert_eq!(big.stacks, 32_768);
        let small = sizes(2, None);
        assert_eq!((small.samples, small.stacks), (4096, 16_384));
    }

    #[test]
    fn keys_can_be_bounded() {
        let bounded = sizes(128, Some(32));
        assert_eq!((bounded.samples, bounded.counted), (32, 32));
    }
}
