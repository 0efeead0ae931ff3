use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream as Client},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
    time::Instant as Clock,
};

use super::*;
use crate::{
    export::{
        metric::{Kind, Metric},
        page::sample,
        text::Metrics,
    },
    model::view::View,
};

const TICK: Metric = Metric {
    name: "tlbd_tick",
    kind: Kind::Gauge,
    help: "Number of the tick",
    labels: &[],
    read: |view, series| series.count(&[], view.tick),
};
const WRONG: Metric = Metric {
    labels: &["missing"],
    ..TICK
};
/// About 16 MiB: more than the sockets' buffers take.
const LARGE: Metric = Metric {
    name: "tlbd_large",
    labels: &["number"],
    read: |_, series| {
        let filler = "x".repeat(1000);
        (0..16_000_u32).for_each(|number| series.count(&[&format!("{filler}{number}")], 1));
    },
    ..TICK
};

/// How long the tests' views are good.
const KEEPS: Duration = Duration::from_secs(30);

/// With time enough for a machine that is busy otherwise.
const PATIENT: Limits = Limits {
    first_view: Duration::from_secs(30),
    connections: 128,
    head: Duration::from_secs(20),
    lifetime: Duration::from_secs(60),
    grace: Duration::from_secs(10),
};

/// A server on a thread and a runtime of its own, as in the daemon.
struct Running {
    address: SocketAddr,
    views: watch::Sender<Option<Arc<Published>>>,
    stop: watch::Sender<bool>,
    thread: thread::JoinHandle<()>,
}

impl Running {
    fn start(limits: Limits) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (views, seen) = watch::channel(None);
        let (stop, mut stopped) = watch::channel(false);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                let stop = async move { drop(stopped.wait_for(|stop| *stop).await) };
                serve(listener, seen, limits, stop).await;
            });
        });
        Self {
            address,
            views,
            stop,
            thread,
        }
    }

    /// A server with a view and these metrics.
    fn with(limits: Limits, metrics: Metrics) -> Self {
        let running = Self::start(limits);
        running.publish(Clock::now(), metrics);
        running
    }

    fn publish(&self, at: Clock, metrics: Metrics) {
        let view: Arc<View> = Arc::new(sample::busy(3));
        self.views
            .send_replace(Some(Arc::new(Published::new(view, at, KEEPS, metrics))));
    }

    fn connect(&self) -> Client {
        let client = Client::connect(self.address).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        client
    }

    /// The whole answer to a request, and an end of the connection after it.
    fn ask(&self, request: &str) -> String {
        let mut client = self.connect();
        client.write_all(request.as_bytes()).unwrap();
        String::from_utf8(rest(&mut client)).unwrap()
    }

    fn get(&self, path: &str) -> String {
        self.ask(&get(path))
    }

    /// Ends the server and gives the time that took.
    fn stop(self) -> Duration {
        let start = Clock::now();
        self.stop.send_replace(true);
        self.thread.join().unwrap();
        start.elapsed()
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
}

/// What is left to read until the server closes or resets the connection.
fn rest(client: &mut Client) -> Vec<u8> {
    let mut read = Vec::new();
    match client.read_to_end(&mut read) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => read,
    }
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or("none")
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next().unwrap();
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[test]
fn metrics_come_in_the_format_asked_for() {
    let server = Running::with(Limits::default(), &[&[&TICK]]);
    let older = server.get("/metrics?x=1");
    assert_eq!(status(&older), "200");
    assert_eq!(
        header(&older, "content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    assert!(body(&older).ends_with("\ntlbd_tick 8641\n"));
    let newer = server.ask(
        "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain;q=0.5\r\n\
         Accept: application/openmetrics-text\r\nConnection: close\r\n\r\n",
    );
    assert!(
        header(&newer, "content-type")
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    assert!(body(&newer).ends_with("\n# EOF\n"));
}

#[test]
fn a_new_view_is_served_at_once() {
    let server = Running::with(Limits::default(), &[&[&TICK]]);
    let mut view = sample::empty();
    view.tick = 77;
    let published = Published::new(Arc::new(view), Clock::now(), KEEPS, &[&[&TICK]]);
    server.views.send_replace(Some(Arc::new(published)));
    assert!(server.get("/metrics").ends_with("tlbd_tick 77\n"));
}

#[test]
fn before_the_first_view_it_is_healthy_but_not_ready() {
    let server = Running::start(Limits::default());
    for (path, expected) in [
        ("/healthz", "200"),
        ("/readyz", "503"),
        ("/metrics", "503"),
        ("/", "503"),
    ] {
        assert_eq!(status(&server.get(path)), expected, "{path}");
    }
    server.publish(Clock::now(), &[]);
    for path in ["/healthz", "/readyz", "/metrics", "/"] {
        assert_eq!(status(&server.get(path)), "200", "{path}");
    }
}

#[test]
fn health_and_metrics_end_with_the_age_of_the_last_view() {
    let server = Running::start(Limits::default());
    server.publish(
        Clock::now().checked_sub(Duration::from_secs(29)).unwrap(),
        &[],
    );
    assert_eq!(body(&server.get("/healthz")), "ok\n");
    server.publish(
        Clock::now().checked_sub(Duration::from_secs(75)).unwrap(),
        &[],
    );
    let sick = server.get("/healthz");
    assert_eq!(status(&sick), "503");
    assert!(body(&sick).starts_with("no new view for 75."), "{sick}");
    assert_eq!(status(&server.get("/metrics")), "503");
    assert_eq!(status(&server.get("/readyz")), "200");
    assert_eq!(status(&server.get("/")), "200");
}

#[test]
fn a_start_without_a_view_is_not_healthy_for_ever() {
    let server = Running::start(Limits {
        first_view: Duration::ZERO,
        ..Limits::default()
    });
    thread::sleep(Duration::from_millis(5));
    let sick = server.get("/healthz");
    assert_eq!(status(&sick), "503");
    assert!(
        body(&sick).starts_with("no view since the start for 0.0 s"),
        "{sick}"
    );
}

#[test]
fn metrics_that_cannot_be_written_are_a_server_error() {
    let server = Running::with(Limits::default(), &[&[&WRONG]]);
    assert_eq!(status(&server.get("/metrics")), "500");
    assert_eq!(status(&server.get("/")), "200");
}

#[test]
fn the_page_may_load_nothing() {
    let server = Running::with(Limits::default(), &[]);
    let page = server.get("/");
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    assert_eq!(header(&page, "content-security-policy"), Some(policy));
    assert_eq!(header(&page, "x-content-type-options"), Some("nosniff"));
    assert_eq!(
        header(&page, "content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(body(&page).starts_with("<!DOCTYPE html>"));
}

#[test]
fn head_is_a_get_without_its_body() {
    let server = Running::with(Limits::default(), &[&[&TICK]]);
    for path in ["/metrics", "/", "/healthz", "/nowhere"] {
        let full = server.get(path);
        let head = server.ask(&get(path).replacen("GET", "HEAD", 1));
        assert_eq!(body(&head), "", "{path}");
        assert_eq!(
            header(&head, "content-length"),
            Some(&*body(&full).len().to_string())
        );
        assert_eq!(status(&head), status(&full));
    }
}

#[test]
fn other_paths_and_methods_are_refused() {
    let server = Running::with(Limits::default(), &[]);
    for path in ["/nowhere", "/metrics/", "//", "/../etc/passwd", "/%00", "*"] {
        assert_eq!(status(&server.get(path)), "404", "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"] {
        let refused = server.ask(&get("/metrics").replacen("GET", method, 1));
        assert_eq!(status(&refused), "405", "{method}");
        assert_eq!(header(&refused, "allow"), Some("GET, HEAD"));
    }
}

#[test]
fn a_body_is_not_waited_for() {
    let server = Running::with(Limits::default(), &[]);
    let start = Clock::now();
    for length in ["Content-Length: 99999999999", "Transfer-Encoding: chunked"] {
        let request = format!("POST /metrics HTTP/1.1\r\nHost: a\r\n{length}\r\n\r\n");
        assert_eq!(status(&server.ask(&request)), "405");
    }
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn one_connection_takes_several_requests() {
    let server = Running::with(Limits::default(), &[]);
    let answers =
        server.ask(&("GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3) + &get("/healthz")));
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 4);
}

#[test]
fn garbage_gets_an_error_or_nothing_and_hurts_nobody() {
    let server = Running::with(Limits::default(), &[]);
    let long_line = [b"GET /".as_slice(), &[b'a'; 20_000]].concat();
    let garbage: [&[u8]; 7] = [
        b"\r\n\r\nhello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nA\0B: \xff\r\n\r\n",
        &long_line,
        &[0; 4096],
    ];
    for bytes in garbage {
        let mut client = server.connect();
        // The server may have had enough before all is written.
        let _ = client.write_all(bytes);
        let _ = client.shutdown(Shutdown::Write);
        let answer = String::from_utf8(rest(&mut client)).unwrap();
        assert!(!answer.contains("HTTP/1.1 200"), "{bytes:?}");
    }
    assert_eq!(status(&server.get("/readyz")), "200");
}

#[test]
fn a_header_that_is_not_text_counts_as_none() {
    let server = Running::with(Limits::default(), &[&[&TICK]]);
    let mut client = server.connect();
    client
        .write_all(b"GET /metrics HTTP/1.1\r\nAccept: \xff\xfe\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert_eq!(
        status(&String::from_utf8(rest(&mut client)).unwrap()),
        "200"
    );
}

#[test]
fn a_head_beyond_its_limit_is_refused() {
    let server = Running::with(Limits::default(), &[]);
    let head = |size| {
        format!(
            "GET /readyz HTTP/1.1\r\nConnection: close\r\nA: {}\r\n\r\n",
            "a".repeat(size)
        )
    };
    assert_eq!(status(&server.ask(&head(HEAD_MAX / 2))), "200");
    assert_eq!(status(&server.ask(&head(2 * HEAD_MAX))), "431");
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(500));
    assert_eq!(status(&server.ask(&many)), "431");
}

#[test]
fn slow_clients_block_nobody_and_are_cut_off() {
    let limits = Limits {
        head: Duration::from_secs(2),
        ..Limits::default()
    };
    let server = Running::with(limits, &[]);
    let start = Clock::now();
    let mut slow: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for client in &mut slow {
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost").unwrap();
    }
    assert_eq!(status(&server.get("/metrics")), "200");
    assert!(start.elapsed() < limits.head, "the others waited");
    for client in &mut slow {
        assert!(!rest(client).starts_with(b"HTTP/1.1 200"));
    }
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "the slow were not cut off"
    );
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let (lifetime, grace) = (Duration::from_millis(300), Duration::from_millis(200));
    let limits = Limits {
        lifetime,
        grace,
        connections: 1,
        ..Limits::default()
    };
    let server = Running::with(limits, &[&[&LARGE]]);
    let mut stalled = server.connect();
    stalled.write_all(get("/metrics").as_bytes()).unwrap();
    let start = Clock::now();
    assert_eq!(status(&server.get("/readyz")), "200");
    assert!(start.elapsed() >= lifetime, "there was only one place");
    assert!(rest(&mut stalled).len() < 16_000_000);
}

#[test]
fn connections_beyond_the_limit_wait_for_a_place() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let server = Running::with(limits, &[]);
    let (first, _second) = (server.connect(), server.connect());
    let mut third = server.connect();
    third.write_all(get("/readyz").as_bytes()).unwrap();
    third
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    assert_eq!(
        third.read(&mut [0; 16]).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    drop(first);
    third
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    assert!(rest(&mut third).starts_with(b"HTTP/1.1 200"));
}

#[test]
fn a_hundred_scrapes_at_once_cost_one_rendering() {
    static READ: AtomicUsize = AtomicUsize::new(0);
    const COUNTED: Metric = Metric {
        read: |_, series| {
            READ.fetch_add(1, SeqCst);
            series.count(&[], 1);
        },
        ..TICK
    };
    let server = Running::with(Limits::default(), &[&[&COUNTED, &LARGE]]);
    let lengths: Vec<_> = thread::scope(|scope| {
        let scrape = || server.get("/metrics").len();
        let scrapes: Vec<_> = (0..100).map(|_| scope.spawn(scrape)).collect();
        scrapes
            .into_iter()
            .map(|scrape| scrape.join().unwrap())
            .collect()
    });
    assert!(
        lengths
            .iter()
            .all(|length| *length > 16_000_000 && *length == lengths[0])
    );
    assert_eq!(READ.load(SeqCst), 1);
}

#[test]
fn a_stop_finishes_the_response_under_way_and_refuses_new_clients() {
    let server = Running::with(PATIENT, &[&[&LARGE]]);
    let mut client = server.connect();
    client
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut start = [0; 1000];
    client.read_exact(&mut start).unwrap();
    server.stop.send_replace(true);
    let address = server.address;
    let answer = String::from_utf8([start.to_vec(), rest(&mut client)].concat()).unwrap();
    assert_eq!(
        header(&answer, "content-length"),
        Some(&*body(&answer).len().to_string())
    );
    assert!(server.stop() < PATIENT.grace / 2);
    assert!(Client::connect(address).is_err());
}

#[test]
fn a_stop_does_not_wait_for_idle_clients() {
    let server = Running::with(PATIENT, &[]);
    let mut idle = server.connect();
    let _silent = server.connect();
    idle.write_all(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    idle.read_exact(&mut [0; 12]).unwrap();
    assert!(server.stop() < PATIENT.grace / 2);
}

#[test]
fn a_stop_waits_for_stalled_clients_no_longer_than_the_grace() {
    let limits = Limits {
        grace: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = Running::with(limits, &[&[&LARGE]]);
    let mut stalled = server.connect();
    stalled.write_all(get("/metrics").as_bytes()).unwrap();
    stalled.read_exact(&mut [0; 12]).unwrap();
    let took = server.stop();
    assert!(took >= limits.grace && took < 10 * limits.grace, "{took:?}");
}

#[test]
fn the_server_can_be_spawned() {
    fn spawnable(_: impl Send) {}
    let listening = |listener| {
        spawnable(serve(
            listener,
            watch::channel(None).1,
            Limits::default(),
            ready(()),
        ));
    };
    let _: fn(TcpListener) = listening;
}

#[tokio::test]
async fn a_failing_accept_is_tried_again() {
    let mut tries = 0;
    let start = Clock::now();
    let accept = || {
        tries += 1;
        ready(if tries < 4 {
            Err(io::Error::from_raw_os_error(libc::EMFILE))
        } else {
            Ok(tries)
        })
    };
    assert_eq!(accepted(accept, &mut Complaints::default()).await, 4);
    assert!(start.elapsed() >= 3 * ACCEPT_PAUSE);
}

#[test]
fn complaints_come_at_most_once_a_second() {
    let start = Instant::now();
    let mut complaints = Complaints::default();
    let due = [0, 10, 990, 1000, 1500, 2000]
        .map(|milliseconds| complaints.is_due(start + Duration::from_millis(milliseconds)));
    assert_eq!(due, [true, false, false, true, false, true]);
}
