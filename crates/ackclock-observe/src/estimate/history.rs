//! Cumulative sums of a link over the last second, from which rates over several windows follow.

use std::collections::VecDeque;

use ackclock_core::{Span, Time};

/// Minimum interval between rows.
pub const GRAIN: Span = Span::from_millis(10);
/// Windows over which the rate of a link is measured: fades last from 0.1 s to 1 s.
pub const RATE_WINDOWS: [Span; 3] = [Span::from_millis(100), Span::from_millis(500), LONGEST];
const LONGEST: Span = Span::from_secs(1);

/// Rows of cumulative sums, in order of time, as far back as the longest rate window.
#[derive(Debug)]
pub struct History<T>(VecDeque<(Time, T)>);

impl<T> Default for History<T> {
    fn default() -> Self {
        Self(VecDeque::with_capacity(128))
    }
}

impl<T> History<T> {
    /// Newest row and its time.
    pub fn newest(&self) -> Option<&(Time, T)> {
        self.0.back()
    }

    /// Adds a row, and drops the rows that no rate window reaches any more.
    pub fn push(&mut self, now: Time, row: T) {
        while self.0.get(1).is_some_and(|(at, _)| now.since(*at) >= LONGEST) {
            self.0.pop_front();
        }
        self.0.push_back((now, row));
    }

    /// First row of the window of length `span` up to `now`: the last row at least that old, or else the oldest row.
    pub fn begin(&self, now: Time, span: Span) -> Option<&(Time, T)> {
        let old = self.0.partition_point(|(at, _)| now.since(*at) >= span);
        self.0.get(old.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Start of a window, in ms.
    fn begins(history: &History<()>, now: u64, span: u64) -> Option<u64> {
        history.begin(at(now), Span::from_millis(span)).map(|(at, ())| at.as_nanos() / 1_000_000)
    }

    #[test]
    fn a_window_begins_at_the_last_row_of_its_age_or_at_the_oldest() {
        let mut history = History::default();
        assert_eq!(begins(&history, 0, 100), None);
        for now in [0, 10, 30, 90, 150, 160, 900, 1000, 1200] {
            history.push(at(now), ());
        }
        for (now, span, begin) in [
            (1200, 100, 1000),
            (1260, 100, 1000),
            (1300, 100, 1200),
            (1300, 400, 900),
            (1300, 401, 160),
            // Rows older than a second at the last one are dropped, except for one.
            (1300, 1150, 160),
            (1300, 2000, 160),
            (1300, 0, 1200),
        ] {
            assert_eq!(begins(&history, now, span), Some(begin), "{span} ms before {now}");
        }
    }

    #[test]
    fn rows_reach_back_a_second_and_no_more() {
        let mut history = History::default();
        (0..10_000).step_by(10).for_each(|now| history.push(at(now), ()));
        assert_eq!(history.0.len(), 101);
    }
}
