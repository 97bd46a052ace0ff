//! What an acknowledgement shows to have arrived.

use ackclock_core::{Seq, Span, Time};

use crate::sent::{Marks, Record};

/// The segment that was sent last among those that an acknowledgement shows to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latest {
    /// When it was sent last.
    pub sent_at: Time,
    /// One past its last number.
    pub end: Seq,
}

impl Latest {
    /// What `record` tells.
    pub fn of(record: &Record) -> Self {
        Self { sent_at: record.sent_at, end: record.end() }
    }

    /// Whether it was sent after what was sent at `sent_at` and ends before `end`; at one instant numbers tell.
    pub fn was_sent_after(&self, sent_at: Time, end: Seq) -> bool {
        self.sent_at > sent_at || (self.sent_at == sent_at && self.end.after(end))
    }

    /// The later of two.
    #[must_use]
    pub fn later_of(known: Option<Self>, new: Self) -> Self {
        known.filter(|known| known.was_sent_after(new.sent_at, new.end)).unwrap_or(new)
    }
}

/// What tells of a segment that was sent more than once whether it arrived as it was sent last.
#[derive(Clone, Copy, Debug)]
pub struct Sendings {
    /// When the acknowledgement came.
    pub now: Time,
    /// Smallest round-trip time so far: what was sent since had no time to be answered.
    pub min_rtt: Span,
    /// The timestamp that it echoes.
    pub echo: Option<u32>,
    /// Tick of the clock of timestamps.
    pub tick: Span,
}

impl Sendings {
    /// Whether a segment that is SACKed arrived as it was sent last. What comes behind a gap is answered with an older echo.
    fn arrived(&self, record: &Record) -> bool {
        !record.marks.has(Marks::REPEATED) || self.now.since(record.sent_at) >= self.min_rtt
    }

    /// Whether one that the left edge passes did: where an earlier timestamp is echoed, it was the original (tcp_skb_spurious_retrans).
    fn passed(&self, record: &Record) -> bool {
        let stamp = |at: Time| Seq((at.as_nanos() / self.tick.as_nanos()) as u32);
        let original = |echo| Seq(echo).before(stamp(record.sent_at));
        !record.marks.has(Marks::REPEATED) || (self.arrived(record) && !self.echo.is_some_and(original))
    }
}

/// The segments that an acknowledgement shows to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrivals {
    /// The one that was sent last, of those that arrived as they were sent last.
    pub latest: Option<Latest>,
    /// The last of those of them that the left edge passed.
    passed: Option<Latest>,
    /// The last of those of them that were SACKed.
    sacked: Option<Latest>,
    /// End of the lowest that was sent but once.
    pub original: Option<Seq>,
    /// The highest end of those that were SACKed.
    pub highest_sacked: Option<Seq>,
    /// Whether one that the left edge passed was sent more than once.
    pub passed_repeated: bool,
}

impl Arrivals {
    /// The last of those that arrived as they were sent last that the left edge passed, in their order; if there is none, the last
    /// that is SACKed.
    pub fn last(&self) -> Option<Latest> {
        self.passed.or(self.sacked)
    }

    /// The left edge passed one more.
    pub fn pass(&mut self, record: &Record, sendings: &Sendings) {
        self.passed_repeated |= record.marks.has(Marks::REPEATED);
        self.note(record);
        if sendings.passed(record) {
            self.passed = Some(Latest::of(record));
            self.latest = Some(Latest::later_of(self.latest, Latest::of(record)));
        }
    }

    /// One more is SACKed.
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
