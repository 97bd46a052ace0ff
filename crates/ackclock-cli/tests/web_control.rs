//! `link --control`: test code inside and outside changes a running link by HTTP.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::real::{folder_with, is_installed, until_line};
use crate::common::{Ended, Folder};

/// Controls the link around it, and prints each status with what matters of the answer.
const CLIENT: &str = r#"
import json, os, urllib.error, urllib.request
base, token = os.environ["ACKCLOCK_CONTROL"], os.environ["ACKCLOCK_TOKEN"]
def ask(method, path, body=None, token=token, kind="application/json", host=None):
    headers = {"Authorization": "Bearer " + token, "Content-Type": kind} | ({"Host": host} if host else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
BURSTS = {"kind": "gilbert-elliott", "interval": "10ms", "p": 0.1, "r": 0.5, "good": 0, "bad": 1}
print(ask("GET", "/link")[1]["down"]["rate"])
print(*ask("PATCH", "/link", {"down": {"rate": "2mbit", "loss": 0.25}, "up": {"delay": "9ms", "loss": BURSTS}}))
down = ask("GET", "/link")[1]["down"]
print(down["rate"], down["loss"])
print(*ask("POST", "/outage", {"for": "50ms", "direction": "up", "drop": True}))
print(ask("GET", "/results")[1]["bottleneck"]["drops"])
print(*ask("PATCH", "/link", {"down": {"rate": "fast"}}))
print(ask("GET", "/link", token="guess")[0], ask("GET", "/link", host="example.org")[0],
      ask("PATCH", "/link", {"down": {"rate": "1mbit"}}, kind="text/plain")[0], ask("GET", "/link")[1]["down"]["rate"])
"#;

fn folder() -> Option<Folder> {
    let folder = folder_with(&["python3"])?;
    folder.write("client.py", CLIENT);
    Some(folder)
}

fn is_as_expected(ended: &Ended) {
    let lines: Vec<&str> = ended.out.lines().collect();
    let [first, patched, second, outage, drops, wrong, refused] = lines[..] else {
        panic!("{}{}", ended.out, ended.err)
    };
    assert_eq!((first, second), ("8Mbit/s", "2Mbit/s 0.25"));
    assert!(patched.starts_with("200 {") && patched.contains("'loss': 0.25"), "{patched}");
    assert!(outage.starts_with("200 {") && outage.contains("'outage': {'up': 0."), "{outage}");
    assert_eq!(drops, "0");
    assert!(wrong.starts_with("400") && wrong.contains("fast"), "{wrong}");
    assert_eq!(refused, "401 403 415 2Mbit/s");
}

#[test]
fn a_program_inside_changes_its_link_as_root_and_as_a_user() {
    let Some(folder) = folder() else { return };
    let link = format!("{} link 1mbit 8mbit --closed --control 0 -- ", env!("CARGO_BIN_EXE_ackclock"));
    for user in ["", "setpriv --reuid 65534 --regid 65534 --clear-groups "] {
        let run = |command: &str| {
            let mut shell = Command::new("sh");
            let script = format!("{user}{link}{command}");
            Ended::from(shell.args(["-c", &script]).current_dir(folder.path(".")).output().unwrap())
        };
        if !user.is_empty() && (!is_installed("setpriv") || run("true").status != 0) {
            eprintln!("skipped: a user makes no link here");
            continue;
        }
        is_as_expected(&run(&format!("python3 -c '{CLIENT}'")));
    }
}

#[test]
fn a_program_outside_that_knows_the_token_sees_the_link_and_others_do_not() {
    let Some(folder) = folder() else { return };
    let mut command = folder.command(&[
        "link",
        "1mbit",
        "8mbit",
        "--closed",
        "--control",
        "0",
        "--",
        "sh",
        "-c",
        "echo $ACKCLOCK_CONTROL; echo ready; cat",
    ]);
    let mut link = command
        .env("ACKCLOCK_TOKEN", "known")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let text = until_line(&mut link, "ready");
    let address = text.lines().next().unwrap().strip_prefix("http://").unwrap();
    let ask = |token: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /link HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask("known");
    let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["up"]["rate"], "1Mbit/s", "{answer}");
    assert!(ask("guess").starts_with("HTTP/1.1 401"));
    drop(link.stdin.take());
    assert!(link.wait().unwrap().success());
}

#[test]
fn an_address_that_others_reach_is_refused() {
    let folder = Folder::new();
    let message = folder.complains(2, &["link", "1mbit", "1mbit", "--control", "0.0.0.0:80", "--", "true"]);
    assert!(message.contains("0.0.0.0:80 is not a loopback address"), "{message}");
}
