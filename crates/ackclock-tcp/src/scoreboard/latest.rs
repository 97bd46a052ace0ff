//! What an acknowledgement shows to have arrived.

use ackclock_core::{Seq, Time};

use crate::sent::{Marks, Record};

/// The segment that was sent last among those that an acknowledgement shows to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latest {
    /// When it was sent last.
    pub sent_at: Time,
    /// One past its last number.
    pub end: Seq,
    /// Whether it was sent more than once.
    pub is_repeated: bool,
}

impl Latest {
    /// What `record` tells.
    pub fn of(record: &Record) -> Self {
        Self { sent_at: record.sent_at, end: record.end(), is_repeated: record.marks.has(Marks::REPEATED) }
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

/// The segments that an acknowledgement shows to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrivals {
    /// The one that was sent last.
    pub latest: Option<Latest>,
    /// The last of those that the left edge passed.
    passed: Option<Latest>,
    /// The last of those that were SACKed.
    sacked: Option<Latest>,
    /// End of the lowest that was sent but once.
    pub original: Option<Seq>,
    /// The highest end of those that were SACKed.
    pub highest_sacked: Option<Seq>,
    /// Whether one that the left edge passed was sent more than once.
    pub passed_repeated: bool,
}

impl Arrivals {
    /// The last of those that the left edge passed, in their order; if there is none, the last that is SACKed.
    pub fn last(&self) -> Option<Latest> {
        self.passed.or(self.sacked)
    }

    /// The left edge passed one more.
    pub fn pass(&mut self, record: &Record) {
        self.passed = Some(Latest::of(record));
        self.passed_repeated |= record.marks.has(Marks::REPEATED);
        self.note(record);
    }

    /// One more is SACKed.
    pub fn sack(&mut self, record: &Record) {
        self.sacked = Some(Latest::of(record));
        let end = record.end();
        self.highest_sacked = Some(self.highest_sacked.map_or(end, |highest| highest.max(end)));
        self.note(record);
    }

    fn note(&mut self, record: &Record) {
        let told = Latest::of(record);
        self.latest = Some(Latest::later_of(self.latest, told));
        if !record.marks.has(Marks::REPEATED) {
            let end = record.end();
            self.original = Some(self.original.map_or(end, |lowest| lowest.min(end)));
        }
    }
}
