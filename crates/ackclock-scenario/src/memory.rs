//! Memory limits of a scenario. One that would not fit is refused before it starts.

use ackclock_core::ConfigError;

/// Largest memory for one item of a scenario (its flows, its sweep, a series), GiB.
const MOST_GIB: u64 = 8;
/// Memory of a flow on a shared channel, measured by `make bench`, bytes.
pub(crate) const FLOW: u64 = 4 << 10;
/// Memory of a client with short connections, including its state at both ends, bytes.
pub(crate) const CLIENT: u64 = 13 << 10;
/// Memory of a flow in a relay: two endpoints and their buffers, bytes.
pub(crate) const RELAYED: u64 = 16 << 10;
/// Memory of a flow's optional measurements if delays vary widely, bytes.
pub(crate) const MEASURED: u64 = 96 << 10;
/// Memory of a sweep point with its scenario, bytes.
pub(crate) const POINT: u64 = 13 << 10;
/// Memory of a run's result with one flow, kept until the last run is done, bytes.
pub(crate) const RESULT: u64 = 4 << 10;

/// Refuses `what`, requested by `key`, if it needs too many `bytes`.
///
/// # Errors
/// States the memory it would need.
pub(crate) fn check(key: &str, what: &str, bytes: u64) -> Result<(), ConfigError> {
    if bytes <= MOST_GIB << 30 {
        return Ok(());
    }
    let gib = bytes >> 30;
    Err(ConfigError::new(
        key,
        format!("{what} would take some {gib} GiB; at most {MOST_GIB} GiB are allowed"),
    ))
}
