//! What a link had done by instants of late.

use std::collections::VecDeque;

use ackclock_core::{Span, Time};

/// What had been served, how long the link had been idle, and its rate, by an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) at: Time,
    /// Bytes of payload, and seconds, since the beginning.
    pub(super) served: f64,
    pub(super) idle: f64,
    /// What the rate was, bytes a second.
    pub(super) rate: f64,
}

/// The rows of late, in order.
#[derive(Debug)]
pub(super) struct Past {
    rows: VecDeque<Row>,
    /// How many were forgotten.
    forgotten: usize,
}

impl Past {
    pub(super) fn new() -> Self {
        Self { rows: VecDeque::with_capacity(128), forgotten: 0 }
    }

    pub(super) fn newest(&self) -> Option<&Row> {
        self.rows.back()
    }

    /// Remembers a row, and back to the last that is as old as `longest`.
    pub(super) fn push(&mut self, row: Row, longest: Span) {
        while self.rows.get(1).is_some_and(|old| row.at.since(old.at) >= longest) {
            self.rows.pop_front();
            self.forgotten += 1;
        }
        self.rows.push_back(row);
    }
}

/// A span of time up to now. It begins near the row at which it began when that was last asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub(super) span: Span,
    row: usize,
}

impl Reach {
    pub(super) const fn of(span: Span) -> Self {
        Self { span, row: 0 }
    }

    /// The last row that is as old at `now` as the span is long, or the oldest.
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

    /// Where a span begins, in ms.
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
            // What was older than a second at the last row is forgotten, but for one.
            (1300, 1150, 160),
            (1300, 2000, 160),
            (1300, 0, 1200),
        ] {
            reach.span = Span::from_millis(span);
            assert_eq!(begins(&mut reach, &past, now), Some(begin), "{span} ms before {now}");
        }
    }
}
