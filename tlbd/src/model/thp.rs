//! The files of `/sys/kernel/mm/transparent_hugepage`: one word chosen among several, or a number.

/// The value of a setting: the word in brackets (`always [madvise] never`), or the whole text if
/// it is a single word. `None` for anything else.
#[must_use]
pub fn chosen(text: &str) -> Option<&str> {
    let text = text.trim();
    match text.split_once('[') {
        Some((_, rest)) => rest
            .split_once(']')
            .map(|(word, _)| word)
            .filter(|word| !word.is_empty()),
        None => (!text.is_empty() && !text.contains(char::is_whitespace)).then_some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bracketed_word_or_the_only_word_is_the_value() {
        assert_eq!(chosen("always defer [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("2097152\n"), Some("2097152"));
        for odd in ["", "[", "[]", "a b"] {
            assert_eq!(chosen(odd), None, "{odd:?}");
        }
    }
}
