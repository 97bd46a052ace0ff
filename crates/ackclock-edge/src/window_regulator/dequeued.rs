//! How far a flow's data has left the queue: the accounts of the Window Regulators.
//!
//! CR04 counts `Y`, the packets that left the queue and whose ACK has not come back, and advertises `Y + B`. A count drifts:
//! a delayed ACK takes one for two, a packet lost on the air is never taken, one sent again for nothing is added and taken
//! at different times. The bytes of a flow are numbered, though. With `D` the highest number that left the queue,
//! `Y = D - ack` whatever happened in between, and `ack + Y + B` is `D + B`: the right edge needs no count of the air, so there
//! is nothing to drift and nothing to bring back into step.
//!
//! `D + B` is also the end of what came to the queue and the places that are free in it, and so it is computed: a packet that
//! waits to be sent again, or is smaller than others, takes a place too.

use ackclock_core::{Flags, Segment, Seq};
use ackclock_link::{Cause, LinkView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inside::Inside;

/// How the bytes that left the queue and are not acknowledged are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Count {
    /// By their sequence numbers.
    #[default]
    Exact,
    /// As the source prints it: one more for each packet that leaves the queue, one less for each ACK.
    Printed,
}

/// What an ACK from the mobile says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckKind {
    /// It acknowledges more than any before.
    Advance,
    /// It repeats the last one while data is outstanding, with the window that the receiver gave before (RFC 5681
    /// section 2).
    Duplicate,
    /// Something else: an older number, or another window.
    Other,
}

/// The accounts of one flow.
#[derive(Debug)]
pub(super) struct Dequeued {
    count: Count,
    /// The end of the data that came to the queue, refused or not.
    arrived: Option<Seq>,
    /// The end of the data that it took.
    queued: Option<Seq>,
    /// `D`: the end of the data that left the queue.
    left: Option<Seq>,
    /// The highest ACK that came from the mobile.
    acked: Option<Seq>,
    /// The window field that came with it.
    offered: u16,
    /// Packets of this flow in the queue and its transmitter.
    inside: Inside,
    /// The first byte of a packet that has come and that the queue has not answered for.
    arriving: Option<Seq>,
    /// `Y` of the source, packets.
    printed: u32,
    /// Largest payload seen, and its headers: a full packet.
    payload: u32,
    header: u32,
    /// Largest segment that the source's SYN speaks of.
    mss: u32,
    /// `B` in bytes of payload; `None` while it is not known, or not limited.
    buffer: Option<u32>,
    /// What the source may be told beyond it.
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
            arriving: None,
            printed: 0,
            payload: 0,
            header: 0,
            mss: 0,
            buffer: None,
            beyond: 0,
        }
    }

    /// A packet comes from the network, and may be refused.
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

    /// It is in the queue.
    pub(super) fn on_queued(&mut self, segment: &Segment) {
        if self.arriving.take().is_none() {
            return;
        }
        self.inside.add((segment.seq, segment.end()));
        self.queued = later(self.queued, segment.end());
    }

    /// It was refused, or lost in the queue or on the medium: all but the first leave the queue.
    pub(super) fn on_dropped(&mut self, segment: &Segment, cause: Cause, view: LinkView) {
        let refused = self.arriving.take().is_some_and(|first| first == segment.seq);
        if !refused || cause == Cause::Medium {
            self.on_left(segment, view);
        }
    }

    /// It left the queue.
    pub(super) fn on_left(&mut self, segment: &Segment, view: LinkView) {
        if !segment.has_data() {
            return;
        }
        self.inside.remove((segment.seq, segment.end()));
        self.printed = self.printed.saturating_add(1);
        self.left = later(self.left, segment.end());
        self.see(view);
    }

    /// Nothing is in the queue, of this flow or any other.
    pub(super) fn on_idle(&mut self) {
        self.inside.clear();
    }

    /// An ACK comes from the mobile.
    pub(super) fn on_ack(&mut self, ack: &Segment, view: LinkView) -> AckKind {
        self.see(view);
        self.printed = self.printed.saturating_sub(1);
        let offered = std::mem::replace(&mut self.offered, ack.window);
        if self.acked.is_none_or(|acked| ack.ack.after(acked)) {
            self.acked = Some(ack.ack);
            // What is acknowledged has left the queue, seen or not.
            self.left = later(self.left, ack.ack);
            return AckKind::Advance;
        }
        let repeats = self.acked == Some(ack.ack) && offered == ack.window && ack.is_pure_ack();
        let outstanding = self.arrived.is_some_and(|arrived| arrived.after(ack.ack));
        if repeats && outstanding { AckKind::Duplicate } else { AckKind::Other }
    }

    /// Whether the mobile has acknowledged all of a segment.
    pub(super) fn has_acknowledged(&self, segment: &Segment) -> bool {
        self.acked.is_some_and(|acked| segment.end().at_or_before(acked))
    }

    /// Whether the queue or its transmitter holds a packet with the same data.
    pub(super) fn holds(&self, segment: &Segment) -> bool {
        segment.has_data()
            && self.queued.is_some_and(|queued| segment.end().at_or_before(queued))
            && self.inside.contains((segment.seq, segment.end()))
    }

    /// Packets of this flow in the queue and its transmitter.
    pub(super) fn inside(&self) -> usize {
        self.inside.len()
    }

    /// Whether nothing of this flow is in the queue.
    pub(super) fn queue_is_empty(&self) -> bool {
        self.inside.len() == 0
    }

    /// Whether everything that left the queue is acknowledged.
    pub(super) fn air_is_empty(&self) -> bool {
        self.left == self.acked
    }

    /// `B` in bytes of payload; `None` where there is no limit or no packet to measure it by.
    pub(super) fn buffer(&self) -> Option<u32> {
        self.buffer
    }

    /// `B`, and what the source may be told beyond it.
    pub(super) fn allowance(&self) -> Option<u32> {
        Some((self.buffer? + self.beyond).min(LARGEST))
    }

    /// The source may be told so many bytes beyond `B`.
    pub(super) fn allow_beyond(&mut self, bytes: u32) {
        self.beyond = bytes;
    }

    /// Payload of a full packet, bytes; what the SYN speaks of until there is one.
    pub(super) fn payload(&self) -> u32 {
        if self.payload > 0 { self.payload } else { self.mss }
    }

    /// The window in bytes that `packets` take. None of them is smaller than what the source calls a full one: it would
    /// wait for room for that.
    pub(super) fn window_of(&self, packets: u32) -> u32 {
        packets.saturating_mul(self.payload.max(self.mss)).min(LARGEST)
    }

    /// How far the source may send, told by an ACK for `ack` with `held` more ACKs behind it: `D + B`, as what came and the
    /// places that are free. Counted as printed, `ack + (Y + B + Ba)` packets.
    pub(super) fn right_edge(&self, ack: Seq, held: u32) -> Option<Seq> {
        let buffer = self.allowance()?;
        match self.count {
            Count::Exact => self.edge_at(buffer),
            Count::Printed => Some(ack + buffer + self.bytes_of(self.printed.saturating_add(held))),
        }
    }

    /// How far the source may send under a static window, told by an ACK for `ack`: `B` bytes beyond it, less what is acknowledged
    /// and still in the buffer. That is what occupies the buffer beyond the outstanding data, at most what the link keeps.
    pub(super) fn static_edge(&self, ack: Seq, view: LinkView) -> Option<Seq> {
        let outstanding =
            self.arrived.map_or(0, |arrived| arrived.since(ack).div_ceil(self.payload().max(1)));
        let acknowledged = view.occupied.packets.saturating_sub(outstanding).min(view.kept());
        Some(ack + self.allowance()? + self.bytes_of(view.kept() - acknowledged))
    }

    /// `D` and `budget` bytes more, as what came and the places that are free in it; `None` before the first ACK.
    pub(super) fn edge_at(&self, budget: u32) -> Option<Seq> {
        Some(later(self.queued, self.acked?)? + budget - self.bytes_of(self.inside() as u32))
    }

    /// Bytes of payload of so many full packets.
    fn bytes_of(&self, packets: u32) -> u32 {
        packets.saturating_mul(self.payload()).min(LARGEST)
    }

    /// Takes in how much the buffer holds.
    pub(super) fn see(&mut self, view: LinkView) {
        let packets = view.places(self.payload() + self.header);
        let known = self.payload() > 0 && packets != u32::MAX;
        self.buffer = known.then(|| self.bytes_of(packets));
    }
}

fn later(one: Option<Seq>, other: Seq) -> Option<Seq> {
    Some(one.map_or(other, |one| one.max(other)))
}

/// RFC 9293 section 3.7.1: what a SYN without the option means.
const LEAST_MSS: u16 = 536;
/// No window is larger (RFC 7323 section 2.3).
const LARGEST: u32 = 1 << 30;
