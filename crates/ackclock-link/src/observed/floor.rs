//! The least loop: how long what is told takes to come to effect where nothing waits.
//!
//! It is the least sample ever, never the least of a window: that would learn the box's own queue. It rises only where a
//! [probe](super::shared) has emptied the queue and the samples are larger still, as over a longer route.

use ackclock_core::{Span, Time};

/// The least loop of a flow or of what shares a queue, and what a probe has learnt of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    least: Option<Span>,
    /// When a sample was last about the least; later by the time in which nothing passed.
    low: Time,
    /// The least of the samples of a probe, and how many there were.
    fresh: Option<Span>,
    count: u32,
}

/// What a loop is taken for before the first sample.
const UNKNOWN: Span = Span::from_millis(100);
/// Within this part of the least loop, or this many packets, nothing is taken to wait.
const MARGIN: u64 = 8;
const MARGIN_PACKETS: f64 = 2.0;

impl Floor {
    pub(super) const fn new(now: Time) -> Self {
        Self { least: None, low: now, fresh: None, count: 0 }
    }

    /// The least loop.
    pub(super) fn get(&self) -> Span {
        self.least.unwrap_or(UNKNOWN)
    }

    pub(super) const fn is_known(&self) -> bool {
        self.least.is_some()
    }

    /// Takes a sample; `counts` where it began in the emptied queue of a probe.
    pub(super) fn on_sample(&mut self, sample: Span, counts: bool) {
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        if counts {
            self.count += 1;
            self.fresh = Some(self.fresh.map_or(sample, |fresh| fresh.min(sample)));
        }
    }

    /// Whether a sample is about the least where a packet takes `packet` of the rate.
    pub(super) fn is_low(&self, sample: Span, packet: Option<Span>) -> bool {
        let least = self.get();
        let some = packet.map_or(Span::ZERO, |packet| {
            Span::from_secs_f64(MARGIN_PACKETS * packet.as_secs_f64()).min(least)
        });
        sample <= least + (least / MARGIN).max(some)
    }

    /// A sample was low at `now`.
    pub(super) const fn note_low(&mut self, now: Time) {
        self.low = now;
    }

    /// Nothing passed for `gap`.
    pub(super) fn skip(&mut self, gap: Span) {
        self.low += gap;
    }

    /// For how long no sample was low.
    pub(super) const fn high_for(&self, now: Time) -> Span {
        now.since(self.low)
    }

    /// A probe begins.
    pub(super) const fn begin_probe(&mut self) {
        (self.fresh, self.count) = (None, 0);
    }

    /// Samples of the probe.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// Rises to the least of the probe, if that is more.
    pub(super) fn rise(&mut self) {
        if let (Some(fresh), Some(least)) = (self.fresh, self.least) {
            self.least = Some(least.max(fresh));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    #[test]
    fn it_falls_with_a_sample_and_rises_only_by_a_probe() {
        let mut floor = Floor::new(Time::ZERO);
        assert_eq!(floor.get(), ms(100), "before the first sample");
        floor.on_sample(ms(60), false);
        floor.on_sample(ms(90), false);
        assert_eq!(floor.get(), ms(60));
        floor.begin_probe();
        floor.on_sample(ms(80), true);
        floor.on_sample(ms(75), true);
        floor.rise();
        assert_eq!((floor.get(), floor.count()), (ms(75), 2));
    }

    #[test]
    fn a_sample_is_low_within_an_eighth_or_two_packets() {
        let mut floor = Floor::new(Time::ZERO);
        floor.on_sample(ms(80), false);
        // An eighth of 80 ms is 10 ms.
        assert!(floor.is_low(ms(90), None) && !floor.is_low(ms(91), None));
        // Two packets of 30 ms are 60 ms.
        assert!(floor.is_low(ms(140), Some(ms(30))) && !floor.is_low(ms(141), Some(ms(30))));
        // Two of 100 ms are more than the loop itself, which is the most.
        assert!(floor.is_low(ms(160), Some(ms(100))) && !floor.is_low(ms(161), Some(ms(100))));
    }

    #[test]
    fn time_in_which_nothing_passed_is_not_time_without_a_low_sample() {
        let mut floor = Floor::new(Time::ZERO);
        floor.note_low(Time::ZERO + ms(100));
        assert_eq!(floor.high_for(Time::ZERO + ms(5100)), ms(5000));
        floor.skip(ms(4000));
        assert_eq!(floor.high_for(Time::ZERO + ms(5100)), ms(1000));
    }
}
