//! Times at which packets were queued for the link.

/// Union of intervals of time that end in rising order.
#[derive(Clone, Debug, Default)]
pub(super) struct Busy {
    /// Disjoint intervals in rising order, seconds.
    intervals: Vec<(f64, f64)>,
}

impl Busy {
    /// Adds an interval. An interval before all recent ones comes from packets out of order and is left out.
    pub(super) fn add(&mut self, mut begin: f64, mut end: f64) {
        if self.intervals.last().is_some_and(|last| end < last.0) {
            return;
        }
        while let Some(last) = self.intervals.pop_if(|last| begin <= last.1) {
            (begin, end) = (begin.min(last.0), end.max(last.1));
        }
        self.intervals.push((begin, end));
    }

    /// Share of each of `count` bins of `bin` seconds that is covered.
    pub(super) fn shares(&self, bin: f64, count: usize) -> Vec<f64> {
        let mut shares = vec![0.0; count];
        for &(begin, end) in &self.intervals {
            let first = (begin / bin).max(0.0) as usize;
            for (index, share) in shares.iter_mut().enumerate().skip(first) {
                let (left, right) = (index as f64 * bin, (index + 1) as f64 * bin);
                if left >= end {
                    break;
                }
                *share += (right.min(end) - left.max(begin)).max(0.0) / bin;
            }
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_intervals_count_once() {
        let mut busy = Busy::default();
        for (begin, end) in [(-0.5, 0.25), (0.5, 0.75), (0.6, 0.8), (2.0, 2.5), (0.7, 2.6), (0.1, 0.2)] {
            busy.add(begin, end);
        }
        let shares = busy.shares(1.0, 4);
        let expected = [0.25 + 0.5, 1.0, 0.6, 0.0];
        assert!(shares.iter().zip(expected).all(|(share, one)| (share - one).abs() < 1e-9), "{shares:?}");
    }
}
