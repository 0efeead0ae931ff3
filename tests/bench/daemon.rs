//! The daemon under measurement, and its answers.

use std::{
    collections::HashMap,
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;

use crate::{account, janitor};

/// Longest wait for anything the daemon does.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running `tlbd run`; stopped at the end.
pub struct Daemon {
    child: Child,
    address: SocketAddr,
    /// From the start to the first complete view.
    pub started_in: Duration,
}

impl Daemon {
    /// Starts it with these flags and otherwise the defaults, whatever this host configures, and
    /// waits until it is ready.
    pub fn start(flags: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tlbd"));
        for (name, _) in
            env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"TLBD_"))
        {
            command.env_remove(name);
        }
        command
            .args(["run", "--config", "/dev/null", "--listen", "127.0.0.1:0"])
            .args(flags);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        janitor::dies_with_parent(&mut command, libc::SIGTERM);
        let start = Instant::now();
        let mut child = command.spawn().context("starting tlbd")?;
        let errors = child.stderr.take().context("no standard error")?;
        let mut daemon = Self {
            child,
            address: ([127, 0, 0, 1], 0).into(),
            started_in: Duration::ZERO,
        };
        daemon.address = address(errors)?;
        while daemon
            .get("/readyz")
            .is_none_or(|reply| reply.status != 200)
        {
            anyhow::ensure!(
                start.elapsed() < PATIENCE,
                "tlbd is not ready after {PATIENCE:?}"
            );
            thread::sleep(Duration::from_millis(1));
        }
        daemon.started_in = start.elapsed();
        Ok(daemon)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn cpu_time(&self) -> anyhow::Result<Duration> {
        Ok(account::cpu_time(self.pid())?)
    }

    /// A scrape as Prometheus makes it, on a connection of its own.
    pub fn scrape(&self) -> anyhow::Result<Scrape> {
        let reply = self
            .get("/metrics")
            .context("tlbd does not answer /metrics")?;
        anyhow::ensure!(
            reply.status == 200,
            "tlbd answers /metrics with {}",
            reply.status
        );
        Ok(Scrape {
            text: String::from_utf8(reply.body)?,
            took: reply.took,
        })
    }

    /// The first scrape of a view after that of `last`.
    pub fn next_tick(&self, last: Option<&Scrape>) -> anyhow::Result<Scrape> {
        let start = Instant::now();
        let before = match last {
            Some(last) => last.ticks(),
            None => self.scrape()?.ticks(),
        };
        while start.elapsed() < PATIENCE {
            let scrape = self.scrape()?;
            if scrape.ticks() > before {
                return Ok(scrape);
            }
            thread::sleep(Duration::from_millis(50));
        }
        anyhow::bail!("tlbd has no new view after {PATIENCE:?}")
    }

    /// Stops it; gives the CPU time of its whole life.
    pub fn stop(mut self) -> anyhow::Result<Duration> {
        account::signal(&self.child, libc::SIGTERM);
        let time = account::wait(&mut self.child)?;
        // Waited for: its id may be another process's from now on, so it must not be killed.
        std::mem::forget(self);
        Ok(time)
    }

    fn get(&self, path: &str) -> Option<Reply> {
        let start = Instant::now();
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let accept = "application/openmetrics-text; version=1.0.0";
        let request = format!("GET {path} HTTP/1.1\r\nHost: tlbd\r\nAccept: {accept}\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = BufReader::with_capacity(1 << 16, stream);
        let (mut line, mut status, mut length) = (String::new(), 0, 0);
        while answer.read_line(&mut line).ok()? > 2 {
            let text = line.trim().to_ascii_lowercase();
            if let Some(code) = text.strip_prefix("http/1.1 ") {
                status = code.get(..3)?.parse().ok()?;
            } else if let Some(bytes) = text.strip_prefix("content-length:") {
                length = bytes.trim().parse().ok()?;
            }
            line.clear();
        }
        let mut body = vec![0; length];
        answer.read_exact(&mut body).ok()?;
        Some(Reply {
            status,
            body,
            took: start.elapsed(),
        })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        account::signal(&self.child, libc::SIGTERM);
        let _ = self.child.wait();
    }
}

struct Reply {
    status: u16,
    body: Vec<u8>,
    took: Duration,
}

/// Where it listens, from its first line. The rest is read so that it never waits for a reader.
fn address(errors: std::process::ChildStderr) -> anyhow::Result<SocketAddr> {
    let (found, address) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            let told = line
                .split_once("listening on http://")
                .and_then(|(_, rest)| rest.split_once('/'));
            match told.and_then(|(address, _)| address.parse().ok()) {
                Some(address) => drop(found.send(address)),
                None => eprintln!("bench:   {line}"),
            }
        }
    });
    address
        .recv_timeout(PATIENCE)
        .context("tlbd does not say where it listens")
}

/// What one scrape gave.
pub struct Scrape {
    pub text: String,
    /// From connecting to the last byte.
    pub took: Duration,
}

impl Scrape {
    /// The value of a series, by its name with its labels; 0 if it is not there.
    pub fn value(&self, series: &str) -> f64 {
        let found = self
            .text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        found.and_then(|value| value.parse().ok()).unwrap_or(0.0)
    }

    pub fn ticks(&self) -> f64 {
        self.value("tlbd_ticks_total")
    }

    /// The series of a family with one label: the label's value, and the series' own.
    pub fn by_label(&self, family: &str) -> HashMap<&str, f64> {
        let of_family = self
            .text
            .lines()
            .filter_map(|line| line.strip_prefix(family)?.strip_prefix('{'));
        let pairs = of_family.filter_map(|rest| {
            let (labels, value) = rest.split_once("} ")?;
            Some((labels.split('"').nth(1)?, value.parse().ok()?))
        });
        pairs.collect()
    }

    pub fn series(&self) -> usize {
        self.text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count()
    }
}
