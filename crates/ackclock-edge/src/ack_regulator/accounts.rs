//! What the regulator knows of its flow from the segments that pass: sequence numbers, packet sizes, costs.

use std::collections::VecDeque;

use ackclock_core::{Ecn, Segment, Seq};
use ackclock_link::LinkView;

use super::Cost;

/// Most segment ends that are remembered; beyond it ACKs are costed by the size of a full segment.
const MOST_ENDS: usize = 4096;

/// The four sequence numbers of figure 6 that matter, and the boundaries between packets.
#[derive(Debug)]
pub(super) struct Accounts {
    rule: Cost,
    /// DataSeqNoLast: the end of the data that entered the queue.
    queued: Option<Seq>,
    /// AckSeqNoLast: the highest ACK that came from the mobile.
    acked: Option<Seq>,
    /// AckSeqNoFirst: the highest ACK that went to the sender.
    released: Option<Seq>,
    /// Ends of the segments that entered the queue and are not acknowledged.
    ends: VecDeque<Seq>,
    /// Duplicates that paid for packets which no advance has covered yet. Where several packets of a window were lost,
    /// the advances that end the recovery share what the duplicates at its beginning have paid.
    paid: u32,
    /// Where what they can have paid for ends: duplicates of data that was sent again pay for nothing behind it.
    paid_until: Option<Seq>,
    /// Duplicates released since `released` last advanced.
    released_duplicates: u32,
    /// Largest payload and its headers seen: a full packet.
    payload: u32,
    header: u32,
    /// Most packets seen in transmission beside the queue; remembered because an idle link shows none.
    in_service: u32,
    ecn_capable: bool,
    /// Where the window that was marked ends.
    marked: Option<Seq>,
}

impl Accounts {
    pub(super) fn new(rule: Cost) -> Self {
        Self {
            rule,
            queued: None,
            acked: None,
            released: None,
            ends: VecDeque::new(),
            paid: 0,
            paid_until: None,
            released_duplicates: 0,
            payload: 0,
            header: 0,
            in_service: 0,
            ecn_capable: false,
            marked: None,
        }
    }

    /// A data packet arrives at the edge.
    pub(super) fn on_arrival(&mut self, segment: &Segment, view: LinkView) {
        self.in_service = self.in_service.max(view.beside_buffer());
        if u32::from(segment.payload) >= self.payload {
            (self.payload, self.header) = (segment.payload.into(), segment.header.into());
        }
        self.ecn_capable |= segment.ecn != Ecn::NotEct;
    }

    /// It entered the queue.
    pub(super) fn on_queued(&mut self, segment: &Segment) {
        let end = segment.end();
        if self.queued.is_none_or(|queued| end.after(queued)) {
            self.queued = Some(end);
            if self.ends.len() < MOST_ENDS {
                self.ends.push_back(end);
            }
        }
    }

    /// A pure ACK comes from the mobile. Gives what it costs: 0 for one that does not advance.
    pub(super) fn on_ack(&mut self, ack: &Segment) -> u32 {
        if self.acked.is_some_and(|acked| !ack.ack.after(acked)) {
            if self.acked == Some(ack.ack) {
                self.paid += 1;
                self.paid_until = self.queued;
            }
            return 0;
        }
        // What was released before the flow was met is not known; the first ACK stands for it.
        self.released.get_or_insert(ack.ack);
        let unpaid = self.advance(ack.ack);
        match self.rule {
            Cost::Covered => unpaid,
            Cost::One => 1,
        }
    }

    /// An ACK goes to the sender. Gives how many duplicates in a row this one makes.
    pub(super) fn on_released(&mut self, ack: &Segment) -> u32 {
        if self.released.is_none_or(|released| ack.ack.after(released)) {
            self.released = Some(ack.ack);
            self.released_duplicates = 0;
        } else {
            self.released_duplicates += 1;
        }
        self.released_duplicates
    }

    /// An ACK passed without being held.
    pub(super) fn on_passed(&mut self, ack: Seq) {
        if self.acked.is_none_or(|acked| ack.after(acked)) {
            self.advance(ack);
        }
        if self.released.is_none_or(|released| ack.after(released)) {
            self.released = Some(ack);
            self.released_duplicates = 0;
        }
    }

    /// DataSeqNoLast - AckSeqNoFirst in bytes: the sender's window, nearly.
    pub(super) fn window(&self) -> u32 {
        match (self.queued, self.released) {
            (Some(queued), Some(released)) => queued.since(released),
            _ => 0,
        }
    }

    /// Payload of a full packet, bytes.
    pub(super) fn payload(&self) -> u32 {
        self.payload
    }

    /// A full packet on the wire, bytes.
    pub(super) fn packet_bytes(&self) -> u32 {
        self.payload + self.header
    }

    /// Packets that the link holds in transmission beside its queue, as seen so far: 0 or 1.
    pub(super) fn in_service(&self) -> u32 {
        self.in_service
    }

    pub(super) fn ecn_capable(&self) -> bool {
        self.ecn_capable
    }

    /// The window in flight now is the one that a mark stands for.
    pub(super) fn mark_window(&mut self) {
        self.marked = self.queued;
    }

    pub(super) fn marked_window_passed(&self) -> bool {
        match (self.marked, self.released) {
            (Some(marked), Some(released)) => !released.before(marked),
            _ => true,
        }
    }

    /// AckSeqNoLast moves to `ack`. Gives the packets covered that no duplicate paid for, at least one.
    fn advance(&mut self, ack: Seq) -> u32 {
        self.acked = Some(ack);
        let covered = self.cover(ack).max(1);
        let paid = self.paid.min(covered - 1);
        self.paid -= paid;
        if self.paid_until.is_none_or(|end| !ack.before(end)) {
            self.paid = 0;
        }
        covered - paid
    }

    /// Forgets the packets before `ack` and says how many they were.
    fn cover(&mut self, ack: Seq) -> u32 {
        let covered = self.ends.iter().take_while(|end| !end.after(ack)).count();
        self.ends.drain(..covered);
        covered as u32
    }
}
