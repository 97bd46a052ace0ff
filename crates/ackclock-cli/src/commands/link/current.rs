//! Current conditions of a running link.

use std::time::Instant;

use ackclock_edge::EdgeConfig;
use ackclock_link::Direction;
use serde_json::json;

use super::outputs::now;

/// Current conditions of the link, and its interrupted directions.
pub(super) struct Current {
    /// Latest edge configuration, with all changes so far.
    pub(super) edge: EdgeConfig,
    /// Number of changes so far. The processes of each change draw from separate random streams.
    pub(super) installed: u32,
    /// End times of the current outages, indexed by direction.
    pub(super) interrupted: [Option<Instant>; 2],
}

impl Current {
    pub(super) const fn new(edge: EdgeConfig) -> Self {
        Self { edge, installed: 0, interrupted: [None; 2] }
    }

    /// Edge configuration with all changes so far, as JSON with every key. During an outage, `outage` has the remaining
    /// seconds of each direction.
    pub(super) fn conditions(&self) -> Result<String, String> {
        let mut whole = self.edge.whole().map_err(|error| error.to_string())?;
        let remaining = |direction: Direction| {
            let end = self.interrupted[direction as usize]?;
            Some((name(direction).to_owned(), json!(end.saturating_duration_since(now()).as_secs_f64())))
        };
        let outage: serde_json::Map<_, _> = Direction::BOTH.into_iter().filter_map(remaining).collect();
        if !outage.is_empty() {
            whole["outage"] = outage.into();
        }
        Ok(whole.to_string())
    }
}

/// Name of the table with a direction's configuration.
pub(super) const fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => "down",
        Direction::Up => "up",
    }
}
