//! When segments are acknowledged one by one, though acknowledgements are delayed otherwise.
//!
//! As Linux does: at the beginning of a connection, after a silence longer than the peer's timeout would be, because the
//! peer may begin anew with a small window, after data that had arrived before, because the peer may be repairing, and for
//! each segment that lets the window grow.

use ackclock_core::{Span, Time};

use super::patience::Patience;

/// Before the handshake was timed (RFC 6298 (2.1)).
const FIRST_SILENCE: Span = Span::from_secs(1);
/// Segments acknowledged one by one after a mark, or after a retransmission of a sender whose segments are marked.
const CONGESTED: u32 = 2;
/// Least variation of a timeout in Linux.
const LEAST_VARIATION: Span = Span::from_millis(200);

/// The segments to be acknowledged one by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quick {
    /// How many begin with each occasion; none where acknowledgements are not delayed.
    most: u32,
    left: u32,
    /// When data came last; [`Time::NEVER`] before.
    last: Time,
    silence: Span,
    /// How long the others wait.
    patience: Patience,
}

impl Quick {
    /// `most` segments at the beginning; the others wait for `least` at least.
    pub(super) fn new(most: u32, least: Span) -> Self {
        Self { most, left: most, last: Time::NEVER, silence: FIRST_SILENCE, patience: Patience::new(least) }
    }

    /// The handshake took `round_trip`: a first timeout after it lasts three times as long, or 200 ms longer.
    pub(super) fn on_handshake(&mut self, round_trip: Span) {
        self.silence = round_trip + (round_trip * 2).max(LEAST_VARIATION);
        self.patience.on_handshake(round_trip);
    }

    /// Data comes.
    #[inline]
    pub(super) fn on_data(&mut self, now: Time) {
        // What the handshake took does not count.
        let last = std::mem::replace(&mut self.last, now);
        if last == Time::NEVER || now.since(last) > self.silence {
            self.left = self.most;
        } else {
            self.patience.on_data(last, now, self.silence);
        }
    }

    /// The path marked a segment, or one came that it may not mark, a retransmission: the peer may have a small window.
    pub(super) fn on_congestion(&mut self) {
        self.left = self.left.max(CONGESTED.min(self.most));
        self.patience.reset();
    }

    /// Whether there are any at all, which is whether acknowledgements are those of Linux.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.most > 0
    }

    /// It had all arrived before.
    pub(super) fn on_repeated(&mut self) {
        self.left = self.most;
        self.patience.reset();
    }

    /// The window has grown, which the peer is to know at once. Linux sets the lowest bit of the count: the segment is
    /// acknowledged, and an odd number of others is not made more.
    pub(super) fn on_growth(&mut self) {
        if self.most > 0 {
            self.left |= 1;
        }
    }

    /// One begins to wait at `now`; until when.
    #[inline]
    pub(super) fn wait(&mut self, now: Time) -> Time {
        self.patience.wait(now)
    }

    /// An acknowledgement is sent.
    #[inline]
    pub(super) fn on_ack(&mut self, now: Time) {
        self.patience.on_ack(now, self.silence);
        if self.left > 0 {
            self.left -= 1;
            if self.left == 0 {
                self.patience.reset();
            }
        }
    }

    /// Whether the next one is not to be delayed.
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
        // The lowest bit is on whenever a segment that lets it grow is acknowledged.
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
