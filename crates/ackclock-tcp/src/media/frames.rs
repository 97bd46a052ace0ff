//! # Frames at the receiver
//!
//! Assembles frames, and measures their delay and the freezes of the picture.
//!
//! ## Source
//! Freezes: `freezeCount` and `totalFreezesDuration` of the W3C's "Identifiers for WebRTC's Statistics API".
//!
//! ## What it does
//! A frame is shown at the instant at which it is complete, if the frame before was shown or if it is a key frame. A
//! complete key frame replaces everything before it. A frame that later frames have passed is given up after a while.
//! From then on only a key frame can be shown, and the receiver requests one until it arrives.
//!
//! The picture freezes if a frame comes later than the mean time between the last 30 frames by a factor of 3 and by 150
//! ms.
//!
//! ## Differences from the source
//! There is no jitter buffer and no time for decoding, so the delay of a frame is that of the network and the pacer. A
//! frame that did not come until the end of the run counts as a freeze, too.
//!
//! ## Validation
//! Unit tests compare with hand-computed delays and freezes.

use std::collections::{BTreeMap, VecDeque};

use ackclock_core::{Histogram, Span, Time};

use super::message::{Micros, Packet};

/// Number of latest frames whose mean distance is the usual one.
const USUAL_FRAMES: usize = 30;
/// A frame freezes the picture if its distance is at least this multiple of the usual one ...
const FREEZE_FACTOR: u64 = 3;
/// ... and exceeds the usual one by this time.
const FREEZE_EXCESS: Span = Span::from_millis(150);

/// Frames of a flow that arrive.
#[derive(Debug)]
pub(super) struct Frames {
    /// Number of the next frame to show.
    next: u32,
    /// Frames from `next` on of which packets have arrived.
    pending: BTreeMap<u32, Partial>,
    /// Whether a frame was given up, so that only a key frame can be shown.
    needs_key: bool,
    give_up: Span,
    /// Time at which the next frame is given up or a key frame is requested again; [`Time::NEVER`] if nothing is
    /// missing.
    deadline: Time,
    stats: FrameStats,
}

/// Frames shown, and their times.
#[derive(Clone, Debug, Default)]
pub struct FrameStats {
    /// Number of frames shown.
    pub shown: u64,
    /// Number of frames that will never be shown.
    pub lost: u64,
    /// Time from the capture of each shown frame until it was shown.
    pub delay: Histogram,
    freezes: u64,
    frozen: Span,
    last_shown: Option<Time>,
    /// Times between the latest frames.
    apart: VecDeque<Span>,
}

/// A frame of which packets have arrived.
#[derive(Debug)]
struct Partial {
    captured: Micros,
    is_key: bool,
    /// Whether each packet has arrived.
    arrived: Vec<bool>,
    missing: usize,
    /// Whether the last packet has arrived, so that the number of packets is known.
    is_sized: bool,
}

impl Frames {
    pub(super) fn new(give_up: Span) -> Self {
        Self {
            next: 0,
            pending: BTreeMap::new(),
            needs_key: false,
            give_up,
            deadline: Time::NEVER,
            stats: FrameStats::default(),
        }
    }

    pub(super) fn stats(&self) -> &FrameStats {
        &self.stats
    }

    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Adds a packet. Returns whether the packet is new and its frame can still be shown.
    pub(super) fn on_packet(&mut self, now: Time, packet: &Packet) -> bool {
        if packet.frame < self.next {
            return false;
        }
        let frame = self.pending.entry(packet.frame).or_insert_with(|| Partial::of(packet));
        if !frame.add(packet) {
            return false;
        }
        while let Some(number) = self.showable() {
            self.show(now, number);
        }
        self.note_gap(now);
        true
    }

    /// Gives up the next frame if it is due. Returns whether a key frame must be requested.
    pub(super) fn on_timeout(&mut self, now: Time) -> bool {
        if now < self.deadline {
            return false;
        }
        self.needs_key = true;
        self.deadline = now + self.give_up;
        true
    }

    /// Number of the frame that can be shown next: the latest complete key frame, or the next frame.
    fn showable(&self) -> Option<u32> {
        let key = self.pending.iter().rfind(|(_, frame)| frame.is_key && frame.is_complete());
        let next = self.pending.get(&self.next).filter(|frame| !self.needs_key && frame.is_complete());
        key.map(|(&number, _)| number).or(next.map(|_| self.next))
    }

    fn show(&mut self, now: Time, number: u32) {
        let Some(frame) = self.pending.remove(&number) else { return };
        self.stats.lost += u64::from(number - self.next);
        self.next = number + 1;
        self.pending = self.pending.split_off(&self.next);
        self.needs_key = false;
        self.deadline = Time::NEVER;
        self.stats.on_shown(now, Micros::of(now).span_since(frame.captured));
    }

    /// Starts to wait for the next frame if packets of later frames have arrived.
    fn note_gap(&mut self, now: Time) {
        let passed = self.pending.last_key_value().is_some_and(|(&last, _)| last > self.next);
        if passed && self.deadline == Time::NEVER {
            self.deadline = now + self.give_up;
        }
    }
}

impl Partial {
    fn of(packet: &Packet) -> Self {
        Self {
            captured: packet.captured,
            is_key: packet.is_key,
            arrived: Vec::new(),
            missing: 0,
            is_sized: false,
        }
    }

    /// Adds a packet of the frame; returns whether it is new.
    fn add(&mut self, packet: &Packet) -> bool {
        let index = usize::from(packet.index);
        if self.arrived.len() <= index {
            self.missing += index + 1 - self.arrived.len();
            self.arrived.resize(index + 1, false);
        }
        if std::mem::replace(&mut self.arrived[index], true) {
            return false;
        }
        self.missing -= 1;
        self.is_sized |= packet.is_last;
        true
    }

    fn is_complete(&self) -> bool {
        self.is_sized && self.missing == 0
    }
}

impl FrameStats {
    fn on_shown(&mut self, now: Time, delay: Span) {
        self.shown += 1;
        self.delay.record(delay);
        if let Some(last) = self.last_shown.replace(now) {
            let apart = now.since(last);
            if self.is_freeze(apart) {
                self.freezes += 1;
                self.frozen += apart;
            }
            if self.apart.len() == USUAL_FRAMES {
                self.apart.pop_front();
            }
            self.apart.push_back(apart);
        }
    }

    /// Number of freezes until `end`, and their total time.
    pub fn freezes(&self, end: Time) -> (u64, Span) {
        match self.last_shown.map(|last| end.since(last)).filter(|&open| self.is_freeze(open)) {
            Some(open) => (self.freezes + 1, self.frozen + open),
            None => (self.freezes, self.frozen),
        }
    }

    fn is_freeze(&self, apart: Span) -> bool {
        let Some(count) = Some(self.apart.len() as u64).filter(|&count| count > 0) else { return false };
        let sum = self.apart.iter().fold(Span::ZERO, |sum, &apart| sum + apart);
        let usual = sum / count;
        apart >= (usual * FREEZE_FACTOR).max(usual + FREEZE_EXCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Packet `index` of two of a frame that was captured at 40 ms times its number.
    fn packet(frame: u32, index: u16) -> Packet {
        Packet {
            number: 2 * frame + u32::from(index),
            sent: Micros(0),
            frame,
            captured: Micros(40_000 * frame),
            index,
            is_last: index == 1,
            is_key: frame == 0,
            round_trip: 0,
        }
    }

    /// Lets frames arrive completely, 50 ms after their capture.
    fn arrive(frames: &mut Frames, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let now = ms(40 * u64::from(number) + 50);
            assert!(frames.on_packet(now, &packet(number, 0)) && frames.on_packet(now, &packet(number, 1)));
        }
    }

    #[test]
    fn a_frame_is_shown_when_its_last_packet_arrives() {
        let mut frames = Frames::new(Span::from_millis(500));
        assert!(frames.on_packet(ms(50), &packet(0, 1)));
        assert!(!frames.on_packet(ms(55), &packet(0, 1)), "a copy");
        assert_eq!(frames.stats().shown, 0);
        assert!(frames.on_packet(ms(60), &packet(0, 0)));
        assert!(!frames.on_packet(ms(70), &packet(0, 0)), "it was shown");
        assert_eq!((frames.stats().shown, frames.stats().delay.mean()), (1, Some(Span::from_millis(60))));
    }

    #[test]
    fn a_repaired_frame_is_shown_before_those_that_passed_it() {
        let mut frames = Frames::new(Span::from_millis(500));
        arrive(&mut frames, 0..1);
        frames.on_packet(ms(90), &packet(1, 0));
        arrive(&mut frames, 2..4);
        assert_eq!((frames.stats().shown, frames.deadline()), (1, ms(130 + 500)));
        frames.on_packet(ms(200), &packet(1, 1));
        assert_eq!((frames.stats().shown, frames.stats().lost, frames.deadline()), (4, 0, Time::NEVER));
        // 200 - 40, 200 - 80 and 200 - 120 ms beside the 50 ms of the first frame.
        assert_eq!(frames.stats().delay.mean(), Some(Span::from_micros(102_500)));
    }

    #[test]
    fn after_a_frame_is_given_up_only_a_key_frame_is_shown() {
        let mut frames = Frames::new(Span::from_millis(100));
        arrive(&mut frames, 0..1);
        arrive(&mut frames, 2..4);
        assert!(!frames.on_timeout(ms(229)) && frames.on_timeout(ms(230)) && !frames.on_timeout(ms(230)));
        frames.on_packet(ms(240), &packet(1, 0));
        frames.on_packet(ms(240), &packet(1, 1));
        assert_eq!(frames.stats().shown, 1, "too late");
        assert!(frames.on_timeout(ms(330)), "it is requested again");
        for index in [0, 1] {
            frames.on_packet(ms(340), &Packet { is_key: true, ..packet(4, index) });
        }
        assert_eq!((frames.stats().shown, frames.stats().lost, frames.deadline()), (2, 3, Time::NEVER));
    }

    #[test]
    fn the_picture_freezes_if_a_frame_is_late_by_3_times_and_150_ms() {
        let mut frames = Frames::new(Span::from_secs(10));
        arrive(&mut frames, 0..10);
        // The last frame was shown at 410 ms, and frames are 40 ms apart: 189 ms later is no freeze, 190 ms later is one.
        assert_eq!(frames.stats().freezes(ms(599)), (0, Span::ZERO));
        assert_eq!(frames.stats().freezes(ms(600)), (1, Span::from_millis(190)));
        frames.on_packet(ms(700), &packet(10, 0));
        frames.on_packet(ms(700), &packet(10, 1));
        assert_eq!(frames.stats().freezes(ms(700)), (1, Span::from_millis(290)));
    }
}
