//! Obstacles to creating a link, with their remedies.

use std::fmt;

use serde_json::{Value, json};

/// Operation that this machine does not allow, with a one-line remedy if known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}{}", remedy.as_deref().map(|text| format!("; {text}")).unwrap_or_default())]
pub struct Obstacle {
    /// Operation that failed.
    pub what: String,
    /// Reason for the failure.
    pub why: String,
    /// Remedy for the obstacle, if known.
    pub remedy: Option<String>,
}

impl Obstacle {
    /// Creates an obstacle: operation `what` failed for reason `why`.
    pub fn new(what: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { what: what.into(), why: why.to_string(), remedy: None }
    }

    /// Adds a remedy to the obstacle.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({ "what": self.what, "why": self.why, "remedy": self.remedy })
    }

    pub(crate) fn from_json(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        Self {
            what: text("what").unwrap_or_default(),
            why: text("why").unwrap_or_default(),
            remedy: text("remedy"),
        }
    }
}

/// Converts errors to obstacles that state which operation failed.
pub(crate) trait Trying<T> {
    /// Converts the error to an obstacle of operation `what`.
    fn trying(self, what: &str) -> Result<T, Obstacle>;
}

impl<T, E: fmt::Display> Trying<T> for Result<T, E> {
    fn trying(self, what: &str) -> Result<T, Obstacle> {
        self.map_err(|error| Obstacle::new(what, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_obstacle_survives_the_way_between_processes() {
        let obstacle = Obstacle::new("opening /dev/net/tun", "Permission denied").remedy("chmod");
        assert_eq!(Obstacle::from_json(&obstacle.to_json()), obstacle);
        assert_eq!(obstacle.to_string(), "opening /dev/net/tun: Permission denied; chmod");
    }
}
