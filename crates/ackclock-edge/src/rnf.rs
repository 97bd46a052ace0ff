//! # RNF
//!
//! Radio network feedback (RNF) sets a proxy's congestion window from the radio's reports of its rate and queue.
//!
//! ## Source
//! Source: M05 chapter 3, equations (3.1) and (3.2), with the settings of section 3.6. Additional rules, marked below
//! as our own, come from tests with real kernels.
//!
//! ## What it does
//! Let b be the rate of the radio in packets per second, and tau the round-trip time between proxy and mobile without
//! queueing. Let q be the radio's queue and q_ref its target, in packets:
//!
//! - **Feedforward**: a report of a changed rate sets `w = b tau + q_ref` at once (equation 3.1), and so does a
//!   periodic report whose rate differs by more than `change`.
//! - **Feedback**: a periodic report adds `gain (q_ref - q)` to the window (equation 3.2). With a gain of 1 and a
//!   period of several round trips, the queue reaches q_ref two samples after a disturbance.
//! - **One window per user**: the user's connections with data to send share the window, each with at least one packet.
//!   A full window for each connection would multiply the gain.
//! - **No wind-up**: if no window was full since the last sample, a short queue only shows that the senders had no
//!   data, and the window does not grow.
//! - **Settling**: suppose that a report generated at time `t` last changed the window. Samples taken before `t + lag +
//!   tau + max(q, q_ref) / b` do not reflect the change of the window and are ignored. All times are measured by the
//!   radio's clock.
//! - **Silence**: after `stale` without a report, connections use their own congestion control until the next report.
//! - **Outage**: with b = 0 no new data is sent, and the retransmission timer is frozen.
//! - **Order**: reports that arrive out of order or twice are ignored.
//!
//! ## Differences from the source
//! The window is a whole number of packets, with at least one packet per connection. The queue is measured in bytes and
//! divided by the full packet size, so small packets count less than full ones. The rule "One window per user" and the
//! rules after it are our own. The settings `q_ref = "auto"` and `change` are also our own.
//!
//! ## Validation
//! Unit tests (below) check each rule by hand, M05-D1 (two samples), and that random reports cause no panic and only
//! bounded windows. A simulation runs RNF alongside real kernels (`crates/ackclock-scenario/tests/rnf.rs`).

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
    /// Target length of the radio's queue: a number of packets ("6p"), the packets served in a time ("100ms"; at least
    /// 2 and at most 6 packets), or "auto", the smallest number of packets that keeps the radio busy.
    pub(crate) q_ref: Target,
    /// Share of the queue's error that a sample corrects. Use a gain of 1 if the queue settles between two samples. The
    /// control loop is unstable for a gain of 2 or more. If reports are a period later than `lag`, the loop is unstable
    /// for a gain of 1 or more.
    pub(crate) gain: f64,
    /// Largest relative difference between the reported rate and the rate in use for which a periodic report counts as
    /// a sample of the queue. A report with a larger difference in rate sets a new window. Measured rates, such as a
    /// user's share of a cell, always differ a little.
    pub(crate) change: f64,
    /// Round-trip time between proxy and mobile without the radio's queue: a time, or "measured", the minimum over the
    /// user's connections.
    pub(crate) tau: Tau,
    /// Maximum window of a user, packets, which bounds the effect of a wrong report. Without `w_max`, only `max_window`
    /// limits each connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) w_max: Option<Size>,
    /// Delay of the radio's reports. A sample is ignored if it was taken before the radio could see the effect of the
    /// last change.
    pub(crate) lag: Span,
    /// Time without a report after which connections use their own congestion control.
    pub(crate) stale: Span,
    /// Sending of packets when the window grows: burst or paced.
    pub(crate) pacing: Pacing,
    /// Behaviour of retransmission timers while the rate is zero.
    pub(crate) outage_timer: OutageTimer,
}

/// Round-trip time between proxy and mobile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub(crate) enum Tau {
    /// Minimum of the measured round-trip times.
    Measured,
    /// Round-trip time given in the configuration.
    Given(Span),
}

/// Sending of packets when the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pacing {
    /// Packets are sent as one burst.
    Burst,
    /// Packets are paced, at a rate of one window per round trip.
    RoundTrip,
}

/// Behaviour of retransmission timers while the rate is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OutageTimer {
    /// The expiry of a retransmission timer has no effect.
    Frozen,
    /// Retransmission timers expire as usual, as in a kernel.
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

/// Gain at and above which the queue never settles, because each sample leaves `1 - gain` of the error.
const UNSTABLE_GAIN: f64 = 2.0;
/// Largest configurable round-trip time and lag.
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

/// RNF controller of one user: window and connections.
struct Rnf {
    config: Config,
    law: Law,
    /// Minimum round-trip time of all connections.
    min_rtt: Option<Span>,
    packet: u32,
    /// Connections of the user, ordered by number.
    connections: Vec<Connection>,
    /// Number of the last report; `None` before the first report and after `stale` without a report.
    last: Option<u32>,
    heard: Option<Time>,
    /// Settings that the caller has not fetched yet.
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

    /// Round-trip time and packet size of the path to the mobile; `None` before the first measurement.
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

    /// Calculates the window, pacing and timer settings of each connection.
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
                // The remainder of the division is distributed to the first connections, one packet each.
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

/// Pacing rate that sends `window` in one round-trip time.
fn spread(window: u32, tau: Span) -> Rate {
    Rate::from_bps_f64(f64::from(window) * 8.0 / tau.as_secs_f64()).max(Rate::from_bps(1))
}

/// Maximum window of a user without `w_max`, packets. The maximum of 2^20 packets exceeds the window that TCP's window
/// field allows.
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
        // Report numbers wrap, so they are compared by serial number arithmetic.
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
