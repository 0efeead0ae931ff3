//! A cgroup's `memory.stat`, of either version.
//!
//! Version 2: `Documentation/admin-guide/cgroup-v2.rst`, "Memory Interface Files". Version 1:
//! `Documentation/admin-guide/cgroup-v1/memory.rst`, section 5.2. Both count descendants too
//! (version 1 in its `total_` fields), so the two mean the same here.

use crate::model::view::CgroupMemory;

/// Parses a `memory.stat`; fields that are missing or no numbers are `None`.
#[must_use]
pub fn parse(text: &str) -> CgroupMemory {
    let mut memory = CgroupMemory::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else {
            continue;
        };
        let field = match name {
            "anon" | "total_rss" => &mut memory.anon,
            "file" | "total_cache" => &mut memory.file,
            "shmem" | "total_shmem" => &mut memory.shmem,
            "anon_thp" | "total_rss_huge" => &mut memory.anon_huge,
            "file_thp" => &mut memory.file_huge,
            "shmem_thp" => &mut memory.shmem_huge,
            "pagetables" => &mut memory.page_tables,
            "sec_pagetables" => &mut memory.secondary_page_tables,
            // Version 1's `shmem` and `cache` without `total_` leave descendants out; its `shmem`
            // line comes before `total_shmem`, which then takes its place.
            _ => continue,
        };
        if let Ok(bytes) = value.trim().parse() {
            *field = Some(bytes);
        }
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const V2: [&str; 3] = [
        include_str!("../../../tests/fixtures/memory_stat/v2-5.10.txt"),
        include_str!("../../../tests/fixtures/memory_stat/v2-6.12.txt"),
        include_str!("../../../tests/fixtures/memory_stat/v2-7.2.txt"),
    ];
    const V1: &str = include_str!("../../../tests/fixtures/memory_stat/v1-6.18.txt");

    fn field(text: &str, name: &str) -> Option<u64> {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map(|value| value.parse().unwrap())
    }

    #[test]
    fn version_2_gives_what_its_kernel_has() {
        for text in V2 {
            let memory = parse(text);
            assert_eq!(memory.anon, field(text, "anon"));
            assert_eq!(memory.anon_huge, field(text, "anon_thp"));
            assert_eq!(memory.page_tables, field(text, "pagetables"));
            assert_eq!(memory.secondary_page_tables, field(text, "sec_pagetables"));
            assert!(memory.anon_huge > Some(0), "the capture had huge pages");
        }
    }

    #[test]
    fn version_1_counts_descendants_and_has_no_page_tables() {
        let memory = parse(V1);
        assert_eq!(memory.anon, field(V1, "total_rss"));
        assert_eq!(memory.anon_huge, field(V1, "total_rss_huge"));
        assert_eq!(memory.file, field(V1, "total_cache"));
        assert_eq!(memory.shmem, field(V1, "total_shmem"));
        assert_eq!(memory.page_tables, None);
    }

    #[test]
    fn a_cut_file_gives_what_is_whole() {
        let memory = parse("anon 4096\nfile 81");
        assert_eq!((memory.anon, memory.anon_huge), (Some(4096), None));
    }

    proptest! {
        #[test]
        fn any_text_parses(text: String) {
            let _ = parse(&text);
        }
    }
}
