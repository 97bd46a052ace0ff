//! Data shared by the estimators of an observing edge: segments, acknowledgements, and the state of a probe.

use ackclock_core::{Segment, Span, Time};

/// A data segment that passed the box.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) segment: Segment,
    pub(super) at: Time,
    /// Position of the segment's first byte.
    pub(super) place: i64,
    /// Set if the window triggered the segment: it arrived as soon as the window allowed.
    pub(super) called: bool,
    /// Set if the segment is a retransmission; the ACK of retransmitted data gives no sample.
    pub(super) is_repetition: bool,
    pub(super) repeated: bool,
    pub(super) has_left: bool,
}

/// What is known of the time at which a segment passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    /// The time at which the segment passed.
    Exact,
    /// The earliest time at which the segment may have passed, little before the latest one: its own record is missing.
    About(Time),
    /// The latest time at which the segment may have passed: its own record is missing. It gives no loop sample.
    Latest,
}

/// Properties of a data segment, determined when it passes the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// Whether the segment carries new data.
    pub(super) is_new: bool,
    /// Time since the right edge that the segment needed was advertised.
    pub(super) since_told: Option<Span>,
    /// Whether the sender sent the segment as soon as the needed right edge arrived, as shown by the segment's
    /// timestamp echo; `None` if no timestamp shows it.
    pub(super) prompt: Option<bool>,
}

/// Data that one ACK acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acknowledged {
    pub(super) bytes: u64,
    /// Newest acknowledged segment that was sent only once: time since the segment passed, and whether the window
    /// triggered the segment.
    pub(super) newest: Option<(Span, bool)>,
}

/// Start condition of probes, and the state of the running probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// Time without a sample near the minimum after which a probe starts; `None` if probes never start, because no
    /// regulator uses the estimates.
    pub(super) after: Option<Span>,
    pub(super) runs: Option<Run>,
    /// Number of probes so far.
    pub(super) begun: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) since: Time,
    /// Time from which on the queue counts as empty.
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

    /// Whether a sample that ends at `now` started when the probe had emptied the queue.
    pub(super) fn counts(&self, now: Time, sample: Span) -> bool {
        let empty = self.runs.and_then(|run| run.empty);
        empty.is_some_and(|empty| now - sample >= empty)
    }
}
