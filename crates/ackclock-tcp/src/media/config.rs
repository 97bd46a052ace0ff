//! Options of a media flow.

use ackclock_core::{Config, ConfigError, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sends the video of a call over UDP with Google Congestion Control, instead of TCP. `packet` is the largest packet;
/// the other TCP keys of the flow have no effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Media {
    /// Frames per second, 1 to 240.
    pub frame_rate: u32,
    /// Target bitrate at the start of the flow.
    pub start_rate: Rate,
    /// Lowest target bitrate.
    pub min_rate: Rate,
    /// Highest target bitrate: what the encoder makes of its best picture.
    pub max_rate: Rate,
    /// Size of a key frame, as a multiple of another frame. The first frame is a key frame, and each one that the
    /// receiver requests.
    pub key_frame: f64,
    /// Rate of the pacer, as a multiple of the target bitrate.
    pub pacing: f64,
    /// Time after which the receiver gives up an incomplete frame that later frames have passed, and requests a key
    /// frame.
    pub give_up: Span,
    /// Time between two reports of the receiver.
    pub report_interval: Span,
}

impl Default for Media {
    fn default() -> Self {
        Self {
            frame_rate: 30,
            start_rate: Rate::from_bps(300_000),
            min_rate: Rate::from_bps(50_000),
            max_rate: Rate::from_bps(2_500_000),
            key_frame: 4.0,
            pacing: 2.5,
            give_up: Span::from_millis(500),
            report_interval: Span::from_secs(1),
        }
    }
}

impl Config for Media {
    fn check(&self) -> Result<(), ConfigError> {
        if !(1..=240).contains(&self.frame_rate) {
            let message = format!("{} is not between 1 and 240 frames per second", self.frame_rate);
            return Err(ConfigError::new("frame_rate", message));
        }
        let rates = [self.min_rate, self.start_rate, self.max_rate];
        if self.min_rate == Rate::ZERO || self.max_rate > MOST_RATE {
            let (key, rate) = if self.min_rate == Rate::ZERO {
                ("min_rate", self.min_rate)
            } else {
                ("max_rate", self.max_rate)
            };
            return Err(ConfigError::new(key, format!("{rate} is not above 0 and at most {MOST_RATE}")));
        }
        if !rates.is_sorted() {
            let [least, start, most] = rates;
            let message = format!("{start} is not between min_rate, {least}, and max_rate, {most}");
            return Err(ConfigError::new("start_rate", message));
        }
        for (key, factor) in [("key_frame", self.key_frame), ("pacing", self.pacing)] {
            if !(1.0..=100.0).contains(&factor) {
                return Err(ConfigError::new(key, format!("{factor} is not between 1 and 100")));
            }
        }
        for (key, span) in [("give_up", self.give_up), ("report_interval", self.report_interval)] {
            if !(SHORTEST..=LONGEST).contains(&span) {
                return Err(ConfigError::new(key, format!("{span} is not between {SHORTEST} and {LONGEST}")));
            }
        }
        Ok(())
    }
}

/// Highest bitrate: reports have 32 bits for it.
const MOST_RATE: Rate = Rate::from_bps(1_000_000_000);
const SHORTEST: Span = Span::from_millis(10);
const LONGEST: Span = Span::from_secs(60);

impl Media {
    /// Limits of the target bitrate, bit/s.
    pub(crate) fn limits(&self) -> [f64; 2] {
        [self.min_rate, self.max_rate].map(|rate| rate.as_bps() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_options_are_refused_with_what_is_allowed() {
        let refused = |change: fn(&mut Media)| {
            let mut media = Media::default();
            change(&mut media);
            media.check().unwrap_err().to_string()
        };
        assert!(Media::default().check().is_ok());
        assert!(refused(|m| m.frame_rate = 0).starts_with("frame_rate: 0 is not between 1 and 240"));
        assert!(refused(|m| m.min_rate = Rate::ZERO).starts_with("min_rate: "));
        assert!(refused(|m| m.max_rate = Rate::from_bps(2_000_000_000)).starts_with("max_rate: 2Gbit/s"));
        assert!(refused(|m| m.start_rate = Rate::from_bps(1000)).starts_with("start_rate: "));
        assert!(refused(|m| m.key_frame = f64::NAN).starts_with("key_frame: NaN"));
        assert!(refused(|m| m.pacing = 0.5).starts_with("pacing: 0.5 is not between 1 and 100"));
        assert!(refused(|m| m.give_up = Span::ZERO).starts_with("give_up: "));
        assert!(refused(|m| m.report_interval = Span::from_secs(61)).starts_with("report_interval: "));
    }
}
