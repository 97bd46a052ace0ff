//! # UMTS RLC, simple
//!
//! ## Source
//! L02 appendix B: the downlink of a UMTS dedicated channel in acknowledged mode; `links.md` section 6.
//!
//! ## What it does
//! Packets are cut into blocks of rate x TTI / `pdus`, in whole bytes, which take their time at that rate. The last block of a packet takes the start of
//! the next one, where that waits when the block begins; else it is padded. At the end of a block its error is drawn. A
//! block that failed is sent again, before all new ones, from `repetition_delay` after its end. A packet is complete when every
//! block with a part of it has arrived; it is handed on at once, or behind all packets before it, and then travels for `delay`.
//!
//! TTIs begin at multiples of their length. By default no block waits for one. Each of three things can be made to wait for the next
//! edge: what a block carried, before the receiver has it (`delivery`); the report of a failure, so that those of a TTI travel in one
//! status and are repeated together (`status`); a block that may be sent again (`repetition`).
//!
//! In an outage, as at a hand-over, no block begins; what is under way arrives.
//!
//! A block fails for good where it was sent `limit` times more; the packets that it has parts of are lost. A packet departs when it
//! is handed on. Errors come from the stream `NAME/bler`.
//!
//! ## Differences from the source
//! The source gives the start of a packet to the tail of the block before as long as that was not sent; here a block is filled
//! when it begins, which is the same. Blocks begin when the transmitter is free, at no edges of TTIs, as in the source; that
//! something waits for an edge is no part of it, but of the networks that it simplifies.
//!
//! ## Validation
//! Timelines of blocks by hand, and the mean number of transmissions (unit tests); the laws of links; L02's tables in
//! `papers/l02`.

mod config;

pub use config::UmtsRlcConfig;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use ackclock_core::{FlowId, Histogram, RadioReport, Segment, Span, Time};

use crate::errors::{AnyErrorProcess, ErrorProcess};
use crate::outage::Outages;
use crate::queue::{AnyQueue, Queue};
use crate::reassembly::Reassembly;
use crate::{BufferMeaning, Cause, Departures, Fate, Link, LinkEvent, LinkView, Load, Medium, Repetitions};

/// A queue, a transmitter of blocks, and what it takes to put packets together again.
struct UmtsRlc {
    config: UmtsRlcConfig,
    outages: Outages,
    /// Expected share of blocks that arrive.
    good: f64,
    /// Size of a block, bytes, and the time that it takes.
    bytes: u32,
    takes: Span,
    errors: AnyErrorProcess,
    queue: AnyQueue,
    meaning: BufferMeaning,
    /// The block in transmission and its end.
    sending: Option<(Time, Block)>,
    /// Blocks that failed, by the instant from which they may be sent again.
    failed: VecDeque<(Time, Block)>,
    /// Blocks that will not be sent again, by the instant from which the receiver knows their fate.
    done: VecDeque<(Time, Block, Fate)>,
    /// Bytes of the newest packet that are in no block yet.
    uncut: u32,
    /// The transmitter can begin a block from here on.
    free: Time,
    packets: Reassembly,
    waits: Histogram,
    /// Blocks that arrived, and the time in which blocks were sent.
    arrived: u64,
    busy: Span,
}

/// A block has parts of these packets.
#[derive(Clone, Copy, Debug)]
struct Block {
    from: u64,
    to: u64,
    repetitions: u32,
}

impl UmtsRlc {
    fn new(
        config: UmtsRlcConfig,
        outages: Outages,
        good: f64,
        errors: AnyErrorProcess,
        queue: AnyQueue,
        meaning: BufferMeaning,
    ) -> Self {
        let takes = config.rate.time_for(config.block_bytes().into());
        Self {
            bytes: config.block_bytes(),
            takes,
            packets: Reassembly::new(config.order, takes, config.delay),
            config,
            outages,
            good,
            errors,
            queue,
            meaning,
            sending: None,
            failed: VecDeque::new(),
            done: VecDeque::new(),
            uncut: 0,
            free: Time::ZERO,
            waits: Histogram::default(),
            arrived: 0,
            busy: Span::ZERO,
        }
    }

    /// Whether there is something that was never sent.
    fn has_new(&self) -> bool {
        self.uncut > 0 || !self.queue.is_empty()
    }

    /// When a block next begins or ends, or its fate is known.
    fn next_change(&self) -> Time {
        let known = self.done.front().map_or(Time::NEVER, |&(known, ..)| known);
        known.min(self.next_block())
    }

    /// When a block next begins or ends.
    fn next_block(&self) -> Time {
        match (&self.sending, self.failed.front()) {
            (Some((ends, _)), _) => *ends,
            (None, _) if self.has_new() => self.outages.on_from(self.free),
            (None, Some(&(ready, _))) => self.outages.on_from(ready.max(self.free)),
            (None, None) => Time::NEVER,
        }
    }

    /// Does all that happens up to `now`.
    fn advance(&mut self, now: Time) {
        loop {
            let at = self.next_change();
            if at > now || at == Time::NEVER {
                return;
            }
            if let Some((_, block, fate)) = self.done.pop_front_if(|&mut (known, ..)| known <= at) {
                self.know(at, block, fate);
            } else if let Some((ends, block)) = self.sending.take() {
                self.end(ends, block);
            } else {
                self.begin(at);
            }
        }
    }

    fn begin(&mut self, now: Time) {
        let again = self.failed.pop_front_if(|&mut (ready, _)| ready <= now);
        let block = again.map(|(_, block)| block).or_else(|| self.fill(now));
        if let Some(block) = block {
            self.busy += self.takes;
            self.free = now + self.takes;
            self.sending = Some((self.free, block));
        }
    }

    /// Cuts a new block; none where the queue has dropped all that waited.
    fn fill(&mut self, now: Time) -> Option<Block> {
        let mut room = self.bytes;
        let mut from = None;
        while room > 0 {
            if self.uncut == 0 && !self.take(now) {
                break;
            }
            let part = self.uncut.min(room);
            self.uncut -= part;
            room -= part;
            self.packets.cut(now, self.uncut);
            from.get_or_insert(self.packets.next_number() - 1);
        }
        self.tell_drops(now);
        let to = self.packets.next_number();
        from.map(|from| Block { from, to, repetitions: 0 })
    }

    /// Takes the next packet from the queue.
    fn take(&mut self, now: Time) -> bool {
        let Some((arrived, segment)) = self.queue.dequeue(now) else { return false };
        self.waits.record(now.since(arrived));
        self.start(&segment);
        true
    }

    fn start(&mut self, segment: &Segment) {
        self.uncut = segment.wire_bytes();
        self.packets.begin(segment);
    }

    /// The last bit of a block was sent at `at`.
    fn end(&mut self, at: Time, mut block: Block) {
        let UmtsRlcConfig { tti, delivery, status, repetition, .. } = self.config;
        let fate = self.errors.fate(at);
        if fate == Fate::Arrives {
            self.arrived += 1;
        } else if self.config.limit.is_none_or(|limit| block.repetitions < limit) {
            block.repetitions += 1;
            let ready = status.from(at, tti) + self.config.repetition_delay;
            return self.failed.push_back((repetition.from(ready, tti), block));
        }
        self.done.push_back((delivery.from(at, tti), block, fate));
    }

    /// The receiver knows what became of a block that will not be sent again. One that was given up takes with it every packet of
    /// which it has a part.
    fn know(&mut self, at: Time, block: Block, fate: Fate) {
        if fate == Fate::Arrives {
            let arrive = |number| self.packets.arrive(at, number, block.repetitions);
            return (block.from..block.to).for_each(arrive);
        }
        let newest = self.packets.next_number() - 1;
        (block.from..block.to).for_each(|number| self.packets.give_up(at, number));
        if block.to > newest && std::mem::take(&mut self.uncut) > 0 {
            self.packets.give_up(at, newest);
        }
    }

    fn tell_drops(&mut self, at: Time) {
        while let Some((segment, cause)) = self.queue.poll_dropped() {
            self.packets.outcomes.push(at, LinkEvent::Dropped(cause), segment);
        }
    }

    /// How many packets have sent their last byte.
    fn sent(&self) -> usize {
        match &self.sending {
            Some((_, block)) if block.repetitions == 0 => self.packets.place(block.from),
            _ => self.packets.len() - usize::from(self.uncut > 0),
        }
    }

    /// The packets at these places that were not handed on or lost, together with `flow` in its part of the queue.
    fn load(&self, flow: FlowId, places: Range<usize>) -> Load {
        let of_flow = self.packets.at(places).filter(|segment| self.queue.together(segment.flow, flow));
        of_flow.fold(Load::NONE, |sum, segment| sum + Load::of(segment))
    }

    fn in_transmission(&self, flow: FlowId) -> Load {
        self.load(flow, self.sent()..self.packets.len())
    }

    fn put(
        &mut self,
        now: Time,
        segment: &Segment,
        enqueue: impl FnOnce(&mut AnyQueue, Load) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        self.advance(now);
        if self.sending.is_none() && !self.has_new() {
            self.queue.pass(now, segment);
            self.waits.record(Span::ZERO);
            self.start(segment);
            self.free = self.free.max(now);
            self.advance(now);
            return Ok(());
        }
        let unqueued = match self.meaning {
            BufferMeaning::WithTransmission => self.in_transmission(segment.flow),
            BufferMeaning::Waiting => Load::NONE,
        };
        let taken = enqueue(&mut self.queue, unqueued);
        self.tell_drops(now);
        taken
    }
}

impl Link for UmtsRlc {
    fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        self.put(now, segment, |queue, unqueued| queue.enqueue(now, segment, unqueued))
    }

    fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        self.put(now, segment, |queue, unqueued| queue.enqueue_front(now, segment, unqueued))
    }

    fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)> {
        self.advance(now);
        self.packets.outcomes.next(now)
    }

    fn take_segment(&mut self) -> Segment {
        self.packets.take()
    }

    fn repetitions(&self) -> Repetitions {
        self.packets.repetitions()
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.packets.outcomes.due().min(self.next_change())).filter(|&due| due != Time::NEVER)
    }

    fn want_departures(&mut self, departures: Departures) {
        self.packets.departures = departures;
    }

    fn want_reports(&mut self) {}

    fn poll_report(&mut self, _: Time) -> Option<RadioReport> {
        None
    }

    fn view(&self, _: Time, flow: FlowId) -> LinkView {
        LinkView {
            waiting: self.queue.waiting(flow),
            in_transmission: self.in_transmission(flow),
            unacknowledged: self.load(flow, 0..self.sent()),
            capacity: self.queue.capacity(flow),
            rate: self.config.rate,
        }
    }

    fn waiting(&mut self, now: Time) -> Load {
        self.advance(now);
        self.queue.load()
    }

    fn waits(&self) -> Cow<'_, Histogram> {
        Cow::Borrowed(&self.waits)
    }

    /// What arrived in blocks, and in the time that no block was sent in what would have in the mean; in outages nothing.
    fn capacity_bps(&mut self, until: Time) -> Option<f64> {
        self.advance(until);
        let all = until.since(Time::ZERO);
        let (on, busy) = (self.outages.on_until(all).as_secs_f64(), self.busy.as_secs_f64());
        let (all, block) = (all.as_secs_f64(), f64::from(self.bytes) * 8.0);
        let idle = (on - busy).max(0.0) / self.takes.as_secs_f64() * block * self.good;
        (all > 0.0).then(|| (self.arrived as f64 * block + idle) / all)
    }

    // It is no queue in front of a medium.
    fn replace_medium(&mut self, _: Time, _: Box<dyn Medium>) {}

    fn assign(&mut self, flow: FlowId, user: u32) {
        self.queue.assign(flow, user);
    }

    fn forget(&mut self, flow: FlowId) {
        self.queue.forget(flow);
    }

    fn let_go(&mut self) {
        self.packets = Reassembly::default();
        self.failed = VecDeque::new();
        self.done = VecDeque::new();
    }
}

#[cfg(test)]
mod tests;
