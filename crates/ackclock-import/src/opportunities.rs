//! Medium that plays a recording of opportunities like mm-link.
//!
//! Behaviour of mm-link according to its source (`link_queue.cc`):
//! - At each opportunity the head of the queue may send up to 1504 bytes. A packet counts its IP size plus 4 bytes of
//!   TUN header. The next packet may use the rest of an opportunity; an unfinished packet continues at the next
//!   opportunity.
//! - The head packet stays in the queue until its first byte is sent, so the head packet counts against the buffer and
//!   for queue management. A packet whose transmission has started no longer counts.
//! - Unused opportunities are lost. A packet that arrives at an empty queue cannot use an opportunity at the same
//!   instant: mm-link updates its link before it accepts a packet.
//! - The recording restarts at its last opportunity, which is time zero of the next pass.

use ackclock_core::{Rate, Segment, Span, Time};

use super::Opportunities;
use ackclock_link::delay::Delays;
use ackclock_link::medium::{Fate, Found, Medium, Transmission};
use ackclock_link::pieces::NANOBITS_PER_BYTE;

/// Bytes per opportunity, and overhead per packet in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tariff {
    /// Number of bytes that one opportunity can send.
    pub(super) opportunity: u32,
    /// Overhead that a packet counts in addition to its size, bytes.
    pub(super) overhead: u32,
}

/// Medium that transmits at the opportunities of a recording.
#[derive(Debug)]
pub(super) struct OpportunityMedium {
    opportunities: Opportunities,
    tariff: Tariff,
    /// Number of packets sent so far.
    packets: u64,
    /// Total size of the packets sent so far, bytes.
    bytes: u64,
    delays: Delays,
    /// Start time of the current pass through the recording.
    begun: Time,
    /// Index of the next opportunity in the recording.
    index: usize,
    /// Unused bytes of the next opportunity.
    left: u32,
    /// Rate in each interval of 100 ms, for reports of the current rate.
    rates: Vec<Rate>,
}

const STRETCH: Span = Span::from_millis(100);

impl OpportunityMedium {
    pub(super) fn new(opportunities: Opportunities, tariff: Tariff, delays: Delays) -> Self {
        let rates = opportunities.rates(STRETCH).collect();
        let left = tariff.opportunity;
        Self { opportunities, tariff, packets: 0, bytes: 0, delays, begun: Time::ZERO, index: 0, left, rates }
    }

    /// Time of the next opportunity to send.
    fn instant(&self) -> Time {
        self.begun + Span::from_millis(self.opportunities.millis()[self.index].into())
    }

    /// Advances to the next opportunity.
    fn step(&mut self) {
        self.left = self.tariff.opportunity;
        self.index += 1;
        if self.index == self.opportunities.millis().len() {
            self.index = 0;
            self.begun += self.opportunities.length();
        }
    }

    /// Advances to the first opportunity after `now`.
    fn skip(&mut self, now: Time) {
        if self.instant() > now {
            return;
        }
        let length = self.opportunities.length();
        self.begun += length * (now.since(self.begun).as_nanos() / length.as_nanos());
        let offset = now.since(self.begun);
        // The last opportunity is at the end of the recording, and the offset lies before the end.
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
        let departs = self.instant();
        Transmission { departs, delay: self.delays.draw_at(departs), fate: Fate::Arrives }
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

    /// Capacity of all opportunities for packets of the mean size sent so far, or of 1500 bytes before the first
    /// packet.
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

    fn restart_work(&mut self, _: Time) {}

    fn foreseeable(&self) -> bool {
        false
    }
}
