//! Data shared by the estimators of an observing edge: segments, acknowledgements, and the state of a probe.

use ackclock_core::{Segment, Span, Time};

/// A data segment that passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) segment: Segment,
    pub(super) at: Time,
    /// Place of its first byte.
    pub(super) place: i64,
    /// The window had called for it: it came as soon as it could.
    pub(super) called: bool,
    /// It is a repetition, and its ACK has no round trip where it or its like was sent more than once.
    pub(super) is_repetition: bool,
    pub(super) repeated: bool,
    pub(super) has_left: bool,
}

/// What came of a data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// It is new.
    pub(super) is_new: bool,
    /// From the telling of the edge that it needed until now.
    pub(super) since_told: Option<Span>,
    /// The source sent it as soon as it was told that edge, as far as its echo of the mobile's clock tells.
    pub(super) prompt: bool,
}

/// What an ACK acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acknowledged {
    pub(super) bytes: u64,
    /// The newest of it that was sent once: from its passing until now, and whether it was called for.
    pub(super) newest: Option<(Span, bool)>,
}

/// When probes begin, and the one that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// After so long without a low sample; never, where nobody acts on what is estimated.
    pub(super) after: Option<Span>,
    pub(super) runs: Option<Run>,
    /// Probes so far.
    pub(super) begun: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) since: Time,
    /// From here on the queue is taken to be empty.
    pub(super) empty: Option<Time>,
}

impl Probe {
    pub(super) const fn new(after: Option<Span>) -> Self {
        Self { after, runs: None, begun: 0 }
    }

    /// Whether one runs.
    pub(super) const fn runs(&self) -> bool {
        self.runs.is_some()
    }

    /// Probes so far.
    pub(super) const fn begun(&self) -> u32 {
        self.begun
    }

    /// Whether a sample that ends at `now` began in an empty queue.
    pub(super) fn counts(&self, now: Time, sample: Span) -> bool {
        let empty = self.runs.and_then(|run| run.empty);
        empty.is_some_and(|empty| now - sample >= empty)
    }
}
