//! Retransmission requests from an agent at the edge (Snoop's uplink NACKs). The sender retransmits at once, without a
//! congestion response.

use std::collections::VecDeque;

use ackclock_core::{Segment, Time};

use super::{Due, TcpSender};
use crate::cc::RenewControl;
use crate::recovery::Recovery;
use crate::scoreboard::{Latest, Scoreboard};
use crate::sent::{Index, Marks};

/// Requested segments not yet retransmitted. Without requests, the queue takes no space.
#[derive(Debug, Default)]
#[allow(clippy::box_collection, reason = "a pointer is a quarter of a queue")]
pub(super) struct Requests(Option<Box<VecDeque<Index>>>);

/// Whether an acknowledgement is a retransmission request. The first SACK block of a request starts at the ACK number,
/// which never happens in a receiver's ACK.
fn is_request(ack: &Segment) -> bool {
    ack.is_pure_ack()
        && ack.sack().first().is_some_and(|block| block.left == ack.ack && !block.right.before(block.left))
}

impl Requests {
    /// Queues the segments missing between the SACK blocks of a request, if they were sent before a segment that has
    /// arrived.
    fn take(&mut self, request: &Segment, board: &Scoreboard) {
        let sent = board.sent();
        let blocks = request.sack();
        let newest = blocks[1..].iter().filter_map(|block| {
            let end = sent.at_or_after(block.right);
            (end > sent.first()).then(|| Latest::of(sent.get(end - 1)))
        });
        let Some(newest) = newest.reduce(|one, other| Latest::later_of(Some(one), other)) else { return };
        let requested = self.0.get_or_insert_default();
        for (before, behind) in blocks.iter().zip(&blocks[1..]) {
            for index in sent.at_or_after(before.right)..sent.at_or_after(behind.left) {
                let record = sent.get(index);
                let came =
                    record.marks.has(Marks::SACKED) || !newest.was_sent_after(record.sent_at, record.end());
                if !came && !requested.contains(&index) {
                    requested.push_back(index);
                }
            }
        }
    }

    /// Next queued segment that is still in flight; removes it from the queue.
    pub(super) fn next(&mut self, board: &Scoreboard) -> Option<Index> {
        let (sent, requested) = (board.sent(), self.0.as_mut()?);
        loop {
            let index = requested.pop_front()?;
            if index >= sent.first() && !sent.get(index).marks.has(Marks::SACKED) {
                return Some(index);
            }
        }
    }
}

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Processes a retransmission request. Returns whether the acknowledgement is a request.
    #[cold]
    pub(super) fn takes_request(&mut self, ack: &Segment) -> bool {
        if !is_request(ack) {
            return false;
        }
        self.past.requests.take(ack, &self.board);
        self.due = Due::Repair;
        true
    }

    /// Retransmits the next requested segment.
    #[cold]
    pub(super) fn send_requested(&mut self, now: Time) -> Option<Segment> {
        let index = self.past.requests.next(&self.board)?;
        self.due = Due::Repair;
        Some(self.send_again(now, index))
    }
}
