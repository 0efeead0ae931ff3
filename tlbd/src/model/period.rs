//! How far apart samples are.

/// Nanoseconds between samples. A prime near the frequency asked for, so that the clock does not
/// keep step with the kernel's tick or a program's own period.
#[must_use]
pub fn of_frequency(hz: u32) -> u64 {
    let wanted = 1_000_000_000 / u64::from(hz.max(1));
    (wanted..wanted + 1000)
        .find(|candidate| is_prime(*candidate))
        .unwrap_or(wanted)
}

fn is_prime(number: u64) -> bool {
    number > 2
        && !number.is_multiple_of(2)
        && (3..)
            .step_by(2)
            .take_while(|d| d * d <= number)
            .all(|d| !number.is_multiple_of(d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_is_a_prime_near_the_frequency() {
        let period = of_frequency(99);
        assert!(is_prime(period));
        assert!((1.0 - period as f64 * 99.0 / 1e9).abs() < 1e-4);
    }
}
