//! What tests with real programs share: what must be there before, and what is read afterwards.

use std::process::Command;

use serde_json::Value;

use super::Folder;

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
