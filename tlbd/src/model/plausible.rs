//! Whether a file of `/proc` is what the parser that takes it expects.
//!
//! The procfs crate panics on some files that no kernel writes but a captured folder may hold: a
//! number of kilobytes that is no number of bytes, a `stat` that is cut within a name.

/// More digits than any number of kilobytes or pages of a machine has.
const DIGITS_MAX: usize = 15;

/// Whether this may be a `meminfo` or an `smaps_rollup`: plain text, with numbers that leave room
/// for a factor of 1,024.
#[must_use]
pub fn is_sizes(text: &[u8]) -> bool {
    let mut digits = text.split(|byte| !byte.is_ascii_digit());
    text.is_ascii() && digits.all(|number| number.len() <= DIGITS_MAX)
}

/// Whether this may be a process's `stat`: its name in brackets, and then fields.
#[must_use]
pub fn is_stat(text: &[u8]) -> bool {
    let open = text.iter().position(|byte| *byte == b'(');
    let close = text.iter().rposition(|byte| *byte == b')');
    let (Some(open), Some(close)) = (open, close) else {
        return false;
    };
    let pid = text.get(..open).unwrap_or_default();
    let fields = text.get(close + 1..).unwrap_or_default().trim_ascii_end();
    open < close
        && pid.first().is_some_and(u8::is_ascii_digit)
        && pid.ends_with(b" ")
        && fields.starts_with(b" ")
        && fields.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_files_are_plausible() {
        assert!(is_sizes(include_bytes!(
            "../../../tests/fixtures/meminfo/6.12.txt"
        )));
        assert!(is_sizes(include_bytes!(
            "../../../tests/fixtures/smaps_rollup/6.12.txt"
        )));
        assert!(is_stat(b"7 (a) b) (c) S 1 7 7\n"));
    }

    #[test]
    fn what_the_parser_would_choke_on_is_not() {
        assert!(!is_sizes(b"Rss: 18446744073709551615 kB\n"));
        assert!(!is_sizes("R\u{e9}: 1 kB\n".as_bytes()));
        for stat in [
            &b"7 (load)"[..],
            b"7 (load) ",
            b"7 load S",
            b"7 )load( S 1",
            b"(load) S 1",
            b"7 (load)   \n",
            b"",
        ] {
            assert!(!is_stat(stat), "{stat:?}");
        }
    }
}
