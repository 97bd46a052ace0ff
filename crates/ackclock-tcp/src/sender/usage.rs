//! Tracks whether the congestion window or the application limits the sender.
//!
//! Linux checks the limit after sending all that it can. The strongest result is kept until the window of data at the
//! check is acknowledged (tcp_cwnd_validate, tcp_is_cwnd_limited). If the last bytes of an object fill the window, the
//! window therefore still grows when these bytes are acknowledged. If the application limited the sender for a timeout,
//! the window falls half-way to the number of bytes used (RFC 2861, tcp_cwnd_application_limited).

use ackclock_core::{Seq, Time};

/// Use of the congestion window during one window of data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// Whether the congestion window was full.
    pub(super) limited: bool,
    /// Largest number of bytes in flight during this window of data.
    pub(super) most: u32,
    /// End of the data sent when the result was recorded. The result holds until all data sent by then is acknowledged.
    until: Seq,
    /// Sequence number after the data sent at the last check of the window.
    seen: Seq,
    /// Largest number of bytes in flight since the window was last full, and the time when it was full.
    used: u32,
    since: Time,
}

/// State of the sender at a moment when the sender can send no more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) una: Seq,
    /// Sequence number after the highest byte sent.
    pub(super) max: Seq,
    /// Whether the window has no room for another segment.
    pub(super) full: bool,
    /// Whether there is no more data to send.
    pub(super) starved: bool,
}

impl Usage {
    /// Creates the state before anything is sent. `first` is the first sequence number of the data.
    pub(super) fn new(first: Seq) -> Self {
        Self { limited: false, most: 0, until: first, seen: first, used: 0, since: Time::ZERO }
    }

    /// Records the state if data was sent or the window prevented sending. Returns whether the state was recorded.
    #[inline]
    pub(super) fn note(&mut self, look: &Look) -> bool {
        let full = look.full && !(look.starved && look.max == self.seen);
        if look.max == self.seen && !full {
            return false;
        }
        self.seen = look.max;
        let outstanding = look.max.since(look.una);
        if full || !look.una.before(self.until) || (!self.limited && outstanding > self.most) {
            (self.limited, self.most, self.until) = (full, outstanding, look.max);
        }
        true
    }

    /// Whether the window may grow: the window was full, or in slow start is less than twice the bytes used. The bytes
    /// used are rounded up to whole packets, because the last packet may have less than `mss` bytes.
    pub(super) fn limits(&self, window: u32, ssthresh: u32, mss: u16) -> bool {
        let mss = u64::from(mss.max(1));
        self.limited
            || (window < ssthresh && u64::from(window) < 2 * u64::from(self.most).div_ceil(mss) * mss)
    }

    /// Restarts the measurement of use at `now`, because the window limits the sender.
    #[inline]
    pub(super) fn on_limited(&mut self, now: Time) {
        (self.used, self.since) = (0, now);
    }

    /// Records that the application limits the sender. Returns the time since which the application has limited the
    /// sender.
    pub(super) fn on_unlimited(&mut self, outstanding: u32) -> Time {
        self.used = self.used.max(outstanding);
        self.since
    }

    /// Largest use since the window was last full, bytes. Restarts the measurement of use at `now`.
    pub(super) fn take_used(&mut self, now: Time) -> u32 {
        self.since = now;
        std::mem::take(&mut self.used)
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Span;

    use super::*;

    fn look(una: u32, max: u32, full: bool) -> Look {
        Look { una: Seq(una), max: Seq(max), full, starved: true }
    }

    #[test]
    fn a_window_that_was_full_stays_so_until_it_is_acknowledged() {
        let mut usage = Usage::new(Seq(0));
        assert!(usage.note(&look(0, 10, true)));
        assert!(!usage.note(&look(4, 10, false)), "nothing was sent");
        assert!(usage.note(&look(8, 12, false)));
        assert!(usage.limited, "10 is not acknowledged");
        usage.note(&look(10, 14, false));
        assert_eq!((usage.limited, usage.most), (false, 4));
    }

    #[test]
    fn more_that_is_out_holds_from_then_on_and_as_much_does_not() {
        let mut usage = Usage::new(Seq(0));
        usage.note(&look(0, 4, false));
        usage.note(&look(2, 8, false));
        assert_eq!(usage.most, 6, "4 is not acknowledged, but 6 are more");
        usage.note(&look(3, 9, false));
        usage.note(&look(8, 10, false));
        assert_eq!(usage.most, 2, "8 was what had been sent when 6 were out first");
    }

    #[test]
    fn what_was_used_counts_from_when_the_window_was_full() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut usage = Usage::new(Seq(0));
        usage.on_unlimited(9);
        usage.on_limited(at(3));
        assert_eq!(usage.on_unlimited(4), at(3));
        assert_eq!((usage.take_used(at(7)), usage.on_unlimited(2)), (4, at(7)));
    }

    #[test]
    fn slow_start_goes_on_below_twice_of_what_was_outstanding() {
        let mut usage = Usage::new(Seq(0));
        usage.note(&look(0, 6, false));
        assert!(usage.limits(11, 100, 1) && !usage.limits(12, 100, 1));
        assert!(!usage.limits(11, 11, 1), "not in congestion avoidance");
        assert!(
            usage.limits(15, 100, 4) && !usage.limits(16, 100, 4),
            "two packets, of which one is not full"
        );
        usage.note(&look(3, 8, false));
        assert_eq!(usage.most, 6, "5 are less");
    }
}
