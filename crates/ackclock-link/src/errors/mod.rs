//! Error processes decide when a channel loses packets or blocks. Each process is in a separate file; the registry
//! [`ERRORS`] lists all processes.
//!
//! The state of a channel at an instant does not depend on when or how often it is queried, nor on idle times. Two
//! processes are exceptions: independent losses, which draw a random number for each query, and a power control that
//! freezes in idle intervals.

mod bursts;
mod gilbert_elliott;
mod independent;
mod power_control;
mod rayleigh;
mod recording;
mod registry;
mod table;

use std::fmt;

use ackclock_core::{ConfigError, Span, Streams, Time};
use delegate::delegate;

use crate::{Fate, Files};

pub use gilbert_elliott::GilbertElliottConfig;
pub use independent::{Independent, IndependentConfig};
pub use power_control::PowerControlConfig;
pub use rayleigh::RayleighConfig;
pub use recording::RecordingConfig;
pub use registry::ERRORS;
pub use table::Errors;

/// Decides when a channel loses packets or blocks.
pub trait ErrorProcess: Send {
    /// Fate of a packet or block that is sent at `at`, which never decreases from call to call. Units with a common
    /// fate, such as the PDUs of a TTI, need only one query.
    fn fate(&mut self, at: Time) -> Fate;
}

/// Everything an error process needs to be built from its table.
#[derive(Clone, Copy)]
pub struct ErrorContext<'a> {
    /// Random streams of the run.
    pub streams: &'a Streams,
    /// Name of the process's random stream, such as `down/loss`.
    pub name: &'a str,
    /// Reads the files that the table names.
    pub files: &'a dyn Files,
    /// Default interval of the channel: the block time of the link that uses the process, such as a TTI.
    pub block: Span,
}

/// Configuration of an error process: its table in a scenario file.
pub trait ErrorConfig: fmt::Debug + Send + Sync {
    /// Long-run loss probability, 0 to 1.
    ///
    /// # Errors
    /// Returns an error if a file that the table names is unreadable or malformed.
    fn share(&self, files: &dyn Files) -> Result<f64, ConfigError>;

    /// Builds the error process.
    ///
    /// # Errors
    /// Returns an error if a file that the table names is unreadable or malformed.
    fn build(&self, context: ErrorContext<'_>) -> Result<AnyErrorProcess, ConfigError>;
}

/// An error process as links store it: independent errors inline, because many links query them for each packet; any
/// other process behind a pointer.
pub enum AnyErrorProcess {
    /// Independent losses, stored inline.
    Independent(Independent),
    /// An error process of any other kind.
    Other(Box<dyn ErrorProcess>),
}

impl AnyErrorProcess {
    /// Whether packets or blocks may be lost.
    #[inline]
    pub fn may_lose(&self) -> bool {
        !matches!(self, Self::Independent(process) if process.is_lossless())
    }
}

impl ErrorProcess for AnyErrorProcess {
    delegate! {
        to match self {
            Self::Independent(process) => process,
            Self::Other(process) => process,
        } {
            #[inline]
            fn fate(&mut self, at: Time) -> Fate;
        }
    }
}

/// Shortest allowed interval of a channel.
const SHORTEST: Span = Span::from_micros(10);

/// Checks the interval of a table, if the table has one.
fn check_interval(interval: Option<Span>) -> Result<(), ConfigError> {
    match interval {
        Some(length) if length < SHORTEST => {
            Err(ConfigError::new("interval", format!("{length} is shorter than {SHORTEST}")))
        }
        _ => Ok(()),
    }
}
