//! # Window Regulator that forecasts the link (forecast)
//!
//! ## Source
//! Our own. It extends the dynamic Window Regulator of CR04 (`wrd.rs`); the rule for `B(t)` is the order-up-to rule of
//! inventory control, with the wired RTT as the lead time.
//!
//! ## What it does
//! The advertised right edge is the data that has left the queue plus `B(t)`, as in `wrd`. There `B` is the buffer;
//! here it is the service expected until the response to that right edge arrives, shared by the active flows: `B = (g
//! r (W + delay) + packets cbrt(flows)) / flows`, except that flows that have sent little have priority (`shares.rs`).
//! `r` is the largest of the rates over several windows of time (`link_state.rs`). `W`, the wired RTT, is measured
//! from an advertised right edge to the data that it triggered (`../source.rs`). The gain `g` (`gain.rs`) increases
//! with variation of the rate within a round trip. Unnecessary idle time of the link raises it and service lowers it,
//! so that the link is idle for the share `idle` of the time: a larger share costs goodput, a smaller one delay. After
//! unnecessary idle time, a part of the ACK delay over the air (`air.rs`) is added to `W`: after a burst no right edge
//! can be advertised until its ACKs arrive. The mean lag of the advertised right edge behind the target is added to
//! `B`.
//!
//! A buffer that holds less than two round trips of the link's usual service, beyond the packets that are always
//! allowed, cannot cause much delay. A window would leave the link idle or overflow it: the sender is released, as if
//! there were no regulator (`released.rs`).
//!
//! A sender with a spurious timeout retransmits packets that are still queued, or that were acknowledged by a held ACK
//! or one in transit. With many flows and delays of seconds this is a large share of the link. Such a copy is
//! discarded: its data is acknowledged all the same.
//!
//! The ACKs of a few packets are held. They carry a higher right edge to the sender as soon as packets leave the
//! queue; in an outage they are released packet by packet, each before the sender times out. If none is held, a copy
//! of the last ACK advertises the right edge; the fewer copies are allowed, the larger must be the lag. No ACK is held
//! for a sender that is limited by its own window or pacing, or that recovers from a loss, and at most as many as the
//! buffer has room for beyond the budget. A sender that paces (`pace.rs`) gets a larger budget.
//!
//! With many flows two packets each exceed this. Then flows take turns (`flow/turns.rs`): the ACKs of a flow are held
//! until the queue is at most the share of one flow, and then release two packets. A sender's first packets are not
//! limited, except that all new flows together get at most one second of service.
//!
//! Its inputs are arrivals, departures and ACKs, which any box at a queue can see; never the rate of the simulated
//! link. An observing bearer (`observed`) supplies service and idle time, and the whole loop replaces `W`: `B = (g r
//! (loop + delay) + packets cbrt(flows)) / flows`, of which the part beyond `r loop` is at most the buffer. Window
//! updates and held ACKs are not used then, as departures and idle times are not known in time.
//!
//! ## Differences from the source
//! None: it is our own.
//!
//! ## Validation
//! Rate, gain, shares, pacing, release, wired RTT and timer by hand (tests of `link_state.rs`, `past.rs`, `shares.rs`,
//! `flow/turns.rs`, `pace.rs`, `released.rs` and `source.rs`); sequences of segments (`tests.rs`); the right edge
//! under random traffic (`tests/windows.rs`); complete systems over synthetic recordings, cells and radio link control
//! (`crates/ackclock-scenario/tests/forecast.rs`).

mod air;
mod flow;
mod gain;
mod link_state;
mod pace;
mod released;
mod repair;
mod shares;
mod updates;
mod usual_rate;

use std::collections::{BTreeMap, VecDeque};

use ackclock_core::{ConfigError, FlowId, Segment, Span, Time, Wakes};
use ackclock_link::{Cause, Left, LinkView, Observation, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::law;
use crate::{Allowance, FlowContext, Output, Regulator, RegulatorConfig, Scope, Verdict};
use flow::Flow;
use flow::turns::Turns;
use link_state::LinkState;
use shares::Shares;

/// Advertises the window that the link is expected to serve until the response to it arrives.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Which flows share a link and its forecast: those of a `user`, or all of a `queue`; `flow`: each has its own
    /// link.
    pub(crate) scope: Scope,
    /// Target share of time in which the link is idle although there is data: a smaller share costs delay.
    pub(crate) idle: f64,
    /// Target queueing delay, in addition to what the gain requires.
    pub(crate) delay: Span,
    /// Packets allowed at any rate: for a single flow, and for several flows together times the cube root of their
    /// number. Too few let the queue run dry; too many cause delay on a slow link.
    pub(crate) packets: u32,
    /// Learning rate of the gain, per second of idle time; 0 keeps the gain at 1.75.
    pub(crate) learning: f64,
    /// Packets whose ACKs are held to advertise right edges and for outages. 0 holds none, which lowers the RTT, and
    /// disables turns.
    pub(crate) reserve: u32,
    /// Window updates, as a share of the bytes of ACKs; 0: none.
    pub(crate) updates: f64,
    /// Minimum advertised window, packets; below 2 a receiver that delays ACKs can stall the sender.
    pub(crate) min_window: u32,
    /// Window scale of flows whose handshake was not seen; without it such flows are not regulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) assumed_scale: Option<u8>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            scope: Scope::User,
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

/// Largest `packets` and `reserve`.
const MOST_PACKETS: u32 = 1000;
/// A pause teaches only if a window-limited sender has sent within this time: a larger window would then have
/// prevented the pause, whichever flow ended it.
const RULED: Span = Span::from_secs(1);
/// Longest `delay`.
const LONGEST: Span = Span::from_secs(10);

impl RegulatorConfig for Config {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(Forecast::new(self.clone())))
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn allows(&self) -> bool {
        true
    }

    fn observes(&self, _: Side) -> Result<Left, &'static str> {
        Ok(Left::Certain)
    }
}

/// State shared by all flows of a regulator.
struct Shared {
    config: Config,
    link: LinkState,
    shares: Shares,
    turns: Turns,
    /// Packets of all flows in the queue.
    inside: usize,
    /// When a window-limited sender last sent.
    window_limited_at: Time,
    /// The queue is observed: its state comes from observations.
    observed: bool,
    /// Excess delay of the news of departures.
    late: Span,
    output: VecDeque<Output>,
}

/// The regulator of the flows that share a link.
struct Forecast {
    shared: Shared,
    /// Slot of each flow.
    slots: BTreeMap<FlowId, usize>,
    latest: Option<(FlowId, usize)>,
    flows: Vec<Option<Flow>>,
    free: Vec<usize>,
    /// When flows must next release an ACK.
    timers: Wakes,
    held: usize,
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
                output: VecDeque::new(),
            },
            slots: BTreeMap::new(),
            latest: None,
            flows: Vec::new(),
            free: Vec::new(),
            timers: Wakes::default(),
            held: 0,
        }
    }

    /// The slot of a flow, created for a new one.
    #[inline]
    fn slot(&mut self, flow: FlowId) -> usize {
        // Calls for one packet come in sequence.
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

    /// Calls a flow, and applies the changes that follow for all flows.
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

    /// Releases held ACKs of a flow; of all flows if the link is idle, as nothing else would trigger it.
    fn release(&mut self, now: Time, flow: FlowId) {
        if self.shared.inside == 0 && self.held > 0 {
            for slot in 0..self.flows.len() {
                self.tell_at(now, slot, |flow, shared| flow.on_link_idle(now, shared));
            }
        }
        self.with_flow(now, flow, |flow, shared| flow.release(now, shared));
        self.take_turns(now);
    }

    /// Releases flows that wait for their turn while there is room.
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
    /// Instant up to which departures from the queue are known.
    fn seen(&self, now: Time) -> Time {
        now - self.late
    }

    /// Updates a flow's packets in the queue and whether it wants the link. Notes when the link becomes idle, and for
    /// how long it was.
    fn note(&mut self, now: Time, flow: &mut Flow) {
        let was_idle = self.inside == 0;
        let (now_has, had) = flow.note();
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
        let Observation { flow, bytes, idle, called, horizon, late, probing, .. } = *observation;
        self.with_flow(now, flow, |flow, shared| {
            flow.on_observation(observation);
            // During a probe, data that leaves within a loop must not be replaced.
            flow.on_horizon(if probing { Span::ZERO } else { horizon });
            (shared.observed, shared.late) = (true, late);
            let seen = shared.seen(now);
            shared.link.on_idle(seen, idle);
            if called {
                shared.link.on_missed(idle, horizon, false);
            }
            shared.link.on_served(seen, bytes as u32);
        });
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
