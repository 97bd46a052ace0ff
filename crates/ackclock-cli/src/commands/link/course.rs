//! Course of a running link over time, for its report. Memory is limited however long the link runs.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ackclock_core::Time;
use ackclock_core::results::LinkCounts;
use ackclock_live::{Remote, Summary};
use ackclock_scenario::Series;

/// Time between two samples of a short link.
const INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of samples. If there are more, every second one is dropped, and the interval doubles.
const MOST: usize = 1000;

/// Sampler of a running link.
pub(super) struct Course {
    /// Dropping this stops the sampler.
    stop: mpsc::Sender<()>,
    samples: JoinHandle<Samples>,
}

impl Course {
    /// Starts to sample the counters of a link.
    pub(super) fn begin(remote: Remote) -> Self {
        let (stop, stopped) = mpsc::channel();
        Self { stop, samples: thread::spawn(move || sample(&remote, &stopped)) }
    }

    /// Stops sampling and returns the time series of the link, with the columns of `ackclock run --series`. The series
    /// is empty if the link does not answer.
    pub(super) fn end(self) -> Series {
        drop(self.stop);
        self.samples.join().unwrap_or_default().series()
    }
}

fn sample(remote: &Remote, stopped: &mpsc::Receiver<()>) -> Samples {
    let mut samples = Samples::default();
    let mut interval = INTERVAL;
    loop {
        let end = stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout);
        let Some(summary) = remote.ask(|plane, _| plane.summary()) else { return samples };
        if samples.add(Sample::of(&summary)) {
            interval *= 2;
        }
        if end {
            return samples;
        }
    }
}

/// Counters of a link since its start, one sample after another.
#[derive(Default)]
struct Samples(Vec<Sample>);

/// Counters of both directions at one time, in the order of [`Direction::BOTH`](ackclock_link::Direction::BOTH).
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: Time,
    ways: [Way; 2],
}

/// Counters of one direction since the start of the link.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// Capacity of the link, bits; NaN if it is unlimited.
    capacity: f64,
    /// Delivered payload, bytes.
    delivered: u64,
    drops: u64,
    /// Number of packets whose transmission has started, and the sum of their queueing delays, ns.
    waits: (u64, u128),
}

impl Sample {
    fn of(summary: &Summary) -> Self {
        let Summary { now, links, delivered, .. } = summary;
        let way = |at: usize| {
            let LinkCounts { capacity_bps, drops, waits, .. } = &links[at];
            Way {
                capacity: capacity_bps.unwrap_or(f64::NAN) * now.as_secs_f64(),
                delivered: delivered[at],
                drops: *drops,
                waits: (waits.count(), waits.sum()),
            }
        };
        Self { at: *now, ways: [way(0), way(1)] }
    }
}

impl Way {
    /// Values of the time since `before`: capacity (bit/s), delivered payload (bytes), drops and mean queueing delay
    /// (ms). The values are those of [`NAMES`].
    fn since(&self, before: &Self, seconds: f64) -> [f64; 4] {
        let waited = (self.waits.1 - before.waits.1) as f64 / (self.waits.0 - before.waits.0) as f64 / 1e6;
        // Goodput is the difference of two rows, so delivered bytes are the total.
        [
            (self.capacity - before.capacity) / seconds,
            self.delivered as f64,
            (self.drops - before.drops) as f64,
            waited,
        ]
    }
}

/// Columns of each direction.
const NAMES: [&str; 4] = ["rate_bps", "delivered_bytes", "drops", "queue_ms"];

impl Samples {
    /// Adds a sample; returns true if the interval between samples has doubled.
    fn add(&mut self, sample: Sample) -> bool {
        self.0.push(sample);
        if self.0.len() < MOST {
            return false;
        }
        let mut keep = false;
        self.0.retain(|_| {
            keep = !keep;
            !keep
        });
        true
    }

    fn series(&self) -> Series {
        let mut columns = vec![("t_s".to_owned(), Vec::new())];
        let names = ["edge", "edge.up"].into_iter().flat_map(|way| NAMES.map(|name| format!("{way}.{name}")));
        columns.extend(names.map(|name| (name, Vec::new())));
        let mut before = &Sample::default();
        for sample in &self.0 {
            let seconds = sample.at.since(before.at).as_secs_f64();
            let ways = sample.ways.iter().zip(&before.ways).flat_map(|(way, then)| way.since(then, seconds));
            let row = [sample.at.as_secs_f64()].into_iter().chain(ways);
            columns.iter_mut().zip(row).for_each(|((_, values), value)| values.push(value));
            before = sample;
        }
        Series { columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Span;

    /// A sample of a link of 8 Mbit/s that delivers 1000 bytes and one packet a millisecond, each queued for 5 ms.
    fn at(ms: u64) -> Sample {
        let way = Way {
            capacity: 8e3 * ms as f64,
            delivered: 1000 * ms,
            drops: ms / 1000,
            waits: (ms, 5_000_000 * u128::from(ms)),
        };
        Sample { at: Time::ZERO + Span::from_millis(ms), ways: [way, Way { capacity: f64::NAN, ..way }] }
    }

    #[test]
    fn a_row_is_what_the_time_since_the_row_before_added() {
        let mut samples = Samples::default();
        [at(50), at(2050)].into_iter().for_each(|sample| assert!(!samples.add(sample)));
        let series = samples.series();
        let column = |name| series.column(name).unwrap();
        assert_eq!(column("t_s"), [0.05, 2.05]);
        assert_eq!(column("edge.rate_bps"), [8e6, 8e6]);
        assert_eq!(column("edge.delivered_bytes"), [50e3, 2050e3]);
        assert_eq!((column("edge.drops"), column("edge.queue_ms")), (&[0.0, 2.0][..], &[5.0, 5.0][..]));
        assert!(column("edge.up.rate_bps").iter().all(|rate| rate.is_nan()));
    }

    #[test]
    fn a_long_link_takes_no_more_memory_than_a_short_one() {
        let mut samples = Samples::default();
        let (mut now, mut interval, mut doubled) = (0, 50, 0);
        for _ in 0..5000 {
            now += interval;
            if samples.add(at(now)) {
                (interval, doubled) = (2 * interval, doubled + 1);
            }
            assert!(samples.0.len() < MOST);
        }
        assert_eq!(doubled, 9);
        let series = samples.series();
        let (times, drops) = (series.column("t_s").unwrap(), series.column("edge.drops").unwrap());
        assert_eq!((times.len(), *times.last().unwrap()), (samples.0.len(), now as f64 / 1e3));
        assert_eq!(drops.iter().sum::<f64>(), (now / 1000) as f64, "no drop is lost");
    }
}
