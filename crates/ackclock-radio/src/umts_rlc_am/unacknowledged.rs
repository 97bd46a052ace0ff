//! Unacknowledged mode (TS 25.322 section 11.2): lost data is not retransmitted.

use ackclock_core::Time;

use super::pdu::{Data, Pdu};
use super::sdus::Sdus;
use super::segmentation::Shape;
use ackclock_link::DeliveryOrder;

/// Transmitter and receiver in unacknowledged mode, which keep no state of sent PDUs.
pub(crate) struct Unacknowledged {
    pub(super) shape: Shape,
    /// Total number of PDUs sent.
    pub(super) pdus: u64,
}

impl Unacknowledged {
    /// Fills a TTI of `room` PDUs, or octets if PDUs fill grants, that starts at `now`.
    pub(crate) fn fill_tti(&mut self, now: Time, room: usize, sdus: &mut Sdus, tti: &mut Vec<Pdu>) {
        sdus.begin_tti(now);
        let mut left = self.shape.left(room, tti);
        while left.units > 0 {
            let Some(filled) = sdus.fill(now, self.shape, left, u16::MAX) else { return };
            sdus.free(filled.payload);
            let data = Data { count: filled.count, payload: filled.payload, ..Data::default() };
            let pdu = Pdu::Data(data);
            left = left.after(self.shape, &pdu);
            tti.push(pdu);
            self.pdus += u64::from(filled.count);
        }
    }

    /// Processes a PDU that arrives or is lost.
    pub(crate) fn on_pdu(&self, now: Time, pdu: &Pdu, of_peer: &mut Sdus) {
        match pdu {
            Pdu::Lost(payload, cause) => {
                payload.sdus().for_each(|number| of_peer.lose(now, number, *cause));
            }
            // Segments of a packet may arrive out of order.
            Pdu::Data(data) if matches!(self.shape, Shape::Packet(_)) => {
                of_peer.arrive(now, data, DeliveryOrder::OutOfSequence);
            }
            Pdu::Data(data) => {
                data.payload.ended().for_each(|number| of_peer.deliver(now, number, Some(now)))
            }
            Pdu::Status(_) | Pdu::Reset(_) | Pdu::ResetAck(_) => {}
        }
    }

    /// Earliest time at which the transmitter has data to send.
    pub(crate) fn due(sdus: &Sdus) -> Time {
        if sdus.has_new() { Time::ZERO } else { Time::NEVER }
    }
}
