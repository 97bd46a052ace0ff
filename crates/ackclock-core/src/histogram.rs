//! Compact histograms of time spans with bounded relative error.
//!
//! Buckets are logarithmic, 32 per octave, so percentiles are accurate to 1.6 %. Memory is allocated only for the
//! octaves in use (128 bytes each). The RTTs of a flow need well under 1 KiB, whereas a general HDR histogram takes 10
//! KiB at this precision.

use crate::{Span, prefetch};

const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;

/// Histogram of time spans with an exact mean and percentiles accurate to 1.6 %.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Counts of the buckets of consecutive octaves, starting with `first_octave`; each octave has [`SUB`] buckets.
    counts: Vec<u32>,
    first_octave: u32,
    /// Index of the bucket of the last recorded span.
    last: u32,
    count: u64,
    sum: u128,
}

impl Histogram {
    /// Adds one span to the histogram.
    #[inline(always)]
    pub fn record(&mut self, span: Span) {
        let nanos = span.as_nanos();
        self.count += 1;
        self.sum += u128::from(nanos);
        let (octave, sub) = bucket(nanos);
        let index = (octave.wrapping_sub(self.first_octave) as usize).wrapping_mul(SUB).wrapping_add(sub);
        match self.counts.get_mut(index) {
            Some(count) => {
                *count = count.saturating_add(1);
                self.last = index as u32;
            }
            None => self.record_beyond(octave, sub),
        }
    }

    /// Adds `times` equal spans to the histogram.
    pub fn record_times(&mut self, span: Span, times: u32) {
        let Some(more) = times.checked_sub(1) else { return };
        self.record(span);
        let (octave, sub) = bucket(span.as_nanos());
        let at = (octave - self.first_octave) as usize * SUB + sub;
        self.counts[at] = self.counts[at].saturating_add(more);
        self.count += u64::from(more);
        self.sum += u128::from(span.as_nanos()) * u128::from(more);
    }

    /// Prefetches the bucket of the last recorded span.
    #[inline]
    pub fn prefetch(&self) {
        prefetch::element(&self.counts, self.last as usize);
    }

    /// Counts a span in an octave that has no buckets yet.
    #[cold]
    fn record_beyond(&mut self, octave: u32, sub: usize) {
        if self.counts.is_empty() {
            self.first_octave = octave;
        }
        if octave < self.first_octave {
            let missing = (self.first_octave - octave) as usize * SUB;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first_octave = octave;
        }
        let index = (octave - self.first_octave) as usize * SUB + sub;
        if index >= self.counts.len() {
            let whole_octaves = ((octave - self.first_octave) as usize + 1) * SUB;
            self.counts.reserve_exact(whole_octaves - self.counts.len());
            self.counts.resize(whole_octaves, 0);
        }
        self.counts[index] = self.counts[index].saturating_add(1);
    }

    /// Number of recorded spans.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all recorded spans, ns.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Exact mean of the recorded spans; `None` if the histogram is empty.
    pub fn mean(&self) -> Option<Span> {
        if self.count == 0 {
            None
        } else {
            Some(Span::from_nanos((self.sum / u128::from(self.count)) as u64))
        }
    }

    /// Quantile `q` (0 to 1) of the recorded spans, as the middle of its bucket; `None` if the histogram is empty.
    pub fn quantile(&self, q: f64) -> Option<Span> {
        let rank = libm::ceil(q * self.count as f64).max(1.0) as u64;
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= rank {
                return Some(self.middle(index));
            }
        }
        None
    }

    /// Share of recorded spans shorter than `span`, which is rounded to the middle of its bucket; `None` if the
    /// histogram is empty.
    pub fn share_below(&self, span: Span) -> Option<f64> {
        let below = |&(index, _): &(usize, &u32)| self.middle(index) < span;
        let shorter: u64 =
            self.counts.iter().enumerate().filter(below).map(|(_, &count)| u64::from(count)).sum();
        (self.count > 0).then(|| shorter as f64 / self.count as f64)
    }

    /// Adds the counts of another histogram to this histogram.
    pub fn merge(&mut self, other: &Self) {
        let (count, sum) = (self.count + other.count, self.sum + other.sum);
        for (index, &times) in other.counts.iter().enumerate() {
            self.record_times(other.middle(index), times);
        }
        (self.count, self.sum) = (count, sum);
    }

    fn middle(&self, index: usize) -> Span {
        let octave = self.first_octave + (index / SUB) as u32;
        let sub = (index % SUB) as u64;
        if octave == 0 {
            return Span::from_nanos(sub);
        }
        let width = 1u64 << (octave - 1);
        Span::from_nanos((SUB as u64 + sub) * width + width / 2)
    }
}

/// Returns the octave and bucket of a time. Octave 0 holds 0 to 31 ns exactly; octave k >= 1 holds 32 * 2^(k-1) .. 32 *
/// 2^k ns in 32 equal buckets.
fn bucket(nanos: u64) -> (u32, usize) {
    if nanos < SUB as u64 {
        return (0, nanos as usize);
    }
    let octave = 63 - nanos.leading_zeros() - SUB_BITS + 1;
    (octave, (nanos >> (octave - 1)) as usize - SUB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_within_two_percent_of_the_sample(mut nanos in prop::collection::vec(0u64..10_000_000_000, 1..300), q in 0.0f64..1.0) {
            let mut histogram = Histogram::default();
            for &value in &nanos {
                histogram.record(Span::from_nanos(value));
            }
            nanos.sort_unstable();
            let rank = ((q * nanos.len() as f64).ceil() as usize).max(1);
            let exact = nanos[rank - 1] as f64;
            let got = histogram.quantile(q).unwrap().as_nanos() as f64;
            prop_assert!((got - exact).abs() <= exact * 0.017 + 1.0, "{} against {}", got, exact);
        }

        #[test]
        fn merging_is_counting_all_together(a in prop::collection::vec(0u64..1_000_000, 0..50), b in prop::collection::vec(0u64..1_000_000, 0..50)) {
            let fill = |values: &[u64]| {
                let mut histogram = Histogram::default();
                values.iter().for_each(|&v| histogram.record(Span::from_nanos(v)));
                histogram
            };
            let mut merged = fill(&a);
            merged.merge(&fill(&b));
            let all = fill(&[a, b].concat());
            prop_assert_eq!(merged.count(), all.count());
            prop_assert_eq!(merged.mean(), all.mean());
            prop_assert_eq!(merged.quantile(0.5), all.quantile(0.5));
        }
    }

    #[test]
    fn a_span_recorded_several_times_is_as_many_spans() {
        let (mut at_once, mut each) = (Histogram::default(), Histogram::default());
        for (millis, times) in [(70, 3), (2, 0), (5, 1), (900, 40)] {
            at_once.record_times(Span::from_millis(millis), times);
            (0..times).for_each(|_| each.record(Span::from_millis(millis)));
        }
        assert_eq!((at_once.count(), at_once.sum()), (each.count(), each.sum()));
        assert!([0.0, 0.05, 0.1, 0.5, 1.0].into_iter().all(|q| at_once.quantile(q) == each.quantile(q)));
    }

    #[test]
    fn an_empty_histogram_has_no_numbers() {
        assert_eq!(Histogram::default().mean(), None);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
