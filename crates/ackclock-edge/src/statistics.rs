//! Packet and byte counters of an edge.

use ackclock_core::results::{ImpairedCounts, LinkCounts};
use ackclock_core::{Segment, Seq, Span, Time};
use ackclock_link::{Cause, Direction, Impairment};

/// Counters of the edge over all flows. The counters describe the downlink unless stated otherwise.
#[derive(Clone, Debug, Default)]
pub struct EdgeStatistics {
    /// Number of data segments that arrived from the network.
    pub entered: u64,
    /// Number of segments delivered over the radio.
    pub delivered: u64,
    /// Bytes delivered over the radio on the downlink, including headers.
    pub delivered_bytes: u64,
    /// Number of downlink segments lost in the queue or on the radio.
    pub dropped: u64,
    /// Number of segments that a regulator discarded, by [`Direction`] of arrival.
    pub discarded: [u64; 2],
    /// Number of segments that a regulator generated and sent, by [`Direction`].
    pub made: [u64; 2],
    /// Number of segments that a regulator retransmitted to the mobile.
    pub resent: u64,
    /// Total number of segment copies that a regulator kept.
    pub kept: u64,
    /// Total number of kept copies that a regulator freed again.
    pub released: u64,
    /// Number of uplink segments lost in the queue or on the radio.
    pub dropped_up: u64,
    /// Bytes delivered over the radio on the uplink, including headers.
    pub delivered_up_bytes: u64,
    /// Segments delivered over the uplink.
    pub delivered_up: u64,
    /// Number of segments that a queue dropped at its age limit, by [`Direction`]; `None` without an age limit.
    pub aged: [Option<u64>; 2],
    /// Impaired segments, by [`Direction`]; `None` for a link without impairments.
    pub impaired: [Option<ImpairedCounts>; 2],
}

impl EdgeStatistics {
    /// Returns the counters of the link in one direction.
    pub(crate) fn of(&self, direction: Direction) -> LinkCounts {
        let (delivered_bytes, drops, resent) = match direction {
            Direction::Down => (self.delivered_bytes, self.dropped, self.resent),
            Direction::Up => (self.delivered_up_bytes, self.dropped_up, 0),
        };
        let (discarded, made) = (self.discarded[direction as usize], self.made[direction as usize]);
        let delivered = [self.delivered, self.delivered_up][direction as usize];
        let impaired = self.impaired[direction as usize]
            .as_ref()
            .map(|counts| ImpairedCounts { delivered, ..counts.clone() });
        let aged = self.aged[direction as usize];
        LinkCounts {
            delivered_bytes,
            drops,
            aged,
            discarded,
            made,
            resent,
            impaired,
            ..LinkCounts::default()
        }
    }

    #[inline]
    pub(crate) fn on_delivered(&mut self, segment: &Segment) {
        self.delivered += 1;
        self.delivered_bytes += u64::from(segment.wire_bytes());
    }

    #[inline]
    pub(crate) fn on_delivered_up(&mut self, segment: &Segment) {
        self.delivered_up += 1;
        self.delivered_up_bytes += u64::from(segment.wire_bytes());
    }

    pub(crate) fn on_impaired(&mut self, direction: Direction, what: Impairment) {
        let counts = self.impaired[direction as usize].get_or_insert_default();
        match what {
            Impairment::Duplicated => counts.duplicated += 1,
            Impairment::Reordered { extent } => {
                counts.reordered += 1;
                counts.extent += u64::from(extent);
                counts.max_extent = counts.max_extent.max(extent.into());
            }
        }
    }

    /// Counts a segment that was lost in a queue or on the radio, or dropped by a regulator's filter of ACKs.
    pub(crate) fn on_dropped(&mut self, direction: Direction, cause: Cause) {
        if cause == Cause::Filtered {
            self.discarded[direction as usize] += 1;
            return;
        }
        match direction {
            Direction::Down => self.dropped += 1,
            Direction::Up => self.dropped_up += 1,
        }
        if cause == Cause::Aged {
            *self.aged[direction as usize].get_or_insert_default() += 1;
        }
    }

    pub(crate) fn on_corrupt(&mut self, direction: Direction) {
        self.impaired[direction as usize].get_or_insert_default().corrupted += 1;
    }
}

/// Counters of one flow at the edge.
#[derive(Clone, Debug, Default)]
pub struct FlowStatistics {
    /// Round-trip time between edge and mobile: from the arrival of a data segment at the edge until the ACK for it
    /// arrives from the radio.
    pub edge_rtt: MeanRtt,
    /// Number of the flow's segments lost in the queue or on the radio.
    pub dropped: u64,
}

/// Mean round-trip time of a flow, measured with one timed segment at a time.
#[derive(Clone, Debug, Default)]
pub struct MeanRtt {
    timed: Option<(Seq, Time)>,
    highest: Option<Seq>,
    sum: Span,
    count: u64,
}

impl MeanRtt {
    /// Mean of all round-trip samples; `None` before the first sample.
    pub fn mean(&self) -> Option<Span> {
        if self.count == 0 { None } else { Some(self.sum / self.count) }
    }

    /// Times a passing data segment. A retransmission of the timed segment ends the measurement (Karn's rule).
    #[inline]
    pub(crate) fn on_data(&mut self, now: Time, segment: &Segment) {
        let end = segment.end();
        match self.highest {
            Some(highest) if !end.after(highest) => {
                if self.timed.is_some_and(|(timed, _)| !timed.before(end)) {
                    self.timed = None;
                }
            }
            _ => {
                self.highest = Some(end);
                self.timed.get_or_insert((end, now));
            }
        }
    }

    /// Returns whether an ACK covers only data that has passed the edge. Returns false before any data has passed the
    /// edge.
    #[inline]
    pub(crate) fn covers(&self, ack: Seq) -> bool {
        self.highest.is_some_and(|highest| !ack.after(highest))
    }

    /// Processes an ACK that arrived from the radio.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Time, ack: Seq) {
        if let Some((end, sent)) = self.timed
            && !ack.before(end)
        {
            self.sum += now.since(sent);
            self.count += 1;
            self.timed = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::FlowId;

    #[test]
    fn one_segment_is_timed_at_a_time_and_retransmissions_do_not_count() {
        let data = |seq| Segment::data(FlowId(0), Seq(seq), 100, 40);
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut rtt = MeanRtt::default();
        rtt.on_data(at(0), &data(0));
        rtt.on_data(at(1), &data(100));
        rtt.on_ack(at(10), Seq(100));
        assert_eq!(rtt.mean(), Some(Span::from_millis(10)));
        // Bytes 100 to 199 passed while another segment was timed, so their ACK gives no sample.
        rtt.on_ack(at(11), Seq(200));
        rtt.on_data(at(20), &data(200));
        rtt.on_data(at(25), &data(200));
        rtt.on_ack(at(30), Seq(300));
        assert_eq!(rtt.mean(), Some(Span::from_millis(10)));
    }
}
