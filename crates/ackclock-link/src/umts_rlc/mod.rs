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

use std::collections::VecDeque;

use ackclock_core::{Rate, Span, Time};

use crate::Fate;
use crate::blocks::{Packets, Transmitter};
use crate::errors::{AnyErrorProcess, ErrorProcess};
use crate::outage::Outages;

/// The transmitter of blocks.
struct UmtsRlc {
    config: UmtsRlcConfig,
    outages: Outages,
    /// Expected share of blocks that arrive.
    good: f64,
    /// Size of a block, bytes, and the time that it takes.
    bytes: u32,
    takes: Span,
    errors: AnyErrorProcess,
    /// The block in transmission and its end.
    sending: Option<(Time, Block)>,
    /// Blocks that failed, by the instant from which they may be sent again.
    failed: VecDeque<(Time, Block)>,
    /// Blocks that will not be sent again, by the instant from which the receiver knows their fate.
    done: VecDeque<(Time, Block, Fate)>,
    /// The transmitter can begin a block from here on.
    free: Time,
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

    /// When a block next begins or ends.
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

    /// Cuts a new block; none where the queue has dropped all that waited.
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
}

impl Transmitter for UmtsRlc {
    fn next_change(&self, packets: &Packets) -> Time {
        let known = self.done.front().map_or(Time::NEVER, |&(known, ..)| known);
        known.min(self.next_block(packets))
    }

    fn change(&mut self, at: Time, packets: &mut Packets) {
        if let Some((_, block, fate)) = self.done.pop_front_if(|&mut (known, ..)| known <= at) {
            // The receiver knows what became of it. A block that was given up takes with it every packet of which it has a part.
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

    /// What arrived in blocks, and in the time that no block was sent in what would have in the mean; in outages nothing.
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
