//! Measures the response time of the sender to a released ACK, including the wired path in both directions.

use ackclock_core::{Segment, Seq, Span, Time};

/// Measures the response time of the sender, one ACK at a time, by TCP timestamps (RFC 7323). Data that echoes the
/// timestamp of an ACK was sent after that ACK arrived at the sender. Sequence numbers are not enough, because they do
/// not distinguish unsent data from data on the wired path.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Newest TSval of the mobile among the released ACKs. TSval wraps like a sequence number.
    newest: Option<Seq>,
    /// TSval of the timed ACK, and the time at which this ACK was released.
    timed: Option<(Seq, Time)>,
    longest: Option<Span>,
}

impl Answer {
    /// Starts timing an ACK that is released to the sender.
    pub(super) fn on_released(&mut self, now: Time, ack: &Segment) {
        let Some(clock) = ack.timestamps().map(|timestamps| Seq(timestamps.value)) else { return };
        // If several ACKs have equal TSval, an echo does not identify one of them. Among ACKs with equal TSval, the
        // first is timed.
        if self.newest.is_none_or(|newest| clock.after(newest)) {
            self.newest = Some(clock);
            self.timed.get_or_insert((clock, now));
        }
    }

    /// Takes a sample of the response time if data from the sender echoes the timed ACK.
    pub(super) fn on_data(&mut self, now: Time, segment: &Segment) {
        const FORGOTTEN: u64 = 8;
        let (Some((clock, released)), Some(timestamps)) = (self.timed, segment.timestamps()) else { return };
        if Seq(timestamps.echo).before(clock) {
            return;
        }
        self.timed = None;
        let took = now.since(released);
        // The estimate rises at once and falls by an eighth of the difference, because it is an upper bound and not a
        // mean.
        let shrunk = self
            .longest
            .map_or(took, |longest| longest.saturating_sub(longest.saturating_sub(took) / FORGOTTEN));
        self.longest = Some(shrunk.max(took));
    }

    /// Longest recent response time of the sender; `None` if the flow has no timestamps.
    pub(super) fn longest(&self) -> Option<Span> {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{FlowId, Timestamps};

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn ack(clock: u32) -> Segment {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(0), 52);
        ack.set_timestamps(Timestamps { value: clock, echo: 0 });
        ack
    }

    fn data(echo: u32) -> Segment {
        let mut data = Segment::data(FlowId(0), Seq(0), 1000, 52);
        data.set_timestamps(Timestamps { value: 0, echo });
        data
    }

    #[test]
    fn data_that_were_on_the_way_before_are_no_answer() {
        let mut answer = Answer::default();
        answer.on_released(at(0), &ack(u32::MAX));
        answer.on_data(at(10), &data(u32::MAX - 1));
        assert_eq!(answer.longest(), None);
        // Data echoes the timestamp 0, because the timestamp clock has wrapped.
        answer.on_data(at(40), &data(0));
        assert_eq!(answer.longest(), Some(Span::from_millis(40)));
    }

    #[test]
    fn the_longest_is_taken_at_once_and_forgotten_by_eighths() {
        let mut answer = Answer::default();
        for (clock, released, came) in [(1, 0, 100), (2, 200, 380), (3, 400, 500)] {
            answer.on_released(at(released), &ack(clock));
            answer.on_data(at(came), &data(clock));
        }
        // The estimate falls from 180 ms by an eighth of the difference: 180 - (180 - 100) / 8.
        assert_eq!(answer.longest(), Some(Span::from_millis(170)));
    }

    #[test]
    fn the_first_of_several_with_the_same_clock_is_timed_and_without_a_clock_none() {
        let mut answer = Answer::default();
        answer.on_released(at(0), &ack(5));
        answer.on_data(at(50), &data(5));
        answer.on_released(at(60), &ack(5));
        answer.on_data(at(61), &data(5));
        answer.on_released(at(70), &Segment::pure_ack(FlowId(0), Seq(0), 40));
        answer.on_data(at(100), &Segment::data(FlowId(0), Seq(0), 1000, 40));
        assert_eq!(answer.longest(), Some(Span::from_millis(50)));
    }
}
