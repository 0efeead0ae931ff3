use proptest::prelude::*;

use super::*;
use crate::model::view::{CollectorRow, HostMemory};

fn down(collector: &'static str, reason: &str) -> CollectorRow {
    CollectorRow {
        collector,
        up: false,
        reason: reason.into(),
        seconds: 0.0,
    }
}

/// The page's text between the section with this title and the next.
fn section_of(page: &str, title: &str) -> String {
    let start = page.find(&format!("<h2>{title}</h2>")).unwrap();
    page[start..].split("</section>").next().unwrap().to_owned()
}

#[test]
fn a_view_without_anything_shows_dashes_and_no_zero() {
    let page = page(&sample::empty());
    let body = page.split("</style>").nth(1).unwrap();
    assert!(body.contains("Not measured here."));
    assert!(
        !body.contains("0.0 %") && !body.contains("0 B") && !body.contains("0.0 s"),
        "{body}"
    );
    assert!(body.contains("<b>\u{2013}</b><small>of anonymous memory in huge pages</small>"));
}

#[test]
fn a_missing_kind_of_memory_is_a_dash_and_a_measured_zero_is_a_zero() {
    let mut view = sample::empty();
    view.memory = Some(HostMemory {
        bytes: vec![("anon", 4096), ("shmem_huge", 0)],
        ..Default::default()
    });
    let host = section_of(&page(&view), "Huge pages of the host");
    assert!(
        host.contains("<td>4.0 KiB</td><td>\u{2013}</td><td>\u{2013}</td>"),
        "{host}"
    );
    assert!(
        host.contains("<td>\u{2013}</td><td>0 B</td><td>\u{2013}</td>"),
        "{host}"
    );
}

#[test]
fn a_kind_of_count_that_no_cgroup_has_is_a_dash() {
    let mut view = sample::busy(2);
    for row in &mut view.cgroups {
        row.counts.flushes = Default::default();
    }
    let page = page(&view);
    let cgroups = section_of(&page, "Cgroups");
    assert_eq!(cgroups.matches("<td>\u{2013}</td></tr>").count(), 5);
    assert!(section_of(&page, "TLB flushes by reason").contains("Not measured here."));
}

#[test]
fn what_is_down_is_named_with_its_reason_before_anything_else() {
    let mut view = sample::busy(2);
    view.collectors.push(down(
        "tlb_flush",
        "no tracefs: mount -t tracefs nodev /sys/kernel/tracing",
    ));
    let page = page(&view);
    let missing = section_of(&page, "What is missing here, and why");
    assert!(missing.contains("<dt>tlb_flush</dt><dd>no tracefs: mount"));
    assert!(missing.contains("this virtual machine has no hardware counters"));
    assert!(page.find("What is missing").unwrap() < page.find("<h2>Cgroups").unwrap());
}

#[test]
fn where_nothing_is_missing_one_line_says_so() {
    let mut view = sample::busy(2);
    view.pmu.source = "perf".into();
    view.pmu.name = "cpu".into();
    let page = page(&view);
    assert!(page.contains("Nothing is missing"));
    assert!(!page.contains("<section class=\"missing\">"));
}

#[test]
fn special_rows_come_last_and_are_set_apart() {
    let page = page(&sample::busy(40));
    let cgroups = section_of(&page, "Cgroups");
    let (other, last) = (
        cgroups.find("special\"><td>other").unwrap(),
        cgroups.find("/system.slice/worker-14.").unwrap(),
    );
    assert!(other > last);
    assert!(cgroups.find("and 25 more cgroups").unwrap() < other);
    assert!(!cgroups.contains("worker-15."));
}

#[test]
fn callers_are_a_shortened_chain() {
    let functions = section_of(&page(&sample::busy(1)), "Kernel functions");
    let chain = "_copy_to_iter \u{2190} skb_copy_datagram_iter \u{2190} tcp_recvmsg_locked \u{2190} \
                 tcp_recvmsg \u{2190} \u{2026}</td>";
    assert!(functions.contains(chain), "{functions}");
}

#[test]
fn names_cannot_write_html() {
    let mut view = sample::busy(1);
    view.cgroups[0].cgroup = "<script>alert(1)</script>\"'&".into();
    view.functions[0].function = "</td><img src=x>".into();
    view.collectors.push(down("smaps", "</style><script>"));
    let page = page(&view);
    assert!(!page.contains("<script") && !page.contains("<img"));
    assert!(page.contains("&lt;script&gt;alert(1)"));
}

#[test]
fn the_page_is_small_whatever_the_view_holds() {
    let page = page(&sample::busy(5000));
    assert!(page.len() < 64 << 10, "{}", page.len());
    for outside in ["http://", "https://", "<script", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

proptest! {
    #[test]
    fn any_name_and_any_count_makes_a_page(
        name in "\\PC{0,2000}", cpu in 0..u64::MAX / 8, anon in any::<u64>(), huge in any::<u64>()
    ) {
        let mut view = sample::busy(1);
        view.cgroups[0].cgroup = name.as_str().into();
        view.cgroups[0].counts.cpu_ns = [cpu, cpu];
        view.cgroup_memory[0].memory.anon = Some(anon);
        view.cgroup_memory[0].memory.anon_huge = Some(huge);
        prop_assert!(page(&view).ends_with("</html>"));
    }
}
