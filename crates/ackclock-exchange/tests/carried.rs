//! Every script in `tests/exchanges` passes.

// Test helpers may unwrap.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use ackclock_exchange::{RunOptions, Script, run};

fn exchanges() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/exchanges");
    let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "pkt"));
    found.sort();
    found
}

fn failure(path: &Path) -> Option<String> {
    let name = path.file_name().unwrap().to_string_lossy();
    let script = match Script::parse(&fs::read_to_string(path).unwrap()) {
        Ok(script) => script,
        Err(refusal) => return Some(format!("{name}:{refusal}")),
    };
    let failure = run(&script, &RunOptions::default()).failure?;
    Some(format!("{name}:{}: expected {}, got {}", failure.line, failure.expected, failure.got))
}

#[test]
fn every_exchange_comes_about() {
    let exchanges = exchanges();
    assert!(exchanges.len() >= 45, "{exchanges:?}");
    let failures: Vec<_> = exchanges.iter().filter_map(|path| failure(path)).collect();
    assert!(failures.is_empty(), "{failures:#?}");
}
