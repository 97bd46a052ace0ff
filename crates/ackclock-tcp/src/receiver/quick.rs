//! Quick acknowledgements: segments acknowledged one by one in spite of delayed ACKs.
//!
//! As in Linux, the receiver acknowledges segments one by one in the following cases:
//!
//! - The first segments of a connection are acknowledged one by one.
//! - After an idle period longer than the peer's timeout, segments are acknowledged one by one, because the peer may
//!   restart with a small window.
//! - After repeated data, segments are acknowledged one by one, because the peer may be in recovery.
//! - Each segment that opens the advertised window is acknowledged at once.

use ackclock_core::{Span, Time};

use super::ack_delay::AckDelay;

/// Idle period that restarts quick acknowledgements before a round-trip time is known (RFC 6298 (2.1)).
const FIRST_SILENCE: Span = Span::from_secs(1);
/// Number of segments acknowledged one by one after a congestion mark, or after a retransmission by an ECN-capable
/// sender.
const CONGESTED: u32 = 2;
/// Smallest RTT variation that Linux uses in a timeout.
const LEAST_VARIATION: Span = Span::from_millis(200);

/// State of quick acknowledgements: how many segments are acknowledged one by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quick {
    /// Number of segments acknowledged one by one on each occasion; zero if ACKs are never delayed.
    most: u32,
    left: u32,
    /// Arrival time of the last data segment; [`Time::NEVER`] before the first.
    last: Time,
    silence: Span,
    /// Delay of acknowledgements that are not quick.
    ack_delay: AckDelay,
}

impl Quick {
    /// Starts with `most` quick acknowledgements. Later acknowledgements are delayed by at least `least`.
    pub(super) fn new(most: u32, least: Span) -> Self {
        Self { most, left: most, last: Time::NEVER, silence: FIRST_SILENCE, ack_delay: AckDelay::new(least) }
    }

    /// Derives the peer's first timeout from the handshake's round-trip time: `round_trip` plus the larger of twice
    /// `round_trip` and 200 ms.
    pub(super) fn on_handshake(&mut self, round_trip: Span) {
        self.silence = round_trip + (round_trip * 2).max(LEAST_VARIATION);
        self.ack_delay.on_handshake(round_trip);
    }

    /// Processes an arriving data segment.
    #[inline]
    pub(super) fn on_data(&mut self, now: Time) {
        // The idle period before the first data segment does not count.
        let last = std::mem::replace(&mut self.last, now);
        if last == Time::NEVER || now.since(last) > self.silence {
            self.left = self.most;
        } else {
            self.ack_delay.on_data(last, now, self.silence);
        }
    }

    /// Handles a congestion mark, or a segment that is not ECN-capable (a retransmission). After congestion or a
    /// retransmission, the peer may have a small window.
    pub(super) fn on_congestion(&mut self) {
        self.left = self.left.max(CONGESTED.min(self.most));
        self.ack_delay.reset();
    }

    /// Whether quick acknowledgements are configured, so that Linux's ACK rules apply.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.most > 0
    }

    /// Handles a segment of repeated data.
    pub(super) fn on_repeated(&mut self) {
        self.left = self.most;
        self.ack_delay.reset();
    }

    /// Handles a window that has opened; the peer must learn the new window at once. Linux sets the lowest bit of the
    /// count of quick acknowledgements. The current segment is therefore acknowledged at once, and an odd count stays
    /// unchanged.
    pub(super) fn on_growth(&mut self) {
        if self.most > 0 {
            self.left |= 1;
        }
    }

    /// Starts the delay of an acknowledgement at `now`. Returns the time at which the acknowledgement is due.
    #[inline]
    pub(super) fn wait(&mut self, now: Time) -> Time {
        self.ack_delay.wait(now)
    }

    /// Counts an acknowledgement that is sent.
    #[inline]
    pub(super) fn on_ack(&mut self, now: Time) {
        self.ack_delay.on_ack(now, self.silence);
        if self.left > 0 {
            self.left -= 1;
            if self.left == 0 {
                self.ack_delay.reset();
            }
        }
    }

    /// Whether the next acknowledgement must not be delayed.
    pub(super) fn is_on(&self) -> bool {
        self.left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn it_begins_again_after_a_silence_and_after_what_had_arrived() {
        let mut quick = Quick::new(2, Span::from_millis(40));
        // The timeout is 100 ms plus 200 ms of variation.
        quick.on_handshake(Span::from_millis(100));
        quick.on_data(ms(0));
        (0..2).for_each(|_| quick.on_ack(ms(0)));
        assert!(!quick.is_on());
        quick.on_data(ms(300));
        assert!(!quick.is_on());
        quick.on_data(ms(601));
        assert!(quick.is_on());
        (0..2).for_each(|_| quick.on_ack(ms(0)));
        quick.on_repeated();
        assert!(quick.is_on());
    }

    #[test]
    fn a_window_that_grows_is_told_at_once() {
        let mut quick = Quick::new(2, Span::from_millis(40));
        // The lowest bit of the count is set whenever a segment that opens the window is acknowledged.
        (0..4).for_each(|_| {
            quick.on_growth();
            quick.on_ack(ms(0));
        });
        (0..2).for_each(|_| quick.on_ack(ms(0)));
        assert!(!quick.is_on());
        quick.on_growth();
        assert!(quick.is_on());
    }

    #[test]
    fn an_acknowledgement_of_the_handshake_is_none_of_them() {
        let mut quick = Quick::new(2, Span::from_millis(40));
        quick.on_ack(ms(0));
        quick.on_data(ms(0));
        quick.on_ack(ms(0));
        assert!(quick.is_on());
    }

    #[test]
    fn congestion_asks_for_two_at_least() {
        let mut quick = Quick::new(16, Span::from_millis(40));
        quick.on_data(ms(0));
        (0..15).for_each(|_| quick.on_ack(ms(0)));
        quick.on_congestion();
        quick.on_ack(ms(0));
        assert!(quick.is_on());
        quick.on_ack(ms(0));
        assert!(!quick.is_on());
    }

    #[test]
    fn of_none_there_are_none() {
        let mut quick = Quick::new(0, Span::from_millis(40));
        quick.on_congestion();
        quick.on_data(ms(0));
        quick.on_data(ms(9000));
        quick.on_repeated();
        quick.on_growth();
        assert!(!quick.is_on());
    }
}
