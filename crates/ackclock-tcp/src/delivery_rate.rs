//! # Delivery rate
//!
//! Estimates the rate at which the network delivered the latest flight of segments. The estimate is available to
//! controllers that request the rate ([`CongestionControl::wants_rate`](crate::cc::CongestionControl::wants_rate)).
//!
//! ## Source
//! draft-cheng-iccrg-delivery-rate-estimation-02, sections 3.2 and 3.3.
//!
//! ## What it does
//! Every segment in flight has a tag. The tag holds the total of delivered bytes and the time of the last delivery when
//! the segment was sent. When the segment is delivered, the bytes delivered since its transmission give a rate sample.
//! The bytes are divided by the longer of the send interval and the ACK interval, because the network may compress
//! ACKs.
//!
//! The sender calls these functions in this order:
//! - for each segment sent or retransmitted: [`DeliveryRate::on_sent`], with the bytes in flight before the segment;
//! - for each ACK: [`DeliveryRate::on_sacked`] for every newly SACKed range, [`DeliveryRate::on_acked`] if the left
//!   edge moved, then once [`DeliveryRate::sample`];
//! - when the window allows more data but the application has none: [`DeliveryRate::on_app_limited`].
//!
//! ## Differences from the source
//! - The acknowledged part of a segment counts at once. A SACKed part counts only when the rest of the segment has
//!   arrived too.
//! - The draft compares tags by transmission time, then by sequence number. This implementation compares tags by the
//!   order of the calls.
//!
//! ## Validation
//! Unit tests below compare with hand computations for a constant link, compressed ACKs, an idle sender and a
//! retransmission.

use std::collections::VecDeque;

use ackclock_core::{Rate, SackBlock, Seq, Span, Time};

use crate::cc::RateSample;

/// Delivery rate estimator of one connection.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    /// Tags of all segments from the left edge on, in sequence order, without gaps.
    tags: VecDeque<Tag>,
    /// Sequence number of the first byte of the first tag.
    left: Seq,
    /// C.delivered: total of bytes delivered so far.
    delivered: u64,
    /// C.delivered_time: time at which the latest bytes were delivered.
    delivered_at: Time,
    /// C.first_sent_time: transmission time of the segment most recently found delivered.
    first_sent: Time,
    /// C.app_limited: total of delivered bytes up to which samples are application-limited.
    app_limited_until: u64,
    /// Tag of the latest sent segment among the segments delivered by this ACK.
    newest: Option<Tag>,
}

/// Tag of a segment: state of the estimator when the segment was sent.
#[derive(Clone, Copy, Debug)]
struct Tag {
    /// Sequence number after the last byte of the segment.
    right: Seq,
    /// Whether the segment's bytes are already counted as delivered.
    counted: bool,
    app_limited: bool,
    /// P.sent_time: transmission time of the segment.
    sent: Time,
    /// P.first_sent_time: C.first_sent_time when the segment was sent.
    first_sent: Time,
    /// P.delivered_time: C.delivered_time when the segment was sent.
    delivered_at: Time,
    /// P.delivered: C.delivered when the segment was sent.
    delivered: u64,
}

impl DeliveryRate {
    /// Records that the bytes `range` are sent or retransmitted. `outstanding` is the number of bytes already sent and
    /// not acknowledged.
    pub fn on_sent(&mut self, now: Time, range: SackBlock, outstanding: u32) {
        if outstanding == 0 {
            // Idle time belongs neither to the send interval nor to the ACK interval.
            self.first_sent = now;
            self.delivered_at = now;
        }
        if self.tags.is_empty() {
            self.left = range.left;
        }
        let tag = self.tag(now, range.right);
        let known = self.tags.back().map_or(self.left, |last| last.right);
        if range.left.before(known) {
            let again = self.within(SackBlock { left: range.left, right: range.right.min(known) });
            for old in self.tags.range_mut(again) {
                *old = Tag { right: old.right, counted: old.counted, ..tag };
            }
        }
        if range.right.after(known) {
            self.tags.push_back(tag);
        }
    }

    /// Records that the bytes `range` are newly SACKed.
    pub fn on_sacked(&mut self, now: Time, range: SackBlock) {
        for index in self.within(range) {
            let left = self.left_of(index);
            self.take(now, index, left, self.tags[index].right);
        }
    }

    /// Records that all bytes before `una` are acknowledged.
    pub fn on_acked(&mut self, now: Time, una: Seq) {
        while let Some(&front) = self.tags.front().filter(|_| self.left.before(una)) {
            let right = front.right.min(una);
            self.take(now, 0, self.left, right);
            self.left = right;
            if right != front.right {
                self.tags[0].counted = front.counted;
                return;
            }
            self.tags.pop_front();
        }
    }

    /// Records that the application limits the sending: the window allows more data than the application has.
    /// `in_flight` is the number of bytes in flight.
    pub fn on_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Whether the application limits sending.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// Ends the processing of an ACK. Returns the delivery rate of the flight that the ACK acknowledges.
    ///
    /// Returns `None` if the ACK delivered nothing. Also returns `None` if the interval is shorter than the smallest
    /// round-trip time, which is impossible for a flight.
    pub fn sample(&mut self, min_rtt: Option<Span>) -> Option<RateSample> {
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let tag = self.newest.take()?;
        let send = tag.sent.since(tag.first_sent);
        let ack = self.delivered_at.since(tag.delivered_at);
        let interval = send.max(ack).as_nanos();
        if interval == 0 || min_rtt.is_some_and(|min_rtt| interval < min_rtt.as_nanos()) {
            return None;
        }
        let bits_times_1e9 = u128::from(self.delivered - tag.delivered) * 8_000_000_000;
        Some(RateSample {
            rate: Rate::from_bps(u64::try_from(bits_times_1e9 / u128::from(interval)).unwrap_or(u64::MAX)),
            delivered: self.delivered,
            prior_delivered: tag.delivered,
            app_limited: tag.app_limited,
        })
    }

    /// Total of bytes delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    fn tag(&self, now: Time, right: Seq) -> Tag {
        Tag {
            right,
            counted: false,
            app_limited: self.is_app_limited(),
            sent: now,
            first_sent: self.first_sent,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
        }
    }

    /// Counts the bytes `left..right` of a segment as delivered, unless they are already counted.
    fn take(&mut self, now: Time, index: usize, left: Seq, right: Seq) {
        let tag = &mut self.tags[index];
        if tag.counted {
            return;
        }
        tag.counted = true;
        self.delivered += u64::from(right.since(left));
        self.delivered_at = now;
        if self.newest.is_none_or(|newest| tag.sent >= newest.sent) {
            self.newest = Some(*tag);
            self.first_sent = tag.sent;
        }
    }

    /// Indices of the tags of segments entirely within `range`.
    fn within(&self, range: SackBlock) -> std::ops::Range<usize> {
        let first = self.tags.partition_point(|tag| tag.right.at_or_before(range.left));
        let first =
            if first < self.tags.len() && self.left_of(first).before(range.left) { first + 1 } else { first };
        let after = self.tags.partition_point(|tag| tag.right.at_or_before(range.right));
        first..after.max(first)
    }

    fn left_of(&self, index: usize) -> Seq {
        if index == 0 { self.left } else { self.tags[index - 1].right }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 1000;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Segment number `index`, with 1000 bytes; numbers start at 1.
    fn segment(index: u32) -> SackBlock {
        SackBlock { left: Seq(1) + index * MSS, right: Seq(1) + (index + 1) * MSS }
    }

    fn kbit(rate: u64) -> Rate {
        Rate::from_bps(rate * 1000)
    }

    /// Ten segments in flight on a link of 100 segments a second with a round trip of 100 ms: 800 kbit/s.
    fn steady() -> DeliveryRate {
        let mut rate = DeliveryRate::default();
        for index in 0..10 {
            rate.on_sent(ms(u64::from(index) * 10), segment(index), index * MSS);
        }
        for index in 0..20 {
            let now = ms(100 + u64::from(index) * 10);
            rate.on_acked(now, segment(index).right);
            rate.sample(None);
            rate.on_sent(now, segment(index + 10), 9 * MSS);
        }
        rate
    }

    #[test]
    fn a_constant_link_gives_its_rate() {
        let mut rate = steady();
        // Segments 20 to 29 are in flight, sent at 200, 210, ... 290 ms. Segment 20 is acknowledged at 300 ms.
        rate.on_acked(ms(300), segment(20).right);
        let sample = rate.sample(Some(Span::from_millis(100))).unwrap();
        // The segment was sent at 200 ms, when 11 segments were delivered: 10 segments of 8 kbit in 100 ms.
        assert_eq!(sample.rate, kbit(800));
        assert_eq!((sample.prior_delivered, sample.delivered), (11_000, 21_000));
        assert!(!sample.app_limited);
    }

    #[test]
    fn compressed_acks_do_not_raise_it_above_the_sending_rate() {
        let mut rate = steady();
        // All ten segments arrive at once at 300 ms. The last was sent at 290 ms, when 20 segments were delivered. The
        // segment then found delivered had been sent at 190 ms: 10 segments in max(290 - 190, 300 - 290) ms.
        rate.on_acked(ms(300), segment(29).right);
        assert_eq!(rate.sample(None).unwrap().rate, kbit(800));
    }

    #[test]
    fn sack_and_ack_count_each_byte_once() {
        let mut rate = steady();
        rate.on_sacked(ms(300), SackBlock { left: segment(21).left, right: segment(22).right });
        assert_eq!(rate.delivered(), 22_000);
        rate.on_sacked(ms(301), segment(22));
        rate.on_acked(ms(302), segment(23).right);
        assert_eq!(rate.delivered(), 24_000);
    }

    #[test]
    fn a_retransmission_samples_from_its_own_sending() {
        let mut rate = steady();
        rate.on_sacked(ms(310), segment(21));
        rate.sample(None);
        rate.on_sent(ms(310), segment(20), 8 * MSS);
        rate.on_acked(ms(410), segment(21).right);
        // The segment is retransmitted at 310 ms with 21 segments delivered; one more is delivered by 410 ms.
        let sample = rate.sample(None).unwrap();
        assert_eq!((sample.prior_delivered, sample.delivered, sample.rate), (21_000, 22_000, kbit(80)));
    }

    #[test]
    fn idle_time_is_not_counted() {
        let mut rate = DeliveryRate::default();
        rate.on_sent(ms(0), segment(0), 0);
        rate.on_acked(ms(100), segment(0).right);
        rate.sample(None);
        rate.on_sent(ms(9000), segment(1), 0);
        rate.on_acked(ms(9100), segment(1).right);
        // The rate is 8 kbit in 100 ms.
        assert_eq!(rate.sample(None).unwrap().rate, kbit(80));
    }

    #[test]
    fn what_is_sent_while_the_application_starves_the_window_is_marked() {
        let mut rate = DeliveryRate::default();
        rate.on_sent(ms(0), segment(0), 0);
        rate.on_app_limited(MSS);
        rate.on_sent(ms(50), segment(1), MSS);
        let limited = |rate: &mut DeliveryRate, at, index| {
            rate.on_acked(ms(at), segment(index).right);
            rate.sample(None).unwrap().app_limited
        };
        assert!(!limited(&mut rate, 100, 0), "sent before");
        assert!(limited(&mut rate, 150, 1));
        rate.on_sent(ms(150), segment(2), 0);
        assert!(!limited(&mut rate, 250, 2), "the mark ends when what was in flight then is delivered");
    }

    #[test]
    fn a_flight_faster_than_the_round_trip_is_no_sample() {
        let mut rate = DeliveryRate::default();
        rate.on_sent(ms(0), segment(0), 0);
        rate.on_acked(ms(5), segment(0).right);
        assert_eq!(rate.sample(Some(Span::from_millis(6))), None);
        assert_eq!(rate.sample(None), None, "nothing delivered");
    }

    proptest! {
        #[test]
        fn every_byte_is_counted_once_whatever_comes(
            base in any::<u32>(),
            ops in prop::collection::vec((0u8..4, 0u32..20, 1u32..1500), 1..200),
        ) {
            let mut rate = DeliveryRate::default();
            let (mut una, mut next) = (Seq(base), Seq(base));
            for (step, (op, segments, bytes)) in ops.into_iter().enumerate() {
                let now = ms(step as u64);
                match op {
                    0 => {
                        rate.on_sent(now, SackBlock { left: next, right: next + bytes }, next.since(una));
                        next += bytes;
                    }
                    1 => rate.on_sent(now, SackBlock { left: una, right: (una + bytes).min(next) }, next.since(una)),
                    2 => rate.on_sacked(now, SackBlock { left: (una + segments * 500).min(next), right: next }),
                    _ => {
                        una = (una + bytes).min(next);
                        rate.on_acked(now, una);
                        prop_assert!(rate.delivered() >= u64::from(una.since(Seq(base))));
                    }
                }
                rate.sample(None);
                prop_assert!(rate.delivered() <= u64::from(next.since(Seq(base))));
            }
            rate.on_acked(ms(1000), next);
            prop_assert_eq!(rate.delivered(), u64::from(next.since(Seq(base))));
        }
    }
}
