//! Time for which Linux delays an acknowledgement that waits for a second segment.
//!
//! The ACK delay is 40 ms if segments arrive fast. If segments arrive slowly, the ACK delay is about twice their
//! interval, so that a slow link is also acknowledged every two segments. If no second segment arrives, the delay
//! doubles (ATO: tcp_event_data_recv, tcp_delack_timer_handler). The delay is at most the round trip of the handshake,
//! or 200 ms (tcp_send_delayed_ack). Times are in ticks of 250 Hz, and the timer expires at the tick after its due
//! time.

use ackclock_core::{Span, Time};

/// Length of one clock tick.
const TICK: Span = Span::from_millis(4);
/// TCP_DELACK_MAX: longest ACK delay, ticks.
const MOST: u16 = 50;

/// Observed interval between segments, in ticks. The struct is compact, because every segment accesses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckDelay {
    /// Time at which the delayed acknowledgement is due.
    due: Time,
    /// TCP_ATO_MIN: shortest ACK delay, ticks.
    least: u16,
    ato: u16,
    /// Round-trip time of the handshake, at most `MOST`, ticks.
    bound: u16,
}

/// Number of the clock tick that contains an instant.
fn tick(time: Time) -> u64 {
    time.as_nanos() / TICK.as_nanos()
}

fn ticks(span: Span) -> u16 {
    u16::try_from(span.as_nanos() / TICK.as_nanos()).unwrap_or(u16::MAX)
}

impl AckDelay {
    /// Creates the state before the first segment arrives. The ACK delay is at least `least`.
    pub(super) fn new(least: Span) -> Self {
        let least = ticks(least);
        Self { due: Time::NEVER, least, ato: least, bound: MOST }
    }

    /// Limits the ACK delay to the handshake's round-trip time `round_trip`.
    pub(super) fn on_handshake(&mut self, round_trip: Span) {
        self.bound = ticks(round_trip).min(MOST);
    }

    /// Updates the delay when an in-order segment arrives at `now`. The previous segment arrived at `last`; `rto` is
    /// the assumed timeout of the peer.
    #[inline]
    pub(super) fn on_data(&mut self, last: Time, now: Time, rto: Span) {
        if self.ato == self.least && now.since(last) < TICK * u64::from(self.least / 2) {
            // In the usual case the delay stays unchanged, however many ticks have passed.
            return;
        }
        let gap = tick(now) - tick(last);
        if gap <= u64::from(self.least / 2) {
            self.ato = self.ato / 2 + self.least / 2;
        } else if gap < u64::from(self.ato) {
            self.ato = (self.ato / 2 + gap as u16).min(ticks(rto));
        }
    }

    /// Resets the delay when a phase of acknowledging every segment starts or ends.
    pub(super) fn reset(&mut self) {
        self.ato = self.least;
    }

    /// Starts the delay of an acknowledgement at `now`. Returns the time at which the acknowledgement is due.
    #[inline]
    pub(super) fn wait(&mut self, now: Time) -> Time {
        let wait = if self.ato > self.least { self.ato.min(self.bound.max(self.least)) } else { self.ato };
        self.due = Time::ZERO + TICK * (tick(now) + u64::from(wait) + 1);
        self.due
    }

    /// Handles an acknowledgement sent at `now`. If the ACK timer had expired, the next delay is twice as long. `rto`
    /// is the assumed timeout of the peer.
    #[inline]
    pub(super) fn on_ack(&mut self, now: Time, rto: Span) {
        if now >= self.due {
            self.ato = self.ato.saturating_mul(2).min(ticks(rto));
        }
        self.due = Time::NEVER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Span = Span::from_secs(1);

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Delay in ms of an acknowledgement that starts to wait at time zero, minus one tick.
    fn wait(ack_delay: &mut AckDelay) -> u64 {
        ack_delay.wait(Time::ZERO).as_nanos() / 1_000_000 - 4
    }

    fn ack_delay() -> AckDelay {
        AckDelay::new(Span::from_millis(40))
    }

    #[test]
    fn it_is_about_twice_the_time_between_segments_that_come_slowly() {
        let mut ack_delay = ack_delay();
        let waits = [28, 28, 28, 20, 20, 5].map(|gap| {
            ack_delay.on_data(ms(0), ms(gap), RTO);
            wait(&mut ack_delay)
        });
        // The delays in ticks are 10 / 2 + 7, 12 / 2 + 7, 13 / 2 + 7. Intervals of five ticks or less halve the excess
        // over five.
        assert_eq!(waits, [48, 52, 52, 44, 40, 40]);
    }

    #[test]
    fn it_doubles_where_none_came_and_is_bounded_by_the_round_trip() {
        let mut ack_delay = ack_delay();
        ack_delay.on_handshake(Span::from_millis(150));
        ack_delay.on_data(ms(0), ms(60), RTO);
        assert_eq!(wait(&mut ack_delay), 40, "longer than it waits");
        ack_delay.on_ack(ms(44), RTO);
        ack_delay.on_data(ms(0), ms(60), RTO);
        assert_eq!(wait(&mut ack_delay), 100, "80 / 2 + 60");
        ack_delay.on_ack(ms(60), RTO);
        assert_eq!(wait(&mut ack_delay), 100, "a second segment came in time");
        ack_delay.on_ack(ms(104), RTO);
        assert_eq!(wait(&mut ack_delay), 148, "the round trip, not 200");
        ack_delay.reset();
        assert_eq!(wait(&mut ack_delay), 40);
    }

    #[test]
    fn its_timer_expires_at_a_tick() {
        let mut ack_delay = ack_delay();
        assert_eq!(ack_delay.wait(ms(3)), ms(44));
        assert_eq!(ack_delay.wait(ms(5)), ms(48));
    }
}
