//! Memory limits of a scenario. A scenario that would not fit into memory is refused before it starts.

use ackclock_core::ConfigError;

/// Largest memory for one item of a scenario (the flows, the sweep, a series), GiB.
const MOST_GIB: u64 = 8;
/// Memory of one flow on a shared channel, bytes; `make bench` measures it.
pub(crate) const FLOW: u64 = 4 << 10;
/// Memory of a client with short connections, including the connection state at both ends, bytes.
pub(crate) const CLIENT: u64 = 13 << 10;
/// Memory of a flow in a relay: two endpoints and their buffers, bytes.
pub(crate) const RELAYED: u64 = 16 << 10;
/// Memory of a flow's optional measurements if delays vary widely, bytes.
pub(crate) const MEASURED: u64 = 96 << 10;
/// Memory of a sweep point with its scenario, bytes.
pub(crate) const POINT: u64 = 13 << 10;
/// Memory of one run's result with one flow, kept until the last run is done, bytes.
pub(crate) const RESULT: u64 = 4 << 10;

/// Refuses the item `what` of a scenario, requested by the key `key`, if the item needs too many `bytes`.
///
/// # Errors
/// Returns an error that states the memory that the item would need.
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
