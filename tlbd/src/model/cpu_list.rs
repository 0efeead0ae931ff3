//! The kernel's way to write a set of CPUs: `0-3,8` (`Documentation/admin-guide/cputopology.rst`).

/// More CPUs than any kernel supports.
const CPU_MAX: u32 = 1 << 16;

/// The CPUs of a list, ascending as written. `None` if it is no list or names no CPU.
#[must_use]
pub fn parse(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last >= CPU_MAX || cpus.len() >= CPU_MAX as usize {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_and_single_cpus_mix() {
        assert_eq!(parse("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse("0"), Some(vec![0]));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "x", "3-1", "0-", "0-4294967295", "-1"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused(text: String) {
            let _ = parse(&text);
        }
    }
}
