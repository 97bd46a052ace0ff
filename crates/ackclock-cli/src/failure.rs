//! Errors of the command and their exit statuses.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

use ackclock_core::Rate;
use ackclock_output::WriteError;

/// Reason for which the command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Invalid or unreadable input, or an output path that cannot be created: exit status 2.
    Input(String),
    /// A run or a called program failed, or a result could not be stored: exit status 1.
    Run(String),
    /// The error was already printed, by this command or by a program it called. The field of `Reported` is the exit
    /// status.
    Reported(u8),
    /// Standard output was closed by its reader (`head`): exit 0 silently.
    Unread,
}

impl Failure {
    /// Error for a file that cannot be read.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> Self {
        let toml = path.with_added_extension("toml");
        let hint = match error.kind() {
            ErrorKind::NotFound if toml.is_file() => format!("; did you mean {}?", toml.display()),
            _ => String::new(),
        };
        Self::Input(format!("{}: cannot be read: {error}{hint}", path.display()))
    }

    /// Adds where a rate is written, if a rate was given in place of a scenario or recording.
    pub(crate) fn or_rate(self, path: &Path) -> Self {
        let is_rate = path.to_str().is_some_and(|text| text.parse::<Rate>().is_ok());
        match self {
            Self::Input(message) if is_rate && !path.exists() => Self::Input(format!(
                "{message}; a rate is a key of a scenario: edge.down.rate = \"{}\"",
                path.display()
            )),
            other => other,
        }
    }

    /// Error for a file or stream that cannot be written: invalid input if the path does not exist, otherwise a failure
    /// such as a full disk.
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

    /// Exit status of the command for this failure.
    pub(crate) fn status(&self) -> ExitCode {
        match self {
            Self::Input(_) => ExitCode::from(2),
            Self::Run(_) => ExitCode::from(1),
            Self::Reported(status) => ExitCode::from(*status),
            Self::Unread => ExitCode::SUCCESS,
        }
    }

    /// Message of the failure for standard error.
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
