//! Base station shared by all users: a queue of PDUs for each user and class, and a cell that serves the queues.
//!
//! The cell requests the PDUs of each block when it grants the block. For the cell, PDUs that are sent together are a
//! packet. PDUs that the HARQ of the cell gives up are lost for the RLC.

use std::collections::VecDeque;
use std::sync::Arc;

use ackclock_core::results::{IubCounts, RadioCounts};
use ackclock_core::{ConfigError, FlowId, Histogram, RadioReport, Rate, Segment, Seq, Span, Time};
use ackclock_link::bearer::{BearerContext, Direction};
use ackclock_link::queue::DropTailConfig;
use ackclock_link::{
    BufferMeaning, Capacity, CellChange, Fate, Handover, HandoverTo, Link, LinkContext, LinkEvent, QueuePlan,
};

use super::blocks::Blocks;
use super::filling::{Filling, OfChannel};
use super::flow_control::{FlowControl, FlowControlKind, Seen};
use super::iub::{IubConfig, Sent};
use super::user::User;
use super::waiting::Waiting;
use crate::cell::{Granted, Rank};
use crate::umts_rlc_am::LossCause;
use crate::{Cell, CellConfig};

/// Base station that all users share.
///
/// With an Iub a block has PDUs that have arrived. Without an Iub the PDUs are cut for the block.
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
    /// PDUs of each user that wait for a block; empty without an Iub.
    waiting: Vec<Waiting>,
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
    /// PDUs that have entered the cell and have not left it.
    pdus: VecDeque<InCell>,
    /// Number of the next PDU that enters the cell.
    next: u32,
    control: FlowControl,
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

/// PDU in the cell, or a run of PDUs.
struct InCell {
    /// Number of the first PDU.
    number: u32,
    sent: Sent,
    /// Number of PDUs that have not left the cell.
    left: u16,
}

impl AtBaseStation {
    fn new(control: FlowControl) -> Self {
        Self {
            pdus: VecDeque::new(),
            next: 0,
            ran_empty: false,
            allotted: control.initial(),
            waits: false,
            queueing: Histogram::default(),
            counts: IubCounts::NONE,
            control,
        }
    }

    /// Stores a run of PDUs that enters the cell, and returns the number of its first PDU.
    fn keep(&mut self, sent: Sent) -> Seq {
        let (number, left) = (self.next, sent.pdu.count());
        self.pdus.push_back(InCell { number, sent, left });
        self.next = number.wrapping_add(left.into());
        Seq(number)
    }

    /// Removes `count` PDUs that have left the cell, of which the first has this number. Returns `None` if the PDUs are not
    /// in the cell.
    fn take(&mut self, number: Seq, count: u16) -> Option<Sent> {
        let first = self.pdus.front()?.number;
        let above = |number: u32| number.wrapping_sub(first);
        if above(number.0) >= above(self.next) {
            return None;
        }
        // Runs mostly leave in the order in which they have entered.
        let place = match self.pdus.get(1) {
            Some(second) if above(second.number) <= above(number.0) => {
                self.pdus.partition_point(|run| above(run.number) <= above(number.0)) - 1
            }
            _ => 0,
        };
        let run = self.pdus.get_mut(place).filter(|run| run.left > 0)?;
        let before = number.0.wrapping_sub(run.number) as u16;
        run.left = run.left.saturating_sub(count);
        let taken = run.sent.part(before, count);
        while self.pdus.pop_front_if(|run| run.left == 0).is_some() {}
        Some(taken)
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
        (users, ranks): (u32, Vec<Rank>),
        context: BearerContext<'_>,
    ) -> Result<Self, ConfigError> {
        let BearerContext { streams, files, .. } = context;
        let drop_tail = Arc::new(DropTailConfig::default());
        // The queue of the cell has only PDUs that were granted a block.
        let queue = QueuePlan::new(drop_tail, Capacity::Unlimited, streams, "down/base-station/queue");
        let context = LinkContext { queue, meaning: BufferMeaning::Waiting, streams, name: "down", files };
        let mut cell = config.build_cell(context)?;
        cell.want_reports();
        cell.want_grants(blocks.pdu_sizes());
        let waiting =
            |(iub, _): (&IubConfig, _)| Waiting::new(ranks.clone(), iub.most_waiting(blocks.unit_octets()));
        let control = FlowControl::new(iub.map_or(FlowControlKind::None, |(_, control)| control));
        let channel = |_| AtBaseStation::new(control.clone());
        Ok(Self {
            cell,
            waiting: iub.iter().flat_map(|&iub| (0..users).map(move |_| waiting(iub))).collect(),
            channels: (0..users * ranks.len() as u32).map(channel).collect(),
            classes: ranks.len(),
            delay: iub.map_or(Span::ZERO, |(iub, _)| iub.delay),
            mean_delay: config.delay.mean(),
            blocks,
            interval: control.interval(),
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
        !self.waiting.is_empty()
    }

    /// Requests a grant for a user that has data from `at` on, with the weight of its next class.
    pub(super) fn request(&mut self, at: Time, user: u32, weight: u16) {
        self.cell.request(at, user, weight);
    }

    /// Passes on to the channels the PDUs that the cell has finished by `at`, and requests PDUs for its grants.
    pub(super) fn land(&mut self, at: Time, users: &mut [User], filling: &mut Filling) {
        if self.has_iub() {
            self.fill_granted(at, users, filling);
            self.hand_on(at, users);
        } else {
            // PDUs that are cut for a block may answer PDUs that arrive when it starts.
            self.hand_on(at, users);
            self.fill_granted(at, users, filling);
        }
    }

    /// Fills the blocks that the cell grants up to `at`.
    fn fill_granted(&mut self, at: Time, users: &mut [User], filling: &mut Filling) {
        self.cell.advance(at);
        while let Some(granted) = self.cell.granted() {
            self.fill(granted, &mut users[granted.user as usize], filling);
            self.cell.advance(at);
        }
    }

    /// Fills a block with PDUs of the user that is granted the block.
    fn fill(&mut self, granted: Granted, user: &mut User, filling: &mut Filling) {
        let more = match self.has_iub() {
            true => self.take_waiting(granted, filling),
            false => match self.blocks.room(granted.bits[0]) {
                // A retransmission that is larger than its block may leave no room. The user keeps its turn.
                0 => user.next_weight().or(Some(1)),
                room => user.cut(granted.at, room as usize, filling),
            },
        };
        self.packets.clear();
        let most = self.most_in_packet(granted.user, &filling.block);
        for (channel, run) in filling.block.drain(..) {
            let number = granted.user as usize * self.classes + usize::from(channel);
            let own = &mut self.channels[number];
            for before in (0..run.pdu.count()).step_by(most.into()) {
                let sent = run.part(before, most.min(run.pdu.count() - before));
                user.channels[usize::from(channel)].begin(granted.at, Direction::Down, &sent);
                let [payload, header] = self.blocks.sizes(&sent.pdu);
                self.blocks.on_sent(&sent.pdu);
                self.packets.push(Segment::data(FlowId(number as u32), own.keep(sent), payload, header));
            }
        }
        self.cell.fill(&self.packets, more);
    }

    /// Maximum number of PDUs of a packet in a user's block.
    fn most_in_packet(&self, user: u32, block: &[OfChannel]) -> u16 {
        // Channels of equal priority take turns with each PDU.
        let takes_turns =
            block.iter().any(|&(channel, _)| channel != block[0].0) || self.cell.has_queued(user);
        if takes_turns { 1 } else { self.blocks.most_in_packet() }
    }

    /// Fills a block with PDUs that wait for it. Returns the weight of the class that sends next; `None` if no further
    /// PDU of the user waits.
    fn take_waiting(&mut self, Granted { at, user, bits }: Granted, filling: &mut Filling) -> Option<u16> {
        let waiting = &mut self.waiting[user as usize];
        // A PDU may continue in the next block even if only a part of its first bit has room.
        let mut room = u16::try_from(self.blocks.room(bits[1])).unwrap_or(u16::MAX);
        while room > 0
            && let Some((arrived, (channel, sent))) = waiting.take(room)
        {
            let count = sent.pdu.count();
            room -= count;
            let own = &mut self.channels[user as usize * self.classes + usize::from(channel)];
            own.queueing.record_times(at.since(arrived), count.into());
            filling.block.push((channel, sent));
        }
        waiting.next_weight()
    }

    /// Passes on to the channels the PDUs that the cell has finished by `at`.
    fn hand_on(&mut self, at: Time, users: &mut [User]) {
        self.cell.advance(at);
        while let Some((when, event)) = self.cell.next_event(at) {
            let pdu = self.cell.take_segment();
            let number = pdu.flow.index();
            let told =
                if let LinkEvent::Delivered(repeated) = event { Ok(repeated) } else { Err(LossCause::Air) };
            let count = self.cell.pdus_in(&pdu);
            if let Some(sent) = self.channels[number].take(pdu.seq, count) {
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

    /// Processes PDUs of a user's channel that arrive over the Iub at `at`.
    pub(super) fn arrive(&mut self, at: Time, number: usize, user: &mut User) {
        let (of_user, channel) = self.split(number);
        let Some(iub) = &mut user.channels[channel].iub else { return };
        let (own, waiting) = (&mut self.channels[number], &mut self.waiting[of_user]);
        let mut added = false;
        while let Some(sent) = iub.take(at) {
            if own.allotted != u64::MAX {
                own.allotted = own.allotted.saturating_sub(sent.pdu.count().into());
            }
            if sent.fate == Fate::Lost {
                self.refused.push(sent);
                continue;
            }
            added = true;
            let was_empty = waiting.count(channel) == 0;
            self.refused.extend(waiting.put(at, channel as u8, sent));
            own.ran_empty |= was_empty && own.waits && waiting.count(channel) > 0;
        }
        if added && let Some(weight) = waiting.next_weight() {
            self.cell.request(at, of_user as u32, weight);
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
            if handover.to == HandoverTo::Controller {
                own.control.restart();
                (own.allotted, own.waits, own.ran_empty) = (own.control.initial(), false, false);
            }
        }
        // Another controller re-establishes the RLC, so that its PDUs are of no use.
        let forwards = handover.forward && handover.to == HandoverTo::Cell;
        if forwards && !self.has_iub() {
            // The queue of the cell accepts every packet.
            for packet in &packets {
                // A run may continue in the blocks of the new cell.
                for number in 0..self.cell.pdus_in(packet) {
                    let _ = self.cell.enqueue(now, &self.cell.pdu(packet, number));
                }
            }
            return;
        }
        let in_cell = packets.iter().filter_map(|packet| {
            let (number, count) = (packet.flow.index(), self.cell.pdus_in(packet));
            Some(((number - first) as u8, self.channels[number].take(packet.seq, count)?))
        });
        let mut pdus: Vec<OfChannel> = in_cell.collect();
        let mut waiting = self.waiting.get_mut(handover.user as usize);
        pdus.extend(waiting.iter_mut().flat_map(|waiting| waiting.drain()));
        for (channel, sent) in pdus {
            let removed = match &mut waiting {
                Some(waiting) if forwards => waiting.put(now, channel, sent),
                _ => Some(sent),
            };
            removed.into_iter().for_each(|sent| user.channels[usize::from(channel)].on_removed(now, sent));
        }
        if let Some(weight) = waiting.and_then(|waiting| waiting.next_weight()) {
            self.cell.request(now, handover.user, weight);
        }
    }

    /// Checks the queues if a check is due, and sends messages to the controllers.
    pub(super) fn look(&mut self, at: Time, users: &mut [User]) {
        let Some(interval) = self.interval.filter(|_| self.looks <= at) else { return };
        let bits = self.blocks.unit_bits();
        let mut active = false;
        for (number, own) in self.channels.iter_mut().enumerate() {
            let rate = self.cell.view(at, FlowId(number as u32)).rate;
            let AtBaseStation { allotted, waits, .. } = *own;
            let queued = self.waiting[number / self.classes].count(number % self.classes);
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
        let pdus = self.waiting.iter().map(|waiting| waiting.all() as f64).sum();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::umts_rlc_am::{Data, Pdu};

    #[test]
    fn pdus_leave_the_cell_once() {
        let mut own = AtBaseStation::new(FlowControl::new(FlowControlKind::None));
        let run = |count| Sent {
            pdu: Pdu::Data(Data { count, ..Data::default() }),
            first: true,
            setup: 0,
            fate: Fate::Arrives,
        };
        let [first, second, third] = [3, 2, 4].map(|count| own.keep(run(count)));
        assert!(own.take(third + 4, 1).is_none());
        let count = |sent: Option<Sent>| sent.map(|sent| sent.pdu.count());
        // The second run leaves before the first one, and the first one in parts.
        assert_eq!([0, 1].map(|_| count(own.take(second, 2))), [Some(2), None]);
        assert_eq!([0, 1].map(|step| count(own.take(first + step, 1 + step as u16))), [Some(1), Some(2)]);
        assert!(own.take(first, 1).is_none() && own.take(second, 2).is_none());
        assert_eq!([0, 1].map(|_| count(own.take(third, 4))), [Some(4), None]);
    }
}
