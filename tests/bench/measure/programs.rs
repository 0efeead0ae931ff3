//! Nanoseconds per run of each BPF program, by the kernel's run statistics, under loads that run
//! it as often as they can.

use crate::{
    Bench,
    cgroups::Tree,
    daemon::{Daemon, Scrape},
    load::{HERE, Load},
    report::Report,
};

pub fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let daemon = Daemon::start(&["--bpf-stats=true", "--tick-seconds=2.5", "--smaps=false"])?;
    for (load, start, programs) in LOADS {
        let tree = bench.tree()?;
        let _load = start(bench, &tree)?;
        // The tick in which the load began is left out.
        let first = daemon.next_tick(None)?;
        let last = daemon.next_tick(Some(&daemon.next_tick(Some(&first))?))?;
        for program in *programs {
            program.report(load, &first, &last, report);
        }
    }
    report.note(
        "programs: run statistics include reading the clock, some 20 ns; a sample comes 10 ms after \
         the last, so its code and data are out of the caches"
            .to_owned(),
    );
    Ok(())
}

/// A name, what starts the loads, and the programs that run under them.
type Case = (
    &'static str,
    fn(&Bench, &Tree) -> anyhow::Result<Vec<Load>>,
    &'static [Program],
);

const LOADS: &[Case] = &[
    (
        "user load, no kernel stack",
        |bench, _| Load::on_each_cpu(bench.cpus, "spin"),
        &[SAMPLER],
    ),
    (
        "kernel load, with stacks",
        |bench, _| Load::on_each_cpu(bench.cpus, "kernel"),
        &[SAMPLER],
    ),
    (
        "touching fresh pages",
        |bench, _| Load::on_each_cpu(bench.cpus, "touch"),
        &[USER_FAULTS],
    ),
    (
        "fork and exec",
        |bench, _| Load::on_each_cpu(bench.cpus, "exec"),
        &[USER_FAULTS, program("page_fault_kernel", Some(60.0))],
    ),
    (
        "switches, mprotect, munmap",
        |_, _| {
            Ok(vec![
                Load::start(HERE, "switch")?,
                Load::start(HERE, "unmap")?,
            ])
        },
        &[program("tlb_flush", None)],
    ),
    (
        "100 cgroups a second",
        |_, tree| Ok(vec![Load::start(&tree.cgroup("parent")?, "cgroups")?]),
        &[program("cgroup_mkdir", None), program("cgroup_rmdir", None)],
    ),
];

const SAMPLER: Program = program("sample_clock", Some(2000.0));
const USER_FAULTS: Program = program("page_fault_user", Some(60.0));

const fn program(name: &'static str, bound: Option<f64>) -> Program {
    Program { name, bound }
}

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
        let how = format!("run statistics of {runs:.0} runs");
        match self.bound {
            Some(bound) => report.bounded(&what, nanoseconds, "ns/run", bound, &how),
            None => report.row(&what, nanoseconds, "ns/run", &how),
        }
    }
}
