//! When the program at the receiver reads what has arrived.
//!
//! It sleeps until data comes, and is awake and has read a tenth of a millisecond later: of segments that arrive at one instant,
//! as over a radio whose blocks hold several, it reads all at once. As in Linux what is pushed is acknowledged once it is read,
//! and so is what two segments or more ask for, where data that waits to be read takes room of the window.

use ackclock_core::{Span, Time};

/// From the arrival that wakes the program until it has read. A program in Python that waits in `recv` took 47 to 118 us in the median
/// over bunches of two to nine segments, on Linux 6.18.
pub(super) const WAKES: Span = Span::from_micros(100);

/// What waits to be read, by the count of bytes that have come in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// When everything will have been read.
    until: Time,
    /// How much was read before.
    read: u64,
}

impl Reading {
    /// More has come at `now` than the `delivered` bytes before: unless the program is on its way, it is woken.
    #[inline]
    pub(super) fn on_data(&mut self, now: Time, delivered: u64) {
        if now >= self.until {
            *self = Self { until: now + WAKES, read: delivered };
        }
    }

    /// When the program has read what waited of the `delivered` bytes, and how much was read before; `None` where nothing waited, where it
    /// waits still at `now`, and where this was told.
    pub(super) fn finished(&mut self, now: Time, delivered: u64) -> Option<(Time, u64)> {
        if now < self.until || self.read == delivered {
            return None;
        }
        Some((self.until, std::mem::replace(&mut self.read, delivered)))
    }

    /// When the program will have read what has come.
    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// How much of the `delivered` bytes waits at `now`.
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
