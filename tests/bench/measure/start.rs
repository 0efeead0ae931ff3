//! Time from the start to the first complete view.

use crate::{
    Bench,
    daemon::Daemon,
    report::{Report, Spread},
};

pub fn measure(_: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let daemon = Daemon::start(&[])?;
        wall.push(daemon.started_in.as_secs_f64());
        cpu.push(daemon.cpu_time()?.as_secs_f64());
    }
    report.bounded(
        "start to first complete view",
        Spread::of(wall),
        "s",
        1.0,
        "from spawn to /readyz 200, wall time",
    );
    report.row(
        "  CPU time until then",
        Spread::of(cpu),
        "s",
        "its CPU clock",
    );
    Ok(())
}
