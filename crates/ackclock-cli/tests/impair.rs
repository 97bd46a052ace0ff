//! Real packets over links that reorder, duplicate, corrupt, and drop by age.

use serde_json::Value;

use crate::common::Folder;
use crate::common::real::{folder_with, last_object};

/// Sends 2 MB that look random, under CUBIC. It closes its output when it listens.
const SERVER: &str = r#"
import os, random, socket
listener = socket.create_server(("", 5001))
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
os.close(1)
while True:
    peer, _ = listener.accept()
    peer.sendall(random.Random(1).randbytes(2_000_000))
    peer.close()
"#;

/// Takes what the server sends, and says whether it is what the server sent.
const CLIENT: &str = r#"
import hashlib, os, random, socket
peer = socket.create_connection((os.environ["ACKCLOCK_BASE"], 5001), timeout=60)
got = hashlib.sha256()
while data := peer.recv(65536):
    got.update(data)
wanted = hashlib.sha256(random.Random(1).randbytes(2_000_000))
print("equal" if got.digest() == wanted.digest() else "different")
"#;

/// Returns each datagram to its sender.
const ECHO: &str = r#"
import os, socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", 5002))
os.close(1)
while True:
    data, sender = server.recvfrom(2000)
    server.sendto(data, sender)
"#;

/// Sends numbered datagrams to the echo server and prints the numbers of those that return. It ends when as many have
/// returned, or were dropped here for their checksum, as it is told.
const NUMBERS: &str = r#"
import os, socket, sys, time
sent, due = int(sys.argv[1]), int(sys.argv[2])
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.settimeout(0.1)
for number in range(sent):
    client.sendto(number.to_bytes(4, "big") * 20, (os.environ["ACKCLOCK_BASE"], 5002))
def wrong():
    head, values = [line.split() for line in open("/proc/net/snmp") if line.startswith("Udp:")]
    return int(values[head.index("InCsumErrors")])
numbers, end = [], time.monotonic() + 30
while len(numbers) + wrong() < due and time.monotonic() < end:
    try:
        numbers.append(int.from_bytes(client.recv(2000)[:4], "big"))
    except TimeoutError:
        pass
print(numbers)
"#;

/// Sends datagrams in one burst, and takes those that return until none has come for a second.
const BURST: &str = r#"
import os, socket
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(100):
    client.sendto(bytes(80), (os.environ["ACKCLOCK_BASE"], 5002))
client.settimeout(1)
came = 0
try:
    while client.recv(2000):
        came += 1
except TimeoutError:
    print(came)
"#;

fn folder() -> Option<Folder> {
    let folder = folder_with(&["python3"])?;
    for (name, text) in [
        ("server.py", SERVER),
        ("client.py", CLIENT),
        ("echo.py", ECHO),
        ("numbers.py", NUMBERS),
        ("burst.py", BURST),
    ] {
        folder.write(name, text);
    }
    Some(folder)
}

/// Runs a link with these options; what the client printed, and the results.
fn run(folder: &Folder, options: &str, server: &str, client: &str) -> (String, Value) {
    let server = format!("exec python3 {server}");
    let mut words = vec!["link", "20mbit", "20mbit", "--json", "--server", &server];
    words.extend(options.split_whitespace());
    words.extend(["--", "python3"]);
    words.extend(client.split_whitespace());
    let ended = folder.run(&words);
    assert_eq!(ended.status, 0, "{}", ended.err);
    (ended.out.lines().next().unwrap_or_default().to_owned(), last_object(&ended.out))
}

/// Every packet that came or was duplicated has an end.
fn is_balanced(link: &Value) {
    let count = |key: &str| link[key].as_u64().unwrap_or_else(|| panic!("{key}: {link}"));
    let came = count("sent") + count("duplicated");
    let went = count("delivered") + count("drops") + count("lost_by_machine") + count("waiting");
    assert_eq!(came, went, "{link}");
}

#[test]
fn a_file_arrives_whole_over_a_link_that_reorders_duplicates_and_corrupts() {
    let Some(folder) = folder() else { return };
    let options = "--delay 5ms --reorder 1%,20ms --duplicate 1% --corrupt 1%";
    let (said, results) = run(&folder, options, "server.py", "client.py");
    assert_eq!(said, "equal");
    let down = &results["bottleneck"];
    for count in [&down["reordered"]["packets"], &down["duplicated"], &down["corrupted"]] {
        assert!(count.as_u64() > Some(0), "{down}");
    }
    is_balanced(down);
    is_balanced(&results["uplink"]);
}

#[test]
fn a_receiver_gets_each_copy_and_drops_each_wrong_bit() {
    let Some(folder) = folder() else { return };
    let (numbers, results) = run(&folder, "--set edge.up.duplicate=1", "echo.py", "numbers.py 30 60");
    let twice: Vec<u32> = (0..30).flat_map(|number| [number, number]).collect();
    assert_eq!(numbers, format!("{twice:?}"));
    assert_eq!(results["uplink"]["duplicated"], 30);
    is_balanced(&results["uplink"]);
    // The client ends early only if its kernel counts 30 wrong checksums.
    let (numbers, results) = run(&folder, "--set edge.down.corrupt=1", "echo.py", "numbers.py 30 30");
    assert_eq!((numbers.as_str(), &results["bottleneck"]["corrupted"]), ("[]", &30.into()));
    is_balanced(&results["bottleneck"]);
}

#[test]
fn the_receiver_finds_as_many_packets_reordered_as_the_link_reports() {
    let Some(folder) = folder() else { return };
    let set = "--set edge.down.reorder={share=0.2,extra=\"1s\"}";
    let (numbers, results) = run(&folder, set, "echo.py", "numbers.py 100 100");
    let numbers: Vec<u32> = serde_json::from_str(&numbers).unwrap();
    let mut highest = 0;
    let late = numbers.iter().filter(|&&number| {
        highest = highest.max(number);
        number < highest
    });
    let (late, told) = (late.count() as u64, &results["bottleneck"]["reordered"]["packets"]);
    assert_eq!((numbers.len(), told.as_u64()), (100, Some(late)));
    assert!(late > 5, "{late}");
}

#[test]
fn packets_of_a_burst_leave_at_the_age_limit() {
    let Some(folder) = folder() else { return };
    // 100 packets of 108 bytes take 864 ms.
    let options = "--set edge.up.rate=100kbit/s --set edge.up_age_limit=200ms";
    let (came, results) = run(&folder, options, "echo.py", "burst.py");
    let (up, came) = (&results["uplink"], came.parse::<u64>().unwrap());
    let aged = up["aged"].as_u64().unwrap_or_else(|| panic!("{up}"));
    assert!(aged > 0 && came > 0, "{came} came: {up}");
    assert_eq!((up["drops"].as_u64(), up["sent"].as_u64()), (Some(aged), Some(100)), "{up}");
    let count = |key: &str| up[key].as_u64().unwrap_or_else(|| panic!("{key}: {up}"));
    assert_eq!(count("sent"), count("delivered") + count("drops") + count("waiting"), "{up}");
    // Without the limit every packet arrives.
    let (came, results) = run(&folder, "--set edge.up.rate=100kbit/s", "echo.py", "burst.py");
    assert_eq!((came.as_str(), &results["uplink"]["drops"]), ("100", &0.into()));
}
