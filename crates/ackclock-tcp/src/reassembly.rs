//! # Reassembly
//!
//! Records bytes received beyond the next expected byte, as sorted ranges. The order in which arrivals last extended
//! the ranges is also recorded.
//!
//! ## Source
//! RFC 2018 section 4 (order of SACK blocks), and RFC 2883 section 4 (which bytes count as duplicate).
//!
//! ## What it does
//! Stored ranges are never adjacent to each other. Every arrival stamps the range that it joins, so SACK blocks are the
//! ranges by descending stamp. Only the positions of received bytes are stored, not the bytes. A stack of stamps gives
//! the newest ranges in constant time, for any number of gaps.
//!
//! ## Differences from the source
//! The order of SACK blocks follows RFC 2018, which requires the most recently reported blocks to be repeated. This
//! implementation reports the most recently received ranges; these are also the most recently reported blocks.
//!
//! ## Validation
//! Unit tests of `receiver` compare the ranges with a bitmap, byte by byte, under random overlapping segments.

use std::collections::VecDeque;

use ackclock_core::{SackBlock, Segment, Seq};

/// Ranges of sequence numbers received beyond a gap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    /// Sorted ranges, disjoint and not adjacent. All ranges lie within half of the sequence space.
    ranges: VecDeque<Range>,
    /// Total of received bytes in all ranges.
    bytes: u32,
    /// Arrivals in order of time, the latest last. The list has the last arrival of each range. The list may also have
    /// stale arrivals, but not among the newest ranges.
    recent: Vec<Touch>,
    /// Stamp of the latest arrival: the number of arrivals so far.
    arrivals: u32,
}

/// One range of received bytes, with its headers and stamp.
#[derive(Clone, Copy, Debug)]
struct Range {
    block: SackBlock,
    /// Header bytes of the segments in the range.
    headers: u32,
    /// Number of the last arrival that extended the range.
    stamp: u32,
}

/// An arrival that extended a range.
#[derive(Clone, Copy, Debug)]
struct Touch {
    /// Sequence number of the left end of the range.
    left: Seq,
    stamp: u32,
}

/// A range that is no longer beyond a gap, and so can be delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    /// Sequence number after the last byte of the range.
    pub(crate) right: Seq,
    /// Header bytes of the segments in the range.
    pub(crate) headers: u32,
}

impl Reassembly {
    /// Whether no bytes are stored beyond a gap.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Right end of the highest range; `None` if no range is stored.
    pub(crate) fn end(&self) -> Option<Seq> {
        self.ranges.back().map(|range| range.block.right)
    }

    /// Total of bytes stored beyond gaps.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Adds the arrival of a segment. Returns the first contiguous part of the arrival that had arrived before, if any.
    ///
    /// `flags` is the number of sequence numbers of the arrival that are not payload. `headers` count only if the
    /// arrival brings new payload.
    pub(crate) fn insert(&mut self, arrival: SackBlock, flags: u32, headers: u32) -> Option<SackBlock> {
        self.arrivals = self.arrivals.wrapping_add(1);
        let (first, after) = self.touched_by(arrival);
        let mut merged = Range { block: arrival, headers: 0, stamp: self.arrivals };
        let mut news = arrival.right.since(arrival.left);
        let mut duplicate = None;
        for range in self.ranges.range(first..after) {
            let common = SackBlock {
                left: range.block.left.max(arrival.left),
                right: range.block.right.min(arrival.right),
            };
            if common.left.before(common.right) {
                news -= common.right.since(common.left);
                duplicate = duplicate.or(Some(common));
            }
            merged.block.left = merged.block.left.min(range.block.left);
            merged.block.right = merged.block.right.max(range.block.right);
            merged.headers = merged.headers.saturating_add(range.headers);
        }
        if news > flags {
            merged.headers = merged.headers.saturating_add(headers);
        }
        if first == after {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..after);
        }
        self.bytes += news;
        self.recent.push(Touch { left: merged.block.left, stamp: merged.stamp });
        self.settle();
        duplicate
    }

    /// Removes the first range if the range starts at or before `next`, the next byte expected.
    pub(crate) fn take_front(&mut self, next: Seq) -> Option<Delivered> {
        let front = self.ranges.pop_front_if(|range| range.block.left.at_or_before(next))?;
        self.bytes -= front.block.right.since(front.block.left);
        self.settle();
        Some(Delivered { right: front.block.right, headers: front.headers })
    }

    /// Adds SACK blocks to `ack` until it is full, starting with the most recently extended range.
    pub(crate) fn report(&self, ack: &mut Segment) {
        let room = Segment::MAX_SACK - ack.sack().len();
        self.newest().take(room).for_each(|range| ack.push_sack(range.block));
    }

    /// Whether at least `newest` ranges are more recent than the range that `arrival` joins. If `arrival` joins no
    /// range, the function returns whether at least `newest` ranges exist.
    pub(crate) fn joins_none_of(&self, newest: usize, arrival: SackBlock) -> bool {
        let (first, after) = self.touched_by(arrival);
        let joined = |range: &Range| self.ranges.range(first..after).any(|other| other.stamp == range.stamp);
        let mut others = self.newest().take_while(|range| !joined(range));
        others.nth(newest - 1).is_some()
    }

    /// The ranges, starting with the most recently extended range.
    fn newest(&self) -> impl Iterator<Item = &Range> {
        self.recent.iter().rev().filter_map(|touch| self.range_of(touch))
    }

    /// Range last extended by `touch`; `None` if a later arrival extended the range or the range was delivered.
    fn range_of(&self, touch: &Touch) -> Option<&Range> {
        #[cfg(test)]
        crate::work::look();
        let place = self.ranges.partition_point(|range| range.block.left.before(touch.left));
        self.ranges.get(place).filter(|range| range.stamp == touch.stamp)
    }

    /// Removes stale arrivals among the newest ranges that a report may need. Removes all stale arrivals once they are
    /// the majority.
    fn settle(&mut self) {
        let mut newest = [None; Segment::MAX_SACK];
        for place in &mut newest {
            while place.is_none()
                && let Some(touch) = self.recent.pop()
            {
                *place = Some(touch).filter(|touch| self.range_of(touch).is_some());
            }
        }
        self.recent.extend(newest.into_iter().rev().flatten());
        if self.recent.len() > 2 * self.ranges.len() + Segment::MAX_SACK {
            let mut recent = std::mem::take(&mut self.recent);
            recent.retain(|touch| self.range_of(touch).is_some());
            self.recent = recent;
        }
    }

    /// Ranges that overlap `arrival` or are adjacent to it, as indices `first..after`.
    fn touched_by(&self, arrival: SackBlock) -> (usize, usize) {
        // Segments beyond a gap mostly arrive in order, so an arrival usually extends the last range.
        if self.ranges.back().is_some_and(|last| last.block.right == arrival.left) {
            return (self.ranges.len() - 1, self.ranges.len());
        }
        let first = self.ranges.partition_point(|range| range.block.right.before(arrival.left));
        let after = self.ranges.partition_point(|range| range.block.left.at_or_before(arrival.right));
        (first, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::FlowId;

    fn block(left: u32, right: u32) -> SackBlock {
        SackBlock { left: Seq(left), right: Seq(right) }
    }

    fn reported(reassembly: &Reassembly) -> Vec<SackBlock> {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(0), 40);
        reassembly.report(&mut ack);
        ack.sack().to_vec()
    }

    #[test]
    fn blocks_are_reported_by_falling_recency() {
        let mut reassembly = Reassembly::default();
        for left in [10, 30, 50, 70] {
            reassembly.insert(block(left, left + 10), 0, 0);
        }
        reassembly.insert(block(40, 45), 0, 0);
        assert_eq!(reported(&reassembly), [block(30, 45), block(70, 80), block(50, 60)]);
    }

    #[test]
    fn what_joins_none_of_the_two_newest_is_told_from_what_does() {
        let mut reassembly = Reassembly::default();
        assert!(!reassembly.joins_none_of(2, block(10, 20)), "there are none");
        reassembly.insert(block(10, 20), 0, 0);
        reassembly.insert(block(30, 40), 0, 0);
        assert!(reassembly.joins_none_of(2, block(50, 60)), "a third");
        reassembly.insert(block(50, 60), 0, 0);
        let joins_none = [10, 20, 40, 60].map(|left| reassembly.joins_none_of(2, block(left, left + 5)));
        assert_eq!(joins_none, [true, true, false, false]);
    }

    #[test]
    fn an_arrival_joins_what_it_touches_and_reports_its_first_duplicate_part() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(block(10, 20), 0, 40);
        reassembly.insert(block(30, 40), 0, 40);
        // The arrival 15..35 repeats 15..20 and 30..35. RFC 2883 reports only the first contiguous part.
        assert_eq!(reassembly.insert(block(15, 35), 0, 40), Some(block(15, 20)));
        assert_eq!(reported(&reassembly), [block(10, 40)]);
        let delivered = reassembly.take_front(Seq(10)).unwrap();
        assert_eq!((delivered.right, delivered.headers), (Seq(40), 120));
        assert!(reassembly.is_empty());
    }

    #[test]
    fn ranges_stay_sorted_across_the_wrap_of_sequence_numbers() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(block(5, 9), 0, 0);
        reassembly.insert(block(u32::MAX - 9, u32::MAX), 0, 0);
        assert!(reassembly.take_front(Seq(u32::MAX - 20)).is_none());
        assert_eq!(reassembly.take_front(Seq(u32::MAX - 9)).unwrap().right, Seq(u32::MAX));
    }
}
