//! Learns the gain: the ratio of the expected service to the service at the measured rate.
//!
//! `gain = learnt + roughness`. The roughness is the root mean square of the service's relative excess within a horizon
//! over the rate at the start of the horizon. A link with an even rate needs no extra queue, whereas a link with a
//! jumping rate needs one. The learnt part is 1 at first and corrects the roughness by stochastic approximation. Idle
//! time of the link while a sender had data raises the learnt part, and service lowers it, so that the link is idle for
//! the configured share of time. The learning steps become smaller over time. Upward steps are larger on an even link,
//! because pauses are rare on an even link.

/// Initial value of the learnt part of the gain.
const FIRST: f64 = 1.0;
/// Initial value of the link's roughness.
const ROUGH: f64 = 0.75;
/// Weight of the initial roughness in the average, seconds.
const GUESSED: f64 = 2.0;
/// Averaging time of the roughness, seconds of service.
const MEMORY: f64 = 20.0;
/// Mean square below which the roughness counts as zero. Exponential decay would otherwise reach subnormal numbers,
/// which are slow.
const NOTHING: f64 = 1e-12;
/// Initial value of the gain.
pub(super) const FIRST_GAIN: f64 = FIRST + ROUGH;
/// Lower and upper limit of the gain.
const GAINS: [f64; 2] = [0.25, 4.0];
/// Factor of early steps: after `t` seconds of service, a step is multiplied by `1 + HASTE / (SETTLING + t)`. Learning
/// steps are larger for about a minute, but not so large that the first pauses decide the gain.
const HASTE: f64 = 30.0;
const SETTLING: f64 = 6.0;
/// Factor of steps up: on a perfectly even link, a step up is multiplied by `1 + EVEN`.
const EVEN: f64 = 3.0;

/// Estimator of the gain of one link.
#[derive(Debug)]
pub(super) struct Gain {
    /// Target share of time in which the link is idle.
    idle_share: f64,
    /// Learning rate of the gain, per second. A learning rate of 0 keeps the initial gain.
    learning: f64,
    learnt: f64,
    roughness: f64,
    /// Mean square from which the roughness is computed.
    square: f64,
    /// Weight of `square` in the average, seconds.
    weight: f64,
    /// Service time from which the gain was learnt, seconds.
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

    /// Returns the gain.
    pub(super) fn get(&self) -> f64 {
        (self.learnt + self.roughness).clamp(GAINS[0], GAINS[1])
    }

    /// Service time from which the gain was learnt, seconds.
    pub(super) const fn taught(&self) -> f64 {
        self.taught
    }

    /// Notes that the link served packets for this many seconds.
    pub(super) fn on_served(&mut self, seconds: f64, is_known: bool) {
        self.taught += seconds;
        if is_known {
            self.learn(-self.idle_share * seconds);
        }
    }

    /// Notes that the link was unnecessarily idle for this many seconds. The idle time was either observed (`seen`) or
    /// inferred from ACKs.
    pub(super) fn on_missed(&mut self, seconds: f64, seen: bool) {
        let even = if seen { (1.0 - self.roughness / ROUGH).max(0.0) } else { 0.0 };
        self.learn((1.0 + EVEN * even) * (1.0 - self.idle_share) * seconds);
    }

    /// Notes the service over one horizon, as a multiple `times` of the service at the rate known at the horizon's
    /// start. The horizon ended in the last `seconds`.
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

    /// Creates a gain that has learnt from this many seconds of service.
    fn taught(seconds: f64) -> Gain {
        let mut gain = Gain::new(0.01, 0.5);
        gain.on_served(seconds, false);
        gain
    }

    /// Returns by how much a call changes the gain.
    fn change(gain: &mut Gain, what: impl FnOnce(&mut Gain)) -> f64 {
        let before = gain.get();
        what(gain);
        gain.get() - before
    }

    #[test]
    fn idle_time_raises_the_gain_and_service_lowers_it() {
        let mut gain = taught(2.0);
        assert_eq!((gain.taught(), gain.get()), (2.0, FIRST_GAIN));
        // The step size is 0.5 (1 + 30 / (6 + t)), weighted by 1 % for service and by 99 % for unnecessary idle time.
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
        assert_eq!(gain.get(), FIRST_GAIN);
    }

    #[test]
    fn the_roughness_is_the_root_of_the_mean_square_of_what_was_more() {
        let mut gain = taught(2.0);
        // The service exceeds the rate by half in one of every two seconds, and is below the rate in the other second.
        for _ in 0..2000 {
            gain.on_horizon(1.5, 0.1);
            gain.on_horizon(0.2, 0.1);
        }
        let expected = 1.0 + (0.5_f64 * 0.5 * 0.5).sqrt();
        assert!((gain.get() - expected).abs() < 0.01, "{}", gain.get());
        // The link is now even, so the roughness disappears.
        for _ in 0..2000 {
            gain.on_horizon(1.0, 0.1);
        }
        assert!((gain.get() - 1.0).abs() < 0.01, "{}", gain.get());
    }

    #[test]
    fn an_even_link_has_no_roughness_after_long() {
        let mut gain = taught(2.0);
        for _ in 0..10_000 {
            gain.on_horizon(1.0, 0.1);
            assert!(gain.square == 0.0 || gain.square > 1e-13, "{}", gain.square);
        }
        assert_eq!((gain.square, gain.get()), (0.0, 1.0));
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
        assert_eq!(gain.get(), 4.0);
        assert!(change(&mut gain, |gain| gain.on_served(10.0, true)) < -0.1);
        gain.on_served(1e6, true);
        assert_eq!(gain.get(), 0.25);
        assert!(change(&mut gain, |gain| gain.on_missed(0.1, true)) > 0.01);
    }
}
