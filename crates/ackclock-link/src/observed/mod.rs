//! # The observed bearer
//!
//! ## Source
//! Ours: `forecast-regulator.md` section 8 and `gateway.md` section 3.
//!
//! ## What it does
//! A box that only sees traffic pass has no queue, delay or loss of its own. The queue that it regulates stands elsewhere: between the box
//! and the mobiles (`side = "network"`), as for a gateway of an operator; or between the box and the servers (`side = "mobile"`), as for a
//! router behind an LTE or satellite link. No rate is configured. What is known of the queue follows from what passes:
//! - `flow`: windows told to the source of a flow, data that passed, ACKs for it;
//! - `meter`: how fast data leaves the queue: acknowledged (network) or arrived (mobile);
//! - `detour`: how long the other way of a loop took, on which the queue does not stand: by the timestamps of TCP, where both ends have them;
//! - `floor`: the least loop. A loop is the time from the passing of data to its ACK (network), or from the telling of a window to
//!   the arrival of the data that it called for (mobile);
//! - `user`: what the flows of a user share: rate, what waits, for how long nothing waited;
//! - `probe`: closes windows for a moment where a standing queue and a longer route could be taken for each other.
//!
//! The buffer `B` of the edge is divided among a user's flows with data in the last two seconds, at least two packets each. A segment has
//! left the queue when it is acknowledged, or arrives. For regulators that act on estimates ([`Left::Estimated`]) it has left also when it is among the
//! bytes that leave in one least loop; on the mobiles' side, where all that the box sees has left, these bytes are added to the buffer instead.
//!
//! ## Differences from the source
//! SACKed bytes count among those that leave in a least loop. A probe is given up after 5 s. What the other way took beyond its least is no part of a loop, and on the side of
//! the network what is acknowledged left the queue by as much earlier. On the side of the mobiles only data that its source sent as soon as it was told teaches, by its echo
//! of the mobile's clock, and of a source that sends less than it may no more is taken to be on its way than came in the last second or two.
//!
//! ## Validation
//! The accounts by hand (unit tests); the laws of bearers; Window Regulators and our own beside the same regulators at the
//! queue, whose loop is as long (`crates/ackclock-scenario/tests/observed.rs`).

mod config;
mod detour;
mod floor;
mod flow;
mod meter;
mod outstanding;
mod probe;
mod user;
mod vocabulary;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use ackclock_core::{Flags, FlowId, Histogram, Rate, Segment, Span, Time};

pub use self::config::{ObservedConfig, Side};
use self::flow::Flow;
use self::user::{Progress, User};
use self::vocabulary::Probe;
use crate::{Bearer, Capacity, Cause, Departures, Direction, LinkEvent, LinkView, Load};

/// When data counts as having left a queue that nobody here sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// When it is among the bytes that leave in one least loop at the rate of late: an estimate of what no ACK shows yet.
    Estimated,
    /// When that is certain: it is acknowledged, or has arrived.
    Certain,
}

/// What a box has learnt from an ACK, or from data that arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The flow.
    pub flow: FlowId,
    /// Bytes of its payload that have left the queue.
    pub bytes: u64,
    /// For how long the queue was empty before.
    pub idle: Span,
    /// Whether the window had called for this data: its source sent it as soon as it could.
    pub called: bool,
    /// From the telling of a window until its effect on what leaves the queue.
    pub horizon: Span,
    /// They left so much earlier than if the news of it had come as fast as it can.
    pub late: Span,
    /// Whether a probe keeps the windows closed.
    pub probing: bool,
}

/// A flow gets at least so many packets.
const LEAST_PACKETS: u32 = 2;

/// A bearer that passes everything on at once.
pub struct Observed {
    side: Side,
    probe_after: Option<Span>,
    /// `B`, which the flows of a user share.
    capacity: Capacity,
    departures: Departures,
    left_when: Left,
    users: BTreeMap<u32, User>,
    /// Users by flow; the first where nobody said.
    user_numbers: Vec<u32>,
    /// What is to be told of each direction, all of it due.
    events: [VecDeque<(Time, LinkEvent, Segment)>; 2],
    observations: VecDeque<(Time, Observation)>,
    /// What an ACK shows to have left; empty between two.
    left: Vec<Segment>,
}

impl Observed {
    fn new(side: Side, probe_after: Option<Span>, capacity: Capacity) -> Self {
        Self {
            side,
            probe_after,
            capacity,
            departures: Departures::Unwatched,
            left_when: Left::Estimated,
            users: BTreeMap::new(),
            user_numbers: Vec::new(),
            events: Default::default(),
            observations: VecDeque::new(),
            left: Vec::new(),
        }
    }

    /// A box between the queue and the mobiles, whose flows share `capacity`, with the usual probe.
    pub fn beside_mobiles(capacity: Capacity) -> Self {
        Self::new(Side::Mobile, Some(config::PROBE_AFTER[Side::Mobile as usize]), capacity)
    }

    /// Whether anything of a flow has passed since it was opened, or forgotten.
    fn knows(&self, flow: FlowId) -> bool {
        self.users.get(&self.user_of(flow)).is_some_and(|user| user.flows.contains_key(&flow))
    }

    fn user_of(&self, flow: FlowId) -> u32 {
        self.user_numbers.get(flow.index()).copied().unwrap_or(0)
    }

    /// Whether anybody acts on what is estimated, beyond the number of flows.
    fn is_heeded(&self) -> bool {
        self.departures == Departures::Watched
    }

    fn user(&mut self, now: Time, flow: FlowId) -> &mut User {
        let (side, after) = (self.side, self.probe_after.filter(|_| self.is_heeded()));
        self.users.entry(self.user_of(flow)).or_insert_with(|| User::new(now, side, Probe::new(after)))
    }

    fn emit(&mut self, now: Time, direction: Direction, event: LinkEvent, segment: &Segment) {
        self.events[direction as usize].push_back((now, event, *segment));
    }

    fn on_down(&mut self, now: Time, segment: &Segment) {
        if !segment.is_tcp() {
            return;
        }
        let (side, id) = (self.side, segment.flow);
        if segment.flags.intersects(Flags::SYN) {
            let user = self.user(now, id);
            let round_trip = user.flow(now, id).on_syn_ack(now, segment.end());
            if let (Side::Mobile, Some(round_trip)) = (side, round_trip) {
                user.flow(now, id).detour(now, segment, side, Some(round_trip));
                user.on_opened(now, id, round_trip);
            }
        } else if segment.has_data() {
            self.on_data(now, segment);
        }
    }

    fn on_data(&mut self, now: Time, segment: &Segment) {
        let (side, id, heeded) = (self.side, segment.flow, self.is_heeded());
        let user = self.user(now, id);
        let flow = user.flow(now, id);
        let passage = flow.on_data(now, segment);
        let forgotten =
            if heeded && side == Side::Network { flow.remember(now, segment, passage) } else { None };
        user.note_data(now, segment);
        if let Some(forgotten) = forgotten {
            self.emit(now, Direction::Down, LinkEvent::Departed, &forgotten);
        }
        if heeded && side == Side::Mobile {
            let (bytes, called) = (segment.payload.into(), passage.prompt);
            let sample = passage.since_told.map(|since| {
                let flow = self.user(now, id).flow(now, id);
                since.saturating_sub(flow.detour(now, segment, side, Some(since)))
            });
            let progress = Progress { flow: id, bytes, sample, called, late: Span::ZERO };
            let observation = self.user(now, id).on_progress(now, progress);
            self.observations.push_back((now, observation));
            self.emit(now, Direction::Down, LinkEvent::Departed, segment);
        }
    }

    fn on_up(&mut self, now: Time, segment: &Segment) {
        if !segment.is_tcp() || !self.is_heeded() {
            return;
        }
        let id = segment.flow;
        if segment.flags.intersects(Flags::SYN) {
            let side = self.side;
            let flow = self.user(now, id).flow(now, id);
            flow.on_syn(now, segment.window.into());
            if side == Side::Network {
                flow.detour(now, segment, side, None);
            }
        } else if segment.flags.contains(Flags::ACK) && self.side == Side::Network {
            self.on_ack(now, segment);
        }
    }

    fn on_ack(&mut self, now: Time, ack: &Segment) {
        if !self.knows(ack.flow) {
            return;
        }
        let (id, left_when, mut left) = (ack.flow, self.left_when, std::mem::take(&mut self.left));
        let user = self.user(now, id);
        let handshake = user.flow(now, id).take_handshake(now);
        let acknowledged = user.flow(now, id).on_ack(now, ack, |segment| left.push(*segment));
        let (sample, called) = acknowledged.newest.unzip();
        let late = user.flow(now, id).detour(now, ack, Side::Network, sample);
        if acknowledged.bytes > 0 {
            let (bytes, called) = (acknowledged.bytes, called.unwrap_or(false));
            let sample = sample.map(|sample| sample.saturating_sub(late));
            let observation = user.on_progress(now, Progress { flow: id, bytes, sample, called, late });
            self.observations.push_back((now, observation));
        } else if let Some(round_trip) = handshake {
            user.on_opened(now, id, round_trip);
        }
        let user = self.user(now, id);
        let certain = user.probe.runs() || left_when == Left::Certain;
        let share = if certain { 0 } else { user.share_of_loop(now, id) };
        user.flow(now, id).leave(share, |segment| left.push(*segment));
        left.drain(..).for_each(|segment| self.emit(now, Direction::Down, LinkEvent::Departed, &segment));
        self.left = left;
    }

    /// What a flow's share of the buffer is, packets of `payload` bytes or bytes on the wire.
    fn share(&self, now: Time, flow: FlowId) -> Capacity {
        let Some(user) = self.users.get(&self.user_of(flow)) else { return self.capacity };
        if user.probe.runs() {
            return Capacity::Packets(LEAST_PACKETS);
        }
        // What leaves in a loop is on its way where the box stands behind the queue.
        let behind = self.is_heeded() && self.side == Side::Mobile && self.left_when == Left::Estimated;
        let ahead = if behind { user.share_of_loop(now, flow) } else { 0 };
        let (active, payload) = (user.active(), u64::from(user.payload()));
        match self.capacity {
            Capacity::Unlimited => Capacity::Unlimited,
            Capacity::Packets(packets) => {
                let ahead = u32::try_from(ahead / payload).unwrap_or(u32::MAX);
                Capacity::Packets((packets / active).saturating_add(ahead).max(LEAST_PACKETS))
            }
            Capacity::Bytes(bytes) => {
                Capacity::Bytes((bytes / u64::from(active) + ahead).max(u64::from(LEAST_PACKETS) * payload))
            }
        }
    }
}

impl Bearer for Observed {
    fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        match direction {
            Direction::Down => self.on_down(now, segment),
            Direction::Up => self.on_up(now, segment),
        }
        self.emit(now, direction, LinkEvent::DELIVERED, segment);
        Ok(())
    }

    fn peek_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)> {
        let (at, event, _) = self.events[direction as usize].front()?;
        (*at <= now).then_some((*at, *event))
    }

    fn take_segment(&mut self, direction: Direction) -> Segment {
        let (_, _, segment) = self.events[direction as usize].pop_front().expect("an event was told before");
        segment
    }

    fn due(&self, direction: Direction) -> Time {
        self.events[direction as usize].front().map_or(Time::NEVER, |(at, ..)| *at)
    }

    fn want_departures(&mut self, departures: Departures) {
        self.departures = departures;
    }

    fn view(&mut self, now: Time, direction: Direction, flow: FlowId) -> LinkView {
        let Some(user) = self.users.get(&self.user_of(flow)).filter(|_| direction == Direction::Down) else {
            return LinkView { capacity: self.share(now, flow), ..LinkView::NOTHING };
        };
        let bytes = match self.left_when {
            Left::Estimated => user.waiting(now),
            Left::Certain => user.flows.get(&flow).map_or(0, Flow::unacknowledged),
        };
        let packets = bytes.div_ceil(u64::from(user.payload())) as u32;
        let waiting = if packets > 0 { Load { packets, bytes } } else { Load::NONE };
        let rate = Rate::from_bps((user.mean_rate(now, flow) * 8.0) as u64);
        LinkView { waiting, occupied: waiting, capacity: self.share(now, flow), rate, ..LinkView::NOTHING }
    }

    fn waiting(&mut self, _: Time, _: Direction) -> Load {
        Load::NONE
    }

    fn waits(&self, _: Direction) -> Cow<'_, Histogram> {
        Cow::Owned(Histogram::default())
    }

    fn gauges(&self, direction: Direction) -> Vec<f64> {
        if direction == Direction::Up {
            return vec![0.0; 4];
        }
        // Of the first user, where there are several.
        let Some(user) = self.users.values().next() else { return vec![0.0; 4] };
        user.gauges()
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        if user > 0 || self.user_numbers.len() > flow.index() {
            self.user_numbers.resize(self.user_numbers.len().max(flow.index() + 1), 0);
            self.user_numbers[flow.index()] = user;
        }
    }

    fn forget(&mut self, flow: FlowId) {
        let number = self.user_of(flow);
        if let Some(user) = self.users.get_mut(&number) {
            user.flows.remove(&flow);
            if user.flows.is_empty() {
                self.users.remove(&number);
            }
        }
    }

    fn let_go(&mut self) {
        self.users.clear();
    }

    fn leave_when(&mut self, left_when: Left) {
        self.left_when = left_when;
    }

    fn on_told(&mut self, now: Time, segment: &Segment) {
        let heeded = self.is_heeded() && self.knows(segment.flow);
        let Some(window) = segment.window_bytes().filter(|_| heeded) else { return };
        if segment.flags.contains(Flags::ACK) && !segment.flags.intersects(Flags::SYN | Flags::RST) {
            let id = segment.flow;
            let stamp = segment.timestamps().map(|timestamps| timestamps.value);
            self.user(now, id).flow(now, id).on_told(now, segment.ack + window, stamp);
        }
    }

    fn poll_observation(&mut self) -> Option<(Time, Observation)> {
        self.observations.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Seq;

    use super::vocabulary::Run;
    use super::*;

    #[test]
    fn a_probe_closes_the_windows_to_two_packets() {
        let mut bearer = Observed::new(Side::Network, Some(Span::from_secs(1)), Capacity::Packets(50));
        bearer.want_departures(Departures::Watched);
        let flow = FlowId(0);
        bearer.enqueue(Time::ZERO, Direction::Down, &Segment::data(flow, Seq(0), 1000, 40)).unwrap();
        assert_eq!(bearer.view(Time::ZERO, Direction::Down, flow).capacity, Capacity::Packets(50));
        bearer.user(Time::ZERO, flow).probe.runs = Some(Run { since: Time::ZERO, empty: None });
        assert_eq!(bearer.view(Time::ZERO, Direction::Down, flow).capacity, Capacity::Packets(2));
    }
}
