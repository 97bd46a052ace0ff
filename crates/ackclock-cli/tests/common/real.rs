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

/// The object in the last line of what was printed.
pub(crate) fn last_object(text: &str) -> Value {
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The flow that delivered most.
pub(crate) fn download(results: &Value) -> &Value {
    results["flows"].as_array().unwrap().iter().max_by_key(|flow| flow["delivered_bytes"].as_u64()).unwrap()
}
