//! The proxy with radio reports over an emulated radio: nothing is lost, and windows obey the law. Measured numbers are
//! printed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::common::Folder;
use crate::common::real::{AT_ORIGIN, is_installed, ready};

/// The radio has 384 kbit/s, a round trip of 120 ms and a buffer of 30 packets. Window for a queue of 6 packets:
/// 384 kbit/s x 120 ms = 3.84 packets, and 6 packets, rounded.
const PROXY: &str = r#"
[proxy]
listen = ["10.9.0.2:8080"]
allow = ["100.64.0.0/10"]

[proxy.reports]
listen = "127.0.0.1:7301"
keys = "radio.keys"

[relay]
steering = { kind = "rnf", tau = "120ms", stale = "60s" }
"#;
const WINDOW: u64 = 10 * 1448;

/// Serves `/BYTES` at once, and `/slow/BYTES` at 18 kB/s for the first 20 s, 145 kbit/s.
const ORIGIN: &str = r#"
import http.server, time

class Origin(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        size = int(self.path.split("/")[-1])
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        if "slow" in self.path:
            for _ in range(180):
                self.wfile.write(bytes(2000))
                time.sleep(2000 / 18000)
            size -= 360_000
        self.wfile.write(bytes(size))

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("10.9.0.1", 8000), Origin).serve_forever()
"#;

/// Downloads each URL at the same time, and fails if a byte is missing or wrong.
const CLIENT: &str = r#"
import sys, threading, urllib.request

proxy = urllib.request.ProxyHandler({"http": "http://10.9.0.2:8080"})
failed = []

def download(path):
    try:
        data = urllib.request.build_opener(proxy).open(f"http://10.9.0.1:8000/{path}", timeout=120).read()
        if data != bytes(int(path.split("/")[-1])):
            failed.append(path)
    except OSError as error:
        failed.append(f"{path}: {error}")

threads = [threading.Thread(target=download, args=(path,)) for path in sys.argv[1:]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit("; ".join(failed) or None)
"#;

/// Writes the windows of the user, as the metrics of the proxy show them.
const WATCH: &str = r#"
import time, urllib.request

while True:
    page = urllib.request.urlopen("http://127.0.0.1:9101/metrics", timeout=60).read().decode()
    for line in page.splitlines():
        if line.startswith("ackclock_proxy_window_bytes{"):
            print(line.split()[-1], flush=True)
    time.sleep(0.2)
"#;

const WORLD: &str = r#"
set -eu
ip link set lo up
sysctl -qw net.ipv4.tcp_congestion_control=reno
at_origin python3 origin.py
"$ACKCLOCK" proxy proxy.toml --metrics 9101 > summary 2> proxy.log & proxy=$!
trap 'kill $(jobs -p)' EXIT
until grep -q "proxy on" proxy.log && python3 -c 'import socket; socket.create_connection(("10.9.0.1", 8000))' 2> /dev/null
do sleep 0.1; done
python3 watch.py > windows 2> watch.log &
"$ACKCLOCK" link 384kbit 384kbit --delay 60ms --buffer 30p --json --radio-reports 127.0.0.1:7301 \
    --report-key radio.keys --report-user 100.64.0.2 -- sh -eu client.sh
kill -INT $proxy
wait $proxy
"#;

/// Result of a run.
struct Run {
    results: Value,
    /// Windows of the user, bytes.
    windows: Vec<u64>,
    summary: String,
}

/// Runs a shell script behind the radio; `None` where the machine does not allow it.
#[allow(clippy::print_stderr, reason = "a skipped test says why")]
fn run(script: &str) -> Option<Run> {
    let folder: Folder = ready(&["python3"])?;
    let alone = Command::new("unshare").args(["-n", "ip", "link", "set", "lo", "up"]).output();
    if !alone.is_ok_and(|ended| ended.status.success()) || !is_installed("sysctl") {
        eprintln!("skipped: needs a network namespace of its own");
        return None;
    }
    folder.write("radio.keys", format!("1 {} 100.64.0.0/10\n", "0f".repeat(32)));
    fs::set_permissions(folder.path("radio.keys"), fs::Permissions::from_mode(0o600)).unwrap();
    let files = [("proxy.toml", PROXY), ("origin.py", ORIGIN), ("load.py", CLIENT), ("watch.py", WATCH)];
    for (name, text) in files.into_iter().chain([("client.sh", script)]) {
        folder.write(name, text);
    }
    let mut command = Command::new("timeout");
    let command = command
        .args(["300", "unshare", "-n", "bash", "-c", &format!("{AT_ORIGIN}{WORLD}")])
        .current_dir(folder.path("."));
    let ended = command.env("ACKCLOCK", env!("CARGO_BIN_EXE_ackclock")).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{err}{}", folder.read("proxy.log"));
    let results = serde_json::from_str(out.lines().find(|line| line.starts_with('{')).unwrap()).unwrap();
    let windows: Vec<u64> = folder.read("windows").lines().map(|line| line.parse().unwrap()).collect();
    let run = Run { results, windows, summary: folder.read("summary") };
    eprintln!(
        "{}; queue {}",
        run.results["bottleneck"]["utilisation"], run.results["bottleneck"]["queue_ms"]
    );
    Some(run)
}

impl Run {
    /// Nothing was dropped at the radio, and each report was accepted.
    fn is_clean(&self) {
        assert_eq!(self.results["bottleneck"]["drops"], 0, "{}", self.results["bottleneck"]);
        assert!(self.summary.contains(" radio reports accepted, 0 refused, 0 lost\n"), "{}", self.summary);
        assert!(self.summary.contains("; 0 refused, 0 ended by a reset, "), "{}", self.summary);
        assert!(!self.windows.is_empty(), "the user was never limited");
    }
}

#[test]
fn four_connections_of_a_user_share_one_window_and_lose_nothing() {
    let Some(run) = run("python3 load.py 150000 150000 150000 150000") else { return };
    // Four windows would overflow the buffer: 4 x 10 packets, of which 4 are in transit.
    run.is_clean();
    assert!(run.summary.contains("4 connections to servers, "), "{}", run.summary);
}

#[test]
fn a_connection_whose_server_is_slow_gets_no_larger_window() {
    let Some(run) = run("python3 load.py slow/500000") else { return };
    run.is_clean();
    let most = *run.windows.iter().max().unwrap();
    assert!(most <= 2 * WINDOW, "{most} bytes of window");
}

#[test]
#[allow(clippy::print_stderr, reason = "measured numbers are printed")]
fn a_changing_rate_loses_nothing_live_and_in_the_simulator() {
    let script = r#"
(sleep 4; "$ACKCLOCK" link set down.rate=128kbit/s; sleep 4; "$ACKCLOCK" link set down.rate=384kbit/s) > changes &
python3 load.py 350000
"#;
    let Some(live) = run(script) else { return };
    live.is_clean();
    let folder = Folder::new();
    folder.write("radio.toml", SIMULATED);
    let simulated = folder.run(&["run", "radio.toml", "--json"]);
    assert_eq!(simulated.status, 0, "{}", simulated.err);
    let simulated: Value = serde_json::from_str(&simulated.out).unwrap();
    eprintln!("simulated: {}", simulated["bottleneck"]);
    assert_eq!(simulated["bottleneck"]["drops"], 0, "{simulated}");
    assert_eq!(simulated["flows"][0]["retransmits"], 0, "{simulated}");
}

/// The same radio in the simulator.
const SIMULATED: &str = r#"
version = 1
preset = "linux"
duration = "20s"

[path]
rate = "1Gbit/s"
delay = "0ms"

[relay]
core = { delay = "0ms" }
steering = { kind = "rnf", tau = "120ms" }

[edge]
buffer = "30p"

[edge.report]
every = "1s"

[edge.down]
rate = "384kbit/s"
delay = "60ms"

[edge.up]
rate = "384kbit/s"
delay = "60ms"

[[edge.at]]
time = "4s"
set = { down.rate = "128kbit/s" }

[[edge.at]]
time = "8s"
set = { down.rate = "384kbit/s" }

[[flow]]
sender = "reno"
workload = { kind = "file", size = "350kB" }
"#;
