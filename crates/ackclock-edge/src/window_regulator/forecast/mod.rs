//! # Window Regulator that forecasts the link (forecast)
//!
//! ## Source
//! The forecast regulator is our own extension of the dynamic Window Regulator of CR04 (`wrd.rs`). The rule for `B(t)`
//! is the order-up-to rule of inventory control, with the wired RTT as the lead time.
//!
//! ## What it does
//! The advertised right edge is the data that has left the queue plus the budget `B(t)`, as in `wrd`. In the regulator
//! `wrd`, the budget `B` is the buffer. In `forecast`, `B` is the service expected until the response to the right edge
//! arrives, shared by the active flows: `B = (g r (W + delay) + packets cbrt(flows)) / flows`. Flows that have sent
//! little data have priority over the rule for `B` (`shares.rs`). `r` is the largest of the rates over several windows
//! of time (`link_state.rs`). `W`, the wired RTT, is measured from an advertised right edge to the arrival of the data
//! that it triggered (`../source.rs`). The gain `g` (`gain.rs`) increases with the variation of the rate within a round
//! trip. Unnecessary idle time of the link raises the gain and service lowers it, so that the link is idle for the
//! share `idle` of the time. A larger share `idle` costs goodput, and a smaller share costs delay. After unnecessary
//! idle time, a part of the ACK delay over the air (`air.rs`) is added to `W`, because after a burst no right edge can
//! be advertised until the ACKs of the burst arrive. The mean lag of the advertised right edge behind its target is
//! added to `B`.
//!
//! A small buffer cannot cause much delay: it holds less than two round trips of the link's usual service, beyond the
//! packets that are always allowed. With a buffer of less than two round trips of service, any window would leave the
//! link idle or overflow the buffer. With a buffer of less than two round trips of service, the sender is released, as
//! if there were no regulator (`released.rs`).
//!
//! After a spurious timeout, a sender retransmits packets that are still queued, or that were acknowledged by an ACK
//! that is held or in transit. With many flows and delays of seconds, spurious retransmissions use a large share of the
//! link. The regulator discards spurious retransmissions, because their data is acknowledged anyway.
//!
//! The ACKs of a few packets are held. As soon as packets leave the queue, the held ACKs deliver a higher right edge to
//! the sender. In an outage, held ACKs are released packet by packet, each before the sender times out. If no ACK is
//! held, a copy of the last ACK advertises the right edge. The fewer copies are allowed, the larger the lag of the
//! right edge must be before a copy is sent. No ACK is held for a sender that is limited by its own window or pacing,
//! or that recovers from a loss. The held ACKs are limited to the room in the buffer beyond the budget. A sender that
//! paces (`pace.rs`) gets a larger budget.
//!
//! If two packets of each flow exceed the budget, as with many flows, the flows take turns (`flow/turns.rs`). The ACKs
//! of a flow are held until the queue is at most the share of one flow, and then release two packets. The first packets
//! of a sender are not limited, except that all new flows together get at most one second of service.
//!
//! The inputs of the regulator are arrivals, departures and ACKs, which any box at a queue can see. The rate of the
//! simulated link is never an input. With an observing bearer (`observed`), the bearer supplies service and idle time,
//! and the delay of the entire control loop replaces `W`: `B = (g r (loop + delay) + packets cbrt(flows)) / flows`. The
//! part of this `B` beyond `r loop` is at most the buffer. Senders that loss limits are released. Window updates and
//! held ACKs are not used with an observing bearer, because departures and idle times become known too late.
//!
//! With the key `act`, congestion marks tell the forecast to ECN-capable senders instead of windows (`marks.rs`).
//!
//! ## Differences from the source
//! The forecast regulator has no source to differ from.
//!
//! ## Validation
//! Unit tests check rate, gain, shares, pacing, release, wired RTT and timer by hand (`link_state.rs`, `past.rs`,
//! `shares.rs`, `flow/turns.rs`, `pace.rs`, `released.rs` and `source.rs`). Further tests check sequences of segments
//! (`tests.rs`) and the right edge under random traffic (`tests/windows.rs`). Simulations check complete systems over
//! synthetic recordings, cells and radio link control (`crates/ackclock-scenario/tests/forecast.rs`).

mod air;
mod flow;
mod gain;
mod link_state;
mod marks;
mod pace;
mod released;
mod repair;
mod shares;
mod updates;
mod usual_rate;

use std::collections::{BTreeMap, VecDeque};

use ackclock_core::{ConfigError, FlowId, Segment, Span, Time, Unused, Wakes};
use ackclock_link::{Cause, Left, LinkView, Observation, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::law;
use crate::{Allowance, FlowContext, Output, Properties, Regulator, RegulatorConfig, Scope, Verdict};
use flow::Flow;
use flow::turns::Turns;
use link_state::LinkState;
use marks::{MarkingForecast, Marks};
use released::ShortQueue;
use shares::Shares;

/// Advertises the window that the link is expected to serve until the response to the window arrives.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Flows that share a link and its forecast: the flows of a `user`, or all flows of a `queue`. With the scope
    /// `flow`, each flow has a separate link.
    pub(crate) scope: Scope,
    /// Signal that tells the forecast to senders: "window" (advertised windows), "mark" (congestion marks, for
    /// ECN-capable senders only; reads no headers), or "both" (marks to ECN-capable senders, windows to the others).
    pub(crate) act: Act,
    /// Target share of time in which the link is idle although a sender has data. A smaller share of idle time costs
    /// delay.
    pub(crate) idle: f64,
    /// Target queueing delay, in addition to the delay that the gain requires.
    pub(crate) delay: Span,
    /// Number of packets allowed at any link rate. For several flows together, `packets` is multiplied by the cube root
    /// of the number of flows. Too few packets let the queue run dry, and too many packets cause delay on a slow link.
    pub(crate) packets: u32,
    /// Learning rate of the gain, per second of idle time. 0 keeps the gain at 1.75.
    pub(crate) learning: f64,
    /// Number of packets whose ACKs are held. Held ACKs advertise right edges and prevent timeouts in outages. 0 holds
    /// no ACKs, which lowers the RTT and disables turns.
    pub(crate) reserve: u32,
    /// Bytes of window updates, as a share of the bytes of ACKs. 0 disables window updates.
    pub(crate) updates: f64,
    /// Minimum advertised window, packets. Below 2 packets, a receiver that delays ACKs can stall the sender.
    pub(crate) min_window: u32,
    /// Window scale assumed for flows whose handshake was not seen. Without the key `assumed_scale`, flows without a
    /// seen handshake are not regulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) assumed_scale: Option<u8>,
}

/// Signal that tells the forecast to senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Act {
    /// Advertised windows.
    Window,
    /// Congestion marks. Senders that are not ECN-capable are not regulated.
    Mark,
    /// Congestion marks to ECN-capable senders, and advertised windows to the others.
    Both,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            scope: Scope::User,
            act: Act::Window,
            idle: 0.005,
            delay: Span::from_millis(10),
            packets: 5,
            learning: 0.5,
            reserve: 6,
            updates: 0.05,
            min_window: 2,
            assumed_scale: None,
        }
    }
}

impl ackclock_core::Config for Config {
    fn check(&self) -> Result<(), ConfigError> {
        let most_packets = f64::from(MOST_PACKETS);
        for (key, value, least, most) in [
            ("idle", self.idle, 0.0001, 0.5),
            ("learning", self.learning, 0.0, 10.0),
            ("packets", self.packets.into(), 1.0, most_packets),
            ("reserve", self.reserve.into(), 0.0, most_packets),
            ("updates", self.updates, 0.0, 10.0),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ConfigError::new(key, format!("{value} is not {least} to {most}")));
            }
        }
        if self.delay > LONGEST {
            return Err(ConfigError::new("delay", format!("{} is more than {LONGEST}", self.delay)));
        }
        law::check(self.assumed_scale, self.min_window)
    }
}

/// Largest value of the keys `packets` and `reserve`.
const MOST_PACKETS: u32 = 1000;
/// Time within which a window-limited sender must have sent for a pause to count for learning. If a window-limited
/// sender has sent recently, a larger window would have prevented the pause.
const RULED: Span = Span::from_secs(1);
/// Largest value of the key `delay`.
const LONGEST: Span = Span::from_secs(10);

impl RegulatorConfig for Config {
    fn needs_handshake(&self) -> bool {
        self.act != Act::Mark
    }

    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(match self.act {
            Act::Mark => Box::new(MarkingForecast::new(self)),
            Act::Window | Act::Both => Box::new(Forecast::new(self.clone())),
        })
    }

    fn reads_headers(&self) -> bool {
        self.act != Act::Mark
    }

    fn marks_only(&self) -> bool {
        self.act == Act::Mark
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn allows(&self) -> bool {
        self.act == Act::Window
    }

    fn unused(&self, bearer: Properties) -> Vec<Unused> {
        let usual = Self::default();
        let of_acks =
            [("reserve", self.reserve != usual.reserve), ("updates", self.updates != usual.updates)];
        let of_windows = [
            ("min_window", self.min_window != usual.min_window),
            ("assumed_scale", self.assumed_scale.is_some()),
        ];
        let (keys, reason) = match (self.act, bearer.observes) {
            (Act::Mark, _) => {
                ([&of_acks[..], &of_windows].concat(), "has no effect on marks: use act = \"window\"")
            }
            (_, Some(_)) => (
                of_acks.to_vec(),
                "has no effect on a box that only observes: it neither holds nor makes ACKs",
            ),
            (_, None) => return Vec::new(),
        };
        let set = keys.into_iter().filter(|(_, is_set)| *is_set);
        set.map(|(key, _)| Unused::new(key, &["act"], reason)).collect()
    }

    fn observes(&self, _: Side) -> Result<Left, &'static str> {
        match self.act {
            Act::Window => Ok(Left::Certain),
            Act::Mark | Act::Both => {
                Err("it marks packets in a queue of its own; an observing bearer has none")
            }
        }
    }
}

/// State shared by all flows of a forecast regulator.
struct Shared {
    config: Config,
    link: LinkState,
    shares: Shares,
    turns: Turns,
    /// Number of packets of all flows in the queue.
    inside: usize,
    /// Time at which a window-limited sender last sent data.
    window_limited_at: Time,
    /// Whether the queue is observed, so that its state comes from observations.
    observed: bool,
    /// Additional delay until departures from an observed queue become known.
    late: Span,
    /// Time at which the newest data that has left an observed queue passed.
    left_until: Time,
    short: ShortQueue,
    marks: Marks,
    output: VecDeque<Output>,
}

/// Forecast regulator of the flows that share a link.
struct Forecast {
    shared: Shared,
    /// Index of each flow in the list `flows`.
    slots: BTreeMap<FlowId, usize>,
    latest: Option<(FlowId, usize)>,
    flows: Vec<Option<Flow>>,
    free: Vec<usize>,
    /// Times at which flows must next release an ACK, by slot.
    timers: Wakes,
    held: usize,
    /// Slot of the flow that the next observation looks at, for data that is never acknowledged.
    looked_at: usize,
}

impl Forecast {
    fn new(config: Config) -> Self {
        let link = LinkState::new(config.idle, config.learning);
        Self {
            shared: Shared {
                config,
                link,
                shares: Shares::default(),
                turns: Turns::default(),
                inside: 0,
                window_limited_at: Time::ZERO,
                observed: false,
                late: Span::ZERO,
                left_until: Time::ZERO,
                short: ShortQueue::default(),
                marks: Marks::default(),
                output: VecDeque::new(),
            },
            slots: BTreeMap::new(),
            latest: None,
            flows: Vec::new(),
            free: Vec::new(),
            timers: Wakes::default(),
            held: 0,
            looked_at: 0,
        }
    }

    /// Returns the slot of a flow, and creates a slot for a new flow.
    #[inline]
    fn slot(&mut self, flow: FlowId) -> usize {
        // Consecutive calls often concern the flow of one packet, so the latest slot is cached.
        if let Some((_, slot)) = self.latest.filter(|(latest, _)| *latest == flow) {
            return slot;
        }
        let slot = self.slots.get(&flow).copied().unwrap_or_else(|| self.admit(flow));
        self.latest = Some((flow, slot));
        slot
    }

    #[cold]
    fn admit(&mut self, flow: FlowId) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.timers.add()
        });
        self.flows[slot] = Some(Flow::new(&self.shared.config, slot));
        self.slots.insert(flow, slot);
        slot
    }

    /// Calls `call` for a flow, and applies the resulting changes for all flows.
    fn with_flow(&mut self, now: Time, flow: FlowId, call: impl FnOnce(&mut Flow, &mut Shared)) {
        let slot = self.slot(flow);
        self.tell_at(now, slot, call);
    }

    #[inline]
    fn tell_at(&mut self, now: Time, slot: usize, call: impl FnOnce(&mut Flow, &mut Shared)) {
        let Some(flow) = &mut self.flows[slot] else { return };
        let held = flow.held();
        call(flow, &mut self.shared);
        self.shared.note(now, flow);
        self.held = self.held + flow.held() - held;
        let deadline = flow.deadline();
        if self.timers.deadline(slot) != deadline {
            self.timers.set(slot, deadline);
        }
    }

    /// Releases held ACKs of a flow. If the link is idle, held ACKs of all flows are released, because no later event
    /// would release them.
    fn release(&mut self, now: Time, flow: FlowId) {
        if self.shared.inside == 0 && self.held > 0 {
            for slot in 0..self.flows.len() {
                self.tell_at(now, slot, |flow, shared| flow.on_link_idle(now, shared));
            }
        }
        self.with_flow(now, flow, |flow, shared| flow.release(now, shared));
        self.take_turns(now);
    }

    /// Releases flows that wait for their turn, while the queue has room.
    fn take_turns(&mut self, now: Time) {
        while let Some(first) = self.shared.turns.first() {
            self.tell_at(now, first, |flow, shared| flow.release(now, shared));
            if self.shared.turns.first() == Some(first) {
                break;
            }
        }
    }
}

impl Shared {
    /// Time up to which departures from the queue are known.
    fn seen(&self, now: Time) -> Time {
        now - self.late
    }

    /// Updates the number of a flow's packets in the queue, and whether the flow wants the link. Notes when the link
    /// becomes idle, and the duration of its idle time.
    fn note(&mut self, now: Time, flow: &mut Flow) {
        let was_idle = self.inside == 0;
        let (now_has, had) = flow.note(self.observed.then_some(self.left_until));
        self.inside = self.inside + now_has.inside - had.inside;
        self.shares.on_waiting(had.wants_link, now_has.wants_link);
        if self.observed || was_idle == (self.inside == 0) {
            return;
        }
        if self.inside == 0 {
            self.link.on_empty(now);
        } else if let Some(pause) = self.link.on_filled(now)
            && now.since(self.window_limited_at) <= RULED
        {
            self.link.on_missed(pause, flow.round_trip(), true);
        }
    }
}

impl Regulator for Forecast {
    fn on_data(&mut self, now: Time, segment: &Segment, view: LinkView) -> Verdict {
        let mut verdict = Verdict::Forward;
        self.with_flow(now, segment.flow, |flow, shared| verdict = flow.on_data(now, segment, view, shared));
        verdict
    }

    fn on_syn(&mut self, now: Time, segment: &Segment, _: LinkView) {
        self.with_flow(now, segment.flow, |flow, _| flow.source().on_syn(now));
    }

    fn on_queued(&mut self, now: Time, segment: &Segment, _: LinkView) {
        self.with_flow(now, segment.flow, |flow, _| flow.on_queued(segment));
    }

    fn on_dropped(&mut self, now: Time, segment: &Segment, cause: Cause, view: LinkView) {
        self.with_flow(now, segment.flow, |flow, _| flow.on_dropped(segment, cause, view));
        self.release(now, segment.flow);
    }

    fn on_departed(&mut self, now: Time, segment: &Segment, view: LinkView) {
        self.with_flow(now, segment.flow, |flow, shared| {
            flow.on_left(now, segment, view);
            if !shared.observed {
                if view.is_idle() {
                    flow.on_idle();
                }
                shared.link.on_served(now, segment.payload.into());
            }
            shared.note(now, flow);
            if shared.inside > 0 {
                flow.release(now, shared);
            }
        });
        if self.shared.inside == 0 {
            self.release(now, segment.flow);
        } else {
            self.take_turns(now);
        }
    }

    fn on_observation(&mut self, now: Time, observation: &Observation, _: LinkView) {
        let Observation { flow, bytes, idle, called, horizon, late, probing, passed, .. } = *observation;
        self.with_flow(now, flow, |flow, shared| {
            flow.on_observation(observation);
            shared.short.on_observation(observation);
            // During a probe, data that leaves the queue within a control loop must not be replaced by new data.
            flow.on_horizon(if probing { Span::ZERO } else { horizon });
            (shared.observed, shared.late) = (true, late);
            shared.left_until = passed.map_or(shared.left_until, |passed| shared.left_until.max(passed));
            let seen = shared.seen(now);
            shared.link.on_idle(seen, idle);
            if called {
                shared.link.on_missed(idle, horizon, false);
            }
            shared.link.on_served(seen, bytes as u32);
        });
        self.looked_at = (self.looked_at + 1) % self.flows.len().max(1);
        self.tell_at(now, self.looked_at, |_, _| ());
    }

    fn allowance(&mut self, now: Time, flow: FlowId, view: LinkView) -> Option<Allowance> {
        let flow = self.flows[*self.slots.get(&flow)?].as_mut()?;
        flow.allowance(now, view, &mut self.shared)
    }

    fn handle_ack(&mut self, now: Time, ack: Segment, view: LinkView) {
        self.with_flow(now, ack.flow, |flow, shared| flow.handle_ack(now, ack, view, shared));
        self.take_turns(now);
    }

    fn handle_timeout(&mut self, now: Time, _: LinkView) {
        while let Some((_, slot)) = self.timers.first().filter(|(due, _)| *due <= now) {
            self.tell_at(now, slot, |flow, shared| flow.spend(now, shared));
        }
        self.shared.turns.coming(now);
        self.take_turns(now);
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.shared.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.timers.first().map(|(due, _)| due).into_iter().chain(self.shared.turns.due()).min()
    }

    fn close(&mut self, now: Time, flow: FlowId) {
        let Some(slot) = self.slots.remove(&flow) else { return };
        self.latest = None;
        self.tell_at(now, slot, |flow, shared| flow.close(now, shared));
        self.flows[slot] = None;
        self.free.push(slot);
    }

    fn held(&self, flow: FlowId) -> usize {
        let slot = self.slots.get(&flow);
        slot.and_then(|slot| self.flows[*slot].as_ref()).map_or(0, Flow::held)
    }
}

#[cfg(test)]
mod tests;
