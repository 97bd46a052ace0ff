//! # Media receiver
//!
//! Shows frames, requests missing packets and key frames, and reports the bitrate that the delays allow.
//!
//! ## Source
//! draft-ietf-rmcat-gcc-02 sections 3 and 5, RFC 3550 section 6.4.1 (fraction lost), RFC 4585 (NACK and picture loss).
//!
//! ## What it does
//! A gap in the packet numbers is requested at once, and only once. Reports are sent at a constant interval from the
//! first packet on, and at once after a decrease of the bitrate.
//!
//! ## Differences from the source
//! - A report has the loss only at the interval, so that a decrease due to delay does not divide the loss into parts.
//! - Feedback is not limited to a share of the bitrate (RFC 3550 section 6.2).
//!
//! ## Validation
//! `media/tests.rs` drives both ends over a path that loses packets.

use ackclock_core::{FlowId, Segment, Span, Time};

use super::FrameStats;
use super::config::Media;
use super::frames::Frames;
use super::gcc::{ArrivalFilter, OverUseDetector, PacketBits, RateControl};
use super::message::{HEADER_BYTES, Message, Micros, Packet, Report};

/// Receiving end of a media flow.
#[derive(Debug)]
pub struct MediaReceiver {
    flow: FlowId,
    report_interval: Span,
    frames: Frames,
    filter: ArrivalFilter,
    detector: OverUseDetector,
    rate: RateControl,
    /// Largest packet number so far.
    highest: Option<u32>,
    /// Number of packets since the last periodic report.
    received_lately: u32,
    /// Largest packet number plus one at the last periodic report.
    reported: u32,
    /// Time of the next periodic report; [`Time::NEVER`] before the first packet.
    report_at: Time,
    /// Transmission and arrival of the latest packet.
    latest: (Micros, Micros),
    packets: u64,
    delivered: u64,
    delivered_headers: u64,
}

impl MediaReceiver {
    /// Creates the receiver of `flow`, whose largest packet has `packet` bytes.
    pub fn new(flow: FlowId, media: &Media, packet: u16) -> Self {
        let bits = PacketBits { frame_rate: media.frame_rate.into(), largest: f64::from(packet) * 8.0 };
        Self {
            flow,
            report_interval: media.report_interval,
            frames: Frames::new(media.give_up),
            filter: ArrivalFilter::default(),
            detector: OverUseDetector::default(),
            rate: RateControl::new(media.start_rate.as_bps() as f64, media.limits(), bits),
            highest: None,
            received_lately: 0,
            reported: 0,
            report_at: Time::NEVER,
            latest: (Micros(0), Micros(0)),
            packets: 0,
            delivered: 0,
            delivered_headers: 0,
        }
    }

    /// Processes a datagram of the sender, and sends the feedback that is due at once.
    pub fn on_segment(&mut self, now: Time, seg: &Segment, out: &mut impl FnMut(&Segment)) {
        let Some(Message::Packet(packet)) = Message::of(seg) else { return };
        self.packets += 1;
        self.received_lately += 1;
        self.rate.on_packet(now, seg.wire_bytes());
        if self.frames.on_packet(now, &packet) {
            self.delivered += u64::from(seg.wire_bytes()) - u64::from(HEADER_BYTES);
            self.delivered_headers += u64::from(HEADER_BYTES);
        }
        self.request_gap(packet.number, out);
        if self.report_at == Time::NEVER {
            self.report_at = now + self.report_interval;
        }
        self.latest = (packet.sent, Micros::of(now));
        if self.measure(now, &packet) {
            self.report(now, None, out);
        }
    }

    /// Sends the feedback due at `now`.
    pub fn on_timeout(&mut self, now: Time, out: &mut impl FnMut(&Segment)) {
        if self.frames.on_timeout(now) {
            out(&Message::KeyRequest.datagram(self.flow, 0));
        }
        if now >= self.report_at {
            let lost = self.lost();
            self.report(now, Some(lost), out);
            self.report_at = now + self.report_interval;
        }
    }

    /// Time at which [`Self::on_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Time> {
        Some(self.report_at.min(self.frames.deadline())).filter(|&time| time != Time::NEVER)
    }

    /// Packets received, copies included.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Payload that arrived before its frame was given up, each packet once, bytes.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    /// [Delivered bytes](Self::delivered_bytes) with headers.
    pub fn delivered_wire_bytes(&self) -> u64 {
        self.delivered + self.delivered_headers
    }

    /// Frames shown so far.
    pub fn frames(&self) -> &FrameStats {
        self.frames.stats()
    }

    /// Requests the packets between the largest number so far and a new number.
    fn request_gap(&mut self, number: u32, out: &mut impl FnMut(&Segment)) {
        let next = self.highest.map_or(0, |highest| highest + 1);
        if number > next {
            out(&Message::Nack { first: next, last: number - 1 }.datagram(self.flow, 0));
        }
        self.highest = self.highest.max(Some(number));
    }

    /// Updates the bitrate that the delays allow. Returns whether it was decreased.
    fn measure(&mut self, now: Time, packet: &Packet) -> bool {
        let Some(gradient) = self.filter.on_packet(packet.sent, Micros::of(now)) else { return false };
        let signal = self.detector.on_group(gradient);
        self.rate.update(now, signal, Span::from_micros(packet.round_trip.into()))
    }

    /// Share of packets lost since the last call, in 1/256; copies make up for losses (RFC 3550 appendix A.3).
    fn lost(&mut self) -> u8 {
        let next = self.highest.map_or(0, |highest| highest + 1);
        let expected = next - std::mem::replace(&mut self.reported, next);
        let lost = expected.saturating_sub(std::mem::take(&mut self.received_lately));
        (u64::from(lost) * 256).checked_div(expected.into()).map_or(0, |lost| lost.min(255) as u8)
    }

    fn report(&self, now: Time, lost: Option<u8>, out: &mut impl FnMut(&Segment)) {
        let (echo, arrived) = self.latest;
        let held = Micros::of(now).since(arrived).max(0) as u32;
        let report = Report { bps: self.rate.bps() as u32, lost, echo, held };
        out(&Message::Report(report).datagram(self.flow, 0));
    }
}
