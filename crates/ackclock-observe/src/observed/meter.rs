//! Measures the rate at which data leaves an observed queue, and the time for which the queue was empty.

use ackclock_core::{Span, Time};

use crate::estimate::{GRAIN, History, RATE_WINDOWS};

/// Sums of dequeued bytes and of idle time of a queue, and their history over the last second.
#[derive(Debug, Default)]
pub(super) struct Meter {
    sums: Sums,
    history: History<Sums>,
}

/// Cumulative sums of one queue.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Number of bytes dequeued since the start.
    served: u64,
    /// Total time for which the queue was empty.
    idle: Span,
}

/// Minimum share of a rate window that counts as busy.
const LEAST_BUSY: f64 = 0.2;

/// Time over which a rate is averaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Over {
    /// Average over all of the time.
    All,
    /// Average over the time in which the queue was not empty.
    Busy,
}

impl Meter {
    /// Records that `bytes` have left the queue, which was empty for `idle` since the last departure.
    pub(super) fn on_left(&mut self, now: Time, bytes: u64, idle: Span) {
        self.sums.served += bytes;
        self.sums.idle += idle;
        if self.history.newest().is_none_or(|(at, _)| now.since(*at) >= GRAIN) {
            self.history.push(now, self.sums);
        }
    }

    /// Largest rate over all rate windows, averaged over the time in which the queue was not empty, bytes per second.
    pub(super) fn largest_rate(&self, now: Time) -> f64 {
        RATE_WINDOWS.into_iter().map(|window| self.rate(now, window, Over::Busy)).fold(0.0, f64::max)
    }

    /// Mean rate over `window` in bytes per second; the window is limited to 0.1 s to 1 s.
    pub(super) fn mean_rate(&self, now: Time, window: Span) -> f64 {
        let [shortest, .., longest] = RATE_WINDOWS;
        self.rate(now, window.clamp(shortest, longest), Over::All)
    }

    fn rate(&self, now: Time, window: Span, over: Over) -> f64 {
        let Some((at, sums)) = self.history.begin(now, window) else { return 0.0 };
        let length = now.since(*at).max(window / 2).as_secs_f64();
        let time = match over {
            Over::All => length,
            Over::Busy => {
                let idle = self.sums.idle.saturating_sub(sums.idle);
                (length - idle.as_secs_f64()).max(LEAST_BUSY * length)
            }
        };
        (self.sums.served - sums.served) as f64 / time
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
}
