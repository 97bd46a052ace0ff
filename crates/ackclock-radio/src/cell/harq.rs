//! HARQ: retransmission of failed slots.
//!
//! A block is the data that one service sends to a user. A failed block is retransmitted before new data of the user,
//! at least a delay after its transmission started. The receiver delivers packets in order, or each packet as soon as
//! it is complete. A packet is lost if a block with a part of the packet fails more often than the limit allows.
//!
//! The transmitter may mistake the NACK of a failed block for an ACK. The block is then lost, and the receiver does not
//! know. When the next block arrives, the receiver waits for the missing block until a timer (T1 of 3GPP TS 25.321)
//! expires, and delivers nothing in the meantime.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use ackclock_core::results::HarqResult;
use ackclock_core::{ConfigError, Segment, Span, Time};
use ackclock_link::errors::{AnyErrorProcess, ErrorContext, ErrorProcess};
use ackclock_link::{DeliveryOrder, Errors, Fate, Files, Loss, Repetitions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::services::{Service, Services};

/// Retransmission of failed slots in a cell.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HarqConfig {
    /// Block errors: a probability, independent for each block, or an error process, independent for each user.
    pub error: Errors,
    /// Error process of retransmissions, which the receiver combines with earlier transmissions; by default the same
    /// errors as for first transmissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_error: Option<Errors>,
    /// Probability that the NACK of a failed block is taken for an ACK. The block is then lost.
    pub feedback_error: Loss,
    /// Time for which a receiver that delivers in order waits for a block that was lost by a feedback error.
    pub release: Span,
    /// Minimum time from the start of a failed transmission to the start of its retransmission.
    pub delay: Span,
    /// Maximum number of retransmissions of a block; if the last retransmission fails, the block's packets are lost.
    pub limit: u32,
    /// Whether packets are delivered in the order sent, or each packet as soon as it is complete.
    pub order: DeliveryOrder,
    /// Whether a retransmission counts as service in the averages of the scheduler.
    pub repetitions: RepetitionsAs,
}

/// How a scheduler with averages counts a retransmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepetitionsAs {
    /// A retransmission counts as service of the block's size, because the user had the slots.
    #[default]
    Served,
    /// A retransmission does not count as service, because the user got no new data.
    Ignored,
}

impl Default for HarqConfig {
    /// Returns HSDPA as it is usually simulated: every tenth block fails, a retransmission follows after six slots of 2
    /// ms, and a block is sent at most four times.
    fn default() -> Self {
        Self {
            error: Loss::of(0.1).into(),
            repetition_error: None,
            feedback_error: Loss::of(0.0),
            release: Span::from_millis(50),
            delay: Span::from_millis(12),
            limit: 3,
            order: DeliveryOrder::InSequence,
            repetitions: RepetitionsAs::Served,
        }
    }
}

/// Allowed values of the timer T1 (3GPP TS 25.331 section 10.3.5.7a).
const RELEASES: RangeInclusive<Span> = Span::from_millis(10)..=Span::from_millis(400);

impl HarqConfig {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.error.check().map_err(|error| error.under("error"))?;
        if !RELEASES.contains(&self.release) {
            let [least, most] = [RELEASES.start(), RELEASES.end()];
            return Err(ConfigError::new("release", format!("{} is not {least} to {most}", self.release)));
        }
        if self.order == DeliveryOrder::OutOfSequence && self.release != Self::default().release {
            let message =
                format!("{}: with order = \"out-of-sequence\" no block waits for another", self.release);
            return Err(ConfigError::new("release", message));
        }
        self.repetitions().check().map_err(|error| error.under("repetition_error"))
    }

    pub(crate) fn complete(self) -> Result<Self, ConfigError> {
        let error = self.error.complete().map_err(|error| error.under("error"))?;
        let again = self.repetition_error.map(Errors::complete).transpose();
        Ok(Self { error, repetition_error: again.map_err(|error| error.under("repetition_error"))?, ..self })
    }

    /// Mean number of transmissions of a block with independent errors.
    pub(crate) fn transmissions(&self, files: &dyn Files) -> Result<f64, ConfigError> {
        let first = self.error.share(files).map_err(|error| error.under("error"))?;
        let again = self.repetitions().share(files).map_err(|error| error.under("repetition_error"))?;
        // Mean number of transmissions: 1 + e (1 + r + ... + r^(limit - 1)), with the probability e that a first
        // transmission fails and its NACK is received, and r for a retransmission.
        let [first, again] = [first, again].map(|error| error * (1.0 - self.feedback_error.probability()));
        let repetitions = if again < 1.0 {
            (1.0 - libm::pow(again, self.limit.into())) / (1.0 - again)
        } else {
            self.limit.into()
        };
        Ok(1.0 + first * repetitions)
    }

    const fn repetitions(&self) -> &Errors {
        match &self.repetition_error {
            Some(errors) => errors,
            None => &self.error,
        }
    }
}

/// Blocks that were sent to a user and contain packets of type `P` that are neither delivered nor lost.
pub(crate) struct Harq<P = Segment> {
    errors: AnyErrorProcess,
    /// Error process of retransmissions; `None` if retransmissions have the error process of first transmissions.
    repetition_errors: Option<AnyErrorProcess>,
    /// Errors of NACKs.
    feedback: AnyErrorProcess,
    release: Span,
    /// Set if the receiver misses a block that was lost by a feedback error, until it delivers a later packet.
    misses: bool,
    delay: Span,
    limit: u32,
    order: DeliveryOrder,
    counts: RepetitionsAs,
    blocks: VecDeque<Block>,
    /// Packets that end in the stored blocks.
    packets: VecDeque<P>,
    /// Index of the block in transmission.
    air: usize,
    services: Services,
    /// Set if a part of the packet that continues from an earlier block is lost.
    broken: bool,
    /// Earlier blocks with parts of the packet that continues into the first stored block.
    before: Option<Parts>,
    /// Set if the last packet sent continues in the next block.
    goes_on: bool,
    /// Counts of all blocks so far.
    pub(crate) counted: HarqResult,
}

/// A block: the data that one service sends to a user.
struct Block {
    state: BlockState,
    /// Number of slots that one transmission of the block takes.
    slots: u64,
    /// Service that sent the block for the first time.
    service: Service,
    repetitions: u32,
    /// Time at which the last transmission of the block ended.
    landed: Time,
    /// Rate of the block's slots for schedulers, bit/s.
    served: f64,
    /// Number of packets that end in the block and are not delivered yet.
    ends: u32,
    /// Whether the first packet in the block started in an earlier block.
    continues: bool,
    /// Whether the block lies entirely within one packet.
    is_middle: bool,
    /// Whether the block was lost by a feedback error.
    missed: bool,
    rest: Rest,
}

/// Summary of the blocks that contain parts of one packet.
#[derive(Clone, Copy)]
struct Parts {
    /// Services that first sent the packet's first block and its last block.
    services: [Service; 2],
    repetitions: u32,
    landed: Time,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockState {
    /// The block is in transmission.
    Sent,
    /// The transmission failed; the block may be retransmitted from this instant on.
    Failed(Time),
    Received,
    Lost,
}

/// Content of a block after the last packet that ends in the block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The rest of the block is empty.
    Empty,
    /// The first part of a packet that continues in the next block.
    Begun,
}

impl<P: Copy> Harq<P> {
    /// Creates the HARQ of a user, from the error contexts of first transmissions, of retransmissions and of NACKs.
    pub(crate) fn new(
        config: &HarqConfig,
        [first, again, feedback]: [ErrorContext<'_>; 3],
    ) -> Result<Self, ConfigError> {
        let errors = config.error.build(first);
        let again = config.repetition_error.as_ref().map(|errors| errors.build(again)).transpose();
        Ok(Self {
            errors: errors.map_err(|error| error.under("error"))?,
            repetition_errors: again.map_err(|error| error.under("repetition_error"))?,
            feedback: Errors::Share(config.feedback_error).build(feedback)?,
            release: config.release,
            misses: false,
            delay: config.delay,
            limit: config.limit,
            order: config.order,
            counts: config.repetitions,
            blocks: VecDeque::new(),
            packets: VecDeque::new(),
            air: 0,
            services: Services::default(),
            broken: false,
            before: None,
            goes_on: false,
            counted: HarqResult::default(),
        })
    }

    /// Adds a block of `slots` slots that was sent until `now` and in which these packets end. The scheduler counts
    /// `served` as the block's rate.
    pub(crate) fn sent(&mut self, now: Time, packets: &[P], rest: Rest, slots: u64, served: f64) {
        self.air = self.blocks.len();
        self.counted.blocks += 1;
        let ends = packets.len() as u32;
        let continues = std::mem::replace(&mut self.goes_on, rest == Rest::Begun);
        let is_middle = continues && ends == 0;
        let state = BlockState::Sent;
        self.blocks.push_back(Block {
            state,
            slots,
            service: self.services.carried_new(now),
            repetitions: 0,
            landed: Time::ZERO,
            served,
            ends,
            continues,
            is_middle,
            missed: false,
            rest,
        });
        self.packets.extend(packets);
    }

    /// Retransmits the first block that is ready at `now`. Returns the block's number of slots and the rate that the
    /// scheduler counts.
    pub(crate) fn repeat(&mut self, now: Time) -> Option<(u64, f64)> {
        self.air = self.blocks.iter().position(|block| block.waits(now))?;
        self.counted.repeated += 1;
        let block = &mut self.blocks[self.air];
        block.state = BlockState::Sent;
        block.repetitions += 1;
        let served = if self.counts == RepetitionsAs::Served { block.served } else { 0.0 };
        Some((block.slots, served))
    }

    /// Whether a block is ready at `now` for retransmission.
    pub(crate) fn waits(&self, now: Time) -> bool {
        self.blocks.iter().any(|block| block.waits(now))
    }

    /// Replaces the error process of blocks.
    pub(crate) fn set_errors(&mut self, errors: AnyErrorProcess) {
        self.errors = errors;
    }

    /// Ends the transmission that lasted from `began` to `now`, with the fate `radio` unless the block has an error. If
    /// the transmission failed, returns the earliest time of a retransmission.
    pub(crate) fn land(&mut self, began: Time, now: Time, radio: Fate) -> Option<Time> {
        let block = self.blocks.get_mut(self.air)?;
        if block.repetitions > 0 {
            self.services.carried_again(now);
        }
        block.landed = now;
        let errors = match &mut self.repetition_errors {
            Some(again) if block.repetitions > 0 => again,
            _ => &mut self.errors,
        };
        let fate = errors.fate(now);
        block.state = match if radio == Fate::Lost { radio } else { fate } {
            Fate::Arrives => BlockState::Received,
            Fate::Lost if block.repetitions == self.limit => BlockState::Lost,
            Fate::Lost if self.feedback.fate(now) == Fate::Lost => {
                block.missed = true;
                BlockState::Lost
            }
            Fate::Lost => BlockState::Failed(began + self.delay),
        };
        match block.state {
            BlockState::Failed(due) => Some(due),
            state => {
                self.counted.lost += u64::from(state == BlockState::Lost);
                None
            }
        }
    }

    /// Time for which the receiver keeps the packet that it delivers next, because it misses an earlier block.
    pub(crate) fn take_wait(&mut self) -> Span {
        if std::mem::take(&mut self.misses) { self.release } else { Span::ZERO }
    }

    /// Returns the next packet that is delivered or given up, with the number and delay of its retransmissions.
    pub(crate) fn release(&mut self) -> Option<(P, Fate, Repetitions)> {
        let next = match self.order {
            DeliveryOrder::InSequence => self.release_first(),
            DeliveryOrder::OutOfSequence => self.release_whole(),
        };
        let Some((segment, fate, parts)) = next else {
            let first = self.before.map(|before| before.services[0]);
            self.services.forget_before(first.or(self.blocks.front().map(|block| block.service)));
            return None;
        };
        let delay = parts.landed.since(self.services.end(parts.services));
        Some((segment, fate, Repetitions { times: parts.repetitions, delay }))
    }

    /// Returns the first packet whose fate is known, even if the fate of earlier packets is unknown.
    fn release_whole(&mut self) -> Option<(P, Fate, Parts)> {
        while self.blocks.front().is_some_and(|block| block.is_over() && block.ends == 0) {
            self.forget_first();
        }
        let mut before = 0;
        for index in 0..self.blocks.len() {
            let block = &self.blocks[index];
            let (ends, continues, parts) = (block.ends, block.continues, Parts::of(block));
            if ends > 0 && block.is_over() {
                let lost = block.state == BlockState::Lost;
                if !continues {
                    return self.take(index, before, lost, parts);
                }
                if let Some(broken) = self.lacks_part(index) {
                    let parts = self.parts_up_to(index);
                    self.blocks[index].continues = false;
                    return self.take(index, before, lost || broken, parts);
                }
                if ends > 1 {
                    return self.take(index, before + 1, lost, parts);
                }
            }
            before += ends as usize;
        }
        None
    }

    /// Whether an earlier part of the packet that continues into a block was lost; `None` if the fate of an earlier
    /// part is unknown.
    fn lacks_part(&mut self, index: usize) -> Option<bool> {
        let mut lost = false;
        for block in self.blocks.range(..index).rev() {
            if !block.is_over() {
                return None;
            }
            lost |= block.state == BlockState::Lost;
            if !block.is_middle {
                return Some(lost);
            }
        }
        Some(std::mem::take(&mut self.broken) || lost)
    }

    /// Returns the blocks with parts of the packet that continues into the block at `index`.
    fn parts_up_to(&self, index: usize) -> Parts {
        let begins = self.blocks.range(..index).rposition(|block| !block.is_middle);
        let (first, from) = begins.map_or((self.before, 0), |at| (Some(Parts::of(&self.blocks[at])), at + 1));
        let further = self.blocks.range(from..=index).map(Parts::of);
        first.into_iter().chain(further).reduce(Parts::and).expect("its last block is one")
    }

    /// Removes a packet that ends in a block; `place` is the packet's index among all packets.
    fn take(&mut self, block: usize, place: usize, lost: bool, parts: Parts) -> Option<(P, Fate, Parts)> {
        self.blocks[block].ends -= 1;
        Some((self.packets.remove(place)?, if lost { Fate::Lost } else { Fate::Arrives }, parts))
    }

    /// Returns the next packet in order of transmission.
    fn release_first(&mut self) -> Option<(P, Fate, Parts)> {
        loop {
            let block = self.blocks.front_mut()?;
            let lost = match block.state {
                BlockState::Received => false,
                BlockState::Lost => true,
                BlockState::Sent | BlockState::Failed(_) => return None,
            };
            if block.ends > 0 {
                block.ends -= 1;
                let here = Parts::of(block);
                let parts = self.before.take().map_or(here, |before| before.and(here));
                let broken = std::mem::take(&mut self.broken);
                let fate = if lost || broken { Fate::Lost } else { Fate::Arrives };
                return Some((self.packets.pop_front()?, fate, parts));
            }
            self.forget_first();
        }
    }

    /// Removes the first block, and keeps the parts of a packet that continues in the next block.
    fn forget_first(&mut self) {
        let Some(block) = self.blocks.pop_front() else { return };
        self.misses |= block.missed && self.order == DeliveryOrder::InSequence;
        let (goes_on, here) = (block.rest == Rest::Begun, Parts::of(&block));
        self.broken |= block.state == BlockState::Lost && goes_on;
        let before = self.before.filter(|_| block.is_middle);
        self.before = goes_on.then(|| before.map_or(here, |before| before.and(here)));
    }

    /// Forgets all blocks, and returns the packets that end in them.
    pub(crate) fn withdraw(&mut self) -> impl Iterator<Item = P> + '_ {
        self.blocks.clear();
        self.services.forget_before(None);
        (self.air, self.before) = (0, None);
        (self.broken, self.misses, self.goes_on) = (false, false, false);
        self.packets.drain(..)
    }

    /// Packets that were sent and are neither delivered nor given up yet.
    pub(crate) fn unacknowledged(&self) -> impl Iterator<Item = &P> {
        self.packets.iter()
    }
}

impl Parts {
    const fn of(block: &Block) -> Self {
        let Block { service, repetitions, landed, .. } = *block;
        Self { services: [service; 2], repetitions, landed }
    }

    /// Joins the blocks of this summary with later blocks of the same packet.
    fn and(self, behind: Self) -> Self {
        Self {
            services: [self.services[0], behind.services[1]],
            repetitions: self.repetitions + behind.repetitions,
            landed: self.landed.max(behind.landed),
        }
    }
}

impl Block {
    /// Whether the block is received or finally lost.
    fn is_over(&self) -> bool {
        matches!(self.state, BlockState::Received | BlockState::Lost)
    }

    fn waits(&self, now: Time) -> bool {
        matches!(self.state, BlockState::Failed(due) if due <= now)
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{FlowId, Seq, Streams};

    use super::*;
    use ackclock_link::NoFiles;

    fn harq(change: impl FnOnce(&mut HarqConfig)) -> Harq {
        let mut config = HarqConfig { error: Loss::of(0.0).into(), ..HarqConfig::default() };
        change(&mut config);
        let streams = &Streams::new(1, 0);
        let block = Span::from_millis(2);
        let context = ErrorContext { streams, name: "harq", files: &NoFiles, block };
        Harq::new(&config, [context; 3]).unwrap()
    }

    /// Packets with these numbers.
    fn packets(numbers: &[u32]) -> Vec<Segment> {
        numbers.iter().map(|&number| Segment::data(FlowId(0), Seq(number), 100, 40)).collect()
    }

    /// Four blocks: 0, 1 and the start of 2; the end of 2, 3 and the start of 4; a middle of 4; its end and 5.
    fn four_blocks(order: DeliveryOrder) -> Harq {
        let mut harq = harq(|config| config.order = order);
        for (numbers, rest) in
            [(&[0, 1][..], Rest::Begun), (&[2, 3], Rest::Begun), (&[], Rest::Begun), (&[4, 5], Rest::Empty)]
        {
            harq.sent(Time::ZERO, &packets(numbers), rest, 1, 1e6);
        }
        harq
    }

    /// Released packets, and whether each arrives.
    fn released(harq: &mut Harq) -> Vec<(u32, bool)> {
        std::iter::from_fn(|| harq.release())
            .map(|(segment, fate, _)| (segment.seq.0, fate == Fate::Arrives))
            .collect()
    }

    fn arrived(numbers: &[u32]) -> Vec<(u32, bool)> {
        numbers.iter().map(|&number| (number, true)).collect()
    }

    #[test]
    fn packets_are_handed_on_in_order_or_as_soon_as_they_are_whole() {
        for (order, first, second) in [
            (DeliveryOrder::InSequence, &[][..], &[0, 1, 2, 3, 4, 5][..]),
            // 2 waits for its start.
            (DeliveryOrder::OutOfSequence, &[3, 4, 5], &[0, 1, 2]),
        ] {
            let mut harq = four_blocks(order);
            harq.blocks[0].state = BlockState::Failed(Time::ZERO);
            harq.blocks.iter_mut().skip(1).for_each(|block| block.state = BlockState::Received);
            assert_eq!(released(&mut harq), arrived(first), "{order:?}");
            harq.blocks[0].state = BlockState::Received;
            assert_eq!(released(&mut harq), arrived(second), "{order:?}");
            assert_eq!((harq.blocks.len(), harq.packets.len()), (0, 0), "{order:?}");
        }
    }

    #[test]
    fn a_packet_that_lacks_a_part_is_lost_in_either_order() {
        for order in [DeliveryOrder::InSequence, DeliveryOrder::OutOfSequence] {
            for (lost, expected) in
                [(0, [false, false, false, true, true, true]), (2, [true, true, true, true, false, true])]
            {
                let mut harq = four_blocks(order);
                harq.blocks.iter_mut().for_each(|block| block.state = BlockState::Received);
                harq.blocks[lost].state = BlockState::Lost;
                let expected: Vec<_> = (0..).zip(expected).collect();
                assert_eq!(released(&mut harq), expected, "{order:?}, block {lost}");
            }
        }
    }

    #[test]
    fn a_head_that_was_lost_before_is_not_forgotten() {
        let mut harq = harq(|config| config.order = DeliveryOrder::OutOfSequence);
        harq.sent(Time::ZERO, &packets(&[0]), Rest::Begun, 1, 1e6);
        harq.blocks[0].state = BlockState::Lost;
        assert_eq!(released(&mut harq), [(0, false)]);
        harq.sent(Time::ZERO, &packets(&[1, 2]), Rest::Begun, 1, 1e6);
        harq.blocks[0].state = BlockState::Received;
        assert_eq!(released(&mut harq), [(1, false), (2, true)]);
        harq.sent(Time::ZERO, &packets(&[3]), Rest::Empty, 1, 1e6);
        harq.blocks[0].state = BlockState::Received;
        assert_eq!(released(&mut harq), [(3, true)], "its head had arrived");
    }

    #[test]
    fn a_repetition_counts_as_what_the_block_carried_or_as_nothing() {
        for (repetitions, served) in [(RepetitionsAs::Served, 4e5), (RepetitionsAs::Ignored, 0.0)] {
            let mut harq = harq(|config| config.repetitions = repetitions);
            harq.sent(Time::ZERO, &packets(&[0]), Rest::Empty, 2, 4e5);
            harq.blocks[0].state = BlockState::Failed(Time::ZERO);
            assert_eq!(harq.repeat(Time::ZERO), Some((2, served)), "{repetitions:?}");
        }
    }

    /// Services of a tenth of a second each: packets, rest and outcome. Returns the released packets with their delay
    /// in tenths.
    fn served(order: DeliveryOrder, services: &[(&[u32], Rest, bool)]) -> Vec<(u32, u32, u64)> {
        let mut harq = harq(|config| {
            (config.order, config.limit, config.delay) = (order, 9, Span::ZERO);
        });
        let (mut told, tenth) = (Vec::new(), Span::from_millis(100));
        for (number, &(numbers, rest, arrives)) in (1..).zip(services) {
            let now = Time::ZERO + tenth * number;
            if harq.repeat(now).is_none() {
                harq.sent(now, &packets(numbers), rest, 1, 1e6);
            }
            harq.land(now, now, Fate::Arrives);
            harq.blocks[harq.air].state =
                if arrives { BlockState::Received } else { BlockState::Failed(now + tenth) };
            while let Some((segment, _, repeated)) = harq.release() {
                told.push((segment.seq.0, repeated.times, repeated.delay.as_nanos() / tenth.as_nanos()));
            }
        }
        assert_eq!((harq.blocks.len(), harq.packets.len()), (0, 0), "{told:?}");
        told
    }

    #[test]
    fn what_was_repeated_of_a_packet_is_told_and_how_much_later_it_was_whole() {
        let again = (&[][..], Rest::Empty);
        let again = |arrives| (again.0, again.1, arrives);
        // 0 fails twice. 1 is sent in the fourth service instead of the second.
        let alone = [(&[0][..], Rest::Empty, false), again(false), again(true), (&[1], Rest::Empty, true)];
        for order in [DeliveryOrder::InSequence, DeliveryOrder::OutOfSequence] {
            assert_eq!(served(order, &alone), [(0, 2, 2), (1, 0, 0)], "{order:?}");
        }
        // 0 has three blocks: the first is sent twice, the second once, the third, in the fourth service instead of
        // the third, three times. 1 shares the third.
        let long = [
            (&[][..], Rest::Begun, false),
            again(true),
            (&[], Rest::Begun, true),
            (&[0, 1], Rest::Empty, false),
            again(false),
            again(true),
        ];
        for order in [DeliveryOrder::InSequence, DeliveryOrder::OutOfSequence] {
            assert_eq!(served(order, &long), [(0, 3, 3), (1, 2, 2)], "{order:?}");
        }
    }

    #[test]
    fn a_receiver_waits_for_a_block_whose_nack_was_taken_for_an_ack() {
        let ms = |millis| Time::ZERO + Span::from_millis(millis);
        for (order, wait) in
            [(DeliveryOrder::InSequence, Span::from_millis(50)), (DeliveryOrder::OutOfSequence, Span::ZERO)]
        {
            let mut harq = harq(|config| {
                (config.order, config.feedback_error) = (order, Loss::of(1.0));
                (config.error, config.repetition_error) = (Loss::of(1.0).into(), Some(Loss::of(0.0).into()));
            });
            harq.sent(ms(2), &packets(&[0]), Rest::Empty, 1, 1e6);
            assert_eq!(
                harq.land(ms(0), ms(2), Fate::Arrives),
                None,
                "the transmitter believes that the block arrived"
            );
            assert_eq!((harq.repeat(ms(20)), released(&mut harq)), (None, vec![(0, false)]), "{order:?}");
            harq.sent(ms(4), &packets(&[1, 2]), Rest::Empty, 1, 1e6);
            harq.blocks.back_mut().unwrap().state = BlockState::Received;
            let waits = [0, 1].map(|_| harq.release().map(|_| harq.take_wait()).unwrap());
            assert_eq!(waits, [wait, Span::ZERO], "{order:?}");
        }
    }

    #[test]
    fn a_packet_is_complete_when_the_last_of_its_blocks_has_arrived_whichever_that_is() {
        let ms = |millis| Time::ZERO + Span::from_millis(millis);
        for order in [DeliveryOrder::InSequence, DeliveryOrder::OutOfSequence] {
            let mut harq = harq(|config| config.order = order);
            harq.sent(ms(2), &[], Rest::Begun, 1, 1e6);
            harq.land(ms(0), ms(2), Fate::Arrives);
            harq.blocks[0].state = BlockState::Failed(ms(6));
            harq.sent(ms(4), &packets(&[0]), Rest::Empty, 1, 1e6);
            harq.land(ms(2), ms(4), Fate::Arrives);
            assert!(harq.release().is_none(), "its first block has failed");
            harq.repeat(ms(6)).unwrap();
            harq.land(ms(6), ms(8), Fate::Arrives);
            let (_, _, repeated) = harq.release().unwrap();
            assert_eq!((repeated.times, repeated.delay), (1, Span::from_millis(4)), "{order:?}");
        }
    }
}
