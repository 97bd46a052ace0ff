//! Transmitting side of an RLC entity: window, transmissions, acknowledgements (TS 25.322 section 11.3).

use ackclock_core::{Span, Time};

use super::discard::Discard;
use super::loss_cause::LossCause;
use super::pdu::{Data, Payload};
use super::poll::{Polling, Sent};
use super::sdus::Sdus;
use super::segmentation::{Filled, Room, Shape};
use super::sn::{Ring, SduNumber, Sn, SnSet};
use super::status::{Mrw, MrwAck, Report};

/// State of the PDUs sent by an RLC entity, and of their acknowledgements.
pub(super) struct Transmitter {
    pub(super) shape: Shape,
    /// VT(WS): window size, PDUs.
    pub(super) window: u16,
    configured: u16,
    /// MaxDAT: limit of the number of transmissions of a PDU.
    max_dat: u32,
    /// Minimum age of a PDU's last transmission at which an arriving STATUS can cover it.
    pub(super) guard: Span,
    /// VT(S): sequence number of the next new PDU.
    pub(super) vt_s: Sn,
    /// VT(A): sequence number of the oldest unacknowledged PDU.
    pub(super) vt_a: Sn,
    /// PDUs from VT(A) up to VT(S), by sequence number.
    slots: Ring<Slot>,
    /// Sequence numbers of PDUs to retransmit.
    repeats: SnSet,
    /// Number of PDUs whose fate is unknown.
    pub(super) unacknowledged: u32,
    /// Total number of new PDUs sent so far.
    pub(super) new_pdus: u64,
    /// Total number of retransmissions so far.
    pub(super) retransmissions: u64,
    pub(super) polling: Polling,
    pub(super) discard: Discard,
}

/// PDU in the transmission window.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    payload: Payload,
    /// VT(DAT): number of times the PDU was sent.
    sends: u32,
    /// Time of the PDU's last transmission.
    sent: Time,
    /// Whether the PDU was acknowledged, or all of its content was given up.
    done: bool,
}

/// PDU to send, with its free padding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) data: Data,
    /// Octets of padding in the PDU that are available for a STATUS.
    pub(super) padding: u32,
}

/// Limits on the window and the transmissions of an RLC transmitter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) window: u16,
    pub(super) max_dat: u32,
    pub(super) guard: Span,
}

impl Transmitter {
    pub(super) fn new(shape: Shape, limits: Limits, polling: Polling, discard: Discard) -> Self {
        let Limits { window, max_dat, guard } = limits;
        Self {
            shape,
            window,
            configured: window,
            max_dat,
            guard,
            vt_s: Sn::ZERO,
            vt_a: Sn::ZERO,
            slots: Ring::default(),
            repeats: SnSet::default(),
            unacknowledged: 0,
            new_pdus: 0,
            retransmissions: 0,
            polling,
            discard,
        }
    }

    /// Number of PDUs from VT(A) up to VT(S).
    pub(super) const fn outstanding(&self) -> u16 {
        self.vt_s.above(self.vt_a)
    }

    /// Whether a retransmission or a new PDU can be sent.
    pub(super) fn has_pdu(&self, sdus: &Sdus) -> bool {
        !self.repeats.is_empty() || self.is_open() && sdus.has_new()
    }

    const fn is_open(&self) -> bool {
        self.outstanding() < self.window
    }

    /// Returns the next PDU to send: the retransmission with the lowest number, else a new PDU, else a retransmission
    /// only to send a poll. Returns `None` if no PDU can be sent, or if the content of the next PDU was given up. A
    /// retransmission that is larger than its room waits for a grant of its own.
    pub(super) fn next_pdu(&mut self, now: Time, room: Room, sdus: &mut Sdus) -> Option<Outgoing> {
        if let Some(sn) = self.repeats.first_from(self.vt_a) {
            if !self.fits(sn, room) {
                return None;
            }
            self.repeats.remove(sn);
            return self.repeat(now, sn, sdus);
        }
        if self.is_open()
            && let Some(filled) = sdus.fill(now, self.shape, room, self.most_of_run())
        {
            return Some(self.send_new(now, filled, sdus));
        }
        if !self.polling.is_wanted(now) {
            return None;
        }
        match self.newest_unacknowledged() {
            Some(sn) if !self.fits(sn, room) => None,
            Some(sn) => self.repeat(now, sn, sdus),
            None => {
                self.polling.drop_wish();
                None
            }
        }
    }

    /// Number of octets that can be sent at `now`, if PDUs fill grants: retransmissions and new data, or a PDU that is
    /// sent again to poll.
    pub(super) fn octets(&self, now: Time, sdus: &Sdus) -> u32 {
        let of = |sn: Sn| u32::from(self.slots[sn].payload.octets);
        let sent = || (0..self.outstanding()).map(|step| self.vt_a.plus(step));
        let mut octets: u32 = match self.repeats.is_empty() {
            true => 0,
            false => sent().filter(|&sn| self.repeats.contains(sn)).map(of).sum(),
        };
        if self.is_open() {
            octets += sdus.octets(self.shape.overhead());
        }
        if octets == 0 && self.unacknowledged > 0 && self.polling.due() <= now {
            octets = self.newest_unacknowledged().map_or(0, of);
        }
        octets
    }

    fn fits(&mut self, sn: Sn, room: Room) -> bool {
        let payload = self.slot(sn).payload;
        self.shape.holds(payload, room)
    }

    /// Maximum number of PDUs of a run that is sent next: all have a poll, or none.
    fn most_of_run(&self) -> u16 {
        let used = self.outstanding();
        self.polling.alike(used, self.window).min((self.window - 1 - used).into()) as u16
    }

    fn send_new(&mut self, now: Time, filled: Filled, sdus: &Sdus) -> Outgoing {
        let Filled { payload, count, padding } = filled;
        let (sn, used) = (self.vt_s, self.outstanding());
        self.slots.reserve(self.vt_a, used, used + count);
        self.vt_s = sn.plus(count);
        for step in 0..count {
            *self.slot(sn.plus(step)) = Slot { payload, sends: 1, sent: now, done: false };
        }
        self.unacknowledged += u32::from(count);
        self.new_pdus += u64::from(count);
        let last = !sdus.has_new() || !self.is_open();
        let (ends, used, window, vt_s) = (payload.ends, used + count, self.window, self.vt_s);
        let sent = Sent { last, is_repeated: false, ends, used, window, vt_s };
        let poll = self.polling.run_polls(now, count - 1, sent);
        Outgoing { data: Data { sn, count, poll, payload, piggyback: None }, padding }
    }

    /// Retransmits a PDU, or gives up its content after MaxDAT - 1 transmissions.
    fn repeat(&mut self, now: Time, sn: Sn, sdus: &mut Sdus) -> Option<Outgoing> {
        let most = self.max_dat;
        let slot = self.slot(sn);
        if slot.sends + 1 >= most {
            let keep = slot.payload.sdus().end;
            self.discard_before(now, keep, LossCause::MaxDat, sdus);
            return None;
        }
        slot.sends += 1;
        slot.sent = now;
        let payload = slot.payload;
        self.retransmissions += 1;
        sdus.on_repeat(payload);
        let (ends, used, window, vt_s) = (payload.ends, self.outstanding() + 1, self.window, self.vt_s);
        let last = self.repeats.is_empty();
        let poll = self.polling.polls(now, Sent { last, is_repeated: true, ends, used, window, vt_s });
        Some(Outgoing { data: Data { sn, count: 1, poll, payload, piggyback: None }, padding: 0 })
    }

    fn newest_unacknowledged(&self) -> Option<Sn> {
        let below = |steps: u16| self.vt_s.plus(Sn::MOST + 1 - steps);
        (1..=self.outstanding()).map(below).find(|&sn| !self.slots[sn].done)
    }

    /// Processes a status report of the peer. Returns false if the report names a PDU that was not sent.
    pub(super) fn on_report(&mut self, now: Time, report: &Report, sdus: &mut Sdus) -> bool {
        if report.lsn.above(self.vt_a) > self.outstanding()
            || report.missing.iter().any(|sn| sn.above(self.vt_a) >= self.outstanding())
        {
            return false;
        }
        let first_missing = self.acknowledge_reported(now, report, sdus);
        for sn in report.missing.iter() {
            self.ask_again(now, sn);
        }
        self.discard.on_window(self.vt_a, first_missing);
        self.vt_a = first_missing;
        let lists = |last| report.missing.iter().any(|sn| sn == last);
        self.polling.on_status(self.vt_a, self.vt_s, lists);
        true
    }

    /// Registers the acknowledgement of the PDUs below LSN that a report does not list. Returns the first PDU that it lists,
    /// or LSN.
    fn acknowledge_reported(&mut self, now: Time, report: &Report, sdus: &mut Sdus) -> Sn {
        let mut missing = report.missing.iter().peekable();
        let (vt_a, mut first_missing) = (self.vt_a, report.lsn);
        // PDUs with equal SDU parts, and their number.
        let (mut parts, mut count) = (Payload::default(), 0);
        for sn in (0..report.lsn.above(vt_a)).map(|step| vt_a.plus(step)) {
            if missing.next_if_eq(&sn).is_some() {
                first_missing = if first_missing == report.lsn { sn } else { first_missing };
            } else if let Some(payload) = self.acknowledge(sn) {
                if payload != parts {
                    sdus.acknowledge(now, parts, count);
                    (parts, count) = (payload, 0);
                }
                count += 1;
            }
        }
        sdus.acknowledge(now, parts, count);
        first_missing
    }

    /// Registers the acknowledgement of a PDU. Returns its content, unless the PDU was acknowledged or given up before.
    #[inline]
    fn acknowledge(&mut self, sn: Sn) -> Option<Payload> {
        self.repeats.remove(sn);
        let slot = self.slot(sn);
        if std::mem::replace(&mut slot.done, true) {
            return None;
        }
        let payload = slot.payload;
        self.unacknowledged -= 1;
        Some(payload)
    }

    /// Schedules the retransmission of a missing PDU, unless its last transmission may still be in flight.
    fn ask_again(&mut self, now: Time, sn: Sn) {
        let guard = self.guard;
        let slot = self.slot(sn);
        if !slot.done && slot.sent + guard <= now {
            self.repeats.insert(sn);
        }
    }

    /// Discards every SDU before `keep`, of which at least one has a part in a PDU (TS 25.322 section 11.6.2).
    pub(super) fn discard_before(&mut self, now: Time, keep: SduNumber, cause: LossCause, sdus: &mut Sdus) {
        sdus.give_up_before(now, keep, cause);
        let (mut first_kept, mut ends) = (self.vt_s, 0);
        let vt_a = self.vt_a;
        for at in (0..self.outstanding()).map(|step| vt_a.plus(step)) {
            let slot = self.slot(at);
            let payload = slot.payload;
            if payload.sdus().end > keep {
                // Each SDU that ends in a PDU takes at least one octet, so the number of these SDUs fits into 16 bits.
                (first_kept, ends) = (at, keep.saturating_sub(payload.first) as u16);
                break;
            }
            let was_open = !std::mem::replace(&mut slot.done, true);
            self.unacknowledged -= u32::from(was_open);
            self.repeats.remove(at);
        }
        self.discard.begin(now, Mrw { sn: first_kept, ends, keep, cause });
    }

    /// Sets the maximum number of unacknowledged PDUs, as reported by the peer (WINDOW).
    pub(super) const fn on_window(&mut self, window: u16) {
        self.window = window;
    }

    /// Processes an MRW_ACK: the receiver has moved its window.
    pub(super) fn on_mrw_ack(&mut self, now: Time, ack: MrwAck, sdus: &mut Sdus) {
        if !self.discard.on_ack(ack, self.vt_a) || ack.sn.above(self.vt_a) > self.outstanding() {
            return;
        }
        while self.vt_a != ack.sn {
            if let Some(payload) = self.acknowledge(self.vt_a) {
                sdus.acknowledge(now, payload, 1);
            }
            self.vt_a = self.vt_a.plus(1);
        }
        self.polling.on_status(self.vt_a, self.vt_s, |_| false);
    }

    /// Starts Timer_Poll if PDUs are unacknowledged and no other rule would request a STATUS.
    pub(super) fn stay_alert(&mut self, now: Time, sdus: &Sdus) {
        if self.unacknowledged > 0 && !self.polling.is_active() && !self.has_pdu(sdus) {
            self.polling.await_answer(now, self.vt_s);
        }
    }

    /// Earliest time at which the transmitter can send a PDU.
    pub(super) fn due(&self, sdus: &Sdus) -> Time {
        if self.has_pdu(sdus) {
            return Time::ZERO;
        }
        if self.unacknowledged > 0 { self.polling.due() } else { Time::NEVER }
    }

    /// Discards the state of all PDUs (TS 25.322 section 11.4).
    pub(super) fn reset(&mut self) {
        (self.vt_s, self.vt_a) = (Sn::ZERO, Sn::ZERO);
        self.window = self.configured;
        self.repeats = SnSet::default();
        self.unacknowledged = 0;
        self.polling.reset();
        self.discard.reset();
    }

    fn slot(&mut self, sn: Sn) -> &mut Slot {
        &mut self.slots[sn]
    }
}
