//! Copy of the workspace in `target`, with skeletons of `new` and the known mutants, for checks that build it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::source::tracked;
use crate::{known_mutants, skeleton};

/// Arguments of cargo that choose the laws over registries, which are integration tests; the unit tests are the
/// workspace's. Chosen from the whole workspace, they use its builds of libraries: of packages alone, cargo would build
/// libraries with fewer features.
const LAWS: [&str; 4] = ["--workspace", "--test=bearers", "--test=regulators", "--test=senders"];

/// Copy of the workspace with a skeleton of each kind, the tutorial's regulator, and the [known
/// mutants](known_mutants), of which none is chosen.
pub(crate) fn complete(root: &Path) -> Result<PathBuf, String> {
    copy_with(root, |copy| {
        known_mutants::list(root)?.write(copy)?;
        for kind in skeleton::kinds() {
            // Kinds in one folder need distinct names.
            let file = skeleton::write(copy, kind, &format!("{kind}-under-test"))?;
            println!("{kind}: {}", file.display());
        }
        Ok(())
    })
}

/// Copy of the workspace with the tutorial's regulator.
pub(crate) fn with_tutorial(root: &Path) -> Result<PathBuf, String> {
    copy_with(root, |_| Ok(()))
}

/// Arguments of cargo that run the laws, with these arguments of the test programs.
pub(crate) fn laws(arguments: &[&str]) -> Vec<String> {
    of_laws("test", arguments)
}

/// Arguments of cargo for a command about the laws and what they use, with these arguments of its program.
pub(crate) fn of_laws(command: &str, arguments: &[&str]) -> Vec<String> {
    let words = [&[command, "--quiet"], &LAWS[..], &["--"], arguments].concat();
    words.into_iter().map(str::to_owned).collect()
}

/// Copies the workspace, with the tutorial's regulator and the changes of `change`. Files of an earlier copy that would
/// be equal stay as they are, so that cargo does not build them again.
fn copy_with(root: &Path, change: impl FnOnce(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
    // Under `target`, which is not kept.
    let [copy, fresh] = ["skeletons", "skeletons-fresh"].map(|name| root.join("target").join(name));
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(|error| format!("{}: {error}", fresh.display()))?;
    }
    copy_files(
        root,
        &fresh,
        &tracked(root, "")?.into_iter().filter(|file| is_source(file)).collect::<Vec<_>>(),
    )?;
    let tutorial = skeleton::write(&fresh, "regulator", "ack-pacer")?;
    fs::copy(root.join("docs/tutorial/ack_pacer.rs"), fresh.join(tutorial))
        .map_err(|error| error.to_string())?;
    change(&fresh)?;
    as_another_version(&fresh)?;
    // The checks list files with git, which would otherwise find the outer repository and ignore all of `target`.
    git_init(&fresh)?;
    git_init(&copy)?;
    let files = tracked(&fresh, "")?;
    copy_files(&fresh, &copy, &files)?;
    for old in tracked(&copy, "")?.iter().filter(|old| files.binary_search(old).is_err()) {
        fs::remove_file(copy.join(old)).map_err(|error| format!("{}: {error}", old.display()))?;
    }
    Ok(copy)
}

/// Gives the copy a version of its own. Cargo would take its crates for the workspace's, whose builds lie in the same
/// folder: tests of the workspace would then be those of the copy.
fn as_another_version(copy: &Path) -> Result<(), String> {
    let manifest = copy.join("Cargo.toml");
    let failed = |error| format!("{}: {error}", manifest.display());
    let text = fs::read_to_string(&manifest).map_err(failed)?;
    let version = concat!("version = \"", env!("CARGO_PKG_VERSION"));
    fs::write(&manifest, text.replacen(version, &format!("{version}+copy"), 1)).map_err(failed)
}

/// Copies the files whose copies differ.
fn copy_files(from: &Path, to: &Path, files: &[PathBuf]) -> Result<(), String> {
    for file in files {
        let (source, target) = (from.join(file), to.join(file));
        let failed = |error| format!("{}: {error}", target.display());
        let text = fs::read(&source).map_err(|error| format!("{}: {error}", source.display()))?;
        if fs::read(&target).is_ok_and(|old| old == text) {
            continue;
        }
        fs::create_dir_all(target.parent().unwrap_or(to)).map_err(failed)?;
        fs::write(&target, text).map_err(failed)?;
    }
    Ok(())
}

fn is_source(file: &Path) -> bool {
    let first = file.components().next().map(|part| part.as_os_str().to_owned());
    first
        .is_some_and(|first| ["crates", "scenarios", "xtask", ".cargo"].iter().any(|folder| first == *folder))
        || file.components().count() == 1
}

fn git_init(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    run_in(folder, Command::new("git").args(["init", "--quiet"]))
}

/// Runs cargo in a copy of the workspace at `root`.
pub(crate) fn cargo(root: &Path, copy: &Path, arguments: &[String]) -> Result<(), String> {
    println!("cargo {}", arguments.join(" "));
    run_in(copy, &mut command(root, arguments))
}

/// Command that runs cargo in a copy of the workspace at `root`.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    // Libraries are taken from the workspace's build. The command and the module have the same names here and would replace
    // the workspace's: they go to a folder of their own.
    command
        .args(arguments)
        .env("CARGO_BUILD_BUILD_DIR", root.join("target"))
        .env("CARGO_TARGET_DIR", root.join("target").join("skeletons-build"))
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .env_remove("CARGO_MANIFEST_DIR");
    command
}

fn run_in(folder: &Path, command: &mut Command) -> Result<(), String> {
    let status = command.current_dir(folder).status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} in {}: {status}", folder.display())) }
}
