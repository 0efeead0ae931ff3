//! A tracepoint's `format` file: where its fields are in a record, and what its codes mean.
//!
//! Offsets and status names differ between kernels, so they are read at start and never written
//! down. The format is described in `Documentation/trace/events.rst`, section 2.2.

/// A field of a tracepoint's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, without the brackets of an array.
    pub name: String,
    /// Bytes from the start of the record.
    pub offset: u32,
    /// Bytes that it takes.
    pub size: u32,
}

/// What a `format` file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// The number to open the tracepoint with.
    pub id: u64,
    /// Its fields, in order.
    pub fields: Vec<Field>,
    /// The codes and names of the first `__print_symbolic` of the print format.
    pub symbols: Vec<(u64, String)>,
}

impl Format {
    /// Parses a `format` file. `None` if it names no id or no field.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = text
            .lines()
            .find_map(|line| line.strip_prefix("ID:"))?
            .trim()
            .parse()
            .ok()?;
        let fields: Vec<Field> = text.lines().filter_map(field).collect();
        let print = text
            .lines()
            .find(|line| line.starts_with("print fmt:"))
            .unwrap_or_default();
        (!fields.is_empty()).then(|| Self {
            id,
            fields,
            symbols: symbols(print),
        })
    }

    /// The names of the tracepoint's own fields, in order; every record starts with others.
    pub fn own_fields(&self) -> impl Iterator<Item = &str> {
        let names = self.fields.iter().map(|field| field.name.as_str());
        names.filter(|name| !name.starts_with("common_"))
    }

    /// The field of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// `\tfield:unsigned long pages;\toffset:16;\tsize:8;\tsigned:0;`
fn field(line: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let name = declaration.split_ascii_whitespace().last()?;
    let name = name.split('[').next()?.trim_start_matches('*');
    let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
    let size = parts.next()?.strip_prefix("size:")?.parse().ok()?;
    Some(Field {
        name: name.to_owned(),
        offset,
        size,
    })
}

/// `__print_symbolic(REC->reason, { 0, "flush on task switch" }, { 1, "remote shootdown" })`
fn symbols(print: &str) -> Vec<(u64, String)> {
    let Some((_, list)) = print.split_once("__print_symbolic(") else {
        return Vec::new();
    };
    list.split('{')
        .skip(1)
        .map_while(|pair| {
            let (code, rest) = pair.split_once(',')?;
            let name = rest.split('"').nth(1)?;
            Some((number(code.trim())?, name.to_owned()))
        })
        .collect()
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A status name as a label value: lower case, words joined by `_`.
#[must_use]
pub fn label(name: &str) -> String {
    let words: Vec<_> = name
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The formats of one kernel: page_fault_user, tlb_flush, cgroup_mkdir.
    macro_rules! formats {
        ($kernel:literal) => {
            [
                include_str!(concat!(
                    "../../../tests/fixtures/tracefs/",
                    $kernel,
                    "/page_fault_user.format"
                )),
                include_str!(concat!(
                    "../../../tests/fixtures/tracefs/",
                    $kernel,
                    "/tlb_flush.format"
                )),
                include_str!(concat!(
                    "../../../tests/fixtures/tracefs/",
                    $kernel,
                    "/cgroup_mkdir.format"
                )),
            ]
        };
    }
    const KERNELS: [[&str; 3]; 5] = [
        formats!("5.10"),
        formats!("6.1"),
        formats!("6.12"),
        formats!("6.18"),
        formats!("7.2"),
    ];
    const TLB_FLUSH: &str = KERNELS[4][1];

    #[test]
    fn the_fields_that_programs_read_are_found_on_every_kernel() {
        for [fault, flush, mkdir] in
            KERNELS.map(|texts| texts.map(|text| Format::parse(text).unwrap()))
        {
            let place =
                |format: &Format, name| format.field(name).map(|field| (field.offset, field.size));
            assert_eq!(place(&fault, "error_code"), Some((24, 8)));
            assert_eq!(place(&flush, "reason"), Some((8, 4)));
            assert_eq!(place(&flush, "pages"), Some((16, 8)));
            assert_eq!(place(&mkdir, "root"), Some((8, 4)));
            assert_eq!(place(&mkdir, "id"), Some((16, 8)));
            assert_eq!(place(&mkdir, "path"), Some((24, 4)));
            assert_eq!(place(&mkdir, "nothing"), None);
        }
    }

    #[test]
    fn flush_reasons_have_the_names_of_their_kernel() {
        for [_, flush, _] in KERNELS {
            let format = Format::parse(flush).unwrap();
            let names: Vec<_> = format
                .symbols
                .iter()
                .map(|(code, name)| (*code, label(name)))
                .collect();
            assert_eq!(names.first(), Some(&(0, "flush_on_task_switch".to_owned())));
            assert!(names.contains(&(1, "remote_shootdown".to_owned())));
        }
    }

    #[test]
    fn every_cut_of_a_format_parses_or_is_refused() {
        for end in 0..TLB_FLUSH.len() {
            if let Some(cut) = TLB_FLUSH.get(..end) {
                let _ = Format::parse(cut);
            }
        }
        assert_eq!(Format::parse("name: x\nID: 7\nformat:\n"), None);
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused(text in "(ID: \\PC{0,9}\n)?(\\PC{0,60}\n){0,9}") {
            let _ = Format::parse(&text);
        }
    }
}
