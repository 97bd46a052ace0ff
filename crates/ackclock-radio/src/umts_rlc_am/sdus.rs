//! SDUs of a direction, from their arrival until the transmitter and the receiver have finished them.

use std::collections::VecDeque;

use ackclock_core::results::LostBy;
use ackclock_core::{FlowId, Histogram, Segment, Span, Time};
use ackclock_link::in_order::InOrder;
use ackclock_link::outcomes::Outcomes;
use ackclock_link::queue::{self, AnyQueue, Queue};
use ackclock_link::{Cause, DeliveryOrder, Departures, LinkEvent, Load, Repetitions};

use super::loss_cause::LossCause;
use super::pdu::{Data, Payload};
use super::places::{Place, Places};
use super::reordering::{Complete, Late, Reordering};
use super::rlc::{BufferCounts, RlcConfig, RlcMode};
use super::sn::SduNumber;
use crate::artificial_delay::HoldTimes;

/// Queue of a direction, and the SDUs with parts in PDUs.
pub(crate) struct Sdus {
    queue: AnyQueue,
    counts: BufferCounts,
    /// Age limits of SDUs that are sent again, and of SDUs with a part in a PDU.
    limits: [Option<Span>; 2],
    /// SDUs that are sent again from their start, before the queue, because the RLC was re-established.
    returned: VecDeque<Sdu>,
    /// SDUs with a part in a PDU, in order of arrival.
    begun: VecDeque<Sdu>,
    /// Number of the first SDU in `begun`.
    first: SduNumber,
    /// Octets of the newest SDU that are not yet in a PDU.
    pub(crate) uncut: u32,
    /// Whether the newest SDU filled its last PDU, so that the next PDU must mark the SDU's end.
    pub(crate) owes_end: bool,
    /// Positions of PDUs in TTIs; `None` if the layer below reports their transmission and arrival times.
    places: Option<Places>,
    /// Hold times of delivered SDUs, and the order of the held SDUs; `None` if no SDU is held.
    held: Option<Box<(HoldTimes, InOrder)>>,
    /// SDUs that wait for earlier SDUs at the receiver; `None` if no SDU waits.
    reordering: Option<Box<Reordering>>,
    pub(crate) outcomes: Outcomes,
    pub(crate) departures: Departures,
    pub(crate) waits: Histogram,
    /// Queueing delays until the first octet is in a PDU, if a PDU is queued again before its transmission.
    queued: Histogram,
    lost: LostBy,
    /// Number of SDUs that the transmitter gave up because of MaxDAT.
    discarded: u64,
}

/// An SDU with a part in a PDU.
#[derive(Clone, Copy, Debug)]
struct Sdu {
    segment: Segment,
    /// Number of PDUs that contain a part or the end of the SDU.
    pdus: u32,
    acknowledged: u32,
    arrived: u32,
    /// Latest arrival time of a PDU that contains a part of the SDU.
    latest: Time,
    /// Time at which the SDU entered the buffer.
    arrived_at: Time,
    /// Whether the first octet of the SDU was transmitted.
    on_air: bool,
    /// Time at which the SDU's last PDU would have arrived without retransmissions, based on the reports so far.
    unrepeated: Time,
    /// Positions of the SDU's first and last PDU at their first transmission.
    places: [Place; 2],
    /// Number of retransmissions of the SDU's PDUs.
    repeated: u32,
    /// Whether the SDU's last octet is in a PDU. The mark of the SDU's end may follow in the next PDU.
    departed: bool,
    /// Whether the SDU's end is in a PDU, or the SDU was given up.
    cut: bool,
    /// Whether the SDU has left the transmitter's buffer.
    freed: bool,
    /// Whether the SDU was delivered or lost.
    ended: bool,
}

impl Sdus {
    pub(crate) fn new(queue: AnyQueue, places: Option<Places>) -> Self {
        Self {
            queue,
            counts: BufferCounts::default(),
            limits: [None; 2],
            places,
            held: None,
            reordering: None,
            returned: VecDeque::new(),
            begun: VecDeque::new(),
            first: 0,
            uncut: 0,
            owes_end: false,
            outcomes: Outcomes::default(),
            departures: Departures::Unwatched,
            waits: Histogram::default(),
            queued: Histogram::default(),
            lost: LostBy::default(),
            discarded: 0,
        }
    }

    /// Counts SDUs against the buffer, and holds delivered SDUs, as the RLC table says.
    pub(crate) fn holding(self, rlc: &RlcConfig) -> Self {
        let held = |delays| Box::new((HoldTimes::new(delays), InOrder::new(rlc.order.into())));
        let reordering = rlc.reordering.map(|time| Box::new(Reordering::new(time)));
        Self { counts: rlc.buffer_counts, held: rlc.delays.as_ref().map(held), reordering, ..self }
    }

    /// Discards SDUs at an age limit. A part of the SDU may then be in a PDU of fixed size (TS 25.322 section 9.7.3), but
    /// not in a PDU that fills a grant (TS 36.322 section 5.3).
    pub(crate) fn aging(self, limit: Option<Span>, rlc: &RlcConfig) -> Self {
        let discards = rlc.mode == RlcMode::Acknowledged && !rlc.grants();
        Self { limits: [limit, limit.filter(|_| discards)], ..self }
    }

    pub(crate) const fn queue(&self) -> &AnyQueue {
        &self.queue
    }

    pub(crate) const fn queue_mut(&mut self) -> &mut AnyQueue {
        &mut self.queue
    }

    /// Accepts an SDU into the buffer, which also holds unacknowledged SDUs.
    pub(crate) fn put(&mut self, now: Time, segment: &Segment, place: queue::Place) -> Result<(), Cause> {
        let taken = self.queue.put(now, segment, self.held(segment.flow), place);
        self.tell_drops(now);
        taken
    }

    /// Whether the buffer has data that was never sent.
    pub(crate) fn has_new(&self) -> bool {
        self.uncut > 0 || self.owes_end || !self.returned.is_empty() || !self.queue.is_empty()
    }

    /// Number of octets that were never sent, with `of_sdu` octets of headers for each SDU and part.
    pub(crate) fn octets(&self, of_sdu: u32) -> u32 {
        let Load { packets, bytes } = self
            .returned
            .iter()
            .map(|sdu| Load::of(&sdu.segment))
            .fold(self.queue.load(), |sum, one| sum + one);
        let parts = packets + u32::from(self.uncut > 0);
        let octets = u32::try_from(bytes).unwrap_or(u32::MAX / 2) + self.uncut;
        if parts == 0 { 0 } else { octets + of_sdu * (parts + 1) }
    }

    /// Starts the next queued SDU; returns false if the queue is empty.
    pub(crate) fn begin(&mut self, now: Time) -> bool {
        if let Some(sdu) = self.returned.pop_front() {
            self.uncut = sdu.segment.wire_bytes();
            let places = [self.here(); 2];
            self.begun.push_back(Sdu { latest: now, places, ..sdu });
            return true;
        }
        let next = self.queue.dequeue(now);
        self.tell_drops(now);
        let Some((arrived, segment)) = next else { return false };
        let waits = if self.places.is_some() { &mut self.waits } else { &mut self.queued };
        waits.record(now.since(arrived));
        self.uncut = segment.wire_bytes();
        let here = self.here();
        self.begun.push_back(Sdu {
            segment,
            pdus: 0,
            acknowledged: 0,
            arrived: 0,
            latest: now,
            arrived_at: arrived,
            on_air: false,
            unrepeated: Time::ZERO,
            places: [here; 2],
            repeated: 0,
            departed: false,
            cut: false,
            freed: false,
            ended: false,
        });
        true
    }

    /// Number of the SDU that started last.
    pub(crate) fn newest(&self) -> SduNumber {
        self.next() - 1
    }

    /// Number of the next SDU to start.
    pub(crate) fn next(&self) -> SduNumber {
        self.first + self.begun.len() as u64
    }

    /// Registers a new PDU that was filled with the SDU parts in `payload`.
    #[inline]
    pub(crate) fn on_cut(&mut self, payload: Payload) {
        let here = self.here();
        for number in payload.sdus() {
            if let Some(sdu) = self.get(number) {
                sdu.pdus += 1;
                sdu.places[1] = here;
                sdu.cut |= payload.ended().contains(&number);
            }
        }
    }

    /// Registers a run of `count` new PDUs that lie within the newest SDU.
    #[inline]
    pub(crate) fn on_cut_within(&mut self, count: u32) {
        self.places.iter_mut().for_each(|places| places.skip(count - 1));
        let here = self.here();
        if let Some(sdu) = self.begun.back_mut() {
            sdu.pdus += count;
            sdu.places[1] = here;
        }
    }

    /// Records that a PDU was retransmitted; `payload` lists the parts of SDUs in this PDU.
    pub(crate) fn on_repeat(&mut self, payload: Payload) {
        let units = u64::from(payload.octets).max(1);
        self.places.iter_mut().for_each(|places| places.on_repeat(units));
        self.on_repeat_below(payload, 1);
    }

    /// Registers that the layer below retransmitted a PDU with the SDU parts in `payload` `times` times.
    pub(crate) fn on_repeat_below(&mut self, payload: Payload, times: u32) {
        for number in payload.sdus() {
            if let Some(sdu) = self.get(number) {
                sdu.repeated += times;
            }
        }
    }

    /// Registers that the transmission of a new PDU with the SDU parts in `payload` started at `at`.
    pub(crate) fn on_air(&mut self, at: Time, payload: Payload) {
        for number in payload.sdus() {
            if let Some(sdu) = self.get(number)
                && !std::mem::replace(&mut sdu.on_air, true)
            {
                let came = sdu.arrived_at;
                self.waits.record(at.since(came));
            }
        }
    }

    /// Registers that a new PDU with the SDU parts in `payload` would have arrived at `at` without retransmissions.
    pub(crate) fn on_unrepeated(&mut self, at: Time, payload: Payload) {
        for number in payload.sdus() {
            if let Some(sdu) = self.get(number) {
                sdu.unrepeated = sdu.unrepeated.max(at);
            }
        }
    }

    /// Starts filling the TTI that starts at `now`.
    pub(crate) fn begin_tti(&mut self, now: Time) {
        self.places.iter_mut().for_each(|places| places.begin_tti(now));
    }

    /// Continues at PDU position `place` of the current TTI.
    pub(crate) fn go_to(&mut self, place: usize) {
        self.places.iter_mut().for_each(|places| places.go_to(place));
    }

    /// Changes the room and the delay of the TTIs from the TTI on that starts at `from`.
    pub(crate) fn change_ttis(&mut self, from: Time, room: usize, delay: Span) {
        let oldest = self.begun.front().map(|sdu| sdu.places[0]);
        self.places.iter_mut().for_each(|places| places.change(from, room as u32, delay, oldest));
    }

    fn here(&self) -> Place {
        self.places.as_ref().map_or(Place::default(), Places::next)
    }

    /// Registers that the last octet of the newest SDU is in a PDU sent at `now`.
    pub(crate) fn depart(&mut self, now: Time) {
        let Some(sdu) = self.begun.back_mut() else { return };
        // An SDU that is sent again after the RLC was re-established has departed before.
        let again = std::mem::replace(&mut sdu.departed, true);
        if self.departures == Departures::Watched && !again {
            self.outcomes.push(now, LinkEvent::Departed, sdu.segment);
        }
    }

    /// Registers that the peer has acknowledged `count` PDUs, each with the SDU parts in `payload`.
    pub(crate) fn acknowledge(&mut self, now: Time, payload: Payload, count: u32) {
        for number in payload.sdus() {
            if let Some(sdu) = self.get(number) {
                sdu.acknowledged += count;
                if sdu.cut && sdu.acknowledged == sdu.pdus {
                    self.free_one(now, number);
                    self.trim();
                }
            }
        }
    }

    /// Registers that a PDU with the SDU parts in `payload` was sent and needs no acknowledgement.
    pub(crate) fn free(&mut self, payload: Payload) {
        for number in payload.ended() {
            if let Some(sdu) = self.get(number) {
                sdu.freed = true;
            }
        }
        self.trim();
    }

    /// Removes an SDU from the transmitter's buffer.
    fn free_one(&mut self, now: Time, number: SduNumber) {
        let Some(sdu) = self.get(number).filter(|sdu| !sdu.freed) else { return };
        sdu.freed = true;
        let segment = sdu.segment;
        self.note_freed(now, segment);
    }

    /// Reports that an SDU no longer counts against the buffer, if it did so after its departure.
    fn note_freed(&mut self, now: Time, segment: Segment) {
        if self.departures != Departures::Unwatched && self.counts_sent() {
            self.outcomes.push(now, LinkEvent::Freed, segment);
        }
    }

    /// Registers the first arrival of a PDU, or of a run. With out-of-sequence delivery, delivers the SDUs that are now
    /// complete.
    pub(crate) fn arrive(&mut self, now: Time, data: &Data, order: DeliveryOrder) {
        for number in data.payload.sdus() {
            let Some(sdu) = self.get(number) else { continue };
            sdu.arrived += u32::from(data.count);
            sdu.latest = now;
            if order == DeliveryOrder::OutOfSequence && sdu.cut && sdu.arrived == sdu.pdus {
                self.deliver(now, number, None);
            }
        }
    }

    /// Delivers an SDU, unless the SDU was lost. The SDU was complete at `whole`, or, without `whole`, at the latest
    /// arrival of one of its PDUs.
    pub(crate) fn deliver(&mut self, now: Time, number: SduNumber, whole: Option<Time>) {
        let Some(sdu) = self.get(number).filter(|sdu| !sdu.ended) else { return };
        sdu.ended = true;
        let Sdu { segment, latest, places, repeated, unrepeated, .. } = *sdu;
        let expected = self.places.as_ref().map_or(unrepeated, |own| own.arrival(places));
        let whole = whole.unwrap_or(latest);
        let repetitions = Repetitions { times: repeated, delay: whole.since(expected) };
        let complete = Complete { segment, whole, repetitions };
        match self.reordering.as_deref_mut() {
            None => self.hand_on(now, complete),
            Some(own) => {
                // The timer may have expired at this instant, so that later SDUs go also if this one is too late.
                let late = own.receive(now, number, complete).err();
                self.hand_on_released(now);
                late.into_iter().for_each(|Late(segment)| self.note_lost(now, segment, LossCause::Air));
            }
        }
        self.trim();
    }

    /// Delivers the SDUs that no longer wait for an earlier one.
    fn hand_on_released(&mut self, now: Time) {
        while let Some(complete) = self.reordering.as_deref_mut().and_then(|own| own.release(now)) {
            self.hand_on(now, complete);
        }
    }

    /// Delivers a complete SDU, at the end of its hold time.
    fn hand_on(&mut self, now: Time, Complete { segment, whole, repetitions }: Complete) {
        let at = match self.held.as_deref_mut() {
            Some((times, in_order)) => {
                in_order.arrival(segment.flow, now.max(whole + times.hold(now, repetitions.delay)))
            }
            None => now,
        };
        self.outcomes.put_repeated(at, &segment, repetitions);
    }

    /// Reports an SDU as lost, unless the SDU was delivered.
    pub(crate) fn lose(&mut self, now: Time, number: SduNumber, cause: LossCause) {
        let Some(sdu) = self.get(number).filter(|sdu| !sdu.ended) else { return };
        sdu.ended = true;
        let segment = sdu.segment;
        self.note_lost(now, segment, cause);
        self.trim();
    }

    /// Counts and reports the loss of an SDU.
    fn note_lost(&mut self, now: Time, segment: Segment, cause: LossCause) {
        *match cause {
            LossCause::MaxDat => &mut self.lost.max_dat,
            LossCause::Reset => &mut self.lost.reset,
            LossCause::Air => &mut self.lost.air,
            LossCause::BaseStation => &mut self.lost.base_station,
            LossCause::Handover => &mut self.lost.handover,
            LossCause::Aged => &mut self.lost.aged,
        } += 1;
        self.outcomes.push(now, LinkEvent::Dropped(cause.event()), segment);
    }

    /// Reports every undelivered SDU before `keep` as lost.
    pub(crate) fn lose_before(&mut self, now: Time, keep: SduNumber, cause: LossCause) {
        (self.first..keep.min(self.next())).for_each(|number| self.lose(now, number, cause));
    }

    /// Removes every SDU before `keep` from the transmitter. If the newest SDU is removed, its unsent rest is dropped,
    /// so the SDU is lost.
    pub(crate) fn give_up_before(&mut self, now: Time, keep: SduNumber, cause: LossCause) {
        for number in self.first..keep.min(self.next()) {
            if let Some(sdu) = self.get(number) {
                sdu.cut = true;
                let held = !sdu.freed;
                self.discarded += u64::from(held && cause == LossCause::MaxDat);
            }
            self.free_one(now, number);
        }
        if keep >= self.next() && (self.uncut > 0 || self.owes_end) {
            (self.uncut, self.owes_end) = (0, false);
            self.lose(now, self.newest(), cause);
        }
        self.trim();
    }

    /// Resets the transmitter's state of sent data; undelivered SDUs are lost.
    pub(crate) fn reset(&mut self, now: Time) {
        let keep = self.next();
        self.lose_before(now, keep, LossCause::Reset);
        self.give_up_before(now, keep, LossCause::Reset);
    }

    /// Forgets all PDUs. SDUs that the transmitter holds, or that the receiver has not delivered, are sent again as a
    /// whole before the queue. SDUs that the transmitter no longer holds, and has not seen acknowledged, are lost.
    pub(crate) fn return_begun(&mut self, now: Time) {
        (self.uncut, self.owes_end) = (0, false);
        let keep = self.next();
        for number in self.first..keep {
            if self.get(number).is_some_and(|sdu| sdu.freed && sdu.acknowledged < sdu.pdus) {
                self.lose(now, number, LossCause::Handover);
            }
        }
        // The numbers of SDUs start again (TS 38.323 section 5.1.2, for a bearer without retransmissions).
        if let Some(own) = self.reordering.as_deref_mut() {
            own.restart(keep);
            self.hand_on_released(now);
        }
        self.first = keep;
        let again = self.begun.drain(..).filter(|sdu| !(sdu.freed && sdu.ended));
        let again = again.map(|sdu| Sdu { pdus: 0, acknowledged: 0, arrived: 0, cut: false, ..sdu });
        self.returned = again.chain(self.returned.drain(..)).collect();
    }

    /// Loses all SDUs that were to be sent again.
    pub(crate) fn lose_returned(&mut self, now: Time) {
        while let Some(sdu) = self.returned.pop_front() {
            self.lose_one_returned(now, &sdu, LossCause::Handover);
        }
    }

    /// Frees an SDU that was to be sent again, and reports it as lost unless it was delivered.
    fn lose_one_returned(&mut self, now: Time, sdu: &Sdu, cause: LossCause) {
        if !sdu.freed {
            self.note_freed(now, sdu.segment);
        }
        if !sdu.ended {
            self.note_lost(now, sdu.segment, cause);
        }
    }

    /// Time at which an SDU next reaches its age limit, or no longer waits for an earlier one, or an earlier time;
    /// [`Time::NEVER`] without either.
    pub(crate) fn expires(&self) -> Time {
        let [returned, begun] = self.limits;
        let of = |sdu: Option<&Sdu>, limit: Option<Span>| {
            sdu.zip(limit).map_or(Time::NEVER, |(sdu, limit)| sdu.arrived_at + limit)
        };
        let sent = begun.and_then(|_| self.begun.iter().find(|sdu| !sdu.freed));
        let waits = self.reordering.as_ref().map_or(Time::NEVER, |own| own.due());
        self.queue.expires().min(of(self.returned.front(), returned)).min(of(sent, begun)).min(waits)
    }

    /// Drops the SDUs that have reached the age limit at `now` and of which no part is in a PDU. Delivers SDUs that have
    /// waited for an earlier one for long enough.
    pub(crate) fn expire(&mut self, now: Time) {
        self.hand_on_released(now);
        self.queue.expire(now);
        self.tell_drops(now);
        let Some(limit) = self.limits[0] else { return };
        while let Some(sdu) = self.returned.pop_front_if(|sdu| sdu.arrived_at + limit <= now) {
            self.lose_one_returned(now, &sdu, LossCause::Aged);
        }
    }

    /// Number of the SDU after the last SDU that must be discarded at `now` although a part of it is in a PDU.
    pub(crate) fn after_aged(&self, now: Time) -> Option<SduNumber> {
        let limit = self.limits[1]?;
        let is_aged = |sdu: &Sdu| !sdu.freed && sdu.arrived_at + limit <= now;
        let sent = self.begun.iter().take_while(|sdu| sdu.freed || is_aged(sdu)).enumerate();
        let last = sent.filter(|(_, sdu)| is_aged(sdu)).last();
        last.map(|(place, _)| self.first + place as u64 + 1)
    }

    /// Loses all SDUs in the queue.
    pub(crate) fn lose_queued(&mut self, now: Time) {
        while let Some((_, segment)) = self.queue.dequeue(now) {
            self.note_lost(now, segment, LossCause::Handover);
        }
        self.tell_drops(now);
    }

    /// Queueing delays of SDUs until their first octet is in a PDU.
    pub(crate) const fn queue_waits(&self) -> &Histogram {
        if self.places.is_some() { &self.waits } else { &self.queued }
    }

    /// Lost SDUs by cause, and the number of SDUs that the transmitter gave up because of MaxDAT.
    pub(crate) const fn lost(&self) -> (LostBy, u64) {
        (self.lost, self.discarded)
    }

    /// Load that has not departed and counts against the capacity of `flow`: the queue, and SDUs that are sent again
    /// after a part of them was sent.
    pub(crate) fn waiting(&self, flow: FlowId) -> Load {
        self.queue.waiting(flow) + self.load_of(flow, &self.returned, |sdu| !sdu.departed)
    }

    /// Load of all flows that waits for transmission.
    pub(crate) fn load(&self) -> Load {
        let returned = self.returned.iter().filter(|sdu| !sdu.freed);
        returned.fold(self.queue.load(), |sum, sdu| sum + Load::of(&sdu.segment))
    }

    /// Load outside the queue that counts against the capacity of `flow`: SDUs with a part in a PDU that are still in
    /// the buffer.
    pub(crate) fn held(&self, flow: FlowId) -> Load {
        let counts = |sdu: &Sdu| self.counts_sent() || !sdu.departed;
        self.load_of(flow, &self.begun, counts) + self.load_of(flow, &self.returned, counts)
    }

    /// Whether departed SDUs count against the buffer.
    pub(crate) fn counts_sent(&self) -> bool {
        self.counts == BufferCounts::Unacknowledged
    }

    /// Load of SDUs in transmission, and load of departed SDUs that the peer has not acknowledged.
    pub(crate) fn cutting_and_sent(&self, flow: FlowId) -> [Load; 2] {
        let [cutting, sent] =
            [false, true].map(|departed| self.load_of(flow, &self.begun, |sdu| sdu.departed == departed));
        [cutting, sent + self.load_of(flow, &self.returned, |sdu| sdu.departed)]
    }

    /// Load of SDUs that are queued, or started but neither delivered nor lost.
    pub(crate) fn undelivered(&self) -> Load {
        let open = self.begun.iter().chain(&self.returned).filter(|sdu| !sdu.ended);
        open.fold(self.queue.load(), |sum, sdu| sum + Load::of(&sdu.segment))
    }

    /// Number of SDUs of all flows that count against the buffer: queued SDUs, and SDUs with a part in a PDU.
    pub(crate) fn buffered(&self) -> u32 {
        let counts = |sdu: &&Sdu| !sdu.freed && (self.counts_sent() || !sdu.departed);
        self.load().packets + self.begun.iter().filter(counts).count() as u32
    }

    /// Load of the unfreed SDUs among `sdus` that count against the capacity of `flow`.
    fn load_of(&self, flow: FlowId, sdus: &VecDeque<Sdu>, counts: impl Fn(&Sdu) -> bool) -> Load {
        let of_flow = |sdu: &&Sdu| !sdu.freed && counts(sdu) && self.queue.together(sdu.segment.flow, flow);
        sdus.iter().filter(of_flow).fold(Load::NONE, |sum, sdu| sum + Load::of(&sdu.segment))
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

    /// Frees all SDUs in flight.
    pub(crate) fn let_go(&mut self) {
        self.outcomes = Outcomes::default();
        (self.begun, self.returned) = (VecDeque::new(), VecDeque::new());
        self.reordering.iter_mut().for_each(|own| own.let_go());
    }
}
