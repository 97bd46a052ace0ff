//! Channel of one user and class of service. In each direction the channel has a queue and an RLC end. Over a cell it
//! also has the controller's side of the Iub.

use std::collections::vec_deque::Iter;

use ackclock_core::results::{RadioCounts, RlcResult};
use ackclock_core::{FlowId, Rate, Span, Time};
use ackclock_link::bearer::{Direction, Handover, HandoverTo};
use ackclock_link::queue::{AnyQueue, Queue};
use ackclock_link::{Fate, LinkView, Repetitions};

use super::filling::Filling;
use super::flow_control::Allocation;
use super::grants::Grants;
use super::iub::{Iub, Sent};
use crate::umts_rlc_am::{Asks, Data, End, LossCause, Pdu, Places, RlcConfig, Sdus};
use ackclock_link::Load;

/// Both directions of a user's class, with an RLC end on each side. All arrays are indexed by direction.
pub(super) struct Channel {
    /// RLC ends: the element of a direction is the end that sends in this direction.
    ends: [End; 2],
    pub(super) sdus: [Sdus; 2],
    /// The controller's side of the Iub, if the downlink has a base station.
    pub(super) iub: Option<Box<Iub>>,
    /// Requests for grants, if the RLC stands in the base station.
    pub(super) grants: Option<Grants>,
    /// Target delay of the base station's queue.
    target: Span,
    /// Whether the RLC table sets the guard of the ends.
    has_guard: bool,
    /// Number of times that both RLC ends were re-established.
    setups: u32,
    /// Number of data PDUs that were lost over the Iub, in the cell or by HARQ.
    lost: [u64; 2],
}

impl Channel {
    /// Creates a channel with these queues and their age limits, whose PDUs have the given positions in the TTIs of each
    /// direction, if TTIs carry them.
    pub(super) fn new(
        rlc: &RlcConfig,
        queues: [(AnyQueue, Option<Span>); 2],
        places: [Option<Places>; 2],
        (iub, grants): (Option<Box<Iub>>, Option<Grants>),
        round_trip: Span,
    ) -> Self {
        let ([(queue_down, limit_down), (queue_up, limit_up)], [down, up]) = (queues, places);
        let sdus = |queue, places, limit| Sdus::new(queue, places).holding(rlc).aging(limit, rlc);
        Self {
            // A STATUS cannot cover PDUs that were sent less than a round-trip time ago.
            ends: Direction::BOTH.map(|_| End::new(rlc, round_trip)),
            sdus: [sdus(queue_down, down, limit_down), sdus(queue_up, up, limit_up)],
            iub,
            grants,
            target: Span::ZERO,
            has_guard: rlc.guard.is_some(),
            setups: 0,
            lost: [0; 2],
        }
    }

    /// Time at which the Iub next has an event, or a grant is needed; [`Time::NEVER`] without either.
    pub(super) fn next_change(&self) -> Time {
        let grants = self.grants.as_ref().map_or(Time::NEVER, Grants::next);
        self.iub.as_ref().map_or(grants, |iub| iub.due().min(iub.next()))
    }

    /// Time at which SDUs of a direction next reach the age limit, or no longer wait for earlier ones, or an earlier time.
    pub(super) fn expires(&self, direction: Direction) -> Time {
        self.sdus[direction as usize].expires()
    }

    /// Discards the SDUs of a direction that have reached the age limit at `at`, and delivers those that no longer wait.
    pub(super) fn expire(&mut self, at: Time, direction: Direction) {
        self.ends[direction as usize].expire(at, &mut self.sdus[direction as usize]);
    }

    /// Earliest time at which the RLC end of a direction has something to send.
    pub(super) fn wants(&self, direction: Direction) -> Time {
        self.ends[direction as usize].due(&self.sdus[direction as usize])
    }

    /// Number of octets that the RLC end of a direction has to send at `at`, if PDUs fill grants.
    pub(super) fn octets(&self, at: Time, direction: Direction) -> u32 {
        self.ends[direction as usize].octets(at, &self.sdus[direction as usize])
    }

    /// Schedules the next transmission over the Iub, or the next request for a grant, at or after `from`.
    pub(super) fn plan(&mut self, from: Time) {
        let wanted = self.wants(Direction::Down);
        self.iub.iter_mut().for_each(|iub| iub.plan(wanted, from));
        self.grants.iter_mut().for_each(|grants| grants.plan(wanted, from));
    }

    /// Receives PDUs that a TTI has carried in a direction.
    pub(super) fn receive(&mut self, at: Time, direction: Direction, pdus: Iter<'_, Pdu>) {
        pdus.for_each(|pdu| self.pass(at, direction, pdu));
    }

    /// Passes a PDU that arrives or is lost to the far end of its direction.
    fn pass(&mut self, at: Time, direction: Direction, pdu: &Pdu) {
        let ([controller, terminal], [down, up]) = (&mut self.ends, &mut self.sdus);
        match direction {
            Direction::Down => terminal.on_pdu(at, pdu, controller.take_status(pdu).as_ref(), down, up),
            Direction::Up => controller.on_pdu(at, pdu, terminal.take_status(pdu).as_ref(), up, down),
        }
    }

    /// Room that a TTI or block of `room` PDUs, or octets if PDUs fill it, has after these PDUs.
    pub(super) fn left(&self, direction: Direction, room: usize, pdus: &[Pdu]) -> usize {
        self.ends[direction as usize].left(room, pdus)
    }

    /// Returns how the PDUs are marked that a direction's end sends next.
    pub(super) fn marks(&self, direction: Direction) -> impl Fn(Pdu) -> Sent + use<> {
        let (new, setup) = (self.ends[direction as usize].next_new(), self.setups);
        let first = move |pdu: &Pdu| new.is_none_or(|new| pdu.is_new(new));
        move |pdu| Sent { first: first(&pdu), pdu, setup, fate: Fate::Arrives }
    }

    /// Registers that `pdus` PDUs were cut for a block of the cell at `at`.
    pub(super) fn on_cut(&mut self, at: Time, pdus: u32) {
        let wanted = self.wants(Direction::Down);
        self.grants.iter_mut().for_each(|grants| grants.on_sent(at, pdus, wanted));
    }

    /// Handles the start of the first transmission of a direction's PDU.
    pub(super) fn begin(&mut self, at: Time, direction: Direction, sent: &Sent) {
        if sent.first
            && let Pdu::Data(data) = &sent.pdu
        {
            self.sdus[direction as usize].on_air(at, data.payload);
        }
    }

    /// Adds PDUs to a TTI or block of `room` PDUs, or octets if PDUs fill it, that starts at `at`.
    pub(super) fn fill(&mut self, at: Time, direction: Direction, room: usize, pdus: &mut Vec<Pdu>) -> Asks {
        let index = direction as usize;
        self.ends[index].fill(at, room, &mut self.sdus[index], pdus)
    }

    /// Sends the PDUs that may be sent over the Iub at `at`, if any are due. Returns the time from which on more PDUs may
    /// be sent.
    pub(super) fn send(&mut self, at: Time, filling: &mut Filling) -> Option<(Time, Asks)> {
        self.iub.as_ref().filter(|iub| iub.next() == at)?;
        let marked = self.marks(Direction::Down);
        let (end, sdus, iub) = (&mut self.ends[0], &mut self.sdus[0], self.iub.as_mut()?);
        let room = iub.room(at);
        if room == 0 {
            return Some((at, Asks::Nothing));
        }
        let asks = end.fill(at, room, sdus, &mut filling.pdus);
        Some((iub.send(at, filling.pdus.drain(..).map(marked)), asks))
    }

    /// Handles a PDU, or a run, that HARQ has finished. The PDU arrives at the far end of its direction, or was lost for the cause
    /// in `told`. Returns whether the far end may have something to send.
    pub(super) fn on_landed(
        &mut self,
        at: Time,
        direction: Direction,
        sent: Sent,
        told: Result<Repetitions, LossCause>,
    ) -> bool {
        let is_stale = sent.setup != self.setups;
        if is_stale || told.is_err() {
            self.lost[direction as usize] += sent.pdu.data_pdus();
        }
        if is_stale {
            return false;
        }
        let pdu = match (sent.pdu, told) {
            (Pdu::Data(Data { payload, count, .. }), _) => {
                let sdus = &mut self.sdus[direction as usize];
                let Repetitions { times, delay } = told.unwrap_or(Repetitions::NONE);
                if times > 0 {
                    sdus.on_repeat_below(payload, times * u32::from(count));
                }
                if sent.first {
                    sdus.on_unrepeated(at - delay, payload);
                }
                told.map_or_else(|cause| Pdu::Lost(payload, cause), |_| sent.pdu)
            }
            (_, Err(_)) => return false,
            (pdu, Ok(_)) => pdu,
        };
        self.pass(at, direction, &pdu);
        true
    }

    /// Counters of a direction, without those of the base station and of dedicated air interfaces.
    pub(super) fn counts(&self, direction: Direction) -> RadioCounts {
        let (there, back) = (direction as usize, direction.other() as usize);
        let (lost_by, discarded_sdus) = self.sdus[there].lost();
        let sent = self.ends[there].counts(&self.ends[back]);
        RadioCounts {
            queue: self.sdus[there].queue_waits().clone(),
            rlc: RlcResult { lost: self.lost[there], discarded_sdus, ..sent },
            lost_by,
            ..RadioCounts::default()
        }
    }

    /// Passes to the controller an allocation of PDUs by the base station, and the base station's target delay.
    pub(super) fn tell(&mut self, at: Time, allocation: Allocation, target: Span) {
        self.iub.iter_mut().for_each(|iub| iub.tell(at, allocation));
        self.target = target;
    }

    /// Sets the minimum age at which a STATUS can cover a PDU: the round-trip time of PDUs.
    pub(super) fn set_guards(&mut self, round_trip: Span) {
        if !self.has_guard {
            let [down, up] = &mut self.ends;
            down.set_guard(round_trip + self.target);
            up.set_guard(round_trip);
        }
    }

    /// Re-establishes both RLC ends: they forget all sent data.
    pub(super) fn set_up_anew(&mut self, at: Time) {
        self.setups += 1;
        for (end, sdus) in self.ends.iter_mut().zip(&mut self.sdus) {
            end.re_establish();
            sdus.reset(at);
        }
    }

    /// Starts a hand-over at `now`. Another controller re-establishes both RLC ends, and has a new Iub that starts when
    /// the hand-over ends. To another cell, the Iub goes on.
    pub(super) fn hand_over(&mut self, now: Time, handover: &Handover) {
        self.grants.iter_mut().for_each(|grants| grants.hand_over(handover.until));
        if handover.to == HandoverTo::Cell {
            return;
        }
        self.lost[0] += self.iub.as_mut().map_or(0, |iub| iub.restart(handover.until));
        self.setups += 1;
        for (end, sdus) in self.ends.iter_mut().zip(&mut self.sdus) {
            end.re_establish();
            sdus.return_begun(now);
            if !handover.forward {
                sdus.lose_returned(now);
            }
        }
        // The queue of the uplink is in the terminal, and stays there.
        if !handover.forward {
            self.sdus[Direction::Down as usize].lose_queued(now);
        }
    }

    /// Handles a PDU that a hand-over has removed from the base station.
    pub(super) fn on_removed(&mut self, at: Time, sent: Sent) {
        self.lost[0] += sent.pdu.data_pdus();
        if sent.setup == self.setups {
            self.ends[Direction::Up as usize].on_removed(
                at,
                &sent.pdu,
                &mut self.sdus[Direction::Down as usize],
            );
        }
    }

    /// View of the buffer that serves `flow` in a direction with the given rate.
    pub(super) fn view(&self, direction: Direction, flow: FlowId, rate: Rate) -> LinkView {
        let sdus = &self.sdus[direction as usize];
        let [in_transmission, unacknowledged] = sdus.cutting_and_sent(flow);
        let waiting = sdus.waiting(flow);
        LinkView {
            waiting,
            in_transmission,
            unacknowledged,
            occupied: waiting
                + in_transmission
                + if sdus.counts_sent() { unacknowledged } else { Load::NONE },
            capacity: sdus.queue().capacity(flow),
            rate,
        }
    }

    /// Values of the gauges of a direction.
    pub(super) fn gauges(&self, direction: Direction) -> impl Iterator<Item = f64> {
        let buffered = self.sdus[direction as usize].buffered().into();
        std::iter::once(buffered).chain(self.ends[direction as usize].window().into_iter().flatten())
    }
}
