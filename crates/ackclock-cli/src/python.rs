//! Runs commands implemented in Python: `python -m ackclock ...`, with the package installed next to the binary.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// Python option that prevents imports of a folder called `ackclock` in the working directory.
const SAFE_PATH: &str = "-P";
/// Address of the releases, which have the wheel.
const RELEASES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/releases");
const MODULE: [&str; 3] = [SAFE_PATH, "-m", "ackclock"];

/// Arguments of a command that Python implements and documents (`ackclock paper --help`).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Words {
    /// Arguments and options for the Python command.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl Words {
    /// Replaces the process by `python -m ackclock COMMAND WORDS`; returns only on failure.
    pub(crate) fn become_module(&self, command: &[&str]) -> Failure {
        become_module(command, &self.words)
    }
}

/// Replaces the process by `python -m ackclock COMMAND ARGUMENTS`; returns only on failure.
///
/// # Errors
/// Fails with instructions for installing the package if no Python interpreter has the package.
pub(crate) fn become_module<I: AsRef<OsStr>>(command: &[&str], arguments: &[I]) -> Failure {
    match interpreter() {
        Err(failure) => failure,
        Ok(python) => {
            let error = replace_by(Command::new(&python).args(MODULE).args(command).args(arguments));
            Failure::Run(format!("{}: cannot be started: {error}", python.display()))
        }
    }
}

/// Replaces the process by a command; returns only on failure.
#[cfg(unix)]
fn replace_by(command: &mut Command) -> std::io::Error {
    std::os::unix::process::CommandExt::exec(command)
}

/// Runs a command and exits with its status; returns only on failure.
#[cfg(not(unix))]
fn replace_by(command: &mut Command) -> std::io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

/// Runs `python -m ackclock ARGUMENTS` and waits for the process to exit.
///
/// # Errors
/// Fails with instructions for installing the package if no Python interpreter has the package. If the Python command
/// fails, it has already printed the reason.
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

/// Checks that a Python interpreter has the package.
///
/// # Errors
/// Fails with instructions for installing the package if no Python interpreter has the package.
#[cfg(feature = "live")]
pub(crate) fn require() -> Result<(), Failure> {
    interpreter().map(drop)
}

/// Returns the Python interpreter named by `$ACKCLOCK_PYTHON`. Without `$ACKCLOCK_PYTHON`, returns the first
/// interpreter that has the package, next to this binary or on the path.
fn interpreter() -> Result<PathBuf, Failure> {
    if let Some(named) = env::var_os("ACKCLOCK_PYTHON") {
        let named = PathBuf::from(named);
        return match lacks_package(&named) {
            None => Ok(named),
            Some(why) => {
                Err(missing(&format!("{} ($ACKCLOCK_PYTHON) does not have it{why}", named.display())))
            }
        };
    }
    let beside = env::current_exe().ok().and_then(|binary| Some(binary.parent()?.to_owned()));
    let candidates = beside
        .into_iter()
        .flat_map(|folder| ["python3", "python"].map(|name| folder.join(name)))
        .chain([PathBuf::from("python3")]);
    let mut reasons = Vec::new();
    for candidate in candidates {
        match lacks_package(&candidate) {
            None => return Ok(candidate),
            Some(why) if why.is_empty() || reasons.contains(&why) => {}
            Some(why) => reasons.push(why),
        }
    }
    let none = "neither a python beside this binary nor python3 on the path has it";
    Err(missing(&format!("{none}{}", reasons.concat())))
}

/// Returns why an interpreter does not find the package, as the end of a sentence. Returns `None` if the interpreter
/// finds the package. The check does not import the package.
fn lacks_package(python: &Path) -> Option<String> {
    // Python silently skips folders on its path that it may not read.
    const FIND: &str = "import importlib.util, os, sys
spec = importlib.util.find_spec('ackclock')
closed = []
for folder in sys.path + list(spec and spec.submodule_search_locations or []):
    try:
        os.listdir(folder or '.')
    except PermissionError:
        closed.append(folder)
    except OSError:
        pass
print(*closed, sep=', ')
sys.exit(spec is None or spec.origin is None)";
    let tried = Command::new(python).args([SAFE_PATH, "-c", FIND]).stdin(Stdio::null()).output();
    let output = match tried {
        Ok(output) if output.status.success() => return None,
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound || python.is_dir() => return Some(String::new()),
        Err(error) => return Some(format!("; {} cannot be started: {error}", python.display())),
    };
    let closed = String::from_utf8_lossy(&output.stdout);
    let closed = Some(closed.trim()).filter(|folders| !folders.is_empty());
    let closed = closed.map(|folders| format!("; {} may not read {folders}", python.display()));
    let set = |name: &str| env::var_os(name).map(|value| format!("; {name} is {}", value.display()));
    Some(closed.into_iter().chain(["PYTHONHOME", "PYTHONPATH"].into_iter().filter_map(set)).collect())
}

fn missing(why: &str) -> Failure {
    Failure::Run(format!(
        "this part is done by the Python package `ackclock`, and {why}. \
         Get it with the wheel of this release, which brings the command too: \
         pip install ackclock --find-links {RELEASES}/expanded_assets/v{version} \
         (in a checkout: pip install .), or name an interpreter that has it in ACKCLOCK_PYTHON",
        version = env!("CARGO_PKG_VERSION"),
    ))
}
