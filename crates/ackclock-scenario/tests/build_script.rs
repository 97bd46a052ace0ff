//! Output of the build script: the commit of the sources, and whether they were changed since.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::path::Path;
use std::process::Command;

const MANIFEST: &str = env!("CARGO_MANIFEST_DIR");

/// Output of the compiled build script `script`, run in the folder of a crate.
fn said(script: &Path, krate: &Path, given: &str) -> Vec<String> {
    let output = Command::new(script)
        .current_dir(krate)
        .env("PROFILE", "release")
        .env("ACKCLOCK_COMMIT", given)
        // Ignore a repository that contains the temporary folder.
        .env("GIT_CEILING_DIRECTORIES", krate.ancestors().nth(3).unwrap())
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter_map(|line| line.strip_prefix("cargo::rustc-env=")).map(str::to_owned).collect()
}

fn git(folder: &Path, arguments: &[&str]) -> bool {
    let who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    Command::new("git")
        .current_dir(folder)
        .args(who)
        .args(arguments)
        .output()
        .is_ok_and(|it| it.status.success())
}

#[test]
fn a_build_of_changed_sources_says_so_and_one_without_git_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (root, script) = (folder.path().join("repository"), folder.path().join("script"));
    let krate = root.join("crates/ackclock-scenario");
    std::fs::create_dir_all(&krate).unwrap();
    std::fs::copy(Path::new(MANIFEST).join("build.rs"), krate.join("build.rs")).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compiler = Command::new(rustc);
    let compiled = compiler.args(["--edition", "2024"]).arg(krate.join("build.rs")).arg("-o").arg(&script);
    if !compiled.status().is_ok_and(|status| status.success()) || !git(&root, &["init", "--quiet"]) {
        eprintln!("skipped: rustc or git is not installed");
        return;
    }
    // Like an archive unpacked inside a repository.
    assert_eq!(said(&script, &krate, ""), [""; 0]);
    assert_eq!(said(&script, &krate, "abc"), ["ACKCLOCK_COMMIT=abc"]);
    std::fs::write(root.join("notes"), "").unwrap();
    assert!(git(&root, &["add", "."]) && git(&root, &["commit", "--quiet", "-m", "one"]));
    let clean = said(&script, &krate, "");
    assert_eq!((clean.len(), clean[1].as_str()), (2, "ACKCLOCK_DIRTY=false"));
    // Files that are not compiled do not count as sources.
    std::fs::write(root.join("notes"), "changed").unwrap();
    assert_eq!(said(&script, &krate, ""), clean);
    std::fs::write(root.join("crates/other.rs"), "").unwrap();
    assert_eq!(said(&script, &krate, ""), [clean[0].as_str(), "ACKCLOCK_DIRTY=true"]);
    std::fs::remove_dir_all(root.join(".git")).unwrap();
    assert_eq!(said(&script, &krate, ""), [""; 0]);
}
