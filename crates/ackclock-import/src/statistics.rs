//! Statistics of a recording.

use ackclock_core::{Rate, Span};

use super::{Opportunities, Samples};

/// Mean, percentiles and outages of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Length of one pass through the recording.
    pub length: Span,
    /// Mean rate of the recording.
    pub mean: Rate,
    /// Rate in each complete second, in ascending order; empty for a recording shorter than a second.
    pub seconds: Vec<Rate>,
    /// Longest time without transmission in the recording.
    pub longest_gap: Span,
    /// Lengths of all gaps of at least one second without transmission, in order of time.
    pub outages: Vec<Span>,
}

/// Minimum length of a gap that counts as an outage.
const OUTAGE: Span = Span::from_secs(1);
const SECOND: Span = Span::from_secs(1);

impl Statistics {
    /// Rate that is not exceeded in a share `q` (0 to 1) of the seconds; `None` without a complete second.
    pub fn percentile(&self, q: f64) -> Option<Rate> {
        let last = self.seconds.len().checked_sub(1)?;
        self.seconds.get(libm::round(q * last as f64) as usize).copied()
    }

    /// Share of the recording's seconds in which the link transmitted nothing.
    pub fn share_at_zero(&self) -> f64 {
        let zero = self.seconds.partition_point(|&rate| rate == Rate::ZERO);
        if self.seconds.is_empty() { 0.0 } else { zero as f64 / self.seconds.len() as f64 }
    }

    /// Mean length of the outages; `None` without outages.
    pub fn mean_outage(&self) -> Option<Span> {
        let sum = self.outages.iter().fold(Span::ZERO, |sum, &outage| sum + outage);
        (!self.outages.is_empty()).then(|| Span::from_nanos(sum.as_nanos() / self.outages.len() as u64))
    }

    pub(super) fn of_opportunities(opportunities: &Opportunities) -> Self {
        let millis = opportunities.millis();
        let length = opportunities.length();
        let whole = (length.as_nanos() / SECOND.as_nanos()) as usize;
        let mut seconds: Vec<Rate> = opportunities.counts(SECOND)[..whole]
            .iter()
            .map(|&count| Rate::from_bps(u64::from(count) * Opportunities::BYTES * 8))
            .collect();
        seconds.sort_unstable();
        // The recording restarts at its last instant, so the time before the first opportunity is a gap too.
        let before = std::iter::once(0).chain(millis.iter().copied());
        let gaps = before.zip(millis).map(|(before, &after)| Span::from_millis((after - before).into()));
        Self::new(length, opportunities.mean_rate(), seconds, gaps)
    }

    pub(super) fn of_samples(samples: &Samples) -> Self {
        let whole = (samples.length().as_nanos() / SECOND.as_nanos()) as usize;
        let mut bits = vec![0.0; whole];
        let mut gaps = vec![Span::ZERO];
        for (index, row) in samples.rows().iter().enumerate() {
            let (mut at, end) = (row.begins, samples.end(index));
            match gaps.last_mut() {
                Some(gap) if row.rate == Rate::ZERO => *gap += end.saturating_sub(at),
                _ => gaps.push(Span::ZERO),
            }
            while at < end {
                let second = at.as_nanos() / SECOND.as_nanos();
                let until = end.min(SECOND * (second + 1));
                if let Some(sum) = bits.get_mut(second as usize) {
                    *sum += row.rate.as_bps() as f64 * until.saturating_sub(at).as_secs_f64();
                }
                at = until;
            }
        }
        let mut seconds: Vec<Rate> = bits.into_iter().map(Rate::from_bps_f64).collect();
        seconds.sort_unstable();
        Self::new(samples.length(), samples.mean_rate(), seconds, gaps.into_iter())
    }

    fn new(length: Span, mean: Rate, seconds: Vec<Rate>, gaps: impl Iterator<Item = Span>) -> Self {
        let mut longest_gap = Span::ZERO;
        let outages =
            gaps.inspect(|&gap| longest_gap = longest_gap.max(gap)).filter(|&gap| gap >= OUTAGE).collect();
        Self { length, mean, seconds, longest_gap, outages }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Recording;
    use super::*;

    #[test]
    fn both_forms_of_one_link_have_the_same_statistics() {
        // The recording of 10 s has one opportunity every 10 ms, which is 1200 kbit/s, and none from 2 s to 4.5 s.
        let times = (1..=200).chain(451..=1000).map(|n| format!("{}\n", 10 * n)).collect::<String>();
        let rates = "time_s,rate_kbps\n0,1200\n2,0\n4.5,1200\n10,\n";
        for text in [times.as_str(), rates] {
            let statistics = Recording::parse(text.as_bytes()).unwrap().statistics();
            assert_eq!(statistics.length, Span::from_secs(10));
            assert_eq!(statistics.mean, Rate::from_bps(900_000), "7.5 s of 10 at 1200 kbit/s");
            assert_eq!(statistics.percentile(0.5), Some(Rate::from_bps(1_200_000)));
            assert_eq!(statistics.outages.len(), 1);
            assert!(statistics.longest_gap.abs_diff(Span::from_millis(2500)) <= Span::from_millis(10));
        }
    }
}
