//! The [`Medium`] trait: transmission times, propagation delays and losses of packets.

use ackclock_core::{Rate, Segment, Span, Streams, Time};
use delegate::delegate;

use crate::{Constant, Files};

/// Determines the transmission time and propagation delay of each packet, and whether the packet is lost.
///
/// Only [`any`](Self::any) has a default implementation, so that a medium that wraps another medium cannot forget to
/// forward a method.
pub trait Medium: Send {
    /// First time, `now` or later, at which the transmitter can take the next packet; `now` unless the medium has fixed
    /// transmission times. The method is called when a packet finds the transmitter free, and when a packet has left
    /// and another packet is queued; no other call advances the transmission times.
    fn ready(&mut self, now: Time, found: Found) -> Time;

    /// Transmits the next packet, which arrived at `arrived` and has been at the head of the queue since `start`. The
    /// method is called once per packet, in order, so a medium may draw random numbers for each packet.
    fn transmit(&mut self, arrived: Time, start: Time, segment: &Segment) -> Transmission;

    /// Rate of the medium at `now`.
    fn rate(&self, now: Time) -> Rate;

    /// Time until which the rate at `now` holds at least; [`Time::NEVER`] if the rate never changes. A rate that is
    /// drawn for each packet may also change when a packet is transmitted.
    fn rate_until(&self, now: Time) -> Time;

    /// Number of nanobits (bit/s times nanoseconds) that a saturated link could have sent from `from`, when this medium
    /// was installed, until `until`. `None` if the number is unknown, because the rate is drawn for each packet and no
    /// packet was sent. `from` is always the same and `until` never decreases; in the first call `until` equals `from`.
    fn work(&mut self, from: Time, until: Time) -> Option<u128>;

    /// Lets [`work`](Self::work) begin at `now`, the new `from`. Only called while the number is unknown.
    fn restart_work(&mut self, now: Time);

    /// Whether delays differ between packets, so that the link must preserve order.
    fn varies(&self) -> bool;

    /// Lower bound of the propagation delay.
    fn least_delay(&self) -> Span;

    /// Whether transmissions can be calculated in advance: the rate is constant, the transmitter is always ready, every
    /// transmission ends, and no packet is lost.
    fn foreseeable(&self) -> bool;

    /// Returns this medium in the form that links store.
    fn any(self) -> AnyMedium
    where
        Self: Sized + 'static,
    {
        AnyMedium::Other(Box::new(self))
    }
}

/// A medium as links store it. A constant medium is stored inline, because most hops have one and a call through a
/// pointer would be a large part of its cost. Any other medium is behind a pointer.
pub enum AnyMedium {
    /// A medium of fixed rate and fixed delay.
    Constant(Constant),
    /// A medium of any other kind.
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
            fn restart_work(&mut self, now: Time);
            fn varies(&self) -> bool;
            fn least_delay(&self) -> Span;
            fn foreseeable(&self) -> bool;
        }
    }

    fn any(self) -> Self {
        self
    }
}

/// State of the transmitter when a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The transmitter is free, and no packet is queued.
    Idle,
    /// A transmission has just ended, and another packet is queued.
    Busy,
}

/// Result of the transmission of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Time at which the last byte of the packet leaves.
    pub departs: Time,
    /// Propagation delay of the packet after its departure.
    pub delay: Span,
    /// Whether the packet arrives.
    pub fate: Fate,
}

/// Whether a transmitted packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet arrives.
    Arrives,
    /// The medium loses the packet.
    Lost,
}

/// Inputs from which a medium is built, in addition to the table of its link.
#[derive(Clone, Copy)]
pub struct MediumContext<'a> {
    /// Random streams of the run.
    pub streams: &'a Streams,
    /// Prefix of the names of the medium's random streams: with `down` the medium draws from `down/rate` and so on.
    pub name: &'a str,
    /// Reads the files that the table names.
    pub files: &'a dyn Files,
}
