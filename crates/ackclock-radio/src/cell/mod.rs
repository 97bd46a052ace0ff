//! # Cell
//!
//! ## Source
//! Source: CR02 sections 2 and 6.4-6.5 and CR04: 1xEV-DO (HDR). A base station serves one user in each slot of 1/600 s,
//! at the rate that the selected user's channel supports in the slot; see `links.md` section 4 and `schedulers.md`.
//!
//! ## What it does
//! Each flow has a queue. In every slot with data to send, the scheduler selects one of the users with data by their
//! channels. The selected user gets its rate times the length of the slot, in bits. Packets are cut into slots; a
//! packet departs at the end of its last slot, and then propagates for a delay drawn for each packet.
//!
//! An arriving packet may be sent from the next slot on. A packet counts as in transmission, and no longer as queued,
//! from the slot of its first byte on. A user finishes a packet before it starts another packet. Slots without data are
//! skipped.
//!
//! Radio reports give each user's share of the channel (`reports.rs`).
//!
//! With `harq`, failed slots are retransmitted (`harq.rs`). With `control`, some slots have no data of users
//! (`control.rs`).
//!
//! Random numbers come from the streams `NAME/fading/USER`, `NAME/delay/USER`, `NAME/loss/USER` and `NAME/harq/USER`,
//! so adding a user does not change the random numbers of other users.
//!
//! ## Differences from the source
//! Transmissions at the requested rate succeed unless `harq` has errors: early termination is not modelled. Doppler
//! frequency, DRC delay and packetisation, which the source does not give, are parameters.
//!
//! ## Validation
//! Unit tests of the rate table compare the distribution of rates with CR02 Table 4. `tests/cell.rs` compares the total
//! throughput of users with unlimited data under proportional fair, maximum rate and round robin with computed values.

mod air;
mod backlog;
mod change;
mod channel;
mod config;
mod control;
mod grant;
mod handover;
mod harq;
mod interruption;
mod link;
mod member;
mod pull;
mod rank;
mod rates;
mod reports;
mod saturated;
mod services;
mod slots;
pub(crate) mod synthetic;

pub use ackclock_link::short_flows::{CountsAt, ShortFlows};
pub use config::{BlockPdus, BufferPer, CellConfig, IntraUser, Overflow, Remainder, Transport};
pub use control::ControlSlots;
pub(crate) use harq::{Harq, Rest};
pub use harq::{HarqConfig, RepetitionsAs};
pub(crate) use pull::Granted;
pub(crate) use rank::Rank;
pub use rates::RateRow;
pub use synthetic::{Radio, Synthetic};

use std::collections::VecDeque;

use ackclock_core::results::{BlockUse, HarqResult};
use ackclock_core::{ConfigError, FlowId, Histogram, Segment, Span, Time};
use ackclock_link::errors::ErrorProcess;
use ackclock_link::outcomes::Outcomes;
use ackclock_link::queue::Place;
use ackclock_link::short_flows::Class;
use ackclock_link::{
    BufferMeaning, Cause, Departures, Fate, LinkContext, LinkEvent, Load, OutageKind, Repetitions,
};

use crate::scheduler::{Candidate, Scheduler, Service};
use air::{Air, Carries};
use backlog::{Backlog, Rules};
use grant::{Grant, grants};
use member::{Fragment, Member};
use pull::Pull;
use reports::Reports;
use saturated::Reference;
use slots::Slots;

/// Assumed packet size before the first packet, bytes.
const FULL_PACKET: u64 = 1500;

/// A cell: many users, a channel that fades independently for each user, and a scheduler.
pub struct Cell {
    slots: Slots,
    /// Slots in which no user is served.
    control: Option<ControlSlots>,
    drc_delay: u64,
    remainder: Remainder,
    meaning: BufferMeaning,
    /// Capacity granted in each state of a channel; the first state has no rate.
    grants: Vec<Grant>,
    members: Vec<Member>,
    backlog: Backlog,
    scheduler: Box<dyn Scheduler>,
    /// Users with data to send, ordered by number.
    busy: Vec<u32>,
    /// Candidates of a scheduling decision; kept to reuse the memory.
    candidates: Vec<Candidate>,
    /// Number of the next slot for which the scheduler decides, if any user has data in that slot.
    next: u64,
    /// Times at which a user may be served again, each with its user, in order of time: for a retransmission, or after a
    /// hand-over.
    returns: VecDeque<(Time, u32)>,
    /// Mean number of transmissions per block.
    transmissions: f64,
    used: [u64; 2],
    air: Air,
    departures: Departures,
    outcomes: Outcomes,
    reports: Reports,
    waits: Histogram,
    /// Requests for packets at each grant; `None` if packets are queued in the cell.
    pull: Option<Pull>,
    /// Total capacity used, in the unit of [`Grant`]: bits times slots per second.
    sent: u128,
    bytes: u64,
    reference: Reference,
}

impl Cell {
    fn new(
        config: &CellConfig,
        scheduler: Box<dyn Scheduler>,
        context: LinkContext<'_>,
    ) -> Result<Self, ConfigError> {
        let member = |(number, user)| Member::new(config, number, user, &context);
        let members: Vec<_> = (0..).zip(config.each_user()).map(member).collect::<Result<_, _>>()?;
        let transmissions = config.transmissions(context.files)?;
        let LinkContext { queue, meaning, streams, name, .. } = context;
        let slots = Slots::new(config.slots);
        Ok(Self {
            slots,
            control: config.control.clone(),
            drc_delay: config.drc_delay.into(),
            remainder: config.remainder,
            meaning,
            grants: grants(config, slots),
            backlog: Backlog::new(members.len(), Rules::new(config, queue)),
            members,
            scheduler,
            busy: Vec::new(),
            candidates: Vec::new(),
            next: 0,
            returns: VecDeque::new(),
            transmissions,
            used: [0; 2],
            air: Air::silent(),
            departures: Departures::Unwatched,
            outcomes: Outcomes::default(),
            reports: Reports::default(),
            waits: Histogram::default(),
            pull: None,
            sent: 0,
            bytes: 0,
            reference: Reference::new(config, streams, name),
        })
    }

    /// Counts of a user's HARQ blocks, and the use of the user's blocks.
    pub(crate) fn blocks(&self, user: usize) -> (Option<HarqResult>, BlockUse) {
        let member = &self.members[user];
        (member.harq.as_ref().map(|harq| harq.counted), member.used)
    }

    /// Selects the users for all slots that start up to `now`, and ends transmissions that are over.
    pub(crate) fn advance(&mut self, now: Time) {
        while !self.is_granted() {
            let expires = self.backlog.expires();
            if expires <= now && expires <= self.next_change() {
                self.expire(expires);
            } else if self.air.ends <= now {
                self.land();
            } else if self.air.ends == Time::NEVER
                && let Some(slot) = self.next_slot()
                && self.slots.start(slot) <= now
            {
                self.next = slot;
                self.decide();
            } else {
                return;
            }
        }
    }

    /// Drops packets that have reached the age limit at `at`.
    #[cold]
    fn expire(&mut self, at: Time) {
        if let Some(user) = self.backlog.expire(at) {
            self.leave_turn_without_data(at, user);
        }
        self.tell_drops(at);
    }

    /// Next slot in which a user has data to send.
    #[inline]
    fn next_slot(&self) -> Option<u64> {
        if !self.busy.is_empty() {
            return Some(self.first_free(self.next));
        }
        let before = |(due, _): &(Time, u32)| *due - Span::from_nanos(1);
        let next = self.returns.front().map(|first| self.next.max(self.slots.after(before(first))));
        next.map(|next| self.first_free(next))
    }

    /// Number of the first slot from `slot` on in which a user may be served.
    #[inline]
    fn first_free(&self, slot: u64) -> u64 {
        self.control.as_ref().map_or(slot, |control| control.first_free(slot))
    }

    /// Selects the user of the next slot and serves this user.
    fn decide(&mut self) {
        let (slot, start) = (self.next, self.slots.start(self.next));
        while let Some((_, user)) = self.returns.pop_front_if(|&mut (due, _)| due <= start) {
            self.join(user);
        }
        self.reports.on_slot(start, |user| self.backlog.of_user(user));
        let measured = slot.saturating_sub(self.drc_delay);
        let ignores_class = self.scheduler.ignores_class();
        self.candidates.clear();
        for &user in &self.busy {
            let member = &mut self.members[user as usize];
            let state = match member.is_interrupted(OutageKind::Silent, start) {
                true => 0,
                false => member.channel.state(measured),
            };
            member.state = (slot, state);
            let begun = member.begun.as_ref().map(|fragment| fragment.segment.flow);
            let class = match ignores_class {
                true => Class::Long,
                false => self.backlog.class(start, user, begun),
            };
            let weight = self.weight(start, user);
            self.candidates.push(Candidate { user, weight, class, rate: self.grants[state].bps });
        }
        match self.scheduler.choose(slot, &self.candidates) {
            Some(chosen) => {
                let Candidate { user, weight, .. } = self.candidates[chosen];
                self.serve(start, user, weight);
            }
            None => self.next += 1,
        }
        if !self.is_granted() {
            self.count_backlogged(start);
        }
    }

    /// Counts the slots from `start` up to the next decision as time in which the candidates had data.
    fn count_backlogged(&mut self, start: Time) {
        if self.reports.wanted() {
            let time = self.slots.start(self.first_free(self.next)).since(start);
            for &Candidate { user, .. } in &self.candidates {
                if !self.members[user as usize].is_interrupted(OutageKind::Silent, start) {
                    self.reports.on_backlogged(start, user, time);
                }
            }
        }
    }

    /// Adds a user that has data to send.
    fn join(&mut self, user: u32) {
        if let Err(at) = self.busy.binary_search(&user) {
            self.busy.insert(at, user);
        }
    }

    /// Gives a user its slots: for a retransmission if one is ready, otherwise for new data.
    fn serve(&mut self, start: Time, user: u32, weight: u16) {
        let harq = &mut self.members[user as usize].harq;
        match (harq.as_mut().and_then(|harq| harq.repeat(start)), &mut self.pull) {
            (Some((slots, served)), _) => {
                self.occupy(start, (user, weight), Carries::Repetition, slots, served)
            }
            (None, Some(pull)) => pull.grant(user),
            (None, None) => self.serve_new(start, user, weight),
        }
    }

    /// Gives a user its slots for new data.
    #[inline]
    fn serve_new(&mut self, start: Time, user: u32, weight: u16) {
        let grant = self.grants[self.members[user as usize].state.1];
        let sent = self.send(start, user, grant);
        self.sent += u128::from(sent);
        let used = &mut self.members[user as usize].used;
        used.capacity += grant.block;
        used.used += sent;
        let served = grant.bps * (sent as f64 / grant.work as f64);
        self.occupy(start, (user, weight), Carries::New, grant.slots, served);
    }

    /// Occupies `slots` slots from `start` on with data of a user; the scheduler counts `served` as their rate.
    #[inline]
    fn occupy(&mut self, start: Time, (user, weight): (u32, u16), carries: Carries, slots: u64, served: f64) {
        self.used[carries as usize] += slots;
        let rate = self.grants[self.members[user as usize].state.1].bps;
        self.scheduler.served(Service { user, weight, slot: self.next, slots, rate, served });
        self.next += slots;
        let (ends, last) = (self.slots.start(self.next), std::mem::take(&mut self.air.last));
        self.air = Air { user, carries, begins: start, slots, served, ends, last };
        self.leave_turn_without_data(start, user);
        self.tell_drops(start);
    }

    /// Removes a user that has no data to send at `start`, and no block that it may send again.
    #[inline]
    fn leave_turn_without_data(&mut self, start: Time, user: u32) {
        let member = &self.members[user as usize];
        let waits = member.begun.is_some() || member.harq.as_ref().is_some_and(|harq| harq.waits(start));
        if !waits && !self.has_new(user) {
            self.leave_turn(user);
        }
    }

    /// Removes a user that has no data to send.
    fn leave_turn(&mut self, user: u32) {
        if let Ok(at) = self.busy.binary_search(&user) {
            self.busy.remove(at);
        }
    }

    /// Sends the packets of a user that fit into a grant; returns the used part of the grant.
    fn send(&mut self, start: Time, user: u32, grant: Grant) -> u64 {
        let member = &mut self.members[user as usize];
        let mut room = grant.work;
        while room > 0 {
            let begun = member.begun.take().or_else(|| {
                let (arrived, segment) = self.backlog.take(start, user)?;
                // Packets of a layer above wait there.
                if self.pull.is_none() {
                    self.waits.record(start.since(arrived));
                }
                let bytes = u64::from(segment.wire_bytes());
                self.bytes += bytes;
                let left = bytes * 8 * self.slots.per_second();
                Some(Fragment { segment, left })
            });
            let Some(mut fragment) = begun else { break };
            if fragment.left > room {
                fragment.left -= std::mem::take(&mut room);
                member.begun = Some(fragment);
                break;
            }
            room -= fragment.left;
            self.air.last.push(fragment.segment);
            if self.remainder == Remainder::Waste {
                break;
            }
        }
        grant.work - room
    }

    /// Ends the transmission of the current slots.
    fn land(&mut self) {
        let at = std::mem::replace(&mut self.air.ends, Time::NEVER);
        let (user, mut last) = (self.air.user, std::mem::take(&mut self.air.last));
        if self.air.carries == Carries::Nothing {
            return;
        }
        let member = &mut self.members[user as usize];
        let faded = member.is_interrupted(OutageKind::Fade, self.air.begins);
        let fate = if faded { Fate::Lost } else { Fate::Arrives };
        let Some(harq) = &mut member.harq else {
            for segment in last.drain(..) {
                self.leave(at, user, segment, fate, None);
            }
            self.air.last = last;
            return;
        };
        if self.air.carries == Carries::New {
            let rest = if member.begun.is_some() { Rest::Begun } else { Rest::Empty };
            harq.sent(at, &last, rest, self.air.slots, self.air.served);
        }
        let again = harq.land(self.air.begins, at, fate);
        last.clear();
        self.air.last = last;
        if let Some(due) = again {
            self.await_return(due, user);
        }
        while let Some((segment, fate, repetitions)) =
            self.members[user as usize].harq.as_mut().and_then(|harq| harq.release())
        {
            self.leave(at, user, segment, fate, Some(repetitions));
        }
    }

    /// Handles a packet that leaves the transmitter at `at`, with its retransmissions if the cell has HARQ. PDUs of the
    /// packet that may be lost separately, or arrive at different times, are separate packets from now on.
    fn leave(&mut self, at: Time, user: u32, segment: Segment, fate: Fate, told: Option<Repetitions>) {
        let (member, pdus) = (&self.members[user as usize], self.pdus_in(&segment));
        if pdus == 1 || !(member.errors.may_lose() || member.delays.vary()) {
            return self.leave_together(at, user, &segment, fate, told);
        }
        for number in 0..pdus {
            let pdu = self.pdu(&segment, number);
            self.leave_together(at, user, &pdu, fate, told);
        }
    }

    /// Handles a packet that leaves the transmitter at `at`, of which all PDUs have the same fate.
    #[inline]
    fn leave_together(
        &mut self,
        at: Time,
        user: u32,
        segment: &Segment,
        fate: Fate,
        told: Option<Repetitions>,
    ) {
        let member = &mut self.members[user as usize];
        // Loss and delay are drawn for every packet, so that the fate of one packet does not affect the random numbers
        // of later packets.
        let (radio, delay) = (member.errors.fate(at), member.delays.draw());
        if fate == Fate::Lost || radio == Fate::Lost {
            self.outcomes.push(at, LinkEvent::Dropped(Cause::Medium), *segment);
            return;
        }
        // Packets of a user stay in order; different users do not delay each other.
        let wait = member.harq.as_mut().map_or(Span::ZERO, |harq| harq.take_wait());
        member.last_arrival = member.last_arrival.max(at + delay + wait);
        let arrives = member.last_arrival;
        self.reports.on_served(at, user, segment.wire_bytes(), self.pdus_in(segment));
        if self.departures == Departures::Watched {
            self.outcomes.push(at, LinkEvent::Departed, *segment);
        }
        match told {
            Some(repetitions) => self.outcomes.put_repeated(arrives, segment, repetitions),
            None => self.outcomes.put(arrives, segment),
        }
    }

    fn tell_drops(&mut self, at: Time) {
        while let Some((segment, cause)) = self.backlog.poll_dropped() {
            self.outcomes.push(at, LinkEvent::Dropped(cause), segment);
        }
    }

    /// Load in transmission that was in the buffer of `flow`.
    fn in_transmission(&self, flow: FlowId) -> Load {
        let begun =
            self.members[self.backlog.user(flow) as usize].begun.iter().map(|fragment| &fragment.segment);
        let of_flow = |segment: &&Segment| self.backlog.together(segment.flow, flow);
        begun.chain(&self.air.last).filter(of_flow).fold(Load::NONE, |sum, segment| sum + Load::of(segment))
    }

    /// Load that counts against the capacity of `flow`'s buffer but is not queued in that buffer.
    fn unqueued(&self, flow: FlowId) -> Load {
        match self.meaning {
            BufferMeaning::WithTransmission => self.in_transmission(flow),
            BufferMeaning::Waiting => Load::NONE,
        }
    }

    /// Load from the buffer of `flow` that was sent and may still be retransmitted.
    fn unacknowledged(&self, flow: FlowId) -> Load {
        let member = &self.members[self.backlog.user(flow) as usize];
        let packets = member.harq.iter().flat_map(|harq| harq.unacknowledged());
        let of_flow = packets.filter(|segment| self.backlog.together(segment.flow, flow));
        of_flow.fold(Load::NONE, |sum, segment| sum + Load::of(segment))
    }

    /// Lower bound of the propagation delay.
    fn least_delay(&self) -> Span {
        self.members[0].delays.least()
    }

    /// Time of the next event: the end of the slots in transmission, or a scheduling decision.
    fn next_change(&self) -> Time {
        self.next_slot().map_or(self.air.ends, |slot| self.air.ends.min(self.slots.start(slot)))
    }

    /// Lower bound of the next departure time, after all due events have been processed.
    fn next_departure(&self) -> Time {
        let member = &self.members[self.air.user as usize];
        let leave = self.air.ends != Time::NEVER && (!self.air.last.is_empty() || member.harq.is_some());
        match self.next_slot() {
            // No packet ends in the slots in transmission.
            Some(slot) if !leave => self.slots.start(slot + 1),
            _ => self.air.ends,
        }
    }

    /// Adds a segment to the queue of its flow.
    fn put(&mut self, now: Time, segment: &Segment, place: Place) -> Result<(), Cause> {
        self.advance(now);
        let taken = self.backlog.enqueue(now, segment, self.unqueued(segment.flow), place);
        self.tell_drops(now);
        let user = self.backlog.user(segment.flow);
        if !self.backlog.is_empty(user) {
            self.await_turn(now, user);
        }
        taken
    }

    /// Next event up to `now`, after [`advance`](Self::advance).
    #[inline]
    pub(crate) fn next_event(&self, now: Time) -> Option<(Time, LinkEvent)> {
        self.outcomes.next(now)
    }

    /// Serves a user that has data from the next slot on, or after its hand-over.
    fn await_turn(&mut self, now: Time, user: u32) {
        if let Some(until) = self.members[user as usize].away_until(now) {
            return self.await_return(until, user);
        }
        if self.busy.is_empty() {
            self.next = self.next.max(self.slots.after(now));
        }
        self.join(user);
    }
}
