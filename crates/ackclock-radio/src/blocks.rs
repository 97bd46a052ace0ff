//! A link that cuts packets into blocks of equal size and retransmits failed blocks.
//!
//! This file has the parts that are common to all links that send blocks: queue, segmentation, packets in flight and
//! events. The [`Transmitter`] of each link decides when blocks are sent, which blocks are lost and when they are
//! retransmitted.

use std::borrow::Cow;
use std::ops::Range;

use ackclock_core::{FlowId, Histogram, RadioReport, Rate, Segment, Time};
use ackclock_link::queue::{AnyQueue, Place, Queue};
use ackclock_link::reassembly::Reassembly;
use ackclock_link::{
    AnyLink, BufferMeaning, Cause, CellChange, Departures, Link, LinkEvent, LinkView, Load, Medium,
};

/// Sends the blocks of a [`BlockLink`].
pub(crate) trait Transmitter: Send {
    /// Time of the next start or end of a block, or of the next known outcome; [`Time::NEVER`] if nothing is pending.
    fn next_change(&self, packets: &Packets) -> Time;

    /// Processes one change of the transmitter that is due at `at`.
    fn change(&mut self, at: Time, packets: &mut Packets);

    /// Whether a block is in transmission.
    fn is_sending(&self) -> bool;

    /// Number of the first packet in the block that is in transmission, if the block is sent for the first time.
    fn first_sent(&self) -> Option<u64>;

    /// Handles a packet that arrives at `now` while no other new data is pending. Returns the time at which the next
    /// block starts, not before `now`.
    fn ready(&mut self, now: Time) -> Time;

    /// Transmission rate of blocks.
    fn rate(&self) -> Rate;

    /// Mean capacity until `until`; see [`Link::capacity_bps`]. All changes up to `until` must have been processed.
    fn capacity_bps(&self, until: Time) -> Option<f64>;

    /// Frees the memory of the stored blocks.
    fn let_go(&mut self);
}

/// Queued packets, the packet being segmented, and packets in flight.
pub(crate) struct Packets {
    queue: AnyQueue,
    /// Bytes of the newest packet that are not in a block yet.
    uncut: u32,
    /// Packets whose segmentation has started.
    pub(crate) begun: Reassembly,
    waits: Histogram,
}

impl Packets {
    /// Whether any data has not been sent yet.
    pub(crate) fn has_new(&self) -> bool {
        self.uncut > 0 || !self.queue.is_empty()
    }

    /// Cuts the next part of a packet: `room` bytes, or the rest of the packet if the rest is smaller. Returns the
    /// packet's number and the size of the part. Returns `None` if the queue has dropped all its packets.
    pub(crate) fn cut(&mut self, now: Time, room: u32) -> Option<(u64, u32)> {
        if self.uncut == 0 {
            let next = self.queue.dequeue(now);
            self.tell_drops(now);
            let (arrived, segment) = next?;
            self.waits.record(now.since(arrived));
            self.begin(&segment);
        }
        let part = self.uncut.min(room);
        self.uncut -= part;
        self.begun.cut(now, self.uncut);
        Some((self.begun.next_number() - 1, part))
    }

    /// Gives up a block with parts of the given packets: the packets are lost, and the unsegmented rest of the last
    /// packet is not sent.
    pub(crate) fn give_up(&mut self, at: Time, parts_of: Range<u64>) {
        let newest = self.begun.next_number() - 1;
        let ends = parts_of.end;
        parts_of.for_each(|number| self.begun.give_up(at, number));
        if ends > newest && std::mem::take(&mut self.uncut) > 0 {
            self.begun.give_up(at, newest);
        }
    }

    fn begin(&mut self, segment: &Segment) {
        self.uncut = segment.wire_bytes();
        self.begun.begin(segment);
    }

    fn tell_drops(&mut self, at: Time) {
        while let Some((segment, cause)) = self.queue.poll_dropped() {
            self.begun.outcomes.push(at, LinkEvent::Dropped(cause), segment);
        }
    }

    /// Load of the packets at these positions that are neither delivered nor lost and share a queue with `flow`.
    fn load(&self, flow: FlowId, places: Range<usize>) -> Load {
        let of_flow = self.begun.at(places).filter(|segment| self.queue.together(segment.flow, flow));
        of_flow.fold(Load::NONE, |sum, segment| sum + Load::of(segment))
    }
}

/// A link with a queue, a transmitter of blocks, and the reassembly of packets.
pub(crate) struct BlockLink<T> {
    transmitter: T,
    packets: Packets,
    meaning: BufferMeaning,
}

impl<T: Transmitter + 'static> BlockLink<T> {
    /// Creates an idle link that sends blocks.
    pub(crate) fn any(transmitter: T, begun: Reassembly, queue: AnyQueue, meaning: BufferMeaning) -> AnyLink {
        let packets = Packets { queue, uncut: 0, begun, waits: Histogram::default() };
        AnyLink::Other(Box::new(Self { transmitter, packets, meaning }))
    }

    /// Time of the next change of the transmitter or expiry in the queue.
    fn next_change(&self) -> Time {
        self.transmitter.next_change(&self.packets).min(self.packets.queue.expires())
    }

    /// Processes all changes up to `now`.
    fn advance(&mut self, now: Time) {
        loop {
            let at = self.next_change();
            if at > now || at == Time::NEVER {
                return;
            }
            if self.packets.queue.expires() == at {
                self.packets.queue.expire(at);
                self.packets.tell_drops(at);
            } else {
                self.transmitter.change(at, &mut self.packets);
            }
        }
    }

    /// Number of packets whose last byte has been sent.
    fn sent(&self) -> usize {
        let begun = &self.packets.begun;
        let whole = begun.unfinished() - usize::from(self.packets.uncut > 0);
        self.transmitter.first_sent().map_or(whole, |first| begun.place(first))
    }

    fn in_transmission(&self, flow: FlowId) -> Load {
        self.packets.load(flow, self.sent()..self.packets.begun.unfinished())
    }

    /// Load that counts against the capacity of `flow`'s queue but is not in that queue.
    fn unqueued(&self, flow: FlowId) -> Load {
        match self.meaning {
            BufferMeaning::WithTransmission => self.in_transmission(flow),
            BufferMeaning::Waiting => Load::NONE,
        }
    }

    fn put(&mut self, now: Time, segment: &Segment, place: Place) -> Result<(), Cause> {
        self.advance(now);
        let packets = &mut self.packets;
        if !self.transmitter.is_sending() && !packets.has_new() {
            packets.queue.pass(now, segment);
            packets.waits.record(self.transmitter.ready(now).since(now));
            packets.begin(segment);
            self.advance(now);
            return Ok(());
        }
        let unqueued = self.unqueued(segment.flow);
        let taken = self.packets.queue.put(now, segment, unqueued, place);
        self.packets.tell_drops(now);
        taken
    }
}

impl<T: Transmitter + 'static> Link for BlockLink<T> {
    fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        self.put(now, segment, Place::Back)
    }

    fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        self.put(now, segment, Place::Front)
    }

    fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)> {
        self.advance(now);
        self.packets.begun.next(now)
    }

    fn take_segment(&mut self) -> Segment {
        self.packets.begun.take()
    }

    fn poll_timeout(&self) -> Option<Time> {
        let due = self.packets.begun.outcomes.due().min(self.next_change());
        Some(due).filter(|&due| due != Time::NEVER)
    }

    fn want_departures(&mut self, departures: Departures) {
        self.packets.begun.departures = departures;
    }

    fn want_reports(&mut self) {}

    fn poll_report(&mut self, _: Time) -> Option<RadioReport> {
        None
    }

    fn view(&mut self, now: Time, flow: FlowId) -> LinkView {
        self.advance(now);
        let waiting = self.packets.queue.waiting(flow);
        LinkView {
            waiting,
            in_transmission: self.in_transmission(flow),
            unacknowledged: self.packets.load(flow, 0..self.sent()),
            occupied: waiting + self.unqueued(flow),
            capacity: self.packets.queue.capacity(flow),
            rate: self.transmitter.rate(),
        }
    }

    fn waiting(&mut self, now: Time) -> Load {
        self.advance(now);
        self.packets.queue.load()
    }

    fn waiting_of(&mut self, now: Time, _: u32) -> Load {
        self.waiting(now)
    }

    fn waits(&self) -> Cow<'_, Histogram> {
        Cow::Borrowed(&self.packets.waits)
    }

    fn capacity_bps(&mut self, until: Time) -> Option<f64> {
        self.advance(until);
        self.transmitter.capacity_bps(until)
    }

    // Has no effect: a block link is not a queue followed by a medium.
    fn replace_medium(&mut self, _: Time, _: Box<dyn Medium>) {}

    fn change_cell(&mut self, _: Time, _: CellChange) {}

    // The capacity is known without traffic.
    fn start_capacity(&mut self, _: Time) {}

    fn assign(&mut self, flow: FlowId, user: u32) {
        self.packets.queue.assign(flow, user);
    }

    fn forget(&mut self, flow: FlowId) {
        self.packets.queue.forget(flow);
    }

    fn let_go(&mut self) {
        self.packets.begun = Reassembly::default();
        self.transmitter.let_go();
    }
}
