//! `--only` and `--except`: which flows cross the link, and which pass beside it.

use crate::common::Folder;
use crate::common::real::{ROUND_TRIP, folder_with, last_object};

/// Returns datagrams to their senders, at two ports.
const SERVER: &str = r#"
import os, selectors, socket
selector = selectors.DefaultSelector()
for family, port in [(f, p) for f in (socket.AF_INET, socket.AF_INET6) for p in (5002, 5003)]:
    server = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    server.bind(("", port))
    selector.register(server, selectors.EVENT_READ)
os.close(1)
while True:
    for key, _ in selector.select():
        data, sender = key.fileobj.recvfrom(2000)
        key.fileobj.sendto(data, sender)
"#;

/// Exchanges ten datagrams with each address that it is told, of which none is lost.
const CLIENT: &str = r#"
import os, socket, sys
base = os.environ["ACKCLOCK_BASE"]
packed = socket.inet_aton(base)
bases = {"4": base, "6": socket.inet_ntop(socket.AF_INET6, bytes.fromhex("fdac6b636c6f636b00000000") + packed)}
for word in sys.argv[1:]:
    version, port = word.split(":")
    client = socket.socket(socket.AF_INET6 if version == "6" else socket.AF_INET, socket.SOCK_DGRAM)
    client.settimeout(60)
    for number in range(10):
        client.sendto(str(number).encode(), (bases[version], int(port)))
        assert client.recv(100) == str(number).encode()
"#;

fn folder() -> Option<Folder> {
    let folder = folder_with(&["python3"])?;
    folder.write("server.py", SERVER);
    folder.write("client.py", CLIENT);
    Some(folder)
}

#[test]
fn selected_flows_cross_the_link_and_others_pass_beside_it() {
    let Some(folder) = folder() else { return };
    // Packets of a selected flow are lost, so what arrives has passed beside the link.
    for (options, exchanged, bypassed) in [
        ("--only tcp:5002 --loss 100%", "4:5002 4:5003 6:5002", 30),
        ("--only udp:5003 --loss 100%", "4:5002 6:5002", 20),
        ("--only dns --loss 100%", "4:5002", 10),
        ("--only [fd00::]/8:5002 --loss 100%", "4:5002 4:5003 6:5003", 30),
        ("--only 192.0.2.0/24 --only tcp:5003 --loss 100%", "4:5002 6:5003", 20),
        ("--except udp:5002 --loss 100%", "4:5002 6:5002", 20),
        ("--only udp:5003 --except udp:5003 --loss 100%", "4:5003", 10),
        // All flows cross.
        ("--only udp:5002 --only udp:5003 --loss 0", "4:5002 6:5003", 0),
    ] {
        let words = format!("link 1mbit 1mbit --json {options} --server");
        let mut words: Vec<&str> = words.split_whitespace().collect();
        words.extend(["exec python3 server.py", "--", "python3", "client.py"]);
        words.extend(exchanged.split_whitespace());
        let ended = folder.run(&words);
        assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{options}: {}", ended.out);
        let results = last_object(&ended.out);
        for link in ["uplink", "bottleneck"] {
            assert_eq!(results[link]["bypassed"], bypassed, "{options}, {link}: {}", results[link]);
            let crossed = if bypassed == 0 { 20 } else { 0 };
            assert_eq!(results[link]["sent"], crossed, "{options}, {link}");
        }
    }
}

#[test]
fn a_flow_beside_the_link_has_no_row_and_a_link_of_all_flows_counts_none() {
    let Some(folder) = folder() else { return };
    for (option, rows, keys) in [("--only=tcp:1", 0, true), ("--seed=1", 1, false)] {
        let ended = folder
            .run(&["link", "1mbit", "1mbit", "--json", option, "--closed", "--", "sh", "-c", ROUND_TRIP]);
        let results = last_object(&ended.out);
        assert_eq!(results["flows"].as_array().unwrap().len(), rows, "{option}: {results}");
        assert_eq!(results["uplink"].get("bypassed").is_some(), keys, "{option}");
    }
}

#[test]
fn a_match_that_is_none_is_refused_with_examples() {
    let folder = Folder::new();
    for word in ["5432", "tcp:", "sctp:1", "example.org", "10.0.0.0/40"] {
        let message = folder.complains(2, &["link", "1mbit", "1mbit", "--only", word, "--", "true"]);
        assert!(message.contains(&format!("`{word}` matches no flow; write tcp:5432, udp:443")), "{message}");
    }
}
