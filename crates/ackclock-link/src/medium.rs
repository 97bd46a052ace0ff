//! The [`Medium`] trait: transmission times, propagation delays and losses of packets.

use ackclock_core::{Rate, Segment, Span, Time};
use delegate::delegate;

use crate::Constant;
use crate::pieces::work_at;

/// Determines how long each packet's transmission takes, its propagation delay, and whether it is lost.
///
/// The defaults fit a medium that can always transmit, at constant rate and with unknown delays. A medium that wraps
/// another one must forward every method.
pub trait Medium: Send {
    /// First instant, `now` or later, at which the transmitter can take the next packet; `now` unless the medium has
    /// fixed transmission instants. Called when a packet finds the transmitter free, and when a packet has left and
    /// others wait; nothing else advances such instants.
    fn ready(&mut self, now: Time, _found: Found) -> Time {
        now
    }

    /// Transmits the next packet, which arrived at `arrived` and has been at the head of the queue since `start`.
    /// Called once per packet, in order, so a medium may draw per packet.
    fn transmit(&mut self, arrived: Time, start: Time, segment: &Segment) -> Transmission;

    /// Rate at `now`.
    fn rate(&self, now: Time) -> Rate;

    /// Until when at least the rate of `now` holds; [`Time::NEVER`] if forever. A rate drawn per packet may also
    /// change when a packet is transmitted.
    fn rate_until(&self, _now: Time) -> Time {
        Time::NEVER
    }

    /// Nanobits (bit/s times nanoseconds) that a saturated link could have sent from `from`, when this medium was
    /// installed, until `until`. `None` if unknown: the rate is drawn per packet, and there was no packet. `from` is
    /// always the same and `until` never decreases; the first call has `until` equal to `from`.
    fn work(&mut self, from: Time, until: Time) -> Option<u128> {
        Some(work_at(self.rate(from), until.since(from)))
    }

    /// Whether delays differ between packets, so that the link must preserve order.
    fn varies(&self) -> bool {
        true
    }

    /// Lower bound of the propagation delay.
    fn least_delay(&self) -> Span {
        Span::ZERO
    }

    /// Whether transmissions can be calculated in advance: the rate is constant, the transmitter is always ready,
    /// every transmission ends, and nothing is lost.
    fn foreseeable(&self) -> bool {
        false
    }

    /// This medium as links store it.
    fn any(self) -> AnyMedium
    where
        Self: Sized + 'static,
    {
        AnyMedium::Other(Box::new(self))
    }
}

/// A medium as links store it. The constant one is stored inline, as most hops have it and a call through a pointer
/// would be a large part of its cost. Others are behind a pointer.
pub enum AnyMedium {
    /// Fixed rate and fixed delay.
    Constant(Constant),
    /// Any other medium.
    Other(Box<dyn Medium>),
}

impl AnyMedium {
    /// Moves the medium behind a pointer, for another link.
    pub fn boxed(self) -> Box<dyn Medium> {
        match self {
            Self::Constant(medium) => Box::new(medium),
            Self::Other(medium) => medium,
        }
    }
}

impl Medium for AnyMedium {
    delegate! {
        to match self {
            Self::Constant(medium) => medium,
            Self::Other(medium) => medium,
        } {
            fn ready(&mut self, now: Time, found: Found) -> Time;
            fn transmit(&mut self, arrived: Time, start: Time, segment: &Segment) -> Transmission;
            fn rate(&self, now: Time) -> Rate;
            fn rate_until(&self, now: Time) -> Time;
            fn work(&mut self, from: Time, until: Time) -> Option<u128>;
            fn varies(&self) -> bool;
            fn least_delay(&self) -> Span;
            fn foreseeable(&self) -> bool;
        }
    }

    fn any(self) -> Self {
        self
    }
}

/// State in which a packet finds the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Free, with no packet waiting.
    Idle,
    /// Busy until this instant, with this packet waiting.
    Busy,
}

/// Outcome of one packet's transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// When its last byte leaves.
    pub departs: Time,
    /// Propagation delay after departure.
    pub delay: Span,
    /// Whether it arrives.
    pub fate: Fate,
}

/// Whether a transmitted packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// The medium loses it.
    Lost,
}
