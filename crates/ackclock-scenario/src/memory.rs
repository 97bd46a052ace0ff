//! What a scenario may ask of memory: what would not fit is refused before it is begun.

use ackclock_core::ConfigError;

/// Most memory that one thing of a scenario may take, GiB.
const MOST_GIB: u64 = 8;
/// A flow on a shared channel, as `make bench` measures it, bytes.
pub(crate) const FLOW: u64 = 4 << 10;
/// A client whose connections come and go, and its place at both ends, bytes.
pub(crate) const CLIENT: u64 = 13 << 10;
/// The two ends of a flow in a relay, and what they hold, bytes.
pub(crate) const RELAYED: u64 = 16 << 10;
/// What is measured of a flow beside its results, bytes: so much where delays vary widely.
pub(crate) const MEASURED: u64 = 96 << 10;
/// A point of a sweep: its scenario, bytes.
pub(crate) const POINT: u64 = 13 << 10;
/// The result of a run of one flow, which is kept until the last run is done, bytes.
pub(crate) const RESULT: u64 = 4 << 10;

/// Refuses `what`, which `key` asks for, where its `bytes` are too many.
///
/// # Errors
/// Says how much it would take.
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
