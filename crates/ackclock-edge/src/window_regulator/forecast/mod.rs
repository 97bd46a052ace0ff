//! # Window Regulator that forecasts the link (forecast)
//!
//! ## Source
//! Our own. It grows out of the dynamic Window Regulator of CR04 (`wrd.rs`); the rule for `B(t)` is the order-up-to rule of
//! inventory control, with the round trip on the wire as the lead time.
//!
//! ## What it does
//! The right edge told to a source is what left the queue and `B(t)` more, as under `wrd`. There `B` is the buffer; here it
//! is what the link is expected to serve until the answer to that edge comes, shared by the flows that send:
//! `B = (g r (W + delay) + packets cbrt(flows)) / flows`, but that flows which have sent little go before the others (`shares.rs`).
//! `r` is the largest of the rates over several windows of time (`link_state.rs`),
//! `W` is measured from an edge told to the data that it called forth (`../source.rs`). The gain `g` (`gain.rs`) is the larger the
//! more the link's rate jumps within a round trip, rises with time in which the link stood idle and falls with what it served, so
//! that in the long run it is idle for the share `idle` of the time: more of that costs goodput, less costs delay. Where it rises, part of the time that ACKs take over the air (`air.rs`) is added
//! to `W`: after a burst nothing is told until they come. An edge that no ACK carries stays untold for a while; by what is
//! untold in the mean, `B` is more.
//!
//! A buffer that does not hold two round trips of what the link usually serves, beside what is told whatever the rate, cannot
//! delay much. A window would leave the link idle there or overflow it: the source is let go, as if there were no regulator
//! (`letting_go.rs`).
//!
//! A source whose timer runs out for nothing sends again what waits in the queue still, or what the mobile has acknowledged by an
//! ACK that is kept or on its way, and where many wait for seconds that is much of what the link carries. Such a copy is
//! discarded: what it copies is acknowledged all the same.
//!
//! The ACKs of a few packets are kept back. They carry a further edge to the source as soon as packets leave the queue, and
//! in an outage they are spent one packet at a time, each before the source's timer runs out. Where none is kept, a copy of
//! the last ACK tells the edge; the fewer copies may be made, the further behind the source must be. From a source that its
//! own window or pace rules, or that repairs a loss, none is kept, and no more than the buffer has room for beside the budget.
//! A source that paces what it sends (`pace.rs`) gets a longer leash.
//!
//! Two packets of each of many flows are more than that. There they take turns (`flow/turns.rs`): the ACKs of a flow are kept
//! until no more waits than one flow would be told, and then bring it two packets. First packets of sources are not held back, but
//! that all that begin have no more than the link serves in a second.
//!
//! What it looks at is what any box beside a queue can see: arrivals, departures and ACKs, never the rate of the simulated
//! link. Where the bearer only observes a queue (`observed`), it tells what was served and for how long nothing was, and the whole loop
//! takes the place of `W`: `B = (g r (loop + delay) + packets cbrt(flows)) / flows`, of which the part beyond `r loop` is at most the buffer. No window is then
//! updated and no ACK kept back: nobody there knows when a packet leaves the queue, or whether the link is idle.
//!
//! ## Differences from the source
//! None; it is the source.
//!
//! ## Validation
//! The rate, the gain, the shares, the pace, letting go, the round trip and the timer by hand (tests of `link_state.rs`, `past.rs`, `shares.rs`,
//! `flow/turns.rs`, `pace.rs`, `letting_go.rs` and `source.rs`), sequences of segments
//! (`tests.rs`), the right edge under random traffic (`tests/windows.rs`), and whole systems over synthetic recordings, cells
//! and radio link control (`crates/ackclock-scenario/tests/forecast.rs`).

mod air;
mod flow;
mod gain;
mod letting_go;
mod link_state;
mod pace;
mod past;
mod repair;
mod shares;
mod updates;
mod usual;

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

/// The window that a source is told is what the link is expected to serve until its answer comes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Whose flows share the link and its forecast: those of a `user`, or all of a `queue`; `flow`: each has a link of its own.
    pub(crate) scope: Scope,
    /// Share of the time for which the link may be idle although there is something to send: less of it costs delay.
    pub(crate) idle: f64,
    /// Wait in the queue that is aimed at, beside what the gain finds to be needed.
    pub(crate) delay: Span,
    /// Packets that a flow alone is given beside what the rate tells, and several together times the third root of their
    /// number; with few the queue runs dry, with many it is long where the link is slow.
    pub(crate) packets: u32,
    /// How fast the gain follows, per second for which the link was idle; 0 keeps it at 1.75.
    pub(crate) learning: f64,
    /// Packets whose ACKs are kept back to carry edges, and for outages; 0 keeps none, which shortens round-trip times, and lets no
    /// flows take turns.
    pub(crate) reserve: u32,
    /// Share of the bytes of ACKs that window updates may add to them; 0 makes none.
    pub(crate) updates: f64,
    /// Least window told to a source, packets; below 2 an ACK that the receiver delays can stall it.
    pub(crate) min_window: u32,
    /// Shift of the windows of a flow whose handshake was not seen; left out, such a flow is left alone.
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
/// A pause teaches where a source that its window rules has sent within this time, whoever ends the pause: with a larger window
/// the link would not have been idle.
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

/// What all flows of a regulator share.
struct Shared {
    config: Config,
    link: LinkState,
    shares: Shares,
    turns: Turns,
    /// Packets of all flows in the queue.
    inside: usize,
    /// When a source that its window rules last sent.
    ruled: Time,
    /// The queue is somebody else's, and what is known of it comes by observations.
    observed: bool,
    /// How late the news comes of what left it.
    late: Span,
    output: VecDeque<Output>,
}

/// The regulator of the flows that share a link.
struct Forecast {
    shared: Shared,
    /// Where the flows stand, and the one that was asked for last.
    slots: BTreeMap<FlowId, usize>,
    latest: Option<(FlowId, usize)>,
    flows: Vec<Option<Flow>>,
    free: Vec<usize>,
    /// When the flows next have to let an ACK go, and how many ACKs are held.
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
                ruled: Time::ZERO,
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

    /// The place of a flow, which is made for one that is new.
    #[inline]
    fn slot(&mut self, flow: FlowId) -> usize {
        // What is told of one packet comes in a row.
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

    /// Tells a flow something, and takes in what that changes for all.
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

    /// Lets go what is held of a flow; of all where the link is idle, since nobody else would then.
    fn release(&mut self, now: Time, flow: FlowId) {
        if self.shared.inside == 0 && self.held > 0 {
            for slot in 0..self.flows.len() {
                self.tell_at(now, slot, |flow, shared| flow.on_link_idle(now, shared));
            }
        }
        self.with_flow(now, flow, |flow, shared| flow.release(now, shared));
        self.take_turns(now);
    }

    /// Those who wait for their turn go while there is room.
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
    /// The instant up to which it is known what left the queue.
    fn seen(&self, now: Time) -> Time {
        now - self.late
    }

    /// Takes in how many packets of a flow are in the queue, and whether it wants the link: notes when that falls idle, and what it
    /// was idle for.
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
            && now.since(self.ruled) <= RULED
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
            // While a probe runs, what leaves in a loop is not to be called for.
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
