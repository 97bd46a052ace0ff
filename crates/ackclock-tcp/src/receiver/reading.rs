//! Models when the program at the receiver reads arrived data.
//!
//! The program sleeps until data arrives, wakes up, and has read the data a tenth of a millisecond later. Segments that
//! arrive at one instant, as in one radio block, are read together. As in Linux, pushed data is acknowledged once the
//! program has read it. Two or more segments are also acknowledged once the program has read them, if unread data
//! reduces the window.

use ackclock_core::{Span, Time};

/// Time from the arrival that wakes the program until the program has read the data. A Python program that waited in
/// `recv` took 47 to 118 us in the median, for bursts of two to nine segments, on Linux 6.18.
pub(super) const WAKES: Span = Span::from_micros(100);

/// Unread data, counted in bytes delivered in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// Time at which the program will have read all data.
    until: Time,
    /// Total of bytes that the program has already read.
    read: u64,
}

impl Reading {
    /// Handles data that arrives at `now`, after `delivered` earlier bytes. Wakes the program unless it is already
    /// waking up.
    #[inline]
    pub(super) fn on_data(&mut self, now: Time, delivered: u64) {
        if now >= self.until {
            *self = Self { until: now + WAKES, read: delivered };
        }
    }

    /// Time at which the program read the data waiting among the `delivered` bytes, and the total of bytes read before
    /// that time. `None` if no data was waiting, if the data still waits at `now`, or if the reading was already
    /// reported.
    pub(super) fn finished(&mut self, now: Time, delivered: u64) -> Option<(Time, u64)> {
        if now < self.until || self.read == delivered {
            return None;
        }
        Some((self.until, std::mem::replace(&mut self.read, delivered)))
    }

    /// Time at which the program will have read all arrived data.
    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// Number of bytes among the `delivered` bytes that are unread at `now`.
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
