//! The command as its users call it: in a folder of its own, with what it wrote and how it ended.

#![allow(dead_code, reason = "each test file uses its part of it")]

pub(crate) mod real;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Ten seconds of one Reno flow over a link whose delay varies, and a sweep of four points.
pub(crate) const SCENARIO: &str = r#"version = 1
preset = "cr02"
duration = "10s"

[edge]
buffer = "10p"
[edge.down]
kind = "variable"
rate = "200kbit/s"
delay = "e(50ms)"
[edge.up]
kind = "variable"
rate = "64kbit/s"
delay = "350ms"

[[flow]]
sender = "reno"

[sweep]
"edge.buffer" = ["4p", "10p"]
"flow.sender" = ["reno", "sack1"]
"#;

/// What `run` and `compare` say of the sweep.
pub(crate) const UNSWEPT: &str = "ignores [sweep] (";

/// A folder in which the command runs.
pub(crate) struct Folder(TempDir);

impl Folder {
    /// A folder with `case.toml`.
    pub(crate) fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("case.toml", SCENARIO);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names of the files in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The command, not yet started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ackclock"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command.env_remove("ACKCLOCK_PYTHON");
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        Ended::from(self.command(arguments).output().unwrap())
    }

    /// What the command prints, which must end well and say nothing else, but for the `[sweep]` of `case.toml` and what limits it.
    pub(crate) fn prints(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        let remarks = [UNSWEPT, "has no [[flow]]", " limits the result: "];
        let remark = |line: &&str| remarks.iter().any(|remark| line.contains(remark));
        let said: Vec<_> = ended.err.lines().filter(|line| !remark(line)).collect();
        assert_eq!((ended.status, said), (0, Vec::new()), "{arguments:?}");
        ended.out
    }

    /// What the command prints, and the only line that it says beside.
    pub(crate) fn remarks(&self, arguments: &[&str]) -> (String, String) {
        let ended = self.run(arguments);
        assert_eq!((ended.status, ended.err.lines().count()), (0, 1), "{arguments:?}: {}", ended.err);
        (ended.out, ended.err.trim_end().to_owned())
    }

    /// What the command complains of in one line, with this exit status and nothing printed.
    pub(crate) fn complains(&self, status: i32, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!((ended.status, ended.out.as_str()), (status, ""), "{arguments:?}: {}", ended.err);
        let said: Vec<_> = ended.err.lines().filter(|line| !line.contains(UNSWEPT)).collect();
        assert_eq!(said.len(), 1, "{}", ended.err);
        said[0].strip_prefix("ackclock: ").unwrap_or_else(|| panic!("{}", ended.err)).to_owned()
    }
}

/// How the command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
