//! # Media sender
//!
//! Packetises frames at the target bitrate, and paces the packets.
//!
//! ## Source
//! draft-ietf-rmcat-gcc-02 sections 3, 4 and 6; RFC 4585 (NACK and picture loss).
//!
//! ## What it does
//! Each frame has the size of the target bitrate divided by the frame rate, headers included; a key frame is larger. A
//! frame is divided into packets of equal size. Requested packets go before new ones, each at most once: media is not
//! reliable, and a packet that is lost twice is lost.
//!
//! ## Differences from the source
//! - The draft's pacer sends the target bitrate in bursts of 5 ms. Ours sends packet by packet and by default at 2.5
//!   times the target, as libwebrtc does, since otherwise a key frame would delay all frames behind it for good.
//! - All frames but key frames have the same size at the same target: no encoder and no picture are simulated. There is
//!   no audio, and no forward error correction.
//!
//! ## Validation
//! `media/tests.rs` drives both ends over a path that loses packets.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Histogram, Rate, Segment, Span, Time};

use super::config::Media;
use super::gcc::LossControl;
use super::message::{HEADER_BYTES, Message, Micros, Packet, Report};

/// Sending end of a media flow.
#[derive(Debug)]
pub struct MediaSender {
    flow: FlowId,
    media: Media,
    /// Size of the largest packet, bytes.
    packet: u16,
    start: Time,
    /// Number of the next frame.
    frame: u32,
    is_key_due: bool,
    /// Packets that wait for the pacer.
    waiting: VecDeque<Outgoing>,
    /// Requested packets that wait for the pacer.
    repairs: VecDeque<Outgoing>,
    /// Packets that can still be requested, oldest first.
    sent: VecDeque<Sent>,
    /// Number of the next packet.
    number: u32,
    /// Time from which the pacer allows the next packet.
    paced: Time,
    /// Bitrate that the delays allow, bit/s.
    delay_bps: f64,
    loss: LossControl,
    target: f64,
    round_trip: Option<Span>,
    stats: MediaStats,
}

/// Counters of a media sender.
#[derive(Clone, Debug, Default)]
pub struct MediaStats {
    /// Round-trip times, one for each report.
    pub rtt: Histogram,
    /// Number of packets sent, retransmissions included.
    pub packets: u64,
    /// Number of retransmitted packets.
    pub retransmits: u64,
    /// Number of key frames.
    pub key_frames: u64,
    /// Bits that the target would have sent until `changed`.
    target_bits: f64,
    /// Time of the last change of the target.
    changed: Time,
}

/// A packet of a frame that has not been sent.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    frame: u32,
    captured: Micros,
    index: u16,
    is_last: bool,
    is_key: bool,
    bytes: u16,
}

/// A packet that was sent; `packet` is `None` if it must not be sent again.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u32,
    at: Time,
    packet: Option<Outgoing>,
}

impl MediaSender {
    /// Creates the sender of `flow`, which captures its first frame at `start`. Its largest packet has `packet` bytes.
    pub fn new(flow: FlowId, media: &Media, packet: u16, start: Time) -> Self {
        let target = media.start_rate.as_bps() as f64;
        Self {
            flow,
            packet,
            start,
            frame: 0,
            is_key_due: true,
            waiting: VecDeque::new(),
            repairs: VecDeque::new(),
            sent: VecDeque::new(),
            number: 0,
            paced: Time::ZERO,
            delay_bps: target,
            loss: LossControl::new(media.limits()[1]),
            target,
            round_trip: None,
            stats: MediaStats { changed: start, ..MediaStats::default() },
            media: media.clone(),
        }
    }

    /// Processes a datagram of the receiver.
    pub fn on_segment(&mut self, now: Time, seg: &Segment) {
        match Message::of(seg) {
            Some(Message::Report(report)) => self.on_report(now, report),
            Some(Message::Nack { first, last }) => self.repair(now, first, last),
            Some(Message::KeyRequest) => self.is_key_due = true,
            Some(Message::Packet(_)) | None => {}
        }
    }

    /// Captures the frames that are due, and sends the packets that the pacer allows.
    pub fn send(&mut self, now: Time, out: &mut impl FnMut(&Segment)) {
        while self.frame_time() <= now {
            self.capture();
        }
        while self.paced <= now
            && let Some((packet, is_repair)) = self.next_packet()
        {
            let pause = Rate::from_bps_f64(self.target * self.media.pacing).time_for(packet.bytes.into());
            self.paced = now + pause;
            out(&self.transmit(now, packet, is_repair));
        }
    }

    /// Time at which [`Self::send`] is due.
    pub fn poll_timeout(&self) -> Time {
        let is_idle = self.waiting.is_empty() && self.repairs.is_empty();
        if is_idle { self.frame_time() } else { self.frame_time().min(self.paced) }
    }

    /// Target bitrate, bit/s.
    pub fn target_bps(&self) -> f64 {
        self.target
    }

    /// Mean target bitrate from the start until `end`, bit/s; `None` before the start.
    pub fn mean_target_bps(&self, end: Time) -> Option<f64> {
        let seconds = end.since(self.start).as_secs_f64();
        let bits = self.stats.target_bits + self.target * end.since(self.stats.changed).as_secs_f64();
        (seconds > 0.0).then(|| bits / seconds)
    }

    /// Number of frames captured.
    pub fn frames(&self) -> u32 {
        self.frame
    }

    /// Packets that wait for the pacer.
    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.repairs.len()
    }

    /// Counters of the sender.
    pub fn stats(&self) -> &MediaStats {
        &self.stats
    }

    /// Capture time of the next frame.
    fn frame_time(&self) -> Time {
        self.start + Span::from_secs(1) * u64::from(self.frame) / u64::from(self.media.frame_rate)
    }

    /// Divides the frame that is due into packets.
    fn capture(&mut self) {
        let captured = Micros::of(self.frame_time());
        let (frame, is_key) = (self.frame, std::mem::take(&mut self.is_key_due));
        let factor = if is_key { self.media.key_frame } else { 1.0 };
        let bytes = (self.target * factor / 8.0 / f64::from(self.media.frame_rate)) as u32;
        let packets = bytes.div_ceil(self.packet.into()).clamp(1, u16::MAX.into());
        let bytes = bytes.div_ceil(packets).clamp(u32::from(HEADER_BYTES) + 1, self.packet.into()) as u16;
        let packet = |index: u32| Outgoing {
            frame,
            captured,
            index: index as u16,
            is_last: index + 1 == packets,
            is_key,
            bytes,
        };
        self.waiting.extend((0..packets).map(packet));
        self.stats.key_frames += u64::from(is_key);
        self.frame += 1;
    }

    /// Next packet to send, and whether it is a retransmission.
    fn next_packet(&mut self) -> Option<(Outgoing, bool)> {
        let repair = self.repairs.pop_front().map(|packet| (packet, true));
        repair.or_else(|| self.waiting.pop_front().map(|packet| (packet, false)))
    }

    fn transmit(&mut self, now: Time, outgoing: Outgoing, is_repair: bool) -> Segment {
        while self.sent.front().is_some_and(|sent| sent.at + self.media.give_up < now) {
            self.sent.pop_front();
        }
        let number = self.number;
        self.sent.push_back(Sent { number, at: now, packet: (!is_repair).then_some(outgoing) });
        self.number += 1;
        self.stats.packets += 1;
        self.stats.retransmits += u64::from(is_repair);
        let Outgoing { frame, captured, index, is_last, is_key, bytes } = outgoing;
        let round_trip = self.round_trip.map_or(0, |rtt| (rtt.as_nanos() / 1000) as u32);
        let sent = Micros::of(now);
        let packet = Packet { number, sent, frame, captured, index, is_last, is_key, round_trip };
        Message::Packet(packet).datagram(self.flow, bytes)
    }

    /// Queues requested packets that were not requested before.
    fn repair(&mut self, now: Time, first: u32, last: u32) {
        let from = self.sent.partition_point(|sent| sent.number < first);
        for sent in self.sent.range_mut(from..).take_while(|sent| sent.number <= last) {
            if sent.at + self.media.give_up >= now {
                self.repairs.extend(sent.packet.take());
            }
        }
    }

    fn on_report(&mut self, now: Time, report: Report) {
        let elapsed = Micros::of(now).span_since(report.echo);
        let round_trip = elapsed.saturating_sub(Span::from_micros(report.held.into()));
        self.round_trip = Some(round_trip);
        self.stats.rtt.record(round_trip);
        self.delay_bps = report.bps.into();
        if let Some(lost) = report.lost {
            self.loss.on_report(f64::from(lost) / 256.0, self.target);
        }
        let since = now.since(self.stats.changed).as_secs_f64();
        self.stats.target_bits += self.target * since;
        self.stats.changed = now.max(self.stats.changed);
        let [least, most] = self.media.limits();
        self.target = self.delay_bps.min(self.loss.bps()).clamp(least, most);
    }
}
