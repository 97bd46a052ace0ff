//! Base station shared by all users: a queue of PDUs for each user and class, and a cell that serves the queues.
//!
//! For the cell a PDU is a packet of fixed size, and a block holds complete PDUs. PDUs that the HARQ of the cell gives
//! up are lost for the RLC.

use std::collections::VecDeque;
use std::sync::Arc;

use ackclock_core::results::{IubCounts, RadioCounts};
use ackclock_core::{ConfigError, FlowId, Histogram, RadioReport, Rate, Segment, Seq, Span, Time};
use ackclock_link::bearer::BearerContext;
use ackclock_link::queue::DropTailConfig;
use ackclock_link::{
    BufferMeaning, Capacity, CellChange, Fate, Handover, HandoverTo, Link, LinkContext, LinkEvent, QueuePlan,
};

use super::blocks::Blocks;
use super::filling::Filling;
use super::flow_control::{FlowControl, FlowControlKind, Seen};
use super::iub::{IubConfig, Sent};
use super::user::User;
use crate::cell::{Begun, Granted};
use crate::umts_rlc_am::{LossCause, Pdu};
use crate::{Cell, CellConfig};

/// Base station that all users share.
///
/// With an Iub the cell serves the PDUs that have arrived. Without an Iub it requests the PDUs at each grant.
pub(super) struct Shared {
    cell: Cell,
    /// State of each channel, counted over all users.
    channels: Vec<AtBaseStation>,
    /// Number of channels of each user.
    classes: usize,
    delay: Span,
    /// Mean propagation delay of the cell.
    mean_delay: Span,
    blocks: Blocks,
    interval: Option<Span>,
    has_iub: bool,
    /// Packets that stand for the PDUs of a block in the cell; kept to reuse the memory.
    packets: Vec<Segment>,
    /// PDUs that were lost on the Iub or did not fit into a queue; kept to reuse the memory.
    refused: Vec<Sent>,
    /// Whether radio reports are requested.
    reports: bool,
    /// Time of the next check of the queues; [`Time::NEVER`] while no message is possible.
    looks: Time,
}

/// State of a channel at the base station.
struct AtBaseStation {
    /// PDUs that have not left the cell, by number; `None` for PDUs that have left.
    pdus: VecDeque<Option<Sent>>,
    /// Number of the first element in `pdus`.
    first: u32,
    control: FlowControl,
    /// Number of PDUs in the channel's queue.
    queued: u64,
    /// Set if the queue was empty at any time since the last check while PDUs waited at the controller.
    ran_empty: bool,
    /// Number of PDUs that were granted and have not arrived.
    allotted: u64,
    /// Whether PDUs wait for credits at the controller.
    waits: bool,
    /// Queueing delays of the channel's PDUs.
    queueing: Histogram,
    counts: IubCounts,
}

impl AtBaseStation {
    fn new(control: FlowControl) -> Self {
        Self {
            pdus: VecDeque::new(),
            first: 0,
            queued: 0,
            ran_empty: false,
            allotted: control.initial(),
            waits: false,
            queueing: Histogram::default(),
            counts: IubCounts::NONE,
            control,
        }
    }

    fn place(&self, number: Seq) -> usize {
        number.0.wrapping_sub(self.first) as usize
    }

    /// Stores a PDU that enters the cell, and returns the number it gets.
    fn keep(&mut self, sent: Sent) -> Seq {
        self.pdus.push_back(Some(sent));
        Seq(self.first.wrapping_add(self.pdus.len() as u32 - 1))
    }

    /// Removes a PDU that has left the cell.
    fn take(&mut self, number: Seq) -> Option<Sent> {
        let place = self.place(number);
        let taken = self.pdus.get_mut(place)?.take();
        while self.pdus.pop_front_if(|pdu| pdu.is_none()).is_some() {
            self.first = self.first.wrapping_add(1);
        }
        taken
    }
}

impl Shared {
    /// Creates a base station with a cell for several users, each with `classes` channels.
    ///
    /// # Errors
    /// Returns an error if a file that the cell's table names is unreadable or malformed.
    pub(super) fn new(
        config: &CellConfig,
        blocks: Blocks,
        iub: Option<(&IubConfig, FlowControlKind<'_>)>,
        [users, classes]: [u32; 2],
        context: BearerContext<'_>,
    ) -> Result<Self, ConfigError> {
        let BearerContext { streams, files, .. } = context;
        let drop_tail = Arc::new(DropTailConfig::default());
        let capacity = iub.map_or(Capacity::Unlimited, |(iub, _)| iub.capacity());
        let queue = QueuePlan::new(drop_tail, capacity, streams, "down/base-station/queue");
        let context = LinkContext { queue, meaning: BufferMeaning::Waiting, streams, name: "down", files };
        let mut cell = config.build_cell(context)?;
        cell.want_reports();
        cell.want_begun();
        if iub.is_none() {
            cell.want_grants();
        }
        let control = FlowControl::new(iub.map_or(FlowControlKind::None, |(_, control)| control));
        let channel = |_| AtBaseStation::new(control.clone());
        Ok(Self {
            cell,
            channels: (0..users * classes).map(channel).collect(),
            classes: classes as usize,
            delay: iub.map_or(Span::ZERO, |(iub, _)| iub.delay),
            mean_delay: config.delay.mean(),
            blocks,
            interval: control.interval(),
            has_iub: iub.is_some(),
            packets: Vec::new(),
            refused: Vec::new(),
            reports: false,
            looks: Time::NEVER,
        })
    }

    /// Number of PDUs of each channel that the controller may send before the first message.
    pub(super) fn initial(&self) -> u64 {
        self.channels[0].allotted
    }

    /// Time of the next event at the base station.
    pub(super) fn next_change(&self) -> Time {
        self.cell.poll_timeout().unwrap_or(Time::NEVER).min(self.looks)
    }

    /// Adds a channel that gets its first flow.
    pub(super) fn join(&mut self, channel: u32) {
        self.cell.assign(FlowId(channel), channel / self.classes as u32);
    }

    /// User of a channel, and number of the channel among those of the user.
    const fn split(&self, channel: usize) -> (usize, usize) {
        (channel / self.classes, channel % self.classes)
    }

    /// Whether controller and base station are apart.
    pub(super) const fn has_iub(&self) -> bool {
        self.has_iub
    }

    /// Requests a grant for a user that has data from `at` on, with the weight of its next class.
    pub(super) fn request(&mut self, at: Time, user: u32, weight: u16) {
        self.cell.request(at, user, weight);
    }

    /// Passes on to the channels the PDUs that the cell has finished by `at`, and requests PDUs for its grants.
    pub(super) fn land(&mut self, at: Time, users: &mut [User], filling: &mut Filling) {
        self.hand_on(at, users);
        while let Some(granted) = self.cell.granted() {
            self.fill(granted, &mut users[granted.user as usize], filling);
            self.hand_on(at, users);
        }
    }

    /// Fills a block with PDUs of the user that is granted the block.
    fn fill(&mut self, granted: Granted, user: &mut User, filling: &mut Filling) {
        let room = self.blocks.room(granted.bits);
        let more = match room {
            // A retransmission that is larger than its block may leave no room. The user keeps its turn.
            0 => user.next_weight().or(Some(1)),
            room => user.cut(granted.at, room as usize, filling),
        };
        self.packets.clear();
        for (channel, sent) in filling.block.drain(..) {
            let number = granted.user as usize * self.classes + usize::from(channel);
            let [payload, header] = self.blocks.sizes(&sent.pdu);
            self.blocks.on_sent(&sent.pdu);
            let own = &mut self.channels[number];
            own.queued += 1;
            self.packets.push(Segment::data(FlowId(number as u32), own.keep(sent), payload, header));
        }
        self.cell.fill(&self.packets, more);
    }

    /// Passes on to the channels the PDUs that the cell has finished by `at`.
    fn hand_on(&mut self, at: Time, users: &mut [User]) {
        self.cell.advance(at);
        self.note_begun(users);
        while let Some((when, event)) = self.cell.next_event(at) {
            let pdu = self.cell.take_segment();
            let number = pdu.flow.index();
            let told =
                if let LinkEvent::Delivered(repeated) = event { Ok(repeated) } else { Err(LossCause::Air) };
            if let Some(sent) = self.channels[number].take(pdu.seq) {
                let (user, channel) = self.split(number);
                users[user].on_landed(when, channel, sent, told);
            }
        }
        while !self.reports && self.cell.poll_report(at).is_some() {}
    }

    /// Changes the cell at `now`.
    pub(super) fn change(&mut self, now: Time, change: CellChange) {
        if let CellChange::Delay(law) = &change {
            self.mean_delay = law.mean();
        }
        self.cell.change(now, change);
    }

    /// Mean propagation delay of the cell.
    pub(super) const fn mean_delay(&self) -> Span {
        self.mean_delay
    }

    /// Sets the delay of the Iub interface.
    pub(super) const fn set_delay(&mut self, delay: Span) {
        self.delay = delay;
    }

    /// Starts to generate radio reports.
    pub(super) const fn want_reports(&mut self) {
        self.reports = true;
    }

    /// Informs the channels of the PDUs that the cell has started to send.
    fn note_begun(&mut self, users: &mut [User]) {
        while let Some(Begun { arrived, start: at, segment: pdu }) = self.cell.poll_begun() {
            let own = &mut self.channels[pdu.flow.index()];
            own.queued -= 1;
            own.queueing.record(at.since(arrived));
            if let Some(&Some(Sent { pdu: Pdu::Data(data), first: true, .. })) =
                own.pdus.get(own.place(pdu.seq))
            {
                let (user, channel) = self.split(pdu.flow.index());
                users[user].channels[channel].on_air(at, data.payload);
            }
        }
    }

    /// Processes PDUs of a user's channel that arrive over the Iub at `at`.
    pub(super) fn arrive(&mut self, at: Time, number: usize, user: &mut User) {
        let (_, channel) = self.split(number);
        let Some(iub) = &mut user.channels[channel].iub else { return };
        let (flow, own) = (FlowId(number as u32), &mut self.channels[number]);
        let mut added = false;
        while let Some(sent) = iub.take(at) {
            own.allotted = if own.allotted == u64::MAX { u64::MAX } else { own.allotted.saturating_sub(1) };
            if sent.fate == Fate::Lost {
                self.refused.push(sent);
                continue;
            }
            if !std::mem::replace(&mut added, true) {
                self.cell.advance(at);
            }
            let key = own.keep(sent);
            let [payload, header] = self.blocks.sizes(&sent.pdu);
            if self.cell.add(at, &Segment::data(flow, key, payload, header)).is_err() {
                self.refused.extend(own.take(key));
            } else {
                own.ran_empty |= own.queued == 0 && own.waits;
                own.queued += 1;
            }
        }
        if added {
            self.cell.begin_turn(at, flow);
        }
        own.waits = iub.take_waits(at).unwrap_or(own.waits);
        self.refused
            .drain(..)
            .for_each(|sent| user.on_landed(at, channel, sent, Err(LossCause::BaseStation)));
        if let Some(interval) = self.interval
            && self.looks == Time::NEVER
        {
            self.looks = next_multiple(at, interval);
        }
    }

    /// Hands a user over: the PDUs of the user at the base station are forwarded, and are the first ones that the new
    /// cell sends, or they are removed.
    pub(super) fn hand_over(&mut self, now: Time, handover: &Handover, user: &mut User) {
        let packets = self.cell.hand_over(now, handover.user, handover.until);
        let first = handover.user as usize * self.classes;
        for own in &mut self.channels[first..first + self.classes] {
            own.queued = 0;
            if handover.to == HandoverTo::Controller {
                own.control.restart();
                (own.allotted, own.waits, own.ran_empty) = (own.control.initial(), false, false);
            }
        }
        // Another controller re-establishes the RLC, so that its PDUs are of no use.
        let forwards = handover.forward && handover.to == HandoverTo::Cell;
        for packet in packets {
            let own = &mut self.channels[packet.flow.index()];
            if forwards && self.cell.enqueue(now, &packet).is_ok() {
                own.queued += 1;
            } else if let Some(sent) = own.take(packet.seq) {
                user.channels[packet.flow.index() - first].on_removed(now, sent);
            }
        }
    }

    /// Checks the queues if a check is due, and sends messages to the controllers.
    pub(super) fn look(&mut self, at: Time, users: &mut [User]) {
        let Some(interval) = self.interval.filter(|_| self.looks <= at) else { return };
        let bits = self.blocks.unit_bits();
        let mut active = false;
        for (number, own) in self.channels.iter_mut().enumerate() {
            let rate = self.cell.view(at, FlowId(number as u32)).rate;
            let AtBaseStation { queued, allotted, waits, .. } = *own;
            let underrun = std::mem::take(&mut own.ran_empty) || waits && queued == 0;
            let mut seen =
                Seen { queued, allotted, per_second: rate.as_bps() as f64 / bits, waits, underrun };
            if own.control.is_active(seen) {
                let allocation = own.control.allocate(seen, self.delay);
                let target = own.control.target();
                own.counts.on_check(underrun, target);
                if let Some(allocation) = allocation {
                    own.counts.allocations += 1;
                    seen.allotted = allocation.allotted(seen.allotted);
                    let (user, channel) = (number / self.classes, number % self.classes);
                    users[user].tell(at, channel, allocation, target);
                }
            }
            own.allotted = seen.allotted;
            active |= own.control.is_active(seen);
        }
        self.looks = if active { at + interval } else { Time::NEVER };
    }

    /// Payload rate of a channel's user at `now`.
    pub(super) fn rate(&mut self, now: Time, channel: usize) -> Rate {
        let rate = self.cell.view(now, FlowId(channel as u32)).rate;
        self.payload(rate)
    }

    /// Converts a rate of PDUs to a payload rate.
    fn payload(&self, rate: Rate) -> Rate {
        let [payload, all] = self.blocks.payload_share();
        Rate::from_bps((u128::from(rate.as_bps()) * u128::from(payload) / u128::from(all)) as u64)
    }

    /// Mean payload capacity of the cell until `until`, bit/s.
    pub(super) fn capacity_bps(&mut self, until: Time) -> Option<f64> {
        let [payload, all] = self.blocks.payload_share().map(|part| part as f64);
        Some(self.cell.capacity_bps(until)? * payload / all)
    }

    /// Returns the next report of the cell up to `now`, with rates converted to payload rates.
    pub(super) fn poll_report(&mut self, now: Time) -> Option<RadioReport> {
        let report = self.cell.poll_report(now)?;
        Some(RadioReport { rate: self.payload(report.rate), ..report })
    }

    /// Gauges: number of PDUs at the base station, and mean target delay, ms.
    pub(super) fn gauges(&self) -> [f64; 2] {
        let pdus = self.channels.iter().map(|own| own.queued as f64).sum();
        let targets: f64 = self.channels.iter().map(|own| own.control.target().as_millis_f64()).sum();
        [pdus, targets / self.channels.len() as f64]
    }

    /// Adds the counters of a user at the base station.
    pub(super) fn count(&self, number: usize, user: &User, counts: &mut RadioCounts) {
        (counts.harq, counts.blocks) = self.cell.blocks(number);
        let first = number * self.classes;
        for (own, channel) in self.channels[first..first + self.classes].iter().zip(&user.channels) {
            let Some(iub) = &channel.iub else { continue };
            counts.base_station.get_or_insert_default().merge(&own.queueing);
            let unused = iub.unused(own.allotted);
            *counts.iub.get_or_insert(IubCounts::NONE) += IubCounts { credits_unused: unused, ..own.counts };
        }
    }

    /// Frees the memory of everything in flight.
    pub(super) fn let_go(&mut self) {
        self.cell.let_go();
    }
}

/// First multiple of `span` at or after the instant `at`.
fn next_multiple(at: Time, span: Span) -> Time {
    Time::from_nanos(at.as_nanos().div_ceil(span.as_nanos()) * span.as_nanos())
}
