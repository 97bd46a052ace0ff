//! A table of link rates, each valid until the next row.

use ackclock_core::{Rate, Span, Time};

use super::{TraceError, playing};
use ackclock_link::Loss;
use ackclock_link::pieces::work_at;

/// One row of rate, delay and loss, valid until the next row starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Start time of the row, counted from the start of the recording.
    pub begins: Span,
    /// Rate of the link during this row; zero in an outage.
    pub rate: Rate,
    /// One-way delay of the link during this row.
    pub delay: Span,
    /// Probability that the link loses a packet during this row.
    pub loss: Loss,
}

/// Rows of a recording in order of time, from time zero on, and the length of one pass through the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    rows: Vec<Sample>,
    length: Span,
}

impl Samples {
    /// Creates a table of rows; `length` is the end time of the last row.
    ///
    /// # Errors
    /// Fails if the table has no rows, times that do not increase from zero to the end, or only zero rates.
    pub fn new(rows: Vec<Sample>, length: Span) -> Result<Self, TraceError> {
        if rows.first().is_none_or(|row| row.begins != Span::ZERO) {
            return Err(TraceError::whole("there is no row at the start"));
        }
        let ends = rows.iter().skip(1).map(|row| row.begins).chain([length]);
        if let Some((row, end)) = rows.iter().zip(ends).find(|(row, end)| row.begins >= *end) {
            return Err(TraceError::whole(format!(
                "a row at {} is followed by {end}: times increase",
                row.begins
            )));
        }
        if rows.iter().all(|row| row.rate == Rate::ZERO) {
            return Err(TraceError::whole("every rate is zero: nothing would ever be delivered"));
        }
        Ok(Self { rows, length })
    }

    /// Rows of the recording, in order of time.
    pub fn rows(&self) -> &[Sample] {
        &self.rows
    }

    /// Length of one pass through the recording.
    pub fn length(&self) -> Span {
        self.length
    }

    /// End time of the row with this index.
    pub fn end(&self, index: usize) -> Span {
        self.rows.get(index + 1).map_or(self.length, |next| next.begins)
    }

    /// Capacity of one pass through the recording, in nanobits.
    pub(super) fn work(&self) -> u128 {
        self.work_until(self.length)
    }

    /// Capacity up to `now` in nanobits, with the recording played in a loop.
    pub(super) fn work_by(&self, now: Time) -> u128 {
        let (plays, offset) = playing(self.length, now);
        u128::from(plays) * self.work() + self.work_until(offset)
    }

    /// Capacity in nanobits from the start to an offset, which is at most the length of the recording.
    fn work_until(&self, offset: Span) -> u128 {
        let work = |(index, row): (usize, &Sample)| {
            work_at(row.rate, self.end(index).min(offset).saturating_sub(row.begins))
        };
        self.rows.iter().enumerate().map(work).sum()
    }

    pub(super) fn mean_rate(&self) -> Rate {
        Rate::from_bps_f64(self.work() as f64 / self.length.as_nanos() as f64)
    }

    /// Index of the row valid at an offset, which is below the length of the recording.
    pub(super) fn index_at(&self, offset: Span) -> usize {
        self.rows.partition_point(|row| row.begins <= offset) - 1
    }
}

/// Position in a recording that is played in a loop; the position only moves forward.
#[derive(Debug)]
pub(super) struct Playhead {
    pub(super) samples: Samples,
    /// Start time of the current pass through the recording.
    begun: Time,
    index: usize,
}

impl Playhead {
    pub(super) const fn new(samples: Samples) -> Self {
        Self { samples, begun: Time::ZERO, index: 0 }
    }

    /// Moves the position to `now`, which never decreases. Returns the row valid at `now`, and its end time.
    pub(super) fn seek(&mut self, now: Time) -> (Sample, Time) {
        let length = self.samples.length;
        if now >= self.begun + length {
            self.begun += length * (now.since(self.begun).as_nanos() / length.as_nanos());
            self.index = 0;
        }
        let offset = now.since(self.begun);
        if self.samples.end(self.index) <= offset {
            self.index = self.samples.index_at(offset);
        }
        (self.samples.rows[self.index], self.begun + self.samples.end(self.index))
    }

    /// Row valid at `now`, and its end time; `now` may be any instant.
    pub(super) fn at(&self, now: Time) -> (Sample, Time) {
        let (_, offset) = playing(self.samples.length, now);
        let index = self.samples.index_at(offset);
        (self.samples.rows[index], now + self.samples.end(index).saturating_sub(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rows: &[(u64, u64)], length_ms: u64) -> Samples {
        let row = |&(ms, kbps): &(u64, u64)| Sample {
            begins: Span::from_millis(ms),
            rate: Rate::from_bps(kbps * 1000),
            delay: Span::ZERO,
            loss: Loss::NONE,
        };
        Samples::new(rows.iter().map(row).collect(), Span::from_millis(length_ms)).unwrap()
    }

    #[test]
    fn opportunities_come_when_1500_bytes_are_carried() {
        // 12000 bits take 10 ms at 1200 kbit/s: opportunities at 10 and 20 ms, and 5 ms of the third before an outage
        // of 100 ms. Its second half takes 10 ms at 600 kbit/s, so it is at 135 ms, and the next one 20 ms later at 155
        // ms. With another quarter of an opportunity there are four in 160 ms, the last at the end.
        let opportunities = samples(&[(0, 1200), (25, 0), (125, 600)], 160).opportunities().unwrap();
        assert_eq!(opportunities.millis(), [10, 20, 135, 160]);
        assert!(samples(&[(0, 1_000_000_000_000)], 3_600_000).opportunities().is_err());
    }

    #[test]
    fn a_conversion_keeps_the_mean_rate_to_half_an_opportunity() {
        for (kbps, length_ms, count) in
            [(1200, 100, 10), (1200, 104, 10), (1200, 106, 11), (3, 10_000, 2), (1, 1000, 1)]
        {
            let opportunities = samples(&[(0, kbps)], length_ms).opportunities().unwrap();
            assert_eq!(opportunities.millis().len(), count, "{kbps} kbit/s for {length_ms} ms");
            assert_eq!(opportunities.length(), Span::from_millis(length_ms));
        }
    }

    #[test]
    fn a_recording_plays_again_and_again() {
        let mut playhead = Playhead::new(samples(&[(0, 100), (10, 200)], 30));
        let ms = |n: u64| Time::ZERO + Span::from_millis(n);
        for (now, kbps, until) in
            [(0, 100, 10), (10, 200, 30), (30, 100, 40), (95, 100, 100), (100, 200, 120)]
        {
            let (row, end) = playhead.seek(ms(now));
            assert_eq!((row.rate.as_bps(), end), (kbps * 1000, ms(until)), "at {now} ms");
            assert_eq!(playhead.at(ms(now)), (row, end));
        }
    }
}
