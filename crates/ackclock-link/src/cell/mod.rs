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
//! Who listens is told of every user whose rate in a slot is not what it was told last (`reports.rs`).
//!
//! Draws come from `NAME/fading/USER`, `NAME/delay/USER` and `NAME/loss/USER`, so that one user more changes no other's luck.
//!
//! ## Differences from the source
//! What a user asks for arrives: there are no errors of rate prediction and no early termination. Doppler frequency, DRC
//! delay and packetisation, which the source does not state, are parameters.
//!
//! ## Validation
//! Shares of rates as in CR02 Table 4, totals of users without end of data under proportional fair, maximum rate and round
//! robin against computed values (`tests/cell.rs`, unit tests of the table).

mod backlog;
mod channel;
mod config;
mod grant;
mod member;
mod rates;
mod reports;
mod saturated;
mod short;
mod slots;
mod synthetic;

pub use config::{BufferPer, CellConfig, CellUser, FadingKind, IntraUser, Overflow, Remainder, Transport};
pub use rates::RateRow;
pub use short::{CountsAt, ShortFlows};
pub use synthetic::Synthetic;

use std::borrow::Cow;

use ackclock_core::{ConfigError, FlowId, Histogram, RadioReport, Segment, Span, Time};

use crate::errors::ErrorProcess;
use crate::outcomes::Outcomes;
use crate::scheduler::{Candidate, Class, Scheduler, Service};
use crate::serial::Flight;
use crate::{
    AnyLink, BufferMeaning, Cause, Departures, Fate, Link, LinkContext, LinkEvent, LinkView, Load, Medium,
};
use backlog::{Backlog, Place, Rules};
use grant::{Grant, grants};
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
    /// The slot that is decided next.
    next: u64,
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

/// The slots that are being sent.
struct Air {
    /// Whose; of no meaning once they have ended.
    user: u32,
    ends: Time,
    /// Packets of which the last byte is among them.
    last: Vec<Segment>,
}

impl Cell {
    fn new(
        config: &CellConfig,
        scheduler: Box<dyn Scheduler>,
        context: LinkContext<'_>,
    ) -> Result<Self, ConfigError> {
        let member = |(number, user)| Member::new(config, number, user, &context);
        let members: Vec<_> = (0..).zip(config.each_user()).map(member).collect::<Result<_, _>>()?;
        let LinkContext { queue, meaning, streams, name, .. } = context;
        let slots = Slots::new(config.slots);
        let rules = Rules {
            plan: queue,
            order: config.order,
            buffer: config.buffer_per,
            overflow: config.overflow,
            short: config.short_flow.clone(),
        };
        Ok(Self {
            slots,
            drc_delay: config.drc_delay.into(),
            remainder: config.remainder,
            meaning,
            grants: grants(config, slots),
            backlog: Backlog::new(members.len(), rules),
            members,
            scheduler,
            busy: Vec::new(),
            candidates: Vec::new(),
            next: 0,
            air: Air { user: 0, ends: Time::NEVER, last: Vec::new() },
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
                && !self.busy.is_empty()
                && self.slots.start(self.next) <= now
            {
                self.decide();
            } else {
                return;
            }
        }
    }

    /// Who is served in the next slot?
    fn decide(&mut self) {
        let (slot, start) = (self.next, self.slots.start(self.next));
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
            let Grant { rate, bps, .. } = self.grants[state];
            self.candidates.push(Candidate { user, rate: bps, class });
            if self.reports.is_news(user, state) {
                for flow in self.backlog.flows(user, begun) {
                    let queued_bytes = self.backlog.waiting(flow).bytes;
                    self.reports.tell(start, RadioReport { flow, rate, queued_bytes });
                }
            }
        }
        match self.scheduler.choose(slot, &self.candidates) {
            Some(chosen) => self.serve(start, self.candidates[chosen].user),
            None => self.next += 1,
        }
    }

    /// Sends what fits into the slots that a user was given.
    fn serve(&mut self, start: Time, user: u32) {
        let member = &mut self.members[user as usize];
        let grant = self.grants[member.state.1];
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
        let idle = member.begun.is_none() && self.backlog.is_empty(user);
        let rate = grant.bps;
        let served = rate * ((grant.work - room) as f64 / grant.work as f64);
        self.sent += u128::from(grant.work - room);
        self.scheduler.served(Service { user, slot: self.next, slots: grant.slots, rate, served });
        self.next += grant.slots;
        self.air = Air { user, ends: self.slots.start(self.next), last: std::mem::take(&mut self.air.last) };
        if idle && let Ok(at) = self.busy.binary_search(&user) {
            self.busy.remove(at);
        }
        self.tell_drops(start);
    }

    /// The slots that were being sent are over.
    fn land(&mut self) {
        let at = std::mem::replace(&mut self.air.ends, Time::NEVER);
        let member = &mut self.members[self.air.user as usize];
        for segment in self.air.last.drain(..) {
            // Both are drawn for every packet, so that the luck of the next does not hang on the fate of this one.
            let (fate, delay) = (member.errors.fate(at), member.delays.draw());
            if fate == Fate::Lost {
                self.outcomes.tell(at, LinkEvent::Dropped(Cause::Medium), segment);
                continue;
            }
            if self.departures == Departures::Watched {
                self.outcomes.tell(at, LinkEvent::Departed, segment);
            }
            // Packets of a user do not overtake each other, and users do not hold each other up.
            member.last_arrival = member.last_arrival.max(at + delay);
            self.outcomes.flight.put(member.last_arrival, &segment);
        }
    }

    fn tell_drops(&mut self, at: Time) {
        while let Some((segment, cause)) = self.backlog.poll_dropped() {
            self.outcomes.tell(at, LinkEvent::Dropped(cause), segment);
        }
    }

    /// What is in transmission and came from the part of the buffer that serves `flow`.
    fn in_transmission(&self, flow: FlowId) -> Load {
        let begun =
            self.members[self.backlog.user(flow) as usize].begun.iter().map(|fragment| &fragment.segment);
        let of_flow = |segment: &&Segment| self.backlog.together(segment.flow, flow);
        begun.chain(&self.air.last).filter(of_flow).fold(Load::NONE, |sum, segment| sum + Load::of(segment))
    }

    /// No packet travels for less.
    fn least_delay(&self) -> Span {
        self.members[0].delays.least()
    }

    /// When something next happens in a slot: those that are being sent end, or the next is decided.
    fn next_change(&self) -> Time {
        if self.busy.is_empty() { self.air.ends } else { self.air.ends.min(self.slots.start(self.next)) }
    }

    /// No packet leaves earlier, once everything due was done.
    fn next_departure(&self) -> Time {
        if self.busy.is_empty() || !self.air.last.is_empty() {
            return self.air.ends;
        }
        // Nothing ends with the slots that are being sent.
        self.slots.start(self.next + 1)
    }

    /// Takes a segment into the queue of its flow.
    fn put(&mut self, now: Time, segment: &Segment, place: Place) -> Result<(), Cause> {
        self.advance(now);
        let beside = match self.meaning {
            BufferMeaning::WithTransmission => self.in_transmission(segment.flow),
            BufferMeaning::Waiting => Load::NONE,
        };
        let user = self.backlog.user(segment.flow);
        let taken = self.backlog.enqueue(now, segment, beside, place);
        self.tell_drops(now);
        if !self.backlog.is_empty(user)
            && let Err(at) = self.busy.binary_search(&user)
        {
            if self.busy.is_empty() {
                self.next = self.next.max(self.slots.after(now));
            }
            self.busy.insert(at, user);
        }
        taken
    }
}

impl From<Cell> for AnyLink {
    fn from(cell: Cell) -> Self {
        Self::Other(Box::new(cell))
    }
}

impl Link for Cell {
    fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        self.put(now, segment, Place::Back)
    }

    fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        self.put(now, segment, Place::Front)
    }

    fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)> {
        self.advance(now);
        self.outcomes.next(now)
    }

    fn take_segment(&mut self) -> Segment {
        self.outcomes.take()
    }

    fn poll_timeout(&self) -> Option<Time> {
        let watched = self.departures == Departures::Watched || self.reports.wanted();
        let next = if watched { self.next_change() } else { self.next_departure() + self.least_delay() };
        Some(next.min(self.outcomes.due())).filter(|&time| time != Time::NEVER)
    }

    fn watch(&mut self, departures: Departures) {
        self.departures = departures;
    }

    fn listen(&mut self) {
        self.reports.listen(self.members.len());
    }

    fn poll_report(&mut self, now: Time) -> Option<RadioReport> {
        self.reports.poll(now)
    }

    fn view(&self, now: Time, flow: FlowId) -> LinkView {
        let mut waiting = self.backlog.waiting(flow);
        let mut in_transmission = self.in_transmission(flow);
        if self.meaning == BufferMeaning::WithTransmission {
            waiting += std::mem::take(&mut in_transmission);
        }
        let (member, slot) = (&self.members[self.backlog.user(flow) as usize], self.slots.at(now));
        let state = match member.state {
            (known, state) if known == slot => state,
            _ => member.channel.peek(slot.saturating_sub(self.drc_delay)),
        };
        LinkView {
            waiting,
            in_transmission,
            unacknowledged: Load::NONE,
            capacity: self.backlog.capacity(),
            rate: self.grants[state].rate,
        }
    }

    fn waiting(&mut self, now: Time) -> Load {
        self.advance(now);
        self.backlog.load()
    }

    fn waits(&self) -> Cow<'_, Histogram> {
        Cow::Borrowed(&self.waits)
    }

    /// What the scheduler would have given the users to whom flows came, had all of them always had packets to send of the
    /// mean size of this run; or what it did carry, where that is more because only users with good channels asked.
    fn capacity_bps(&mut self, until: Time) -> Option<f64> {
        self.advance(until);
        let packet_bytes = self.bytes.checked_div(self.waits.count()).unwrap_or(FULL_PACKET);
        let all = self.reference.mean_bps_before(self.slots.at(until), packet_bytes)?;
        let slots = until.since(Time::ZERO).as_secs_f64() * self.slots.per_second() as f64;
        (slots > 0.0).then(|| all.max(self.sent as f64 / slots))
    }

    // It has no medium of its own, and no table asks for another.
    fn exchange(&mut self, _: Time, _: Box<dyn Medium>) {}

    fn assign(&mut self, flow: FlowId, user: u32) {
        self.backlog.assign(flow, user);
        self.reference.join(self.backlog.user(flow));
    }

    fn forget(&mut self, flow: FlowId) {
        self.backlog.forget(flow);
    }

    // What waits for slots to come is still to be counted.
    fn let_go(&mut self) {
        self.outcomes.flight = Flight::default();
    }
}
