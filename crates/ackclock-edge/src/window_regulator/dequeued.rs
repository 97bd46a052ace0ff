//! Tracks for the Window Regulators how much of a flow's data has left the queue.
//!
//! CR04 counts `Y`, the packets that left the queue and whose ACK has not returned, and advertises `Y + B`. The count
//! `Y` drifts for several reasons. A delayed ACK covers two packets, a packet lost on the radio is never subtracted,
//! and a spurious retransmission is added and subtracted at different times. Sequence numbers do not drift. If `D` is
//! the highest sequence number that left the queue, then `Y = D - ack`, and `ack + Y + B` is `D + B`. The right edge
//! needs no count of packets in the air.
//!
//! `D + B` is computed as the end of the data that entered the queue plus the free packet slots of the queue. Small or
//! retransmitted packets in the queue also take one slot each.

use ackclock_core::{Flags, Segment, Seq};
use ackclock_link::{Cause, LinkView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inside::Inside;

/// Method of counting the unacknowledged bytes that left the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Count {
    /// Bytes that left the queue are counted by sequence numbers.
    #[default]
    Exact,
    /// Packets that left the queue are counted as printed in the source: plus one for each departure from the queue,
    /// minus one for each ACK.
    Printed,
}

/// Kind of an ACK from the mobile, compared with the ACKs before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckKind {
    /// The ACK acknowledges more data than any ACK before it.
    Advance,
    /// The ACK repeats the last ACK while data is in flight, with an equal window from the receiver (RFC 5681 section
    /// 2).
    Duplicate,
    /// The ACK is neither an advance nor a duplicate: it has a lower ACK number, or a different window.
    Other,
}

impl AckKind {
    /// Determines the kind of an ACK. The last ACK had number `acked` and window field `offered`, and data up to
    /// `arrived` has arrived.
    pub(super) fn of(ack: &Segment, acked: Option<Seq>, offered: u16, arrived: Option<Seq>) -> Self {
        if acked.is_none_or(|acked| ack.ack.after(acked)) {
            return Self::Advance;
        }
        let repeats = acked == Some(ack.ack) && offered == ack.window && ack.is_pure_ack();
        let outstanding = arrived.is_some_and(|arrived| arrived.after(ack.ack));
        if repeats && outstanding { Self::Duplicate } else { Self::Other }
    }
}

/// Sequence numbers and packet counts of one flow before, in and after the queue.
#[derive(Debug)]
pub(super) struct Dequeued {
    count: Count,
    /// Sequence number at the end of the data that arrived at the queue, including refused data.
    arrived: Option<Seq>,
    /// Sequence number at the end of the data that entered the queue.
    queued: Option<Seq>,
    /// `D`: sequence number at the end of the data that left the queue.
    left: Option<Seq>,
    /// Highest ACK number from the mobile.
    acked: Option<Seq>,
    /// Window field of the last ACK from the mobile.
    offered: u16,
    /// Packets of this flow in the queue and in transmission.
    inside: Inside,
    /// Whether departures from the queue are estimates: their packets may be cut otherwise than those that arrived.
    observed: bool,
    /// Sequence number of a packet that has arrived and is neither queued nor refused yet.
    arriving: Option<Seq>,
    /// Count `Y` of the source, packets.
    printed: u32,
    /// Largest payload seen, bytes, which is assumed to be the payload of a full packet.
    payload: u32,
    /// Size of the headers of the packet with the largest payload, bytes.
    header: u32,
    /// Maximum segment size (MSS) from the sender's SYN, bytes.
    mss: u32,
    /// Buffer `B` in bytes of payload; `None` if the buffer is unknown or unlimited.
    buffer: Option<u32>,
    /// Number of bytes by which the window may exceed the buffer.
    beyond: u32,
}

impl Dequeued {
    pub(super) fn new(count: Count) -> Self {
        Self {
            count,
            arrived: None,
            queued: None,
            left: None,
            acked: None,
            offered: 0,
            inside: Inside::default(),
            observed: false,
            arriving: None,
            printed: 0,
            payload: 0,
            header: 0,
            mss: 0,
            buffer: None,
            beyond: 0,
        }
    }

    /// Notes a packet that arrives from the network. The queue may still refuse the arriving packet.
    pub(super) fn on_data(&mut self, segment: &Segment, view: LinkView) {
        if !segment.has_data() {
            return;
        }
        if segment.flags.intersects(Flags::SYN) {
            *self = Self::new(self.count);
            let mss = segment.syn_options().and_then(|options| options.mss);
            self.mss = mss.unwrap_or(LEAST_MSS).into();
        } else if u32::from(segment.payload) > self.payload {
            (self.payload, self.header) = (segment.payload.into(), segment.header.into());
        }
        self.arriving = Some(segment.seq);
        self.arrived = later(self.arrived, segment.end());
        self.see(view);
    }

    /// Notes a packet that entered the queue.
    pub(super) fn on_queued(&mut self, segment: &Segment) {
        if self.arriving.take().is_none() {
            return;
        }
        self.inside.add((segment.seq, segment.end()));
        self.queued = later(self.queued, segment.end());
    }

    /// Notes a packet that was refused, or lost in the queue or on the medium. A packet that was not refused leaves the
    /// queue.
    pub(super) fn on_dropped(&mut self, segment: &Segment, cause: Cause, view: LinkView) {
        let refused = self.arriving.take().is_some_and(|first| first == segment.seq);
        if !refused || cause == Cause::Medium {
            self.on_left(segment, view);
        }
    }

    /// Notes a packet that left the queue.
    pub(super) fn on_left(&mut self, segment: &Segment, view: LinkView) {
        if !segment.has_data() {
            return;
        }
        self.inside.remove((segment.seq, segment.end()));
        self.printed = self.printed.saturating_add(1);
        self.left = later(self.left, segment.end());
        self.see(view);
    }

    /// Called if the queue is only observed.
    pub(super) const fn on_observation(&mut self) {
        self.observed = true;
    }

    /// Called when the queue contains no packet of any flow.
    pub(super) fn on_idle(&mut self) {
        self.inside.clear();
    }

    /// Processes an ACK from the mobile and returns the kind of the ACK.
    pub(super) fn on_ack(&mut self, ack: &Segment, view: LinkView) -> AckKind {
        self.see(view);
        self.printed = self.printed.saturating_sub(1);
        let offered = std::mem::replace(&mut self.offered, ack.window);
        let kind = AckKind::of(ack, self.acked, offered, self.arrived);
        if kind == AckKind::Advance {
            self.acked = Some(ack.ack);
            // Acknowledged data has left the queue, even if no departure was seen.
            self.left = later(self.left, ack.ack);
            if self.observed {
                self.inside.remove_until(ack.ack);
            }
        }
        kind
    }

    /// Returns whether the mobile has acknowledged the entire segment.
    pub(super) fn has_acknowledged(&self, segment: &Segment) -> bool {
        self.acked.is_some_and(|acked| segment.end().at_or_before(acked))
    }

    /// Returns whether a packet with the same data as the segment is in the queue or in transmission.
    pub(super) fn holds(&self, segment: &Segment) -> bool {
        segment.has_data()
            && self.queued.is_some_and(|queued| segment.end().at_or_before(queued))
            && self.inside.contains((segment.seq, segment.end()))
    }

    /// Number of packets of this flow in the queue and in transmission.
    pub(super) fn inside(&self) -> usize {
        self.inside.len()
    }

    /// Returns whether no packet of this flow is in the queue or in transmission.
    pub(super) fn queue_is_empty(&self) -> bool {
        self.inside.len() == 0
    }

    /// Returns whether all data that arrived is acknowledged.
    pub(super) fn is_all_acknowledged(&self) -> bool {
        self.arrived.zip(self.acked).is_some_and(|(arrived, acked)| arrived.at_or_before(acked))
    }

    /// Returns whether all data that left the queue is acknowledged.
    pub(super) fn air_is_empty(&self) -> bool {
        self.left == self.acked
    }

    /// Buffer `B` in bytes of payload. Returns `None` if the buffer is unlimited, or before the first packet determines
    /// the packet size.
    pub(super) fn buffer(&self) -> Option<u32> {
        self.buffer
    }

    /// Buffer `B` plus the bytes allowed beyond the buffer.
    pub(super) fn allowance(&self) -> Option<u32> {
        Some((self.buffer? + self.beyond).min(LARGEST))
    }

    /// Allows this many bytes beyond the buffer `B`.
    pub(super) fn allow_beyond(&mut self, bytes: u32) {
        self.beyond = bytes;
    }

    /// Payload of a full packet, bytes. Before the first packet, the payload is assumed to be the MSS of the SYN.
    pub(super) fn payload(&self) -> u32 {
        if self.payload > 0 { self.payload } else { self.mss }
    }

    /// Window in bytes for `packets` full packets. A full packet is at least the MSS, because the sender waits for a
    /// window of one MSS.
    pub(super) fn window_of(&self, packets: u32) -> u32 {
        packets.saturating_mul(self.payload.max(self.mss)).min(LARGEST)
    }

    /// Right edge for an ACK with number `ack`, with `held` further ACKs held after it. The right edge is `D + B`,
    /// computed from the queued data and the free slots. With the printed count `Y`, the right edge is `ack + (Y + B +
    /// Ba)` packets.
    pub(super) fn right_edge(&self, ack: Seq, held: u32) -> Option<Seq> {
        let buffer = self.allowance()?;
        match self.count {
            Count::Exact => self.edge_at(buffer),
            Count::Printed => Some(ack + buffer + self.bytes_of(self.printed.saturating_add(held))),
        }
    }

    /// Right edge under a static window for an ACK with number `ack`. The right edge is `ack` plus the capacity of the
    /// buffer, minus the acknowledged packets that still occupy the buffer.
    pub(super) fn static_edge(&self, ack: Seq, view: LinkView) -> Option<Seq> {
        let outstanding =
            self.arrived.map_or(0, |arrived| arrived.since(ack).div_ceil(self.payload().max(1)));
        let acknowledged = view.occupied.packets.saturating_sub(outstanding).min(view.kept());
        Some(ack + self.allowance()? + self.bytes_of(view.kept() - acknowledged))
    }

    /// Right edge `D` plus `budget` bytes, computed from the queued data and the free slots. Returns `None` before the
    /// first ACK.
    pub(super) fn edge_at(&self, budget: u32) -> Option<Seq> {
        Some(later(self.queued, self.acked?)? + budget - self.waiting())
    }

    /// Part of a budget that the packets in the queue use, bytes.
    pub(super) fn waiting(&self) -> u32 {
        self.bytes_of(self.inside() as u32)
    }

    /// Payload of this many full packets, bytes.
    fn bytes_of(&self, packets: u32) -> u32 {
        packets.saturating_mul(self.payload()).min(LARGEST)
    }

    /// Updates the buffer size from the view of the link.
    pub(super) fn see(&mut self, view: LinkView) {
        let packets = view.places(self.payload() + self.header);
        let known = self.payload() > 0 && packets != u32::MAX;
        self.buffer = known.then(|| self.bytes_of(packets));
    }
}

fn later(one: Option<Seq>, other: Seq) -> Option<Seq> {
    Some(one.map_or(other, |one| one.max(other)))
}

/// MSS in bytes of a SYN without MSS option (RFC 9293 section 3.7.1).
const LEAST_MSS: u16 = 536;
/// Largest window in bytes (RFC 7323 section 2.3).
const LARGEST: u32 = 1 << 30;
