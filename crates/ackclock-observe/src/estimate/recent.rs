//! A value of the current interval and of the previous one: a minimum, maximum or sum over one to two intervals.

use ackclock_core::{Span, Time};

/// Values of the current interval and of the previous one.
#[derive(Clone, Copy, Debug)]
pub struct Recent<T> {
    length: Span,
    /// Start of the current interval; `None` before the first value.
    began: Option<Time>,
    current: T,
    previous: T,
}

impl<T: Copy + Default> Recent<T> {
    /// Intervals of at least this `length`; the first one starts with the first value.
    pub fn of(length: Span) -> Self {
        Self { length, began: None, current: T::default(), previous: T::default() }
    }

    /// Intervals of at least this `length`; the first one starts at `start`.
    pub fn since(start: Time, length: Span) -> Self {
        Self { began: Some(start), ..Self::of(length) }
    }

    /// Value of the interval at `now`, to be updated. Starts a new interval if the current one has reached its length.
    pub fn at(&mut self, now: Time) -> &mut T {
        let began = *self.began.get_or_insert(now);
        if now.since(began) > self.length {
            (self.began, self.previous, self.current) = (Some(now), self.current, T::default());
        }
        &mut self.current
    }

    /// Values of the current interval and of the previous one.
    pub const fn both(&self) -> [T; 2] {
        [self.current, self.previous]
    }
}

/// Minimum of the samples of the last one to two intervals.
#[derive(Clone, Copy, Debug)]
pub struct WindowedMin(Recent<Option<Span>>);

/// Length of the intervals of a minimum RTT: a route that became longer is noticed within twice this time.
const ROUTE: Span = Span::from_secs(10);

impl WindowedMin {
    /// Minimum over 10 to 20 s; the first interval starts with the first sample.
    pub fn from_first_sample() -> Self {
        Self(Recent::of(ROUTE))
    }

    /// Takes a sample.
    pub fn add(&mut self, now: Time, sample: Span) {
        let least = self.0.at(now);
        *least = Some(least.map_or(sample, |least| least.min(sample)));
    }

    /// Minimum of the samples; `None` before the first one.
    pub fn get(&self) -> Option<Span> {
        self.0.both().into_iter().flatten().min()
    }
}

/// Minimum over 10 to 20 s; the first interval starts at time zero.
impl Default for WindowedMin {
    fn default() -> Self {
        Self(Recent::since(Time::ZERO, ROUTE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_minimum_lasts_ten_to_twenty_seconds() {
        let mut least = WindowedMin::default();
        assert_eq!(least.get(), None);
        least.add(at(0), Span::from_millis(30));
        least.add(at(10_001), Span::from_millis(50));
        assert_eq!(least.get(), Some(Span::from_millis(30)));
        least.add(at(20_002), Span::from_millis(60));
        assert_eq!(least.get(), Some(Span::from_millis(50)));
    }

    #[test]
    fn the_first_interval_starts_with_the_first_value_or_at_the_start_given() {
        let mut sums = [Recent::<u64>::of(Span::from_secs(1)), Recent::since(Time::ZERO, Span::from_secs(1))];
        for sum in &mut sums {
            for millis in [900, 1500, 2000] {
                *sum.at(at(millis)) += millis;
            }
        }
        assert_eq!(sums.map(|sum| sum.both()), [[2000, 2400], [3500, 900]]);
    }
}
