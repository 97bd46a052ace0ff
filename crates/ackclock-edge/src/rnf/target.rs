//! What is to wait at the radio.

use ackclock_core::{ConfigError, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is to wait at the radio, as a scenario says it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub(crate) enum Target {
    /// So many packets.
    Packets(u32),
    /// What passes in this time.
    Time(Span),
    /// As few packets as keep the radio busy.
    Auto,
}

/// A queue of a time has at least and at most so many packets: two, so that the radio always finds one; and six, the source's
/// constant, which bounds the delay where the rate is high.
const LEAST: f64 = 2.0;
const MOST: f64 = 6.0;
/// The outer loop begins with the source's constant, and goes from one packet, the least that a sample can tell from none, to twice
/// the source's constant.
const AUTO: [f64; 3] = [1.0, 6.0, 12.0];
/// Samples with a queue after which the outer loop tries one packet less. The inner loop settles in two, so each step of the outer
/// one is seen before the next.
const PATIENCE: u32 = 10;
/// Most packets that can be said.
const LARGEST: u32 = 10_000;

impl Target {
    pub(super) fn check(self) -> Result<(), ConfigError> {
        match self {
            Self::Packets(packets @ (0 | LARGEST..)) => {
                Err(ConfigError::new("", format!("{packets}p is not from 1p to below {LARGEST}p")))
            }
            Self::Time(Span::ZERO) => Err(ConfigError::new("", "0s is not above 0")),
            _ => Ok(()),
        }
    }
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.parse() {
            Ok(Size::Packets(packets)) => Ok(Self::Packets(packets)),
            Ok(Size::Time(span)) => Ok(Self::Time(span)),
            _ if text == "auto" => Ok(Self::Auto),
            _ => Err(format!(
                "`{text}` is none of a number of packets, \"6p\", a time, \"100ms\", and \"auto\""
            )),
        }
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        match target {
            Target::Packets(packets) => Size::Packets(packets).to_string(),
            Target::Time(span) => Size::Time(span).to_string(),
            Target::Auto => "auto".to_owned(),
        }
    }
}

/// What is to wait now.
#[derive(Debug)]
pub(super) struct Reference {
    target: Target,
    /// What the outer loop has come to, packets.
    chosen: f64,
    /// Samples in a row in which something waited.
    busy: u32,
}

impl Reference {
    pub(super) fn new(target: Target) -> Self {
        Self { target, chosen: AUTO[1], busy: 0 }
    }

    /// Packets, at a rate of `b` packets a second.
    pub(super) fn packets(&self, b: f64) -> f64 {
        match self.target {
            Target::Packets(packets) => packets.into(),
            Target::Time(span) => (b * span.as_secs_f64()).clamp(LEAST, MOST),
            Target::Auto => self.chosen,
        }
    }

    /// The outer loop: a settled sample of the queue while a window was full. An empty queue may have kept the radio waiting, and one
    /// packet more is asked for; when none was empty for a while, one less.
    pub(super) fn on_sample(&mut self, q: f64) {
        let [least, _, most] = AUTO;
        if q < 1.0 {
            (self.chosen, self.busy) = ((self.chosen + 1.0).min(most), 0);
            return;
        }
        self.busy += 1;
        if self.busy == PATIENCE {
            (self.chosen, self.busy) = ((self.chosen - 1.0).max(least), 0);
        }
    }
}
