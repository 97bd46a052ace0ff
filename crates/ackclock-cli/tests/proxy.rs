//! Configuration and key files of the proxy: mistakes end it before it listens.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::common::Folder;
use crate::common::real::{AT_ORIGIN, comes_true, is_installed, ready};

const FILE: &str = r#"
[proxy]
listen = ["127.0.0.1:0"]

[proxy.reports]
listen = "127.0.0.1:0"
keys = "radio.keys"

[relay]
steering = "rnf"
"#;

#[test]
fn a_mistake_in_a_file_is_one_line_with_file_key_and_allowed_values() {
    let folder = Folder::new();
    let secret = "0f".repeat(32);
    folder.write("proxy.toml", FILE);
    let fails = |expected: &str| {
        let ended = folder.run(&["proxy", "proxy.toml"]);
        assert_eq!(ended.status, 2, "{}", ended.err);
        assert!(ended.err.contains(expected), "{}", ended.err);
        assert!(!ended.err.contains(&secret), "the error shows the secret");
    };
    fails("radio.keys");
    folder.write("radio.keys", format!("1 {secret} 10.0.0.0/24\n"));
    let mode =
        |mode| fs::set_permissions(folder.path("radio.keys"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    fails("radio.keys: other users can access the keys (mode 640): chmod 600");
    mode(0o600);
    folder.write("radio.keys", format!("1 {secret}0 10.0.0.0/24\n"));
    fails("radio.keys: line 1: the secret is not 64 hexadecimal digits");
    folder.write("proxy.toml", FILE.replace("\"rnf\"", "{ kind = \"rnf\", gain = 2.5 }"));
    fails("proxy.toml: relay.steering.gain: 2.5 is not from 0 to below 2");
    folder.write("proxy.toml", FILE.replace("[\"127.0.0.1:0\"]", "[\"0.0.0.0:0\"]"));
    folder.write("radio.keys", format!("1 {secret} 10.0.0.0/24\n"));
    fails("proxy.toml: proxy.listen: 0.0.0.0:0 can be reached from other machines");
}

#[test]
fn files_for_all_connections_may_be_open_or_the_proxy_does_not_start() {
    let start = |limit: &str| {
        let script = format!("ulimit {limit} 300 && exec \"$0\" proxy --listen 127.0.0.1:0");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_ackclock")]).stdout(Stdio::null());
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let ended = start("-n").wait_with_output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{error}");
    let expected = "--max-connections: 2148 open files are needed, but the limit is 300";
    assert!(error.contains(expected), "{error}");

    let mut proxy = start("-Sn");
    let mut line = String::new();
    BufReader::new(proxy.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let limits = fs::read_to_string(format!("/proc/{}/limits", proxy.id())).unwrap();
    proxy.kill().unwrap();
    proxy.wait().unwrap();
    assert!(line.contains("proxy on"), "{line}");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    // With those of all pipes, since the hard limit allows them.
    assert_eq!(files.split_whitespace().nth(3), Some("4148"), "{files}");
}

#[test]
fn reports_are_sent_from_options_and_from_standard_input() {
    let folder = Folder::new();
    folder.write("radio.keys", format!("7 {} 10.0.0.0/24\n", "0f".repeat(32)));
    fs::set_permissions(folder.path("radio.keys"), fs::Permissions::from_mode(0o600)).unwrap();
    let proxy = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = proxy.local_addr().unwrap().to_string();
    let words = |user| vec!["radio-report", to.as_str(), "--report-key", "radio.keys", "--user", user];
    // Bytes 0-6 are magic, key and reason; then rate, packets and bytes of the queue.
    let hears = |reason: u8, rate: u64, packets: u32, bytes: u32| {
        let mut report = [0; 200];
        assert_eq!(proxy.recv(&mut report).unwrap(), 80);
        assert_eq!(report[..7], [b'R', b'N', b'F', b'1', 0, 7, reason]);
        assert_eq!(report[48..56], rate.to_be_bytes());
        assert_eq!(
            (report[56..60].to_vec(), report[60..64].to_vec()),
            (packets.to_be_bytes().to_vec(), bytes.to_be_bytes().to_vec())
        );
    };
    let options = ["--rate", "384kbit/s", "--packets", "6", "--bytes", "9000"];
    assert_eq!(folder.run(&[words("10.0.0.9"), options.to_vec()].concat()).status, 0);
    hears(1, 384_000, 6, 9000);

    let mut reading = folder.command(&words("10.0.0.9"));
    let mut reading = reading.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = b"128kbit/s 5 7500\n128kbit/s 4 6000\n0bit/s 4 6000\n128kbit/s x 1\n";
    reading.stdin.take().unwrap().write_all(lines).unwrap();
    let ended = reading.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let error = String::from_utf8(ended.stderr).unwrap();
    assert!(error.contains("standard input, line 4: PACKETS `x` is not a whole number"), "{error}");
    hears(1, 128_000, 5, 7500);
    hears(0, 128_000, 4, 6000);
    hears(1, 0, 4, 6000);

    let ended = folder.run(&[words("10.0.1.9"), options.to_vec()].concat());
    assert_eq!(ended.status, 2);
    assert!(ended.err.contains("--user: 10.0.1.9 is not a user of key 7"), "{}", ended.err);
}

/// Page of metrics at an address; empty if the page is not served yet.
fn metrics(address: SocketAddr) -> String {
    let mut page = String::new();
    if let Ok(mut stream) = TcpStream::connect(address) {
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        stream.read_to_string(&mut page).unwrap();
    }
    page
}

/// Writes a key file that only its owner can read.
fn keys(folder: &Folder, name: &str, digits: &str) {
    folder.write(name, format!("1 {} 10.0.0.0/24\n", digits.repeat(32)));
    fs::set_permissions(folder.path(name), fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn metrics_of_the_proxy_count_accepted_and_refused_reports() {
    let folder = Folder::new();
    keys(&folder, "radio.keys", "0f");
    keys(&folder, "other.keys", "f0");
    // Ports that were free a moment ago, at addresses that nobody connects from in the meantime.
    let page = TcpListener::bind("127.77.0.2:0").unwrap().local_addr().unwrap();
    let reports = UdpSocket::bind("127.77.0.3:0").unwrap().local_addr().unwrap().to_string();
    folder.write("proxy.toml", FILE.replace("listen = \"127.0.0.1:0\"", &format!("listen = \"{reports}\"")));
    let mut proxy = folder.command(&["proxy", "proxy.toml", "--metrics", &page.to_string()]);
    let mut proxy = proxy.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let is_up = comes_true(|| metrics(page).contains("\nackclock_proxy_reports_total 0\n"));
    for keys in ["radio.keys", "other.keys", "other.keys"] {
        let words =
            ["radio-report", &reports, "--report-key", keys, "--user", "10.0.0.9", "--rate", "1Mbit/s"];
        assert_eq!(folder.run(&words).status, 0);
    }
    let is_counted = comes_true(|| {
        let page = metrics(page);
        let has = |row: &str| page.contains(&format!("\nackclock_proxy_{row}\n"));
        has("reports_total 1") && has("refused_reports_total{reason=\"forged\"} 2") && has("limited_users 0")
    });
    proxy.kill().unwrap();
    proxy.wait().unwrap();
    assert!(is_up && is_counted, "{}", metrics(page));
}

#[test]
fn a_link_reports_its_rate() {
    let Some(folder) = ready(&[]) else { return };
    folder.write("radio.keys", format!("7 {} 10.0.0.0/24\n", "0f".repeat(32)));
    fs::set_permissions(folder.path("radio.keys"), fs::Permissions::from_mode(0o600)).unwrap();
    let proxy = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = proxy.local_addr().unwrap().to_string();
    let reports = ["--radio-reports", &to, "--report-key", "radio.keys", "--report-user", "10.0.0.9"];
    let words = [&["link", "1mbit", "384kbit", "--closed", "--report-every", "50ms"][..], &reports];
    let ended = folder.run(&[words.concat(), vec!["--", "sleep", "0.3"]].concat());
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    let mut report = [0; 200];
    for reason in [1, 0] {
        assert_eq!(proxy.recv(&mut report).unwrap(), 80);
        assert_eq!((report[6], &report[48..56]), (reason, &384_000_u64.to_be_bytes()[..]));
    }
}

/// In a network namespace of its own: a proxy with reports, and a download through a link with an unlimited buffer.
const DOWNLOAD: &str = r#"
set -eu
ip link set lo up
sysctl -qw net.ipv4.tcp_congestion_control=reno
head -c 300000 /dev/zero > file
at_origin python3 -m http.server 8000 --bind 10.9.0.1 > server.log 2>&1
"$ACKCLOCK" proxy proxy.toml 2> proxy.log &
proxy=$!
trap 'kill $origin $proxy' EXIT
until grep -q "proxy on" proxy.log; do sleep 0.1; done
"$ACKCLOCK" link 1mbit 384kbit --delay 60ms --json --radio-reports 127.0.0.1:7301 --report-key radio.keys \
    --report-user 100.64.0.2 --report-every 500ms -- sh -c \
    'curl -s --retry 9 --retry-all-errors -o copy --proxy http://10.9.0.2:8080 http://10.9.0.1:8000/file'
cmp file copy
"#;

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test says why")]
fn a_proxy_with_reports_keeps_the_queue_of_a_link_short() {
    let Some(folder) = ready(&[]) else { return };
    let alone = Command::new("unshare").args(["-n", "ip", "link", "set", "lo", "up"]).output();
    if !alone.is_ok_and(|ended| ended.status.success()) || !is_installed("curl") || !is_installed("python3") {
        eprintln!("skipped: needs a network namespace of its own, curl and python3");
        return;
    }
    folder.write("radio.keys", format!("1 {} 100.64.0.0/10\n", "0f".repeat(32)));
    fs::set_permissions(folder.path("radio.keys"), fs::Permissions::from_mode(0o600)).unwrap();
    let proxy = FILE.replace("0.1:0\"]", "0.1:8080\"]\nallow = [\"100.64.0.0/10\"]");
    let proxy =
        proxy.replace("[\"127.0.0.1:8080", "[\"10.9.0.2:8080").replace("127.0.0.1:0", "127.0.0.1:7301");
    folder.write("proxy.toml", proxy);
    let mut command = Command::new("timeout");
    let command = command
        .args(["300", "unshare", "-n", "bash", "-c", &format!("{AT_ORIGIN}{DOWNLOAD}")])
        .current_dir(folder.path("."));
    let ended = command.env("ACKCLOCK", env!("CARGO_BIN_EXE_ackclock")).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{err}{}", folder.read("proxy.log"));
    let results = out.lines().find(|line| line.starts_with('{')).unwrap();
    let results: serde_json::Value = serde_json::from_str(results).unwrap();
    let queue = results["bottleneck"]["queue_ms"]["p95"].as_f64().unwrap();
    // The target queue is six packets of 1500 bytes at 384 kbit/s, 190 ms. Reno alone queues seconds.
    assert!(queue > 0.0 && queue <= 1000.0, "{queue} ms");
}
