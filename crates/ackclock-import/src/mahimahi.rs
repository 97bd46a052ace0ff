//! The file format of mahimahi: one line per opportunity, with its time in milliseconds.

use std::fmt;

use ackclock_core::{Rate, Span, Time};

use super::samples::{Sample, Samples};
use super::{TraceError, excerpt, lines, playing};
use ackclock_link::Loss;
use ackclock_link::pieces::NANOBITS_PER_BYTE;

/// Instants at which 1500 bytes may leave, in non-decreasing milliseconds from the start. The recording restarts at the
/// last instant, which is therefore also its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    millis: Vec<u32>,
}

impl Opportunities {
    /// Bytes per opportunity, including headers.
    pub const BYTES: u64 = 1500;

    /// Creates a recording from the times of its opportunities, in ms.
    ///
    /// # Errors
    /// Fails if the list of times is empty or decreasing, or its last time is zero.
    pub fn new(millis: Vec<u32>) -> Result<Self, TraceError> {
        if let Some(index) = (1..millis.len()).find(|&index| millis[index] < millis[index - 1]) {
            return Err(TraceError::at(
                index,
                format!("{} after {}: times never decrease", millis[index], millis[index - 1]),
            ));
        }
        match millis.last() {
            None => Err(TraceError::whole("there is no opportunity")),
            Some(0) => {
                Err(TraceError::whole("all opportunities are at 0: a recording must last longer than 0 ms"))
            }
            Some(_) => Ok(Self { millis }),
        }
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, TraceError> {
        let parse = |(index, line): (usize, Result<&str, TraceError>)| {
            let line = line?;
            let digits = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| line.parse().ok()).flatten().ok_or_else(|| {
                let found = excerpt(line);
                let help = if line.starts_with('#') { " (mahimahi files have no comments)" } else { "" };
                TraceError::at(
                    index,
                    format!("`{found}` is not a time: a line is a whole number of ms below 2^32{help}"),
                )
            })
        };
        let millis: Vec<u32> = lines(bytes).map(parse).collect::<Result<_, _>>()?;
        match millis.first() {
            Some(first @ EPOCH..) => Err(TraceError::at(
                0,
                format!(
                    "{first} looks like seconds since 1970: times are ms from the start of the recording"
                ),
            )),
            _ => Self::new(millis),
        }
    }

    /// Times of the opportunities, in milliseconds.
    pub fn millis(&self) -> &[u32] {
        &self.millis
    }

    /// Length of one pass through the recording.
    pub fn length(&self) -> Span {
        Span::from_millis(self.millis.last().copied().unwrap_or(0).into())
    }

    pub(super) fn mean_rate(&self) -> Rate {
        let bits = (self.millis.len() as u64 * Self::BYTES * 8) as f64;
        Rate::from_bps_f64(bits / self.length().as_secs_f64())
    }

    /// Number of opportunities up to and including `offset`, which is at most the length of the recording.
    pub(super) fn until(&self, offset: Span) -> usize {
        self.millis.partition_point(|&millis| Span::from_millis(millis.into()) <= offset)
    }

    /// Number of opportunities up to `now` in a recording that is played in a loop.
    pub(super) fn by(&self, now: Time) -> u64 {
        let (plays, offset) = playing(self.length(), now);
        plays * self.millis.len() as u64 + self.until(offset) as u64
    }

    /// Number of opportunities in each bin of width `bin`; the last bin may be shorter.
    pub(super) fn counts(&self, bin: Span) -> Vec<u32> {
        let bins = self.length().as_nanos().div_ceil(bin.as_nanos());
        let mut counts = vec![0; bins as usize];
        for &millis in &self.millis {
            let index = Span::from_millis(millis.into()).as_nanos() / bin.as_nanos();
            // The last opportunity is at the end of the recording and counts in the last bin.
            counts[index.min(bins - 1) as usize] += 1;
        }
        counts
    }

    /// Converts the recording to rates, one per bin of width `bin`.
    pub(super) fn samples(&self, bin: Span) -> Result<Samples, TraceError> {
        if bin < Span::from_millis(1) {
            return Err(TraceError::whole(format!("a bin of {bin} is shorter than 1 ms")));
        }
        let bins = self.length().as_nanos().div_ceil(bin.as_nanos());
        if bins > MOST_BINS {
            return Err(TraceError::whole(format!(
                "it has {bins} bins of {bin}; at most {MOST_BINS} are counted"
            )));
        }
        let row = |(index, rate)| {
            let begins = bin * index as u64;
            Sample { begins, rate, delay: Span::ZERO, loss: Loss::NONE }
        };
        Samples::new(self.rates(bin).enumerate().map(row).collect(), self.length())
    }

    /// Rate in each bin of width `bin`; the last bin may be shorter.
    pub(super) fn rates(&self, bin: Span) -> impl Iterator<Item = Rate> {
        let length = self.length();
        self.counts(bin).into_iter().enumerate().map(move |(index, count)| {
            let lasts = bin.min(length.saturating_sub(bin * index as u64)).as_secs_f64();
            Rate::from_bps_f64((u64::from(count) * Self::BYTES * 8) as f64 / lasts)
        })
    }
}

impl Samples {
    /// Converts the rates to one opportunity per 1500 bytes, at the next whole millisecond. The last opportunity is at
    /// the end and marks the length. The last opportunity may stand for less than 1500 bytes if that changes the mean
    /// rate by less than 0.1 %. If the change is larger, the number of opportunities is rounded, and the last
    /// opportunity is moved to the end.
    pub(super) fn opportunities(&self) -> Result<Opportunities, TraceError> {
        const MOST: u128 = 100_000_000;
        let each = u128::from(Opportunities::BYTES * NANOBITS_PER_BYTE);
        let whole = self.work() / each;
        let count = match self.work() % each {
            0 => whole,
            left if whole >= 1000 || 2 * left > each => whole + 1,
            _ => whole.max(1),
        };
        if count > MOST {
            return Err(TraceError::whole(format!("it has more than {MOST} opportunities")));
        }
        let too_long = |_| TraceError::whole("it is longer than 2^32 ms");
        let (mut millis, mut carried) = (Vec::new(), 0);
        for (index, row) in self.rows().iter().enumerate() {
            let (rate, lasts) = (u128::from(row.rate.as_bps()), self.end(index).saturating_sub(row.begins));
            let until = carried + rate * u128::from(lasts.as_nanos());
            for number in carried / each + 1..=(until / each).min(count - 1) {
                let after = (number * each - carried).div_ceil(rate);
                let instant = (u128::from(row.begins.as_nanos()) + after).div_ceil(1_000_000);
                millis.push(u32::try_from(instant).map_err(too_long)?);
            }
            carried = until;
        }
        millis.push(u32::try_from(self.length().as_nanos().div_ceil(1_000_000)).map_err(too_long)?);
        Opportunities::new(millis)
    }
}

/// Smallest first time in a file that is read as seconds since 1970: the year 2001. Read as milliseconds, a time since
/// 1970 would be an outage of 11 days.
const EPOCH: u32 = 1_000_000_000;

/// Maximum number of bins: at about fifteen bytes a row, a CSV file with more bins would exceed the size limit for
/// reading.
const MOST_BINS: u64 = 20_000_000;

impl fmt::Display for Opportunities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.millis.iter().try_for_each(|millis| writeln!(f, "{millis}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8]) -> Result<Vec<u32>, String> {
        Opportunities::parse(text).map(|o| o.millis).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_is_a_time_a_line() {
        assert_eq!(parse(b"0\n5\n5\r\n12"), Ok(vec![0, 5, 5, 12]));
        assert_eq!(Opportunities::parse(b"0\n5\n5\n12\n").unwrap().to_string(), "0\n5\n5\n12\n");
    }

    #[test]
    fn bad_files_are_refused_with_their_line() {
        for (text, part) in [
            (&b"5\n4\n"[..], "line 2: 4 after 5"),
            (b"1\n\n2\n", "line 2: `` is not a time"),
            (b"1\n-2\n", "line 2: `-2`"),
            (b"1\n2.5\n", "line 2: `2.5`"),
            (b"1\n4294967296\n", "below 2^32"),
            (b"1\n\xff\xfe\n", "line 2: it is not text"),
            (b"0\n0\n", "longer than 0 ms"),
            (b"\n", "line 1"),
            (b"1700000000\n1700000001\n", "line 1: 1700000000 looks like seconds since 1970"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn opportunities_are_counted_by_bins() {
        // Three opportunities of 12000 bits in the first second are 36 kbit/s; one opportunity in the remaining half
        // second is 24 kbit/s.
        let samples =
            Opportunities::new(vec![0, 10, 999, 1500]).unwrap().samples(Span::from_secs(1)).unwrap();
        let rates: Vec<u64> = samples.rows().iter().map(|row| row.rate.as_bps()).collect();
        assert_eq!((rates, samples.length()), (vec![36_000, 24_000], Span::from_millis(1500)));
    }

    #[test]
    fn the_rate_of_a_stretch_that_ends_early_is_over_what_there_is_of_it() {
        let bits = |text: &[u8], bin| {
            let rates = Opportunities::parse(text).unwrap();
            rates.rates(Span::from_millis(bin)).map(Rate::as_bps).collect::<Vec<_>>()
        };
        // One opportunity in one millisecond is 12 Mbit/s. The second recording has three opportunities in 150 ms, one
        // of them in the last 50 ms.
        assert_eq!(bits(b"1\n", 100), [12_000_000]);
        assert_eq!(bits(b"50\n99\n150\n", 100), [240_000, 240_000]);
    }
}
