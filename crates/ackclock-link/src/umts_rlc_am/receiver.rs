//! The receiving side of an entity: window, reassembly, and when it reports (TS 25.322 sections 9.7.2 and 11.3.3).

use ackclock_core::{Span, Time};

use super::config::StatusConfig;
use super::pdu::{Data, Payload};
use super::sdus::Sdus;
use super::sn::{Sn, SnSet};
use super::status::{Mrw, MrwAck, Report, reports};
use crate::DeliveryOrder;

/// What has arrived, and what the peer is told of it.
pub(super) struct Receiver {
    config: StatusConfig,
    order: DeliveryOrder,
    window: u16,
    /// VR(R): the next PDU in sequence.
    vr_r: Sn,
    /// VR(H): the one behind the highest that has arrived.
    vr_h: Sn,
    /// PDUs beyond VR(R) that have arrived.
    received: SnSet,
    contents: Vec<Payload>,
    /// A STATUS was triggered and not sent yet.
    wanted: bool,
    /// PDUs have come, or are missing, since the last STATUS.
    unreported: bool,
    /// Timer_Status_Prohibit: no further STATUS before.
    prohibited: Time,
    /// Timer_Status_Periodic.
    next_periodic: Option<Time>,
    /// The acknowledgement of an MRW that is to be sent.
    pub(super) mrw_ack: Option<MrwAck>,
}

impl Receiver {
    pub(super) fn new(config: StatusConfig, order: DeliveryOrder, window: u16) -> Self {
        Self {
            next_periodic: (config.period != Span::ZERO).then_some(Time::ZERO + config.period),
            config,
            order,
            window,
            vr_r: Sn::ZERO,
            vr_h: Sn::ZERO,
            received: SnSet::default(),
            contents: vec![Payload::default(); usize::from(window).next_power_of_two()],
            wanted: false,
            unreported: false,
            prohibited: Time::ZERO,
            mrw_ack: None,
        }
    }

    /// An AMD PDU arrives, of the direction of `sdus`. What it completes is handed on.
    pub(super) fn on_data(&mut self, now: Time, data: &Data, sdus: &mut Sdus) {
        // A poll is answered even where the PDU itself is of no use: the peer may not know that it arrived.
        self.wanted |= data.poll;
        self.unreported = true;
        let ahead = data.sn.above(self.vr_r);
        if ahead >= self.window || self.received.contains(data.sn) {
            return;
        }
        let expected = self.vr_h.above(self.vr_r);
        if ahead >= expected {
            self.wanted |= ahead > expected && self.config.missing_pdu;
            self.vr_h = data.sn.plus(1);
        }
        self.received.insert(data.sn);
        let place = data.sn.place(self.contents.len());
        self.contents[place] = data.payload;
        if self.order == DeliveryOrder::OutOfSequence {
            sdus.arrive(now, data.payload);
        }
        self.go_on(now, sdus);
    }

    /// Moves over what is in sequence; SDUs that end there are complete.
    fn go_on(&mut self, now: Time, sdus: &mut Sdus) {
        while self.received.contains(self.vr_r) {
            self.received.remove(self.vr_r);
            let payload = self.contents[self.vr_r.place(self.contents.len())];
            self.vr_r = self.vr_r.plus(1);
            if self.order == DeliveryOrder::InSequence {
                payload.ended().for_each(|number| sdus.deliver(now, number));
            }
        }
    }

    /// The peer has given up what comes before: the window moves, and what was not complete is lost.
    pub(super) fn on_mrw(&mut self, now: Time, mrw: Mrw, sdus: &mut Sdus) {
        let ahead = mrw.sn.above(self.vr_r);
        // Beyond the window it can only be below: one that was told again, and is done with.
        if ahead <= self.window {
            sdus.lose_before(now, mrw.keep);
            let expected = self.vr_h.above(self.vr_r);
            for sn in (0..ahead).map(|step| self.vr_r.plus(step)) {
                self.received.remove(sn);
            }
            self.vr_r = mrw.sn;
            if expected < ahead {
                self.vr_h = mrw.sn;
            }
            self.go_on(now, sdus);
        }
        let ends = if self.vr_r == mrw.sn { mrw.ends } else { 0 };
        self.mrw_ack = Some(MrwAck { sn: self.vr_r, ends });
    }

    /// Takes in the timers that have ended by `now`.
    pub(super) fn expire(&mut self, now: Time) {
        let period = self.config.period;
        if let Some(next) = self.next_periodic.filter(|&next| next <= now) {
            self.wanted |= self.unreported;
            self.next_periodic = Some(next + period * (now.since(next).as_nanos() / period.as_nanos() + 1));
        }
    }

    /// Whether a STATUS is to be sent at `now`.
    pub(super) fn reports_at(&self, now: Time) -> bool {
        self.wanted && now >= self.prohibited
    }

    /// Sends what is to be reported at `now`, in at most `most` parts of so many pairs.
    pub(super) fn report(&mut self, now: Time, most_runs: u8, most: u32, emit: impl FnMut(Report)) {
        self.wanted = false;
        self.unreported = self.vr_h != self.vr_r;
        self.prohibited = now + self.config.prohibit;
        reports(&self.received, [self.vr_r, self.vr_h], most_runs, most, emit);
    }

    /// When something is to be sent, at the earliest.
    pub(super) fn due(&self) -> Time {
        if self.mrw_ack.is_some() {
            return Time::ZERO;
        }
        let wanted = if self.wanted { self.prohibited } else { Time::NEVER };
        wanted.min(self.next_periodic.filter(|_| self.unreported).unwrap_or(Time::NEVER))
    }

    /// Forgets all PDUs (TS 25.322 section 11.4); SDUs of which a part had come are lost with the reset of the peer.
    pub(super) fn reset(&mut self) {
        (self.vr_r, self.vr_h) = (Sn::ZERO, Sn::ZERO);
        self.received = SnSet::default();
        (self.wanted, self.unreported) = (false, false);
        self.prohibited = Time::ZERO;
        self.mrw_ack = None;
    }
}
