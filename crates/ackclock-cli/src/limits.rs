//! Checks limits of the shell (`ulimit`) that would make the command abort in the middle of its work.

use std::thread::available_parallelism;

use rustix::process::{Resource, getrlimit};

use crate::failure::Failure;

/// Checks the shell's limits of address space and of open files.
///
/// # Errors
/// Fails with the name of the limit, its value, the required value, and the command that raises it.
pub(crate) fn check() -> Result<(), Failure> {
    let cores = available_parallelism().map_or(1, |cores| cores.get() as u64);
    let memory = SPACE + SPACE_OF_CORE * cores;
    let limits = [
        (
            getrlimit(Resource::As).current.map(|bytes| bytes >> 10),
            memory >> 10,
            "-v",
            "KiB of address space",
        ),
        (getrlimit(Resource::Nofile).current, FILES, "-n", "open files"),
    ];
    match limits.into_iter().find_map(|(limit, least, option, what)| lack(limit, least, option, what)) {
        Some(message) => Err(Failure::Run(message)),
        None => Ok(()),
    }
}

/// Address space needed by the smallest run, and by a thread with its stack and memory arenas, bytes. The value of
/// `SPACE` is about twice the measured need for address space.
const SPACE: u64 = 128 << 20;
const SPACE_OF_CORE: u64 = 16 << 20;
/// Number of open files that a link needs. A link opens 14 files before it serves any connection.
const FILES: u64 = 32;

fn lack(limit: Option<u64>, least: u64, option: &str, what: &str) -> Option<String> {
    let limit = limit.filter(|&limit| limit < least)?;
    Some(format!(
        "`ulimit {option}` allows {limit} {what}, and ackclock needs {least}: `ulimit {option} {least}` or more raises it, up to the \
         hard limit `ulimit -H {option}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_only_where_it_is_too_low() {
        assert_eq!(
            [None, Some(32), Some(33)].map(|limit| lack(limit, 32, "-n", "open files")),
            [None, None, None]
        );
        let message = lack(Some(12), 32, "-n", "open files").unwrap();
        assert!(
            message.starts_with("`ulimit -n` allows 12 open files, and ackclock needs 32: "),
            "{message}"
        );
    }
}
