//! Target of RNF for the radio's queue.

use ackclock_core::{ConfigError, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Target for the radio's queue, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub(crate) enum Target {
    /// The target is a fixed number of packets.
    Packets(u32),
    /// The target is the number of packets served in this time.
    Time(Span),
    /// The target is the smallest number of packets that keeps the radio busy.
    Auto,
}

/// Bounds of a target given as a time, packets. With a target of two packets, the radio never waits for data. A target
/// of six packets is the source's constant, and bounds the delay at high rates.
const LEAST: f64 = 2.0;
const MOST: f64 = 6.0;
/// Minimum, initial and maximum target of the outer loop, packets. The minimum target of one packet is the shortest
/// queue that a sample distinguishes from an empty queue. The initial target is the source's constant, and the maximum
/// target is twice that constant.
const AUTO: [f64; 3] = [1.0, 6.0, 12.0];
/// Number of consecutive samples with a queue after which the outer loop lowers its target by one packet. The inner
/// loop settles in two samples, so the effect of each step is visible before the next step.
const PATIENCE: u32 = 10;
/// Smallest number of packets that is too large as a target.
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
            _ => Err(format!("`{text}` is not a number of packets, \"6p\", a time, \"100ms\", or \"auto\"")),
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

/// Current target queue, and the outer loop that adapts the target.
#[derive(Debug)]
pub(super) struct Reference {
    target: Target,
    /// Target chosen by the outer loop, packets.
    chosen: f64,
    /// Number of consecutive samples with at least one packet in the queue.
    busy: u32,
}

impl Reference {
    pub(super) fn new(target: Target) -> Self {
        Self { target, chosen: AUTO[1], busy: 0 }
    }

    /// Target queue in packets, at a rate of `b` packets per second.
    pub(super) fn packets(&self, b: f64) -> f64 {
        match self.target {
            Target::Packets(packets) => packets.into(),
            Target::Time(span) => (b * span.as_secs_f64()).clamp(LEAST, MOST),
            Target::Auto => self.chosen,
        }
    }

    /// Outer loop: adapts the target after a settled sample of the queue while a window was full. An empty queue may
    /// have idled the radio, so the target rises by one packet. After `PATIENCE` samples with a queue, the target falls
    /// by one packet.
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
