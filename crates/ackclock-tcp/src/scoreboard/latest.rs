//! The segment sent last of those that arrived.

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
    pub again: bool,
}

impl Latest {
    /// What `record` tells.
    pub fn of(record: &Record) -> Self {
        Self { sent_at: record.sent_at, end: record.end(), again: record.marks.has(Marks::REPEATED) }
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
