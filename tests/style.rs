//! Rules of this workspace that a compiler does not know: who imports whom, sizes, names of
//! metrics, and documents that follow the code.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use tlbd::{
    collector::{METRICS, REGISTRY},
    export::metric::{Kind, Metric},
};

use crate::{
    golden::assert_golden,
    replay::{entries, workspace},
};

/// Longest file, its tests left out.
const FILE_LINES: usize = 400;
const README_LINES: usize = 150;

/// The files below a folder with one of these endings, sorted.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                open.push(path);
            } else if endings
                .iter()
                .any(|end| path.extension().is_some_and(|e| e == *end))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A file's path within the workspace.
fn named(path: &Path) -> String {
    path.strip_prefix(workspace())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Rust files of the product, with what stands in them before their tests.
fn sources(folder: &str) -> Vec<(String, String)> {
    let found = files(&workspace().join(folder), &["rs"]);
    assert!(!found.is_empty(), "{folder} has files");
    let product = found
        .into_iter()
        .filter(|path| !path.ends_with("tests.rs") && !path.ends_with("page/sample.rs"));
    product
        .map(|path| (named(&path), without_tests(&read(&path)).to_owned()))
        .collect()
}

/// The text up to the tests at its end.
fn without_tests(text: &str) -> &str {
    text.split_once("\n#[cfg(test)]\nmod tests {")
        .map_or(text, |(code, _)| code)
}

/// The code without its comments.
fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Every path that `use` items bring in, braces expanded.
fn imports(text: &str) -> Vec<String> {
    let code = without_comments(text);
    let mut found = Vec::new();
    for statement in code.split(';') {
        let Some(at) = statement.lines().position(|line| is_use(line.trim_start())) else {
            continue;
        };
        let tree: String = statement.lines().skip(at).collect();
        let tree = tree.split_once("use ").map_or("", |(_, tree)| tree);
        let tree: String = tree.split_whitespace().collect::<Vec<_>>().join(" ");
        expand("", &tree, &mut found);
    }
    found
}

fn is_use(line: &str) -> bool {
    line.starts_with("use ") || (line.starts_with("pub") && line.contains(" use "))
}

fn expand(prefix: &str, tree: &str, found: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return found.push(format!("{prefix}{}", path.trim()));
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let prefix = format!("{prefix}{}", head.trim());
    let (mut depth, mut start) = (0_i32, 0);
    for (at, character) in inner.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&prefix, inner[start..at].trim(), found);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner[start..].trim().is_empty() {
        expand(&prefix, inner[start..].trim(), found);
    }
}

/// Whether `path` is `root` or something in it.
fn within(path: &str, root: &str) -> bool {
    path.strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Whether a path is written out in the code, outside of `use`: `std::fs::read(...)`.
fn spelt_out(code: &str, root: &str) -> bool {
    let root = format!("{root}::");
    code.match_indices(&root).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':')
    })
}

/// What is wrong with the imports of a folder's files.
fn forbidden_imports(sources: &[(String, String)], forbidden: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, text) in sources {
        for import in imports(text) {
            for root in forbidden.iter().filter(|root| within(&import, root)) {
                wrong.push(format!("{file} imports {import}: no {root} here"));
            }
        }
        let code = without_comments(text);
        for root in forbidden.iter().filter(|root| spelt_out(&code, root)) {
            wrong.push(format!("{file} names {root}"));
        }
    }
    wrong
}

fn assert_imports(folder: &str, forbidden: &[&str]) {
    let wrong = forbidden_imports(&sources(folder), forbidden);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_reader_of_imports_sees_through_braces_and_comments() {
    let text = "use std::{\n    collections::HashMap, // not std::net\n    fs::{self, File},\n};\n\
        pub use crate::model::view::View as V;\nfn f() { libc::getpid(); }\n// use aya::Ebpf;\n";
    let found = imports(text);
    assert_eq!(
        found,
        [
            "std::collections::HashMap",
            "std::fs::self",
            "std::fs::File",
            "crate::model::view::View"
        ]
    );
    let wrong = forbidden_imports(
        &[("x.rs".into(), text.into())],
        &["std::fs", "libc", "aya", "std::net"],
    );
    assert_eq!(wrong.len(), 3, "{wrong:#?}");
}

#[test]
fn the_model_is_pure() {
    assert_imports(
        "tlbd/src/model",
        &[
            "crate::source",
            "crate::collector",
            "crate::export",
            "crate::daemon",
            "crate::config",
            "aya",
            "libc",
            "std::fs",
            "std::net",
            "std::thread",
            "std::env",
            "std::process",
            "tokio",
        ],
    );
}

#[test]
fn collectors_reach_the_kernel_through_source_only() {
    assert_imports(
        "tlbd/src/collector",
        &[
            "aya",
            "libc",
            "std::fs",
            "std::net",
            "std::process",
            "tokio",
            "crate::daemon",
        ],
    );
}

#[test]
fn exports_read_views_and_nothing_else() {
    assert_imports(
        "tlbd/src/export",
        &[
            "crate::source",
            "crate::collector",
            "crate::daemon",
            "std::fs",
            "aya",
            "libc",
        ],
    );
}

#[test]
fn sources_know_neither_collectors_nor_exports() {
    assert_imports(
        "tlbd/src/source",
        &["crate::collector", "crate::export", "crate::daemon"],
    );
}

#[test]
fn unsafe_is_in_source_and_in_the_bpf_programs_only() {
    for (file, text) in sources("tlbd/src") {
        let code = without_comments(&text);
        let is_unsafe = code.contains("unsafe {") || code.contains("unsafe fn ");
        assert!(!is_unsafe || file.starts_with("tlbd/src/source"), "{file}");
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for folder in ["tlbd/src", "tlbd-common/src", "tlbd-ebpf/src", "tests"] {
        for path in files(&workspace().join(folder), &["rs"]) {
            let first = read(&path);
            let about_tests = path.ends_with("tests.rs");
            assert!(first.starts_with("//! ") || about_tests, "{}", named(&path));
        }
    }
}

#[test]
fn no_file_is_long() {
    for folder in ["tlbd/src", "tlbd-common/src", "tlbd-ebpf/src"] {
        for (file, text) in sources(folder) {
            let lines = text.lines().count();
            assert!(lines <= FILE_LINES, "{file}: {lines} lines");
        }
    }
}

#[test]
fn every_collector_is_in_the_registry() {
    let folder = workspace().join("tlbd/src/collector");
    let list = read(&folder.join("mod.rs"));
    for path in files(&folder, &["rs"]) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name == "mod" {
            continue;
        }
        assert!(
            list.contains(&format!("mod {name};")),
            "{name} is no module"
        );
        if read(&path).contains("const ENTRY: Entry") {
            assert!(
                list.contains(&format!(" {name}::ENTRY,")),
                "{name} is not in REGISTRY"
            );
        }
    }
}

#[test]
fn collectors_have_names_of_their_own() {
    let mut seen = BTreeSet::new();
    for entry in REGISTRY {
        assert!(
            is_snake_case(entry.name) && seen.insert(entry.name),
            "{}",
            entry.name
        );
        assert!(
            !entry.answers.is_empty() && !entry.answers.ends_with('.'),
            "{}",
            entry.name
        );
    }
}

fn metrics() -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().copied().flatten().copied()
}

fn is_snake_case(name: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(good) && !name.contains("__") && !name.ends_with('_') && !name.starts_with('_')
}

#[test]
fn metrics_are_named_by_the_rules() {
    let mut seen = BTreeSet::new();
    for metric in metrics() {
        let name = metric.name;
        assert!(name.starts_with("tlbd_") && is_snake_case(name), "{name}");
        assert!(seen.insert(name), "{name} is declared twice");
        assert_eq!(
            name.ends_with("_total"),
            metric.kind == Kind::Counter,
            "{name}"
        );
        assert_eq!(name.ends_with("_info"), metric.kind == Kind::Info, "{name}");
        assert!(
            !metric.help.is_empty() && !metric.help.ends_with('.'),
            "{name}"
        );
        assert!(!metric.help.contains('\n'), "{name}");
        for label in metric.labels {
            assert!(
                is_snake_case(label) && *label != "le" && *label != "quantile",
                "{name}"
            );
        }
    }
    assert!(seen.len() > 20);
}

/// The names of metrics in a text: words that start with `tlbd_`.
fn metric_words(text: &str) -> BTreeSet<&str> {
    let in_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = text.split(|c| !in_word(c));
    words.filter(|word| word.starts_with("tlbd_")).collect()
}

#[test]
fn dashboards_and_rules_use_declared_metrics_only() {
    let declared: BTreeSet<&str> = metrics().map(|metric| metric.name).collect();
    let mut used = files(&workspace().join("dashboards"), &["json"]);
    assert!(!used.is_empty(), "there are dashboards");
    used.extend(files(&workspace().join("deploy"), &["yml", "yaml"]));
    for path in used {
        let text = read(&path);
        let unknown: Vec<_> = metric_words(&text)
            .into_iter()
            .filter(|word| !declared.contains(word))
            .collect();
        assert!(unknown.is_empty(), "{}: {unknown:?}", named(&path));
    }
}

#[test]
fn documents_name_declared_metrics_only() {
    let declared: BTreeSet<&str> = metrics().map(|metric| metric.name).collect();
    let mut used = files(&workspace().join("docs"), &["md"]);
    used.push(workspace().join("README.md"));
    for path in used {
        let text = read(&path);
        // `tlbd_cgroup_*` stands for several; crates have underscores in code.
        let unknown: Vec<_> = metric_words(&text)
            .into_iter()
            .filter(|word| !word.ends_with('_') && !["tlbd_common", "tlbd_ebpf"].contains(word))
            .filter(|word| !declared.contains(word))
            .collect();
        assert!(unknown.is_empty(), "{}: {unknown:?}", named(&path));
    }
}

#[test]
fn the_readme_is_short() {
    let lines = read(&workspace().join("README.md")).lines().count();
    assert!(lines <= README_LINES, "{lines} lines");
}

/// `docs/metrics.md`, from the registry.
fn metrics_document() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         Generated from the code by `UPDATE_GOLDEN=1 cargo test --test main metrics_document`.\n\n\
         All series of a scrape come from one tick. A series that was not measured is absent, never zero. `other` sums up what\n\
         the bounds `max_cgroups` and `max_functions` keep from having series, `unknown` what has no name, and `retired`\n\
         what is gone; the sum over a family is all that was counted.\n",
    );
    for (entry, metrics) in REGISTRY.iter().map(Some).chain([None]).zip(METRICS) {
        match entry {
            Some(entry) => write!(text, "\n## {}\n\n{}.\n", entry.name, capital(entry.answers)),
            None => write!(text, "\n## The collectors and the series themselves\n"),
        }
        .unwrap();
        text += "\n| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n";
        for metric in metrics {
            let kind = match metric.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Info => "info",
            };
            let labels: Vec<_> = metric
                .labels
                .iter()
                .map(|label| format!("`{label}`"))
                .collect();
            let help = metric.help.replace('|', "\\|");
            writeln!(
                text,
                "| `{}` | {kind} | {} | {help} |",
                metric.name,
                labels.join(", ")
            )
            .unwrap();
        }
    }
    text
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

#[test]
fn the_metrics_document_is_what_the_registry_says() {
    assert_golden("docs/metrics.md", &metrics_document());
}
