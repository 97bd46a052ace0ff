//! Pacing of outgoing segments.
//!
//! A segment waits until the earlier segments have taken their time at the pacing rate. With bursts, as in Linux,
//! segments sent together wait only once. After a late burst, the pacing intervals of later segments are shortened,
//! each by at most half, until the delay is made up for.

use ackclock_core::{Rate, Span, Time};

/// Pacing state of one sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    /// Time at which the next segment may be sent.
    until: Time,
    /// Bytes that the burst sent at this instant may still include.
    left: u32,
    at: Time,
    /// Delay of a late burst that later segments may still make up for.
    credit: Span,
}

impl Default for Pacer {
    fn default() -> Self {
        Self { until: Time::ZERO, left: 0, at: Time::ZERO, credit: Span::ZERO }
    }
}

impl Pacer {
    /// Time at which the next segment may be sent; `None` if it may be sent at once.
    #[inline]
    pub(super) fn holds(&self, now: Time) -> Option<Time> {
        if now >= self.until {
            return None;
        }
        let goes_on = self.left > 0 && self.at == now;
        (!goes_on).then_some(self.until)
    }

    /// End of the pacing interval of the last segment sent.
    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// Holds all segments until `time`.
    pub(super) fn hold(&mut self, time: Time) {
        self.until = self.until.max(time);
        self.left = 0;
    }

    /// Allows held segments to be sent at `now`.
    pub(super) fn release(&mut self, now: Time) {
        self.until = self.until.min(now);
    }

    /// Records a single segment of `bytes`, sent at the pacing rate `rate`.
    pub(super) fn on_sent(&mut self, now: Time, bytes: u32, rate: Rate) {
        self.until = self.until.max(now) + rate.time_for(bytes.into());
    }

    /// Records `bytes` sent as part of a burst of `burst` bytes.
    pub(super) fn on_sent_in_burst(&mut self, now: Time, bytes: u32, rate: Rate, burst: u32) {
        if self.left == 0 || self.at != now {
            *self = Self { until: self.until.max(now), left: burst, at: now, credit: now.since(self.until) };
        }
        self.left = self.left.saturating_sub(bytes);
        let time = rate.time_for(bytes.into());
        let made_up = self.credit.min(time / 2);
        self.credit = self.credit.saturating_sub(made_up);
        self.until += time.saturating_sub(made_up);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pacing rate at which 1000 bytes take 10 ms.
    const RATE: Rate = Rate::from_bps(800_000);

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn each_segment_waits_for_the_one_before() {
        let mut pacer = Pacer::default();
        pacer.on_sent(ms(100), 1000, RATE);
        assert_eq!((pacer.holds(ms(109)), pacer.holds(ms(110))), (Some(ms(110)), None));
    }

    #[test]
    fn two_segments_of_a_burst_leave_together_and_wait_together() {
        let mut pacer = Pacer::default();
        pacer.hold(ms(100));
        pacer.on_sent_in_burst(ms(100), 1000, RATE, 2000);
        assert_eq!(pacer.holds(ms(100)), None);
        assert_eq!(pacer.holds(ms(101)), Some(ms(110)), "the second comes too late to be part of it");
        pacer.on_sent_in_burst(ms(100), 1000, RATE, 2000);
        assert_eq!(pacer.holds(ms(100)), Some(ms(120)));
    }

    #[test]
    fn half_of_a_burst_is_made_up_for_at_most() {
        for (late, next) in [(0, 120), (4, 120), (50, 160)] {
            let mut pacer = Pacer::default();
            pacer.hold(ms(100));
            (0..2).for_each(|_| pacer.on_sent_in_burst(ms(100 + late), 1000, RATE, 2000));
            // 100 + late + 20 - min(late, 10)
            assert_eq!(pacer.holds(ms(100 + late)), Some(ms(next)), "{late} ms late");
        }
    }
}
