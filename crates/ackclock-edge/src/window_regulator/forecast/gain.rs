//! How many times what a link serves at its rate is expected of it.
//!
//! `gain = learnt + roughness`. The roughness is the root of the mean square by which the link, within a horizon, served more
//! than at the rate known when that began, as a share of it: a link that serves evenly needs no more in its queue than is
//! expected of it, one whose rate jumps needs room for that. What is learnt, 1 at first, makes up for what that says too much or
//! too little: time in which the link stood idle although a source had data raises it, and what it serves lowers it, by
//! stochastic approximation, so that in the long run the link is idle for the chosen share of the time. The first steps are
//! the largest, and those up are larger where the link is even: pauses are few there.

/// What is learnt, before anything is, and how rough a link is thought to be then; with the weight of so many seconds.
const FIRST: f64 = 1.0;
const ROUGH: f64 = 0.75;
const GUESSED: f64 = 2.0;
/// Seconds of service for which the roughness remembers.
const MEMORY: f64 = 20.0;
/// A mean square that counts as none: what only ever falls by a share would become a subnormal number, slow to reckon with.
const NOTHING: f64 = 1e-12;
/// The gain before anything is learnt, and between what it stays.
pub(super) const FIRST_GAIN: f64 = FIRST + ROUGH;
const GAINS: [f64; 2] = [0.25, 4.0];
/// The gain of a flow that yields to a young one is at most this: what waits for it the young one waits for too.
const YIELDING: f64 = 1.25;
/// Steps are `1 + HASTE / (SETTLING + t)` times as large after `t` of service, all in seconds: larger for a minute, but not so
/// large that the first pauses decide.
const HASTE: f64 = 30.0;
const SETTLING: f64 = 6.0;
/// Over a perfectly even link a step up is `1 + EVEN` times as large.
const EVEN: f64 = 3.0;

/// The gain of one link.
#[derive(Debug)]
pub(super) struct Gain {
    /// Share of the time for which the link may be idle.
    idle_share: f64,
    /// How fast the gain follows, per second; where it does not at all it stays what it was at first.
    learning: f64,
    learnt: f64,
    roughness: f64,
    /// The mean square that it is the root of, and the seconds behind that.
    square: f64,
    weight: f64,
    /// Seconds of service that it has learnt from.
    taught: f64,
}

impl Gain {
    pub(super) const fn new(idle_share: f64, learning: f64) -> Self {
        Self {
            idle_share,
            learning,
            learnt: FIRST,
            roughness: ROUGH,
            square: ROUGH * ROUGH,
            weight: GUESSED,
            taught: 0.0,
        }
    }

    /// Of a flow that `yields` to others or does not.
    pub(super) fn of(&self, yields: bool) -> f64 {
        let gain = (self.learnt + self.roughness).clamp(GAINS[0], GAINS[1]);
        if yields { gain.min(YIELDING) } else { gain }
    }

    /// Seconds of service that it has learnt from.
    pub(super) const fn taught(&self) -> f64 {
        self.taught
    }

    /// The link served for so many seconds.
    pub(super) fn on_served(&mut self, seconds: f64, is_known: bool) {
        self.taught += seconds;
        if is_known {
            self.learn(-self.idle_share * seconds);
        }
    }

    /// It was idle for so many seconds in which it need not have been; that was seen, or is guessed from acknowledgements.
    pub(super) fn on_missed(&mut self, seconds: f64, seen: bool) {
        let even = if seen { (1.0 - self.roughness / ROUGH).max(0.0) } else { 0.0 };
        self.learn((1.0 + EVEN * even) * (1.0 - self.idle_share) * seconds);
    }

    /// Over a horizon that ended in the last so many seconds it served so many times what had been its rate.
    pub(super) fn on_horizon(&mut self, times: f64, seconds: f64) {
        if self.learning == 0.0 {
            return;
        }
        let more = (times - 1.0).clamp(0.0, GAINS[1]);
        self.weight = (self.weight + seconds).min(MEMORY);
        self.square += (more * more - self.square) * seconds / self.weight;
        if self.square < NOTHING {
            self.square = 0.0;
        }
        self.roughness = self.square.sqrt();
    }

    fn learn(&mut self, seconds: f64) {
        let step = self.learning * (1.0 + HASTE / (SETTLING + self.taught));
        let [least, most] = GAINS.map(|gain| gain - self.roughness);
        self.learnt = (self.learnt + step * seconds).clamp(least, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gain that has learnt from so many seconds of service.
    fn taught(seconds: f64) -> Gain {
        let mut gain = Gain::new(0.01, 0.5);
        gain.on_served(seconds, false);
        gain
    }

    /// By how much it changes.
    fn change(gain: &mut Gain, what: impl FnOnce(&mut Gain)) -> f64 {
        let before = gain.of(false);
        what(gain);
        gain.of(false) - before
    }

    #[test]
    fn idle_time_raises_the_gain_and_service_lowers_it() {
        let mut gain = taught(2.0);
        assert_eq!((gain.taught(), gain.of(false)), (2.0, FIRST_GAIN));
        // Steps of 0.5 (1 + 30 / (6 + t)), of which 1 % of what is served counts, and 99 % of what is missed.
        let served = change(&mut gain, |gain| gain.on_served(0.01, true));
        assert!((served + 0.5 * (1.0 + 30.0 / 8.01) * 0.01 * 0.01).abs() < 1e-9, "{served}");
        let missed = change(&mut gain, |gain| gain.on_missed(0.02, true));
        assert!((missed - 0.5 * (1.0 + 30.0 / 8.01) * 0.99 * 0.02).abs() < 1e-9, "{missed}");
    }

    #[test]
    fn a_rough_link_that_is_idle_for_the_chosen_share_keeps_its_gain() {
        let mut gain = taught(100.0);
        let kept = change(&mut gain, |gain| {
            gain.on_served(0.99, true);
            gain.on_missed(0.01, true);
        });
        assert!(kept.abs() < 1e-4, "{kept}");
    }

    #[test]
    fn where_nothing_is_to_be_learnt_the_gain_stays() {
        let mut gain = Gain::new(0.01, 0.0);
        gain.on_served(100.0, true);
        gain.on_missed(10.0, true);
        gain.on_horizon(3.0, 10.0);
        assert_eq!(gain.of(false), FIRST_GAIN);
    }

    #[test]
    fn the_roughness_is_the_root_of_the_mean_square_of_what_was_more() {
        let mut gain = taught(2.0);
        // A guess of 0.75 for two seconds; twenty are remembered. Half as much again in one second of two, and less in the other.
        for _ in 0..2000 {
            gain.on_horizon(1.5, 0.1);
            gain.on_horizon(0.2, 0.1);
        }
        let expected = 1.0 + (0.5_f64 * 0.5 * 0.5).sqrt();
        assert!((gain.of(false) - expected).abs() < 0.01, "{}", gain.of(false));
        // Even.
        for _ in 0..2000 {
            gain.on_horizon(1.0, 0.1);
        }
        assert!((gain.of(false) - 1.0).abs() < 0.01, "{}", gain.of(false));
    }

    #[test]
    fn an_even_link_has_no_roughness_after_long() {
        let mut gain = taught(2.0);
        for _ in 0..10_000 {
            gain.on_horizon(1.0, 0.1);
            assert!(gain.square == 0.0 || gain.square > 1e-13, "{}", gain.square);
        }
        assert_eq!((gain.square, gain.of(false)), (0.0, 1.0));
    }

    #[test]
    fn a_second_of_an_even_link_that_is_idle_counts_four_times() {
        let (mut rough, mut even) = (taught(40.0), taught(40.0));
        for _ in 0..2000 {
            even.on_horizon(1.0, 0.1);
        }
        let [once, guessed] =
            [&mut rough, &mut even].map(|gain| change(gain, |gain| gain.on_missed(0.1, false)));
        assert!((guessed / once - 1.0).abs() < 0.01, "{guessed} for {once}");
        let seen = change(&mut even, |gain| gain.on_missed(0.1, true));
        assert!((seen / once - 4.0).abs() < 0.01, "{seen} for {once}");
    }

    #[test]
    fn the_gain_stays_within_bounds_and_comes_back_at_once() {
        let mut gain = taught(2.0);
        gain.on_missed(1000.0, true);
        assert_eq!((gain.of(false), gain.of(true)), (4.0, 1.25));
        assert!(change(&mut gain, |gain| gain.on_served(10.0, true)) < -0.1);
        gain.on_served(1e6, true);
        assert_eq!((gain.of(false), gain.of(true)), (0.25, 0.25));
        assert!(change(&mut gain, |gain| gain.on_missed(0.1, true)) > 0.01);
    }
}
