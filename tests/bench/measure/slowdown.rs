//! What tlbd costs the programs it watches: the CPU time of fixed work with and without it.

use crate::{
    Bench,
    daemon::Daemon,
    load::{HERE, Load},
    report::{Report, Spread},
};

use super::pause;

const PAIRS: usize = 5;
const WORK: &[(&str, &str, &str, &str)] = &[
    (
        "fault-heavy program",
        "touch-rounds",
        "300",
        "600,000 first touches of pages",
    ),
    (
        "switch-heavy program",
        "switch-rounds",
        "150000",
        "300,000 switches between two processes",
    ),
];

pub fn measure(_: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let mut times = vec![(Vec::new(), Vec::new()); WORK.len()];
    for _ in 0..PAIRS {
        for (work, times) in WORK.iter().zip(&mut times) {
            times.0.push(cpu_seconds(work)?);
        }
        let daemon = Daemon::start(&[])?;
        // Until after its second tick, which comes after 1 s.
        pause(1.3);
        for (work, times) in WORK.iter().zip(&mut times) {
            times.1.push(cpu_seconds(work)?);
        }
        drop(daemon);
    }
    for ((what, _, _, how), (without, with)) in WORK.iter().zip(times) {
        let pairs = with
            .iter()
            .zip(&without)
            .map(|(with, without)| (with / without - 1.0) * 100.0);
        let pairs = Spread::of(pairs);
        let (without, with) = (Spread::of(without), Spread::of(with));
        let slowdown = (with.median() / without.median() - 1.0) * 100.0;
        let how = format!(
            "{how}: {without} CPU s without, {with} with; ratio of medians; by pairs {pairs}"
        );
        report.row(&format!("slowdown of a {what}"), slowdown, "%", &how);
    }
    Ok(())
}

fn cpu_seconds((_, kind, rounds, _): &(&str, &str, &str, &str)) -> anyhow::Result<f64> {
    Ok(Load::with(HERE, kind, &[rounds])?.finish()?.as_secs_f64())
}
