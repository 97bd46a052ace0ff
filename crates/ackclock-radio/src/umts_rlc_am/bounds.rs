//! Allowed values of the RLC timers.

use ackclock_core::{ConfigError, Span};

pub(crate) const TIMERS: [Span; 2] = [Span::from_millis(1), Span::from_secs(60)];

pub(crate) fn in_bounds(key: &str, value: Span, [least, most]: [Span; 2]) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("{value} is not {least} to {most}")))
}
