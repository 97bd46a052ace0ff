//! Rate of a link from the counters of its queue.
//!
//! A counter of sent bytes alone does not show the rate of a link: on an idle link the counter stands still at any rate.
//! While packets wait in the queue, the link is busy, and the bytes that leave are what the link can send:
//!
//! - **Busy**: between two departures during one busy period, the rate is the number of bytes divided by the time.
//! - **Outage**: if packets wait and none leaves during a complete interval, the rate is zero.
//! - **Idle**: the bytes that leave are a lower bound of the rate. A reading exists only if the bound exceeds the last
//!   reading.
//!
//! A queue that is not empty in two consecutive samples is assumed not to be empty in between, so samples must be taken
//! more often than the queue can empty and fill again. If the queue belongs to several users, the rate is the rate of all
//! users together. Buffers behind the queue, in a driver or a modem, are invisible.

use ackclock_core::{Rate, Span, Time};

/// Counters of a queue at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time of the sample.
    pub at: Time,
    /// Bytes that left the queue since its creation.
    pub sent: u64,
    /// Bytes in the queue.
    pub queued: u32,
}

/// Estimator of a link's rate.
#[derive(Clone, Debug, Default)]
pub struct BusyRate {
    last: Option<Sample>,
    /// Departure in the current busy period from which the next reading counts.
    from: Option<Sample>,
    /// Last departure after `from`.
    to: Option<Sample>,
    /// Start of the current wait: the begin of the busy period, or the last departure.
    waiting: Option<Time>,
    /// Sample at the last reading.
    read: Option<Sample>,
    /// Last reading.
    rate: Option<Rate>,
}

impl BusyRate {
    /// Adds a sample.
    pub fn sample(&mut self, sample: Sample) {
        let Some(last) = self.last.replace(sample) else {
            self.read = Some(sample);
            return;
        };
        if sample.sent < last.sent {
            // The queue was replaced, and its counters begin again.
            *self = Self { last: Some(sample), read: Some(sample), ..Self::default() };
            return;
        }
        let departed = sample.sent > last.sent;
        if last.queued == 0 || sample.queued == 0 {
            (self.from, self.to) = (None, None);
            self.waiting = (sample.queued > 0).then_some(sample.at);
        } else if departed {
            let end = if self.from.is_none() { &mut self.from } else { &mut self.to };
            *end = Some(sample);
            self.waiting = Some(sample.at);
        }
    }

    /// Rate since the last reading, which is at least `interval` ago; `None` if the counters do not show the rate.
    pub fn reading(&mut self, interval: Span) -> Option<Rate> {
        let last = self.last?;
        let since = self.read.replace(last)?;
        let rate = match (self.from, self.to.take()) {
            (Some(from), Some(to)) => {
                self.from = Some(to);
                Some(between(from, to)?)
            }
            _ if self.waiting.is_some_and(|waiting| last.at >= waiting + interval) => Some(Rate::ZERO),
            _ => between(since, last).filter(|&bound| self.rate.is_some_and(|rate| bound > rate)),
        };
        self.rate = rate.or(self.rate);
        rate
    }
}

/// Mean rate between two samples; `None` for two samples at the same time.
fn between(from: Sample, to: Sample) -> Option<Rate> {
    let time = Some(to.at.since(from.at)).filter(|&time| time > Span::ZERO)?;
    Some(Rate::from_bps_f64((to.sent - from.sent) as f64 * 8.0 / time.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);

    /// Samples `(milliseconds, sent, queued)`, and the reading after them.
    fn reading(busy: &mut BusyRate, samples: &[(u64, u64, u32)]) -> Option<u64> {
        for &(at, sent, queued) in samples {
            busy.sample(Sample { at: Time::from_nanos(at * 1_000_000), sent, queued });
        }
        busy.reading(SECOND).map(Rate::as_bps)
    }

    #[test]
    fn the_rate_of_a_busy_link_is_measured_between_departures() {
        let mut busy = BusyRate::default();
        // 1500 bytes leave every 375 ms, 32 kbit/s. The time until the first departure does not count.
        let first = [(0, 0, 0), (100, 0, 9000), (300, 1500, 7500), (675, 3000, 6000), (1000, 3000, 6000)];
        assert_eq!(reading(&mut busy, &first), Some(32_000));
        assert_eq!(
            reading(&mut busy, &[(1050, 4500, 4500), (2000, 4500, 4500)]),
            Some(32_000),
            "one departure"
        );
    }

    #[test]
    fn an_idle_link_shows_no_rate_but_a_higher_bound() {
        let mut busy = BusyRate::default();
        let idle = [(0, 0, 0), (500, 100_000, 0), (1000, 200_000, 0)];
        assert_eq!(reading(&mut busy, &idle), None, "no backlog, and no rate to exceed");
        let full = [(1100, 200_000, 50_000), (1200, 210_000, 40_000), (2000, 250_000, 1)];
        assert_eq!(reading(&mut busy, &full), Some(400_000));
        assert_eq!(reading(&mut busy, &[(3000, 290_000, 0)]), None, "320 kbit/s do not exceed 400 kbit/s");
        assert_eq!(reading(&mut busy, &[(4000, 390_000, 0)]), Some(800_000), "a rate that was achieved");
    }

    #[test]
    fn a_queue_that_empties_between_two_samples_is_not_measured_over_the_gap() {
        let mut busy = BusyRate::default();
        let gap = [(0, 0, 3000), (100, 1500, 1500), (200, 3000, 0), (700, 3000, 3000), (1000, 4500, 1500)];
        assert_eq!(reading(&mut busy, &gap), None);
    }

    #[test]
    fn packets_that_wait_in_vain_are_an_outage() {
        let mut busy = BusyRate::default();
        assert_eq!(
            reading(&mut busy, &[(0, 0, 0), (600, 0, 3000), (1000, 0, 3000)]),
            None,
            "not a complete interval"
        );
        assert_eq!(reading(&mut busy, &[(2000, 0, 3000)]), Some(0));
        assert_eq!(
            reading(&mut busy, &[(2500, 1500, 1500), (2600, 3000, 1500), (3000, 3000, 1500)]),
            Some(120_000)
        );
    }

    #[test]
    fn a_replaced_queue_restarts_the_measurement() {
        let mut busy = BusyRate::default();
        assert_eq!(
            reading(&mut busy, &[(0, 1_000_000, 10), (500, 1_100_000, 10), (1000, 1_200_000, 10)]),
            Some(1_600_000)
        );
        assert_eq!(reading(&mut busy, &[(1500, 0, 10), (2000, 1000, 10)]), None);
    }

    proptest::proptest! {
        #[test]
        fn no_counters_panic(samples in proptest::collection::vec((0..5000_u64, 0..u64::MAX, 0..9_u32), 1..50)) {
            let mut busy = BusyRate::default();
            for sample in samples {
                reading(&mut busy, &[sample]);
            }
        }
    }
}
