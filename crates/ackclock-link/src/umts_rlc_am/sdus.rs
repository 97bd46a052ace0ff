//! The SDUs of a direction, from their arrival until both ends are done with them.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Histogram, Segment, Time};

use super::pdu::Payload;
use super::places::{Place, Places};
use super::sn::SduNumber;
use crate::outcomes::Outcomes;
use crate::queue::{AnyQueue, Queue};
use crate::{Cause, DeliveryOrder, Departures, LinkEvent, Load, Repetitions};

/// What waits in the queue, and what has parts in PDUs.
pub(crate) struct Sdus {
    queue: AnyQueue,
    /// Those of which a part is in a PDU, in their order.
    begun: VecDeque<Sdu>,
    /// Number of the first of them.
    first: SduNumber,
    /// Octets of the newest that are in no PDU yet.
    pub(crate) uncut: u32,
    /// The newest filled its last PDU, so that its end is told in the next one.
    pub(crate) owes_end: bool,
    pub(crate) places: Places,
    pub(crate) outcomes: Outcomes,
    pub(crate) departures: Departures,
    pub(crate) waits: Histogram,
}

/// An SDU of which a part is in a PDU.
#[derive(Clone, Copy, Debug)]
struct Sdu {
    segment: Segment,
    /// PDUs that have a part of it or its end, those of them that were acknowledged, and those that arrived.
    pdus: u32,
    acknowledged: u32,
    arrived: u32,
    /// When the last of those that arrived did, as far as it was noted.
    latest: Time,
    /// Places of the first and of the last of its PDUs when they were first sent.
    places: [Place; 2],
    /// How often PDUs with parts of it were sent again.
    repeated: u32,
    /// Its end is in a PDU, or it was given up.
    cut: bool,
    /// It has left the buffer of the transmitter.
    freed: bool,
    /// It was delivered or lost.
    ended: bool,
}

impl Sdus {
    pub(crate) fn new(queue: AnyQueue, places: Places) -> Self {
        Self {
            queue,
            places,
            begun: VecDeque::new(),
            first: 0,
            uncut: 0,
            owes_end: false,
            outcomes: Outcomes::default(),
            departures: Departures::Unwatched,
            waits: Histogram::default(),
        }
    }

    pub(crate) const fn queue(&self) -> &AnyQueue {
        &self.queue
    }

    pub(crate) const fn queue_mut(&mut self) -> &mut AnyQueue {
        &mut self.queue
    }

    /// Takes an SDU into the buffer, in which those count too that the peer has not acknowledged.
    pub(crate) fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        let taken = self.queue.enqueue(now, segment, self.held(segment.flow));
        self.tell_drops(now);
        taken
    }

    /// Takes an SDU before all others of its flow that wait.
    pub(crate) fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        let taken = self.queue.enqueue_front(now, segment, self.held(segment.flow));
        self.tell_drops(now);
        taken
    }

    /// Whether there is something that was never sent.
    pub(crate) fn has_new(&self) -> bool {
        self.uncut > 0 || self.owes_end || !self.queue.is_empty()
    }

    /// Begins with the next SDU of the queue, if one is left.
    pub(crate) fn begin(&mut self, now: Time) -> bool {
        let next = self.queue.dequeue(now);
        self.tell_drops(now);
        let Some((arrived, segment)) = next else { return false };
        self.waits.record(now.since(arrived));
        self.uncut = segment.wire_bytes();
        let here = self.places.next();
        self.begun.push_back(Sdu {
            segment,
            pdus: 0,
            acknowledged: 0,
            arrived: 0,
            latest: now,
            places: [here; 2],
            repeated: 0,
            cut: false,
            freed: false,
            ended: false,
        });
        true
    }

    /// Number of the newest SDU that was begun.
    pub(crate) fn newest(&self) -> SduNumber {
        self.next() - 1
    }

    /// Number of the SDU that will be begun next.
    pub(crate) fn next(&self) -> SduNumber {
        self.first + self.begun.len() as u64
    }

    /// A PDU was filled with these.
    pub(crate) fn on_cut(&mut self, payload: Payload) {
        let here = self.places.next();
        for number in payload.sdus() {
            if let Some(sdu) = self.get(number) {
                sdu.pdus += 1;
                sdu.places[1] = here;
                sdu.cut |= payload.ended().contains(&number);
            }
        }
    }

    /// A PDU with these is sent again.
    pub(crate) fn on_repeat(&mut self, payload: Payload) {
        self.places.on_repeat();
        for number in payload.sdus() {
            if let Some(sdu) = self.get(number) {
                sdu.repeated += 1;
            }
        }
    }

    /// The last octet of the newest SDU is in a PDU that is sent at `now`.
    pub(crate) fn depart(&mut self, now: Time) {
        if self.departures == Departures::Watched
            && let Some(sdu) = self.begun.back()
        {
            self.outcomes.push(now, LinkEvent::Departed, sdu.segment);
        }
    }

    /// The peer has a PDU with these.
    pub(crate) fn acknowledge(&mut self, now: Time, payload: Payload) {
        for number in payload.sdus() {
            if let Some(sdu) = self.get(number) {
                sdu.acknowledged += 1;
                if sdu.cut && sdu.acknowledged == sdu.pdus {
                    self.free_one(now, number);
                }
            }
        }
        self.trim();
    }

    /// Nothing will be asked of what was sent.
    pub(crate) fn free(&mut self, payload: Payload) {
        for number in payload.ended() {
            if let Some(sdu) = self.get(number) {
                sdu.freed = true;
            }
        }
        self.trim();
    }

    /// An SDU leaves the buffer.
    fn free_one(&mut self, now: Time, number: SduNumber) {
        let Some(sdu) = self.get(number).filter(|sdu| !sdu.freed) else { return };
        sdu.freed = true;
        let segment = sdu.segment;
        if self.departures == Departures::Watched {
            self.outcomes.push(now, LinkEvent::Freed, segment);
        }
    }

    /// A PDU with these arrived for the first time: out of sequence, those that are complete are handed on.
    pub(crate) fn arrive(&mut self, now: Time, payload: Payload, order: DeliveryOrder) {
        for number in payload.sdus() {
            let Some(sdu) = self.get(number) else { continue };
            sdu.arrived += 1;
            sdu.latest = now;
            if order == DeliveryOrder::OutOfSequence && sdu.cut && sdu.arrived == sdu.pdus {
                self.deliver(now, number, None);
            }
        }
    }

    /// Hands an SDU on, if it was not lost. It was complete at `whole`, or with the last arrival that was noted.
    pub(crate) fn deliver(&mut self, now: Time, number: SduNumber, whole: Option<Time>) {
        let Some(sdu) = self.get(number).filter(|sdu| !sdu.ended) else { return };
        sdu.ended = true;
        let Sdu { segment, latest, places, repeated, .. } = *sdu;
        let delay = whole.unwrap_or(latest).since(self.places.arrival(places));
        self.outcomes.put_repeated(now, &segment, Repetitions { times: repeated, delay });
        self.trim();
    }

    /// Loses an SDU, if it was not handed on.
    pub(crate) fn lose(&mut self, now: Time, number: SduNumber) {
        let Some(sdu) = self.get(number).filter(|sdu| !sdu.ended) else { return };
        sdu.ended = true;
        let segment = sdu.segment;
        self.outcomes.push(now, LinkEvent::Dropped(Cause::Medium), segment);
        self.trim();
    }

    /// Loses every SDU before `keep` that was not handed on.
    pub(crate) fn lose_before(&mut self, now: Time, keep: SduNumber) {
        (self.first..keep.min(self.next())).for_each(|number| self.lose(now, number));
    }

    /// The transmitter gives up every SDU before `keep`; of the newest the rest is not sent, so that it is lost.
    pub(crate) fn give_up_before(&mut self, now: Time, keep: SduNumber) {
        for number in self.first..keep.min(self.next()) {
            if let Some(sdu) = self.get(number) {
                sdu.cut = true;
            }
            self.free_one(now, number);
        }
        if keep >= self.next() && (self.uncut > 0 || self.owes_end) {
            (self.uncut, self.owes_end) = (0, false);
            self.lose(now, self.newest());
        }
        self.trim();
    }

    /// The transmitter forgets what it has sent; what was not handed on is lost.
    pub(crate) fn reset(&mut self, now: Time) {
        let keep = self.next();
        self.lose_before(now, keep);
        self.give_up_before(now, keep);
    }

    /// What counts beside the queue against the capacity of the part that serves `flow`: begun, and not yet freed.
    pub(crate) fn held(&self, flow: FlowId) -> Load {
        self.begun_load(flow, |_| true)
    }

    /// What is being cut, and what is cut whole and not yet freed.
    pub(crate) fn cutting_and_sent(&self, flow: FlowId) -> [Load; 2] {
        [false, true].map(|cut| self.begun_load(flow, |sdu| sdu.cut == cut))
    }

    /// SDUs in the buffer, whoever's: those that wait and those that are begun and not freed.
    pub(crate) fn buffered(&self) -> u32 {
        self.queue.load().packets + self.begun.iter().filter(|sdu| !sdu.freed).count() as u32
    }

    fn begun_load(&self, flow: FlowId, counts: impl Fn(&Sdu) -> bool) -> Load {
        let of_flow = |sdu: &&Sdu| !sdu.freed && counts(sdu) && self.queue.together(sdu.segment.flow, flow);
        self.begun.iter().filter(of_flow).fold(Load::NONE, |sum, sdu| sum + Load::of(&sdu.segment))
    }

    fn get(&mut self, number: SduNumber) -> Option<&mut Sdu> {
        self.begun.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn trim(&mut self) {
        while self.begun.pop_front_if(|sdu| sdu.freed && sdu.ended).is_some() {
            self.first += 1;
        }
    }

    fn tell_drops(&mut self, at: Time) {
        while let Some((segment, cause)) = self.queue.poll_dropped() {
            self.outcomes.push(at, LinkEvent::Dropped(cause), segment);
        }
    }

    /// Lets go what is under way.
    pub(crate) fn let_go(&mut self) {
        self.outcomes = Outcomes::default();
        self.begun = VecDeque::new();
    }
}
