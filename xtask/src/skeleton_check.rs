//! Checks in a copy of the workspace that skeletons of `new` compile without warnings, have all headings and satisfy
//! the laws, and that the tutorial's regulator runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::source::tracked;
use crate::{headings, skeleton};

/// Writes one skeleton of each kind, and the tutorial's component, into a copy of the workspace, and runs lints and
/// laws there.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let copy = copy_with_tutorial(root)?;
    for kind in skeleton::kinds() {
        // Kinds in one folder need distinct names.
        let file = skeleton::write(&copy, kind, &format!("{kind}-under-test"))?;
        println!("{kind}: {}", file.display());
    }
    // The laws over registries, which are integration tests; the unit tests are the workspace's. Chosen from the whole
    // workspace, they use its builds of libraries: of packages alone, cargo would build libraries with fewer features.
    let laws = ["--workspace", "--test=bearers", "--test=regulators", "--test=senders"];
    cargo(root, &copy, &[&["clippy", "--quiet"], &laws[..], &["--", "-D", "warnings"]].concat())?;
    cargo(root, &copy, &[&["test", "--quiet"], &laws[..]].concat())?;
    let silent = headings::check(&copy)?;
    if silent.is_empty() { Ok(()) } else { Err(silent.join("\n")) }
}

/// Runs the last step of the tutorial in a copy of the workspace: the new regulator in a comparison.
pub(crate) fn tutorial(root: &Path) -> Result<(), String> {
    let copy = copy_with_tutorial(root)?;
    let compare = ["compare", "scenarios/demo.toml", "--regulators", "none,ack-pacer", "--senders", "cubic"];
    cargo(root, &copy, &[&["run", "--quiet", "--package", "ackclock-cli", "--"], &compare[..]].concat())
}

/// Copies the workspace, with the tutorial's regulator: its skeleton, replaced by the tutorial's file.
fn copy_with_tutorial(root: &Path) -> Result<PathBuf, String> {
    // Under `target`, which is not kept.
    let copy = root.join("target").join("skeletons");
    copy_workspace(root, &copy)?;
    let tutorial = skeleton::write(&copy, "regulator", "ack-pacer")?;
    fs::copy(root.join("docs/tutorial/ack_pacer.rs"), copy.join(tutorial))
        .map_err(|error| error.to_string())?;
    Ok(copy)
}

/// Copies the files under version control; earlier copies are replaced.
fn copy_workspace(root: &Path, copy: &Path) -> Result<(), String> {
    let old = copy.join("crates");
    if old.exists() {
        fs::remove_dir_all(&old).map_err(|error| format!("{}: {error}", old.display()))?;
    }
    let files: Vec<PathBuf> = tracked(root, "")?;
    for file in files.iter().filter(|file| is_source(file)) {
        let target = copy.join(file);
        let folder = target.parent().unwrap_or(copy);
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        fs::copy(root.join(file), &target).map_err(|error| format!("{}: {error}", target.display()))?;
    }
    as_another_version(copy)?;
    // The checks list files with git, which would otherwise find the outer repository and ignore all of `target`.
    git_init(copy)
}

/// Gives the copy a version of its own. Cargo would take its crates for the workspace's, whose builds lie in the same
/// folder: tests of the workspace would then be those of the copy.
fn as_another_version(copy: &Path) -> Result<(), String> {
    let manifest = copy.join("Cargo.toml");
    let fault = |error| format!("{}: {error}", manifest.display());
    let text = fs::read_to_string(&manifest).map_err(fault)?;
    let version = concat!("version = \"", env!("CARGO_PKG_VERSION"));
    fs::write(&manifest, text.replacen(version, &format!("{version}+copy"), 1)).map_err(fault)
}

fn is_source(file: &Path) -> bool {
    let first = file.components().next().map(|part| part.as_os_str().to_owned());
    first
        .is_some_and(|first| ["crates", "scenarios", "xtask", ".cargo"].iter().any(|folder| first == *folder))
        || file.components().count() == 1
}

fn git_init(copy: &Path) -> Result<(), String> {
    run_in(copy, Command::new("git").args(["init", "--quiet"]))
}

fn cargo(root: &Path, copy: &Path, arguments: &[&str]) -> Result<(), String> {
    println!("cargo {}", arguments.join(" "));
    let mut command = Command::new(env!("CARGO"));
    // Libraries are taken from the workspace's build. The command and the module have the same names here and would replace
    // the workspace's: they go to a folder of their own.
    command
        .args(arguments)
        .env("CARGO_BUILD_BUILD_DIR", root.join("target"))
        .env("CARGO_TARGET_DIR", root.join("target").join("skeletons-build"))
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .env_remove("CARGO_MANIFEST_DIR");
    run_in(copy, &mut command)
}

fn run_in(folder: &Path, command: &mut Command) -> Result<(), String> {
    let status = command.current_dir(folder).status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} in {}: {status}", folder.display())) }
}
