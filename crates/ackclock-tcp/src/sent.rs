//! Data sent and not yet acknowledged: a ring of small records in sequence order.
//!
//! A record has the boundaries of its segment, so that a retransmission is the same segment again. Records are numbered
//! from zero over the life of the connection ([`Index`]). The ring grows to the largest window and then never
//! allocates.

use ackclock_core::{Ring, Seq, Time};

/// Number of a record, counted from the first one of the connection.
pub type Index = u64;

/// One segment in the ring. Packed, because with thousands of flows records are most of a sender's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed(4))]
pub struct Record {
    /// Time of its latest transmission.
    pub sent_at: Time,
    /// Its first sequence number.
    pub seq: Seq,
    /// At both ends of a run of SACKed records: number of records in the run. Elsewhere meaningless.
    pub run: u32,
    /// Sequence space used: payload, and one each for SYN and FIN.
    pub len: u16,
    /// State of the segment.
    pub marks: Marks,
}

impl Record {
    /// One past its last sequence number.
    pub fn end(&self) -> Seq {
        self.seq + u32::from(self.len)
    }

    /// Whether it is lost and was not retransmitted since.
    pub fn awaits_repair(&self) -> bool {
        self.marks.has(Marks::LOST) && !self.marks.has(Marks::AGAIN)
    }

    /// Bytes of payload.
    pub fn payload(&self) -> u16 {
        self.len - u16::from(self.marks.has(Marks::FIN)) - u16::from(self.marks.has(Marks::SYN))
    }
}

/// State of a segment in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Marks(u8);

impl Marks {
    /// The receiver has it (RFC 2018).
    pub const SACKED: Self = Self(0x01);
    /// Marked lost by `IsLost` of RFC 6675 or by a timeout.
    pub const LOST: Self = Self(0x02);
    /// Retransmitted since it was marked lost or recovery began.
    pub const AGAIN: Self = Self(0x04);
    /// Sent more than once in total: it gives no round-trip time (Karn).
    pub const REPEATED: Self = Self(0x08);
    /// Has the FIN.
    pub const FIN: Self = Self(0x10);
    /// Has the SYN.
    pub const SYN: Self = Self(0x20);
    /// Had PSH when first sent.
    pub const PUSHED: Self = Self(0x40);
    /// Begins a chunk, if the sender marks chunks.
    pub const BEGINS: Self = Self(0x80);

    /// Marks counted by the scoreboard.
    pub const COUNTED: Self = Self(0x07);

    /// Whether any mark of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Sets the marks of `other`.
    pub const fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Clears the marks of `other`.
    pub const fn clear(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    /// Union of both sets of marks.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Ring of sent records.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    records: Ring<Record>,
    first: Index,
}

impl Sent {
    /// Number of the oldest record, or of the next one if the ring is empty.
    pub fn first(&self) -> Index {
        self.first
    }

    /// Number of the next record to be added.
    pub fn end(&self) -> Index {
        self.first + self.records.len() as Index
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Hints that the oldest records will be read soon, and one be added.
    #[inline]
    pub fn prefetch(&self) {
        self.records.prefetch();
    }

    /// The oldest record.
    pub fn front(&self) -> Option<&Record> {
        self.records.front()
    }

    /// The record with this number, which must be within `first()..end()`.
    pub fn get(&self, index: Index) -> &Record {
        #[cfg(test)]
        crate::work::look();
        self.records.get((index - self.first) as usize)
    }

    /// The record with this number, from `first()` on; `None` if it does not exist yet.
    #[inline]
    pub fn at(&self, index: Index) -> Option<&Record> {
        self.records.at((index - self.first) as usize)
    }

    /// The record with this number, mutable.
    pub fn get_mut(&mut self, index: Index) -> &mut Record {
        #[cfg(test)]
        crate::work::look();
        self.records.get_mut((index - self.first) as usize)
    }

    /// Appends a record.
    #[inline]
    pub fn push(&mut self, record: Record) {
        // About the records of three cache lines: a growing window sends several at once.
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

    /// First record that begins at or after `seq`; `end()` if there is none.
    pub fn at_or_after(&self, seq: Seq) -> Index {
        if self.is_empty() {
            return self.end();
        }
        let front = self.get(self.first);
        // Nearly all segments have equal size, so the guess is nearly always right.
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
