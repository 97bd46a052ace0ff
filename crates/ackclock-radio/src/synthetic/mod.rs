//! Recordings that are built in: generated from models when they are read, the same bytes every time.

mod starlink;

use ackclock_core::{ConfigError, Span};
use ackclock_import::Recording;

use crate::cell;
use crate::cell::synthetic::unprintable;

pub use starlink::Starlink;

/// Start of the name of a built-in recording, which a scenario writes in place of a path: `synthetic:evdo-driving`.
pub const PREFIX: &str = "synthetic:";

/// Names of the built-in recordings, each with the function that generates its text.
const BUILT_IN: [(&str, Generate); 3] = [
    // The file `scenarios/recordings/synthetic-evdo-driving.down`.
    ("evdo-driving", || cell::Synthetic::evdo_driving().to_mahimahi(LENGTH, 14)),
    ("lte-driving", || cell::Synthetic::lte_driving().to_mahimahi(LENGTH, LTE_SEED)),
    ("starlink", || {
        let samples = Starlink::default().record(LENGTH, 1)?;
        Recording::Samples(samples).to_csv(Span::from_secs(1)).map_err(unprintable)
    }),
];

type Generate = fn() -> Result<String, ConfigError>;

/// Length of each built-in recording.
const LENGTH: Span = Span::from_secs(300);
/// Seed of the seeds 1 to 40 whose recording is nearest to the LTE recording that the preset is fitted to.
const LTE_SEED: u64 = 26;

/// Returns the text of the built-in recording that `path` names; `None` if `path` is the path of a file.
///
/// # Errors
/// Fails with the names of the built-in recordings if `path` begins like a built-in recording and names none.
pub fn read(path: &str) -> Option<Result<String, ConfigError>> {
    let name = path.strip_prefix(PREFIX)?;
    Some(match BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        Some((_, generate)) => generate().map_err(|error| ConfigError::new(path, error)),
        None => {
            let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            Err(ConfigError::new(
                path,
                format!("no such recording is built in; there are {}", names.join(", ")),
            ))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_recording_can_be_played_and_is_the_same_again() {
        for (name, _) in BUILT_IN {
            let text = read(&format!("{PREFIX}{name}")).unwrap().unwrap();
            let length = Recording::parse(text.as_bytes()).unwrap().length();
            assert!(length.abs_diff(LENGTH) < Span::from_secs(1), "{name}: {length}");
            assert_eq!(text, read(&format!("{PREFIX}{name}")).unwrap().unwrap(), "{name}");
        }
        assert!(read("drive.down").is_none());
        assert!(read("synthetic:evdo").unwrap().unwrap_err().message.contains("there are evdo-driving"));
    }
}
