//! The medium: how long transmissions take and packets travel.

use ackclock_core::{Rate, Segment, Span, Time};
use delegate::delegate;

use crate::Constant;
use crate::pieces::work_at;

/// How long transmissions take and packets travel.
///
/// The defaults are those of a medium that can always transmit, at a rate that never changes, with delays of which nothing is
/// known. A medium around another one must pass every method on.
pub trait Medium: Send {
    /// The first instant, `now` or later, at which the transmitter can take the next packet: `now` itself where a medium has
    /// no instants of its own. Asked when a packet finds the transmitter free, and when one has left and others wait; nothing
    /// else moves such instants.
    fn ready(&mut self, now: Time, _found: Found) -> Time {
        now
    }

    /// Transmits the next packet, which had arrived at `arrived` and is at the head of the queue since `start`. Called
    /// once a packet, in order, so a medium may draw by packet.
    fn transmit(&mut self, arrived: Time, start: Time, segment: &Segment) -> Transmission;

    /// The rate at `now`.
    fn rate(&self, now: Time) -> Rate;

    /// Until when the rate of `now` holds at least, [`Time::NEVER`] where it holds for ever. A rate that is drawn for each packet
    /// may also change when one is transmitted.
    fn rate_until(&self, _now: Time) -> Time {
        Time::NEVER
    }

    /// Nanobits (bit/s times nanoseconds) that could have left from `from`, at which it took its place, until `until`; `None`
    /// where nothing shows it: its rate is drawn for each packet, and none came. `from` is always the same, and `until`
    /// never decreases. A medium that takes another's place is asked at once, with `until` at `from`.
    fn work(&mut self, from: Time, until: Time) -> Option<u128> {
        Some(work_at(self.rate(from), until.since(from)))
    }

    /// Whether delays differ from packet to packet, so that order must be kept by the link.
    fn varies(&self) -> bool {
        true
    }

    /// No packet travels for less.
    fn least_delay(&self) -> Span {
        Span::ZERO
    }

    /// Whether a transmission can be worked out before it begins: none is lost, the transmitter waits for no instants of the
    /// medium, every transmission ends, and the rate is always the same.
    fn foreseeable(&self) -> bool {
        false
    }

    /// As links hold it.
    fn any(self) -> AnyMedium
    where
        Self: Sized + 'static,
    {
        AnyMedium::Other(Box::new(self))
    }
}

/// A medium as links hold it: the plainest in place, because it stands on most hops and a call through a pointer would be
/// much of its cost; every other behind a pointer.
pub enum AnyMedium {
    /// A fixed rate and a fixed delay.
    Constant(Constant),
    /// Any other.
    Other(Box<dyn Medium>),
}

impl AnyMedium {
    /// Behind a pointer, for another link.
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

/// How a packet finds the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Free, with nothing waiting.
    Idle,
    /// Busy until this instant, with this packet waiting.
    Busy,
}

/// What becomes of one packet on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// When its last byte has left.
    pub departs: Time,
    /// How long it then travels.
    pub delay: Span,
    /// Whether it arrives.
    pub fate: Fate,
}

/// Whether a transmitted packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It does.
    Arrives,
    /// The medium loses it on the way.
    Lost,
}
