//! Single programs: loading one, hanging it on an event, its run statistics.

use std::{
    error::Error,
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
};

use aya::{
    Ebpf,
    programs::{PerfEvent, Program, RawTracePoint, TracePoint},
    sys::{Stats, enable_stats as aya_enable_stats},
};

use crate::{
    model::view::ProgramRow,
    source::{Unavailable, perf, root::Root},
};

/// Loads a tracepoint program and hangs it on the tracepoint with this id.
pub(super) fn hang_on_tracepoint(
    ebpf: &mut Ebpf,
    name: &str,
    id: u64,
    cpu: u32,
) -> Result<OwnedFd, Unavailable> {
    let program: &mut TracePoint = find(ebpf, name)?;
    program.load().map_err(|error| refusal(name, &error))?;
    let fd = program.fd().map_err(|error| refusal(name, &error))?;
    let event = perf::tracepoint(id, cpu);
    hang(name, event, fd.as_fd())
}

/// Loads a raw-tracepoint program and hangs it on the tracepoint of its own name.
pub(super) fn hang_on_raw_tracepoint(ebpf: &mut Ebpf, name: &str) -> Result<(), Unavailable> {
    let program: &mut RawTracePoint = find(ebpf, name)?;
    program.load().map_err(|error| refusal(name, &error))?;
    match program.attach(name) {
        Ok(_) => Ok(()),
        Err(error) => match os_error(&error) {
            Some(io) if io.kind() == io::ErrorKind::NotFound => {
                let lacks = format!("tracepoint {name}");
                Err(Unavailable::Kernel { lacks })
            }
            Some(io) => Err(Unavailable::from_io(
                format!("attaching {name}"),
                io,
                "CAP_PERFMON",
            )),
            None => Err(refusal(name, &error)),
        },
    }
}

/// Loads a sampler and hangs it on a clock of each CPU.
pub(super) fn hang_on_clock(
    ebpf: &mut Ebpf,
    name: &str,
    period: u64,
    cpus: &[u32],
) -> Result<Vec<OwnedFd>, Unavailable> {
    let program: &mut PerfEvent = find(ebpf, name)?;
    program.load().map_err(|error| refusal(name, &error))?;
    let fd = program.fd().map_err(|error| refusal(name, &error))?;
    cpus.iter()
        .map(|&cpu| hang(name, perf::clock(cpu, period), fd.as_fd()))
        .collect()
}

fn find<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, Unavailable>
where
    &'a mut P: TryFrom<&'a mut Program>,
{
    let program = ebpf
        .program_mut(name)
        .and_then(|program| program.try_into().ok());
    program.ok_or_else(|| Unavailable::Build {
        lacks: format!("the program {name}"),
    })
}

fn hang(
    name: &str,
    event: io::Result<OwnedFd>,
    program: BorrowedFd<'_>,
) -> Result<OwnedFd, Unavailable> {
    let event = event.map_err(|error| {
        Unavailable::from_io(
            format!("opening the event of {name}"),
            &error,
            "CAP_PERFMON",
        )
    })?;
    perf::attach(&event, program).map_err(|error| {
        Unavailable::from_io(format!("attaching {name}"), &error, "CAP_PERFMON")
    })?;
    Ok(event)
}

/// A load error as a reason: permission, or the last line of what the verifier said.
fn refusal(name: &str, error: &(dyn Error + 'static)) -> Unavailable {
    let tried = format!("loading {name}");
    if let Some(io) = os_error(error)
        && io.kind() == io::ErrorKind::PermissionDenied
    {
        return Unavailable::from_io(tried, io, "CAP_BPF");
    }
    let text = chain(error);
    let last = text
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    Unavailable::Refused {
        tried,
        error: last.unwrap_or("unknown error").to_owned(),
    }
}

fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// The system call's error at the bottom of one of aya's.
pub(super) fn os_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    std::iter::successors(Some(error), |error| (*error).source())
        .find_map(|error| error.downcast_ref::<io::Error>())
}

/// Asks the kernel to keep run statistics for as long as the descriptor is open.
pub(super) fn enable_stats() -> Option<OwnedFd> {
    aya_enable_stats(Stats::RunTime).ok()
}

/// Run time and runs of each loaded program, from its descriptor's `fdinfo`.
pub(super) fn stats(ebpf: &Ebpf) -> Vec<ProgramRow> {
    let fds = ebpf.programs().filter_map(|(name, program)| {
        let fd = match program {
            Program::PerfEvent(program) => program.fd(),
            Program::TracePoint(program) => program.fd(),
            Program::RawTracePoint(program) => program.fd(),
            _ => return None,
        };
        Some((name, fd.ok()?.as_fd().as_raw_fd()))
    });
    fds.filter_map(|(name, fd)| {
        let text = Root::host()
            .read_text(format!("/proc/self/fdinfo/{fd}"))
            .ok()?;
        Some(ProgramRow {
            program: name.to_owned(),
            run_ns: field(&text, "run_time_ns:")?,
            runs: field(&text, "run_cnt:")?,
        })
    })
    .collect()
}

fn field(fdinfo: &str, name: &str) -> Option<u64> {
    fdinfo
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .trim()
        .parse()
        .ok()
}
