//! The largest delivery rate of the last ten rounds (draft section 4.1.1.4, BtlBw filter).

use ackclock_core::Rate;

/// BBRBtlBwFilterLen, rounds.
const ROUNDS: usize = 10;

/// A maximum over the last [`ROUNDS`] rounds in which it was fed. Rounds without samples forget nothing by themselves.
#[derive(Clone, Debug, Default)]
pub(super) struct MaxFilter {
    /// The largest of each round, by round number modulo [`ROUNDS`].
    largest: [Rate; ROUNDS],
    /// The latest round that was fed.
    round: u64,
}

impl MaxFilter {
    /// Takes in a sample of `round`; rounds do not go back.
    pub(super) fn update(&mut self, round: u64, rate: Rate) {
        let passed = round.saturating_sub(self.round).min(ROUNDS as u64);
        for ago in 0..passed {
            self.largest[((round - ago) % ROUNDS as u64) as usize] = Rate::ZERO;
        }
        self.round = round;
        let slot = &mut self.largest[(round % ROUNDS as u64) as usize];
        *slot = rate.max(*slot);
    }

    /// The largest sample; zero where there was none.
    pub(super) fn max(&self) -> Rate {
        self.largest.iter().copied().max().unwrap_or(Rate::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_maximum_of_the_last_ten_rounds(samples in prop::collection::vec((0u64..4, 0u64..100), 1..200)) {
            let mut filter = MaxFilter::default();
            let mut all: Vec<(u64, u64)> = Vec::new();
            let mut round = 0;
            for (step, rate) in samples {
                round += step;
                filter.update(round, Rate::from_bps(rate));
                all.push((round, rate));
                let expected = all.iter().filter(|(at, _)| at + 10 > round).map(|(_, rate)| *rate).max();
                prop_assert_eq!(filter.max().as_bps(), expected.unwrap());
            }
        }
    }
}
