//! What other users of the machine, and the files of others, cannot do to a link and to whoever looks at it.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::process::Command;

use crate::common::Folder;
use crate::common::real::is_installed;

/// As nobody: binds the names that a link outside the inside and one of process 4 000 000 000 would have, then lets the command
/// of its arguments look as root.
const IMPOSTOR: &str = r#"
import os, socket, subprocess, sys, threading
def answer(listener):
    while True:
        peer, _ = listener.accept()
        peer.recv(100)
        peer.sendall(b"ok \x1b[2Jbelieve me\n")
        peer.close()
os.seteuid(65534)
for name in ("\0ackclock-link", "\0ackclock-link-4000000000"):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen()
    threading.Thread(target=answer, args=[listener], daemon=True).start()
os.seteuid(0)
for whom in ([], ["--pid", "4000000000"]):
    ended = subprocess.run([sys.argv[1], "link", "show", *whom], capture_output=True, text=True)
    print(ended.returncode, ended.stdout, ended.stderr)
"#;

#[test]
fn whoever_takes_the_name_of_a_link_first_is_not_believed() {
    let folder = Folder::new();
    let trial = Command::new("unshare").args(["--net", "true"]).output();
    if !(trial.is_ok_and(|trial| trial.status.success()) && is_installed("python3")) {
        eprintln!("skipped: this takes root, unshare and python3");
        return;
    }
    folder.write("impostor.py", IMPOSTOR);
    // Abstract names belong to the network namespace: in one of its own the test disturbs nobody.
    let mut impostor = Command::new("unshare");
    impostor.args(["--net", "python3"]).arg(folder.path("impostor.py")).arg(env!("CARGO_BIN_EXE_ackclock"));
    let ended = impostor.output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(
        said.ends_with("1  ackclock: the link of process 4000000000 belongs to another user\n\n"),
        "{said}"
    );
    assert!(!said.contains("believe me"), "{said}");
}

#[test]
fn control_characters_of_files_never_reach_the_terminal() {
    let folder = Folder::new();
    let clean = |text: &str| !text.chars().any(|c| c.is_control() && c != '\n');
    let evil = "evil\u{1b}[2J\u{9b}1m\nackclock: all is well.toml";
    folder.write(evil, crate::common::SCENARIO.replace("[edge]", "[edge]\n\"bu\\u001b[2J\\n\\u009b\" = 1"));
    folder.write("evil.csv", "time_s,rate_bps\n0,\u{1b}[2J\n");
    folder.write("good\u{1b}[2J\u{9b}.toml", crate::common::SCENARIO);
    for arguments in [
        &["run", "no\u{1b}[2J.toml"][..],
        &["run", evil],
        &["run", "case.toml", "--set", "edge.\u{1b}[2J=1"],
        &["run", "case.toml", "--set", "flow.sender=\u{9b}31m"],
        &["run", "case.toml", "--\u{1b}[2J"],
        &["run", "good\u{1b}[2J\u{9b}.toml", "--json"],
        &["check", "good\u{1b}[2J\u{9b}.toml"],
        &["check", evil],
        &["trace", "info", "evil.csv"],
        &["link", "\u{1b}[2J", "1mbit", "true"],
        &["link", "1mbit", "1mbit", "--downlink-queue=\u{1b}[2J", "true"],
    ] {
        let ended = folder.run(arguments);
        assert!(clean(&ended.out) && clean(&ended.err), "{arguments:?}: {:?} {:?}", ended.out, ended.err);
        // No line but the first of a message looks as if it were ours.
        let ours = ended.err.lines().filter(|line| line.starts_with("ackclock:")).count();
        assert!(ours <= 1, "{arguments:?}: {}", ended.err);
    }
}
