//! Receiving side of an RLC entity: window, reassembly, and STATUS triggers (TS 25.322 sections 9.7.2 and 11.3.3).

use ackclock_core::{Span, Time};
use ackclock_link::DeliveryOrder;

use super::missing::Room;
use super::pdu::{Data, Payload};
use super::reassembly::{Reassembly, Received};
use super::sdus::Sdus;
use super::sn::{Ring, Sn, SnSet};
use super::status::{Mrw, MrwAck, Report, reports};
use super::status_config::StatusConfig;

/// State of received PDUs, and of the reports to the peer.
pub(super) struct Receiver {
    config: StatusConfig,
    order: DeliveryOrder,
    window: u16,
    /// VR(R): sequence number of the next PDU expected in order.
    vr_r: Sn,
    /// VR(H): sequence number after the highest sequence number that has arrived.
    vr_h: Sn,
    /// Sequence numbers of the received PDUs beyond VR(R).
    received: SnSet,
    /// Contents of the received PDUs beyond VR(R).
    contents: Ring<Payload>,
    /// PDUs that a STATUS may report on; `None` for all PDUs.
    reassembly: Option<Box<Reassembly>>,
    /// Whether a STATUS was triggered and not sent yet.
    wanted: bool,
    /// Whether PDUs have arrived or are missing since the last STATUS.
    unreported: bool,
    /// Timer_Status_Prohibit: earliest time of the next STATUS.
    prohibited: Time,
    /// Timer_Status_Periodic: time of the next periodic STATUS.
    next_periodic: Option<Time>,
    /// Number of window changes that have taken effect.
    windows: usize,
    /// Acknowledgement of an MRW that is still to be sent.
    pub(super) mrw_ack: Option<MrwAck>,
    /// Total number of PDUs that had arrived before.
    pub(super) duplicates: u64,
}

impl Receiver {
    pub(super) fn new(config: StatusConfig, order: DeliveryOrder, window: u16) -> Self {
        Self {
            reassembly: config.reassembly.map(|time| Box::new(Reassembly::new(time))),
            next_periodic: (config.period != Span::ZERO).then_some(Time::ZERO + config.period),
            config,
            order,
            window,
            vr_r: Sn::ZERO,
            vr_h: Sn::ZERO,
            received: SnSet::default(),
            contents: Ring::default(),
            wanted: false,
            unreported: false,
            prohibited: Time::ZERO,
            windows: 0,
            mrw_ack: None,
            duplicates: 0,
        }
    }

    /// Processes an arriving AMD PDU of the direction of `sdus`, or a run. Delivers the SDUs that become complete.
    pub(super) fn on_data(&mut self, now: Time, data: &Data, sdus: &mut Sdus) {
        let in_sequence = data.sn == self.vr_r && self.vr_h == self.vr_r;
        if data.count > 1 && !(in_sequence && data.count <= self.window && self.reassembly.is_none()) {
            return (0..data.count).for_each(|step| {
                self.on_data(now, &Data { sn: data.sn.plus(step), count: 1, ..*data }, sdus)
            });
        }
        let ahead = data.sn.above(self.vr_r);
        // The receiver answers a poll even in a duplicate PDU: the peer may not know that the PDU had arrived.
        match self.reassembly.as_deref_mut() {
            Some(own) if data.poll && ahead < self.window => own.on_poll(data.sn),
            _ => self.wanted |= data.poll,
        }
        self.unreported = true;
        if ahead >= self.window || self.received.contains(data.sn) {
            self.duplicates += 1;
            return self.update_reassembly(now);
        }
        let expected = self.vr_h.above(self.vr_r);
        if ahead == 0 && expected == 0 {
            return self.on_next(now, data, sdus);
        }
        if ahead >= expected {
            self.wanted |= ahead > expected && self.config.missing_pdu && self.reassembly.is_none();
            self.vr_h = data.sn.plus(1);
        }
        self.received.insert(data.sn);
        self.contents.reserve(self.vr_r, expected, ahead + 1);
        self.contents[data.sn] = data.payload;
        sdus.arrive(now, data, self.order);
        self.go_on(now, sdus);
    }

    /// Processes the expected PDU, or run, where no earlier PDU is missing or arrived out of order: SDUs that end in it are complete
    /// now.
    #[inline]
    fn on_next(&mut self, now: Time, data: &Data, sdus: &mut Sdus) {
        self.vr_r = data.sn.plus(data.count);
        self.vr_h = self.vr_r;
        match self.order {
            DeliveryOrder::OutOfSequence => sdus.arrive(now, data, self.order),
            DeliveryOrder::InSequence => {
                data.payload.ended().for_each(|number| sdus.deliver(now, number, Some(now)));
            }
        }
        self.update_reassembly(now);
    }

    /// Advances VR(R) over PDUs received in sequence. The SDUs that end in these PDUs have been complete since the latest
    /// arrival of one of their PDUs.
    fn go_on(&mut self, now: Time, sdus: &mut Sdus) {
        while self.received.contains(self.vr_r) {
            self.received.remove(self.vr_r);
            let payload = self.contents[self.vr_r];
            self.vr_r = self.vr_r.plus(1);
            if self.order == DeliveryOrder::InSequence {
                payload.ended().for_each(|number| sdus.deliver(now, number, None));
            }
        }
        self.update_reassembly(now);
    }

    fn update_reassembly(&mut self, now: Time) {
        let received = Received { next: self.vr_r, highest: self.vr_h };
        if let Some(own) = self.reassembly.as_deref_mut() {
            self.wanted |= own.update(now, &self.received, received);
        }
    }

    /// Processes an MRW: the peer has given up earlier PDUs. Moves the receive window; incomplete SDUs below the window
    /// are lost.
    pub(super) fn on_mrw(&mut self, now: Time, mrw: Mrw, sdus: &mut Sdus) {
        let ahead = mrw.sn.above(self.vr_r);
        // A sequence number outside the receive window lies below the window and belongs to a repeated MRW that was
        // already processed.
        if ahead <= self.window {
            sdus.lose_before(now, mrw.keep, mrw.cause);
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

    /// Processes timers that have expired by `now`.
    pub(super) fn expire(&mut self, now: Time) {
        if self.reassembly.as_ref().is_some_and(|own| own.due() <= now) {
            self.update_reassembly(now);
        }
        let period = self.config.period;
        if let Some(next) = self.next_periodic.filter(|&next| next <= now) {
            self.wanted |= self.unreported;
            self.next_periodic = Some(next + period * (now.since(next).as_nanos() / period.as_nanos() + 1));
        }
        while self.next_window() <= now {
            self.windows += 1;
            self.wanted = true;
        }
    }

    /// Window to report to the peer (WINDOW); `None` before the first window change.
    pub(super) fn peer_window(&self) -> Option<u16> {
        let last = self.config.windows[..self.windows].last()?;
        // The configuration check accepts only window sizes of at most 11 bits.
        Some(last.pdus as u16)
    }

    /// Time of the next change of the peer's window.
    fn next_window(&self) -> Time {
        self.config.windows.get(self.windows).map_or(Time::NEVER, |change| Time::ZERO + change.at)
    }

    /// Whether a STATUS is due at `now`.
    pub(super) fn reports_at(&self, now: Time) -> bool {
        self.wanted && now >= self.prohibited
    }

    /// Emits the reports due at `now`, in at most `most` STATUS PDUs, each with `room` for reports of missing PDUs.
    pub(super) fn report(&mut self, now: Time, room: Room, most: u32, emit: impl FnMut(Report)) {
        self.wanted = false;
        self.unreported = self.vr_h != self.vr_r;
        self.prohibited = now + self.config.prohibit;
        let to = self.reassembly.as_ref().map_or(self.vr_h, |own| own.reported());
        reports(&self.received, [self.vr_r, to], room, self.config.missing, most, emit);
    }

    /// Earliest time at which the receiver has a STATUS to send.
    pub(super) fn due(&self) -> Time {
        if self.mrw_ack.is_some() {
            return Time::ZERO;
        }
        let triggers = self.reassembly.as_ref().map_or(Time::NEVER, |own| own.due());
        let wanted = if self.wanted { Time::ZERO } else { triggers };
        let wanted = if wanted == Time::NEVER { wanted } else { wanted.max(self.prohibited) };
        wanted
            .min(self.next_window())
            .min(self.next_periodic.filter(|_| self.unreported).unwrap_or(Time::NEVER))
    }

    /// Discards the state of all PDUs (TS 25.322 section 11.4); partly received SDUs are reported as lost when the peer
    /// resets.
    pub(super) fn reset(&mut self) {
        (self.vr_r, self.vr_h) = (Sn::ZERO, Sn::ZERO);
        self.received = SnSet::default();
        self.reassembly.iter_mut().for_each(|own| own.reset());
        (self.wanted, self.unreported) = (false, false);
        self.prohibited = Time::ZERO;
        self.mrw_ack = None;
    }
}
