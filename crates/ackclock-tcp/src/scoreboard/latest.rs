//! Segments that an acknowledgement newly shows to have arrived.

use ackclock_core::{Seq, Span, Time};

use crate::sent::{Marks, Record};

/// A segment whose latest transmission is known to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latest {
    /// Time of the segment's latest transmission.
    pub sent_at: Time,
    /// Sequence number after the end of the segment.
    pub end: Seq,
}

impl Latest {
    /// Creates the entry for the latest transmission of `record`.
    pub fn of(record: &Record) -> Self {
        Self { sent_at: record.sent_at, end: record.end() }
    }

    /// Whether this segment was sent after the segment that was sent at `sent_at` and ends at `end`. If the
    /// transmission times are equal, the sequence numbers decide.
    pub fn was_sent_after(&self, sent_at: Time, end: Seq) -> bool {
        self.sent_at > sent_at || (self.sent_at == sent_at && self.end.after(end))
    }

    /// Returns the later of two transmissions.
    #[must_use]
    pub fn later_of(known: Option<Self>, new: Self) -> Self {
        known.filter(|known| known.was_sent_after(new.sent_at, new.end)).unwrap_or(new)
    }
}

/// Evidence of whether the latest transmission of a retransmitted segment has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Sendings {
    /// Arrival time of the acknowledgement.
    pub now: Time,
    /// Smallest round-trip time so far. Transmissions younger than the smallest round-trip time cannot have been
    /// acknowledged.
    pub min_rtt: Span,
    /// Timestamp that the acknowledgement echoes.
    pub echo: Option<u32>,
    /// Tick of the timestamp clock.
    pub tick: Span,
}

impl Sendings {
    /// Whether the latest transmission of a SACKed segment arrived, judged by age. A segment beyond a gap is
    /// acknowledged with an older timestamp echo, which is no evidence.
    fn arrived(&self, record: &Record) -> bool {
        !record.marks.has(Marks::REPEATED) || self.now.since(record.sent_at) >= self.min_rtt
    }

    /// Whether the latest transmission of a segment below the left edge arrived. If an earlier timestamp is echoed, the
    /// original transmission arrived (tcp_skb_spurious_retrans).
    fn passed(&self, record: &Record) -> bool {
        let stamp = |at: Time| Seq((at.as_nanos() / self.tick.as_nanos()) as u32);
        let original = |echo| Seq(echo).before(stamp(record.sent_at));
        !record.marks.has(Marks::REPEATED) || (self.arrived(record) && !self.echo.is_some_and(original))
    }
}

/// Segments that an acknowledgement newly shows to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrivals {
    /// Latest sent segment among the segments that arrived.
    pub latest: Option<Latest>,
    /// Last segment in sequence below the left edge among the segments that arrived.
    passed: Option<Latest>,
    /// Segment that was SACKed last.
    sacked: Option<Latest>,
    /// End of the lowest newly arrived segment that was sent only once.
    pub original: Option<Seq>,
    /// Highest right end of the SACKed segments.
    pub highest_sacked: Option<Seq>,
    /// Whether the left edge passed a retransmitted segment.
    pub passed_repeated: bool,
}

impl Arrivals {
    /// Last segment in sequence below the left edge that arrived by its latest transmission. If no such segment exists,
    /// the result is the segment that was SACKed last.
    pub fn last(&self) -> Option<Latest> {
        self.passed.or(self.sacked)
    }

    /// Adds a segment that the left edge passed.
    pub fn pass(&mut self, record: &Record, sendings: &Sendings) {
        self.passed_repeated |= record.marks.has(Marks::REPEATED);
        self.note(record);
        if sendings.passed(record) {
            self.passed = Some(Latest::of(record));
            self.latest = Some(Latest::later_of(self.latest, Latest::of(record)));
        }
    }

    /// Adds a segment that was SACKed.
    pub fn sack(&mut self, record: &Record, sendings: &Sendings) {
        let end = record.end();
        self.highest_sacked = Some(self.highest_sacked.map_or(end, |highest| highest.max(end)));
        self.note(record);
        if sendings.arrived(record) {
            self.sacked = Some(Latest::of(record));
            self.latest = Some(Latest::later_of(self.latest, Latest::of(record)));
        }
    }

    fn note(&mut self, record: &Record) {
        if !record.marks.has(Marks::REPEATED) {
            let end = record.end();
            self.original = Some(self.original.map_or(end, |lowest| lowest.min(end)));
        }
    }
}
