//! `ackclock link --fault` and `link fault`: resets, cuts, first packets and late ends of single connections.

use serde_json::json;

use crate::common::real::{folder_with, last_object};
use crate::common::{Ended, Folder};

/// Sends 100000 bytes to whoever connects to port 5001 or 5002, and says how the connection ended.
const SERVER: &str = r#"
import socket, sys, threading
def serve(listener):
    while True:
        peer = listener.accept()[0]
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        try:
            peer.sendall(bytes(100_000))
            peer.shutdown(socket.SHUT_WR)
            peer.recv(1)
            print("server: end", file=sys.stderr)
        except ConnectionError as error:
            print("server:", type(error).__name__, file=sys.stderr)
        peer.close()
listeners = [socket.create_server(("", port)) for port in (5001, 5002)]
for listener in listeners:
    threading.Thread(target=serve, args=(listener,)).start()
"#;

/// What a client needs: `load` reads everything from a port, `fault` asks the link.
const CLIENT: &str = r#"
import json, os, select, socket, subprocess, urllib.request
base = os.environ["ACKCLOCK_BASE"]

def load(port):
    peer, total = socket.create_connection((base, port), timeout=60), 0
    try:
        while data := peer.recv(65536):
            total += len(data)
        return total
    except ConnectionError as error:
        return type(error).__name__

def fault(*words):
    return subprocess.run([os.environ["ACKCLOCK"], "link", "fault", *words], capture_output=True, text=True, check=True).stdout

def http(method, body=None):
    request = urllib.request.Request(
        os.environ["ACKCLOCK_CONTROL"] + "/faults", method=method, data=body and json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + os.environ["ACKCLOCK_TOKEN"], "Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))
"#;

fn run(options: &[&str], script: &str) -> Option<(Folder, Ended)> {
    let folder = folder_with(&["python3"])?;
    folder.write("server.py", SERVER);
    folder.write("client.py", format!("{CLIENT}{script}"));
    let link = ["link", "10mbit", "10mbit", "--delay", "5ms", "--server", "exec python3 server.py"];
    let command = [&link[..], options, &["--", "python3", "client.py"]].concat();
    let mut command = folder.command(&command);
    let ended = command.env("ACKCLOCK", env!("CARGO_BIN_EXE_ackclock")).output().unwrap();
    Some((folder, Ended::from(ended)))
}

#[test]
fn a_reset_ends_the_connection_at_both_ends_and_others_go_on() {
    let script = r#"
print(load(5001))
print(fault("reset=20kB", "--only", "tcp:5002"), end="")
print(load(5002), load(5001))
print(fault(), end="")
fault("--clear")
print(load(5002), fault(), end="")
"#;
    let Some((_folder, ended)) = run(&[], script) else { return };
    assert_eq!(ended.status, 0, "{}", ended.err);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines[0], "100000", "{}", ended.out);
    assert_eq!(lines[1], "ConnectionResetError 100000", "{}", ended.out);
    let faults = last_object(lines[2]);
    assert_eq!((&faults[0]["fault"], &faults[0]["reset"]), (&"reset=20000B".into(), &1.into()));
    assert_eq!(faults[0]["only"][0], "tcp:5002");
    assert_eq!(lines[3], "100000 []", "{}", ended.out);
    // The link may end before the server has said that the last one did.
    assert!(ended.err.matches("server: end").count() >= 2, "{}", ended.err);
    assert!(
        ended.err.contains("server: ConnectionResetError") || ended.err.contains("server: BrokenPipeError")
    );
}

#[test]
fn a_lost_first_packet_is_repeated_and_counted() {
    let Some((_folder, ended)) = run(&["--fault", "drop-first=1"], "print(load(5001), fault())\n") else {
        return;
    };
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(ended.out.starts_with("100000 [") && ended.out.contains("\"dropped\":1"), "{}", ended.out);
}

#[test]
fn a_slow_close_holds_back_the_end_and_not_the_data() {
    let script = r#"
print(http("POST", {"fault": "slow-close=600s", "only": ["tcp:5001"]})[0]["fault"])
peer = socket.create_connection((base, 5001), timeout=60)
total = 0
while total < 100_000:
    total += len(peer.recv(65536))
# The other connection ends at once: it is not matched. The link keeps the order of packets, and still there is no end.
print(load(5002), select.select([peer], [], [], 0)[0])
print(http("DELETE"), peer.recv(1))
"#;
    let Some((_folder, ended)) = run(&["--control", "0"], script) else { return };
    assert_eq!(ended.out, "slow-close=600s\n100000 []\n[] b''\n", "{}", ended.err);
}

#[test]
fn a_cut_stops_one_direction_of_its_flows_for_a_time() {
    let script = r#"
fault("cut=down", "--only", "tcp:5001", "--for", "1s")
print(load(5002), load(5001))
print(fault())
"#;
    let Some((_folder, ended)) = run(&[], script) else { return };
    assert_eq!(ended.out, "100000 100000\n[]\n\n", "{}", ended.err);
}

#[test]
fn results_have_what_faults_did_also_those_that_ended() {
    let script = r#"
fault("drop-first=1", "--only", "tcp:5001")
load(5001)
fault("--clear")
fault("drop-first=1", "--only", "tcp:5001")
load(5001)
"#;
    let Some((_folder, ended)) = run(&["--json", "--fault", "reset"], &format!("fault('--clear')\n{script}"))
    else {
        return;
    };
    assert_eq!(ended.status, 0, "{}", ended.err);
    let results = last_object(&ended.out);
    let faults = json!([
        { "fault": "reset", "only": [], "dropped": 0, "reset": 0 },
        { "fault": "drop-first=1", "only": ["tcp:5001"], "dropped": 2, "reset": 0 },
    ]);
    assert_eq!(results["faults"], faults, "{}", results["faults"]);
}

#[test]
fn what_is_no_fault_is_refused() {
    let folder = Folder::new();
    for (arguments, told) in [
        (
            &["link", "1mbit", "1mbit", "--fault", "explode", "--", "true"][..],
            "`explode` is no fault; write reset",
        ),
        (&["link", "fault", "drop-first=0"], "`0` is no number of packets from 1 on"),
        (&["link", "fault", "cut", "--only", "http"], "write tcp:5432"),
        (&["link", "fault", "cut", "--for", "0s"], "a fault must last longer than 0"),
        (&["link", "fault", "--only", "dns"], "FAULT"),
    ] {
        let ended = folder.run(arguments);
        assert_eq!(ended.status, 2, "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains(told), "{arguments:?}: {}", ended.err);
    }
}
