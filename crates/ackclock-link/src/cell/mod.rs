//! # Cell
//!
//! ## Source
//! CR02 sections 2 and 6.4-6.5 and CR04: 1xEV-DO (HDR), where a base station serves one user in each slot of 1/600 s at the
//! rate that its channel then carries; `links.md` section 4, `schedulers.md`.
//!
//! ## What it does
//! Each flow has a queue, each user the queues of its flows. In every slot with something to send the channel of each user
//! who has something to send is looked at, a scheduler chooses one of them, and that user sends rate x slot bits. Packets
//! are cut over slots; what leaves in a slot has left at its end, and then travels for a delay drawn for each packet.
//!
//! A packet that arrives is eligible from the next slot on. It is in transmission, and no longer waits, from the slot in
//! which its first byte goes; a packet that has begun is finished before its user sends another. Slots in which nobody has
//! anything to send are jumped over.
//!
//! Who listens is told each user's share of the channel (`reports.rs`).
//!
//! With `harq` what failed in a slot is sent again (`harq.rs`).
//!
//! Draws come from `NAME/fading/USER`, `NAME/delay/USER`, `NAME/loss/USER` and `NAME/harq/USER`, so that one user more changes no other's luck.
//!
//! ## Differences from the source
//! What a user asks for arrives, unless `harq` says which transmissions fail: there is no early termination. Doppler frequency, DRC
//! delay and packetisation, which the source does not state, are parameters.
//!
//! ## Validation
//! Shares of rates as in CR02 Table 4, totals of users without end of data under proportional fair, maximum rate and round
//! robin against computed values (`tests/cell.rs`, unit tests of the table).

mod air;
mod backlog;
mod channel;
mod config;
mod grant;
mod harq;
mod link;
mod member;
mod rates;
mod reports;
mod saturated;
mod services;
mod slots;
mod synthetic;

pub use crate::short_flows::{CountsAt, ShortFlows};
pub use config::{BufferPer, CellConfig, CellUser, FadingKind, IntraUser, Overflow, Remainder, Transport};
pub use harq::{HarqConfig, RepetitionsAs};
pub use rates::RateRow;
pub use synthetic::Synthetic;

use std::collections::VecDeque;

use ackclock_core::{ConfigError, FlowId, Histogram, Segment, Span, Time};

use crate::errors::ErrorProcess;
use crate::outcomes::Outcomes;
use crate::scheduler::{Candidate, Class, Scheduler, Service};
use crate::{BufferMeaning, Cause, Departures, Fate, LinkContext, LinkEvent, Load, Repetitions};
use air::{Air, Carries};
use backlog::{Backlog, Place, Rules};
use grant::{Grant, grants};
use harq::Rest;
use member::{Fragment, Member};
use reports::Reports;
use saturated::Reference;
use slots::Slots;

/// Bytes of a packet where none came.
const FULL_PACKET: u64 = 1500;

/// Many users, one channel that fades for each of them, and a scheduler.
pub struct Cell {
    slots: Slots,
    drc_delay: u64,
    remainder: Remainder,
    meaning: BufferMeaning,
    /// What each state of a channel carries; the first is no rate.
    grants: Vec<Grant>,
    members: Vec<Member>,
    backlog: Backlog,
    scheduler: Box<dyn Scheduler>,
    /// Users who have something to send, in the order of their numbers.
    busy: Vec<u32>,
    /// Scratch space of a decision.
    candidates: Vec<Candidate>,
    /// The slot that is decided next, where somebody has something to send.
    next: u64,
    /// When whose blocks may be sent again, in the order of time.
    repetitions: VecDeque<(Time, u32)>,
    /// Mean transmissions of what is sent, and slots that were used for what is new and for repetitions.
    transmissions: f64,
    used: [u64; 2],
    air: Air,
    departures: Departures,
    outcomes: Outcomes,
    reports: Reports,
    waits: Histogram,
    /// Work that was done, as grants count it, and bytes of the packets that were begun.
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
            repetitions: VecDeque::new(),
            transmissions,
            used: [0; 2],
            air: Air::silent(),
            departures: Departures::Unwatched,
            outcomes: Outcomes::default(),
            reports: Reports::default(),
            waits: Histogram::default(),
            sent: 0,
            bytes: 0,
            reference: Reference::new(config, streams, name),
        })
    }

    /// Decides every slot that begins up to `now`, and ends those that are over.
    fn advance(&mut self, now: Time) {
        loop {
            if self.air.ends <= now {
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

    /// The next slot for which somebody has something to send.
    #[inline]
    fn next_slot(&self) -> Option<u64> {
        if !self.busy.is_empty() {
            return Some(self.next);
        }
        let before = |(due, _): &(Time, u32)| *due - Span::from_nanos(1);
        self.repetitions.front().map(|first| self.next.max(self.slots.after(before(first))))
    }

    /// Who is served in the next slot?
    fn decide(&mut self) {
        let (slot, start) = (self.next, self.slots.start(self.next));
        while let Some((_, user)) = self.repetitions.pop_front_if(|&mut (due, _)| due <= start) {
            self.join(user);
        }
        self.reports.on_slot(start, |user| self.backlog.of_user(user));
        let measured = slot.saturating_sub(self.drc_delay);
        let ignores_class = self.scheduler.ignores_class();
        self.candidates.clear();
        for &user in &self.busy {
            let member = &mut self.members[user as usize];
            let state = member.channel.state(measured);
            member.state = (slot, state);
            let begun = member.begun.as_ref().map(|fragment| fragment.segment.flow);
            let class = match ignores_class {
                true => Class::Long,
                false => self.backlog.class(start, user, begun),
            };
            self.candidates.push(Candidate { user, rate: self.grants[state].bps, class });
        }
        match self.scheduler.choose(slot, &self.candidates) {
            Some(chosen) => self.serve(start, self.candidates[chosen].user),
            None => self.next += 1,
        }
        if self.reports.wanted() {
            let time = self.slots.start(self.next).since(start);
            self.candidates.iter().for_each(|user| self.reports.on_backlogged(start, user.user, time));
        }
    }

    /// A user has something to send.
    fn join(&mut self, user: u32) {
        if let Err(at) = self.busy.binary_search(&user) {
            self.busy.insert(at, user);
        }
    }

    /// Gives a user the slots that it gets: for what failed before, or else for what fits into them.
    fn serve(&mut self, start: Time, user: u32) {
        let member = &mut self.members[user as usize];
        let grant = self.grants[member.state.1];
        let repetition = member.harq.as_mut().and_then(|harq| harq.repeat(start));
        let (carries, slots, served) = match repetition {
            Some((slots, served)) => (Carries::Repetition, slots, served),
            None => {
                let sent = self.send(start, user, grant);
                self.sent += u128::from(sent);
                (Carries::New, grant.slots, grant.bps * (sent as f64 / grant.work as f64))
            }
        };
        self.used[carries as usize] += slots;
        let rate = grant.bps;
        self.scheduler.served(Service { user, slot: self.next, slots, rate, served });
        self.next += slots;
        let (ends, last) = (self.slots.start(self.next), std::mem::take(&mut self.air.last));
        self.air = Air { user, carries, begins: start, slots, served, ends, last };
        let member = &self.members[user as usize];
        let waits = member.begun.is_some() || member.harq.as_ref().is_some_and(|harq| harq.waits(start));
        if !waits
            && self.backlog.is_empty(user)
            && let Ok(at) = self.busy.binary_search(&user)
        {
            self.busy.remove(at);
        }
        self.tell_drops(start);
    }

    /// Sends what fits into a grant, and gives the work that it takes.
    fn send(&mut self, start: Time, user: u32, grant: Grant) -> u64 {
        let member = &mut self.members[user as usize];
        let mut room = grant.work;
        while room > 0 {
            let begun = member.begun.take().or_else(|| {
                let (arrived, segment) = self.backlog.take(start, user)?;
                self.waits.record(start.since(arrived));
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

    /// The slots that were being sent are over.
    fn land(&mut self) {
        let at = std::mem::replace(&mut self.air.ends, Time::NEVER);
        let (user, mut last) = (self.air.user, std::mem::take(&mut self.air.last));
        let member = &mut self.members[user as usize];
        let Some(harq) = &mut member.harq else {
            for segment in last.drain(..) {
                self.leave(at, user, segment, Fate::Arrives, None);
            }
            self.air.last = last;
            return;
        };
        if self.air.carries == Carries::New {
            let rest = if member.begun.is_some() { Rest::Begun } else { Rest::Empty };
            harq.sent(at, &last, rest, self.air.slots, self.air.served);
        }
        let again = harq.land(self.air.begins, at);
        self.repetitions.extend(again.map(|due| (due, user)));
        last.clear();
        self.air.last = last;
        while let Some((segment, fate, repetitions)) =
            self.members[user as usize].harq.as_mut().and_then(|harq| harq.release())
        {
            self.leave(at, user, segment, fate, Some(repetitions));
        }
    }

    /// The transmitter has done with a packet at `at`, of which a cell with HARQ tells what it had to repeat.
    fn leave(&mut self, at: Time, user: u32, segment: Segment, fate: Fate, told: Option<Repetitions>) {
        let member = &mut self.members[user as usize];
        // Both are drawn for every packet, so that the luck of the next does not hang on the fate of this one.
        let (radio, delay) = (member.errors.fate(at), member.delays.draw());
        if fate == Fate::Lost || radio == Fate::Lost {
            self.outcomes.push(at, LinkEvent::Dropped(Cause::Medium), segment);
            return;
        }
        self.reports.on_served(at, user, segment.wire_bytes());
        if self.departures == Departures::Watched {
            self.outcomes.push(at, LinkEvent::Departed, segment);
        }
        // Packets of a user do not overtake each other, and users do not hold each other up.
        member.last_arrival = member.last_arrival.max(at + delay);
        match told {
            Some(repetitions) => self.outcomes.put_repeated(member.last_arrival, &segment, repetitions),
            None => self.outcomes.flight.put(member.last_arrival, &segment),
        }
    }

    fn tell_drops(&mut self, at: Time) {
        while let Some((segment, cause)) = self.backlog.poll_dropped() {
            self.outcomes.push(at, LinkEvent::Dropped(cause), segment);
        }
    }

    /// What is in transmission and came from the part of the buffer that serves `flow`.
    fn in_transmission(&self, flow: FlowId) -> Load {
        let begun =
            self.members[self.backlog.user(flow) as usize].begun.iter().map(|fragment| &fragment.segment);
        let of_flow = |segment: &&Segment| self.backlog.together(segment.flow, flow);
        begun.chain(&self.air.last).filter(of_flow).fold(Load::NONE, |sum, segment| sum + Load::of(segment))
    }

    /// What counts against the capacity of the part of the buffer that serves `flow` without waiting there.
    fn unqueued(&self, flow: FlowId) -> Load {
        match self.meaning {
            BufferMeaning::WithTransmission => self.in_transmission(flow),
            BufferMeaning::Waiting => Load::NONE,
        }
    }

    /// What was sent, may be sent again, and came from the part of the buffer that serves `flow`.
    fn unacknowledged(&self, flow: FlowId) -> Load {
        let member = &self.members[self.backlog.user(flow) as usize];
        let packets = member.harq.iter().flat_map(|harq| harq.unacknowledged());
        let of_flow = packets.filter(|segment| self.backlog.together(segment.flow, flow));
        of_flow.fold(Load::NONE, |sum, segment| sum + Load::of(segment))
    }

    /// No packet travels for less.
    fn least_delay(&self) -> Span {
        self.members[0].delays.least()
    }

    /// When something next happens in a slot: those that are being sent end, or the next is decided.
    fn next_change(&self) -> Time {
        self.next_slot().map_or(self.air.ends, |slot| self.air.ends.min(self.slots.start(slot)))
    }

    /// No packet leaves earlier, once everything due was done.
    fn next_departure(&self) -> Time {
        let member = &self.members[self.air.user as usize];
        let leave = self.air.ends != Time::NEVER && (!self.air.last.is_empty() || member.harq.is_some());
        match self.next_slot() {
            // Nothing ends with the slots that are being sent.
            Some(slot) if !leave => self.slots.start(slot + 1),
            _ => self.air.ends,
        }
    }

    /// Takes a segment into the queue of its flow.
    fn put(&mut self, now: Time, segment: &Segment, place: Place) -> Result<(), Cause> {
        self.advance(now);
        let user = self.backlog.user(segment.flow);
        let taken = self.backlog.enqueue(now, segment, self.unqueued(segment.flow), place);
        self.tell_drops(now);
        if !self.backlog.is_empty(user) {
            if self.busy.is_empty() {
                self.next = self.next.max(self.slots.after(now));
            }
            self.join(user);
        }
        taken
    }
}
