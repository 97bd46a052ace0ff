//! STARTUP: doubles the rate every round until the bottleneck is found (draft section 4.3.2).

use ackclock_core::Rate;

use super::{Bbr, Mode};

/// BBRHighGain, 2 / ln 2: the smallest gain with which the delivery rate can double in each round.
pub(super) const HIGH_GAIN: f64 = 2.885_390_081_777_927;
/// Growth factor per round below which the delivery rate counts as constant.
const GROWTH: f64 = 1.25;
/// Number of rounds without growth after which the pipe counts as full.
const ROUNDS: u32 = 3;

/// Detects that the bottleneck rate has been reached (draft section 4.3.2.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    pub(super) filled: bool,
    /// Reference rate, which a later rate must exceed by the factor [`GROWTH`].
    rate: Rate,
    rounds_without_growth: u32,
}

impl FullPipe {
    /// Clears the reference rate, as Linux does after a timeout.
    pub(super) fn forget_rate(&mut self) {
        self.rate = Rate::ZERO;
    }

    /// Restarts the count of rounds without growth, as Linux does after a spurious reduction.
    pub(super) fn forget_rounds(&mut self) {
        *self = Self { filled: self.filled, ..Self::default() };
    }
}

impl Bbr {
    pub(super) fn enter_startup(&mut self) {
        self.mode = Mode::Startup;
        self.pacing_gain = HIGH_GAIN;
        self.cwnd_gain = HIGH_GAIN;
    }

    /// BBRCheckFullPipe: called once per round; application-limited rounds do not count.
    pub(super) fn check_full_pipe(&mut self, app_limited: bool) {
        let pipe = &mut self.full_pipe;
        if pipe.filled || !self.round_start || app_limited {
            return;
        }
        let rate = self.bottleneck.max();
        if rate.as_bps() as f64 >= pipe.rate.as_bps() as f64 * GROWTH {
            *pipe = FullPipe { rate, ..FullPipe::default() };
            return;
        }
        pipe.rounds_without_growth += 1;
        pipe.filled = pipe.rounds_without_growth >= ROUNDS;
    }
}
