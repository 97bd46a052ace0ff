//! Measures the rate at which data leaves an observed queue, and the time the queue was empty.

use std::collections::VecDeque;

use ackclock_core::{Span, Time};

/// Bytes that left the queue and its idle time, over the last second.
#[derive(Debug, Default)]
pub(super) struct Meter {
    served: u64,
    idle: Span,
    past: VecDeque<Mark>,
}

/// The sums at an instant.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Time,
    served: u64,
    idle: Span,
}

/// Interval between marks.
const STEP: Span = Span::from_millis(10);
/// How far back marks reach.
const REACH: Span = Span::from_secs(1);
/// Windows for the largest rate: fades last from 0.1 s to 1 s.
const WINDOWS: [Span; 3] = [Span::from_millis(100), Span::from_millis(500), REACH];
/// Minimum share of a window that counts as busy.
const LEAST_BUSY: f64 = 0.2;

/// Which time a rate is averaged over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Over {
    /// All time.
    All,
    /// Time in which the queue was not empty.
    Busy,
}

impl Meter {
    /// `bytes` have left the queue, which was empty for `idle` since the last ones.
    pub(super) fn on_left(&mut self, now: Time, bytes: u64, idle: Span) {
        self.served += bytes;
        self.idle += idle;
        if self.past.back().is_none_or(|mark| now.since(mark.at) >= STEP) {
            self.past.push_back(Mark { at: now, served: self.served, idle: self.idle });
        }
        while self.past.get(1).is_some_and(|mark| now.since(mark.at) > REACH) {
            self.past.pop_front();
        }
    }

    /// Largest busy-time rate over the windows, bytes per second.
    pub(super) fn largest_rate(&self, now: Time) -> f64 {
        WINDOWS.into_iter().map(|window| self.rate(now, window, Over::Busy)).fold(0.0, f64::max)
    }

    /// Mean rate over `window`, limited to 0.1 s to 1 s, bytes per second.
    pub(super) fn mean_rate(&self, now: Time, window: Span) -> f64 {
        self.rate(now, window.clamp(WINDOWS[0], REACH), Over::All)
    }

    fn rate(&self, now: Time, window: Span, over: Over) -> f64 {
        let at = self.past.partition_point(|mark| now.since(mark.at) > window).saturating_sub(1);
        let Some(mark) = self.past.get(at) else { return 0.0 };
        let length = now.since(mark.at).max(window / 2).as_secs_f64();
        let time = match over {
            Over::All => length,
            Over::Busy => {
                (length - self.idle.saturating_sub(mark.idle).as_secs_f64()).max(LEAST_BUSY * length)
            }
        };
        (self.served - mark.served) as f64 / time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_steady_stream_has_the_rate_of_its_bytes() {
        let mut meter = Meter::default();
        // 1000 bytes each 10 ms: 100 kB/s.
        (0..=200).for_each(|step| meter.on_left(at(step * 10), 1000, Span::ZERO));
        assert_eq!(meter.mean_rate(at(2000), Span::from_millis(500)), 100_000.0);
        assert_eq!(meter.largest_rate(at(2000)), 100_000.0);
    }

    #[test]
    fn time_in_which_nothing_waited_says_nothing_of_the_rate_of_a_busy_queue() {
        let mut meter = Meter::default();
        // Empty half of the time: 50 kB/s on average, 100 kB/s while busy.
        (0..=100).for_each(|step| meter.on_left(at(step * 20), 1000, Span::from_millis(10)));
        assert_eq!(meter.mean_rate(at(2000), Span::from_secs(1)), 50_000.0);
        assert_eq!(meter.largest_rate(at(2000)), 100_000.0);
    }

    #[test]
    fn marks_reach_back_a_second_and_no_more() {
        let mut meter = Meter::default();
        (0..100_000).for_each(|step| meter.on_left(at(step), 1, Span::ZERO));
        assert!(meter.past.len() <= 102, "{}", meter.past.len());
    }
}
