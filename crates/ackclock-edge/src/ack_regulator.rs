//! # Ack Regulator
//!
//! ## Source
//! CR02 section 5, figures 6 to 9; the readings are settled in `ack-regulator.md`.
//!
//! ## What it does
//! Holds returning ACKs and releases one only when the data queue has room for what it will call forth, so that the
//! queue never overflows until the sender's window has reached `alpha` times the buffer. Then it lets exactly one
//! packet drop, and the sender halves its window once. Works in congestion avoidance; slow start is not protected.
//!
//! ## Differences from the source
//! Figure 7 line 3 is a subtraction. The unit is the held ACK, never a part of one: an ACK costs the packets that it
//! newly covers less the duplicates that have paid for them (`cost`). Duplicates wait behind the gate, in order, and
//! are not counted; but as many go in one step as there are places, one each, for the sender may answer each with a
//! packet. An ECN-capable flow is marked instead of losing a packet.
//!
//! - The target is `alpha` times the buffer plus the packet in transmission, where that does not count against the buffer: the
//!   source has `alpha * QueueLim`.
//! - The queue is empty when nothing is in the buffer and nothing in transmission; the source says "data queue empty".
//! - Any drop sets conservative mode, also of a packet that the radio loses; in figure 8 the queue drops it.
//! - An ACK with data, SYN, FIN or RST is never held. Held ACKs that it makes obsolete are discarded.
//! - At most `alpha` times the buffer in ACKs is held, and no fewer than 16. Beyond that the two oldest that say nothing but a
//!   number are merged, and the later one has the cost of both.
//! - Where the link layer keeps a packet until the far end has acknowledged it, the packet takes room until then, and the
//!   release step also runs when it is freed. The source has no such buffer.
//!
//! Figure 9 forgets what is expected only when a packet leaves the queue empty. But a sender that lowers its window (BBR
//! looking for the least round-trip time, a timeout) answers no ACK of those that went then, and none of those that are
//! held: no packet leaves any more, and the flow stands still. So while none of the flow's data is in the queue, what is
//! expected is forgotten again, and the release step runs, whenever nothing has come for twice as long as an answer takes
//! by the flow's timestamps, or for the time `safety` where these do not tell. Twice, because no two answers take the same
//! time: one that is still on its way when it is given up finds the queue full of what was released in its place. What other
//! flows have in a queue that is shared makes no difference: when it leaves, this flow is not told.
//!
//! ## Validation
//! CR02 Table 3, figures 11 to 13 and the alpha sweep: see `papers/cr02`. Over the radio link control of UMTS it drops less than
//! no regulator and delivers more (`crates/ackclock-scenario/tests/windows.rs`).

mod accounts;
mod ack_queue;
mod answer;

use std::collections::VecDeque;

use ackclock_core::{ConfigError, Ecn, FlowId, Segment, Span, Time};
use ackclock_link::{Cause, LinkView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FlowContext, Output, Regulator, RegulatorConfig, Verdict};
use accounts::Accounts;
use ack_queue::AckQueue;
use answer::Answer;

/// Holds ACKs until the data queue has room for what they call forth; one loss when the window reaches its target.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The window is let grow to this multiple of the buffer before one packet is let drop.
    pub alpha: f64,
    /// What an ACK that covers several packets costs.
    pub cost: Cost,
    /// Buffer set aside for the fast retransmission when the third duplicate is released: 0 or 1 packet.
    pub fast_retransmit_reserve: u32,
    /// Buffer set aside for limited transmit (RFC 3042), one packet at each of the first so many duplicates: 0 to 2.
    pub limited_transmit_reserve: u32,
    /// What is done to an ECN-capable flow whose window has reached its target.
    pub ecn: EcnResponse,
    /// A flow without data in the queue expects nothing more, and releases what there is room for, when nothing has come
    /// for this long, or for twice as long as the sender's answers take by the flow's timestamps where that is shorter, but at
    /// least 1 ms; 0s is never.
    pub safety: Span,
}

/// What an ACK that covers several packets costs in buffer space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// The packets newly covered less those that duplicates have paid for, at least one.
    Covered,
    /// One, whatever it covers.
    One,
}

/// What is done to an ECN-capable flow whose window has reached its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnResponse {
    /// Nothing special: one packet is let drop, as for every other flow.
    Ignore,
    /// The next data packet is marked CE.
    MarkData,
    /// The next released ACK carries ECE.
    EchoAck,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha: 2.0,
            cost: Cost::Covered,
            fast_retransmit_reserve: 1,
            limited_transmit_reserve: 0,
            ecn: EcnResponse::MarkData,
            safety: Span::from_secs(1),
        }
    }
}

impl ackclock_core::Config for Config {
    fn check(&self) -> Result<(), ConfigError> {
        if !(self.alpha > 0.0 && self.alpha <= 1000.0) {
            return Err(ConfigError::new("alpha", format!("{} is not above 0 and at most 1000", self.alpha)));
        }
        for (key, value, most) in [
            ("fast_retransmit_reserve", self.fast_retransmit_reserve, 1),
            ("limited_transmit_reserve", self.limited_transmit_reserve, 2),
        ] {
            if value > most {
                return Err(ConfigError::new(key, format!("{value} is more than {most} packets")));
            }
        }
        Ok(())
    }
}

impl RegulatorConfig for Config {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(AckRegulator::new(self.clone())))
    }
}

/// The Ack Regulator of one flow.
pub struct AckRegulator {
    config: Config,
    accounts: Accounts,
    held: AckQueue,
    answer: Answer,
    /// AckReleaseCount (figure 9): packets expected because of ACKs already released.
    expected: u32,
    mode: Mode,
    mark: Mark,
    /// Data packets of the flow that have come and neither departed nor were dropped.
    inside: u32,
    /// When the last of them left or an ACK was last released, while there are none.
    quiet_since: Option<Time>,
    output: VecDeque<Output>,
}

/// ConservativeMode (figure 8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Room is kept for one packet more than the ACK calls forth.
    Conservative,
    /// No room is kept: the next growth of the window overflows the queue by one packet.
    LetOneDrop,
}

/// The mark that stands in for the loss of an ECN-capable flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    /// The next time that the window reaches its target, it is marked.
    Armed,
    /// The next packet or ACK carries the mark.
    Due,
    /// It was set; not again in this window.
    Set,
}

impl AckRegulator {
    /// A regulator of a flow that may be met anywhere in its life.
    pub fn new(config: Config) -> Self {
        Self {
            accounts: Accounts::new(config.cost),
            held: AckQueue::default(),
            answer: Answer::default(),
            expected: 0,
            mode: Mode::Conservative,
            mark: Mark::Armed,
            inside: 0,
            quiet_since: None,
            output: VecDeque::new(),
            config,
        }
    }

    /// BufferAvail (figure 7 lines 2 and 3): the room that no packet already expected will take.
    fn available(&self, view: LinkView) -> u32 {
        let kept = u32::from(self.mode == Mode::Conservative);
        view.room(self.accounts.packet_bytes()).saturating_sub(self.expected.saturating_add(kept))
    }

    /// The release step (figure 7): ACKs go while there is room for what they call forth.
    ///
    /// They reach the sender together, so a duplicate takes a place of the step although it is not counted: it may call
    /// forth a packet (limited transmit, RFC 3042; the fast retransmission; a window inflated by duplicates). Released
    /// together for one place, the duplicates that a full queue has held up would overflow it, and with limited transmit
    /// it is the retransmission that is lost.
    fn release(&mut self, now: Time, view: LinkView) {
        let mut duplicates = 0;
        while let Some(head) = self.held.head() {
            let fits = head.cost.max(1) <= self.available(view).saturating_sub(duplicates);
            // One that asks for more than the empty queue has would never go (section 6, deadlock).
            let stuck = view.is_empty() && self.expected == 0 && duplicates == 0;
            if !fits && !stuck {
                break;
            }
            let expected = self.expected;
            self.release_head(now);
            // What it reserved is taken off what is available.
            duplicates += u32::from(self.expected == expected);
        }
    }

    fn release_head(&mut self, now: Time) {
        let Some(head) = self.held.pop() else { return };
        let mut ack = head.segment;
        self.answer.on_released(now, &ack);
        self.expected = self.expected.saturating_add(head.cost);
        match self.accounts.on_released(&ack) {
            3 => self.expected += self.config.fast_retransmit_reserve,
            duplicate @ 1..=2 if duplicate <= self.config.limited_transmit_reserve => self.expected += 1,
            _ => {}
        }
        if self.mark == Mark::Due && self.config.ecn == EcnResponse::EchoAck {
            ack.flags |= ackclock_core::Flags::ECE;
            self.mark = Mark::Set;
        }
        if self.quiet_since.is_some() {
            self.quiet_since = Some(now);
        }
        self.output.push_back(Output::ToSender(ack));
    }

    /// The target (figure 8): `alpha * QueueLim` in bytes. The packet in transmission belongs to the queue here
    /// (`ack-regulator.md` section 5, occupancy convention).
    fn target(&self, view: LinkView) -> f64 {
        let packets = f64::from(view.capacity.packets(self.accounts.packet_bytes()));
        self.config.alpha
            * (packets + f64::from(self.accounts.in_service()))
            * f64::from(self.accounts.payload())
    }

    /// Figure 8 line 2: the target is reached.
    fn leave_conservative_mode(&mut self, view: LinkView) {
        if f64::from(self.accounts.window()) <= self.target(view) {
            return;
        }
        if self.accounts.ecn_capable() && self.config.ecn != EcnResponse::Ignore {
            if self.mark == Mark::Armed {
                self.mark = Mark::Due;
                self.accounts.mark_window();
            }
        } else {
            self.mode = Mode::LetOneDrop;
        }
    }

    /// Figure 8 line 4: the window was halved, or the queue ran empty.
    fn return_to_conservative_mode(&mut self, view: LinkView) {
        let halved = f64::from(self.accounts.window()) < self.target(view) / 2.0;
        if halved || view.is_empty() {
            self.mode = Mode::Conservative;
        }
        if self.mark == Mark::Set && (halved || self.accounts.marked_window_passed()) {
            self.mark = Mark::Armed;
        }
    }

    /// The buffer may have room for one more.
    fn on_room(&mut self, now: Time, view: LinkView) {
        self.release(now, view);
        if view.is_empty() {
            // Figure 9 line 4.
            self.expected = 0;
        }
    }

    /// A data packet has departed or was dropped.
    fn on_left(&mut self, now: Time) {
        self.inside = self.inside.saturating_sub(1);
        if self.inside == 0 {
            self.quiet_since = Some(now);
        }
    }

    /// What the memory for ACKs is bounded by (section 9).
    fn most_held(&self, view: LinkView) -> usize {
        const FEWEST: f64 = 16.0;
        let payload = f64::from(self.accounts.payload().max(1));
        (self.target(view) / payload).clamp(FEWEST, 1e6) as usize
    }
}

impl Regulator for AckRegulator {
    fn on_data(&mut self, now: Time, segment: &Segment, view: LinkView) -> Verdict {
        if !segment.has_data() {
            return Verdict::Forward;
        }
        self.inside += 1;
        self.quiet_since = None;
        self.answer.on_data(now, segment);
        // Figure 9 line 3, for a packet that will be queued or dropped.
        self.expected = self.expected.saturating_sub(1);
        self.accounts.on_arrival(segment, view);
        let markable = matches!(segment.ecn, Ecn::Ect0 | Ecn::Ect1);
        if self.mark == Mark::Due && self.config.ecn == EcnResponse::MarkData && markable {
            self.mark = Mark::Set;
            return Verdict::MarkCe;
        }
        Verdict::Forward
    }

    fn on_queued(&mut self, _: Time, segment: &Segment, view: LinkView) {
        if segment.has_data() {
            self.accounts.on_queued(segment);
            self.return_to_conservative_mode(view);
        }
    }

    fn on_dropped(&mut self, now: Time, segment: &Segment, _: Cause, _: LinkView) {
        // Figure 8 line 3.
        self.mode = Mode::Conservative;
        if segment.has_data() {
            self.on_left(now);
        }
    }

    fn on_departed(&mut self, now: Time, segment: &Segment, view: LinkView) {
        if !segment.has_data() {
            return;
        }
        self.on_room(now, view);
        self.on_left(now);
        self.return_to_conservative_mode(view);
    }

    fn on_freed(&mut self, now: Time, segment: &Segment, view: LinkView) {
        if segment.has_data() {
            self.on_room(now, view);
            self.return_to_conservative_mode(view);
        }
    }

    fn handle_ack(&mut self, now: Time, ack: Segment, view: LinkView) {
        if !ack.is_pure_ack() {
            // Never held; what it acknowledges counts as released, and held ACKs behind it would arrive as false
            // duplicates.
            self.accounts.on_passed(ack.ack);
            for stale in self.held.discard_up_to(ack.ack) {
                self.output.push_back(Output::Discard(stale));
            }
            self.output.push_back(Output::ToSender(ack));
            return;
        }
        let cost = self.accounts.on_ack(&ack);
        self.held.push(ack, cost);
        if self.held.len() > self.most_held(view)
            && let Some(merged) = self.held.merge_oldest()
        {
            self.output.push_back(Output::Discard(merged));
        }
        self.leave_conservative_mode(view);
        self.release(now, view);
        if self.inside == 0 {
            self.quiet_since.get_or_insert(now);
        }
    }

    fn handle_timeout(&mut self, now: Time, view: LinkView) {
        if self.poll_timeout().is_some_and(|deadline| deadline <= now) {
            // Whatever was expected would have come.
            self.expected = 0;
            self.release(now, view);
            self.quiet_since = Some(now);
        }
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        // Where a shared queue has no room, the step is run again and again.
        const LEAST: Span = Span::from_millis(1);
        const PATIENCE: u64 = 2;
        let waits = !self.held.is_empty() && self.config.safety > Span::ZERO;
        let answer = self.answer.longest().map_or(Span::MAX, |longest| (longest * PATIENCE).max(LEAST));
        self.quiet_since.filter(|_| waits).map(|since| since + answer.min(self.config.safety))
    }

    fn close(&mut self, now: Time, _: FlowId) {
        while !self.held.is_empty() {
            self.release_head(now);
        }
    }

    fn held(&self, _: FlowId) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests;
