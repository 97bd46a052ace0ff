//! Minimum loop: the delay from an advertised window to its effect while the queue is empty.
//!
//! The minimum loop is the minimum of all samples. A minimum over a window of time would include the standing queue
//! that the box itself allows. The minimum loop rises only if a [probe](super::probe) has emptied the queue and samples
//! are still larger, as over a longer route.

use ackclock_core::{Span, Time};

/// Minimum loop of a flow or of all flows that share a queue, and the samples taken during a probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    least: Option<Span>,
    /// Time of the last sample near the minimum, moved forward by times without traffic.
    low: Time,
    /// Minimum of the samples taken during a probe.
    fresh: Option<Span>,
    /// Number of samples taken during a probe.
    count: u32,
}

/// Loop that is assumed before the first sample.
const UNKNOWN: Span = Span::from_millis(100);
/// A sample counts as measured with an empty queue if its excess over the minimum loop is at most the loop divided by
/// this number, or a few packets' transmission time.
const MARGIN: u64 = 8;
const MARGIN_PACKETS: f64 = 2.0;

impl Floor {
    pub(super) const fn new(now: Time) -> Self {
        Self { least: None, low: now, fresh: None, count: 0 }
    }

    /// Returns the length of the minimum loop.
    pub(super) fn get(&self) -> Span {
        self.least.unwrap_or(UNKNOWN)
    }

    pub(super) const fn is_known(&self) -> bool {
        self.least.is_some()
    }

    /// Takes a sample; `counts` is set if the sample started in a queue that a probe had emptied.
    pub(super) fn on_sample(&mut self, sample: Span, counts: bool) {
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        if counts {
            self.count += 1;
            self.fresh = Some(self.fresh.map_or(sample, |fresh| fresh.min(sample)));
        }
    }

    /// Whether a sample is near the minimum; `packet` is the transmission time of a packet.
    pub(super) fn is_low(&self, sample: Span, packet: Option<Span>) -> bool {
        let least = self.get();
        let some = packet.map_or(Span::ZERO, |packet| {
            Span::from_secs_f64(MARGIN_PACKETS * packet.as_secs_f64()).min(least)
        });
        sample <= least + (least / MARGIN).max(some)
    }

    /// Records a sample near the minimum at `now`.
    pub(super) const fn note_low(&mut self, now: Time) {
        self.low = now;
    }

    /// Records that there was no traffic for the time `gap`.
    pub(super) fn skip(&mut self, gap: Span) {
        self.low += gap;
    }

    /// Time since the last sample near the minimum.
    pub(super) const fn high_for(&self, now: Time) -> Span {
        now.since(self.low)
    }

    /// Starts to collect the samples of a probe.
    pub(super) const fn begin_probe(&mut self) {
        (self.fresh, self.count) = (None, 0);
    }

    /// Number of samples taken during the probe.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// Raises the minimum round trip of the loop to the minimum that the probe measured, if that is longer.
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
    fn each_probe_raises_it_to_the_least_of_its_own_samples() {
        let mut floor = Floor::new(Time::ZERO);
        floor.on_sample(ms(10), false);
        for longer in [20, 40, 80, 160] {
            floor.begin_probe();
            assert_eq!(floor.count(), 0);
            (0..3).for_each(|more| floor.on_sample(ms(longer + more), true));
            floor.rise();
            assert_eq!((floor.get(), floor.count()), (ms(longer), 3));
        }
        floor.begin_probe();
        floor.rise();
        assert_eq!(floor.get(), ms(160), "a probe without samples");
    }

    #[test]
    fn a_sample_is_low_within_an_eighth_or_two_packets() {
        let mut floor = Floor::new(Time::ZERO);
        floor.on_sample(ms(80), false);
        // An eighth of 80 ms is 10 ms.
        assert!(floor.is_low(ms(90), None) && !floor.is_low(ms(91), None));
        // Two packets of 30 ms are 60 ms.
        assert!(floor.is_low(ms(140), Some(ms(30))) && !floor.is_low(ms(141), Some(ms(30))));
        // Two of 100 ms are more than the loop itself, which is the limit.
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
