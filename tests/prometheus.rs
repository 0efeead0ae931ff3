//! Prometheus itself: its linter on the text, and a server that scrapes.

use std::{
    env, fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    golden::text,
    replay::{POLYGLOT, capture, polyglot, replay},
    support::skip,
};

/// A program of Prometheus', from a variable or the path.
fn tool(variable: &str, name: &str) -> Option<PathBuf> {
    let path = env::var_os(variable).map_or_else(|| name.into(), PathBuf::from);
    let version = Command::new(&path).arg("--version").output();
    if version.is_ok_and(|output| output.status.success()) {
        return Some(path);
    }
    skip(&format!("needs {name}: on PATH or in {variable}"));
    None
}

#[test]
fn promtool_has_nothing_to_say_about_the_metrics() {
    let Some(promtool) = tool("TLBD_PROMTOOL", "promtool") else {
        return;
    };
    let lint = |text: &str| {
        let mut child = Command::new(&promtool)
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    };
    assert_eq!(lint(&text(&polyglot(&[]), "")), (true, String::new()));
    let (clean, said) = lint("# TYPE tlbd_x counter\ntlbd_x 1\n");
    assert!(
        !clean && said.contains("_total"),
        "the linter lints: {said}"
    );
}

/// A running server; killed at the end.
struct Server {
    child: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server that scrapes `target` each second.
    fn start(program: PathBuf, target: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("prometheus.yml");
        let lines = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
             scrape_configs:\n\
             - {{job_name: tlbd, static_configs: [{{targets: ['{target}']}}]}}\n"
        );
        fs::write(&config, lines).unwrap();
        // Free now; nobody else asks for it in the moment until the server does.
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(program)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self {
            child,
            address,
            folder,
        }
    }

    /// What the server's API says; nothing while it is starting.
    fn ask(&self, path: &str) -> Option<serde_json::Value> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        let request = format!("GET /api/v1/{path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// The results of a query; none while the server is starting.
    fn query(&self, query: &str) -> Vec<serde_json::Value> {
        let query: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        self.ask(&format!("query?query={query}"))
            .and_then(|answer| answer["data"]["result"].as_array().cloned())
            .unwrap_or_default()
    }

    /// Why it may be that a scrape fails.
    fn state(&self) -> String {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
        format!("{:?}\n{log}", self.ask("targets"))
    }

    /// The results of a query once `good`.
    fn wait(
        &self,
        query: &str,
        good: impl Fn(&[serde_json::Value]) -> bool,
    ) -> Vec<serde_json::Value> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let results = self.query(query);
            if good(&results) {
                return results;
            }
            assert!(
                Instant::now() < end,
                "{query}: {results:?}\n{}",
                self.state()
            );
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_prometheus_server_scrapes_it() {
    let Some(program) = tool("TLBD_PROMETHEUS", "prometheus") else {
        return;
    };
    let daemon = replay(&capture(POLYGLOT), &["--tick-seconds=0.5"]);
    daemon.metrics();
    let server = Server::start(program, daemon.address());
    server.wait(
        "up{job=\"tlbd\"}",
        |results| matches!(results, [up] if up["value"][1] == "1"),
    );
    let series = server.wait("tlbd_cgroup_cpu_seconds_total", |results| {
        !results.is_empty()
    });
    let name = r#"/polyglot.slice/batch "nightly" \ build.service"#;
    assert!(
        series
            .iter()
            .any(|series| series["metric"]["cgroup"] == name),
        "{series:?}"
    );
    let rate = "rate(tlbd_cgroup_cpu_seconds_total{mode=\"user\"}[5s])>0";
    server.wait(rate, |results| !results.is_empty());
}
