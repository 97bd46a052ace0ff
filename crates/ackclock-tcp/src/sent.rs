//! Data sent and not yet acknowledged: a ring of small records in sequence order.
//!
//! A record stores the boundaries of its segment, so that a retransmission repeats exactly this segment. Records are
//! numbered from zero over the life of the connection ([`Index`]). The ring grows to the largest window and then
//! allocates no more memory.

use ackclock_core::{Ring, Seq, Time};

/// Number of a record, counted from the first record of the connection.
pub type Index = u64;

/// Record of one sent segment. The struct is packed, because with thousands of flows records are most of a sender's
/// memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed(4))]
pub struct Record {
    /// Time of the segment's latest transmission.
    pub sent_at: Time,
    /// First sequence number of the segment.
    pub seq: Seq,
    /// Number of records in a run of SACKed records. The field is valid only in the first and last record of the run.
    pub run: u32,
    /// Number of sequence numbers used: one per byte of payload, and one each for SYN and FIN.
    pub len: u16,
    /// Marks that describe the state of the segment.
    pub marks: Marks,
}

impl Record {
    /// Sequence number after the last byte of the segment.
    pub fn end(&self) -> Seq {
        self.seq + u32::from(self.len)
    }

    /// Whether the segment is lost and was not retransmitted since.
    pub fn awaits_repair(&self) -> bool {
        self.marks.has(Marks::LOST) && !self.marks.has(Marks::AGAIN)
    }

    /// Payload of the segment, bytes.
    pub fn payload(&self) -> u16 {
        self.len - u16::from(self.marks.has(Marks::FIN)) - u16::from(self.marks.has(Marks::SYN))
    }
}

/// Set of marks that describe the state of a segment in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Marks(u8);

impl Marks {
    /// The receiver reported the segment as received (SACK, RFC 2018).
    pub const SACKED: Self = Self(0x01);
    /// The segment was marked lost by `IsLost` of RFC 6675 or by a timeout.
    pub const LOST: Self = Self(0x02);
    /// The segment was retransmitted since it was marked lost or since recovery started.
    pub const AGAIN: Self = Self(0x04);
    /// The segment was sent more than once, so it gives no RTT sample (Karn's rule).
    pub const REPEATED: Self = Self(0x08);
    /// The segment has the FIN flag.
    pub const FIN: Self = Self(0x10);
    /// The segment has the SYN flag.
    pub const SYN: Self = Self(0x20);
    /// The segment had the PSH flag when first sent.
    pub const PUSHED: Self = Self(0x40);
    /// The segment starts a chunk, if the sender marks chunks.
    pub const BEGINS: Self = Self(0x80);

    /// Set of marks that the scoreboard counts.
    pub const COUNTED: Self = Self(0x07);

    /// Whether any mark of `other` is set in this set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Sets all marks that are in `other`.
    pub const fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Clears all marks that are in `other`.
    pub const fn clear(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    /// Union of the two sets of marks.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Ring of the records of sent segments.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    records: Ring<Record>,
    first: Index,
}

impl Sent {
    /// Number of the oldest record, or of the next record if the ring is empty.
    pub fn first(&self) -> Index {
        self.first
    }

    /// Number of the next record to be added.
    pub fn end(&self) -> Index {
        self.first + self.records.len() as Index
    }

    /// Whether no segment is in flight.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Prefetches the oldest records, which will be read soon, and the slot for the next record.
    #[inline]
    pub fn prefetch(&self) {
        self.records.prefetch();
    }

    /// The oldest record; `None` if nothing is in flight.
    pub fn front(&self) -> Option<&Record> {
        self.records.front()
    }

    /// The record with number `index`, which must be within `first()..end()`.
    pub fn get(&self, index: Index) -> &Record {
        #[cfg(test)]
        crate::work::look();
        self.records.get((index - self.first) as usize)
    }

    /// The record with number `index`, which must be at least `first()`; `None` if the record does not exist yet.
    #[inline]
    pub fn at(&self, index: Index) -> Option<&Record> {
        self.records.at((index - self.first) as usize)
    }

    /// Mutable reference to the record with number `index`.
    pub fn get_mut(&mut self, index: Index) -> &mut Record {
        #[cfg(test)]
        crate::work::look();
        self.records.get_mut((index - self.first) as usize)
    }

    /// Appends the record of a sent segment.
    #[inline]
    pub fn push(&mut self, record: Record) {
        // Number of records to prefetch, in about three cache lines: a growing window sends several segments at once.
        const PREFETCHED: usize = 12;
        self.records.push(record);
        self.records.prefetch_tail(PREFETCHED);
    }

    /// Removes the oldest record.
    #[inline]
    pub fn pop(&mut self) {
        debug_assert!(!self.is_empty());
        self.first += 1;
        self.records.drop_front();
    }

    /// Number of the first record that starts at or after `seq`; `end()` if there is none.
    pub fn at_or_after(&self, seq: Seq) -> Index {
        if self.is_empty() {
            return self.end();
        }
        let front = self.get(self.first);
        // Nearly all segments have equal size, so the estimated index is nearly always right.
        let guess = self.first + u64::from(seq.since(front.seq) / u32::from(front.len.max(1)));
        if guess < self.end() && self.get(guess).seq == seq {
            return guess;
        }
        let (mut low, mut high) = (self.first, self.end());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).seq.before(seq) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seq: u32, len: u16) -> Record {
        Record { sent_at: Time::ZERO, seq: Seq(seq), run: 0, len, marks: Marks::default() }
    }

    #[test]
    fn a_record_takes_20_bytes() {
        assert_eq!(size_of::<Record>(), 20);
    }

    #[test]
    fn records_are_found_by_sequence_number_across_the_wrap() {
        let mut sent = Sent::default();
        let start = u32::MAX - 2500;
        let mut seq = start;
        for (i, len) in [1000u16, 1000, 300, 1000, 1000, 7].into_iter().cycle().take(100).enumerate() {
            sent.push(record(seq, len));
            seq = seq.wrapping_add(u32::from(len));
            if i >= 30 {
                sent.pop();
            }
        }
        for index in sent.first()..sent.end() {
            let seq = sent.get(index).seq;
            assert_eq!(sent.at_or_after(seq), index);
            assert_eq!(sent.at_or_after(seq - 1), index);
            assert_eq!(sent.at_or_after(seq + 1), index + 1);
        }
    }
}
