//! Error processes: when a channel loses what is sent over it. One file a process; the registry [`ERRORS`] names them.
//!
//! A channel is good or bad at an instant, whoever asks and however often: what is asked and what idles changes nobody's luck.
//! Only processes that lose a share of what they are asked about draw for each question, and a power control that freezes in idle
//! intervals counts those in which it is asked.

mod bursts;
mod gilbert_elliott;
mod independent;
mod power_control;
mod rayleigh;
mod recording;
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
pub use table::Errors;

/// When a channel loses what is sent over it.
pub trait ErrorProcess: Send {
    /// What becomes of a packet or block that is sent at `at`. Instants never decrease. All that shares one outcome, as the PDUs of
    /// a TTI may, asks once.
    fn fate(&mut self, at: Time) -> Fate;
}

/// What an error process is built from, beside its own table.
#[derive(Clone, Copy)]
pub struct ErrorContext<'a> {
    /// Random streams of the run.
    pub streams: &'a Streams,
    /// What its stream is called, as `down/loss`.
    pub name: &'a str,
    /// Files that its table names.
    pub files: &'a dyn Files,
    /// How long an interval of the channel lasts where its table does not say: the block time of who asks, as a TTI.
    pub block: Span,
}

/// The table of an error process in a scenario file.
pub trait ErrorConfig: fmt::Debug + Send + Sync {
    /// Share of what is sent that is lost in the long run, 0 to 1.
    ///
    /// # Errors
    /// Where a file that it names is unreadable or malformed.
    fn share(&self, files: &dyn Files) -> Result<f64, ConfigError>;

    /// Builds the process.
    ///
    /// # Errors
    /// Where a file that it names is unreadable or malformed.
    fn build(&self, context: ErrorContext<'_>) -> Result<AnyErrorProcess, ConfigError>;
}

ackclock_core::registry! {
    /// Error processes by the name that scenario files give them.
    pub static ERRORS: dyn ErrorConfig = "error process" {
        "independent" => IndependentConfig,
        "rayleigh" => RayleighConfig,
        "gilbert-elliott" => GilbertElliottConfig,
        "recording" => RecordingConfig,
        "power-control" => PowerControlConfig,
    }
}

/// An error process as links hold it: independent errors in place, because they are asked for each packet of many links; every
/// other behind a pointer.
pub enum AnyErrorProcess {
    /// Each loss by itself.
    Independent(Independent),
    /// Any other.
    Other(Box<dyn ErrorProcess>),
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

/// Shortest interval of a channel.
const SHORTEST: Span = Span::from_micros(10);

/// Checks the length of an interval where a table says it.
fn check_interval(interval: Option<Span>) -> Result<(), ConfigError> {
    match interval {
        Some(length) if length < SHORTEST => {
            Err(ConfigError::new("interval", format!("{length} is shorter than {SHORTEST}")))
        }
        _ => Ok(()),
    }
}
