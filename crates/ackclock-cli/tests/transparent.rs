//! Connections that the firewall diverts to `ackclock proxy`, by the rules of the how-to page.

use std::process::Command;

use crate::common::Folder;
use crate::common::real::is_installed;

const PAGE: &str = include_str!("../../../docs/how-to/proxy-transparent.md");

/// Server: answers with the client's address and a digest of the data, resets on request, and logs resets of clients.
const SERVER: &str = r#"
import hashlib, os, socket, struct, threading

# A line is written at once, so that those of two threads stay apart.
def log(line):
    os.write(1, line.encode() + b"\n")

def serve(peer, address):
    data = b""
    try:
        while piece := peer.recv(65536):
            data += piece
            if data == b"RESET ME":
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                break
            if data == b"GREET ME":
                peer.sendall(b"hello")
        else:
            peer.sendall(f"{address[0]} {address[1]} {hashlib.sha256(data).hexdigest()}".encode())
    except ConnectionResetError:
        log("a client reset")
    peer.close()

def listen(family, address):
    listener = socket.create_server((address, 80), family=family)
    log("ready")
    while True:
        threading.Thread(target=serve, args=listener.accept()).start()

threading.Thread(target=listen, args=(socket.AF_INET, "0.0.0.0")).start()
threading.Thread(target=listen, args=(socket.AF_INET6, "::")).start()
"#;

/// Client: `all SERVER PROXY` tries everything with one server, `one SERVER` only a connection; `ask PROXY STATUS HOST`
/// checks the status with which the proxy answers a request for a host.
const CLIENT: &str = r#"
import hashlib, socket, struct, sys

def connect(address, port=80):
    return socket.create_connection((address, port), timeout=30)

def exchange(address):
    peer = connect(address)
    data = bytes(range(256)) * 1200
    peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
    answer = b""
    while piece := peer.recv(65536):
        answer += piece
    host, port = peer.getsockname()[:2]
    assert answer.decode() == f"{host} {port} {hashlib.sha256(data).hexdigest()}", answer

def is_reset(address, port, data):
    try:
        peer = connect(address, port)
        if data:
            peer.sendall(data)
        assert peer.recv(100) == b"", "data came"
        return False
    except (ConnectionResetError, ConnectionRefusedError):
        return True

if sys.argv[1] == "ask":
    _, _, proxy, status, host = sys.argv
    peer = connect(proxy, 7301)
    peer.sendall(f"CONNECT {host}:80 HTTP/1.1\r\n\r\n".encode())
    answer = peer.makefile("rb")
    line = answer.readline().decode()
    assert line.split()[1] == status, f"{host}: {line}"
    if status == "200":
        peer.shutdown(socket.SHUT_WR)
        answer.read()
    sys.exit()

exchange(sys.argv[2])
if sys.argv[1] == "all":
    assert is_reset(sys.argv[2], 80, b"RESET ME"), "a reset of the server became an end of data"
    peer = connect(sys.argv[2])
    peer.sendall(b"GREET ME")
    assert peer.recv(5) == b"hello"
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    assert is_reset(sys.argv[2], 81, b""), "a closed port looked like an end of data"
    assert is_reset(sys.argv[3], 7300, b""), "the proxy was connected to itself"
"#;

/// Router between a client and a server, each in a network namespace of its own that ends with its process.
const WORLD: &str = r#"
set -eu
nft add table inet trial
nft add chain inet trial divert '{ type filter hook prerouting priority mangle; }'
if ! nft add rule inet trial divert meta l4proto tcp tproxy ip to :7300 2> reason; then exit 77; fi
nft delete table inet trial

unshare -n sleep 600 & client=$!
unshare -n sleep 600 & server=$!
trap 'kill $(jobs -p)' EXIT
for process in $client $server; do
    until [ "$(readlink /proc/$process/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
done
at_client() { nsenter -t $client -n "$@"; }
at_server() { nsenter -t $server -n "$@"; }
ip link set lo up
ip link add ran0 type veth peer name end netns $client
ip link add core0 type veth peer name end netns $server
for end in at_client at_server; do $end ip link set lo up; $end ip link set end up; done
ip addr add 10.1.0.1/24 dev ran0; ip addr add fd01::1/64 dev ran0 nodad
ip addr add 10.2.0.1/24 dev core0; ip addr add fd02::1/64 dev core0 nodad
ip link set ran0 up; ip link set core0 up
at_client ip addr add 10.1.0.2/24 dev end; at_client ip addr add fd01::2/64 dev end nodad
at_server ip addr add 10.2.0.2/24 dev end; at_server ip addr add fd02::2/64 dev end nodad
at_client ip route add default via 10.1.0.1; at_client ip -6 route add default via fd01::1
at_server ip route add default via 10.2.0.1; at_server ip -6 route add default via fd02::1
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1

nsenter -t $server -n python3 server.py > server.log &
"$ACKCLOCK" proxy --listen 0.0.0.0:7301 --transparent 0.0.0.0:7300 --transparent '[::]:7300' --allow 10.1.0.0/24 --allow fd01::/64 \
    > summary 2> proxy.log &
proxy=$!
until [ "$(grep -c ready server.log)" = 2 ] && grep -q "proxy on 0.0.0.0:7301, 0.0.0.0:7300, \[::\]:7300" proxy.log; do sleep 0.05; done
sh -eu add.sh
at_client python3 client.py all 10.2.0.2 10.1.0.1
at_client python3 client.py all fd02::2 fd01::1
until [ "$(grep -c "a client reset" server.log)" = 2 ]; do sleep 0.05; done

at_client python3 client.py ask 10.1.0.1 200 10.2.0.2
# A route makes all addresses of a network the router's own, without an interface that has them.
ip route add local 10.3.0.0/24 dev lo; ip -6 route add local fd03::/64 dev lo
for own in 10.1.0.1 10.2.0.1 '[fd02::1]' 10.3.0.9 '[fd03::9]' '[::ffff:10.3.0.9]'; do at_client python3 client.py ask 10.1.0.1 403 $own; done

kill -INT $proxy
wait $proxy
at_client python3 client.py one 10.2.0.2
at_client python3 client.py one fd02::2
sh -eu remove.sh
[ -z "$(nft list ruleset; ip rule show lookup 100; ip -6 rule show lookup 100)" ]
at_client python3 client.py one fd02::2
"#;

/// Code block of the page that contains `word`.
fn block(word: &str) -> &'static str {
    let blocks = PAGE.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    blocks.map(|(_, text)| text).find(|text| text.contains(word)).expect(word)
}

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test says why")]
fn diverted_connections_keep_their_addresses_bytes_ends_and_resets() {
    let folder = Folder::new();
    folder.write("proxy.nft", block("tproxy ip6 to"));
    folder.write("add.sh", block("nft -f"));
    folder.write("remove.sh", block("nft delete"));
    folder.write("server.py", SERVER);
    folder.write("client.py", CLIENT);
    let missing = ["nft", "ip", "python3", "nsenter"].into_iter().find(|program| !is_installed(program));
    let alone = Command::new("unshare").args(["-n", "true"]).output();
    if let Some(program) = missing {
        return eprintln!("skipped: {program} is not installed");
    }
    if !alone.is_ok_and(|ended| ended.status.success()) {
        return eprintln!("skipped: needs a network namespace of its own");
    }
    let mut command = Command::new("timeout");
    let command = command.args(["300", "unshare", "-n", "bash", "-c", WORLD]).current_dir(folder.path("."));
    let ended = command.env("ACKCLOCK", env!("CARGO_BIN_EXE_ackclock")).output().unwrap();
    if ended.status.code() == Some(77) {
        return eprintln!("skipped: nftables cannot divert connections: {}", folder.read("reason").trim());
    }
    let err = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{err}{}", folder.read("proxy.log"));
    // For each family: an exchange, a reset by each end, and a closed port; a direct connection is refused. Of seven
    // requests to the proxy, one leads to the server and six to the router's own addresses.
    let summary = folder.read("summary");
    let log = folder.read("proxy.log");
    assert!(
        log.contains(
            "10.1.0.2 requested 10.1.0.1:7300: refused, because it is not an address of another machine"
        ),
        "{log}"
    );
    assert!(summary.starts_with("7 connections to servers, "), "{summary}");
    assert!(summary.contains("; 10 refused, 4 ended by a reset, 0 cut off now"), "{summary}");
}

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test says why")]
fn diverted_connections_need_the_capability() {
    let folder = Folder::new();
    // In a user namespace of its own, the command has no capability over the machine's network.
    let words = ["--map-root-user", env!("CARGO_BIN_EXE_ackclock"), "proxy", "--transparent", "127.0.0.1:0"];
    let ended = Command::new("unshare").args(words).current_dir(folder.path(".")).output();
    let Some(ended) = ended.ok().filter(|ended| !ended.stderr.starts_with(b"unshare:")) else {
        return eprintln!("skipped: needs a user namespace");
    };
    let err = String::from_utf8_lossy(&ended.stderr);
    assert!(
        err.contains("--transparent: 127.0.0.1:0: diverted connections need root or the capability"),
        "{err}"
    );
    assert_eq!(ended.status.code(), Some(1));
}
