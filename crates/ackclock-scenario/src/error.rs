//! Errors of scenarios and runs, each with one message.

/// Error about an invalid scenario, with the place, the value found and the allowed values.
///
/// Example of a displayed error: `case.toml:12: edge.down.rate: "200kbits" has no unit of rate; a rate is written like
/// ...`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}{message}", key_prefix(.key))]
pub struct ScenarioError {
    /// File and line, preset or override that contains the value.
    pub place: String,
    /// Dotted path of the key, as for `--set`; empty if the entire text is invalid.
    pub key: String,
    /// Message with the value found and what is allowed instead.
    pub message: String,
}

/// Error of a run whose scenario passed the check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The scenario is invalid in spite of the check, for instance because an input file has changed.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The packet capture could not be written.
    #[error("the capture could not be written: {0}")]
    Capture(String),
    /// The caller stopped the run with [`crate::Progress::stop`].
    #[error("the run was stopped")]
    Stopped,
    /// The operating system could not create a thread.
    #[error("no thread could be begun: {0}")]
    Threads(String),
}

impl ScenarioError {
    /// Creates an error about an entire text at `place`.
    pub(crate) fn of_text(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), key: String::new(), message: message.into() }
    }

    /// Creates an error about a key at the given place.
    pub(crate) fn of_key(place: String, key: String, message: &str) -> Self {
        let message = match suggestion(message) {
            Some(near) => format!("{message}; did you mean `{near}`?"),
            None => in_words(message),
        };
        Self { place, key, message }
    }
}

/// Replaces the type name in a serde message by the allowed range of numbers.
fn in_words(message: &str) -> String {
    let Some((wrong, kind)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let most = match kind {
        "u8" => u64::from(u8::MAX),
        "u16" => u16::MAX.into(),
        "u32" => u32::MAX.into(),
        "u64" | "usize" => u64::MAX,
        "f64" => return format!("{wrong}, expected a number"),
        _ => return message.to_owned(),
    };
    format!("{wrong}, expected a whole number from 0 to {most}")
}

fn key_prefix(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

/// Suggests the known name that is most similar to an unknown name. In the message, the first name in backticks is the
/// unknown name; the known names follow in backticks or after "known are".
fn suggestion(message: &str) -> Option<&str> {
    if !message.starts_with("unknown ") {
        return None;
    }
    let (_, rest) = message.split_once('`')?;
    let (unknown, allowed) = rest.split_once('`')?;
    let names: Vec<&str> = match allowed.split_once("; known are ") {
        Some((_, list)) => list.split(", ").collect(),
        // A hint, which may repeat the unknown name, can follow the list of known names.
        None => allowed.split(';').next()?.split('`').skip(1).step_by(2).collect(),
    };
    let nearest = names.into_iter().min_by_key(|name| strsim::osa_distance(unknown, name))?;
    let most = unknown.len().div_ceil(3).min(3);
    (strsim::osa_distance(unknown, nearest) <= most).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_met_with_the_right_name() {
        let near = |message| suggestion(message).map(str::to_owned);
        assert_eq!(near("unknown field `bufer`, expected one of `queue`, `buffer`"), Some("buffer".into()));
        let hint =
            "unknown field `loss`, expected one of `rate`, `tti`; `loss` is a key of kind = \"constant\"";
        assert_eq!(near(hint), None);
        assert_eq!(near("unknown sender `sakc`; known are reno, sack, cubic"), Some("sack".into()));
        assert_eq!(near("unknown sender `quic`; known are reno, sack, bbr"), None);
        assert_eq!(near("invalid type: integer `5`"), None);
        assert_eq!(near("unknown field `name`, there are no fields"), None);
    }

    #[test]
    fn what_is_allowed_is_said_in_numbers() {
        let words = in_words("invalid value: integer `-1`, expected u8");
        assert_eq!(words, "invalid value: integer `-1`, expected a whole number from 0 to 255");
        assert_eq!(in_words("invalid type: map, expected f64"), "invalid type: map, expected a number");
        assert_eq!(in_words("invalid type: map, expected a string"), "invalid type: map, expected a string");
        assert_eq!(in_words("is above 5"), "is above 5");
    }
}
