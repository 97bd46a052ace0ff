//! # CoDel
//!
//! ## Source
//! RFC 8289 (Nichols, Jacobson, McGregor and Iyengar 2018), section 5.
//!
//! ## What it does
//! Measures each packet's queueing delay. If the queueing delay stays above a target (5 ms) for an interval (100 ms),
//! CoDel drops a packet as it leaves the queue. Further drops follow after interval/√count, until a queueing delay is
//! below the target. With `ecn` an ECN-capable packet is marked instead of dropped.
//!
//! ## Differences from the source
//! CoDel never drops while at most an MTU is queued; here the MTU is the largest packet seen so far, as in Linux. The
//! pseudocode does not mark. Marking follows the Linux implementation by the authors: a marked packet counts as dropped in the control law and is sent.
//!
//! ## Validation
//! Each line of sections 5.4 to 5.6 was compared with the code. Unit tests compare drop times worked out by hand from the control law.

use std::collections::VecDeque;

use ackclock_core::{Config, ConfigError, Ecn, FlowId, Segment, Span, Time, Unused};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fifo::{Buffer, Fifo};
use super::{AnyQueue, Codepoints, Per, Place, Queue, QueueConfig, QueueContext, is_ect, one_buffer};
use crate::{Capacity, Cause, Load};

/// Controlled delay (RFC 8289).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CodelConfig {
    /// Acceptable queueing delay.
    pub target: Span,
    /// Time for which the target must be exceeded before drops start; about the RTT of the slowest flows.
    pub interval: Span,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Whether all packets share a queue, or each flow or user has a separate queue.
    pub per: Per,
}

impl Default for CodelConfig {
    fn default() -> Self {
        let Settings { target, interval, .. } = Settings::default();
        Self { target, interval, ecn: false, per: Per::Shared }
    }
}

impl Config for CodelConfig {
    fn check(&self) -> Result<(), ConfigError> {
        Settings { target: self.target, interval: self.interval, ecn: self.ecn }.check()
    }
}

impl QueueConfig for CodelConfig {
    fn build(&self, context: &QueueContext<'_>) -> AnyQueue {
        let settings = Settings { target: self.target, interval: self.interval, ecn: self.ecn };
        let capacity = context.capacity;
        self.per.build(capacity, move |_| Codel::new(settings, capacity).any())
    }

    fn unused(&self, packets: Codepoints) -> Vec<Unused> {
        packets.unused_without_ect(&[("ecn", self.ecn)])
    }
}

/// Settings of the CoDel algorithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) target: Span,
    pub(super) interval: Span,
    pub(super) ecn: bool,
}

impl Default for Settings {
    /// Defaults of RFC 8289 section 4.4.
    fn default() -> Self {
        Self { target: Span::from_millis(5), interval: Span::from_millis(100), ecn: false }
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.interval <= self.target {
            return Err(ConfigError::new(
                "interval",
                format!("{} is not above target = {}", self.interval, self.target),
            ));
        }
        Ok(())
    }
}

/// State of the CoDel algorithm for one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Control {
    /// Time at which the queueing delay will have exceeded the target for an interval; `None` while the delay is below
    /// the target.
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    /// Number of drops since dropping started.
    count: u32,
    last_count: u32,
    /// Largest packet seen, bytes.
    largest: u32,
}

/// The queue from which packets are taken, and the list of dropped packets.
pub(super) struct Backlog<'a> {
    pub(super) fifo: &'a mut Fifo,
    pub(super) dropped: &'a mut VecDeque<(Segment, Cause)>,
}

/// The packet that leaves, and whether its queueing delay allows a drop.
type Leaving = (Option<(Time, Segment)>, bool);

impl Control {
    /// Takes the next packet to transmit: `dequeue` of RFC 8289 section 5.5.
    pub(super) fn dequeue(
        &mut self,
        settings: &Settings,
        now: Time,
        mut from: Backlog<'_>,
    ) -> Option<(Time, Segment)> {
        let mut leaving = self.take(settings, now, &mut from);
        if self.dropping {
            self.dropping = leaving.1;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let marked;
                (leaving, marked) = self.punish(settings, now, leaving, &mut from);
                self.dropping = leaving.1;
                if self.dropping {
                    self.drop_next = control_law(self.drop_next, settings.interval, self.count);
                }
                if marked {
                    break;
                }
            }
        } else if leaving.1 {
            (leaving, _) = self.punish(settings, now, leaving, &mut from);
            self.dropping = true;
            // Resume the last drop rate if dropping ended recently.
            let recent = now.since(self.drop_next) < settings.interval * 16;
            let delta = self.count.saturating_sub(self.last_count);
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = control_law(now, settings.interval, self.count);
            self.last_count = self.count;
        }
        leaving.0
    }

    /// Handles a packet that passed without queueing.
    pub(super) fn pass(&mut self, segment: &Segment) {
        self.largest = self.largest.max(segment.wire_bytes());
        self.first_above = None;
        self.dropping = false;
    }

    /// Takes the head of the queue: `dodequeue` of RFC 8289 section 5.6.
    fn take(&mut self, settings: &Settings, now: Time, from: &mut Backlog<'_>) -> Leaving {
        let Some((arrived, segment)) = from.fifo.pop() else {
            self.first_above = None;
            return (None, false);
        };
        self.largest = self.largest.max(segment.wire_bytes());
        let good = now.since(arrived) < settings.target || from.fifo.load().bytes <= u64::from(self.largest);
        let ok_to_drop = match self.first_above {
            _ if good => {
                self.first_above = None;
                false
            }
            None => {
                self.first_above = Some(now + settings.interval);
                false
            }
            Some(instant) => now >= instant,
        };
        (Some((arrived, segment)), ok_to_drop)
    }

    /// Marks the packet, or drops it and takes the next packet. Returns whether the packet was marked.
    fn punish(
        &mut self,
        settings: &Settings,
        now: Time,
        leaving: Leaving,
        from: &mut Backlog<'_>,
    ) -> (Leaving, bool) {
        match leaving {
            (Some((arrived, mut segment)), ok) if settings.ecn && is_ect(&segment) => {
                segment.ecn = Ecn::Ce;
                ((Some((arrived, segment)), ok), true)
            }
            (packet, _) => {
                from.dropped.extend(packet.map(|(_, segment)| (segment, Cause::Policy)));
                (self.take(settings, now, from), false)
            }
        }
    }
}

/// Time of the next drop: `t + interval / sqrt(count)` (RFC 8289 section 5.4), to the nearest nanosecond.
fn control_law(t: Time, interval: Span, count: u32) -> Time {
    t + Span::from_nanos(libm::round(interval.as_nanos() as f64 / libm::sqrt(f64::from(count))) as u64)
}

/// One queue that CoDel manages.
#[derive(Debug)]
pub struct Codel {
    settings: Settings,
    control: Control,
    buffer: Buffer,
}

impl Codel {
    pub(super) fn new(settings: Settings, capacity: Capacity) -> Self {
        Self { settings, control: Control::default(), buffer: Buffer::new(capacity) }
    }
}

impl Queue for Codel {
    fn put(&mut self, now: Time, segment: &Segment, unqueued: Load, place: Place) -> Result<(), Cause> {
        self.buffer.put(now, segment, unqueued, place)
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Segment)> {
        let from = Backlog { fifo: &mut self.buffer.fifo, dropped: &mut self.buffer.dropped };
        self.control.dequeue(&self.settings, now, from)
    }

    fn pass(&mut self, _: Time, segment: &Segment) {
        self.control.pass(segment);
    }

    one_buffer!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Seq;

    fn codel(ecn: bool) -> Codel {
        Codel::new(Settings { ecn, ..Settings::default() }, Capacity::Unlimited)
    }

    fn segment(seq: u32, ecn: Ecn) -> Segment {
        let mut segment = Segment::data(FlowId(0), Seq(seq), 960, 40);
        segment.ecn = ecn;
        segment
    }

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    /// Enqueues 1000 packets at time zero and dequeues one every 10 ms. Returns departures with ECN marks, and times
    /// of drops.
    fn drain(queue: &mut Codel, ecn: Ecn, until: u64) -> (Vec<(u64, Ecn)>, Vec<u64>) {
        (0..1000).for_each(|seq| queue.enqueue(Time::ZERO, &segment(seq, ecn), Load::NONE).unwrap());
        let (mut left, mut drops) = (Vec::new(), Vec::new());
        for now in (0..until).step_by(10) {
            left.extend(queue.dequeue(ms(now)).map(|(_, segment)| (now, segment.ecn)));
            drops.extend(std::iter::from_fn(|| queue.poll_dropped()).map(|_| now));
        }
        (left, drops)
    }

    #[test]
    fn drops_follow_the_control_law() {
        let (left, drops) = drain(&mut codel(false), Ecn::NotEct, 400);
        // The delay first exceeds 5 ms at 10 ms, so dropping begins at 110 ms. Then every 100/sqrt(n) ms, at the next
        // departure: 110 + 100 = 210; + 70.7 = 280.7 -> 290; + 57.7 = 338.4 -> 340; + 50 = 388.4 -> 390.
        assert_eq!(drops, [110, 210, 290, 340, 390]);
        assert_eq!(left.len(), 40, "a drop costs no departure");
    }

    #[test]
    fn ecn_capable_packets_are_marked_at_the_instants_of_the_drops() {
        let (left, drops) = drain(&mut codel(true), Ecn::Ect0, 400);
        let marked: Vec<u64> = left.iter().filter(|(_, ecn)| *ecn == Ecn::Ce).map(|(now, _)| *now).collect();
        assert_eq!((marked, drops), (vec![110, 210, 290, 340, 390], vec![]));
        let (_, drops) = drain(&mut codel(true), Ecn::NotEct, 400);
        assert_eq!(drops.len(), 5, "others are dropped all the same");
    }

    #[test]
    fn a_packet_that_waited_briefly_ends_dropping() {
        let mut queue = codel(false);
        drain(&mut queue, Ecn::NotEct, 200);
        queue.pass(ms(200), &segment(0, Ecn::NotEct));
        for now in (200..300).step_by(10) {
            queue.dequeue(ms(now));
            assert!(queue.poll_dropped().is_none(), "at {now} ms an interval has not passed");
        }
    }

    #[test]
    fn the_last_packet_is_never_dropped() {
        let mut queue = codel(false);
        for n in 0..100 {
            queue.enqueue(ms(1000 * n), &segment(n as u32, Ecn::NotEct), Load::NONE).unwrap();
            assert!(queue.dequeue(ms(1000 * n + 900)).is_some());
        }
        assert!(queue.poll_dropped().is_none());
    }
}
