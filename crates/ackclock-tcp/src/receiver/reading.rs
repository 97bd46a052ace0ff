//! When the program at the receiver reads arrived data.
//!
//! The program sleeps until data arrives, wakes, and has read it a tenth of a millisecond later. Segments that arrive
//! at one instant, as in one radio block, are read together. As in Linux, pushed data is acknowledged once it is read.
//! So are two or more segments, if unread data takes room in the window.

use ackclock_core::{Span, Time};

/// Time from the arrival that wakes the program until it has read. A Python program waiting in `recv` took 47 to 118 us
/// in the median, for bursts of two to nine segments, on Linux 6.18.
pub(super) const WAKES: Span = Span::from_micros(100);

/// Data waiting to be read, counted in bytes delivered in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// When all of it will have been read.
    until: Time,
    /// Bytes already read.
    read: u64,
}

impl Reading {
    /// More data arrives at `now`, after the `delivered` bytes before: wakes the program unless it is already waking.
    #[inline]
    pub(super) fn on_data(&mut self, now: Time, delivered: u64) {
        if now >= self.until {
            *self = Self { until: now + WAKES, read: delivered };
        }
    }

    /// When the program read the data waiting among the `delivered` bytes, and how much was read before. `None` if
    /// nothing waited, if it still waits at `now`, or if this was already reported.
    pub(super) fn finished(&mut self, now: Time, delivered: u64) -> Option<(Time, u64)> {
        if now < self.until || self.read == delivered {
            return None;
        }
        Some((self.until, std::mem::replace(&mut self.read, delivered)))
    }

    /// When the program will have read all arrived data.
    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// Bytes among the `delivered` ones that are unread at `now`.
    #[inline]
    pub(super) fn unread(&self, now: Time, delivered: u64) -> u32 {
        if now >= self.until { 0 } else { u32::try_from(delivered - self.read).unwrap_or(u32::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    #[test]
    fn what_comes_until_the_program_has_read_is_read_together() {
        let mut reading = Reading::default();
        let mut delivered = 0;
        let seen = [1000, 1050, 1099, 1100, 1201].map(|now| {
            reading.on_data(at(now), delivered);
            delivered += 10;
            (reading.unread(at(now), delivered), reading.until())
        });
        assert_eq!(seen.map(|(unread, _)| unread), [10, 20, 30, 10, 10]);
        assert_eq!(seen.map(|(_, until)| until), [1100, 1100, 1100, 1200, 1301].map(at));
        assert_eq!(reading.unread(at(1301), delivered), 0);
    }
}
