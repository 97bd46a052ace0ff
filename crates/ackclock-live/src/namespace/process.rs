//! Child processes of a link, their messages and their exit status.

use nix::unistd::{ForkResult, Pid, fork};

use super::obstacle::{Obstacle, Trying};

/// Exit status for failures of ackclock itself, as in `env` and `timeout`.
pub(crate) const FAILED: u8 = 125;

/// Runs `work` in a child process and returns its process number.
#[allow(unsafe_code)]
pub(crate) fn apart(work: impl FnOnce() -> u8) -> Result<Pid, Obstacle> {
    // SAFETY: this process has one thread, so the copy inherits no locked mutex.
    match unsafe { fork() }.trying("starting a process")? {
        ForkResult::Child => std::process::exit(work().into()),
        ForkResult::Parent { child } => Ok(child),
    }
}

/// Writes a text to standard error.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    // A failed write to standard error cannot be reported.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
