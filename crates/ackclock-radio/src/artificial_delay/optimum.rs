//! Hold times that set a timer of the mean plus 4 standard deviations with the least mean delay: M05 section 5.3, and
//! `delay-optimizer.md` section 1.
//!
//! The source tries 3^k sets of bounds. At most one hold time of the optimum lies strictly between its bounds: two such
//! hold times, moved apart at an equal mean, increase the variance and so the timer. It is enough to try all bounds for
//! the others, k 2^(k-1) sets, and to solve a quadratic for the remaining hold time.

/// Standard deviations above the mean at which the sender's timer expires.
const DEVIATIONS: f64 = 4.0;

/// Sums over delays: the mean, and the mean of the squares.
#[derive(Clone, Copy, Default)]
struct Moments {
    mean: f64,
    square: f64,
}

impl Moments {
    fn with(self, delay: f64, probability: f64) -> Self {
        Self { mean: self.mean + probability * delay, square: self.square + probability * delay * delay }
    }
}

/// Timer of a sender whose packets have these delays with these probabilities, in the unit of the delays.
pub(super) fn timer(law: impl Iterator<Item = (f64, f64)>) -> f64 {
    let Moments { mean, square } = law.fold(Moments::default(), |sum, (delay, p)| sum.with(delay, p));
    mean + DEVIATIONS * (square - mean * mean).max(0.0).sqrt()
}

/// Maximum number of raised delays: the number of calculations grows as its power of 2.
pub(super) const MOST_HELD: usize = 10;

/// Delays to which the `held` smallest delays of an increasing `law` of (delay, probability) are raised, so that the
/// timer becomes `timer` at the least mean. No delay is raised above the delay number `held`, counted from 0; `held` is at most [`MOST_HELD`]. Returns
/// `None` if no such delays give this timer.
pub(super) fn levels(law: &[(f64, f64)], held: usize, timer: f64) -> Option<[f64; MOST_HELD]> {
    let top = law[held].0;
    let rest = law[held..].iter().fold(Moments::default(), |sum, &(delay, p)| sum.with(delay, p));
    let mut best: Option<(f64, [f64; MOST_HELD])> = None;
    for free in 0..held {
        for choice in (0..1_u32 << held).filter(|choice| choice >> free & 1 == 0) {
            let mut levels = [0.0; MOST_HELD];
            for (one, level) in levels[..held].iter_mut().enumerate() {
                *level = if choice >> one & 1 == 1 { top } else { law[one].0 };
            }
            let others = (0..held).filter(|&one| one != free);
            let sum = others.fold(rest, |sum, one| sum.with(levels[one], law[one].1));
            for level in level(law[free].1, sum, timer).filter(|level| (law[free].0..=top).contains(level)) {
                let mean = sum.with(level, law[free].1).mean;
                if mean <= timer && best.as_ref().is_none_or(|(least, _)| mean < *least) {
                    levels[free] = level;
                    best = Some((mean, levels));
                }
            }
        }
    }
    best.map(|(_, levels)| levels)
}

/// Levels of a delay of probability `p` that give `timer` beside the other delays: roots of 16 Var = (timer - mean)^2.
fn level(p: f64, others: Moments, timer: f64) -> impl Iterator<Item = f64> {
    let squared = DEVIATIONS * DEVIATIONS;
    let a = squared * p - (squared + 1.0) * p * p;
    let b = 2.0 * p * (timer - (squared + 1.0) * others.mean);
    let c = squared * others.square - (squared + 1.0) * others.mean * others.mean + 2.0 * timer * others.mean
        - timer * timer;
    // This form of the solution does not lose digits where `b` is large. Roots that do not exist are NaN or infinite.
    let q = -0.5 * (b + (b * b - 4.0 * a * c).sqrt().copysign(b));
    [c / q, q / a].into_iter().filter(|root| root.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The law of M05's example, ms; `delay-optimizer.md` section 3.
    const PRINTED: [(f64, f64); 7] = [
        (0.0, 0.8064),
        (40.0, 0.088),
        (60.0, 0.093),
        (100.0, 0.006),
        (120.0, 0.006),
        (160.0, 0.0003),
        (180.0, 0.0003),
    ];

    #[test]
    fn the_printed_law_gives_the_delays_of_the_model() {
        let levels = levels(&PRINTED, 4, 130.0).unwrap();
        let held: Vec<f64> =
            levels[..4].iter().zip(PRINTED).map(|(level, (delay, _))| level - delay).collect();
        assert_eq!(&held[..2], [0.0, 0.0]);
        assert!((held[2] - 26.43).abs() < 0.05, "{held:?}");
        assert!((held[3] - 20.0).abs() < 1e-9, "{held:?}");
        let after = levels[..4].iter().copied().chain(PRINTED[4..].iter().map(|one| one.0));
        let after = timer(after.zip(PRINTED).map(|(level, (_, p))| (level, p)));
        assert!((after - 130.0).abs() < 1e-6, "{after}");
    }

    #[test]
    fn delays_between_others_can_be_held_to_the_end() {
        let law = [(0.0, 0.92), (25.0, 0.06), (50.0, 0.015), (75.0, 0.004), (150.0, 0.001)];
        let levels = levels(&law, 3, 85.0).unwrap();
        assert_eq!((levels[0], levels[1]), (0.0, 75.0));
        assert!((50.0..75.0).contains(&levels[2]), "{levels:?}");
    }

    #[test]
    fn a_timer_that_no_delays_give_is_not_found() {
        assert!(levels(&PRINTED, 4, 3000.0).is_none());
        assert!(levels(&[(0.0, 0.9), (10.0, 0.1)], 0, 20.0).is_none());
    }
}
