//! Made-up views for the tests of every reader.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use tlbd_common::FlushCount;

use crate::model::view::{
    CgroupCounts, CgroupMemory, CgroupMemoryRow, CgroupRow, CollectorRow, EventRow, FoldedRow,
    FunctionRow, Host, HostMemory, LossRow, OTHER, Own, Pmu, ProgramRow, RETIRED, Smaps, SmapsRow,
    UNKNOWN, View,
};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// A view of a host where nothing was measured.
pub(crate) fn empty() -> View {
    View {
        pmu: Pmu {
            name: "none".into(),
            microarch: "unknown".into(),
            source: "none".into(),
            walk_cycles: "absent".into(),
            reason: "this virtual machine has no hardware counters".into(),
        },
        ..View::empty(1, UNIX_EPOCH + Duration::from_secs(1_763_698_200))
    }
}

/// A view with this many cgroups, everything measured.
pub(crate) fn busy(cgroups: usize) -> View {
    let mut view = empty();
    view.tick = 8_641;
    view.host = Host {
        kernel: "6.12.41-cloud-amd64".into(),
        cpu: "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz".into(),
        cpus: 8,
    };
    view.cgroups = (0..cgroups).map(cgroup).collect();
    let special = [OTHER, UNKNOWN, RETIRED].into_iter().zip([900, 990, 970]);
    view.cgroups.extend(special.map(|(name, rank)| CgroupRow {
        cgroup: name.into(),
        ..cgroup(rank)
    }));
    view.flush_reasons = [
        "task switch",
        "remote shootdown",
        "local shootdown",
        "local MM shootdown",
        "remote IPI send",
    ]
    .map(String::from)
    .into();
    view.functions = functions();
    view.cgroup_memory = (0..cgroups).map(memory).collect();
    view.cgroup_memory_age = Some(Duration::from_secs(4));
    view.memory = Some(host_memory());
    view.smaps = Some(smaps(cgroups.min(6)));
    measured(&mut view);
    view
}

/// Events, losses, collectors and costs.
fn measured(view: &mut View) {
    view.events = vec![EventRow {
        event: "cpu_clock",
        samples: 4_183_222,
        period: 10_000_019,
    }];
    view.losses = vec![
        LossRow {
            event: "sample",
            reason: "stack_not_kept",
            count: 1_204,
        },
        LossRow {
            event: "sample",
            reason: "map_full",
            count: 0,
        },
    ];
    let state = |collector, seconds| CollectorRow {
        collector,
        up: true,
        reason: String::new(),
        seconds,
    };
    view.collectors = vec![
        state("sample", 0.002_1),
        state("page_fault", 0.000_3),
        state("tlb_flush", 0.000_2),
        state("memory", 0.004_4),
        state("smaps", 0.000_01),
    ];
    view.folded = vec![
        FoldedRow {
            family: "cgroup",
            series: 200,
            folded: 12,
        },
        FoldedRow {
            family: "function",
            series: 500,
            folded: 1_022,
        },
    ];
    let program = |program: &str, run_ns, runs| ProgramRow {
        program: program.into(),
        run_ns,
        runs,
    };
    view.own = Own {
        cpu_seconds: 104.2,
        resident_bytes: 19 * MIB,
        programs: vec![
            program("sample_clock", 5_140_000_000, 4_183_222),
            program("page_fault_user", 8_200_000_000, 151_000_000),
        ],
    };
}

fn cgroup(rank: usize) -> CgroupRow {
    let size = 40_000_000_000_000_u64 / (rank as u64 + 1).pow(2);
    let flush = |flushes: u64, full| FlushCount {
        flushes,
        full,
        pages: flushes * 7,
    };
    let mut flushes = [FlushCount::default(); 8];
    flushes[0] = flush(size / 50_000_000, size / 50_000_000);
    flushes[1] = flush(size / 90_000_000, size / 900_000_000);
    flushes[3] = flush(size / 200_000_000, size / 700_000_000);
    CgroupRow {
        cgroup: name(rank),
        counts: CgroupCounts {
            cpu_ns: [size, size / 4 + 3_000_000_000],
            faults: [
                [size / 3_000_000, size / 4_000_000, size / 90_000_000],
                [70, 80, 0],
            ],
            flushes,
        },
    }
}

fn name(rank: usize) -> Arc<str> {
    match rank {
        0 => "/system.slice/postgresql@15-main.service".into(),
        1 => "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5f1c0a7e_21d5_4bb1_9f3e_\
             7a1f0f1c9a77.slice/cri-containerd-9b1c0de5f7a1e0a3e5ad0cbd1f0f1c9a77.scope"
            .into(),
        2 => "/system.slice/redis-server.service".into(),
        3 => "/user.slice/user-1000.slice/session-<3>&.scope".into(),
        4 => "/".into(),
        _ => format!("/system.slice/worker-{rank}.service").into(),
    }
}

fn functions() -> Vec<FunctionRow> {
    let names = [
        "copy_user_generic",
        "tcp_poll",
        "fget_light",
        "clear_page_erms",
        "do_syscall_64",
        "__schedule",
        "tcp_sendmsg_locked",
        "ext4_map_blocks [ext4]",
        "nf_hook_slow",
    ];
    let callers = [
        "_copy_to_iter",
        "skb_copy_datagram_iter",
        "tcp_recvmsg_locked",
        "tcp_recvmsg",
        "sock_read_iter",
        "vfs_read",
    ];
    let row = |(rank, function): (u64, String)| FunctionRow {
        function: function.into(),
        cpu_ns: 3_000_000_000_000 / (rank + 1),
        callers: callers
            .iter()
            .skip(rank as usize % 7)
            .map(|caller| Arc::from(*caller))
            .collect(),
    };
    let more = (0..20).map(|rank| format!("function_{rank}"));
    let all = names
        .map(String::from)
        .into_iter()
        .chain(more)
        .chain([OTHER.into(), UNKNOWN.into()]);
    (0..).zip(all).map(row).collect()
}

fn memory(rank: usize) -> CgroupMemoryRow {
    let anon = 9 * GIB / (rank as u64 + 1);
    CgroupMemoryRow {
        cgroup: name(rank),
        memory: CgroupMemory {
            anon: Some(anon),
            file: Some(anon / 2),
            shmem: Some(anon / 8),
            anon_huge: Some(anon / 100 * (rank as u64 * 37 % 101)),
            file_huge: (rank != 2).then_some(rank as u64 * 2 * MIB),
            shmem_huge: Some(0),
            page_tables: Some(anon / 400),
            secondary_page_tables: None,
        },
    }
}

fn host_memory() -> HostMemory {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    HostMemory {
        bytes: vec![
            ("total", 64 * GIB),
            ("available", 31 * GIB),
            ("anon", 22 * GIB),
            ("anon_huge", 8 * GIB + 700 * MIB),
            ("shmem", 3 * GIB),
            ("shmem_huge", 0),
            ("file_huge", 122 * MIB),
            ("page_tables", 310 * MIB),
        ],
        thp_events: vec![
            ("fault_alloc".into(), 151_223),
            ("fault_fallback".into(), 8_412),
        ],
        thp_settings: vec![pair("enabled", "madvise"), pair("defrag", "madvise")],
    }
}

fn smaps(cgroups: usize) -> Smaps {
    let row = |rank: usize| SmapsRow {
        cgroup: name(rank),
        processes: 3 + rank as u64,
        bytes: [9, 8, 3, 0, 1, 0, 2, 0].map(|share| share * GIB / (rank as u64 + 1)),
        age: Duration::from_secs(12 + 400 * rank as u64),
    };
    Smaps {
        cgroups: (0..cgroups).map(row).collect(),
        skipped: vec![("too_big", 3), ("gone", 14), ("not_permitted", 0)],
        cpu_ns: 31_000_000_000,
    }
}
