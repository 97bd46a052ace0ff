//! Quick acknowledgements: segments acknowledged one by one in spite of delayed ACKs.
//!
//! As in Linux, segments are acknowledged one by one:
//!
//! - at the start of a connection;
//! - after an idle period longer than the peer's timeout, as the peer may restart with a small window;
//! - after repeated data, as the peer may be in recovery;
//! - for each segment that opens the window.

use ackclock_core::{Span, Time};

use super::ack_delay::AckDelay;

/// Idle period before the handshake was timed (RFC 6298 (2.1)).
const FIRST_SILENCE: Span = Span::from_secs(1);
/// Segments acknowledged one by one after a congestion mark, or after a retransmission by an ECN-capable sender.
const CONGESTED: u32 = 2;
/// Smallest variation in a timeout of Linux.
const LEAST_VARIATION: Span = Span::from_millis(200);

/// Segments to be acknowledged one by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quick {
    /// Number on each occasion; zero if acknowledgements are not delayed.
    most: u32,
    left: u32,
    /// Arrival of the last data; [`Time::NEVER`] before.
    last: Time,
    silence: Span,
    /// Delay of the other acknowledgements.
    ack_delay: AckDelay,
}

impl Quick {
    /// Starts with `most` segments; later acknowledgements are delayed by at least `least`.
    pub(super) fn new(most: u32, least: Span) -> Self {
        Self { most, left: most, last: Time::NEVER, silence: FIRST_SILENCE, ack_delay: AckDelay::new(least) }
    }

    /// The handshake took `round_trip`: the first timeout after it is three times as long, or 200 ms longer.
    pub(super) fn on_handshake(&mut self, round_trip: Span) {
        self.silence = round_trip + (round_trip * 2).max(LEAST_VARIATION);
        self.ack_delay.on_handshake(round_trip);
    }

    /// A data segment arrives.
    #[inline]
    pub(super) fn on_data(&mut self, now: Time) {
        // The time of the handshake does not count.
        let last = std::mem::replace(&mut self.last, now);
        if last == Time::NEVER || now.since(last) > self.silence {
            self.left = self.most;
        } else {
            self.ack_delay.on_data(last, now, self.silence);
        }
    }

    /// A congestion mark, or a segment that is not ECN-capable (a retransmission), arrived: the peer may have a small
    /// window.
    pub(super) fn on_congestion(&mut self) {
        self.left = self.left.max(CONGESTED.min(self.most));
        self.ack_delay.reset();
    }

    /// Whether quick acknowledgements are configured, which implies Linux's rules.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.most > 0
    }

    /// A segment of repeated data arrived.
    pub(super) fn on_repeated(&mut self) {
        self.left = self.most;
        self.ack_delay.reset();
    }

    /// The window has opened, and the peer must learn of it at once. Linux sets the lowest bit of the count: this
    /// segment is acknowledged, and an odd count is not raised.
    pub(super) fn on_growth(&mut self) {
        if self.most > 0 {
            self.left |= 1;
        }
    }

    /// An acknowledgement begins to wait at `now`; returns until when.
    #[inline]
    pub(super) fn wait(&mut self, now: Time) -> Time {
        self.ack_delay.wait(now)
    }

    /// An acknowledgement is sent.
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
        // 100 ms and 200 ms of variation
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
        // The lowest bit is set whenever a segment that opens the window is acknowledged.
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
