//! Maintenance tasks of the workspace; `cargo xtask help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to a terminal")]

mod cargo;
mod circles;
mod copy;
mod dependencies;
mod headings;
mod known_mutants;
mod licences;
mod lines;
mod mutant_check;
mod skeleton;
mod skeleton_check;
mod source;
mod test_files;
mod third_party;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask check                  all checks below except those that build a copy
cargo xtask circles                no files of a crate import each other in a circle
cargo xtask deps                   crates depend on each other downwards only
cargo xtask headings               every model file states its source and its validation
cargo xtask licences               dependencies follow deny.toml, and THIRD-PARTY.txt is up to date
cargo xtask lines                  functions have at most 40 lines; hints for files above 500 lines
cargo xtask words                  no left-overs and no private paths in files under version control
cargo xtask tests                  tests/main.rs of a crate names every file beside it
cargo xtask skeletons              skeletons of `new` compile and satisfy the laws (slow: builds a copy)
cargo xtask known-mutants          a named test notices each fault of xtask/known_mutants.toml (slow: builds a copy)
cargo xtask tutorial               the tutorial's regulator runs in a comparison (slow: builds a copy)
cargo xtask third-party            writes THIRD-PARTY.txt, the licence texts of linked crates
cargo xtask new KIND NAME          writes a skeleton; KIND is one of";

/// Help text: the tasks, and the kinds of components for `new`.
fn help() -> String {
    format!("{HELP} {}", skeleton::kinds().collect::<Vec<_>>().join(", "))
}

/// Tasks of `check`; `cargo xtask NAME` runs one of them.
const CHECKS: [&str; 7] = ["circles", "deps", "headings", "licences", "lines", "tests", "words"];

/// Results of a check: one line per problem.
type Problems = Vec<String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = workspace_root();
    let outcome = match words[..] {
        ["check"] => report(&root, &CHECKS),
        [check] if CHECKS.contains(&check) => report(&root, &[check]),
        ["skeletons"] => skeleton_check::run(&root),
        ["known-mutants"] => mutant_check::run(&root),
        ["tutorial"] => skeleton_check::tutorial(&root),
        ["third-party"] => third_party::write(&root),
        ["new", kind, name] => skeleton::write(&root, kind, name).map(|file| println!("{}", file.display())),
        [] | ["help" | "--help" | "-h"] => {
            println!("{}", help());
            Ok(())
        }
        _ => Err(format!("unknown task `{}`; tasks:\n{}", words.join(" "), help())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

fn report(root: &Path, checks: &[&str]) -> Result<(), String> {
    let mut found = 0;
    for &name in checks {
        let problems = match name {
            "circles" => circles::check(root)?,
            "deps" => dependencies::check(root)?,
            "headings" => headings::check(root)?,
            "licences" => [licences::check(root)?, third_party::check(root)?].concat(),
            "lines" => lines::check(root)?,
            "tests" => test_files::check(root)?,
            _ => words::check(root)?,
        };
        println!("{name}: {}", if problems.is_empty() { "ok".into() } else { problems.join("\n  ") });
        found += problems.len();
    }
    if found == 0 { Ok(()) } else { Err(format!("{found} problems")) }
}
