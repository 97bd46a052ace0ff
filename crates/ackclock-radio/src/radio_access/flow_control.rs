//! Flow control: the base station limits the PDUs that the controller sends. Messages follow TS 25.435; the standard
//! defines no algorithms, so the algorithms are our own.

use std::fmt;

use ackclock_core::{Config, ConfigError, Span};
use ackclock_link::Loss;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of a flow control: its table in a scenario file.
pub trait FlowControlConfig: fmt::Debug + Send + Sync {
    /// Returns the kind of this flow control.
    fn kind(&self) -> FlowControlKind<'_>;
}

/// Kind of a flow control.
#[derive(Clone, Copy, Debug)]
pub enum FlowControlKind<'a> {
    /// The base station grants credits.
    Credit(&'a CreditConfig),
    /// The base station stops and restarts the controller by messages.
    OnOff(&'a OnOffConfig),
    /// No flow control: only the RLC window limits the controller.
    None,
}

/// At each interval the base station grants each user the PDUs that it will serve during the target delay, one round
/// trip and one interval.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CreditConfig {
    /// Time between two grants.
    pub interval: Span,
    /// Number of PDUs that a user may send before the first grant.
    pub initial: u32,
    /// Target queueing delay of a user at the base station. Default: an adaptive delay. The adaptive target is chosen
    /// so that in a share `underruns` of the intervals the base station has no data of a user while the controller has
    /// data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Span>,
    /// Increase of an adaptive target after an interval with an underrun.
    pub step: Span,
    /// Long-run share of intervals with an underrun, to which an adaptive target converges.
    pub underruns: Loss,
}

/// The base station stops the controller above one queueing delay and restarts it below a lower queueing delay.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OnOffConfig {
    /// Time between two checks of the queue.
    pub interval: Span,
    /// Queueing delay at the base station above which the controller is stopped.
    pub high: Span,
    /// Queueing delay at the base station below which the controller is restarted.
    pub low: Span,
}

/// No flow control: a PDU leaves the controller as soon as the RLC window allows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UncontrolledConfig {}

/// Minimum and maximum of an adaptive target delay.
const TARGETS: [Span; 2] = [Span::from_millis(20), Span::from_millis(500)];
/// Initial value of an adaptive target delay.
const FIRST_TARGET: Span = Span::from_millis(50);
/// Minimum number of PDUs granted to a user that has no PDUs at the base station.
const LEAST: u64 = 8;
const INTERVALS: [Span; 2] = [Span::from_millis(1), Span::from_secs(1)];

impl Default for CreditConfig {
    fn default() -> Self {
        Self {
            interval: Span::from_millis(10),
            initial: 64,
            target: None,
            step: Span::from_millis(20),
            underruns: Loss::of(0.01),
        }
    }
}

impl Default for OnOffConfig {
    fn default() -> Self {
        Self { interval: Span::from_millis(10), high: Span::from_millis(60), low: Span::from_millis(20) }
    }
}

impl Config for CreditConfig {
    fn check(&self) -> Result<(), ConfigError> {
        in_bounds("interval", self.interval)?;
        if self.target == Some(Span::ZERO) {
            return Err(ConfigError::new("target", "0 is not above 0"));
        }
        Ok(())
    }
}

impl Config for OnOffConfig {
    fn check(&self) -> Result<(), ConfigError> {
        in_bounds("interval", self.interval)?;
        if self.low > self.high {
            let message = format!("{} is more than `high`, {}", self.low, self.high);
            return Err(ConfigError::new("low", message));
        }
        Ok(())
    }
}

impl Config for UncontrolledConfig {}

fn in_bounds(key: &str, value: Span) -> Result<(), ConfigError> {
    crate::umts_rlc_am::in_bounds(key, value, INTERVALS)
}

impl FlowControlConfig for CreditConfig {
    fn kind(&self) -> FlowControlKind<'_> {
        FlowControlKind::Credit(self)
    }
}

impl FlowControlConfig for OnOffConfig {
    fn kind(&self) -> FlowControlKind<'_> {
        FlowControlKind::OnOff(self)
    }
}

impl FlowControlConfig for UncontrolledConfig {
    fn kind(&self) -> FlowControlKind<'_> {
        FlowControlKind::None
    }
}

/// Message of the base station to the controller about a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allocation {
    /// The controller may send the given number of additional PDUs.
    More(u64),
    /// The controller may send all PDUs that the RLC window allows.
    Go,
    /// The controller may send no PDUs.
    Stop,
}

impl Allocation {
    /// Number of PDUs that may be sent after this message, if `before` PDUs were allowed before the message.
    pub(super) const fn allotted(self, before: u64) -> u64 {
        match self {
            Self::More(credits) => before.saturating_add(credits),
            Self::Go => u64::MAX,
            Self::Stop => 0,
        }
    }
}

/// State of a user at the base station, seen at a check of the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Number of PDUs in the user's queue.
    pub(super) queued: u64,
    /// Number of PDUs that were granted and have not arrived.
    pub(super) allotted: u64,
    /// PDUs per second that the user is served while it has PDUs.
    pub(super) per_second: f64,
    /// Whether PDUs of the user wait for credits at the controller.
    pub(super) waits: bool,
    /// Whether the user's queue was empty since the last check while PDUs waited at the controller.
    pub(super) underrun: bool,
}

/// State of the flow control of one user at the base station.
#[derive(Clone, Debug)]
pub(super) enum FlowControl {
    Credit { config: CreditConfig, target: Span },
    OnOff { config: OnOffConfig, stopped: bool },
    None,
}

impl FlowControl {
    pub(super) fn new(kind: FlowControlKind<'_>) -> Self {
        match kind {
            FlowControlKind::Credit(config) => {
                Self::Credit { config: config.clone(), target: config.target.unwrap_or(FIRST_TARGET) }
            }
            FlowControlKind::OnOff(config) => Self::OnOff { config: config.clone(), stopped: false },
            FlowControlKind::None => Self::None,
        }
    }

    /// Returns to the state before the first message.
    pub(super) fn restart(&mut self) {
        match self {
            Self::Credit { config, target } => *target = config.target.unwrap_or(FIRST_TARGET),
            Self::OnOff { stopped, .. } => *stopped = false,
            Self::None => {}
        }
    }

    /// Number of PDUs that the controller may send before the first message.
    pub(super) const fn initial(&self) -> u64 {
        match self {
            Self::Credit { config, .. } => config.initial as u64,
            Self::OnOff { .. } | Self::None => u64::MAX,
        }
    }

    /// Time between two checks of the queue; `None` without checks.
    pub(super) const fn interval(&self) -> Option<Span> {
        match self {
            Self::Credit { config, .. } => Some(config.interval),
            Self::OnOff { config, .. } => Some(config.interval),
            Self::None => None,
        }
    }

    /// Target queueing delay at the base station.
    pub(super) const fn target(&self) -> Span {
        match self {
            Self::Credit { target, .. } => *target,
            Self::OnOff { config, .. } => config.high,
            Self::None => Span::ZERO,
        }
    }

    /// Whether the next check of the queue may produce a message.
    pub(super) const fn is_active(&self, seen: Seen) -> bool {
        match self {
            Self::Credit { .. } => seen.waits || seen.queued > 0 || seen.allotted < LEAST,
            Self::OnOff { stopped, .. } => *stopped || seen.queued > 0,
            Self::None => false,
        }
    }

    /// Returns the message of a check of the queue, if any. A message takes `delay`, and so do the PDUs that the
    /// message allows.
    pub(super) fn allocate(&mut self, seen: Seen, delay: Span) -> Option<Allocation> {
        match self {
            Self::Credit { config, target } => {
                if config.target.is_none() && seen.waits {
                    adapt(target, config, seen.underrun);
                }
                let ahead = *target + delay * 2 + config.interval;
                let wanted = libm::ceil(seen.per_second * ahead.as_secs_f64()) as u64;
                let credits = wanted.max(LEAST).saturating_sub(seen.queued + seen.allotted);
                (credits > 0).then_some(Allocation::More(credits))
            }
            Self::OnOff { config, stopped } => {
                let holds = |wait: Span| seen.per_second * wait.as_secs_f64();
                let queued = seen.queued as f64;
                if !*stopped && queued > holds(config.high) {
                    *stopped = true;
                    Some(Allocation::Stop)
                } else if *stopped && queued <= holds(config.low) {
                    *stopped = false;
                    Some(Allocation::Go)
                } else {
                    None
                }
            }
            Self::None => None,
        }
    }
}

/// Adapts the target delay after an interval with or without an underrun.
fn adapt(target: &mut Span, config: &CreditConfig, underrun: bool) {
    let share = config.underruns.probability();
    let part = |share: f64| Span::from_secs_f64(config.step.as_secs_f64() * share);
    let moved = if underrun { *target + part(1.0 - share) } else { target.saturating_sub(part(share)) };
    *target = moved.clamp(TARGETS[0], TARGETS[1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Span = Span::from_millis(10);

    fn seen(queued: u64, allotted: u64, waits: bool) -> Seen {
        Seen { queued, allotted, per_second: 1000.0, waits, underrun: waits && queued == 0 }
    }

    /// The flow control after this many equal intervals.
    fn after(mut control: FlowControl, intervals: u32, seen: Seen) -> FlowControl {
        for _ in 0..intervals {
            control.allocate(seen, DELAY);
        }
        control
    }

    #[test]
    fn credits_fill_the_target_a_round_trip_and_an_interval() {
        let config = CreditConfig { target: Some(Span::from_millis(40)), ..CreditConfig::default() };
        let mut control = FlowControl::new(FlowControlKind::Credit(&config));
        // 40 + 20 + 10 ms at 1000 PDUs a second.
        assert_eq!(control.allocate(seen(0, 0, true), DELAY), Some(Allocation::More(70)));
        assert_eq!(control.allocate(seen(30, 15, true), DELAY), Some(Allocation::More(25)));
        assert_eq!(control.allocate(seen(60, 15, true), DELAY), None);
        let slow = Seen { per_second: 0.0, ..seen(0, 3, false) };
        assert_eq!(control.allocate(slow, DELAY), Some(Allocation::More(5)));
    }

    #[test]
    fn the_target_holds_where_one_interval_of_a_hundred_runs_empty() {
        let mut control = FlowControl::new(FlowControlKind::Credit(&CreditConfig::default()));
        for interval in 0..1000 {
            control.allocate(seen(u64::from(interval % 100 > 0), 0, true), DELAY);
        }
        let target = control.target().as_secs_f64();
        assert!((target - 0.05).abs() < 0.021, "{target}");
        control = after(control, 100, seen(0, 0, true));
        assert_eq!(control.target(), TARGETS[1]);
        control = after(control, 10_000, seen(1, 0, true));
        assert_eq!(control.target(), TARGETS[0]);
        control = after(control, 100, seen(0, 0, false));
        assert_eq!(control.target(), TARGETS[0], "nothing waits: no underrun");
    }

    #[test]
    fn on_and_off_have_marks_of_their_own() {
        let mut control = FlowControl::new(FlowControlKind::OnOff(&OnOffConfig::default()));
        let told = [10, 61, 100, 30, 20, 40].map(|queued| control.allocate(seen(queued, 0, false), DELAY));
        let expected = [None, Some(Allocation::Stop), None, None, Some(Allocation::Go), None];
        assert_eq!(told, expected);
    }
}
