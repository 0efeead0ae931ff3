//! Nanoseconds per run of each BPF program, by the kernel's run statistics, under loads that run
//! it as often as they can.

use crate::{
    Bench,
    cgroups::Tree,
    daemon::{Daemon, Scrape},
    load::{HERE, Load},
    report::Report,
};

const HOW: &str = "kernel's run statistics (they include reading the clock, some 20 ns)";

pub fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let tree = bench.tree()?;
    let daemon = Daemon::start(&["--bpf-stats=true", "--tick-seconds=2.5", "--smaps=false"])?;
    let cpus = bench.cpus;
    let mut under =
        |name: &str, load: &dyn Fn(&Tree) -> anyhow::Result<Vec<Load>>, programs: &[Program]| {
            let _load = load(&tree)?;
            // The tick in which the load began is left out.
            let first = daemon.next_tick(None)?;
            let mut last = daemon.next_tick(Some(&first))?;
            if programs
                .iter()
                .any(|program| program.name == "sample_clock")
            {
                last = daemon.next_tick(Some(&last))?;
            }
            programs
                .iter()
                .for_each(|program| program.report(name, &first, &last, report));
            anyhow::Ok(())
        };
    let sampler = Program {
        name: "sample_clock",
        bound: Some(2000.0),
    };
    let faults = Program {
        name: "page_fault_user",
        bound: Some(60.0),
    };
    under(
        "user load, no kernel stack",
        &|_| Load::on_each_cpu(cpus, "spin"),
        &[sampler],
    )?;
    under(
        "kernel load, with stacks",
        &|_| Load::on_each_cpu(cpus, "kernel"),
        &[sampler],
    )?;
    under(
        "touching fresh pages",
        &|_| Load::on_each_cpu(cpus, "touch"),
        &[faults],
    )?;
    under(
        "fork and exec",
        &|_| Load::on_each_cpu(cpus, "exec"),
        &[
            faults,
            Program {
                name: "page_fault_kernel",
                ..faults
            },
        ],
    )?;
    let flushes = |_: &Tree| {
        Ok(vec![
            Load::start(HERE, "switch")?,
            Load::start(HERE, "unmap")?,
        ])
    };
    under(
        "switches, mprotect, munmap",
        &flushes,
        &[Program {
            name: "tlb_flush",
            bound: None,
        }],
    )?;
    let cgroups = |tree: &Tree| Ok(vec![Load::start(&tree.cgroup("parent")?, "cgroups")?]);
    let announcers = ["cgroup_mkdir", "cgroup_rmdir"].map(|name| Program { name, bound: None });
    under("100 cgroups a second", &cgroups, &announcers)
}

#[derive(Clone, Copy)]
struct Program {
    name: &'static str,
    bound: Option<f64>,
}

impl Program {
    fn report(&self, load: &str, first: &Scrape, last: &Scrape, report: &mut Report) {
        let grown = |family: &str| {
            let series = format!("{family}{{program=\"{}\"}}", self.name);
            last.value(&series) - first.value(&series)
        };
        let (runs, seconds) = (
            grown("tlbd_bpf_runs_total"),
            grown("tlbd_bpf_run_seconds_total"),
        );
        if runs < 1.0 {
            report.note(format!("programs: {} did not run under: {load}", self.name));
            return;
        }
        let (what, nanoseconds) = (format!("{}: {load}", self.name), seconds / runs * 1e9);
        let how = format!("{runs:.0} runs; {HOW}");
        match self.bound {
            Some(bound) => report.bounded(&what, nanoseconds, "ns/run", bound, &how),
            None => report.row(&what, nanoseconds, "ns/run", &how),
        }
    }
}
