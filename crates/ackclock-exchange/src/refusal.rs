//! Refusal of a script.

/// Why a script cannot be run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}: {message}")]
pub struct Refusal {
    /// Line of the invalid or unsupported statement.
    pub line: usize,
    /// The problem, and what is allowed.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}
