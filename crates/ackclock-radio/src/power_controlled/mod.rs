//! # Power-controlled link
//!
//! ## Source
//! Source: Möller, "Automatic control in TCP over wireless", KTH 2005, sections 4.2 to 4.4: the uplink of a cellular
//! system, whose frames are retransmitted after negative acknowledgements as in cdma2000's radio link protocol;
//! described in `power-control.md` section 4.
//!
//! ## What it does
//! Slots start at multiples of one TTI; each slot has a frame of rate x TTI, in whole bytes. A packet is cut into
//! frames; its last frame is padded. A frame damaged in slot t is retransmitted in slot t + `guard`, before new frames,
//! then in slot t + 2 `guard`, and so on for as many rounds as the scheme has. A round may have several copies in
//! consecutive slots: all copies are sent, and the next round counts from the last copy. A packet is complete at the
//! end of the slot in which its last missing frame arrives. The packet is delivered at once, or after all earlier
//! packets, and then propagates for `delay`. If a frame is given up, its packet is lost, but the other frames of the
//! packet are still sent: the transmitter does not learn of the loss. `arq = "none"` gives up a frame when it is first
//! damaged.
//!
//! `errors` decides in which slots frames are damaged. The default error process is the [power
//! control](ackclock_link::errors::PowerControlConfig), whose reference changes in every slot: in slots that this link leaves
//! idle, other users send frames. A packet departs when it is delivered. Random numbers for errors come from the stream
//! `NAME/errors`.
//!
//! ## Differences from the source
//! No difference from the source is known. The source does not cover schemes in which two frames are due in one slot,
//! as with several copies per round: here the frame that was due first is sent first.
//!
//! ## Validation
//! Unit tests compare slots worked out by hand, and check the properties required of all links.
//! `tests/power_controlled.rs` compares the packet delay distribution for 1 to 10 frames and three steps with the exact
//! distribution of the Markov chain. `tests/power_controlled.rs` also checks the frame error rate, and the share of
//! packets that three later packets overtake.

mod config;

pub use config::{Arq, PowerControlledConfig};

use std::collections::VecDeque;

use ackclock_core::{Rate, Time};
use ackclock_link::Fate;
use ackclock_link::errors::{AnyErrorProcess, ErrorProcess};

use crate::blocks::{Packets, Transmitter};

/// Transmitter that sends frames slot by slot.
struct PowerControlled {
    config: PowerControlledConfig,
    /// Expected share of frames that arrive.
    good: f64,
    /// Size of a frame, bytes.
    bytes: u32,
    errors: AnyErrorProcess,
    /// Number of the current slot, and the frame in transmission.
    sending: Option<(u64, Frame)>,
    /// Frames to retransmit, each with the first slot in which it may be sent; ordered by round.
    requested: VecDeque<(u64, Frame)>,
    /// Number of the first slot that is free for new frames.
    free: u64,
    /// Number of slots in which this link sent a frame.
    used: u64,
    /// Number of slots in which a frame of this link arrived.
    arrived: u64,
}

/// A frame of a packet.
#[derive(Clone, Copy, Debug)]
struct Frame {
    packet: u64,
    /// Number of retransmissions of the frame so far.
    times: u32,
    /// Number of retransmission rounds started for the frame.
    rounds: usize,
    /// Number of copies that the current round still has to send after this copy.
    copies: u32,
    fate: Fate,
}

impl PowerControlled {
    fn new(config: PowerControlledConfig, good: f64, errors: AnyErrorProcess) -> Self {
        let (requested, bytes) = (VecDeque::new(), config.frame_bytes());
        Self { config, good, bytes, errors, sending: None, requested, free: 0, used: 0, arrived: 0 }
    }

    fn start_of(&self, slot: u64) -> Time {
        Time::from_nanos(self.config.tti.as_nanos().saturating_mul(slot))
    }

    /// Starts a slot, and sends a frame if one is due.
    fn begin(&mut self, now: Time, packets: &mut Packets) {
        let slot = now.as_nanos() / self.config.tti.as_nanos();
        let new = |(packet, _)| Frame { packet, times: 0, rounds: 0, copies: 0, fate: Fate::Lost };
        let again = self.requested.pop_front_if(|&mut (due, _)| due <= slot);
        let frame = again.map(|(_, frame)| frame).or_else(|| packets.cut(now, self.bytes).map(new));
        if let Some(frame) = frame {
            (self.sending, self.free) = (Some((slot, frame)), slot + 1);
            self.used += 1;
        }
    }

    /// Ends a slot in which a frame was sent.
    fn end(&mut self, at: Time, slot: u64, mut frame: Frame, packets: &mut Packets) {
        let fate = self.errors.fate(self.start_of(slot));
        if fate == Fate::Arrives {
            self.arrived += 1;
            if frame.fate == Fate::Lost {
                packets.begun.arrive(at, frame.packet, frame.times);
            }
            frame.fate = fate;
        }
        frame.times += 1;
        if frame.copies > 0 {
            frame.copies -= 1;
            self.requested.push_front((slot + 1, frame));
        } else if frame.fate == Fate::Lost {
            let Some(copies) = self.config.copies(frame.rounds) else {
                return packets.begun.give_up(at, frame.packet);
            };
            (frame.rounds, frame.copies) = (frame.rounds + 1, copies - 1);
            self.requested.push_back((slot + u64::from(self.config.guard), frame));
        }
    }
}

impl Transmitter for PowerControlled {
    fn next_change(&self, packets: &Packets) -> Time {
        match (&self.sending, self.requested.front()) {
            (Some((slot, _)), _) => self.start_of(slot + 1),
            (None, _) if packets.has_new() => self.start_of(self.free),
            (None, Some(&(due, _))) => self.start_of(due.max(self.free)),
            (None, None) => Time::NEVER,
        }
    }

    fn change(&mut self, at: Time, packets: &mut Packets) {
        match self.sending.take() {
            Some((slot, frame)) => self.end(at, slot, frame, packets),
            None => self.begin(at, packets),
        }
    }

    fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    fn first_sent(&self) -> Option<u64> {
        self.sending.filter(|(_, frame)| frame.times == 0).map(|(_, frame)| frame.packet)
    }

    fn ready(&mut self, now: Time) -> Time {
        self.free = self.free.max(now.as_nanos().div_ceil(self.config.tti.as_nanos()));
        self.start_of(self.free)
    }

    fn rate(&self) -> Rate {
        self.config.rate
    }

    /// Counts frames that arrived, plus the expected number of frames that would have arrived in slots that this link
    /// left idle.
    fn capacity_bps(&self, until: Time) -> Option<f64> {
        let tti = self.config.tti.as_secs_f64();
        let idle = (until.since(Time::ZERO).as_secs_f64() / tti - self.used as f64).max(0.0);
        let all = idle + self.used as f64;
        let rate = f64::from(self.bytes) * 8.0 / tti;
        (all > 0.0).then(|| rate * (self.arrived as f64 + idle * self.good) / all)
    }

    fn let_go(&mut self) {
        self.requested = VecDeque::new();
    }
}

#[cfg(test)]
mod tests;
