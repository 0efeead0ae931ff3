//! The real server against clients as they come: picky, slow, many, broken.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    golden::OPENMETRICS,
    replay::polyglot,
    support::{Daemon, Metrics},
};

/// An answer is quick if it takes less than this, on a machine that is busy with other tests.
const QUICK: Duration = Duration::from_secs(3);

fn ready() -> Daemon {
    let daemon = polyglot(&[]);
    daemon.metrics();
    daemon
}

/// Asserts that the server answers now, and soon.
fn assert_serves(daemon: &Daemon) {
    let start = Instant::now();
    assert_eq!(daemon.get("/metrics", "").0, 200);
    let took = start.elapsed();
    assert!(took < QUICK, "an answer took {took:?}");
}

/// A connection that has sent this much and no more.
fn half_request(daemon: &Daemon, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(daemon.address()).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// A generator of bytes that look like anything.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn garbage_is_answered_with_an_error_or_not_at_all() {
    let daemon = ready();
    let garbage: [&[u8]; 7] = [
        b"\r\n\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /metrics HTTP/1.1\r\nHost\x00: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &noise(100_000),
    ];
    for bytes in garbage {
        let mut stream = half_request(&daemon, b"");
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{bytes:?}: {answer}"
        );
        assert_serves(&daemon);
    }
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let daemon = ready();
    let large = format!("X-Filler: {}\r\n", "x".repeat(1 << 20));
    let many = "X-Filler: x\r\n".repeat(10_000);
    for filler in [large, many] {
        let answer = daemon.send(format!("GET /metrics HTTP/1.1\r\n{filler}\r\n").as_bytes());
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
            "{answer}"
        );
        assert_serves(&daemon);
    }
}

#[test]
fn half_requests_do_not_hinder_others() {
    let daemon = ready();
    let slow: Vec<_> = (0..50)
        .map(|_| half_request(&daemon, b"GET /metrics HTTP/1.1\r\nHost: t"))
        .collect();
    let idle: Vec<_> = (0..20).map(|_| half_request(&daemon, b"")).collect();
    for _ in 0..10 {
        assert_serves(&daemon);
    }
    drop((slow, idle));
}

#[test]
fn a_client_that_does_not_read_its_answer_does_not_hinder_others() {
    let daemon = ready();
    let pipelined = b"GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n".repeat(300);
    let streams: Vec<_> = (0..10)
        .map(|_| {
            let mut stream = half_request(&daemon, b"");
            stream.set_nonblocking(true).unwrap();
            let _ = stream.write(&pipelined);
            stream
        })
        .collect();
    assert_serves(&daemon);
    drop(streams);
}

#[test]
fn a_request_that_is_sent_byte_by_byte_is_answered() {
    let daemon = ready();
    let mut stream = half_request(&daemon, b"");
    for byte in b"GET /healthz HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n" {
        stream.write_all(&[*byte]).unwrap();
        thread::sleep(Duration::from_millis(2));
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn a_hundred_scrapes_at_once_get_the_same_whole_answer() {
    let daemon = ready();
    let bodies: Vec<String> = thread::scope(|scope| {
        let scrapes: Vec<_> = (0..100)
            .map(|_| {
                scope.spawn(|| {
                    let (status, head, body) = daemon.get("/metrics", OPENMETRICS);
                    let length = header(&head, "content-length").map(|length| length.parse());
                    assert_eq!((status, length), (200, Some(Ok(body.len()))));
                    body
                })
            })
            .collect();
        scrapes
            .into_iter()
            .map(|scrape| scrape.join().unwrap())
            .collect()
    });
    assert_eq!(bodies.len(), 100);
    assert!(bodies[0].ends_with("# EOF\n"));
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

#[test]
fn many_requests_on_one_connection_are_answered_in_turn() {
    let daemon = ready();
    let request = "GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n".repeat(9)
        + "GET /healthz HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
    let answer = daemon.send(request.as_bytes());
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 10, "{answer}");
}

#[test]
fn the_format_is_the_one_that_the_client_accepts() {
    const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";
    let daemon = ready();
    for (accept, content_type) in [
        ("", PLAIN),
        ("Accept: */*\r\n", PLAIN),
        ("Accept: application/openmetrics-text\r\n", OPEN),
        (OPENMETRICS, OPEN),
        ("Accept: text/plain, application/openmetrics-text\r\n", OPEN),
        (
            "Accept: application/openmetrics-text;q=0.2, text/plain;q=0.8\r\n",
            PLAIN,
        ),
        (
            "Accept: application/openmetrics-text;q=0.8\r\nAccept: text/plain;q=0.2\r\n",
            OPEN,
        ),
        ("Accept: ;;;,,q=\"\r\n", PLAIN),
    ] {
        let (status, head, body) = daemon.get("/metrics", accept);
        assert_eq!(status, 200, "{accept}");
        assert_eq!(
            header(&head, "content-type"),
            Some(content_type),
            "{accept}"
        );
        assert_eq!(body.ends_with("# EOF\n"), content_type == OPEN, "{accept}");
        assert!(Metrics::parse(&body).all().len() > 100);
    }
}

#[test]
fn head_gives_the_head_alone() {
    let daemon = ready();
    for path in ["/metrics", "/", "/healthz", "/readyz"] {
        let length = daemon.get(path, "").2.len().to_string();
        let answer = daemon.send(
            format!("HEAD {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").as_bytes(),
        );
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert_eq!(
            header(head, "content-length"),
            Some(length.as_str()),
            "{path}"
        );
        assert_eq!(body, "", "{path}");
    }
}

#[test]
fn other_methods_are_refused_and_told_which_there_are() {
    let daemon = ready();
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"] {
        let request = format!("{method} /metrics HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
        let answer = daemon.send(request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 405"), "{method}: {answer}");
        assert_eq!(header(&answer, "allow"), Some("GET, HEAD"), "{method}");
    }
}

#[test]
fn an_unknown_path_is_not_found_and_told_which_there_are() {
    let daemon = ready();
    for path in [
        "/nothing",
        "/metrics/",
        "//",
        "/../etc/passwd",
        "/%2e%2e/metrics",
    ] {
        let (status, _, body) = daemon.get(path, "");
        assert_eq!(status, 404, "{path}");
        assert!(body.contains("/metrics"), "{body}");
    }
    assert_eq!(daemon.get("/metrics?x=y", "").0, 200);
}

#[test]
fn supervisors_hear_that_it_is_healthy_and_ready() {
    let daemon = ready();
    for (path, said) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let (status, _, body) = daemon.get(path, "");
        assert_eq!((status, body.as_str()), (200, said), "{path}");
    }
}

#[test]
fn the_page_names_cgroups_and_escapes_them() {
    let daemon = ready();
    let (status, head, body) = daemon.get("/", "");
    assert_eq!(status, 200);
    assert_eq!(
        header(&head, "content-type"),
        Some("text/html; charset=utf-8")
    );
    let metrics = daemon.metrics();
    let top = metrics
        .family("tlbd_cgroup_cpu_seconds_total")
        .filter(|sample| sample.label("cgroup").starts_with("/polyglot.slice/"))
        .max_by(|a, b| a.value.total_cmp(&b.value))
        .unwrap();
    let escaped = top.label("cgroup").replace('"', "&quot;");
    assert!(body.contains(&escaped), "{escaped}");
    assert!(body.contains("batch &quot;nightly&quot; \\ build.service"));
    assert!(!body.contains("batch \"nightly\""));
}

#[test]
fn sigterm_ends_it_soon_also_with_idle_and_slow_clients() {
    let daemon = ready();
    let mut idle = half_request(&daemon, b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n");
    idle.read_exact(&mut [0; 12]).unwrap();
    let slow = half_request(&daemon, b"GET /metrics HTTP/1.1\r\nHo");
    let silent = half_request(&daemon, b"");
    let start = Instant::now();
    let status = daemon.stop();
    let took = start.elapsed();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(2), "stopping took {took:?}");
    drop((idle, slow, silent));
}

#[test]
fn sigint_ends_it_as_sigterm_does() {
    let daemon = ready();
    daemon.signal(libc::SIGINT);
    let (done, ended) = mpsc::channel();
    let address = daemon.address();
    thread::spawn(move || {
        while TcpStream::connect(address).is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = done.send(());
    });
    ended
        .recv_timeout(Duration::from_secs(2))
        .expect("it stops listening");
}
