//! The medium of a recording of opportunities, with the semantics of mm-link.
//!
//! What mm-link does, as its source (`link_queue.cc`) shows:
//! - At each opportunity the head of the queue gets up to 1504 bytes. A packet counts its IP size and 4 bytes of TUN
//!   header. What one packet leaves of an opportunity the next may use; a packet that is not done goes on with the next.
//! - The head stays in the queue until its first byte goes, so it counts against the buffer and its waiting counts for a
//!   queue management; what is begun no longer counts.
//! - What of an opportunity finds no packet is lost, as are those that come at the very instant of an arrival into an empty
//!   queue: mm-link brings its link up to date before it takes a packet in.
//! - After the last opportunity the recording begins again, its zero at that instant.

use ackclock_core::{Rate, Segment, Span, Time};

use super::Opportunities;
use crate::delay::Delays;
use crate::medium::{Fate, Found, Medium, Transmission};
use crate::pieces::NANOBITS_PER_BYTE;

/// How much an opportunity carries and how much a packet counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tariff {
    /// Bytes of an opportunity.
    pub(super) opportunity: u32,
    /// Bytes that a packet counts beside those on the wire.
    pub(super) overhead: u32,
}

/// A link that transmits at the opportunities of a recording.
#[derive(Debug)]
pub(super) struct OpportunityMedium {
    opportunities: Opportunities,
    tariff: Tariff,
    /// Packets that were sent, and their bytes on the wire.
    packets: u64,
    bytes: u64,
    delays: Delays,
    /// When the present playing began.
    begun: Time,
    /// The opportunity that is used next, and what is left of it.
    index: usize,
    left: u32,
    /// Rate in each stretch of 100 ms, for who asks how fast the link is now.
    rates: Vec<Rate>,
}

const STRETCH: Span = Span::from_millis(100);

impl OpportunityMedium {
    pub(super) fn new(opportunities: Opportunities, tariff: Tariff, delays: Delays) -> Self {
        let rates = opportunities.rates(STRETCH).collect();
        let left = tariff.opportunity;
        Self { opportunities, tariff, packets: 0, bytes: 0, delays, begun: Time::ZERO, index: 0, left, rates }
    }

    /// When the present opportunity comes.
    fn instant(&self) -> Time {
        self.begun + Span::from_millis(self.opportunities.millis()[self.index].into())
    }

    /// Goes on to the next opportunity.
    fn step(&mut self) {
        self.left = self.tariff.opportunity;
        self.index += 1;
        if self.index == self.opportunities.millis().len() {
            self.index = 0;
            self.begun += self.opportunities.length();
        }
    }

    /// Goes on to the first opportunity after `now`.
    fn skip(&mut self, now: Time) {
        if self.instant() > now {
            return;
        }
        let length = self.opportunities.length();
        self.begun += length * (now.since(self.begun).as_nanos() / length.as_nanos());
        let offset = now.since(self.begun);
        // The last opportunity is at the length, and the offset is below that.
        self.index = self.opportunities.until(offset);
        self.left = self.tariff.opportunity;
    }
}

impl Medium for OpportunityMedium {
    fn ready(&mut self, now: Time, found: Found) -> Time {
        match found {
            Found::Idle => self.skip(now),
            Found::Busy if self.left == 0 => self.step(),
            Found::Busy => {}
        }
        self.instant()
    }

    fn transmit(&mut self, _: Time, _: Time, segment: &Segment) -> Transmission {
        self.packets += 1;
        self.bytes += u64::from(segment.wire_bytes());
        let mut need = segment.wire_bytes() + self.tariff.overhead;
        while need > self.left {
            need -= self.left;
            self.step();
        }
        self.left -= need;
        Transmission { departs: self.instant(), delay: self.delays.draw(), fate: Fate::Arrives }
    }

    fn rate(&self, now: Time) -> Rate {
        let offset = now.as_nanos() % self.opportunities.length().as_nanos();
        self.rates[(offset / STRETCH.as_nanos()) as usize]
    }

    fn rate_until(&self, now: Time) -> Time {
        let length = self.opportunities.length().as_nanos();
        let offset = now.as_nanos() % length;
        let next = (offset / STRETCH.as_nanos() + 1) * STRETCH.as_nanos();
        now + Span::from_nanos(next.min(length) - offset)
    }

    /// What of all opportunities is left for packets like those that were sent; for those of 1500 bytes, where none was.
    fn work(&mut self, from: Time, until: Time) -> Option<u128> {
        let (packets, bytes) = match self.packets {
            0 => (1, Opportunities::BYTES),
            packets => (packets, self.bytes),
        };
        let counted = bytes + packets * u64::from(self.tariff.overhead);
        let carried = self.opportunities.by(until) - self.opportunities.by(from);
        let all = u128::from(carried) * u128::from(u64::from(self.tariff.opportunity) * NANOBITS_PER_BYTE);
        Some((all as f64 * (bytes as f64 / counted as f64)) as u128)
    }

    fn varies(&self) -> bool {
        self.delays.vary()
    }

    fn least_delay(&self) -> Span {
        self.delays.least()
    }
}
