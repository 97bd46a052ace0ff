//! Radio reports measured at the queue of an interface.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::common::Folder;
use crate::common::real::is_installed;

/// An interface with a shaper of 1 Mbit/s, which is idle first and then has a queue; prints the reports that follow.
const SCRIPT: &str = r#"
import os, socket, struct, subprocess, threading

def run(words):
    subprocess.run(words.split(), check=True)

run("ip link set lo up")
run("ip link add ran0 type veth peer name end")
run("ip addr add 10.5.0.1/24 dev ran0")
run("ip link set ran0 up")
run("ip link set end up")
run("ip neigh add 10.5.0.2 lladdr 02:00:00:00:00:02 dev ran0")
run("tc qdisc add dev ran0 root tbf rate 1mbit burst 3000 limit 1000000")
radio = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
radio.bind(("127.0.0.1", 0))
words = f"radio-report 127.0.0.1:{radio.getsockname()[1]} --report-key radio.keys --user 10.0.0.9"
words += " --from-interface ran0 --every 200ms"
reporter = subprocess.Popen([os.environ["ACKCLOCK"], *words.split()], stderr=subprocess.PIPE, text=True)
print(reporter.stderr.readline(), end="")

load = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def send(count):
    for _ in range(count):
        load.sendto(bytes(1000), ("10.5.0.2", 9))

send(1)
radio.settimeout(1)
try:
    radio.recv(200)
    print("a report about an idle interface")
except TimeoutError:
    pass
radio.settimeout(60)
# The send buffer of the socket holds back the sender, so that packets wait in the queue until the end. Small packets of the
# kernel may wait among them.
threading.Thread(target=send, args=(10**6,), daemon=True).start()
for _ in range(4):
    report = radio.recv(200)
    rate, packets, length = struct.unpack(">QII", report[48:64])
    print(report[6], rate, packets > 0, length > 500 * packets)
reporter.kill()
os._exit(0)
"#;

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test says why")]
fn the_rate_of_an_interface_is_reported_while_packets_wait_and_only_then() {
    let folder = Folder::new();
    folder.write("radio.keys", format!("1 {} 10.0.0.0/24\n", "0f".repeat(32)));
    fs::set_permissions(folder.path("radio.keys"), fs::Permissions::from_mode(0o600)).unwrap();
    folder.write("script.py", SCRIPT);
    let trial =
        "ip link add trial type veth && tc qdisc add dev trial root tbf rate 1mbit burst 3000 limit 3000";
    let trial = Command::new("unshare").args(["-n", "sh", "-c", trial]).output();
    if !trial.is_ok_and(|ended| ended.status.success()) || !is_installed("python3") {
        return eprintln!("skipped: needs python3, a network namespace, veth interfaces and the shaper tbf");
    }
    let mut command = Command::new("timeout");
    let command =
        command.args(["300", "unshare", "-n", "python3", "script.py"]).current_dir(folder.path("."));
    let ended = command.env("ACKCLOCK", env!("CARGO_BIN_EXE_ackclock")).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{out}{err}");
    let mut lines = out.lines();
    assert_eq!(
        lines.next(),
        Some("ackclock: reports the rate of ran0 while packets wait in its queue; Ctrl-C ends it")
    );
    let reports: Vec<Vec<&str>> = lines.map(|line| line.split(' ').collect()).collect();
    assert_eq!(reports.len(), 4, "{out}");
    for report in reports {
        let [reason, rate, is_queued, has_headers] = report[..] else { panic!("{out}") };
        assert_eq!((reason, is_queued, has_headers), ("0", "True", "True"), "{out}");
        // The shaper sends 1 Mbit/s on average, and catches up after the machine was busy.
        assert!((500_000..=2_000_000).contains(&rate.parse::<u64>().unwrap()), "{out}");
    }
}

#[test]
fn an_interface_without_a_queue_cannot_be_measured() {
    let folder = Folder::new();
    folder.write("radio.keys", format!("1 {} 10.0.0.0/24\n", "0f".repeat(32)));
    fs::set_permissions(folder.path("radio.keys"), fs::Permissions::from_mode(0o600)).unwrap();
    let words = [
        "radio-report",
        "127.0.0.1:9",
        "--report-key",
        "radio.keys",
        "--user",
        "10.0.0.9",
        "--from-interface",
    ];
    for (interface, more, error) in [
        ("lo", &[][..], "--from-interface lo: the interface has no queue (qdisc) to measure"),
        ("no-such-if", &[], "--from-interface no-such-if: No such device"),
        ("lo", &["--rate", "1Mbit/s"], "cannot be used together"),
        ("lo", &["--every", "1ms"], "1ms is not from 100ms to 60s"),
    ] {
        let ended = folder.run(&[&words[..], &[interface], more].concat());
        assert_eq!(ended.status, 2, "{}", ended.err);
        assert!(ended.err.contains(error), "{}", ended.err);
    }
}
