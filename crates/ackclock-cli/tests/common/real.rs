//! What tests with real programs share: what must be there before, and what is read afterwards.

use std::io::Read;
use std::process::{Child, Command};

use serde_json::Value;

use super::Folder;

/// Sends SIZE bytes to whoever connects, under a congestion control of Linux. It closes its output when it listens.
pub(crate) const SERVER: &str = r#"
import os, socket, sys
both = socket.has_dualstack_ipv6()
family = socket.AF_INET6 if both else socket.AF_INET
listener = socket.create_server(("", 5001), family=family, dualstack_ipv6=both)
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
os.close(1)
while True:
    peer, _ = listener.accept()
    peer.sendall(bytes(int(sys.argv[2])))
    peer.close()
"#;

/// Takes what a server sends, and says how much that was. Its last acknowledgement has come in to the link when it ends, as
/// after [`ROUND_TRIP`].
pub(crate) const CLIENT: &str = r#"
import contextlib, socket, sys
peer = socket.create_connection((sys.argv[1], 5001), timeout=20)
total = 0
while data := peer.recv(65536):
    total += len(data)
print(total)
peer.close()
with contextlib.suppress(ConnectionRefusedError):
    socket.create_connection((sys.argv[1], 9), timeout=20)
"#;

pub(crate) const DOWNLOAD: &str = "python3 client.py $ACKCLOCK_BASE";

/// A folder with a server and a client, where links can be made and the programs are there; else nothing, and the reason is
/// printed.
pub(crate) fn ready(programs: &[&str]) -> Option<Folder> {
    let folder = folder_with(programs)?;
    folder.write("server.py", SERVER);
    folder.write("client.py", CLIENT);
    Some(folder)
}

pub(crate) fn server(congestion_control: &str, bytes: u64) -> String {
    format!("exec python3 server.py {congestion_control} {bytes}")
}

/// A folder, where links can be made and the programs are there; else nothing, and the reason is printed.
#[allow(clippy::print_stderr, reason = "a skipped test says why")]
pub(crate) fn folder_with(programs: &[&str]) -> Option<Folder> {
    let folder = Folder::new();
    let trial = folder.run(&["link", "1mbit", "1mbit", "--closed", "--", "true"]);
    let missing = programs.iter().find(|program| !is_installed(program));
    let reason = match (trial.status, missing) {
        (0, None) => return Some(folder),
        (0, Some(program)) => format!("{program} is not installed"),
        _ => trial.err,
    };
    eprintln!("skipped: {}", reason.trim());
    None
}

pub(crate) fn is_installed(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success()
}

/// For the end of a script after which flows are looked at. A byte counts when its acknowledgement comes in to the link; the
/// last ones may lie before it still when the program that caused them ends. They keep their order, so where a connection is
/// refused at the other end, everything that was sent before has come in.
pub(crate) const ROUND_TRIP: &str =
    "python3 -c 'import os, socket; socket.socket().connect_ex((os.environ[\"ACKCLOCK_BASE\"], 9))'";

/// The object in the last line of what was printed.
pub(crate) fn last_object(text: &str) -> Value {
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The flow that delivered most.
pub(crate) fn download(results: &Value) -> &Value {
    results["flows"].as_array().unwrap().iter().max_by_key(|flow| flow["delivered_bytes"].as_u64()).unwrap()
}

/// Reads what a child prints until a line says `word`; everything up to there.
pub(crate) fn until_line(child: &mut Child, word: &str) -> String {
    let out = child.stdout.as_mut().unwrap();
    let (mut seen, mut byte) = (String::new(), [0]);
    while seen.lines().last() != Some(word) || !seen.ends_with('\n') {
        assert_eq!(out.read(&mut byte).unwrap(), 1, "it ended before it said `{word}`: {seen}");
        seen.push(char::from(byte[0]));
    }
    seen
}

/// Whether something is true or becomes so within half a minute; what does not is an error whenever it is given up.
#[allow(clippy::disallowed_methods, reason = "the real world is waited for")]
pub(crate) fn comes_true(mut what: impl FnMut() -> bool) -> bool {
    (0..600).any(|_| {
        what() || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            false
        }
    })
}
