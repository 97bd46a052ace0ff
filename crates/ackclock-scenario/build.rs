//! Tells the program from which commit it is built, and whether its sources were changed since, for the provenance of its
//! results.
//!
//! `ACKCLOCK_COMMIT` says the commit where it is set; else git, for optimised builds (a debug build is of work that changes
//! while it is looked at). Where neither knows, as in an unpacked archive of the sources, results say null.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program is compiled from, below the root of the repository.
const SOURCES: [&str; 4] = [".cargo", "Cargo.lock", "Cargo.toml", "crates"];

fn main() {
    println!("cargo::rerun-if-env-changed=ACKCLOCK_COMMIT");
    let given = std::env::var("ACKCLOCK_COMMIT").ok().filter(|commit| !commit.is_empty());
    let optimised = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if let Some(commit) = given {
        println!("cargo::rustc-env=ACKCLOCK_COMMIT={commit}");
    } else if let Some((commit, dirty)) = optimised.then(from_git).flatten() {
        println!("cargo::rustc-env=ACKCLOCK_COMMIT={commit}");
        println!("cargo::rustc-env=ACKCLOCK_DIRTY={dirty}");
    }
}

/// The commit that is checked out, and whether sources differ from it. Cargo asks again when either changes.
fn from_git() -> Option<(String, bool)> {
    // An archive that was unpacked within another repository is none of its commits.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let root = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    let head = ["HEAD", "logs/HEAD"].map(str::to_owned).into_iter();
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    let noted = head.chain(branch).filter_map(|name| git(&["rev-parse", "--git-path", &name]));
    let sources = SOURCES.map(|name| root.join(name).display().to_string());
    for file in noted.chain(sources).filter(|file| Path::new(file).exists()) {
        println!("cargo::rerun-if-changed={file}");
    }
    let root = root.to_str()?;
    let changed = git(&[&["-C", root, "status", "--porcelain", "--"][..], &SOURCES].concat())?;
    Some((git(&["rev-parse", "--short=12", "HEAD"])?, !changed.is_empty()))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
