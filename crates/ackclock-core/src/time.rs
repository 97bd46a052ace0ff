//! Virtual time in integer nanoseconds.
//!
//! Instants and durations are different types, so that the compiler refuses `instant + instant`. All arithmetic
//! saturates: a deadline beyond the end of time is [`Time::NEVER`], never a wrapped small number.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// Instant in nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// Duration in nanoseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Time {
    /// Instant at the start of the run.
    pub const ZERO: Self = Self(0);
    /// Instant later than every instant that can occur in a run.
    pub const NEVER: Self = Self(u64::MAX);

    /// Creates the instant `nanos` nanoseconds after the start of the run.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds from the start of the run to this instant.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds from the start of the run to this instant. The seconds are for output only, because floats
    /// must never decide the order of events.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Time passed from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Duration of zero.
    pub const ZERO: Self = Self(0);
    /// Duration longer than every run.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a duration from nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates a duration from microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Creates a duration from milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Creates a duration from whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Creates a duration from seconds, rounded to the nearest nanosecond. Negative values and NaN give a duration of
    /// zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        // The conversion `as` saturates and maps NaN to zero, as wanted.
        Self(libm::round(secs * 1e9) as u64)
    }

    /// Returns the duration in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the duration in seconds, for output and for models that calculate in real numbers.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the duration in milliseconds, for output.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Subtracts `other` from this duration; the result is never below zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the absolute difference of two durations.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Self) {
        *self = self.saturating_sub(other);
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NEVER => f.write_str("never"),
            Self(nanos) => write!(f, "{}.{:09}s", nanos / 1_000_000_000, nanos % 1_000_000_000),
        }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Time(self.0), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
        assert_eq!(Time::ZERO.since(Time::from_nanos(5)), Span::ZERO);
        assert_eq!(Span::from_secs(u64::MAX), Span::MAX);
    }

    #[test]
    fn seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Span::from_secs_f64(0.1), Span::from_millis(100));
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
    }
}
