//! `ackclock link --forward`: servers on the machine's loopback addresses are reached at the inside's. The machine is a network
//! namespace of the test's own.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::process::{Child, Stdio};

use crate::common::real::{Machine, is_installed, ready, until_line};
use crate::common::{Ended, Folder};

const ACKCLOCK: &str = env!("CARGO_BIN_EXE_ackclock");

/// Answers each connection with the length and hash of what came, and each datagram with itself. It says when it listens.
const HASHER: &str = r#"
import hashlib, os, socket, sys, threading
at, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in at else socket.AF_INET
datagrams = socket.socket(family, socket.SOCK_DGRAM)
datagrams.bind((at, port))
listener = socket.socket(family, socket.SOCK_STREAM)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((at, port))
listener.listen(256)
print("ready", flush=True)

def serve(peer):
    digest, length = hashlib.sha256(), 0
    while data := peer.recv(65536):
        if data == b"ping":
            peer.sendall(b"pong")
            continue
        digest.update(data)
        length += len(data)
    peer.sendall(f"{length} {digest.hexdigest()}".encode())
    peer.close()

def echo():
    while True:
        datagrams.sendto(*datagrams.recvfrom(65536))

threading.Thread(target=echo, daemon=True).start()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

/// Tries forwarded ports, given as arguments, in every way; prints what went wrong.
const TRIER: &str = r#"
import hashlib, os, socket, sys
def connect(port):
    peer = socket.socket()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    peer.settimeout(60)
    peer.connect(("127.0.0.1", port))
    return peer

def rest(peer):
    return b"".join(iter(lambda: peer.recv(65536), b"")).decode()

def answer(data):
    return f"{len(data)} {hashlib.sha256(data).hexdigest()}"

for port in map(int, sys.argv[1:]):
    # An upload, then the answer after a half-close.
    data = os.urandom(10_000_000)
    peer = connect(port)
    peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
    assert rest(peer) == answer(data), "upload"
    # Messages in turns over one connection, as of HTTP keep-alive or a WebSocket.
    peer = connect(port)
    for _ in range(5):
        peer.sendall(b"ping")
        assert peer.recv(4, socket.MSG_WAITALL) == b"pong", "turns"
    # 200 connections at once.
    peers = [connect(port) for _ in range(200)]
    for number, peer in enumerate(peers):
        peer.sendall(str(number).encode())
    for number, peer in enumerate(peers):
        peer.shutdown(socket.SHUT_WR)
        assert rest(peer) == answer(str(number).encode()), "at once"
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.settimeout(60)
    datagrams.connect(("127.0.0.1", port))
    for text in (b"first", b"second"):
        datagrams.send(text)
        assert datagrams.recv(100) == text, "datagrams"
print("all", os.environ["ACKCLOCK_FORWARD"])
"#;

const AS_USER: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";

struct Hasher(Child);

impl Hasher {
    fn start(machine: &Machine, folder: &Folder, at: &str, port: u16) -> Self {
        let mut command = machine.command(&format!("exec python3 hasher.py {at} {port}"), folder);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        until_line(&mut child, "ready");
        Self(child)
    }
}

impl Drop for Hasher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A machine, where one can be made.
fn machine(purpose: &str) -> Option<(Folder, Machine)> {
    let folder = ready(&["python3", "ip"])?;
    folder.write("hasher.py", HASHER);
    folder.write("trier.py", TRIER);
    let machine = Machine::new(purpose, &folder)?;
    Some((folder, machine))
}

fn run(machine: &Machine, folder: &Folder, script: &str) -> Ended {
    Ended::from(machine.command(script, folder).output().unwrap())
}

#[test]
fn servers_of_the_machine_are_reached_inside_and_nothing_is_left_behind() {
    let Some((folder, machine)) = machine("forward") else { return };
    let servers = [("127.0.0.1", 8010), ("::1", 8011), ("0.0.0.0", 8012)];
    let _servers = servers.map(|(at, port)| Hasher::start(&machine, &folder, at, port));
    let before = machine.state(&folder);
    for user in ["", AS_USER] {
        for closed in ["", "--closed"] {
            let link = format!("{user} {ACKCLOCK} link 1gbit 1gbit --delay 1ms {closed}");
            if !user.is_empty()
                && (!is_installed("setpriv")
                    || run(&machine, &folder, &format!("{link} -- true")).status != 0)
            {
                eprintln!("skipped: `{link}` is refused here");
                continue;
            }
            let script = format!("{link} --forward 8010-8011,8012 -- python3 trier.py 8010 8011 8012");
            let ended = run(&machine, &folder, &script);
            assert_eq!(ended.out, "all 8010,8011,8012\n", "{link}: {}", ended.err);
        }
    }
    machine.returns_to(&before, &folder);
}

#[test]
fn a_server_may_come_later_and_end_and_a_closed_port_is_told_of_once() {
    let Some((folder, machine)) = machine("later") else { return };
    folder.write(
        "talk.py",
        "import socket, sys\n\
         for line in sys.stdin:\n    \
             try:\n        \
                 peer = socket.create_connection(('localhost', 8010))\n        \
                 peer.sendall(b'ping')\n        \
                 print(peer.recv(4).decode() or 'closed', flush=True)\n    \
             except ConnectionError:\n        \
                 print('reset', flush=True)\n    \
             print('done', flush=True)\n",
    );
    let script = format!("exec {ACKCLOCK} link 10mbit 10mbit --forward 9000=8010 -- python3 talk.py");
    let mut command = machine.command(&script, &folder);
    let mut link =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut talk = || {
        use std::io::Write;
        link.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        until_line(&mut link, "done")
    };
    assert_eq!([talk(), talk()], ["reset\ndone\n"; 2]);
    for at in ["127.0.0.1", "::1", "0.0.0.0"] {
        let server = Hasher::start(&machine, &folder, at, 9000);
        assert_eq!(talk(), "pong\ndone\n", "{at}");
        drop(server);
        assert_eq!(talk(), "reset\ndone\n", "{at}");
    }
    drop(link.stdin.take());
    let ended = Ended::from(link.wait_with_output().unwrap());
    let told = "nothing listens on the machine's 127.0.0.1:9000 or [::1]:9000";
    assert_eq!(ended.err.matches(told).count(), 1, "{}", ended.err);
    assert!(!ended.err.contains("refused"), "{}", ended.err);
}

#[test]
fn a_forwarded_connection_advertises_the_mss_of_the_link() {
    let Some((folder, machine)) = machine("mss") else { return };
    let _server = Hasher::start(&machine, &folder, "127.0.0.1", 8010);
    let script = format!(
        "{ACKCLOCK} link 1gbit 1gbit --forward 8010 --pcap-inside in.pcapng -- python3 trier.py 8010"
    );
    let ended = run(&machine, &folder, &script);
    assert_eq!(ended.status, 0, "{}", ended.err);
    let capture = std::fs::read(folder.path("in.pcapng")).unwrap();
    // The option (RFC 9293 section 3.7.1), then that for SACK or a NOP.
    let has_mss = |mss: u16| {
        let [high, low] = mss.to_be_bytes();
        [[2, 4, high, low, 4, 2], [2, 4, high, low, 1, 1]]
            .iter()
            .any(|option| capture.windows(6).any(|bytes| bytes == option))
    };
    assert!(has_mss(1460) && !has_mss(65495));
}

#[test]
fn a_connection_to_a_closed_port_of_localhost_is_answered_by_a_hint() {
    let Some((folder, machine)) = machine("hint") else { return };
    folder.write(
        "try.py",
        "import socket, sys\n\
         for at, port in zip(sys.argv[1::2], sys.argv[2::2]):\n    \
             socket.socket(socket.AF_INET6 if ':' in at else socket.AF_INET).connect_ex((at, int(port)))\n\
         own = socket.create_server(('127.0.0.1', 8030))\n\
         socket.create_connection(('127.0.0.1', 8030))\n",
    );
    let refused = "127.0.0.1 8010 127.0.0.1 8010 ::1 8010 ::1 8020 127.0.0.1 8030";
    let script = format!("{ACKCLOCK} link 1gbit 1gbit --closed --forward 8020 -- python3 try.py {refused}");
    let ended = run(&machine, &folder, &script);
    let hints: Vec<&str> = ended.err.lines().filter(|line| line.contains("refused")).collect();
    assert_eq!(
        hints,
        [
            "ackclock: 2 connects to 127.0.0.1:8010 inside were refused; --forward 8010 brings the machine's server inside",
            "ackclock: 1 connect to [::1]:8020 inside was refused; a forwarded port is reached at 127.0.0.1:8020 or localhost:8020"
        ],
        "{}",
        ended.err
    );
}

#[test]
fn a_wrong_forward_is_refused_before_anything_is_made() {
    let folder = Folder::new();
    for (options, told) in [
        (vec!["--forward", "0"], "`0` is not a port"),
        (vec!["--forward", "65536"], "`65536` is not a port"),
        (vec!["--forward", "80", "--forward", "80"], "port 80 inside is forwarded twice"),
        (vec!["--forward", "1-65"], "65 ports; at most 64"),
        (vec!["--forward", "80", "--server", "true"], "--server"),
    ] {
        let link = [vec!["link", "1mbit", "1mbit"], options.clone(), vec!["--", "true"]].concat();
        let ended = folder.run(&link);
        assert_eq!(ended.status, 2, "{options:?}: {}", ended.err);
        assert!(ended.err.contains(told), "{options:?}: {}", ended.err);
    }
}
