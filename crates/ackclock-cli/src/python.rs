//! The Python half of the command: `python -m ackclock ...` of the package installed beside the binary.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// Keeps a folder that happens to be called `ackclock` in the working directory from being taken for the package.
const SAFE_PATH: &str = "-P";
const MODULE: [&str; 3] = [SAFE_PATH, "-m", "ackclock"];

/// The words after a command that Python carries out and describes itself (`ackclock paper --help`).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Words {
    /// What the command is told, and its options.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl Words {
    /// Becomes `python -m ackclock COMMAND WORDS`; returns only where that is impossible.
    pub(crate) fn become_module(&self, command: &[&str]) -> Failure {
        become_module(command, &self.words)
    }
}

/// Becomes `python -m ackclock COMMAND ARGUMENTS`; returns only where that is impossible.
///
/// # Errors
/// Says how to get the package where no interpreter has it.
pub(crate) fn become_module<I: AsRef<OsStr>>(command: &[&str], arguments: &[I]) -> Failure {
    match interpreter() {
        Err(failure) => failure,
        Ok(python) => {
            let error = Command::new(&python).args(MODULE).args(command).args(arguments).exec();
            Failure::Run(format!("{}: cannot be started: {error}", python.display()))
        }
    }
}

/// Runs `python -m ackclock ARGUMENTS` and waits for it.
///
/// # Errors
/// Says how to get the package where no interpreter has it. Where the command fails it has said why.
pub(crate) fn call_module(arguments: &[OsString]) -> Result<(), Failure> {
    let python = interpreter()?;
    let status = Command::new(&python)
        .args(MODULE)
        .args(arguments)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| Failure::Run(format!("{}: cannot be started: {error}", python.display())))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(1) => Err(Failure::Reported(1)),
        Some(2) => Err(Failure::Reported(2)),
        _ => {
            let command = arguments.first().map_or_else(String::new, |name| name.display().to_string());
            Err(Failure::Run(format!("`{} -m ackclock {command}` failed ({status})", python.display())))
        }
    }
}

/// The interpreter that `$ACKCLOCK_PYTHON` names, else the first that has the package: beside this binary, on the path.
fn interpreter() -> Result<PathBuf, Failure> {
    if let Some(named) = env::var_os("ACKCLOCK_PYTHON") {
        let named = PathBuf::from(named);
        return if has_package(&named) {
            Ok(named)
        } else {
            Err(missing(&format!("{} ($ACKCLOCK_PYTHON) does not have it", named.display())))
        };
    }
    let beside = env::current_exe().ok().and_then(|binary| Some(binary.parent()?.to_owned()));
    let candidates = beside
        .into_iter()
        .flat_map(|folder| ["python3", "python"].map(|name| folder.join(name)))
        .chain([PathBuf::from("python3")]);
    candidates
        .into_iter()
        .find(has_package)
        .ok_or_else(|| missing("neither a python beside this binary nor python3 on the path has it"))
}

/// Whether an interpreter can be started and finds the package; the package itself is not loaded yet.
fn has_package(python: &PathBuf) -> bool {
    const FIND: &str = "import importlib.util, sys
spec = importlib.util.find_spec('ackclock')
sys.exit(spec is None or spec.origin is None)";
    Command::new(python)
        .args([SAFE_PATH, "-c", FIND])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn missing(why: &str) -> Failure {
    Failure::Run(format!(
        "this part is done by the Python package `ackclock`, and {why}. \
         Get it with `pip install .` in a checkout of ackclock, which brings this command too, \
         or name an interpreter that has it in ACKCLOCK_PYTHON"
    ))
}
