//! Sets the git commit of the build, and whether the sources were changed since, for the provenance of results.
//!
//! The commit comes from `ACKCLOCK_COMMIT` if set, otherwise from git in optimised builds (not in debug builds, whose
//! sources change all the time). If both are unknown, as in a source archive, results contain null.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Sources of the program, relative to the root of the repository.
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

/// The current commit, and whether the sources differ from it. Cargo reruns this if either changes.
fn from_git() -> Option<(String, bool)> {
    // A source archive unpacked inside another repository does not belong to its commits.
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
