//! Measurements of the last ten seconds. All figures of a report are of this window.

use std::collections::VecDeque;

use ackclock_core::{Histogram, Span, Time};

/// Seconds of the window.
const SECONDS: usize = 10;

/// Queueing delays of the last ten seconds, by second.
#[derive(Debug, Default)]
pub struct RecentDelays {
    current: Histogram,
    seconds: VecDeque<Histogram>,
}

impl RecentDelays {
    /// Adds the queueing delay of this many packets.
    pub fn record(&mut self, delay: Span, packets: u32) {
        self.current.record_times(delay, packets);
    }

    /// Adds the queueing delays of the second that ends now.
    pub fn turn(&mut self, more: &Histogram) {
        self.current.merge(more);
        if self.seconds.len() == SECONDS {
            self.seconds.pop_front();
        }
        self.seconds.push_back(std::mem::take(&mut self.current));
    }

    /// Queueing delays of the window and of the current second.
    pub fn all(&self) -> Histogram {
        let mut all = self.current.clone();
        self.seconds.iter().for_each(|second| all.merge(second));
        all
    }
}

/// Sums of the last ten seconds, one a second.
#[derive(Debug)]
pub struct RecentSums<T>(VecDeque<(Time, T)>);

impl<T: Copy> RecentSums<T> {
    /// Starts with the sum at `now`.
    pub fn new(now: Time, sum: T) -> Self {
        Self(VecDeque::from([(now, sum)]))
    }

    /// Adds the sum at the end of a second. Returns the time and the sum at which the window begins.
    pub fn turn(&mut self, now: Time, sum: T) -> (Time, T) {
        if self.0.len() > SECONDS {
            self.0.pop_front();
        }
        self.0.push_back((now, sum));
        self.0[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_of_the_last_ten_seconds() {
        let at = |second| Time::ZERO + Span::from_secs(second);
        let (mut delays, mut sums) = (RecentDelays::default(), RecentSums::new(at(0), 0));
        for second in 1..=30 {
            delays.record(Span::from_millis(if second <= 20 { 1000 } else { 50 }), 7);
            delays.turn(&Histogram::default());
            assert_eq!(
                sums.turn(at(second), second),
                (at(second.saturating_sub(10)), second.saturating_sub(10))
            );
        }
        let all = delays.all();
        assert_eq!(
            (all.count(), all.quantile(1.0).map(|delay| delay.as_millis_f64() < 51.0)),
            (70, Some(true))
        );
    }
}
