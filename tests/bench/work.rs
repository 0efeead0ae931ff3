//! The loads themselves: this program run with [`FLAG`] does one kind of work, and nothing else.

#![allow(unsafe_code, reason = "a load is made of system calls")]

use std::{
    env, fs,
    hint::black_box,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    ptr, thread,
    time::{Duration, Instant},
};

/// Makes the process a load. A cgroup (its folders, joined by colons, or `-`), the kind of work
/// and its arguments follow.
pub const FLAG: &str = "--load";

const PAGE: usize = 4096;

pub fn run(cgroup: &str, kind: &str, arguments: &[&str]) {
    join(cgroup);
    let number = |at: usize| arguments[at].parse::<u64>().expect("a number");
    let end = || Instant::now() + Duration::from_secs(number(0));
    match kind {
        "spin" => until(end(), spin),
        "kernel" => kernel(end()),
        "touch" => until(end(), || touch(1024)),
        "exec" => until(end(), exec),
        "nothing" => {}
        "switch" => switch(end()),
        "unmap" => unmap(end()),
        "cgroups" => cgroups(cgroup, end()),
        "service" => service(number(1) as usize, end()),
        "sleep" => sleep(number(1) as usize, end()),
        "brief" => brief(&arguments[1..]),
        "touch-rounds" => (0..number(0)).for_each(|_| touch(2048)),
        "switch-rounds" => switch_rounds(number(0)),
        other => panic!("no such load: {other}"),
    }
}

fn join(cgroup: &str) {
    for folder in cgroup.split(':').filter(|folder| *folder != "-") {
        let file = format!("{folder}/cgroup.procs");
        fs::write(&file, "0").unwrap_or_else(|error| panic!("{file}: {error}"));
    }
}

fn until(end: Instant, mut work: impl FnMut()) {
    while Instant::now() < end {
        work();
    }
}

/// A few microseconds of user time.
fn spin() {
    black_box((0..2000_u64).fold(1_u64, |x, i| x.wrapping_mul(31).wrapping_add(black_box(i))));
}

/// Kernel time with deep stacks: a byte through loopback TCP, a path looked up, a /proc file.
fn kernel(end: Instant) {
    let (mut there, mut here) = connection();
    let mut byte = [0];
    until(end, || {
        there.write_all(&byte).unwrap();
        here.read_exact(&mut byte).unwrap();
        black_box(fs::metadata("/proc/self/status").is_ok());
        black_box(fs::read("/proc/self/stat").is_ok());
    });
}

fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let here = listener.accept().unwrap().0;
    [&there, &here]
        .iter()
        .for_each(|stream| stream.set_nodelay(true).unwrap());
    (there, here)
}

/// Touches fresh small pages, and gives them back.
fn touch(pages: usize) {
    let memory = map(pages);
    // SAFETY: the mapping has that many pages, and nothing points to it when it goes.
    unsafe {
        (0..pages).for_each(|page| memory.add(page * PAGE).write_volatile(1));
        libc::munmap(memory.cast(), pages * PAGE);
    }
}

fn map(pages: usize) -> *mut u8 {
    let (access, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a fresh anonymous mapping anywhere, and advice on it.
    unsafe {
        let memory = libc::mmap(ptr::null_mut(), pages * PAGE, access, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        libc::madvise(memory, pages * PAGE, libc::MADV_NOHUGEPAGE);
        memory.cast()
    }
}

fn exec() {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args([FLAG, "-", "nothing"]).status().unwrap();
}

/// Two processes on one CPU that wake each other.
fn switch(end: Instant) {
    ping_pong(|_| Instant::now() < end);
}

fn switch_rounds(rounds: u64) {
    ping_pong(|round| round < rounds);
}

fn ping_pong(go_on: impl Fn(u64) -> bool) {
    pin(0);
    let (there, back) = (pipe(), pipe());
    // SAFETY: the child only closes, reads, writes and exits.
    let child = unsafe { libc::fork() };
    let mut byte = [0_u8; 1];
    // SAFETY: one byte to and from a live buffer.
    let mut read = |from: i32| unsafe { libc::read(from, byte.as_mut_ptr().cast(), 1) == 1 };
    // SAFETY: one byte from a static.
    let write = |to: i32| unsafe { libc::write(to, b"x".as_ptr().cast(), 1) == 1 };
    // SAFETY: the descriptors are this process's own, and each is closed once.
    let close = |fd: i32| unsafe { libc::close(fd) };
    if child == 0 {
        close(there.1);
        while read(there.0) && write(back.1) {}
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(0) };
    }
    let mut round = 0;
    while go_on(round) && write(there.1) && read(back.0) {
        round += 1;
    }
    // The child reads the end of the pipe, and ends.
    close(there.1);
    // SAFETY: waits for the child; its CPU time then counts as this process's children's.
    unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
}

fn pipe() -> (i32, i32) {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    (ends[0], ends[1])
}

fn pin(cpu: usize) {
    // SAFETY: an all-zero set is a valid empty one, and the call only reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

/// Takes memory away that another thread of the process has in its TLB.
fn unmap(end: Instant) {
    let other = thread::spawn(move || until(end, spin));
    until(end, || {
        let memory = map(16);
        // SAFETY: the mapping has 16 pages, and nothing points to it when it goes.
        unsafe {
            (0..16).for_each(|page| memory.add(page * PAGE).write_volatile(1));
            libc::mprotect(memory.cast(), 16 * PAGE, libc::PROT_READ);
            libc::munmap(memory.cast(), 16 * PAGE);
        }
    });
    other.join().unwrap();
}

/// Makes and removes cgroups, no more of them than an orchestrator in a hurry.
fn cgroups(parent: &str, end: Instant) {
    let folder = format!("{}/brief", parent.split(':').next().unwrap());
    until(end, || {
        fs::create_dir(&folder).unwrap();
        fs::remove_dir(&folder).unwrap();
        thread::sleep(Duration::from_millis(10));
    });
    let _ = fs::remove_dir(&folder);
}

/// Client and server on one CPU. A request is about 0.3 ms of user time, four fresh pages, a path
/// looked up, and an answer through loopback TCP.
fn service(cpu: usize, end: Instant) {
    pin(cpu);
    let (mut client, mut server) = connection();
    // SAFETY: the child only reads, writes, computes and exits.
    let child = unsafe { libc::fork() };
    let mut byte = [0];
    if child == 0 {
        drop(client);
        while server.read_exact(&mut byte).is_ok() {
            spin_for(Duration::from_micros(300));
            touch(4);
            black_box(fs::metadata("/proc/self/status").is_ok());
            if server.write_all(&byte).is_err() {
                break;
            }
        }
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(0) };
    }
    drop(server);
    until(end, || {
        client.write_all(&byte).unwrap();
        client.read_exact(&mut byte).unwrap();
    });
}

fn spin_for(time: Duration) {
    until(Instant::now() + time, spin);
}

/// Holds memory in small pages.
fn sleep(mib: usize, end: Instant) {
    let memory = map((mib << 20) / PAGE);
    // SAFETY: the mapping is that long.
    (0..mib << 20)
        .step_by(PAGE)
        .for_each(|at| unsafe { memory.add(at).write_volatile(1) });
    thread::sleep(end.saturating_duration_since(Instant::now()));
}

/// In each of these cgroups a process that faults a little, uses 2 ms of CPU, and ends.
fn brief(cgroups: &[&str]) {
    for cgroup in cgroups {
        // SAFETY: the child does the same as this single-threaded process could, and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            join(cgroup);
            touch(16);
            spin_for(Duration::from_millis(2));
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: waits for the child.
        unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
    }
}
