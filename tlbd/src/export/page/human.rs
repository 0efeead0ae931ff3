//! Figures as people read them; what was not measured is an en dash, never a zero.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Stands where nothing was measured.
pub(super) const ABSENT: &str = "\u{2013}";

/// A figure, or the dash where there is none.
pub(super) fn or_dash<T>(figure: Option<T>, show: impl FnOnce(T) -> String) -> String {
    figure.map_or_else(|| ABSENT.to_owned(), show)
}

/// A count, in groups of three digits.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut shown = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Bytes in the largest binary unit that leaves a whole number.
pub(super) fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = value as f64;
    let mut shown = "B";
    for unit in UNITS {
        // What rounds to 1024 of a unit is shown in the next.
        if scaled < 1023.5 {
            break;
        }
        scaled /= 1024.0;
        shown = unit;
    }
    let decimals = usize::from(shown != "B" && scaled < 99.95);
    format!("{scaled:.decimals$} {shown}")
}

/// Seconds, with as many decimals as tell something.
pub(super) fn seconds(value: f64) -> String {
    if value > 0.0 && value < 0.000_000_5 {
        "< 1 \u{b5}s".to_owned()
    } else if value > 0.0 && value < 0.000_999_5 {
        format!("{:.0} \u{b5}s", value * 1e6)
    } else if value > 0.0 && value < 0.999_5 {
        format!("{:.0} ms", value * 1e3)
    } else if value < 99.95 {
        format!("{value:.1} s")
    } else {
        format!("{} s", count(value.round() as u64))
    }
}

/// Nanoseconds as [`seconds`].
pub(super) fn nanoseconds(value: u64) -> String {
    seconds(value as f64 / 1e9)
}

/// The share of `part` in `whole`, in percent; none where the whole is nothing.
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// A percentage.
pub(super) fn percent(value: f64) -> String {
    if value > 0.0 && value < 0.05 {
        "< 0.1 %".to_owned()
    } else {
        format!("{value:.1} %")
    }
}

/// How long ago, in the largest fitting unit.
pub(super) fn age(value: Duration) -> String {
    let seconds = value.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", count(seconds / 86_400)),
    }
}

/// A time in UTC: `2026-01-31 09:05:00 UTC`; the dash for times before 1970.
pub(super) fn utc(time: SystemTime) -> String {
    or_dash(time.duration_since(UNIX_EPOCH).ok(), |since| {
        let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    })
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar
/// ("civil from days", <https://howardhinnant.github.io/date_algorithms.html>): years begin in
/// March, so that the leap day is the last of a year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The name without its middle if it has more than `limit` characters: beginnings tell the slice,
/// ends tell the unit.
pub(super) fn shortened(name: &str, limit: usize) -> String {
    let length = name.chars().count();
    if length <= limit {
        return name.to_owned();
    }
    let front = limit / 3;
    let back = limit.saturating_sub(front + 1);
    let mut shown: String = name.chars().take(front).collect();
    shown.push('\u{2026}');
    shown.extend(name.chars().skip(length - back));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_are_grouped() {
        let shown = [0, 999, 1000, 1_234_567].map(count);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn bytes_take_the_unit_that_fits() {
        for (value, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (100 << 20, "100 MiB"),
            ((1 << 30) - 1, "1.0 GiB"),
            (u64::MAX, "16384 PiB"),
        ] {
            assert_eq!(bytes(value), shown);
        }
    }

    #[test]
    fn seconds_take_the_unit_that_fits() {
        for (value, shown) in [
            (0.0, "0.0 s"),
            (1e-9, "< 1 \u{b5}s"),
            (12e-6, "12 \u{b5}s"),
            (0.9996e-3, "1 ms"),
            (0.25, "250 ms"),
            (0.9996, "1.0 s"),
            (12.34, "12.3 s"),
            (99.96, "100 s"),
            (12345.6, "12,346 s"),
        ] {
            assert_eq!(seconds(value), shown);
        }
    }

    #[test]
    fn a_share_of_nothing_is_absent_and_a_tiny_one_is_not_zero() {
        assert_eq!(or_dash(share(0, 0), percent), ABSENT);
        assert_eq!(or_dash(share(0, 10), percent), "0.0 %");
        assert_eq!(or_dash(share(1, 1_000_000), percent), "< 0.1 %");
        assert_eq!(or_dash(share(1, 3), percent), "33.3 %");
    }

    #[test]
    fn ages_take_the_unit_that_fits() {
        let shown = [0, 119, 120, 7199, 7200, 172_800].map(|s| age(Duration::from_secs(s)));
        assert_eq!(shown, ["0 s", "119 s", "2 min", "119 min", "2 h", "2 days"]);
    }

    #[test]
    fn times_are_gregorian() {
        for (seconds, shown) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (1_763_698_200, "2025-11-21 04:10:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), shown);
        }
        assert_eq!(utc(UNIX_EPOCH - Duration::from_secs(1)), ABSENT);
    }

    proptest! {
        #[test]
        fn shortened_names_keep_both_ends(name in "[a-c/\u{e9}\u{4e2d}]{0,80}", limit in 0..60_usize) {
            let shown = shortened(&name, limit);
            let length = name.chars().count();
            prop_assert!(shown.chars().count() <= limit.max(1) || length <= limit);
            let (front, back) = shown.split_once('\u{2026}').unwrap_or((&shown, ""));
            prop_assert!(name.starts_with(front) && name.ends_with(back));
        }
    }
}
