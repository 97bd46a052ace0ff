//! What can go wrong, and the exit status that says so.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

use ackclock_output::WriteError;

/// Why the command ends before its work is done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input is wrong or cannot be read, or names a place where nothing can be written: exit status 2.
    Input(String),
    /// A run failed, or a program that the command called, or there was no room for a result: exit status 1.
    Run(String),
    /// What there is to say was said, by the command or by a program that it called: the exit status.
    Reported(u8),
    /// Whoever read standard output has gone, as `head` does: nothing to say, exit status 0.
    Unread,
}

impl Failure {
    /// A file that cannot be read.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> Self {
        Self::Input(format!("{}: cannot be read: {error}", path.display()))
    }

    /// A file or stream that cannot be written: a slip where there is no such place, else a failure, as of a full disk.
    pub(crate) fn writing(what: impl fmt::Display, error: &io::Error) -> Self {
        let message = format!("{what}: cannot be written: {error}");
        match error.kind() {
            ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory => Self::Input(message),
            _ => Self::Run(message),
        }
    }

    /// The exit status.
    pub(crate) fn status(&self) -> ExitCode {
        match self {
            Self::Input(_) => ExitCode::from(2),
            Self::Run(_) => ExitCode::from(1),
            Self::Reported(status) => ExitCode::from(*status),
            Self::Unread => ExitCode::SUCCESS,
        }
    }

    /// What is said on standard error.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Input(message) | Self::Run(message) => Some(message),
            Self::Reported(_) | Self::Unread => None,
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::writing(error.path.display(), &error.source)
    }
}
