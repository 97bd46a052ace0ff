//! Clock of a sender, as its TCP timestamps show it.

/// Counts the ticks of a 32-bit clock beyond its overflow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ticks {
    last: Option<u32>,
    total: i64,
}

impl Ticks {
    /// Ticks between the first value and this one; an older value may follow a newer one.
    pub(super) fn since_first(&mut self, value: u32) -> i64 {
        let last = self.last.replace(value).unwrap_or(value);
        self.total += i64::from(value.wrapping_sub(last) as i32);
        self.total
    }
}

/// Least delayed segments of a flow: the upper convex hull of the sender's ticks over the arrival times.
///
/// A queue can only make a segment arrive later, so the segments on the hull saw the shortest queues.
#[derive(Clone, Debug, Default)]
pub(super) struct Envelope {
    /// Corners of the hull: arrival time in seconds, ticks.
    corners: Vec<(f64, f64)>,
    /// Sum of the arrival times, and their number.
    times: (f64, f64),
}

impl Envelope {
    /// Adds a segment.
    pub(super) fn add(&mut self, at: f64, ticks: i64) {
        let point = (at, ticks as f64);
        if self.corners.last().is_some_and(|last| at < last.0) {
            return;
        }
        self.times = (self.times.0 + at, self.times.1 + 1.0);
        while let [.., one, two] = self.corners[..] {
            let turn = (two.0 - one.0) * (point.1 - one.1) - (two.1 - one.1) * (point.0 - one.0);
            if turn < 0.0 {
                break;
            }
            self.corners.pop();
        }
        self.corners.push(point);
    }

    /// Sender's clock: the hull's edge at the mean arrival time if its slope is that of a usual clock with a usual skew.
    /// Otherwise a queue bends the hull, and the clock is the usual one whose ticks are nearest, or the edge if none is
    /// near. `None` if the ticks do not advance.
    pub(super) fn clock(&self) -> Option<Clock> {
        let mean = self.times.0 / self.times.1;
        let edge = self.corners.windows(2).find(|edge| edge[1].0 >= mean && edge[1].0 > edge[0].0)?;
        let slope = (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0);
        let (first, last) = (self.corners.first()?, self.corners.last()?);
        let ratio = (last.1 - first.1) / (last.0 - first.0);
        let near = |rate: f64, most: f64| USUAL.into_iter().find(|usual| (rate / usual - 1.0).abs() <= most);
        let rate = near(slope, SKEW).map(|_| slope).or_else(|| near(ratio, QUEUE)).unwrap_or(slope);
        let ahead =
            self.corners.iter().map(|(at, ticks)| ticks - rate * at).fold(f64::NEG_INFINITY, f64::max);
        (rate > 0.0 && rate.is_finite() && ahead.is_finite()).then_some(Clock { rate, ahead })
    }
}

/// Usual rates of TCP timestamp clocks, ticks per second.
const USUAL: [f64; 7] = [2.0, 10.0, 100.0, 250.0, 300.0, 1e3, 1e6];
/// Largest skew of a clock: the limit of NTP's corrections.
const SKEW: f64 = 500e-6;
/// Largest relative difference that a growing or draining queue is assumed to make.
const QUEUE: f64 = 0.25;

/// Relation of a sender's clock to arrival times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Clock {
    /// Ticks per second of the capture's clock.
    rate: f64,
    /// Ticks at time 0 of the capture's clock, for a segment that is not queued.
    ahead: f64,
}

impl Clock {
    /// Queueing delay in seconds of a segment with these ticks that arrived at `at`. The clock's last tick may be as
    /// old as one tick, so the delay is too long by up to [`Self::tick`].
    pub(super) fn queueing_delay(self, at: f64, ticks: i64) -> f64 {
        at - (ticks as f64 - self.ahead) / self.rate
    }

    /// Length of one tick in seconds.
    pub(super) fn tick(self) -> f64 {
        1.0 / self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clock of a flow with one segment each 10 ms for 60 s, whose queue is given by `queue`.
    fn clock(ticks_per_second: f64, queue: impl Fn(f64) -> f64) -> Clock {
        let mut envelope = Envelope::default();
        for step in 0..6000 {
            let sent = f64::from(step) * 0.01;
            envelope.add(sent + 0.1 + queue(sent), (sent * ticks_per_second) as i64);
        }
        envelope.clock().unwrap()
    }

    #[test]
    fn ticks_go_on_behind_the_overflow_and_back_for_late_segments() {
        let mut ticks = Ticks::default();
        let seen = [u32::MAX - 1, 3, 1, 10].map(|value| ticks.since_first(value));
        assert_eq!(seen, [0, 5, 3, 12]);
    }

    #[test]
    fn a_skewed_clock_is_fitted_below_a_queue_that_grows_and_drains() {
        for rate in [100.0, 1000.0, 1000.0 * (1.0 + 80e-6), 1000.0 * (1.0 - 80e-6), 300.0, 37.0, 1e6] {
            let queue = |sent: f64| (sent % 5.0 - 2.5).abs() / 5.0;
            let clock = clock(rate, queue);
            for sent in [1.0, 7.5, 29.9, 58.0] {
                let delay = clock.queueing_delay(sent + 0.1 + queue(sent), (sent * rate) as i64);
                assert!((delay - queue(sent)).abs() <= 2.0 / rate + 0.001, "{rate} {sent}: {delay}");
            }
        }
    }

    #[test]
    fn a_queue_that_only_grows_is_no_skew() {
        let clock = clock(1000.0, |sent| sent / 20.0);
        assert_eq!(clock.rate, 1000.0);
        let delay = clock.queueing_delay(40.0 + 0.1 + 2.0, 40_000);
        assert!((delay - 2.0).abs() < 0.002, "{delay}");
    }
}
