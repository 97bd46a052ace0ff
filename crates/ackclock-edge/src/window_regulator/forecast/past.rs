//! Recent history of a link.

use std::collections::VecDeque;

use ackclock_core::{Span, Time};

/// Cumulative service and idle time, and the rate, at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) at: Time,
    /// Payload bytes served since the start.
    pub(super) served: f64,
    /// Seconds idle since the start.
    pub(super) idle: f64,
    /// Rate at that instant, bytes per second.
    pub(super) rate: f64,
}

/// Recent rows, in order of time.
#[derive(Debug)]
pub(super) struct Past {
    rows: VecDeque<Row>,
    /// Number of rows dropped.
    forgotten: usize,
}

impl Past {
    pub(super) fn new() -> Self {
        Self { rows: VecDeque::with_capacity(128), forgotten: 0 }
    }

    pub(super) fn newest(&self) -> Option<&Row> {
        self.rows.back()
    }

    /// Adds a row, and drops rows older than `longest` except for the newest of them.
    pub(super) fn push(&mut self, row: Row, longest: Span) {
        while self.rows.get(1).is_some_and(|old| row.at.since(old.at) >= longest) {
            self.rows.pop_front();
            self.forgotten += 1;
        }
        self.rows.push_back(row);
    }
}

/// A window of time up to now. It remembers its first row, from which the next search starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub(super) span: Span,
    row: usize,
}

impl Reach {
    pub(super) const fn of(span: Span) -> Self {
        Self { span, row: 0 }
    }

    /// The last row at least as old at `now` as the window is long, or the oldest row.
    pub(super) fn begin<'a>(&mut self, past: &'a Past, now: Time) -> Option<&'a Row> {
        let is_old = |at: usize| past.rows.get(at).is_some_and(|row| now.since(row.at) >= self.span);
        let mut at = self.row.saturating_sub(past.forgotten);
        while is_old(at + 1) {
            at += 1;
        }
        while at > 0 && !is_old(at) {
            at -= 1;
        }
        self.row = past.forgotten + at;
        past.rows.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Start of a window, in ms.
    fn begins(reach: &mut Reach, past: &Past, now: u64) -> Option<u64> {
        reach.begin(past, at(now)).map(|row| row.at.as_nanos() / 1_000_000)
    }

    #[test]
    fn a_span_begins_at_the_last_row_that_is_so_old_or_at_the_oldest() {
        let (mut past, mut reach) = (Past::new(), Reach::of(Span::from_millis(100)));
        assert_eq!(begins(&mut reach, &past, 0), None);
        for now in [0, 10, 30, 90, 150, 160, 900, 1000, 1200] {
            past.push(Row { at: at(now), served: 0.0, idle: 0.0, rate: 0.0 }, Span::from_secs(1));
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
            reach.span = Span::from_millis(span);
            assert_eq!(begins(&mut reach, &past, now), Some(begin), "{span} ms before {now}");
        }
    }
}
