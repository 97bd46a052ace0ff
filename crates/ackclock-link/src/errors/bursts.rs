//! A two-state channel, good or bad, whose state changes from interval to interval as a Markov chain.
//!
//! The state depends only on the number of the interval. The lengths of good and bad runs are drawn from geometric
//! distributions, so long pauses are skipped at no cost. Time is divided into epochs that are long enough for the chain
//! to forget its state within an epoch (to less than 2^-60). The first state of each epoch is therefore drawn
//! independently. The runs of an epoch are drawn from the epoch's first state, repeatedly, until they end in the first
//! state of the next epoch. Such runs have the distribution of the chain conditional on the first states of the two
//! epochs.

use ackclock_core::{Span, Stream, Streams, Time};

/// State of a channel in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BurstState {
    Good,
    Bad,
}

impl BurstState {
    const fn other(self) -> Self {
        match self {
            Self::Good => Self::Bad,
            Self::Bad => Self::Good,
        }
    }
}

/// Transition probabilities of a channel. The sum of the two probabilities is above 0 and at most 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    /// Probability that a good interval is followed by a bad interval.
    pub(super) to_bad: f64,
    /// Probability that a bad interval is followed by a good interval.
    pub(super) to_good: f64,
}

impl Chain {
    /// Long-run share of bad intervals.
    pub(super) fn share_bad(self) -> f64 {
        self.to_bad / (self.to_bad + self.to_good)
    }

    /// Number of intervals after which the chain has forgotten its state: (1 - to_bad - to_good)^n is below 2^-60.
    fn epoch(self) -> u64 {
        const FORGOTTEN: f64 = 42.0;
        const LEAST: u64 = 64;
        let fades = -libm::log1p(-(self.to_bad + self.to_good).min(1.0));
        // The conversion with `as` saturates, so a chain that hardly ever changes has a single epoch.
        (libm::ceil(FORGOTTEN / fades) as u64).clamp(LEAST, FOR_EVER)
    }
}

/// Number of intervals that exceeds any simulated time: a chain that remembers its state for longer has a single epoch.
const FOR_EVER: u64 = u64::MAX / 2;

/// State of a two-state channel over time.
#[derive(Debug)]
pub(super) struct Bursts {
    chain: Chain,
    /// Logarithms of the probability of staying good and of the probability of staying bad.
    stays: [f64; 2],
    interval: Span,
    /// Number of intervals in an epoch.
    length: u64,
    seed: u64,
    /// Number of the epoch whose runs are drawn.
    epoch: u64,
    first: BurstState,
    /// End of each run in the epoch, in intervals from the start of the epoch, exclusive. The last run extends beyond
    /// the end of the epoch.
    ends: Vec<u64>,
}

impl Bursts {
    /// Creates a channel with this chain, whose state may change at every multiple of `interval`.
    pub(super) fn new(chain: Chain, interval: Span, mut stream: Stream) -> Self {
        let stays = [chain.to_bad, chain.to_good].map(|leaves| libm::log1p(-leaves));
        let (length, seed) = (chain.epoch(), stream.bits());
        // The reserved capacity exceeds the number of runs in an epoch, which is mostly a dozen, and at most 64 for a
        // chain without memory.
        let ends = Vec::with_capacity(256);
        let mut this = Self { chain, stays, interval, length, seed, epoch: 0, first: BurstState::Good, ends };
        this.draw(0);
        this
    }

    /// State of the channel at an instant.
    pub(super) fn state(&mut self, at: Time) -> BurstState {
        let number = at.as_nanos() / self.interval.as_nanos();
        let (epoch, within) = (number / self.length, number % self.length);
        if epoch != self.epoch {
            self.draw(epoch);
        }
        let changes = self.ends.partition_point(|&end| end <= within);
        if changes.is_multiple_of(2) { self.first } else { self.first.other() }
    }

    /// Draws the runs of an epoch.
    fn draw(&mut self, epoch: u64) {
        let next = self.begins(epoch + 1);
        (self.epoch, self.first) = (epoch, self.begins(epoch));
        let mut stream = Streams::new(self.seed, epoch).stream("runs");
        // The first state of the next epoch has the same distribution as the last drawn state, so two trials are enough
        // on average.
        while self.run_through(&mut stream) != next && self.length < FOR_EVER {}
    }

    /// Draws the runs of the epoch from its first state on. Returns the state in which the next epoch would start.
    fn run_through(&mut self, stream: &mut Stream) -> BurstState {
        self.ends.clear();
        let (mut state, mut end) = (self.first, 0u64);
        loop {
            end = end.saturating_add(self.sojourn(state, stream));
            if end > self.length {
                return state;
            }
            self.ends.push(end);
            state = state.other();
        }
    }

    /// Number of intervals until the state changes: geometrically distributed, or endless if the state is never left.
    fn sojourn(&self, state: BurstState, stream: &mut Stream) -> u64 {
        let longer = libm::log(stream.unit()) / self.stays[state as usize];
        // The conversion with `as` saturates, so an endless run has the largest number of intervals.
        1u64.saturating_add(longer as u64)
    }

    /// Returns the first state of an epoch.
    fn begins(&self, epoch: u64) -> BurstState {
        let bad = Streams::new(self.seed, epoch).stream("begins").chance(self.chain.share_bad());
        if bad { BurstState::Bad } else { BurstState::Good }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Span = Span::from_millis(10);

    fn channel(to_bad: f64, to_good: f64) -> Bursts {
        Bursts::new(Chain { to_bad, to_good }, INTERVAL, Streams::new(4, 0).stream("down/loss"))
    }

    fn states(channel: &mut Bursts, count: u64) -> Vec<BurstState> {
        (0..count).map(|number| channel.state(Time::ZERO + INTERVAL * number)).collect()
    }

    /// Frequencies of the pairs good-good, good-bad, bad-good and bad-bad at this distance.
    fn pairs(states: &[BurstState], distance: usize) -> [f64; 4] {
        let mut seen = [0.0; 4];
        for (first, second) in states.iter().zip(&states[distance..]) {
            seen[2 * (*first as usize) + *second as usize] += 1.0;
        }
        seen
    }

    #[test]
    fn a_state_follows_another_as_often_as_the_chain_says_also_where_epochs_meet() {
        // -ln(0.95) = 0.0513: the state is forgotten after 42/0.0513 = 819 intervals; 2442 epochs meet in 2 million.
        let (to_bad, to_good) = (0.01f64, 0.04f64);
        let mut channel = channel(to_bad, to_good);
        assert_eq!(channel.length, 819);
        let seen = states(&mut channel, 2_000_000);
        for distance in [1, 2, 10] {
            // P(bad n later) = 0.2 + (now - 0.2) 0.95^n.
            let kept = 0.95f64.powi(distance as i32);
            let [gg, gb, bg, bb] = pairs(&seen, distance);
            // Pairs are correlated over some 40 intervals: of 2e6, 5e4 are independent, sd at most 0.0022; four sd.
            for (got, expected) in [(gb / (gg + gb), 0.2 * (1.0 - kept)), (bb / (bg + bb), 0.2 + 0.8 * kept)]
            {
                assert!((got - expected).abs() < 0.009, "{distance}: {got} of {expected}");
            }
        }
        let meets: Vec<_> =
            (1..seen.len() / 819).map(|epoch| [seen[epoch * 819 - 1], seen[epoch * 819]]).collect();
        let changes = meets.iter().filter(|[before, after]| before != after).count() as f64;
        // 2 x 0.8 x 0.01 = 0.016 of the boundaries are changes, as for any two intervals: 39 +- 6.2 of 2440; four sd.
        assert!((changes - 39.0).abs() < 25.0, "{changes} of {}", meets.len());
    }

    #[test]
    fn the_state_is_a_function_of_time() {
        let all = states(&mut channel(0.02, 0.1), 10_000);
        let (mut rarely, mut often) = (channel(0.02, 0.1), channel(0.02, 0.1));
        for number in 0..10_000u64 {
            let at = Time::ZERO + INTERVAL * number;
            if number.is_multiple_of(977) {
                assert_eq!(rarely.state(at), all[number as usize]);
            }
            for part in 0..3 {
                assert_eq!(often.state(at + Span::from_millis(3) * part), all[number as usize]);
            }
        }
    }

    #[test]
    fn no_pause_is_too_long() {
        let mut channel = Bursts::new(
            Chain { to_bad: 0.5, to_good: 0.5 },
            Span::from_micros(10),
            Streams::new(4, 0).stream("down/loss"),
        );
        // 584 years of intervals of 10 us are 2e15 bursts: drawing each would never end.
        channel.state(Time::NEVER);
        assert_eq!(channel.state(Time::ZERO), channel.first);
    }

    #[test]
    fn a_state_that_is_never_left_lasts_for_ever() {
        assert!(states(&mut channel(0.0, 0.3), 100_000).iter().all(|&state| state == BurstState::Good));
        assert!(states(&mut channel(0.3, 0.0), 100_000).iter().all(|&state| state == BurstState::Bad));
        // A chain that changes once in 10^300 intervals.
        let rare = channel(1e-300, 1e-300);
        assert_eq!((rare.length, rare.ends.len()), (FOR_EVER, 0));
    }
}
