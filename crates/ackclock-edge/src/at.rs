//! The steps of `[[edge.at]]` as written in a scenario.

use ackclock_core::{ConfigError, Span};
use ackclock_link::{Direction, HandoverTo, OutageKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Change of the links or of the bearer at a given time of the run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Time of the change since the start of the run.
    pub time: Span,
    /// Keys of the links or of the bearer, with their new values: `{ down.rate = "1Mbit/s" }` or
    /// `{ bearer.air.down.rate = "64kbit/s" }`. A rate of 0 of a link is an outage. A dedicated channel can change its
    /// rate, its delay and its errors. A new rate applies from the next TTI on; with a new delay, no PDU overtakes an
    /// earlier PDU. A cell can change `loss`, `delay` and `harq.error`, and `user.N.mean_snr` and `user.N.doppler` of
    /// the table `[[edge.user]]` with the number N; the interface below a controller can change `bearer.iub.delay` and
    /// `bearer.iub.rate`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// Time after which the keys of `set` get their earlier values back; without it, the new values stay. The time of
    /// the next step must be after the end.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Outage of the radio that starts at this time. The time of the next step must be after the end of the outage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// Hand-over of a user that starts at this time. Until it ends, no other step may change the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<HandoverTable>,
}

/// Outage of the radio for a limited time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Duration of the outage of the radio.
    #[serde(rename = "for")]
    pub lasts: Span,
    /// Kind of the outage. In a "silent" outage nothing is sent, and packets wait. In a "fade" the transmitter does not
    /// notice the outage, and all packets it sends are lost. The default kind of an outage is "silent" for links and
    /// cells, and "fade" for dedicated channels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<OutageKind>,
    /// Direction that the outage interrupts. By default, both directions are interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Number of the user that the outage interrupts. By default, all users are interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<u32>,
}

/// Hand-over of one user of the radio.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandoverTable {
    /// Number of the user that is handed over.
    #[serde(default)]
    pub user: u32,
    /// Part of the network that changes: "cell", another base station of the same controller, or "controller", another
    /// controller with its base station.
    #[serde(default)]
    pub to: HandoverTo,
    /// Duration of the hand-over. Until its end, nothing is sent over the air of the user, in both directions.
    #[serde(rename = "for")]
    pub lasts: Span,
    /// Whether the old part of the network forwards the packets that it holds to the new part; otherwise these packets
    /// are lost. By default, a cell does not forward, and a controller forwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<bool>,
    /// Regulator after a hand-over to another controller: "moves" with its state, or "restarts". A regulator that
    /// restarts releases everything that it holds. A regulator that writes windows then leaves running connections
    /// alone, because it has not seen their window scales. By default, the regulator moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regulator: Option<AtHandover>,
}

/// State of the regulator after a hand-over to another controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtHandover {
    /// The regulator moves to the new controller with its state.
    #[default]
    Moves,
    /// The new controller has a new regulator, which meets running connections.
    Restarts,
}

impl Step {
    /// Checks the time `lasts` after which the keys of `set` get their earlier values back.
    pub(crate) fn check_end(&self, lasts: Span) -> Result<(), ConfigError> {
        let message = match self {
            _ if lasts == Span::ZERO => "0s: the new values stay longer",
            _ if self.set.is_empty() => "no key of `set` has a value that ends",
            Self { outage: Some(_), .. } => "an outage has its own `for`: write it in a separate step",
            _ => return Ok(()),
        };
        Err(ConfigError::new("for", message))
    }
}

impl Outage {
    pub(crate) fn directions(self) -> impl Iterator<Item = Direction> {
        Direction::BOTH.into_iter().filter(move |&one| self.direction.is_none_or(|only| only == one))
    }
}
