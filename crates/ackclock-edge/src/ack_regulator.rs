//! # Ack Regulator
//!
//! ## Source
//! Source: CR02 section 5, figures 6 to 9. `ack-regulator.md` settles open questions.
//!
//! ## What it does
//! The Ack Regulator delays returning ACKs, and releases an ACK only when the data queue has room for the packets that
//! this ACK will trigger. The queue does not overflow until the sender's window reaches `alpha` times the buffer. At a
//! window of `alpha` times the buffer, the regulator lets exactly one packet drop, so the sender halves its window
//! once. The Ack Regulator acts in congestion avoidance and does not protect slow start.
//!
//! ## Differences from the source
//! Figure 7 line 3 is read as a subtraction. Each ACK is held and released as a unit. The cost of an ACK is the number
//! of packets that it newly covers, minus the duplicate ACKs that already paid for these packets (`cost`). Duplicate
//! ACKs are held in order and cost nothing. One release step releases at most as many duplicates as the queue has room
//! for packets, because the sender may answer each duplicate with a packet. An ECN-capable flow is marked instead of
//! losing a packet. ECE is never added to an ACK with an AccECN counter (RFC 9768); data is marked instead.
//!
//! - The target window is `alpha` times the sum of the buffer and the packet in transmission. If the buffer already
//!   counts the packet in transmission, this packet is not added again. In the source, the target window is `alpha *
//!   QueueLim`.
//! - The queue counts as empty if no packet waits and no packet is in transmission. CR02 writes "data queue empty" for
//!   this condition.
//! - Any drop sets conservative mode, including a loss on the radio link. In figure 8, only drops from the queue set
//!   conservative mode.
//! - An ACK with data, SYN, FIN or RST is never held. When an unheld ACK passes, the held ACKs that it makes obsolete
//!   are discarded.
//! - The number of held ACKs is limited to `alpha` times the buffer, and to at least 16. If more ACKs are held, the two
//!   oldest ACKs that contain only an ACK number and equal marks are merged. The later of two merged ACKs gets the cost of both ACKs.
//! - If the link layer keeps a packet until the far end has acknowledged it, the packet occupies the buffer until then.
//!   Freeing a packet from the buffer also runs the release step. In the source, departing packets leave the buffer at
//!   once.
//!
//! Figure 9 resets the count of expected packets only when a departure leaves the queue empty. A sender that lowers its
//! window (BBR probing for the minimum RTT, a timeout) does not answer the ACKs already released. Without answers to
//! the released ACKs, no packet departs, the remaining ACKs stay held, and the flow stalls. While none of the flow's
//! data is in the queue, a timer resets the count of expected packets and runs the release step. The timer of the
//! expected packets expires after twice the sender's response time, measured by TCP timestamps, or after `safety`
//! without timestamps. The sender's response time is doubled, because response times vary, and a packet that arrives
//! after the reset finds a queue filled by other packets. In a shared queue, departures of other flows' packets are not
//! signalled to this flow and change nothing.
//!
//! ## Validation
//! Reproduced results: CR02 Table 3, figures 11 to 13 and the alpha sweep, see `papers/cr02`. Over the radio link
//! control of UMTS, the Ack Regulator drops fewer packets than no regulator and delivers more
//! (`crates/ackclock-scenario/tests/windows.rs`).

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

/// Delays ACKs until the data queue has room for the packets they will trigger. Allows one loss when the sender's
/// window reaches its target.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Multiple of the buffer to which the sender's window may grow before one packet is dropped.
    pub alpha: f64,
    /// Cost of an ACK that covers several packets.
    pub cost: Cost,
    /// Room reserved in the queue for the fast retransmission when the third duplicate ACK is released: 0 or 1 packet.
    pub fast_retransmit_reserve: u32,
    /// Number of first duplicate ACKs, 0 to 2, for each of which room for one packet is reserved in the queue (limited
    /// transmit, RFC 3042).
    pub limited_transmit_reserve: u32,
    /// Response when the window of an ECN-capable flow reaches its target.
    pub ecn: EcnResponse,
    /// Time without data after which a flow without queued data stops expecting packets and releases ACKs. With TCP
    /// timestamps, twice the sender's response time applies if it is shorter, but at least 1 ms. 0s disables this
    /// timer.
    pub safety: Span,
}

/// Cost in buffer space of an ACK that covers several packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// The cost is the number of newly covered packets, minus the packets that duplicate ACKs have paid for; at least
    /// one packet.
    Covered,
    /// The cost is always one packet.
    One,
}

/// Response when the window of an ECN-capable flow reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnResponse {
    /// ECN is not used: one packet is dropped, as for flows without ECN.
    Ignore,
    /// The next data packet is marked CE (congestion experienced).
    MarkData,
    /// The next released ACK has the ECE flag set. If ACKs count marks (AccECN), the next data packet is marked instead.
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

/// Ack Regulator of one flow.
pub struct AckRegulator {
    config: Config,
    accounts: Accounts,
    held: AckQueue,
    answer: Answer,
    /// AckReleaseCount (figure 9): number of packets expected as answers to released ACKs.
    expected: u32,
    mode: Mode,
    mark: Mark,
    /// Whether the flow's ACKs count marks (AccECN, RFC 9768). An ECE bit added to such an ACK would corrupt the count,
    /// so data is marked instead.
    counts_marks: bool,
    /// Number of the flow's data packets inside the bearer: packets that arrived, and neither departed nor were
    /// dropped.
    inside: u32,
    /// Time at which the flow's last data packet left the bearer or an ACK was last released; `None` while data is
    /// inside the bearer.
    quiet_since: Option<Time>,
    output: VecDeque<Output>,
}

/// ConservativeMode (figure 8) of the Ack Regulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// The regulator reserves room for one packet more than the ACK triggers.
    Conservative,
    /// The regulator reserves no extra room, so the next growth of the window overflows the queue by one packet.
    LetOneDrop,
}

/// State of the ECN mark that replaces the loss of an ECN-capable flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    /// The flow will be marked when its window next reaches the target.
    Armed,
    /// The next packet or ACK will be marked.
    Due,
    /// The window has been marked, and is not marked again.
    Set,
}

impl AckRegulator {
    /// Creates a regulator for a flow, which may be new or already running.
    pub fn new(config: Config) -> Self {
        Self {
            accounts: Accounts::new(config.cost),
            held: AckQueue::default(),
            answer: Answer::default(),
            expected: 0,
            mode: Mode::Conservative,
            mark: Mark::Armed,
            counts_marks: false,
            inside: 0,
            quiet_since: None,
            output: VecDeque::new(),
            config,
        }
    }

    /// BufferAvail (figure 7 lines 2 and 3): room in the queue, in packets, that is not reserved for expected packets.
    fn available(&self, view: LinkView) -> u32 {
        let kept = u32::from(self.mode == Mode::Conservative);
        view.room(self.accounts.packet_bytes()).saturating_sub(self.expected.saturating_add(kept))
    }

    /// Release step (figure 7): releases ACKs while the queue has room for the packets that they trigger.
    ///
    /// All ACKs of one release step reach the sender together. A duplicate ACK costs nothing, yet takes one packet of
    /// the step's room, because it may trigger a packet (limited transmit, RFC 3042; fast retransmission; window
    /// inflation). Otherwise, duplicate ACKs held while the queue was full would be released together into room for one
    /// packet, and the answers would overflow the queue. With limited transmit, an overflow of the queue would also
    /// lose the retransmission.
    fn release(&mut self, now: Time, view: LinkView) {
        let mut duplicates = 0;
        while let Some(head) = self.held.head() {
            let fits = head.cost.max(1) <= self.available(view).saturating_sub(duplicates);
            // An ACK that needs more room than an empty queue has is released anyway, because it would otherwise be
            // held for ever (section 6, deadlock).
            let stuck = view.is_empty() && self.expected == 0 && duplicates == 0;
            if !fits && !stuck {
                break;
            }
            let expected = self.expected;
            self.release_head(now);
            // If the released ACK reserved room for packets, `available` is already reduced.
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
        if self.mark == Mark::Due && self.response() == EcnResponse::EchoAck {
            ack.flags |= ackclock_core::Flags::ECE;
            self.mark = Mark::Set;
        }
        if self.quiet_since.is_some() {
            self.quiet_since = Some(now);
        }
        self.output.push_back(Output::ToSender(ack));
    }

    /// Response to a window that reaches its target, possible with the flow's ECN feedback.
    fn response(&self) -> EcnResponse {
        match self.config.ecn {
            EcnResponse::EchoAck if self.counts_marks => EcnResponse::MarkData,
            response => response,
        }
    }

    /// Target window (figure 8) in bytes: `alpha * QueueLim`, including the packet in transmission (`ack-regulator.md`
    /// section 5, occupancy convention).
    fn target(&self, view: LinkView) -> f64 {
        let packets = f64::from(view.capacity.packets(self.accounts.packet_bytes()));
        self.config.alpha
            * (packets + f64::from(self.accounts.in_service()))
            * f64::from(self.accounts.payload())
    }

    /// Leaves conservative mode if the sender's window has reached its target (figure 8 line 2).
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

    /// Returns to conservative mode if the window was halved or the queue is empty (figure 8 line 4).
    fn return_to_conservative_mode(&mut self, view: LinkView) {
        let halved = f64::from(self.accounts.window()) < self.target(view) / 2.0;
        if halved || view.is_empty() {
            self.mode = Mode::Conservative;
        }
        if self.mark == Mark::Set && (halved || self.accounts.marked_window_passed()) {
            self.mark = Mark::Armed;
        }
    }

    /// Runs the release step after the buffer may have gained room for a packet.
    fn on_room(&mut self, now: Time, view: LinkView) {
        self.release(now, view);
        if view.is_empty() {
            // No packets are expected any more (figure 9 line 4).
            self.expected = 0;
        }
    }

    /// Counts a data packet that departed or was dropped.
    fn on_left(&mut self, now: Time) {
        self.inside = self.inside.saturating_sub(1);
        if self.inside == 0 {
            self.quiet_since = Some(now);
        }
    }

    /// Maximum number of held ACKs (section 9).
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
        // The data packet was expected (figure 9 line 3), whether it will be queued or dropped.
        self.expected = self.expected.saturating_sub(1);
        self.accounts.on_arrival(segment, view);
        let markable = matches!(segment.ecn, Ecn::Ect0 | Ecn::Ect1);
        if self.mark == Mark::Due && self.response() == EcnResponse::MarkData && markable {
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

    fn on_dropped(&mut self, now: Time, segment: &Segment, cause: Cause, view: LinkView) {
        // Every drop sets conservative mode (figure 8 line 3).
        self.mode = Mode::Conservative;
        if segment.has_data() {
            // A packet that leaves at the age limit makes room in the buffer like a departure.
            if cause == Cause::Aged {
                self.on_room(now, view);
            }
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
            // An ACK with data or flags is never held, and the data it acknowledges counts as released. Held ACKs for
            // data acknowledged by a passing ACK are discarded, because they would look like duplicates to the sender.
            self.accounts.on_passed(ack.ack);
            for stale in self.held.discard_up_to(ack.ack) {
                self.output.push_back(Output::Discard(stale));
            }
            self.output.push_back(Output::ToSender(ack));
            return;
        }
        // Without AccECN, a pure ACK has neither AE nor CWR.
        self.counts_marks |= ack.ace() > 1;
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
            // All expected packets should have arrived by now.
            self.expected = 0;
            self.release(now, view);
            self.quiet_since = Some(now);
        }
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        // Minimum interval of the release step while a shared queue has no room.
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
