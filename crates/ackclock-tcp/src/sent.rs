//! What was sent and is not yet acknowledged: a ring of small records in order of sequence number.
//!
//! A record has the boundaries of the segment that carried it, so that a retransmission is the same segment again. Records
//! are numbered from zero over the life of the connection ([`Index`]); the ring grows to the largest window and never
//! allocates after that.

use ackclock_core::{Ring, Seq, Time};

/// The number of a record, counted from the first one of the connection.
pub type Index = u64;

/// One segment in the ring. Packed, because with thousands of flows these are most of what a sender takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed(4))]
pub struct Record {
    /// When it was sent last.
    pub sent_at: Time,
    /// Its first sequence number.
    pub seq: Seq,
    /// At both ends of a run of SACKed records: how many records the run has. Meaningless elsewhere.
    pub run: u32,
    /// Sequence space that it takes: payload, and one each for SYN and FIN.
    pub len: u16,
    /// What is known of it.
    pub marks: Marks,
}

impl Record {
    /// The number after its last one.
    pub fn end(&self) -> Seq {
        self.seq + u32::from(self.len)
    }

    /// Whether it is lost and was not sent again since.
    pub fn awaits_repair(&self) -> bool {
        self.marks.has(Marks::LOST) && !self.marks.has(Marks::AGAIN)
    }

    /// Bytes of payload.
    pub fn payload(&self) -> u16 {
        self.len - u16::from(self.marks.has(Marks::FIN)) - u16::from(self.marks.has(Marks::SYN))
    }
}

/// What is known of a segment in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Marks(u8);

impl Marks {
    /// The receiver has it (RFC 2018).
    pub const SACKED: Self = Self(0x01);
    /// It is deemed lost (`IsLost` of RFC 6675), or a timeout declared it so.
    pub const LOST: Self = Self(0x02);
    /// It was sent again since it was deemed lost or recovery began.
    pub const AGAIN: Self = Self(0x04);
    /// It was sent more than once in its life: no round-trip time can be taken from it (Karn).
    pub const REPEATED: Self = Self(0x08);
    /// It carries the FIN.
    pub const FIN: Self = Self(0x10);
    /// It carries the SYN.
    pub const SYN: Self = Self(0x20);
    /// It carried PSH when it was sent first.
    pub const PUSHED: Self = Self(0x40);
    /// It begins what left at once, where the sender keeps that together.
    pub const BEGINS: Self = Self(0x80);

    /// The marks by which the scoreboard counts it.
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

    /// The marks of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The ring.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    records: Ring<Record>,
    first: Index,
}

impl Sent {
    /// The number of the oldest record, or of the next one where there is none.
    pub fn first(&self) -> Index {
        self.first
    }

    /// The number that the next record will have.
    pub fn end(&self) -> Index {
        self.first + self.records.len() as Index
    }

    /// Whether nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Says that the oldest records will be read soon, and one be added.
    #[inline]
    pub fn prefetch(&self) {
        self.records.prefetch();
    }

    /// The oldest record.
    pub fn front(&self) -> Option<&Record> {
        self.records.front()
    }

    /// The record of this number, which must be within `first()..end()`.
    pub fn get(&self, index: Index) -> &Record {
        #[cfg(test)]
        crate::work::look();
        self.records.get((index - self.first) as usize)
    }

    /// The record of this number, from `first()` on; `None` where there is none yet.
    #[inline]
    pub fn at(&self, index: Index) -> Option<&Record> {
        self.records.at((index - self.first) as usize)
    }

    /// The record of this number, to change it.
    pub fn get_mut(&mut self, index: Index) -> &mut Record {
        #[cfg(test)]
        crate::work::look();
        self.records.get_mut((index - self.first) as usize)
    }

    /// Adds the record that follows the last one.
    #[inline]
    pub fn push(&mut self, record: Record) {
        // About the records of three lines: a window that grows sends some at once.
        const FURTHER: usize = 12;
        self.records.push(record);
        self.records.prefetch_tail(FURTHER);
    }

    /// Takes the oldest record away.
    #[inline]
    pub fn pop(&mut self) {
        debug_assert!(!self.is_empty());
        self.first += 1;
        self.records.drop_front();
    }

    /// The first record that begins at or after `seq`; `end()` where none does.
    pub fn at_or_after(&self, seq: Seq) -> Index {
        if self.is_empty() {
            return self.end();
        }
        let front = self.get(self.first);
        // Nearly all segments have one size, so the guess is nearly always right.
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
