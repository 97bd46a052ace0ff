//! Round-trip times through the observed queue, from TCP timestamps (RFC 7323 section 3). A sample is the time from a
//! segment that passes in one direction until the first segment with its TSecr, or a later TSecr, passes in the
//! opposite direction.

use std::collections::VecDeque;

use ackclock_core::{Segment, Span, Time, Timestamps};

/// Timestamp values (TSvals) that one end of a flow has sent past the box.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    /// Latest TSval that passed the box.
    latest: Option<u32>,
    /// TSvals that were not echoed yet, each with the time at which it first passed.
    asked: VecDeque<(u32, Time)>,
    /// Time at which an echo last passed.
    answered: Option<Time>,
}

/// Minimum time between two recorded TSvals, like the pings of six pingers that each ping every 300 ms.
const EVERY: Span = Span::from_millis(50);
/// Maximum number of recorded TSvals; older TSvals are dropped.
const MOST: usize = 4096;

impl RoundTrips {
    /// Handles a segment whose TSval the receiving end will echo.
    pub(super) fn on_asked(&mut self, now: Time, segment: &Segment) {
        let Some(timestamps) = segment.timestamps() else { return };
        let is_new = self.latest.is_none_or(|latest| Timestamps::is_later(timestamps.value, latest));
        if !is_new {
            return;
        }
        self.latest = Some(timestamps.value);
        if self.asked.back().is_none_or(|(_, at)| now.since(*at) >= EVERY) {
            if self.asked.len() == MOST {
                self.asked.pop_front();
            }
            self.asked.push_back((timestamps.value, now));
        }
    }

    /// Handles a segment that may echo a recorded TSval. Returns the round-trip time of the latest TSval that this
    /// segment is the first to echo. Returns `None` if no echo passed for most of the round trip, because the sender of
    /// the echo had paused.
    pub(super) fn on_answer(&mut self, now: Time, segment: &Segment) -> Option<Span> {
        let echo = segment.timestamps()?.echo;
        let paused = self.answered.replace(now).map_or(Span::ZERO, |last| now.since(last));
        let mut asked = None;
        while let Some((value, at)) =
            self.asked.front().filter(|(value, _)| !Timestamps::is_later(*value, echo))
        {
            let _ = value;
            asked = Some(*at);
            self.asked.pop_front();
        }
        asked.map(|at| now.since(at)).filter(|round_trip| paused <= *round_trip / 2)
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{FlowId, Seq};

    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn stamped(value: u32, echo: u32) -> Segment {
        let mut segment = Segment::data(FlowId(0), Seq(0), 1000, 52);
        segment.set_timestamps(Timestamps { value, echo });
        segment
    }

    #[test]
    fn the_first_echo_of_a_value_or_a_later_one_ends_its_round_trip() {
        let mut trips = RoundTrips::default();
        [(0, u32::MAX), (20, 5), (60, 9)].into_iter().for_each(|(millis, value)| {
            trips.on_asked(at(millis), &stamped(value, 0));
        });
        let mut answer = |millis, echo| trips.on_answer(at(millis), &stamped(0, echo));
        // The TSval at 20 ms came too soon after that at 0 ms, the last before the clock wrapped.
        assert_eq!(answer(100, 5), Some(Span::from_millis(100)));
        assert_eq!(answer(110, 5), None);
        assert_eq!(answer(130, 9), Some(Span::from_millis(70)));
    }

    #[test]
    fn a_source_that_had_paused_tells_nothing() {
        let mut trips = RoundTrips::default();
        let _ = trips.on_answer(at(0), &stamped(0, 0));
        trips.on_asked(at(0), &stamped(1, 0));
        assert_eq!(trips.on_answer(at(3000), &stamped(0, 1)), None);
        trips.on_asked(at(3010), &stamped(2, 0));
        assert_eq!(trips.on_answer(at(3020), &stamped(0, 1)), None);
        assert_eq!(trips.on_answer(at(3050), &stamped(0, 2)), None, "30 ms of 40 without an echo");
    }

    #[test]
    fn nothing_grows_without_bound() {
        let mut trips = RoundTrips::default();
        (0..70_000u32).for_each(|value| trips.on_asked(at(u64::from(value) * 60), &stamped(value, 0)));
        assert!(trips.asked.len() <= MOST);
    }
}
