//! # UMTS RLC, simple
//!
//! ## Source
//! L02 appendix B: the downlink of a UMTS dedicated channel in acknowledged mode; `links.md` section 6.
//!
//! ## What it does
//! Packets are cut into blocks of rate x TTI / `pdus`, in whole bytes, which are transmitted at that rate. The last
//! block of a packet also contains the start of the next packet, if that packet is queued when the block starts;
//! otherwise the block is padded. Block errors are drawn at the end of a block. A failed block is retransmitted, before
//! all new blocks, from `repetition_delay` after its end. A packet is complete when all blocks with a part of it have
//! arrived. A complete packet is delivered at once, or after all earlier packets, and then propagates for `delay`.
//!
//! TTIs start at multiples of their length. By default no event is aligned to TTIs. Three kinds of events can be
//! delayed to the next TTI boundary: the delivery of a block's data (`delivery`), the report of a failure (`status`),
//! and retransmissions (`repetition`). With `status`, all failures of a TTI are in one status and are retransmitted
//! together.
//!
//! In an outage, such as a handover, no block starts; blocks already in transmission arrive.
//!
//! A block is given up after `limit` retransmissions, and all packets with a part in the block are lost. A packet
//! departs when it is delivered. Errors are drawn from the random stream `NAME/bler`.
//!
//! ## Differences from the source
//! The paper adds the start of a packet to the previous block while that block is unsent; this model fills a block when
//! it starts, which is equivalent. As in the paper, blocks start when the transmitter is free, not at TTI boundaries.
//! The options that align events to boundaries are not in the paper, but in the networks that it simplifies.
//!
//! ## Validation
//! Unit tests compare timelines of blocks with calculations by hand, and the mean number of transmissions with theory.
//! Further tests: the common tests of links, and L02's tables in `papers/l02`.

mod config;

pub use config::UmtsRlcConfig;

use std::collections::VecDeque;

use ackclock_core::{Rate, Span, Time};
use ackclock_link::Fate;
use ackclock_link::errors::{AnyErrorProcess, ErrorProcess};
use ackclock_link::outage::Outages;

use crate::blocks::{Packets, Transmitter};

/// Link that transmits packets in blocks, one block after another.
struct UmtsRlc {
    config: UmtsRlcConfig,
    outages: Outages,
    /// Expected share of blocks that arrive.
    good: f64,
    /// Size of a block, bytes.
    bytes: u32,
    /// Transmission time of a block.
    takes: Span,
    errors: AnyErrorProcess,
    /// Block in transmission, and the end time of its transmission.
    sending: Option<(Time, Block)>,
    /// Failed blocks, ordered by the earliest time of their retransmission.
    failed: VecDeque<(Time, Block)>,
    /// Blocks that will not be retransmitted, ordered by the time at which the receiver learns their fate.
    done: VecDeque<(Time, Block, Fate)>,
    /// Time at which the transmitter is free for the next block.
    free: Time,
    /// Number of blocks that arrived.
    arrived: u64,
    /// Total time in which blocks were sent.
    busy: Span,
}

/// Block with parts of one or more packets.
#[derive(Clone, Copy, Debug)]
struct Block {
    from: u64,
    to: u64,
    repetitions: u32,
}

impl UmtsRlc {
    fn new(config: UmtsRlcConfig, outages: Outages, good: f64, errors: AnyErrorProcess) -> Self {
        Self {
            bytes: config.block_bytes(),
            takes: config.block_time(),
            config,
            outages,
            good,
            errors,
            sending: None,
            failed: VecDeque::new(),
            done: VecDeque::new(),
            free: Time::ZERO,
            arrived: 0,
            busy: Span::ZERO,
        }
    }

    /// Time of the next start or end of a block.
    fn next_block(&self, packets: &Packets) -> Time {
        match (&self.sending, self.failed.front()) {
            (Some((ends, _)), _) => *ends,
            (None, _) if packets.has_new() => self.outages.on_from(self.free),
            (None, Some(&(ready, _))) => self.outages.on_from(ready.max(self.free)),
            (None, None) => Time::NEVER,
        }
    }

    fn begin(&mut self, now: Time, packets: &mut Packets) {
        let again = self.failed.pop_front_if(|&mut (ready, _)| ready <= now);
        let block = again.map(|(_, block)| block).or_else(|| self.fill(now, packets));
        if let Some(block) = block {
            self.busy += self.takes;
            self.free = now + self.takes;
            self.sending = Some((self.free, block));
        }
    }

    /// Fills a new block from the queue; `None` if the queue has dropped all packets.
    fn fill(&self, now: Time, packets: &mut Packets) -> Option<Block> {
        let (first, mut filled) = packets.cut(now, self.bytes)?;
        let mut last = first;
        while filled < self.bytes
            && let Some((number, part)) = packets.cut(now, self.bytes - filled)
        {
            (last, filled) = (number, filled + part);
        }
        Some(Block { from: first, to: last + 1, repetitions: 0 })
    }

    /// Ends the transmission of a block, whose last bit was sent at `at`.
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
}

impl Transmitter for UmtsRlc {
    fn next_change(&self, packets: &Packets) -> Time {
        let known = self.done.front().map_or(Time::NEVER, |&(known, ..)| known);
        known.min(self.next_block(packets))
    }

    fn change(&mut self, at: Time, packets: &mut Packets) {
        if let Some((_, block, fate)) = self.done.pop_front_if(|&mut (known, ..)| known <= at) {
            // The receiver now knows the fate of the block. All packets of a block that was given up are lost.
            match fate {
                Fate::Arrives => (block.from..block.to)
                    .for_each(|number| packets.begun.arrive(at, number, block.repetitions)),
                Fate::Lost => packets.give_up(at, block.from..block.to),
            }
        } else if let Some((ends, block)) = self.sending.take() {
            self.end(ends, block);
        } else {
            self.begin(at, packets);
        }
    }

    fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    fn first_sent(&self) -> Option<u64> {
        self.sending.filter(|(_, block)| block.repetitions == 0).map(|(_, block)| block.from)
    }

    fn ready(&mut self, now: Time) -> Time {
        self.free = self.free.max(now);
        self.outages.on_from(self.free)
    }

    fn rate(&self) -> Rate {
        self.config.rate
    }

    /// Capacity of the link: blocks that arrived, plus the expected number of blocks in idle time; outages add no
    /// blocks.
    fn capacity_bps(&self, until: Time) -> Option<f64> {
        let all = until.since(Time::ZERO);
        let (on, busy) = (self.outages.on_until(all).as_secs_f64(), self.busy.as_secs_f64());
        let (all, block) = (all.as_secs_f64(), f64::from(self.bytes) * 8.0);
        let idle = (on - busy).max(0.0) / self.takes.as_secs_f64() * block * self.good;
        (all > 0.0).then(|| (self.arrived as f64 * block + idle) / all)
    }

    fn let_go(&mut self) {
        self.failed = VecDeque::new();
        self.done = VecDeque::new();
    }
}

#[cfg(test)]
mod tests;
