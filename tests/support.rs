//! What the test binaries share: the real daemon as a child process, a small HTTP client, and the
//! metrics text parsed back into samples.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// Longest that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reports the running test as one that cannot run here; fails it where nothing may be skipped.
pub(crate) fn skip(reason: &str) {
    assert_ne!(
        std::env::var("TLBD_REQUIRE").as_deref(),
        Ok("all"),
        "cannot be skipped: {reason}"
    );
    let test = thread::current().name().unwrap_or("a test").to_owned();
    println!("skipped: {test}: {reason}");
    if let Ok(path) = std::env::var("TLBD_SKIPPED_FILE") {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        writeln!(file, "{test}: {reason}").unwrap();
    }
}

/// A running `tlbd run`; killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    address: SocketAddr,
    said: Arc<Mutex<String>>,
}

impl Daemon {
    /// Starts the binary under test on a free port.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(
            Command::new(env!("CARGO_BIN_EXE_tlbd"))
                .args(["run", "--listen=127.0.0.1:0"])
                .args(arguments),
        )
    }

    /// Starts a copy of the binary as another user, without capabilities.
    pub(crate) fn start_as(binary: &Path, uid: u32, arguments: &[&str]) -> Self {
        let mut command = Command::new(binary);
        Self::spawn(
            command
                .args(["run", "--listen=127.0.0.1:0"])
                .args(arguments)
                .uid(uid)
                .gid(uid),
        )
    }

    /// Starts a command that says where it listens.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        stderr.read_line(&mut first).unwrap();
        let address = first
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let Some(address) = address.and_then(|address| address.parse().ok()) else {
            let _ = stderr.read_to_string(&mut first);
            panic!("tlbd did not say where it listens: {first}");
        };
        let said = Arc::new(Mutex::new(first));
        let heard = said.clone();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                eprintln!("{line}");
                *heard.lock().unwrap() += &(line + "\n");
            }
        });
        Self {
            child,
            address,
            said,
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it wrote to standard error so far.
    pub(crate) fn stderr(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.pid()).unwrap();
        #[allow(unsafe_code, reason = "std can only kill")]
        // SAFETY: the child has not been waited for, so the id is still its own.
        let result = unsafe { libc::kill(pid, signal) };
        assert_eq!(result, 0);
    }

    /// Stops it as a service manager would.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal(libc::SIGTERM);
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("tlbd does not stop");
    }

    /// The answer to a GET request: status, head, body.
    pub(crate) fn get(&self, path: &str, headers: &str) -> (u16, String, String) {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: tlbd\r\nConnection: close\r\n{headers}\r\n");
        let answer = self.send(request.as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .expect("a status");
        (status, head.to_owned(), body.to_owned())
    }

    /// The whole answer to any bytes.
    pub(crate) fn send(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A server may answer, and close, before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// What `/metrics` says now, waiting for the first view.
    pub(crate) fn metrics(&self) -> Metrics {
        let end = Instant::now() + PATIENCE;
        loop {
            let (status, _, body) = self.get("/metrics", "");
            if status == 200 {
                return Metrics::parse(&body);
            }
            assert!(Instant::now() < end, "no metrics: {status} {body}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until so many more ticks are over.
    pub(crate) fn wait_ticks(&self, more: u32) {
        let ticks = || {
            self.metrics()
                .value("tlbd_ticks_total", &[])
                .expect("a number of ticks")
        };
        let (goal, end) = (ticks() + f64::from(more), Instant::now() + PATIENCE);
        while ticks() < goal {
            assert!(Instant::now() < end, "tlbd does not tick");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One line of the metrics text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

impl Sample {
    /// A label's value; empty where there is none.
    pub(crate) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", |value| value)
    }

    fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels
            .iter()
            .all(|(name, value)| self.label(name) == *value)
    }

    /// Parses a line; panics on one that is no sample.
    fn parse(line: &str) -> Self {
        let (series, value) = line
            .rsplit_once(' ')
            .unwrap_or_else(|| panic!("no value: {line}"));
        let value = value
            .parse()
            .unwrap_or_else(|_| panic!("no number: {line}"));
        let Some((name, rest)) = series.split_once('{') else {
            return Self {
                name: series.to_owned(),
                labels: BTreeMap::new(),
                value,
            };
        };
        let rest = rest
            .strip_suffix('}')
            .unwrap_or_else(|| panic!("no closing brace: {line}"));
        Self {
            name: name.to_owned(),
            labels: labels(rest),
            value,
        }
    }
}

/// `a="x",b="y\"z"`, unescaped.
fn labels(text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let mut characters = text.chars();
    loop {
        let name: String = characters.by_ref().take_while(|c| *c != '=').collect();
        if name.is_empty() {
            return labels;
        }
        assert_eq!(characters.next(), Some('"'), "a quoted value in {text}");
        let mut value = String::new();
        loop {
            match characters.next().expect("a closing quote") {
                '"' => break,
                '\\' => value.push(match characters.next().expect("an escape") {
                    'n' => '\n',
                    other => other,
                }),
                other => value.push(other),
            }
        }
        labels.insert(name.trim_start_matches(',').to_owned(), value);
        assert!(
            matches!(characters.clone().next(), None | Some(',')),
            "a comma in {text}"
        );
    }
}

/// A whole metrics text.
pub(crate) struct Metrics(Vec<Sample>);

impl Metrics {
    /// Parses either text format.
    pub(crate) fn parse(text: &str) -> Self {
        Self(
            text.lines()
                .filter(|line| !line.starts_with('#'))
                .map(Sample::parse)
                .collect(),
        )
    }

    /// The samples of that name.
    pub(crate) fn family<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.0.iter().filter(move |sample| sample.name == name)
    }

    /// The value of the only sample with these labels among its own.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut found = self.family(name).filter(|sample| sample.has(labels));
        let value = found.next().map(|sample| sample.value);
        assert!(
            found.next().is_none(),
            "several samples of {name} with {labels:?}"
        );
        value
    }

    /// The sum over the samples with these labels among their own.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.family(name)
            .filter(|sample| sample.has(labels))
            .map(|sample| sample.value)
            .sum()
    }

    /// Every sample.
    pub(crate) fn all(&self) -> &[Sample] {
        &self.0
    }
}
