//! # Power-controlled link
//!
//! ## Source
//! Möller, "Automatic control in TCP over wireless", KTH 2005, sections 4.2 to 4.4: the uplink of a cellular system, whose frames are
//! retransmitted on negative acknowledgements as in cdma2000's radio link protocol; `power-control.md` section 4.
//!
//! ## What it does
//! Slots of a TTI begin at multiples of its length, and each carries a frame of rate x TTI, in whole bytes. A packet is cut into as
//! many frames as it needs; the last one is padded. A frame that is damaged in slot t is sent again in slot t + `guard`, before new
//! frames; one that is damaged again in slot t + 2 `guard`, and so on for as many rounds as the scheme has. A round may send several
//! copies in slots behind each other: all of them are sent, and the next round counts from the last. A packet is complete at the
//! end of the slot in which its last missing frame arrives; it is handed on at once, or behind all packets before it, and then
//! travels for `delay`. Where a frame is given up its packet is lost, and what is left of it is sent all the same: the sender learns
//! nothing of it. `arq = "none"` gives up at the first damage.
//!
//! Which slots are damaged says `errors`, by default the [power control](crate::errors::PowerControlConfig), whose reference is moved
//! by every slot: those that this link leaves idle carry frames of others. A packet departs when it is handed on. Errors come from the
//! stream `NAME/errors`.
//!
//! ## Differences from the source
//! None known. The source says nothing of a scheme in which two frames are due in one slot, as with several copies a round: the one
//! that was due first goes first.
//!
//! ## Validation
//! Slots by hand (unit tests); the packet delay law for 1 to 10 frames and three steps, against the exact law of the Markov chain,
//! frame error rate, and the share of packets that three later ones overtake (`tests/power_controlled.rs`); the laws of links.

mod config;

pub use config::{Arq, PowerControlledConfig};

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use ackclock_core::{FlowId, Histogram, RadioReport, Segment, Time};

use crate::errors::{AnyErrorProcess, ErrorProcess};
use crate::queue::{AnyQueue, Queue};
use crate::reassembly::Reassembly;
use crate::{BufferMeaning, Cause, Departures, Fate, Link, LinkEvent, LinkView, Load, Medium, Repetitions};

/// A queue, a transmitter of frames, and what it takes to put packets together again.
pub(crate) struct PowerControlled {
    config: PowerControlledConfig,
    /// Expected share of frames that arrive.
    good: f64,
    /// Size of a frame.
    bytes: u32,
    errors: AnyErrorProcess,
    queue: AnyQueue,
    meaning: BufferMeaning,
    /// The slot in which a frame is being sent.
    sending: Option<(u64, Frame)>,
    /// Frames to send again, by the slot from which on; those of one round after the other.
    requested: VecDeque<(u64, Frame)>,
    /// Bytes of the newest packet that are in no frame yet.
    uncut: u32,
    /// New frames go from this slot on.
    free: u64,
    packets: Reassembly,
    waits: Histogram,
    /// Slots in which a frame of this link was sent, and those of them in which it arrived.
    used: u64,
    arrived: u64,
}

/// A frame of a packet.
#[derive(Clone, Copy, Debug)]
struct Frame {
    packet: u64,
    /// How often it was sent again.
    times: u32,
    /// Rounds that were begun, and copies of the last of them that are still to be sent behind this one.
    rounds: usize,
    copies: u32,
    fate: Fate,
}

impl PowerControlled {
    fn new(
        config: PowerControlledConfig,
        good: f64,
        errors: AnyErrorProcess,
        queue: AnyQueue,
        meaning: BufferMeaning,
    ) -> Self {
        Self {
            bytes: config.frame_bytes(),
            packets: Reassembly::new(config.order, config.tti, config.delay),
            config,
            good,
            errors,
            queue,
            meaning,
            sending: None,
            requested: VecDeque::new(),
            uncut: 0,
            free: 0,
            waits: Histogram::default(),
            used: 0,
            arrived: 0,
        }
    }

    fn start_of(&self, slot: u64) -> Time {
        Time::from_nanos(self.config.tti.as_nanos().saturating_mul(slot))
    }

    /// Whether there is something that was never sent.
    fn has_new(&self) -> bool {
        self.uncut > 0 || !self.queue.is_empty()
    }

    /// When a slot next begins in which a frame is sent, or ends.
    fn next_change(&self) -> Time {
        match (&self.sending, self.requested.front()) {
            (Some((slot, _)), _) => self.start_of(slot + 1),
            (None, _) if self.has_new() => self.start_of(self.free),
            (None, Some(&(due, _))) => self.start_of(due.max(self.free)),
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
            match self.sending.take() {
                Some((slot, frame)) => self.end(at, slot, frame),
                None => self.begin(at),
            }
        }
    }

    /// A slot begins.
    fn begin(&mut self, now: Time) {
        let slot = now.as_nanos() / self.config.tti.as_nanos();
        let again = self.requested.pop_front_if(|&mut (due, _)| due <= slot);
        if let Some(frame) = again.map(|(_, frame)| frame).or_else(|| self.cut(now)) {
            (self.sending, self.free) = (Some((slot, frame)), slot + 1);
            self.used += 1;
        }
    }

    /// Cuts a new frame; none where the queue has dropped all that waited.
    fn cut(&mut self, now: Time) -> Option<Frame> {
        if self.uncut == 0 {
            let next = self.queue.dequeue(now);
            self.tell_drops(now);
            let (arrived, segment) = next?;
            self.waits.record(now.since(arrived));
            self.start(&segment);
        }
        self.uncut = self.uncut.saturating_sub(self.bytes);
        self.packets.cut(now, self.uncut);
        let packet = self.packets.next_number() - 1;
        Some(Frame { packet, times: 0, rounds: 0, copies: 0, fate: Fate::Lost })
    }

    fn start(&mut self, segment: &Segment) {
        self.uncut = segment.wire_bytes();
        self.packets.begin(segment);
    }

    /// A slot ends, in which a frame was sent.
    fn end(&mut self, at: Time, slot: u64, mut frame: Frame) {
        let fate = self.errors.fate(self.start_of(slot));
        if fate == Fate::Arrives {
            self.arrived += 1;
            if frame.fate == Fate::Lost {
                self.packets.arrive(at, frame.packet, frame.times);
            }
            frame.fate = fate;
        }
        frame.times += 1;
        if frame.copies > 0 {
            frame.copies -= 1;
            self.requested.push_front((slot + 1, frame));
        } else if frame.fate == Fate::Lost {
            let Some(copies) = self.config.copies(frame.rounds) else {
                return self.packets.give_up(at, frame.packet);
            };
            (frame.rounds, frame.copies) = (frame.rounds + 1, copies - 1);
            self.requested.push_back((slot + u64::from(self.config.guard), frame));
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
            Some((_, frame)) if frame.times == 0 => self.packets.place(frame.packet),
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
            self.start(segment);
            let slot = now.as_nanos().div_ceil(self.config.tti.as_nanos());
            self.free = self.free.max(slot);
            self.waits.record(self.start_of(self.free).since(now));
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

impl Link for PowerControlled {
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

    /// What arrived in frames, and what would have in the mean in the slots that this link left to others.
    fn capacity_bps(&mut self, until: Time) -> Option<f64> {
        self.advance(until);
        let tti = self.config.tti.as_secs_f64();
        let idle = (until.since(Time::ZERO).as_secs_f64() / tti - self.used as f64).max(0.0);
        let all = idle + self.used as f64;
        let rate = f64::from(self.bytes) * 8.0 / tti;
        (all > 0.0).then(|| rate * (self.arrived as f64 + idle * self.good) / all)
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
        self.requested = VecDeque::new();
    }
}

#[cfg(test)]
mod tests;
