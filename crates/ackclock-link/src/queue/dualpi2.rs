//! # DualPI2
//!
//! ## Source
//! RFC 9332 (De Schepper, Briscoe and White 2023), sections 2.4 and 2.5, and appendices A.1 (the AQM) and A.2
//! (overload). The classification is that of RFC 9331 section 5.1.
//!
//! ## What it does
//! Packets with ECT(1) or CE enter the L queue, all others the classic queue. The L queue has priority; while packets of
//! both are queued, the classic queue gets at least 1/16 of the bytes. A PI controller updates a base probability p'
//! every 15 ms from the larger delay of both queues: `p' += α (delay - target) + β (delay - previous delay)`. Classic
//! packets are dropped, or marked if they are ECT(0), with `p_C = p'²`. L packets are marked with the larger of the
//! coupled probability `p_CL = k p'` and a ramp of their own queueing delay, from 0 at 0.8 ms to 1 at 1.2 ms. In the
//! steady state therefore `p_C = (p_L / k)²`, so that a scalable and a classic flow of equal RTT get about equal rates.
//! While p_C is at least its limit, 1/4, the link is overloaded: L packets are also dropped with p_C, and classic packets
//! are not marked.
//!
//! ## Differences from the source
//! - The appendix recommends weighted round robin; ours keeps the classic share by bytes, which is counted only while
//!   packets of both queues are queued, as in the Linux implementation that the appendix describes.
//! - A packet must fit into `buffer`; the appendix admits a packet that exceeds the limit by less than an MTU.
//! - Updates happen at multiples of the update time from the start of the run, so polling does not affect them.
//!
//! As in the appendix, decisions are not random: a probability is added up, and each whole number reached selects a
//! packet (`recur`).
//!
//! ## Validation
//! Each line of figures 2 to 8 was compared with the code. Unit tests check a step of the controller, both probabilities, the ramp, overload and the order of service by hand.
//! `crates/ackclock-scenario/tests/l4s.rs` compares Prague with CUBIC over this queue.

use std::collections::VecDeque;

use ackclock_core::{Config, ConfigError, Ecn, FlowId, Segment, Span, Time, Unused};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::Fifo;
use super::{
    AnyQueue, Choose, Codepoints, Place, Queue, QueueConfig, QueueContext, is_ect, shared_by_all_flows,
};
use crate::{Capacity, Cause, Load};

/// Dual-queue coupled AQM (RFC 9332): a queue with a low delay for L4S traffic beside a classic queue.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DualPi2Config {
    /// Target queueing delay of the classic queue.
    pub target: Span,
    /// Largest typical round-trip time of the flows, which sets the gains of the controller.
    pub max_rtt: Span,
    /// Coupling factor k between the marking of L4S packets and the drops of classic packets.
    pub coupling: f64,
    /// Queueing delay above which L4S packets are marked.
    pub mark_above: Span,
    /// Range of the queueing delay within which the marking probability of L4S packets rises to 1.
    pub ramp: Span,
    /// Minimum share of the bytes that the classic queue gets while L4S packets are queued.
    pub classic: f64,
}

impl Default for DualPi2Config {
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            max_rtt: Span::from_millis(100),
            coupling: 2.0,
            mark_above: Span::from_micros(800),
            ramp: Span::from_micros(400),
            classic: 1.0 / 16.0,
        }
    }
}

impl Config for DualPi2Config {
    fn check(&self) -> Result<(), ConfigError> {
        let least = Span::from_millis(1);
        for (key, span) in [("target", self.target), ("max_rtt", self.max_rtt)] {
            if span < least {
                return Err(ConfigError::new(key, format!("{span} is below {least}")));
            }
        }
        if !(self.coupling >= 1.0 && self.coupling <= 100.0) {
            return Err(ConfigError::new("coupling", format!("{} is not 1 to 100", self.coupling)));
        }
        if !(0.0..=1.0).contains(&self.classic) {
            return Err(ConfigError::new("classic", format!("{} is not 0 to 1", self.classic)));
        }
        Ok(())
    }
}

impl QueueConfig for DualPi2Config {
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue {
        DualPi2::new(self.clone(), context.capacity).any()
    }

    fn unused(&self, packets: Codepoints) -> Vec<Unused> {
        let usual = Self::default();
        packets.unused_without_l4s(&[
            ("mark_above", self.mark_above != usual.mark_above),
            ("ramp", self.ramp != usual.ramp),
            ("classic", self.classic != usual.classic),
        ])
    }
}

/// Gains of the controller: α RTT_max² / Tupdate and β RTT_max (appendix A.1, figure 2).
const ALPHA: f64 = 0.1;
const BETA: f64 = 0.3;
/// Number of L packets behind a packet up to which its own delay does not mark it (Th_len).
const UNMARKED_PACKETS: u32 = 1;

/// A pair of coupled queues.
#[derive(Debug)]
pub struct DualPi2 {
    config: DualPi2Config,
    /// Time between updates: min(target, RTT_max / 3).
    update: Span,
    low: Fifo,
    classic: Fifo,
    capacity: Capacity,
    /// Base probability p'.
    base: f64,
    /// Larger delay of both queues at the last update.
    delay_before: Span,
    next_update: Time,
    recur_low: Recur,
    recur_classic: Recur,
    /// Bytes by which the classic queue lags behind its minimum share.
    behind: f64,
    dropped: VecDeque<(Segment, Cause)>,
}

/// Selects packets with a probability, at equal distances instead of at random.
#[derive(Clone, Copy, Debug, Default)]
struct Recur(f64);

impl Recur {
    fn selects(&mut self, probability: f64) -> bool {
        self.0 += probability;
        let selects = self.0 > 1.0;
        if selects {
            self.0 -= 1.0;
        }
        selects
    }
}

impl DualPi2 {
    fn new(config: DualPi2Config, capacity: Capacity) -> Self {
        let update = config.target.min(config.max_rtt / 3);
        Self {
            config,
            update,
            low: Fifo::default(),
            classic: Fifo::default(),
            capacity,
            base: 0.0,
            delay_before: Span::ZERO,
            next_update: Time::ZERO + update,
            recur_low: Recur::default(),
            recur_classic: Recur::default(),
            behind: 0.0,
            dropped: VecDeque::new(),
        }
    }

    /// Performs the updates of the base probability that are due by `now`.
    fn advance(&mut self, now: Time) {
        while self.next_update <= now {
            let calm = self.base == 0.0 && self.is_empty() && self.delay_before == Span::ZERO;
            let updates =
                if calm { 1 + now.since(self.next_update).as_nanos() / self.update.as_nanos() } else { 1 };
            let delay = self.waiting_since().map_or(Span::ZERO, |since| self.next_update.since(since));
            self.step(delay);
            self.next_update += self.update * updates;
        }
    }

    /// Updates the base probability once (appendix A.1, `dualpi2_update`).
    fn step(&mut self, delay: Span) {
        let (now, before) = (delay.as_secs_f64(), self.delay_before.as_secs_f64());
        let max_rtt = self.config.max_rtt.as_secs_f64();
        let alpha = ALPHA * self.update.as_secs_f64() / (max_rtt * max_rtt);
        let beta = BETA / max_rtt;
        self.base += alpha * (now - self.config.target.as_secs_f64()) + beta * (now - before);
        self.base = self.base.clamp(0.0, 1.0);
        self.delay_before = delay;
    }

    /// Probability that a classic packet is dropped or marked: p_C.
    fn on_classic(&self) -> f64 {
        self.base * self.base
    }

    /// Whether drops replace marks: p_C has reached p_Cmax = min(1 / k², 1).
    fn is_overloaded(&self) -> bool {
        self.on_classic() >= 1.0 / (self.config.coupling * self.config.coupling)
    }

    /// Coupled probability that an L packet is marked: p_CL.
    fn coupled(&self) -> f64 {
        (self.config.coupling * self.base).min(1.0)
    }

    /// Probability that an L packet with this queueing delay is marked for its own delay: p'_L.
    fn native(&self, delay: Span) -> f64 {
        if delay <= self.config.mark_above {
            return 0.0;
        }
        let above = delay.as_secs_f64() - self.config.mark_above.as_secs_f64();
        let ramp = self.config.ramp.as_secs_f64();
        if above >= ramp { 1.0 } else { above / ramp }
    }

    /// Takes the next L packet; `None` if it was dropped.
    fn take_low(&mut self, now: Time) -> Option<(Time, Segment)> {
        let (arrived, mut segment) = self.low.pop()?;
        let crowded = self.low.load().packets > UNMARKED_PACKETS;
        let mark = if self.is_overloaded() {
            let probability = self.on_classic();
            if self.recur_low.selects(probability) {
                self.dropped.push_back((segment, Cause::Policy));
                return None;
            }
            self.coupled()
        } else {
            let native = if crowded { self.native(now.since(arrived)) } else { 0.0 };
            native.max(self.coupled())
        };
        if self.recur_low.selects(mark) {
            segment.ecn = Ecn::Ce;
        }
        Some((arrived, segment))
    }

    /// Takes the next classic packet; `None` if it was dropped.
    fn take_classic(&mut self) -> Option<(Time, Segment)> {
        let (arrived, mut segment) = self.classic.pop()?;
        let probability = self.on_classic();
        if self.recur_classic.selects(probability) {
            if !is_ect(&segment) || self.is_overloaded() {
                self.dropped.push_back((segment, Cause::Policy));
                return None;
            }
            segment.ecn = Ecn::Ce;
        }
        Some((arrived, segment))
    }

    /// Arrival time of the packet that has waited longest.
    fn waiting_since(&self) -> Option<Time> {
        [self.low.first(), self.classic.first()].into_iter().flatten().min()
    }

    /// Counts the bytes of a departing packet for the share of the classic queue.
    fn account(&mut self, both: bool, is_classic: bool, bytes: f64) {
        let share = self.config.classic;
        self.behind = match (both, is_classic) {
            (false, _) => 0.0,
            (true, true) => self.behind - (1.0 - share) * bytes,
            (true, false) => self.behind + share * bytes,
        };
    }

    /// Whether a packet is classified as L4S (RFC 9331 section 5.1).
    fn is_low(segment: &Segment) -> bool {
        segment.ecn == Ecn::Ect1 || segment.ecn == Ecn::Ce
    }
}

impl Queue for DualPi2 {
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        self.advance(now);
        if !self.capacity.admits(self.load() + unqueued, segment) {
            return Err(Cause::Full);
        }
        let fifo = if Self::is_low(segment) { &mut self.low } else { &mut self.classic };
        fifo.put(now, segment, place);
        Ok(())
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)> {
        self.advance(now);
        while !self.is_empty() {
            let both = !self.low.is_empty() && !self.classic.is_empty();
            let is_classic = self.low.is_empty() || (both && self.behind > 0.0);
            let taken = if is_classic { self.take_classic() } else { self.take_low(now) };
            if let Some((arrived, segment)) = taken {
                self.account(both, is_classic, segment.wire_bytes().into());
                return Some((arrived, segment));
            }
        }
        None
    }

    fn pass(&mut self, now: Time, _: &Segment) {
        self.advance(now);
    }

    fn is_empty(&self) -> bool {
        self.low.is_empty() && self.classic.is_empty()
    }

    fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        self.dropped.pop_front()
    }

    fn waiting(&self, _: FlowId) -> Load {
        self.low.load() + self.classic.load()
    }

    fn capacity(&self, _: FlowId) -> Capacity {
        self.capacity
    }

    fn oldest(&self) -> Time {
        self.low.oldest().min(self.classic.oldest())
    }

    fn remove_oldest(&mut self, now: Time) -> Option<Segment> {
        self.advance(now);
        let from = if self.low.oldest() < self.classic.oldest() { &mut self.low } else { &mut self.classic };
        from.pop().map(|(_, segment)| segment)
    }

    fn remove(&mut self, now: Time, _: FlowId, choose: Choose<'_>) -> Option<Segment> {
        self.advance(now);
        self.classic.remove(choose)
    }

    shared_by_all_flows!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Seq;

    fn queue() -> DualPi2 {
        DualPi2::new(DualPi2Config::default(), Capacity::Unlimited)
    }

    fn packet(ecn: Ecn) -> Segment {
        let mut packet = Segment::data(FlowId(0), Seq(0), 960, 40);
        packet.ecn = ecn;
        packet
    }

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// Sends packets one by one without delay at base probability `base`. Returns the numbers marked and dropped.
    fn several(packets: u32, base: f64, ecn: Ecn) -> (usize, usize) {
        let mut queue = queue();
        queue.base = base;
        let mut marked = 0;
        for _ in 0..packets {
            queue.enqueue(Time::ZERO, &packet(ecn), Load::NONE).unwrap();
            marked += usize::from(queue.dequeue(Time::ZERO).is_some_and(|(_, left)| left.ecn == Ecn::Ce));
        }
        (marked, queue.dropped.len())
    }

    #[test]
    fn one_step_of_the_controller_is_that_of_the_formula() {
        let mut queue = queue();
        assert_eq!(queue.update, Span::from_millis(15));
        (queue.base, queue.delay_before) = (0.05, Span::from_millis(20));
        queue.step(Span::from_millis(25));
        // α = 0.1·0.015/0.1² = 0.15 and β = 0.3/0.1 = 3: 0.15·10 ms + 3·5 ms = 0.0165.
        assert!((queue.base - 0.0665).abs() < 1e-12, "{}", queue.base);
    }

    #[test]
    fn updates_see_the_delay_of_the_first_packet_whenever_the_queue_is_polled() {
        for ecn in [Ecn::NotEct, Ecn::Ect1] {
            let (mut seldom, mut often) = (queue(), queue());
            for queue in [&mut seldom, &mut often] {
                queue.enqueue(at(1_000), &packet(ecn), Load::NONE).unwrap();
            }
            (1..=60).for_each(|ms| often.advance(at(ms * 1000)));
            seldom.advance(at(60_000));
            assert_eq!((seldom.base, seldom.delay_before), (often.base, often.delay_before));
            // Delays of 14, 29, 44 and 59 ms: 0.15·(-1 + 14 + 29 + 44) ms + 3·59 ms = 0.1899.
            assert!((seldom.base - 0.1899).abs() < 1e-12, "{}", seldom.base);
        }
    }

    /// A link of a packet per millisecond has 1 L packet and 1.05 classic packets each 2 ms, which ignore signals. The
    /// controller settles where it drops the excess, 0.05/1.05 = 4.8 % of the classic packets, and the marked fraction
    /// of the L packets is then 2·√0.048 = 44 %: p_C = (p_L / k)² (section 2.1).
    #[test]
    fn the_settled_link_keeps_the_square_of_half_the_marked_fraction() {
        let mut queue = queue();
        let (mut marked, mut low, mut dropped, mut classic) = (0, 0, 0, 0);
        for ms in 0..200_000u64 {
            let late = ms > 100_000;
            if ms % 2 == 0 {
                queue.enqueue(at(ms * 1000), &packet(Ecn::Ect1), Load::NONE).unwrap();
            }
            if ms % 2 == 1 || ms % 40 == 0 {
                queue.enqueue(at(ms * 1000), &packet(Ecn::NotEct), Load::NONE).unwrap();
                classic += u32::from(late);
            }
            let left = queue.dequeue(at(ms * 1000 + 500));
            dropped += if late { queue.dropped.len() } else { 0 };
            queue.dropped.clear();
            if let Some((_, left)) = left.filter(|(_, left)| late && left.ecn != Ecn::NotEct) {
                low += 1;
                marked += u32::from(left.ecn == Ecn::Ce);
            }
        }
        let (p_low, p_classic) = (f64::from(marked) / f64::from(low), dropped as f64 / f64::from(classic));
        assert!((p_classic - 0.05 / 1.05).abs() < 0.002, "{p_classic}");
        assert!((p_classic / (p_low / 2.0).powi(2) - 1.0).abs() < 0.1, "{p_classic} {p_low}");
    }

    /// L packets arrive at twice the rate of the link and ignore marks: the controller sees their delay, and half of
    /// them must be dropped in the end. Without drops the delay would grow to 10 s.
    #[test]
    fn overload_by_l_packets_alone_is_dropped() {
        let mut queue = queue();
        let mut late = Span::ZERO;
        for ms in 0..20_000 {
            for _ in 0..2 {
                queue.enqueue(at(ms * 1000), &packet(Ecn::Ect1), Load::NONE).unwrap();
            }
            if let Some((arrived, _)) = queue.dequeue(at(ms * 1000 + 500)) {
                late = at(ms * 1000 + 500).since(arrived);
            }
        }
        let dropped = queue.dropped.len();
        assert!((18_000..20_500).contains(&dropped), "{dropped}");
        assert!(late < Span::from_millis(500), "{late}");
    }

    /// p' = 1/8: p_CL = 1/4 and p_C = 1/64, the coupled law p_C = (p_CL / k)². `recur` selects a packet when the sum
    /// exceeds a whole number, so after 1 + 4n L packets and 1 + 64n classic packets.
    #[test]
    fn both_queues_are_coupled_by_the_square() {
        assert_eq!(several(129, 0.125, Ecn::Ect1), (32, 0));
        assert_eq!(several(129, 0.125, Ecn::NotEct), (0, 2));
        assert_eq!(several(129, 0.125, Ecn::Ect0), (2, 0));
        assert_eq!(several(129, 0.0, Ecn::Ect1), (0, 0));
    }

    /// p' = 5/8: p_C = 25/64 is above 1/4. 129·25/64 = 50.4 packets are dropped, and p_CL = 1 marks all other L packets:
    /// both probabilities of a queue add to one sum.
    #[test]
    fn overload_drops_in_both_queues() {
        assert_eq!(several(129, 0.625, Ecn::Ect1), (79, 50));
        assert_eq!(several(129, 0.625, Ecn::Ect0), (0, 50));
    }

    #[test]
    fn the_ramp_rises_from_0_at_800_us_to_1_at_1200_us() {
        let queue = queue();
        let native = [800, 900, 1_000, 1_200, 5_000].map(|micros| queue.native(Span::from_micros(micros)));
        let expected = [0.0, 0.25, 0.5, 1.0, 1.0];
        assert!(
            native.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-9),
            "{native:?}"
        );
        // A packet with one packet behind it is not marked for its delay (Th_len).
        let mut short = self::queue();
        (0..3).for_each(|_| short.enqueue(Time::ZERO, &packet(Ecn::Ect1), Load::NONE).unwrap());
        short.recur_low = Recur(1.0);
        let left = [5_000, 5_000, 5_000].map(|micros| short.dequeue(at(micros)).unwrap().1.ecn);
        assert_eq!(left, [Ecn::Ce, Ecn::Ect1, Ecn::Ect1]);
    }

    /// Both queues are full of packets of equal size: one of 16 is classic.
    #[test]
    fn the_low_queue_goes_first_and_the_classic_queue_keeps_its_share() {
        let mut queue = queue();
        for _ in 0..160 {
            for ecn in [Ecn::Ect1, Ecn::NotEct] {
                queue.enqueue(Time::ZERO, &packet(ecn), Load::NONE).unwrap();
            }
        }
        let left: Vec<Ecn> = (0..160).map(|_| queue.dequeue(Time::ZERO).unwrap().1.ecn).collect();
        assert_eq!((left[0], left[1]), (Ecn::Ect1, Ecn::NotEct));
        assert_eq!(left.iter().filter(|&&ecn| ecn == Ecn::NotEct).count(), 10);
    }

    #[test]
    fn an_impossible_value_is_refused() {
        let error = |config: DualPi2Config| config.check().unwrap_err().to_string();
        assert!(
            error(DualPi2Config { coupling: 0.5, ..DualPi2Config::default() }).starts_with("coupling: 0.5")
        );
        assert!(error(DualPi2Config { classic: 2.0, ..DualPi2Config::default() }).starts_with("classic: 2"));
        assert!(
            error(DualPi2Config { target: Span::ZERO, ..DualPi2Config::default() }).starts_with("target: 0")
        );
    }
}
