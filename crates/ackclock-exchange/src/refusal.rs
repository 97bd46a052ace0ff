//! Error for a script that cannot be run.

/// Reason why a script cannot be run, with its line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}: {message}")]
pub struct Refusal {
    /// Line of the invalid or unsupported statement.
    pub line: usize,
    /// Description of the problem and of the allowed input.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}
