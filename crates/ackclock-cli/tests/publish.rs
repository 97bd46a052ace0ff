//! `ackclock link --publish`: servers inside are reached at ports of the machine. The machine is a network namespace of the
//! test's own.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use crate::common::real::{Machine, is_installed, ready};
use crate::common::{Ended, Folder};

const ACKCLOCK: &str = env!("CARGO_BIN_EXE_ackclock");

/// Serves at addresses and ports until a client says `end`: a connection is answered with length and hash of what came, a
/// datagram with itself.
const SERVER: &str = r#"
import hashlib, os, socket, sys, threading

def serve(peer):
    digest, length = hashlib.sha256(), 0
    while data := peer.recv(65536):
        if data == b"end":
            os._exit(7)
        digest.update(data)
        length += len(data)
    peer.sendall(f"{length} {digest.hexdigest()}".encode())
    peer.close()

def accept(listener):
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

def echo(datagrams):
    while True:
        datagrams.sendto(*datagrams.recvfrom(65536))

for at, port in zip(sys.argv[1::2], sys.argv[2::2]):
    family = socket.AF_INET6 if ":" in at else socket.AF_INET
    datagrams = socket.socket(family, socket.SOCK_DGRAM)
    datagrams.bind((at, int(port)))
    listener = socket.socket(family)
    listener.bind((at, int(port)))
    listener.listen(256)
    threading.Thread(target=echo, args=(datagrams,), daemon=True).start()
    threading.Thread(target=accept, args=(listener,), daemon=True).start()
threading.Event().wait()
"#;

/// Tries published ports of the machine in every way, and ends the server.
const CLIENT: &str = r#"
import hashlib, os, socket, sys, time
ports = list(map(int, sys.argv[1:]))

def connect(port):
    peer = socket.create_connection(("127.0.0.1", port), timeout=60)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    return peer

def rest(peer):
    return b"".join(iter(lambda: peer.recv(65536), b"")).decode()

def answer(data):
    return f"{len(data)} {hashlib.sha256(data).hexdigest()}"

def listens(port):
    try:
        peer = connect(port)
        peer.shutdown(socket.SHUT_WR)
        return rest(peer) == answer(b"")
    except ConnectionError:
        return False

for port in ports:
    while not listens(port):
        time.sleep(0.05)
for port in ports:
    data = os.urandom(3_000_000)
    peer = connect(port)
    peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
    assert rest(peer) == answer(data), "upload"
    peers = [connect(port) for _ in range(100)]
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
connect(ports[0]).sendall(b"end")
print("all")
"#;

const AS_USER: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";

fn machine(purpose: &str) -> Option<(Folder, Machine)> {
    let folder = ready(&["python3", "ip"])?;
    folder.write("published.py", SERVER);
    folder.write("client.py", CLIENT);
    let machine = Machine::new(purpose, &folder)?;
    Some((folder, machine))
}

fn run(machine: &Machine, folder: &Folder, script: &str) -> Ended {
    Ended::from(machine.command(script, folder).output().unwrap())
}

#[test]
fn servers_inside_are_reached_from_the_machine_and_nothing_is_left_behind() {
    let Some((folder, machine)) = machine("publish") else { return };
    let before = machine.state(&folder);
    let server = "python3 published.py 127.0.0.1 8010 ::1 8011 0.0.0.0 80";
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
            let server = if user.is_empty() {
                server
            } else {
                "python3 published.py 127.0.0.1 8010 ::1 8011 0.0.0.0 8012"
            };
            let port = if user.is_empty() { 80 } else { 8012 };
            let script = format!(
                "{link} --publish 8010,8011 --publish 9000:{port} --json -- {server} > link.json & link=$!
                 timeout 120 python3 client.py 8010 8011 9000 || kill $link; wait $link"
            );
            let ended = run(&machine, &folder, &script);
            assert_eq!((ended.status, ended.out.as_str()), (7, "all\n"), "{link}: {}", ended.err);
            let results = std::fs::read_to_string(folder.path("link.json")).unwrap();
            let inside = format!(":{port}\"");
            assert!(results.contains(":8010\"") && results.contains(&inside), "{results}");
            // Until the server listens, the outer end of the link is connected, and the inner relay says so once a port.
            let expected =
                ["ackclock: nothing listens inside at 127.0.0.1:", "ackclock: the inside reaches only"];
            for line in ended.err.lines() {
                assert!(expected.iter().any(|start| line.starts_with(start)), "{}", ended.err);
            }
        }
    }
    machine.returns_to(&before, &folder);
}

#[test]
fn a_port_in_use_and_a_wrong_port_are_refused_before_anything_is_made() {
    let Some((folder, machine)) = machine("published") else { return };
    let script = format!(
        "python3 -c 'import socket, subprocess, sys
taken = socket.create_server((\"127.0.0.1\", 8010))
sys.exit(subprocess.call(sys.argv[1:]))' {ACKCLOCK} link 1mbit 1mbit --publish 8010 -- true"
    );
    let ended = run(&machine, &folder, &script);
    assert_eq!(ended.status, 2, "{}", ended.err);
    assert!(ended.err.contains("--publish: 127.0.0.1:8010: Address already in use"), "{}", ended.err);
    for (option, told) in [("8010=80", "8010:80"), ("0", "`0` is not a port")] {
        let ended = folder.run(&["link", "1mbit", "1mbit", "--publish", option, "--", "true"]);
        assert_eq!(ended.status, 2, "{}", ended.err);
        assert!(ended.err.contains(told), "{}", ended.err);
    }
}

#[test]
fn a_command_is_not_the_parent_of_the_relay() {
    let Some((folder, machine)) = machine("children") else { return };
    let script = format!(
        "{ACKCLOCK} link 1mbit 1mbit --publish 8010 -- python3 -c 'import os
try:
    os.wait()
except ChildProcessError:
    print(\"no child\")'"
    );
    let ended = run(&machine, &folder, &script);
    assert_eq!((ended.status, ended.out.as_str()), (0, "no child\n"), "{}", ended.err);
}

/// Downloads from a server beyond the link through the proxy at 127.0.0.1:3128, until the proxy is there; prints the bytes.
const THROUGH_PROXY: &str = r#"
import socket, sys, time
while True:
    try:
        peer = socket.create_connection(("127.0.0.1", 3128), timeout=60)
        peer.sendall(b"CONNECT " + sys.argv[1].encode() + b":5001 HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = peer.recv(1000)
        if answer:
            break
    except ConnectionError:
        pass
    time.sleep(0.05)
assert answer.startswith(b"HTTP/1.1 200"), answer
total = len(answer.split(b"\r\n\r\n", 1)[1])
while data := peer.recv(65536):
    total += len(data)
print(total)
"#;

#[test]
fn a_proxy_is_the_link_of_other_devices_and_its_connections_cross_it_once() {
    let Some((folder, machine)) = machine("proxied") else { return };
    folder.write("device.py", THROUGH_PROXY);
    let before = machine.state(&folder);
    let script = format!(
        "{ACKCLOCK} link 10mbit 10mbit --proxy 3128 --json > link.json & link=$!
         timeout 30 python3 device.py {}; kill -TERM $link; wait $link",
        Machine::SERVER
    );
    let ended = run(&machine, &folder, &script);
    assert_eq!(ended.out, "300000\n", "{}", ended.err);
    assert!(ended.err.contains("HTTP and SOCKS5 proxy at 127.0.0.1:3128"), "{}", ended.err);
    let text = std::fs::read_to_string(folder.path("link.json")).unwrap();
    assert!(text.contains(":5001\""), "{text}");
    assert!(!text.contains(":3128\""), "connections to the proxy do not cross the link");
    machine.returns_to(&before, &folder);
}

#[test]
fn a_proxy_takes_no_command() {
    let folder = Folder::new();
    let told = folder.complains(2, &["link", "1mbit", "1mbit", "--proxy", "3128", "--", "true"]);
    assert!(told.contains("leave the command out"), "{told}");
}
