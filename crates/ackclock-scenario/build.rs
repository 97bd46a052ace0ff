//! Tells the program from which commit it is built, for the provenance of its results.
//!
//! `ACKCLOCK_COMMIT` says it where it is set; else git, for optimised builds (a debug build is of work that changes while
//! it is looked at). Where neither knows, results say null.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=ACKCLOCK_COMMIT");
    let given = std::env::var("ACKCLOCK_COMMIT").ok().filter(|commit| !commit.is_empty());
    let optimised = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if let Some(commit) = given.or_else(|| optimised.then(from_git).flatten()) {
        println!("cargo::rustc-env=ACKCLOCK_COMMIT={commit}");
    }
}

/// The commit that is checked out. Cargo asks again when it changes.
fn from_git() -> Option<String> {
    for name in ["HEAD".to_owned(), git(&["symbolic-ref", "HEAD"])?] {
        let file = git(&["rev-parse", "--git-path", &name])?;
        if Path::new(&file).exists() {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
