//! Start offset of a run in a recording, set by the key `begin`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use ackclock_core::units::UnitError;
use ackclock_core::{Law, Rate, Segment, Span, Streams, Time};
use delegate::delegate;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use ackclock_link::medium::{Found, Medium, Transmission};

/// Start offset in a recording: a fixed time, a probability distribution of times, or a uniformly random time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Begin {
    /// Offset from the start of the recording, fixed or drawn from a distribution; it wraps at the end of the
    /// recording.
    At(Law<Span>),
    /// Random offset, uniform over the recording.
    Anywhere,
}

impl Begin {
    /// Notation of [`Anywhere`](Self::Anywhere) in scenarios.
    pub const ANYWHERE: &'static str = "anywhere";

    /// Whether the start offset differs between runs.
    pub(super) fn is_drawn(&self) -> bool {
        match self {
            Self::At(law) => law.constant().is_none(),
            Self::Anywhere => true,
        }
    }

    /// Whether the start offset is zero.
    pub(super) fn is_start(&self) -> bool {
        matches!(self, Self::At(law) if law.constant() == Some(Span::ZERO))
    }

    /// Start offset in a recording of length `length`. All recordings of a channel share one random draw, so that the
    /// two directions of a recorded channel stay synchronised.
    pub(super) fn offset(&self, length: Span, streams: &Streams) -> Span {
        let mut stream = streams.stream("down/begin");
        let offset = match self {
            Self::At(law) => law.draw(&mut stream),
            Self::Anywhere => Span::from_secs_f64(length.as_secs_f64() * stream.unit()),
        };
        Span::from_nanos(offset.as_nanos() % length.as_nanos())
    }
}

impl Default for Begin {
    fn default() -> Self {
        Self::At(Law::from(Span::ZERO))
    }
}

impl FromStr for Begin {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text {
            Self::ANYWHERE => Ok(Self::Anywhere),
            law => law.parse().map(Self::At).map_err(|error| UnitError(format!("{error}; or \"anywhere\""))),
        }
    }
}

ackclock_core::text_value!(Begin);

impl fmt::Display for Begin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(law) => law.fmt(f),
            Self::Anywhere => f.write_str(Self::ANYWHERE),
        }
    }
}

impl JsonSchema for Begin {
    fn schema_name() -> Cow<'static, str> {
        "Begin".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "start offset of a run in the recording: a time, a law of times such as \"u(30s, 10s)\", or \"anywhere\"; \
                            it wraps at the end of the recording"
        })
    }
}

/// Medium that plays the recording of `inner` from `offset` on.
pub(super) struct Later<M> {
    pub(super) inner: M,
    pub(super) offset: Span,
}

impl<M: Medium> Medium for Later<M> {
    fn ready(&mut self, now: Time, found: Found) -> Time {
        self.inner.ready(now + self.offset, found) - self.offset
    }

    fn transmit(&mut self, arrived: Time, start: Time, segment: &Segment) -> Transmission {
        let sent = self.inner.transmit(arrived + self.offset, start + self.offset, segment);
        Transmission { departs: sent.departs - self.offset, ..sent }
    }

    fn rate(&self, now: Time) -> Rate {
        self.inner.rate(now + self.offset)
    }

    fn rate_until(&self, now: Time) -> Time {
        self.inner.rate_until(now + self.offset) - self.offset
    }

    fn work(&mut self, from: Time, until: Time) -> Option<u128> {
        self.inner.work(from + self.offset, until + self.offset)
    }

    delegate! {
        to self.inner {
            fn varies(&self) -> bool;
            fn least_delay(&self) -> Span;
            fn foreseeable(&self) -> bool;
        }
    }

    fn restart_work(&mut self, now: Time) {
        self.inner.restart_work(now + self.offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(begin: &str, run: u64) -> f64 {
        let begin: Begin = begin.parse().unwrap();
        begin.offset(Span::from_secs(100), &Streams::new(1, run)).as_secs_f64()
    }

    #[test]
    fn a_time_wraps_at_the_end_of_the_recording() {
        assert_eq!(["0s", "30s", "100s", "230s"].map(|begin| offset(begin, 0)), [0.0, 30.0, 0.0, 30.0]);
    }

    #[test]
    fn anywhere_is_uniform_over_the_recording_and_drawn_for_each_run() {
        let offsets: Vec<f64> = (0..1000).map(|run| offset("anywhere", run)).collect();
        assert!(offsets.iter().all(|offset| (0.0..100.0).contains(offset)));
        // Standard error of the mean: 100 s / sqrt(12 x 1000) = 0.91 s.
        let mean = offsets.iter().sum::<f64>() / 1000.0;
        assert!((mean - 50.0).abs() < 4.0 * 0.91, "{mean}");
        assert_eq!(offset("anywhere", 7), offsets[7]);
    }

    #[test]
    fn what_is_no_time_says_what_is_allowed() {
        let error = "somewhere".parse::<Begin>().unwrap_err().to_string();
        assert!(error.starts_with("`somewhere`: ") && error.ends_with("; or \"anywhere\""), "{error}");
    }
}
