//! # RNF
//!
//! RNF, radio network feedback: sets a proxy's congestion window from the radio's reports of its rate and queue.
//!
//! ## Source
//! M05 chapter 3: equations (3.1) and (3.2), the settings of section 3.6. Further rules of our own, named below, come
//! from tests with real kernels.
//!
//! ## What it does
//! Let b be the rate of the radio, tau the round trip between proxy and mobile without queueing, q the radio's queue
//! and q_ref its target, in packets:
//!
//! - **Feedforward**: a report of a changed rate, or a periodic report whose rate differs by more than `change`, sets
//!   `w = b tau + q_ref` at once (equation 3.1).
//! - **Feedback**: a periodic report adds `gain (q_ref - q)` (equation 3.2). With a gain of 1 and a period of several
//!   round trips the queue reaches q_ref two samples after a disturbance.
//! - **One window per user.** Connections with data to send share it, each with at least one packet. A full window for
//!   each would multiply the gain.
//! - **No wind-up.** If no window was full since the last sample, a short queue only shows that there was nothing to
//!   send, and the window does not grow.
//! - **Settling.** Suppose a report generated at `t` last changed the window. Samples taken before `t + lag + tau +
//!   max(q, q_ref) / b` do not reflect that change and are ignored. All instants are of the radio's clock.
//! - **Silence.** After `stale` without a report, connections use their own congestion control until the next report.
//! - **Outage.** With b = 0 nothing new is sent, and the retransmission timer is frozen.
//! - **Order.** Reports that arrive out of order or twice are ignored.
//!
//! ## Differences from the source
//! The window is a whole number of packets, at least one per connection. The queue is measured in bytes, divided by
//! the full packet size, so small packets count less. "One window per user" and the rules after it are ours, and so
//! are `q_ref = "auto"` and `change`.
//!
//! ## Validation
//! Each rule by hand, M05-D1 (two samples), no panic and bounded windows under random reports (tests below). In the
//! simulator alongside real kernels (`crates/ackclock-scenario/tests/rnf.rs`).

mod law;
mod target;

use std::collections::VecDeque;

use ackclock_core::{
    ConfigError, ConnectionEvent, ConnectionView, FlowId, RadioReport, Rate, Setting, Size, Span, Steering,
    SteeringConfig, Time, Timer,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::law::{Law, Way};
use self::target::Target;

/// Sets the congestion window from the radio's reports of its rate and queue.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Target queue of the radio: a number of packets ("6p"); the packets served in a time ("100ms"), at least 2 and
    /// at most 6; or "auto", the fewest that keep the radio busy.
    pub(crate) q_ref: Target,
    /// Share of the queue's error that a sample corrects. Use 1 if the queue settles between two samples. The loop is
    /// unstable from 2 on, or from 1 on if reports are a period later than `lag`.
    pub(crate) gain: f64,
    /// Relative difference between a periodic report's rate and the rate in use up to which the report is a sample of
    /// the queue. Beyond it the report sets a new window. Measured rates, such as a user's share of a cell, always
    /// differ a little.
    pub(crate) change: f64,
    /// Round trip between proxy and mobile without the radio's queue: a time, or "measured", the minimum seen by the
    /// user's connections.
    pub(crate) tau: Tau,
    /// Maximum window of a user, packets: bounds the effect of a wrong report. Without it only `max_window` limits
    /// each connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) w_max: Option<Size>,
    /// Delay of reports. A sample is ignored if it was taken before the radio could see the effect of the last change.
    pub(crate) lag: Span,
    /// Connections use their own congestion control after this long without a report.
    pub(crate) stale: Span,
    /// How packets are sent when the window grows.
    pub(crate) pacing: Pacing,
    /// Behaviour of retransmission timers while the rate is zero.
    pub(crate) outage_timer: OutageTimer,
}

/// Round trip between proxy and mobile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub(crate) enum Tau {
    /// Minimum of the measured round trips.
    Measured,
    /// Configured round trip.
    Given(Span),
}

/// How packets are sent when the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pacing {
    /// As one burst.
    Burst,
    /// Paced: one window per round trip.
    RoundTrip,
}

/// Behaviour of retransmission timers while the rate is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OutageTimer {
    /// An expiry has no effect.
    Frozen,
    /// Timers expire as usual, as in a kernel.
    Runs,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            q_ref: Target::Packets(6),
            gain: 1.0,
            change: 0.25,
            tau: Tau::Measured,
            w_max: None,
            lag: Span::from_millis(50),
            stale: Span::from_secs(3),
            pacing: Pacing::Burst,
            outage_timer: OutageTimer::Frozen,
        }
    }
}

/// Gain from which on the queue never settles: each sample leaves `1 - gain` of the error.
const UNSTABLE_GAIN: f64 = 2.0;
/// Longest configurable round trip and lag.
const LONGEST_TAU: Span = Span::from_secs(60);

impl ackclock_core::Config for Config {
    fn check(&self) -> Result<(), ConfigError> {
        self.q_ref.check().map_err(|error| error.under("q_ref"))?;
        if !(0.0..UNSTABLE_GAIN).contains(&self.gain) {
            return Err(ConfigError::new(
                "gain",
                format!("{} is not from 0 to below {UNSTABLE_GAIN}", self.gain),
            ));
        }
        if !(0.0..1.0).contains(&self.change) {
            return Err(ConfigError::new("change", format!("{} is not from 0 to below 1", self.change)));
        }
        if let Tau::Given(tau) = self.tau
            && (tau == Span::ZERO || tau > LONGEST_TAU)
        {
            let message = format!("{tau} is not above 0s and up to {LONGEST_TAU}");
            return Err(ConfigError::new("tau", message));
        }
        if let Some(most) = self.w_max
            && !matches!(most, Size::Packets(1..))
        {
            return Err(ConfigError::new(
                "w_max",
                format!("{most} is not a number of packets, \"1p\" or more"),
            ));
        }
        if self.lag > LONGEST_TAU {
            return Err(ConfigError::new("lag", format!("{} is more than {LONGEST_TAU}", self.lag)));
        }
        if self.stale == Span::ZERO {
            return Err(ConfigError::new("stale", "0s is not above 0"));
        }
        Ok(())
    }
}

impl SteeringConfig for Config {
    fn build(&self) -> Option<Box<dyn Steering>> {
        Some(Box::new(Rnf::new(self.clone())))
    }

    fn patience(&self) -> Option<Span> {
        Some(self.stale)
    }
}

impl TryFrom<String> for Tau {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.parse() {
            Ok(span) => Ok(Self::Given(span)),
            Err(_) if text == "measured" => Ok(Self::Measured),
            Err(_) => Err(format!("`{text}` is neither \"measured\" nor a time, such as \"120ms\"")),
        }
    }
}

impl From<Tau> for String {
    fn from(tau: Tau) -> Self {
        match tau {
            Tau::Measured => "measured".to_owned(),
            Tau::Given(span) => span.to_string(),
        }
    }
}

/// The window and connections of one user.
struct Rnf {
    config: Config,
    law: Law,
    /// Minimum round trip of all connections, and the largest packet.
    min_rtt: Option<Span>,
    packet: u32,
    /// Connections ordered by number.
    connections: Vec<Connection>,
    /// Number of the last report, and when it arrived; `None` after `stale` without one.
    last: Option<u32>,
    heard: Option<Time>,
    /// Settings not fetched yet.
    settings: VecDeque<(FlowId, Setting)>,
}

struct Connection {
    id: FlowId,
    view: Option<ConnectionView>,
    told: Setting,
}

impl Rnf {
    fn new(config: Config) -> Self {
        let most = match config.w_max {
            Some(Size::Packets(packets)) => packets,
            _ => MOST_PACKETS,
        };
        Self {
            law: Law::new(config.q_ref, config.gain, config.change, config.lag, most),
            config,
            min_rtt: None,
            packet: 0,
            connections: Vec::new(),
            last: None,
            heard: None,
            settings: VecDeque::new(),
        }
    }

    /// Round trip and packet size of the path to the mobile; `None` before anything was measured.
    fn way(&self) -> Option<Way> {
        let tau = match self.config.tau {
            Tau::Measured => self.min_rtt?,
            Tau::Given(tau) => tau,
        };
        (self.packet > 0).then_some(Way { tau, packet: self.packet })
    }

    fn see(&mut self, place: usize, view: ConnectionView) -> bool {
        let way = self.way();
        self.packet = self.packet.max(view.packet);
        self.min_rtt = self.min_rtt.into_iter().chain(view.min_rtt).min();
        if view.window_limited {
            self.law.on_window_limited();
        }
        let before = self.connections[place].view.replace(view);
        before.map(|before| (before.backlogged, before.mss)) != Some((view.backlogged, view.mss))
            || way != self.way()
    }

    /// Calculates the settings of each connection.
    fn update_settings(&mut self) {
        let way = self.way().zip(self.law.rate());
        let total = way.and_then(|(way, _)| self.law.window(way)).map(|window| libm::round(window) as u32);
        let open = self.connections.len() as u32;
        let has_data = |connection: &&Connection| connection.view.is_some_and(|view| view.backlogged);
        let backlogged = self.connections.iter().filter(has_data).count() as u32;
        let mut turn = 0;
        for connection in &mut self.connections {
            let (Some((way, rate)), Some(total), Some(view)) = (way, total, connection.view) else {
                connection.set(Setting::OWN, &mut self.settings);
                continue;
            };
            let packets = if view.backlogged {
                turn += 1;
                // The remainder of the division goes to the first connections, one packet each.
                total / backlogged + u32::from(turn <= total % backlogged)
            } else {
                total / open.max(1)
            };
            let window = packets.max(1).saturating_mul(view.mss);
            let timer = match self.config.outage_timer {
                OutageTimer::Frozen if rate == Rate::ZERO => Timer::Frozen,
                _ => Timer::Runs,
            };
            let pacing = (self.config.pacing == Pacing::RoundTrip).then(|| spread(window, way.tau));
            connection.set(Setting { window: Some(window), pacing, timer }, &mut self.settings);
        }
    }
}

/// Pacing rate that sends `window` in one round trip.
fn spread(window: u32, tau: Span) -> Rate {
    Rate::from_bps_f64(f64::from(window) * 8.0 / tau.as_secs_f64()).max(Rate::from_bps(1))
}

/// Maximum window of a user without `w_max`, packets: more than the window field of TCP allows.
const MOST_PACKETS: u32 = 1 << 20;

impl Connection {
    fn set(&mut self, setting: Setting, settings: &mut VecDeque<(FlowId, Setting)>) {
        if std::mem::replace(&mut self.told, setting) != setting {
            settings.retain(|(id, _)| *id != self.id);
            settings.push_back((self.id, setting));
        }
    }
}

impl Steering for Rnf {
    fn on_connection(&mut self, _: Time, id: FlowId, event: ConnectionEvent) {
        let place = self.connections.binary_search_by_key(&id, |connection| connection.id);
        let changed = match (event, place) {
            (ConnectionEvent::Opened, Err(place)) => {
                self.connections.insert(place, Connection { id, view: None, told: Setting::OWN });
                false
            }
            (ConnectionEvent::Seen(view), Ok(place)) => self.see(place, view),
            (ConnectionEvent::Closed, Ok(place)) => {
                self.connections.remove(place);
                self.settings.retain(|(other, _)| *other != id);
                true
            }
            _ => false,
        };
        if changed {
            self.update_settings();
        }
    }

    fn on_report(&mut self, now: Time, report: &RadioReport) {
        // Serial number arithmetic: report numbers wrap.
        let overtaken = |last: u32| report.number.wrapping_sub(last).wrapping_sub(1) >= u32::MAX / 2;
        if self.last.is_some_and(overtaken) {
            return;
        }
        (self.last, self.heard) = (Some(report.number), Some(now));
        self.law.on_report(report, self.way());
        self.update_settings();
    }

    fn poll_setting(&mut self, _: Time) -> Option<(FlowId, Setting)> {
        self.settings.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.heard.map(|heard| heard + self.config.stale)
    }

    fn on_timeout(&mut self, now: Time) {
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.heard = None;
            self.law.forget();
            self.update_settings();
        }
    }
}

#[cfg(test)]
mod tests;
