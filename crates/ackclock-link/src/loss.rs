//! # Random loss
//!
//! ## Source
//! CR04 section on loss and latency: packets lost on the radio hop, independently of each other.
//!
//! ## What it does
//! Wraps any medium: each packet is transmitted as ever and then lost with a fixed probability. The draws come from the
//! stream `NAME/loss`, one a packet in the order of transmission.
//!
//! ## Differences from the source
//! None.
//!
//! ## Validation
//! The share lost is binomial (`tests/theory.rs`); lost packets count in the conservation law.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use ackclock_core::{Rate, Segment, Span, Stream, Time};
use delegate::delegate;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::medium::{Fate, Found, Medium, Transmission};
use crate::{AnyLink, LinkContext, SerialLink};

/// The probability with which a packet is lost, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(into = "f64")]
pub struct Loss(f64);

impl Loss {
    const HELP: &'static str = "0 to 1 or \"0%\" to \"100%\"";
    /// Every packet arrives.
    pub const NONE: Self = Self(0.0);

    /// The probability.
    pub const fn probability(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Loss {
    type Error = String;
    fn try_from(probability: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&probability) {
            Ok(Self(probability))
        } else {
            Err(format!("{probability} is not a probability, {}", Self::HELP))
        }
    }
}

/// `0.01` or `1%`.
impl FromStr for Loss {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        let probability = number.trim().parse::<f64>().ok().map(|number| number / unit);
        let loss = probability.and_then(|probability| Self::try_from(probability).ok());
        loss.ok_or_else(|| format!("`{text}` is not a probability, {}", Self::HELP))
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Loss;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a probability, {}", Loss::HELP)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Loss, E> {
                Loss::try_from(number).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Loss, E> {
                self.visit_f64(number as f64)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Loss, E> {
                self.visit_f64(number as f64)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Loss, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl From<Loss> for f64 {
    fn from(loss: Loss) -> Self {
        loss.0
    }
}

impl JsonSchema for Loss {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"], "minimum": 0, "maximum": 1, "description": "share of packets lost at random, 0 to 1 or \"0%\" to \"100%\"" })
    }
}

/// A medium that loses packets at random.
#[derive(Debug)]
pub struct Lossy<M> {
    medium: M,
    loss: Loss,
    stream: Stream,
}

impl<M> Lossy<M> {
    /// Wraps `medium`; chance comes from `stream`.
    pub const fn new(medium: M, loss: Loss, stream: Stream) -> Self {
        Self { medium, loss, stream }
    }
}

impl<M: Medium> Medium for Lossy<M> {
    fn transmit(&mut self, arrived: Time, start: Time, segment: &Segment) -> Transmission {
        let transmission = self.medium.transmit(arrived, start, segment);
        // The number is drawn for every packet, so that the luck of the next does not hang on the fate of this one.
        let lost = self.stream.chance(self.loss.0);
        Transmission { fate: if lost { Fate::Lost } else { transmission.fate }, ..transmission }
    }

    fn foreseeable(&self) -> bool {
        false
    }

    delegate! {
        to self.medium {
            fn ready(&mut self, now: Time, found: Found) -> Time;
            fn rate(&self, now: Time) -> Rate;
            fn work(&mut self, from: Time, until: Time) -> Option<u128>;
            fn varies(&self) -> bool;
            fn least_delay(&self) -> Span;
        }
    }
}

/// A link of this medium, with the loss that every link table can ask for.
pub(crate) fn assemble<M: Medium + 'static>(medium: M, loss: Loss, context: LinkContext<'_>) -> AnyLink {
    let LinkContext { queue, meaning, streams, name, .. } = context;
    let queue = queue.build();
    if loss == Loss::NONE {
        return SerialLink::new(medium, queue, meaning).into();
    }
    let stream = streams.stream(&format!("{name}/loss"));
    SerialLink::new(Lossy::new(medium, loss, stream), queue, meaning).into()
}
