//! State of a flow derived from passing segments: sequence numbers, packet sizes, and costs of ACKs.

use std::collections::VecDeque;

use ackclock_core::{Ecn, Segment, Seq};
use ackclock_link::LinkView;

use super::Cost;

/// Maximum number of remembered segment ends. Beyond the maximum number of segment ends, the cost of an ACK is
/// calculated with the size of a full segment.
const MOST_ENDS: usize = 4096;

/// Sequence numbers of a flow (figure 6), and the boundaries between its packets.
#[derive(Debug)]
pub(super) struct Accounts {
    rule: Cost,
    /// DataSeqNoLast: sequence number at the end of the data that entered the queue.
    queued: Option<Seq>,
    /// AckSeqNoLast: highest ACK number that arrived from the mobile.
    acked: Option<Seq>,
    /// AckSeqNoFirst: highest ACK number released to the sender.
    released: Option<Seq>,
    /// Sequence numbers at the ends of unacknowledged segments that entered the queue.
    ends: VecDeque<Seq>,
    /// Number of duplicate ACKs that paid for packets which no advancing ACK has covered yet. If several packets of a
    /// window were lost, several ACKs advance during the recovery. All ACKs that advance during a recovery share the
    /// payments made since the start of the recovery.
    paid: u32,
    /// Highest sequence number that duplicate ACKs can have paid for. Duplicate ACKs caused by retransmitted data pay
    /// for no packet beyond `paid_until`.
    paid_until: Option<Seq>,
    /// Number of duplicate ACKs released since `released` last advanced.
    released_duplicates: u32,
    /// Largest payload seen, bytes, which is assumed to be the payload of a full packet.
    payload: u32,
    /// Size of the headers of the packet with the largest payload, bytes.
    header: u32,
    /// Largest number of packets seen in transmission outside the queue. The maximum is stored, because an idle link
    /// has no packet in transmission.
    in_service: u32,
    ecn_capable: bool,
    /// Sequence number at the end of the marked window.
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

    /// Notes the packet sizes and ECN codepoint of a data packet that arrived at the edge.
    pub(super) fn on_arrival(&mut self, segment: &Segment, view: LinkView) {
        self.in_service = self.in_service.max(view.beside_buffer());
        if u32::from(segment.payload) >= self.payload {
            (self.payload, self.header) = (segment.payload.into(), segment.header.into());
        }
        self.ecn_capable |= segment.ecn != Ecn::NotEct;
    }

    /// Notes the end of a data packet that entered the queue.
    pub(super) fn on_queued(&mut self, segment: &Segment) {
        let end = segment.end();
        if self.queued.is_none_or(|queued| end.after(queued)) {
            self.queued = Some(end);
            if self.ends.len() < MOST_ENDS {
                self.ends.push_back(end);
            }
        }
    }

    /// Processes a pure ACK from the mobile. Returns the cost of the ACK, which is 0 for a duplicate.
    pub(super) fn on_ack(&mut self, ack: &Segment) -> u32 {
        if self.acked.is_some_and(|acked| !ack.ack.after(acked)) {
            if self.acked == Some(ack.ack) {
                self.paid += 1;
                self.paid_until = self.queued;
            }
            return 0;
        }
        // The ACKs released before the regulator saw this flow are unknown, so the first ACK counts as released.
        self.released.get_or_insert(ack.ack);
        let unpaid = self.advance(ack.ack);
        match self.rule {
            Cost::Covered => unpaid,
            Cost::One => 1,
        }
    }

    /// Notes an ACK released to the sender. Returns the number of consecutive duplicate ACKs released so far.
    pub(super) fn on_released(&mut self, ack: &Segment) -> u32 {
        if self.released.is_none_or(|released| ack.ack.after(released)) {
            self.released = Some(ack.ack);
            self.released_duplicates = 0;
        } else {
            self.released_duplicates += 1;
        }
        self.released_duplicates
    }

    /// Notes an ACK that passed without being held.
    pub(super) fn on_passed(&mut self, ack: Seq) {
        if self.acked.is_none_or(|acked| ack.after(acked)) {
            self.advance(ack);
        }
        if self.released.is_none_or(|released| ack.after(released)) {
            self.released = Some(ack);
            self.released_duplicates = 0;
        }
    }

    /// Approximate window of the sender, bytes: DataSeqNoLast - AckSeqNoFirst.
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

    /// Size of a full packet including headers, bytes.
    pub(super) fn packet_bytes(&self) -> u32 {
        self.payload + self.header
    }

    /// Number of packets that the link holds in transmission outside its queue, as seen so far: 0 or 1.
    pub(super) fn in_service(&self) -> u32 {
        self.in_service
    }

    pub(super) fn ecn_capable(&self) -> bool {
        self.ecn_capable
    }

    /// Records the end of the data now in flight as the end of the ECN-marked window.
    pub(super) fn mark_window(&mut self) {
        self.marked = self.queued;
    }

    pub(super) fn marked_window_passed(&self) -> bool {
        match (self.marked, self.released) {
            (Some(marked), Some(released)) => !released.before(marked),
            _ => true,
        }
    }

    /// Advances the highest ACK number, AckSeqNoLast, to `ack`. Returns the number of covered packets that no duplicate
    /// ACK paid for, at least one.
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

    /// Forgets the packets before `ack` and returns their number.
    fn cover(&mut self, ack: Seq) -> u32 {
        let covered = self.ends.iter().take_while(|end| !end.after(ack)).count();
        self.ends.drain(..covered);
        covered as u32
    }
}
