//! Names that the outside world chose, made fit for a label, a log line and a page.

use std::fmt::Write as _;

/// Longest name that is kept, in bytes before escapes.
const NAME_MAX: usize = 1024;

/// The name as UTF-8 without control characters: bytes that are not UTF-8, and control
/// characters, become `\xNN`; all else, spaces and quotes and backslashes too, stays as it is.
/// Names longer than 1,024 bytes are cut and end in `...`.
#[must_use]
pub fn printable(name: &[u8]) -> String {
    let (kept, cut) = match name.get(..NAME_MAX) {
        Some(kept) if name.len() > NAME_MAX => (kept, true),
        _ => (name, false),
    };
    let mut shown = String::with_capacity(kept.len());
    for chunk in kept.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                let mut buffer = [0; 4];
                escape(&mut shown, character.encode_utf8(&mut buffer).as_bytes());
            } else {
                shown.push(character);
            }
        }
        escape(&mut shown, chunk.invalid());
    }
    if cut {
        shown.push_str("...");
    }
    shown
}

fn escape(shown: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(shown, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_names_stay() {
        assert_eq!(
            printable(b"/system.slice/dev-disk\\x2dby.mount"),
            "/system.slice/dev-disk\\x2dby.mount"
        );
        assert_eq!(printable("/caf\u{e9} \"x\"".as_bytes()), "/caf\u{e9} \"x\"");
    }

    #[test]
    fn control_characters_and_broken_utf8_are_spelt_out() {
        assert_eq!(printable(b"/a\nb\x1b[31m\xff"), "/a\\x0ab\\x1b[31m\\xff");
    }

    #[test]
    fn long_names_are_cut() {
        let shown = printable(&[b'a'; 5000]);
        assert_eq!(shown.len(), NAME_MAX + 3);
    }

    proptest! {
        #[test]
        fn no_control_character_is_left(name in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert!(!printable(&name).contains(char::is_control));
        }
    }
}
