//! A hop with a smaller MTU in front of the link, as the kernel's UDP and TCP see it.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use serde_json::{Value, json};

use crate::common::real::{folder_with, is_installed, last_object};
use crate::common::{Ended, Folder};

/// Returns datagrams to their senders; one that begins with `big` is answered by 1472 bytes with DF, until the kernel has
/// learnt the path MTU, and then by this MTU.
const SERVER: &str = r#"
import os, socket, sys
family, size = (socket.AF_INET6, 1452) if sys.argv[1] == "6" else (socket.AF_INET, 1472)
def local():
    server = socket.socket(family, socket.SOCK_DGRAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("", 5002))
    if family == socket.AF_INET:
        server.setsockopt(socket.IPPROTO_IP, 10, 0)
    return server
server = local()
os.close(1)
while True:
    data, sender = server.recvfrom(2000)
    if not data.startswith(b"big"):
        server.sendto(data, sender)
        continue
    level, discover, mtu = (socket.IPPROTO_IPV6, 23, 24) if family == socket.AF_INET6 else (socket.IPPROTO_IP, 10, 14)
    answer = local()
    answer.setsockopt(level, discover, 2)
    answer.connect(sender)
    try:
        answer.send(bytes(size))
    except OSError:
        pass
    learnt = answer.getsockopt(level, mtu)
    answer.close()
    server.sendto(str(learnt).encode(), sender)
"#;

/// Learns the MTU of the path to the server, says from whom, and that of the server's path.
const DISCOVER: &str = r#"
import os, select, socket, struct, sys
base = os.environ["ACKCLOCK_BASE"]
family, level, discover, mtu, errors, size = socket.AF_INET, socket.IPPROTO_IP, 10, 14, 11, 1472
if sys.argv[1] == "6":
    family, level, discover, mtu, errors, size = socket.AF_INET6, socket.IPPROTO_IPV6, 23, 24, 25, 1452
    packed = socket.inet_aton(base)
    base = socket.inet_ntop(family, bytes.fromhex("fdac6b636c6f636b00000000") + packed)
client = socket.socket(family, socket.SOCK_DGRAM)
client.setsockopt(level, discover, 2)
client.setsockopt(level, errors, 1)
client.connect((base, 5002))
client.send(bytes(size))
poll = select.poll()
poll.register(client, 0)
assert poll.poll(30_000), "no message"
_, told, _, _ = client.recvmsg(2000, 512, socket.MSG_ERRQUEUE)
error, origin, kind, code, info = struct.unpack("=IBBBxI", told[0][2][:12])
offender = socket.inet_ntop(family, told[0][2][20:24] if family == socket.AF_INET else told[0][2][24:40])
print(kind, code, info, "base" if offender == base else "another", client.getsockopt(level, mtu))
client.setsockopt(level, errors, 0)
client.settimeout(0.2)
while True:
    client.send(b"big")
    try:
        answer = client.recv(2000)
    except (TimeoutError, OSError):
        continue
    if answer.isdigit() and int(answer) < 1500:
        print(answer.decode())
        break
client.settimeout(60)
fits = b"x" * (client.getsockopt(level, mtu) - (1500 - size))
client.send(fits)
while client.recv(2000) != fits:
    pass
"#;

/// Sends packets of 1500 bytes, without DF or, as it is told, with DF and without regard to what the kernel knows.
const SEND: &str = r#"
import os, socket, sys
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.settimeout(30)
client.connect((os.environ["ACKCLOCK_BASE"], 5002))
client.setsockopt(socket.IPPROTO_IP, 10, 3 if sys.argv[1] == "df" else 0)
for number in range(int(sys.argv[2])):
    data = number.to_bytes(2, "big") * 736
    while True:
        try:
            client.send(data)
            break
        except OSError:
            # An earlier packet was too big; this one was not sent.
            continue
    if sys.argv[1] != "df":
        assert client.recv(2000) == data
client.setsockopt(socket.IPPROTO_IP, 10, 0)
while True:
    try:
        client.send(b"end")
        break
    except OSError:
        continue
while True:
    try:
        if client.recv(2000) == b"end":
            break
    except ConnectionError:
        continue
"#;

/// Accepts connections and reads to their end; what it has read is its answer.
const SINK: &str = r#"
import os, socket
listener = socket.create_server(("", 5001))
os.close(1)
while True:
    peer, _ = listener.accept()
    total = 0
    while data := peer.recv(65536):
        total += len(data)
    peer.sendall(str(total).encode())
    peer.close()
"#;

/// Uploads 200 kB and says what the server has read and the segment size at the end, or that nothing crosses after some
/// retransmissions.
const UPLOAD: &str = r#"
import os, pathlib, socket, struct, sys, time
ipv4 = pathlib.Path("/proc/sys/net/ipv4")
for name, value in [("tcp_mtu_probing", sys.argv[1]), ("tcp_retries1", "1")]:
    ipv4.joinpath(name).write_text(value)
peer = socket.socket()
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
peer.connect((os.environ["ACKCLOCK_BASE"], 5001))
peer.setblocking(False)
sent = peer.send(bytes(200_000))
stalled = sent > 0 and sys.argv[1] == "0" and sys.argv[2] == "stalls"
while stalled:
    info = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    retransmits, acked = info[2], struct.unpack_from("Q", info, 120)[0]
    assert acked <= 1, "it passes"
    if retransmits >= 3:
        print("stalled")
        sys.exit()
    time.sleep(0.05)
peer.setblocking(True)
peer.settimeout(60)
peer.sendall(bytes(200_000 - sent))
peer.shutdown(socket.SHUT_WR)
print(peer.recv(100).decode(), peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))
"#;

fn folder() -> Option<Folder> {
    let folder = folder_with(&["python3"])?;
    let files = [
        ("server.py", SERVER),
        ("discover.py", DISCOVER),
        ("send.py", SEND),
        ("sink.py", SINK),
        ("upload.py", UPLOAD),
    ];
    files.iter().for_each(|(name, text)| folder.write(name, *text));
    Some(folder)
}

/// Runs a link with a hop of 1280 bytes; what the client printed, and the results.
fn run(folder: &Folder, options: &str, server: &str, client: &str) -> (String, Value) {
    let words = format!("link 20mbit 20mbit --delay 2ms --mtu 1280 {options} --json --server");
    let mut words: Vec<&str> = words.split_whitespace().collect();
    let server = format!("exec python3 {server}");
    words.extend([server.as_str(), "--", "python3"]);
    words.extend(client.split_whitespace());
    let ended = folder.run(&words);
    assert_eq!(ended.status, 0, "{options} {client}: {}{}", ended.out, ended.err);
    (ended.out.clone(), last_object(&ended.out))
}

#[test]
fn senders_at_both_ends_learn_the_mtu_from_a_router() {
    let Some(folder) = folder() else { return };
    for (version, message) in [("4", "3 4 1280 another 1280"), ("6", "2 0 1280 another 1280")] {
        let (out, results) =
            run(&folder, "", &format!("server.py {version}"), &format!("discover.py {version}"));
        assert_eq!(out.lines().take(2).collect::<Vec<_>>(), [message, "1280"], "version {version}");
        for link in ["uplink", "bottleneck"] {
            let counts = json!({ "fragmented": 0, "dropped": 1, "messages": 1 });
            assert_eq!(results[link]["too_big"], counts, "version {version}, {link}");
        }
    }
}

#[test]
fn packets_without_df_cross_in_fragments_both_ways() {
    let Some(folder) = folder() else { return };
    let (_, results) = run(&folder, "", "server.py 4", "send.py whole 20");
    for link in ["uplink", "bottleneck"] {
        let counts = json!({ "fragmented": 20, "dropped": 0, "messages": 0 });
        assert_eq!(results[link]["too_big"], counts);
        // Two fragments each, and the last datagram.
        assert_eq!(results[link]["sent"], 41, "{link}");
    }
}

#[test]
fn a_sender_gets_ten_messages_in_a_second() {
    let Some(folder) = folder() else { return };
    for (options, at_least, in_a_second) in [("", 10, 10), ("--mtu-blackhole", 0, 0)] {
        let (_, results) = run(&folder, options, "server.py 4", "send.py df 500");
        let counts = &results["uplink"]["too_big"];
        let (seconds, messages) = (
            results["duration_s"].as_f64().unwrap().floor() as u64 + 1,
            counts["messages"].as_u64().unwrap(),
        );
        assert_eq!((&counts["dropped"], &counts["fragmented"]), (&500.into(), &0.into()));
        assert!((at_least..=seconds * in_a_second).contains(&messages), "{messages} in {seconds} seconds");
    }
}

#[test]
fn tcp_continues_with_smaller_segments_and_stalls_in_a_black_hole_unless_it_probes() {
    let Some(folder) = folder() else { return };
    let (out, results) = run(&folder, "", "sink.py", "upload.py 0 passes");
    // 20 bytes of each header, and 12 of timestamps.
    assert_eq!(out.lines().next(), Some("200000 1228"), "{}", results["uplink"]);
    assert!(results["uplink"]["too_big"]["messages"].as_u64().unwrap() > 0);

    let (out, results) = run(&folder, "--mtu-blackhole", "sink.py", "upload.py 0 stalls");
    assert_eq!(out.lines().next(), Some("stalled"));
    assert_eq!(results["uplink"]["too_big"]["messages"], 0);

    let (out, _) = run(&folder, "--mtu-blackhole", "sink.py", "upload.py 1 passes");
    let (total, segment) = out.lines().next().unwrap().split_once(' ').unwrap();
    assert_eq!(total, "200000");
    assert!(segment.parse::<u32>().unwrap() <= 1228, "{segment}");
}

#[test]
fn a_user_without_root_has_the_same_hop() {
    let Some(folder) = folder() else { return };
    if !is_installed("setpriv") {
        return eprintln!("skipped: setpriv is not installed");
    }
    let link = format!(
        "setpriv --reuid 65534 --regid 65534 --clear-groups {} link 20mbit 20mbit --closed --mtu 1280",
        env!("CARGO_BIN_EXE_ackclock")
    );
    let run = |script: &str| {
        let mut command = std::process::Command::new("sh");
        Ended::from(command.args(["-c", script]).current_dir(folder.path(".")).output().unwrap())
    };
    let trial = run(&format!("{link} -- true"));
    if trial.status != 0 {
        return eprintln!("skipped: {}", trial.err.trim());
    }
    let script = "import os, socket
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.setsockopt(0, 10, 2)
client.connect((os.environ['ACKCLOCK_BASE'], 9))
while client.getsockopt(0, 14) == 1500:
    try:
        client.send(bytes(1472))
    except OSError:
        pass
print(client.getsockopt(0, 14))";
    let ended = run(&format!("{link} -- python3 -c \"{script}\""));
    assert_eq!(ended.out, "1280\n", "{}", ended.err);
}

#[test]
fn the_options_write_keys_that_a_simulation_reads() {
    let folder = Folder::new();
    let generate = ["link", "1mbit", "8mbit", "--mtu", "1280", "--mtu-blackhole", "--generate"];
    let text = folder.prints(&generate);
    assert!(text.contains("mtu = \"1280B\"\nmtu_blackhole = true\n"), "{text}");
    folder.write("link.toml", &text);
    assert_eq!(folder.prints(&["link", "--scenario", "link.toml", "--generate"]), text);
    let shown = folder.prints(&["check", "link.toml", "--show"]);
    assert!(shown.contains("packet = \"1280B\""), "{shown}");
    for (set, told) in [
        (&["edge.mtu=500B"][..], "edge.mtu: 500B is not a size from 576B to 65535B"),
        (&["edge.mtu=9p"], "edge.mtu: 9p is not a size from 576B"),
        (
            &["edge.mtu_blackhole=true"],
            "edge.mtu_blackhole: a black hole drops packets larger than `mtu`; set `mtu`",
        ),
    ] {
        folder.write("plain.toml", "duration = \"1s\"\n");
        let sets = set.iter().flat_map(|set| ["--set", set]);
        let words: Vec<&str> = ["check", "plain.toml"].into_iter().chain(sets).collect();
        let message = folder.complains(2, &words);
        assert!(message.contains(told), "{message}");
    }
    for words in
        ["link 1mbit 1mbit --mtu 575", "link 1mbit 1mbit --mtu 1501", "link 1mbit 1mbit --mtu-blackhole"]
    {
        folder.complains(2, &words.split_whitespace().collect::<Vec<_>>());
    }
}
