//! Largest delivery rate of the last ten rounds (draft section 4.1.1.4, BtlBw filter).
//!
//! Kathleen Nichols' windowed filter, as in Linux, stores the best sample and two later samples as fallbacks. A maximum
//! expires ten rounds after it was measured. The next stored sample may be less than the true maximum of the remaining
//! rounds.

use ackclock_core::Rate;

/// BBRBtlBwFilterLen: length of the filter window, rounds.
const ROUNDS: u64 = 10;

/// A delivery rate and the round in which it was measured.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    round: u64,
    rate: Rate,
}

/// Maximum delivery rate over the last [`ROUNDS`] rounds with samples. Samples do not expire in rounds without samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter {
    /// Largest sample of the window, and two later samples as fallbacks: from the second quarter and from the second
    /// half of the window.
    best: [Sample; 3],
}

impl MaxFilter {
    /// Adds a sample measured in round `round`; rounds must not decrease.
    pub(super) fn update(&mut self, round: u64, rate: Rate) {
        let new = Sample { round, rate };
        let [first, second, third] = self.best;
        if rate >= first.rate || round - third.round > ROUNDS {
            self.best = [new; 3];
            return;
        }
        if rate >= second.rate {
            self.best = [first, new, new];
        } else if rate >= third.rate {
            self.best[2] = new;
        }
        self.age(new);
    }

    /// Drops samples older than the window, and renews fallback samples that have become too old.
    fn age(&mut self, new: Sample) {
        let age = new.round - self.best[0].round;
        if age > ROUNDS {
            self.best = [self.best[1], self.best[2], new];
            if new.round - self.best[0].round > ROUNDS {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].round == self.best[0].round && age > ROUNDS / 4 {
            self.best = [self.best[0], new, new];
        } else if self.best[2].round == self.best[1].round && age > ROUNDS / 2 {
            self.best[2] = new;
        }
    }

    /// Largest rate in the window; zero if there is no sample.
    pub(super) fn max(&self) -> Rate {
        self.best[0].rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_maximum_lasts_for_ten_rounds_more_and_then_a_later_one_takes_its_place() {
        let mut filter = MaxFilter::default();
        let mut shown = Vec::new();
        for round in 1..=20 {
            // Delivery rates: 900 in the first round, 700 in the fifth, 500 in all other rounds.
            let rate = if round == 1 {
                900
            } else if round == 5 {
                700
            } else {
                500
            };
            filter.update(round, Rate::from_bps(rate));
            shown.push(filter.max().as_bps());
        }
        assert_eq!(shown[..11], [900; 11]);
        assert_eq!(shown[11..15], [700; 4]);
        assert_eq!(shown[15..], [500; 5]);
    }

    proptest! {
        #[test]
        fn it_lies_between_the_latest_sample_and_the_maximum_of_eleven_rounds(
            samples in prop::collection::vec((0u64..4, 0u64..100), 1..200),
        ) {
            let mut filter = MaxFilter::default();
            let mut round = 0;
            let mut all: Vec<(u64, u64)> = Vec::new();
            for (step, rate) in samples {
                round += step;
                filter.update(round, Rate::from_bps(rate));
                all.push((round, rate));
                let most = all.iter().filter(|(at, _)| at + ROUNDS >= round).map(|(_, rate)| *rate).max();
                prop_assert!(filter.max().as_bps() >= rate);
                prop_assert!(filter.max().as_bps() <= most.unwrap());
            }
        }
    }
}
