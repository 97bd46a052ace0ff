//! An acknowledged-mode entity: one at each end of the radio, with a transmitter and a receiver.

use ackclock_core::Time;

use super::missing::Room;
use super::pdu::Pdu;
use super::receiver::Receiver;
use super::reset::Resets;
use super::sdus::Sdus;
use super::segmentation;
use super::status::Status;
use super::statuses::Statuses;
use super::transmitter::Transmitter;

/// Transmitter of one direction, and receiver of the opposite direction.
pub(crate) struct Entity {
    pub(super) transmitter: Transmitter,
    pub(super) receiver: Receiver,
    pub(super) resets: Resets,
    /// Room in a STATUS PDU for reports of missing PDUs.
    pub(super) status_room: Room,
    /// Whether a STATUS may replace the padding of a PDU.
    pub(super) piggyback: bool,
    /// STATUS that this end has sent.
    pub(super) statuses: Statuses,
}

impl Entity {
    /// Fills a TTI of `room` PDUs, or octets if PDUs fill grants, that starts at `now`: control PDUs first, then
    /// retransmissions, then new data. The TTI may already have PDUs of other entities.
    pub(crate) fn fill_tti(&mut self, now: Time, room: usize, sdus: &mut Sdus, tti: &mut Vec<Pdu>) {
        self.transmitter.polling.expire(now);
        self.receiver.expire(now);
        tti.extend(self.resets.answer().map(Pdu::ResetAck));
        if !self.resets.is_pending() {
            let own = tti.len();
            self.put_status(now, room, tti);
            self.put_data(now, room, sdus, tti, own);
        }
        if self.left(room, tti).units > 0 {
            tti.extend(self.resets.poll(now).map(Pdu::Reset));
        }
    }

    #[inline]
    fn left(&self, room: usize, tti: &[Pdu]) -> segmentation::Room {
        self.transmitter.shape.left(room, tti)
    }

    fn put_status(&mut self, now: Time, room: usize, tti: &mut Vec<Pdu>) {
        let (mrw_ack, window) = (self.receiver.mrw_ack.take(), self.receiver.peer_window());
        let mut status = Status { mrw_ack, window, ..Status::default() };
        let most = self.left(room, tti).units as u32;
        if self.receiver.reports_at(now) && most > 0 {
            self.receiver.report(now, self.status_room, most, |report| {
                status.report = Some(report);
                tti.push(Pdu::Status(self.statuses.send(std::mem::take(&mut status))));
            });
        } else if !status.is_empty() {
            tti.push(Pdu::Status(self.statuses.send(status)));
        }
    }

    /// Adds data; the PDUs of this entity begin at `own`.
    fn put_data(&mut self, now: Time, room: usize, sdus: &mut Sdus, tti: &mut Vec<Pdu>, own: usize) {
        sdus.begin_tti(now);
        let mut left = self.left(room, tti);
        while left.units > 0 {
            let discard = &mut self.transmitter.discard;
            if let Some(mrw) = discard.poll(now) {
                let status = Status { mrw: Some(mrw), ..Status::default() };
                let pdu = Pdu::Status(self.statuses.send(status));
                left = left.after(self.transmitter.shape, &pdu);
                tti.push(pdu);
                continue;
            }
            if discard.has_failed() {
                self.resets.begin(now);
                return;
            }
            sdus.go_to(room - left.units);
            let Some(outgoing) = self.transmitter.next_pdu(now, left, sdus) else {
                if self.transmitter.discard.due() <= now {
                    continue;
                }
                break;
            };
            let pdu = Pdu::Data(outgoing.data);
            left = left.after(self.transmitter.shape, &pdu);
            tti.push(pdu);
            if outgoing.padding > 0 && self.piggyback && put_into_padding(tti, own, outgoing.padding) {
                left.units += 1;
            }
        }
        self.transmitter.stay_alert(now, sdus);
    }

    /// Processes an arriving PDU with its STATUS. The argument `of_peer` holds the SDUs of the PDU's direction, and `own`
    /// the SDUs of the opposite direction.
    pub(crate) fn on_pdu(
        &mut self,
        now: Time,
        pdu: &Pdu,
        status: Option<&Status>,
        of_peer: &mut Sdus,
        own: &mut Sdus,
    ) {
        match pdu {
            Pdu::Reset(number) => {
                if self.resets.on_reset(*number) {
                    self.reset(now, own);
                }
            }
            Pdu::ResetAck(number) => {
                if self.resets.on_ack(*number) {
                    self.reset(now, own);
                }
            }
            // While a RESET is unanswered, all other PDUs are ignored.
            _ if self.resets.is_pending() => {}
            Pdu::Data(data) => {
                self.receiver.on_data(now, data, of_peer);
                status.into_iter().for_each(|status| self.on_status(now, status, of_peer, own));
            }
            Pdu::Status(_) => {
                status.into_iter().for_each(|status| self.on_status(now, status, of_peer, own));
            }
            Pdu::Lost(..) => {}
        }
    }

    fn on_status(&mut self, now: Time, status: &Status, of_peer: &mut Sdus, own: &mut Sdus) {
        // Timers that have expired by `now` are handled before the STATUS is processed.
        self.transmitter.polling.expire(now);
        if let Some(window) = status.window {
            self.transmitter.on_window(window);
        }
        if let Some(mrw) = status.mrw {
            self.receiver.on_mrw(now, mrw, of_peer);
        }
        if let Some(ack) = status.mrw_ack {
            self.transmitter.on_mrw_ack(now, ack, own);
        }
        if let Some(report) = &status.report
            && !self.transmitter.on_report(now, report, own)
        {
            self.resets.begin(now);
        }
        self.transmitter.stay_alert(now, own);
    }

    /// Earliest time at which the entity has something to send; [`Time::ZERO`] if it already has something to send.
    pub(crate) fn due(&self, sdus: &Sdus) -> Time {
        let resets = self.resets.due();
        if self.resets.is_pending() {
            return resets;
        }
        resets.min(self.receiver.due()).min(self.transmitter.discard.due()).min(self.transmitter.due(sdus))
    }

    /// Number of octets that the entity has to send at `now`, if PDUs fill grants.
    pub(crate) fn octets(&self, now: Time, sdus: &Sdus) -> u32 {
        let control = if self.due(sdus) <= now { CONTROL } else { 0 };
        control + self.transmitter.octets(now, sdus)
    }

    /// Discards the state of all PDUs sent and received.
    pub(crate) fn reset(&mut self, now: Time, own: &mut Sdus) {
        self.transmitter.reset();
        self.receiver.reset();
        own.reset(now);
    }
}

/// Room that a report of the buffer's size counts for a STATUS, octets.
const CONTROL: u32 = 10;

/// Moves the only STATUS among the PDUs from `own` on into the padding of the last PDU, if it fits. Returns whether it did.
fn put_into_padding(tti: &mut Vec<Pdu>, own: usize, padding: u32) -> bool {
    let is_status = |pdu: &Pdu| matches!(pdu, Pdu::Status(_));
    let mut places = (own..tti.len()).filter(|&place| is_status(&tti[place]));
    let (Some(place), None) = (places.next(), places.next()) else { return false };
    let Pdu::Status(status) = tti[place] else { return false };
    if u32::from(status.octets) <= padding
        && let Some(Pdu::Data(data)) = tti.last_mut()
    {
        data.piggyback = Some(status);
        tti.remove(place);
        return true;
    }
    false
}
