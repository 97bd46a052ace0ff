//! Data shared by the estimators of an observing edge: segments, acknowledgements, and the state of a probe.

use ackclock_core::{Segment, Span, Time};

/// A data segment that passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) segment: Segment,
    pub(super) at: Time,
    /// Position of its first byte.
    pub(super) place: i64,
    /// The window triggered it: it arrived as soon as it could.
    pub(super) called: bool,
    /// A retransmission, or retransmitted: its ACK gives no sample.
    pub(super) is_repetition: bool,
    pub(super) repeated: bool,
    pub(super) has_left: bool,
}

/// Properties of a data segment that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// Whether it is new data.
    pub(super) is_new: bool,
    /// Time since the right edge that it needed was advertised.
    pub(super) since_told: Option<Span>,
    /// Whether the sender sent it as soon as that right edge arrived, as far as its timestamp echo shows.
    pub(super) prompt: bool,
}

/// Data acknowledged by an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acknowledged {
    pub(super) bytes: u64,
    /// The newest segment of it that was sent once: time since it passed, and whether it was triggered.
    pub(super) newest: Option<(Span, bool)>,
}

/// When probes start, and the state of the running one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// Probe after this long without a low sample; `None`: never, as nothing uses the estimates.
    pub(super) after: Option<Span>,
    pub(super) runs: Option<Run>,
    /// Number of probes so far.
    pub(super) begun: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) since: Time,
    /// From this instant on the queue counts as empty.
    pub(super) empty: Option<Time>,
}

impl Probe {
    pub(super) const fn new(after: Option<Span>) -> Self {
        Self { after, runs: None, begun: 0 }
    }

    /// Whether a probe is running.
    pub(super) const fn runs(&self) -> bool {
        self.runs.is_some()
    }

    /// Number of probes so far.
    pub(super) const fn begun(&self) -> u32 {
        self.begun
    }

    /// Whether a sample that ends at `now` began in an empty queue.
    pub(super) fn counts(&self, now: Time, sample: Span) -> bool {
        let empty = self.runs.and_then(|run| run.empty);
        empty.is_some_and(|empty| now - sample >= empty)
    }
}
