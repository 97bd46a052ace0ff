//! # RNF
//!
//! The window of a proxy that the radio network tells of its rate and its queue: radio network feedback.
//!
//! ## Source
//! M05 chapter 3: equations (3.1) and (3.2), the settings of section 3.6. What real kernels taught is added by laws of our own, named
//! below.
//!
//! ## What it does
//! With b the rate of the radio, tau the round trip beyond the proxy without its queue, q what waits at the radio and q_ref what is to
//! wait there, in packets:
//!
//! - **Feedforward**: a report of a change, or a periodic one whose rate differs by more than `change`, sets `w = b tau + q_ref`
//!   at once (equation 3.1).
//! - **Feedback**: a periodic report adds `gain (q_ref - q)` (equation 3.2). With a gain of 1 and a period of several round trips the
//!   queue is at q_ref two samples after a disturbance.
//! - **One window a user.** It is shared among the connections that have something to send, at least a packet each: each with the
//!   whole of it would multiply the gain.
//! - **No wind-up.** While no window was full since the last sample, a short queue says that there was nothing to send, and the
//!   window does not grow.
//! - **Settling.** The window last changed by a report that was made at `t`. A sample that was taken before
//!   `t + lag + tau + max(q, q_ref) / b` does not show that yet and is left out; all of these are instants of the radio's clock.
//! - **Silence.** When no report came for `stale` the connections rule themselves, and the next report takes them back.
//! - **Outage.** With b = 0 nothing new leaves, and the retransmission timer is frozen.
//! - **Order.** A report that a later one has overtaken, or that came before, is left out.
//!
//! ## Differences from the source
//! The window is a whole number of packets, and each connection may have one in flight. What waits is counted in bytes, in packets
//! of the full size, so that small ones count for less.
//! Rules from one window a user on are ours, and so are `q_ref = "auto"` and `change`.
//!
//! ## Validation
//! Each rule by hand, M05-D1 (two samples), no panic and bounded windows under random reports (tests below). In the simulator
//! beside real kernels (`crates/ackclock-scenario/tests/rnf.rs`).

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

/// The window follows what the radio reports of its rate and its queue.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// What is to wait at the radio: so many packets ("6p"); what passes in a time ("100ms"), 2 packets at least and 6 at most; or
    /// "auto", as few as keep the radio busy.
    pub(crate) q_ref: Target,
    /// Share of the error of the queue that a sample corrects. 1 is right where the queue has settled between two samples; the loop is
    /// unstable from 2 on, and from 1 on where reports come a period later than `lag` says.
    pub(crate) gain: f64,
    /// Share of the rate that was fed forward by which the rate of a periodic report may differ and still be a sample of the queue.
    /// Beyond it the report sets the window anew. A measured rate, such as a user's share of a cell, is never twice the same.
    pub(crate) change: f64,
    /// Round trip between the proxy and the mobile without the radio's queue: "measured", the smallest that a connection of the user
    /// has seen, or a time.
    pub(crate) tau: Tau,
    /// Largest window of a user, in packets: what a wrong report can do is bounded by it. Without it each connection has its
    /// `max_window` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) w_max: Option<Size>,
    /// How late reports come: a sample is left out that was made before the window by which the one before was answered could be seen.
    pub(crate) lag: Span,
    /// Connections rule themselves when no report came for so long.
    pub(crate) stale: Span,
    /// How a window that has grown is used.
    pub(crate) pacing: Pacing,
    /// What retransmission timers do while the rate is zero.
    pub(crate) outage_timer: OutageTimer,
}

/// The round trip beyond the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub(crate) enum Tau {
    /// The smallest that was seen.
    Measured,
    /// This.
    Given(Span),
}

/// How a window that has grown is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pacing {
    /// What it allows leaves at once.
    Burst,
    /// A window is spread over the round trip.
    RoundTrip,
}

/// What retransmission timers do while the rate is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OutageTimer {
    /// Nothing comes of their expiry.
    Frozen,
    /// They expire as ever, as in a kernel.
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

/// Gain from which on the queue does not settle: each sample leaves `1 - gain` of the error.
const UNSTABLE_GAIN: f64 = 2.0;
/// Longest round trip and lag that can be said.
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

/// The steering of one user.
struct Rnf {
    config: Config,
    law: Law,
    /// The smallest round trip that any connection has seen, and the largest packet.
    min_rtt: Option<Span>,
    packet: u32,
    /// In the order of their numbers.
    connections: Vec<Connection>,
    /// Number of the last report, and when it came; `None` in silence.
    last: Option<u32>,
    heard: Option<Time>,
    /// Settings that were not fetched yet.
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

    /// What there is to know of the way to the mobile; `None` before anything was seen of it.
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

    /// Works out what each connection is to do.
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
                // The first ones have what is left of a division.
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

/// The rate at which a window leaves in one round trip.
fn spread(window: u32, tau: Span) -> Rate {
    Rate::from_bps_f64(f64::from(window) * 8.0 / tau.as_secs_f64()).max(Rate::from_bps(1))
}

/// Largest window of a user where none is said, packets: more than fits into the window of TCP.
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
        // In the arithmetic of sequence numbers: they wrap.
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
