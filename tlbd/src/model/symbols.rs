//! Kernel addresses to function names, from `/proc/kallsyms`.
//!
//! Names are folded: what the compiler split or cloned (`.isra.0`, `.cold`) is one function, and
//! families that kernels rename (`__fget_light`, `fdget`) are joined by an alias table, so that a
//! series means the same on the next kernel. Modules and BPF programs keep their tag.

use std::{
    collections::HashMap,
    io::{self, BufRead},
    sync::Arc,
};

/// Longest function name that is kept; the kernel's own limit is 512 (`KSYM_NAME_LEN`).
const NAME_MAX: usize = 128;

/// The text symbols of a kernel, by address.
#[derive(Debug)]
pub struct Symbols {
    /// Start addresses, ascending.
    starts: Vec<u64>,
    /// Where each one's name starts in `names`; one more entry at the end.
    offsets: Vec<u32>,
    /// The folded names, one after the other.
    names: String,
}

/// Why a kallsyms file gives no symbols.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Every address is zero: the kernel hides them from this process.
    #[error("every address in kallsyms is zero: the kernel hides symbols from this process")]
    Hidden,
    /// There is no text symbol in it.
    #[error("kallsyms has no text symbols")]
    Empty,
    /// It could not be read.
    #[error("reading kallsyms: {0}")]
    Read(#[from] io::Error),
}

impl Symbols {
    /// Parses a kallsyms file (`address type name [module]` a line); lines of another form are
    /// passed over.
    ///
    /// # Errors
    /// [`Error::Hidden`] if it holds addresses and all are zero, [`Error::Empty`] if it holds no
    /// text symbol, [`Error::Read`] if reading fails.
    pub fn parse(mut kallsyms: impl BufRead, aliases: &Aliases) -> Result<Self, Error> {
        let mut found: Vec<(u64, u32, u32)> = Vec::new();
        let mut names = String::new();
        let mut line = Vec::new();
        let mut text_symbols = 0_usize;
        loop {
            line.clear();
            if kallsyms.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let Some((address, name, module)) =
                std::str::from_utf8(&line).ok().and_then(text_symbol)
            else {
                continue;
            };
            text_symbols += 1;
            let start = names.len();
            if address == 0 || start > (u32::MAX as usize) - 2 * NAME_MAX {
                continue;
            }
            push_name(&mut names, aliases, name, module);
            found.push((address, to_u32(start), to_u32(names.len())));
        }
        match (found.is_empty(), text_symbols) {
            (true, 0) => Err(Error::Empty),
            (true, _) => Err(Error::Hidden),
            (false, _) => Ok(Self::sorted(found, &names)),
        }
    }

    fn sorted(mut found: Vec<(u64, u32, u32)>, names: &str) -> Self {
        // Of several names for one address the first one listed wins, as in the kernel's lookup.
        found.sort_by_key(|&(address, start, _)| (address, start));
        found.dedup_by_key(|&mut (address, ..)| address);
        let mut symbols = Self {
            starts: Vec::with_capacity(found.len()),
            offsets: Vec::with_capacity(found.len() + 1),
            names: String::with_capacity(names.len()),
        };
        for (address, start, end) in found {
            symbols.starts.push(address);
            symbols.offsets.push(to_u32(symbols.names.len()));
            symbols
                .names
                .push_str(names.get(start as usize..end as usize).unwrap_or_default());
        }
        symbols.offsets.push(to_u32(symbols.names.len()));
        symbols.names.shrink_to_fit();
        symbols
    }

    /// The function that an address is in: the last one that starts at or before it.
    #[must_use]
    pub fn resolve(&self, address: u64) -> Option<&str> {
        let index = self
            .starts
            .partition_point(|&start| start <= address)
            .checked_sub(1)?;
        let start = *self.offsets.get(index)? as usize;
        let end = *self.offsets.get(index + 1)? as usize;
        self.names.get(start..end)
    }

    /// How many functions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Never true: a table without symbols is an [`Error`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }
}

fn to_u32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The address, name and module of a line that names code.
fn text_symbol(line: &str) -> Option<(u64, &str, Option<&str>)> {
    let mut fields = line.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let kind = fields.next()?;
    let name = fields.next()?;
    let module = fields
        .next()
        .and_then(|tag| tag.strip_prefix('[')?.strip_suffix(']'));
    // `t`, `T` text and `w`, `W` weak text, of which only code is weak in kallsyms.
    matches!(kind, "t" | "T" | "w" | "W").then_some((address, name, module))
}

fn push_name(names: &mut String, aliases: &Aliases, name: &str, module: Option<&str>) {
    let folded = aliases.join(fold(name));
    names.push_str(cut(folded));
    if let Some(module) = module {
        names.push_str(" [");
        names.push_str(cut(module));
        names.push(']');
    }
}

fn cut(name: &str) -> &str {
    let end = name
        .char_indices()
        .map(|(at, _)| at)
        .take_while(|&at| at <= NAME_MAX)
        .last();
    match end {
        Some(end) if name.len() > NAME_MAX => name.get(..end).unwrap_or(name),
        _ => name,
    }
}

/// Takes off what the compiler, the linker and the BPF loader add to a function's name.
///
/// GCC and Clang mark clones and parts with a dot (`.isra.0`, `.constprop.0`, `.part.0`, `.cold`,
/// `.llvm.123`); no C function has a dot in its name. The kernel names a BPF program
/// `bpf_prog_<tag>_<name>` with a tag that is a hash of its code (`bpf_get_prog_name`,
/// `kernel/bpf/core.c`).
#[must_use]
pub fn fold(name: &str) -> &str {
    if let Some(rest) = name.strip_prefix("bpf_prog_") {
        return match rest.split_once('_') {
            Some((tag, program)) if tag.len() == 16 && !program.is_empty() => program,
            _ => name,
        };
    }
    match name.split_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

/// Function families that kernels rename, each under one name.
#[derive(Debug, Default)]
pub struct Aliases {
    joined: HashMap<String, Arc<str>>,
}

/// An alias file with a line that is not `name = "..."` or `name = [..]`.
#[derive(Debug, thiserror::Error)]
#[error("alias table: {0}")]
pub struct AliasError(#[from] toml::de::Error);

impl Aliases {
    /// The table that tlbd ships.
    pub const SHIPPED: &str = include_str!("../../data/aliases.toml");

    /// Parses a table: each key is the name to show, its value the list of names it stands for.
    ///
    /// # Errors
    /// If the text is not TOML of that form.
    pub fn parse(table: &str) -> Result<Self, AliasError> {
        let families: HashMap<String, Vec<String>> = toml::from_str(table)?;
        let mut joined = HashMap::new();
        for (shown, members) in families {
            let shown: Arc<str> = shown.into();
            joined.extend(members.into_iter().map(|member| (member, shown.clone())));
        }
        Ok(Self { joined })
    }

    /// The family's name, or the name itself.
    #[must_use]
    pub fn join<'a>(&'a self, name: &'a str) -> &'a str {
        self.joined.get(name).map_or(name, |shown| shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KALLSYMS: &str = "\
ffffffff81000000 T _stext
ffffffff81000100 t tcp_poll
ffffffff81000200 t __fget_light
ffffffff81000200 t alias_listed_later
ffffffff81000300 t do_sys_poll.isra.0
ffffffff81000400 D some_data
ffffffff81000500 t do_sys_poll.cold
ffffffffc0001000 t nf_hook [nf_tables]
ffffffffc0002000 t bpf_prog_6deef7357e7b4530_sample_clock [bpf]
";

    fn symbols() -> Symbols {
        Symbols::parse(
            KALLSYMS.as_bytes(),
            &Aliases::parse(Aliases::SHIPPED).unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn an_address_belongs_to_the_function_that_starts_before_it() {
        let symbols = symbols();
        assert_eq!(symbols.resolve(0xffff_ffff_8100_0100), Some("tcp_poll"));
        assert_eq!(symbols.resolve(0xffff_ffff_8100_01ff), Some("tcp_poll"));
        assert_eq!(symbols.resolve(0xffff_ffff_80ff_ffff), None);
    }

    #[test]
    fn clones_fold_and_families_join() {
        let symbols = symbols();
        assert_eq!(symbols.resolve(0xffff_ffff_8100_0300), Some("do_sys_poll"));
        assert_eq!(symbols.resolve(0xffff_ffff_8100_0500), Some("do_sys_poll"));
        assert_eq!(symbols.resolve(0xffff_ffff_8100_0200), Some("fget_light"));
    }

    #[test]
    fn data_is_not_code() {
        assert_eq!(
            symbols().resolve(0xffff_ffff_8100_0400),
            Some("do_sys_poll")
        );
    }

    #[test]
    fn modules_and_bpf_programs_keep_their_tag_and_lose_their_hash() {
        let symbols = symbols();
        assert_eq!(
            symbols.resolve(0xffff_ffff_c000_1010),
            Some("nf_hook [nf_tables]")
        );
        assert_eq!(
            symbols.resolve(0xffff_ffff_c000_2010),
            Some("sample_clock [bpf]")
        );
    }

    #[test]
    fn zeroed_addresses_are_an_error_and_not_one_function() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 t tcp_poll\n";
        let error = Symbols::parse(hidden.as_bytes(), &Aliases::default()).unwrap_err();
        assert!(matches!(error, Error::Hidden));
        let empty = Symbols::parse(&b""[..], &Aliases::default()).unwrap_err();
        assert!(matches!(empty, Error::Empty));
    }

    #[test]
    fn every_shipped_alias_points_to_one_family() {
        let families: HashMap<String, Vec<String>> = toml::from_str(Aliases::SHIPPED).unwrap();
        let members: Vec<_> = families.values().flatten().collect();
        let distinct: std::collections::HashSet<_> = members.iter().collect();
        assert_eq!(members.len(), distinct.len());
        assert!(
            families
                .get("fget_light")
                .unwrap()
                .contains(&"fdget".to_owned())
        );
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_fail_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000), address: u64) {
            if let Ok(symbols) = Symbols::parse(&bytes[..], &Aliases::default()) {
                let _ = symbols.resolve(address);
            }
        }

        #[test]
        fn hostile_lines_parse_without_panic(lines in "([0-9a-f]{1,17} [tTwWdD] \\PC{0,200}( \\[\\PC{0,9}\\])?\n){0,9}", address: u64) {
            if let Ok(symbols) = Symbols::parse(lines.as_bytes(), &Aliases::default()) {
                let _ = symbols.resolve(address);
            }
        }
    }
}
