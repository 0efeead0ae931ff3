//! Known loads for the tests: each does one thing whose cost the kernel can tell from outside.
//!
//! `load CGROUP_FOLDER KIND [ARGUMENT...]` joins the cgroup (`-` stays where it is), does its
//! work, and prints what it knows of it as `name value` lines.

#![allow(unsafe_code, reason = "a load is made of system calls")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a load that cannot do its work is to end with a backtrace"
)]

use std::{
    env, fs,
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::fd::AsRawFd as _,
    time::{Duration, Instant},
};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [cgroup, kind, rest @ ..] = arguments.as_slice() else {
        panic!("usage: load CGROUP_FOLDER KIND [ARGUMENT...]");
    };
    if cgroup != "-" {
        fs::write(
            format!("{cgroup}/cgroup.procs"),
            std::process::id().to_string(),
        )
        .unwrap_or_else(|error| panic!("joining {cgroup}: {error}"));
    }
    let number = |at: usize| rest[at].parse::<f64>().expect("a number");
    match kind.as_str() {
        "burn" => burn(seconds(number(0)), 1.0),
        "duty" => burn(seconds(number(0)), number(1)),
        "mix" => mix(seconds(number(0))),
        "poll-tcp" => poll_tcp(seconds(number(0))),
        "pipes" => pipes(seconds(number(0))),
        "touch" => touch(number(0) as usize),
        "memory" => memory(number(0) as usize, number(1) as usize),
        "shoot" => shoot(seconds(number(0))),
        other => panic!("no such load: {other}"),
    }
}

fn seconds(value: f64) -> Duration {
    Duration::from_secs_f64(value)
}

/// Burns user CPU for a share of each 20 ms, until the time is over.
fn burn(time: Duration, share: f64) {
    let slice = Duration::from_millis(20);
    let end = Instant::now() + time;
    while Instant::now() < end {
        let start = Instant::now();
        while start.elapsed() < slice.mul_f64(share) {
            spin();
        }
        std::thread::sleep(slice.mul_f64(1.0 - share));
    }
}

fn spin() {
    let mut x = 1_u64;
    for i in 0..20_000_u64 {
        x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i));
    }
}

/// Turns of user work and of kernel work (reading zeros).
fn mix(time: Duration) {
    let mut zeros = fs::File::open("/dev/zero").unwrap();
    let mut buffer = vec![0; 1 << 16];
    let end = Instant::now() + time;
    while Instant::now() < end {
        spin();
        for _ in 0..64 {
            zeros.read_exact(&mut buffer).unwrap();
        }
    }
}

/// Polls 200 idle loopback TCP connections without waiting: `poll(2)` looks up each descriptor
/// and asks each socket.
fn poll_tcp(time: Duration) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connections: Vec<(TcpStream, TcpStream)> = (0..100)
        .map(|_| {
            (
                TcpStream::connect(address).unwrap(),
                listener.accept().unwrap().0,
            )
        })
        .collect();
    let mut polled: Vec<libc::pollfd> = connections
        .iter()
        .flat_map(|(a, b)| [a.as_raw_fd(), b.as_raw_fd()])
        .map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let end = Instant::now() + time;
    while Instant::now() < end {
        for _ in 0..100 {
            // SAFETY: the descriptors are open, and the array and its length belong together.
            unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) };
        }
    }
}

/// Sends a byte to and fro between two processes.
fn pipes(time: Duration) {
    let (there, back) = (pipe(), pipe());
    // SAFETY: the child only reads, writes and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: no pointer; a child whose parent is killed would wait for its byte for ever.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    }
    let (input, output, others) = if child == 0 {
        (there.0, back.1, [there.1, back.0])
    } else {
        (back.0, there.1, [there.0, back.1])
    };
    // Whoever ends first is to be noticed by the other.
    for fd in others {
        // SAFETY: this process's own copy of an end that the other one uses.
        unsafe { libc::close(fd) };
    }
    let mut byte = [0_u8; 1];
    let end = Instant::now() + time;
    let mut rounds = 0_u64;
    while Instant::now() < end {
        if child != 0 {
            // SAFETY: one byte from and to a live buffer, on open descriptors.
            unsafe { libc::write(output, byte.as_ptr().cast(), 1) };
        }
        // SAFETY: as above.
        if unsafe { libc::read(input, byte.as_mut_ptr().cast(), 1) } != 1 {
            break;
        }
        if child == 0 {
            // SAFETY: as above.
            unsafe { libc::write(output, byte.as_ptr().cast(), 1) };
        }
        rounds += 1;
    }
    if child == 0 {
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(0) };
    }
    println!("rounds {rounds}");
    // SAFETY: signals the child that was forked above.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

fn pipe() -> (i32, i32) {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    (ends[0], ends[1])
}

/// Touches fresh small pages between two lines of input; prints its own count of minor faults.
fn touch(pages: usize) {
    let memory = map(pages * 4096);
    advise(memory, pages * 4096, libc::MADV_NOHUGEPAGE);
    println!("ready 1");
    line();
    let before = minor_faults();
    // SAFETY: the mapping has that many pages and belongs to this function.
    (0..pages).for_each(|page| unsafe { memory.add(page * 4096).write_volatile(1) });
    println!("faults {}", minor_faults() - before);
    line();
}

/// Holds anonymous memory, some of it asked to be huge; prints what its own smaps_rollup says.
fn memory(huge_mib: usize, small_mib: usize) {
    let huge = map((huge_mib + 2) << 20);
    let huge = huge.wrapping_add(huge.align_offset(2 << 20));
    advise(huge, huge_mib << 20, libc::MADV_HUGEPAGE);
    let small = map(small_mib << 20);
    advise(small, small_mib << 20, libc::MADV_NOHUGEPAGE);
    for (memory, mib) in [(huge, huge_mib), (small, small_mib)] {
        // SAFETY: the mapping is that long.
        (0..mib << 20)
            .step_by(4096)
            .for_each(|at| unsafe { memory.add(at).write_volatile(1) });
    }
    for line in fs::read_to_string("/proc/self/smaps_rollup")
        .unwrap()
        .lines()
        .skip(1)
    {
        let mut words = line.split_whitespace();
        let (name, kib) = (words.next().unwrap(), words.next().unwrap());
        println!(
            "{} {}",
            name.trim_end_matches(':'),
            kib.parse::<u64>().unwrap() * 1024
        );
    }
    println!("ready 1");
    line();
}

/// Two threads on two CPUs: one unmaps what the other has in its TLB.
fn shoot(time: Duration) {
    let end = Instant::now() + time;
    let other = std::thread::spawn(move || {
        while Instant::now() < end {
            spin();
        }
    });
    let mut flushes = 0_u64;
    while Instant::now() < end {
        let memory = map(16 * 4096);
        // SAFETY: the mapping has 16 pages.
        (0..16).for_each(|page| unsafe { memory.add(page * 4096).write_volatile(1) });
        // SAFETY: the mapping was made above and nothing keeps a pointer to it.
        unsafe { libc::munmap(memory.cast(), 16 * 4096) };
        flushes += 1;
    }
    other.join().unwrap();
    println!("unmaps {flushes}");
}

fn map(bytes: usize) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh anonymous mapping anywhere.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        )
    };
    assert_ne!(memory, libc::MAP_FAILED);
    memory.cast()
}

fn advise(memory: *mut u8, bytes: usize, advice: i32) {
    // SAFETY: advice on a mapping of this process.
    assert_eq!(unsafe { libc::madvise(memory.cast(), bytes, advice) }, 0);
}

fn minor_faults() -> i64 {
    // SAFETY: zeros are a whole rusage, which the call fills in.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage.ru_minflt
}

/// Waits for a line of input, with what was printed so far sent.
fn line() {
    io::stdout().flush().unwrap();
    io::stdin().read_line(&mut String::new()).unwrap();
}
