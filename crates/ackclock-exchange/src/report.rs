//! Outcome of a script run, formatted in script notation.

use ackclock_core::{Ecn, Flags, Segment, Span, Time};

use crate::script::{codepoint_name, letters};

/// Outcome of a script run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// All segments up to the end of the script, or up to the failure.
    pub seen: Vec<Seen>,
    /// Failure of the script; `None` if the script passed.
    pub failure: Option<Failure>,
}

/// A segment sent or received. Consecutive segments sent at one instant are merged into one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Time at which the segment was sent or received.
    pub at: Time,
    /// Direction in which the segment was sent.
    pub direction: Direction,
    /// Text of the segment in script notation.
    pub text: String,
}

/// Direction of a segment, as seen from the sender under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the peer to the sender.
    In,
    /// From the sender to the peer.
    Out,
}

/// An event or assertion of a script that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Line of the failed event or assertion in the script.
    pub line: usize,
    /// Behaviour that the script expects.
    pub expected: String,
    /// Actual behaviour of the sender.
    pub got: String,
}

impl Direction {
    /// Returns the sign of the direction in script notation: `<` or `>`.
    pub const fn sign(self) -> char {
        match self {
            Self::In => '<',
            Self::Out => '>',
        }
    }
}

/// Consecutive data segments sent at one instant, merged into one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    pub(crate) at: Time,
    pub(crate) first: Segment,
    /// Control bits of all segments, combined with OR.
    pub(crate) flags: Flags,
    /// Total payload of the burst, bytes.
    pub(crate) len: u32,
}

impl Burst {
    pub(crate) fn new(at: Time, segment: Segment) -> Self {
        Self { at, first: segment, flags: segment.flags, len: segment.payload.into() }
    }

    /// Adds a segment if it continues the burst; returns whether the segment was added.
    pub(crate) fn takes(&mut self, at: Time, segment: &Segment) -> bool {
        let goes_on = at == self.at
            && self.len > 0
            && segment.payload > 0
            && segment.seq == self.first.seq + self.len
            && !self.flags.intersects(Flags::FIN)
            && segment.ack == self.first.ack
            && segment.timestamps() == self.first.timestamps();
        if goes_on {
            self.add(segment);
        }
        goes_on
    }

    /// Adds a segment to the burst unconditionally.
    pub(crate) fn add(&mut self, segment: &Segment) {
        self.len += u32::from(segment.payload);
        self.flags |= segment.flags;
    }

    /// Formats the burst in script notation. Timestamps in the script are `shift` ahead of the sender's clock.
    pub(crate) fn text(&self, shift: u32) -> String {
        let (seq, ack) = (self.first.seq.0, self.first.ack.0);
        let end = self.first.seq + self.len;
        let mut text = if self.first.ecn == Ecn::NotEct {
            String::new()
        } else {
            format!("{} ", codepoint_name(self.first.ecn))
        };
        text += &format!("{} {seq}:{}({})", letters(self.flags, self.first.ae()), end.0, self.len);
        if self.flags.contains(Flags::ACK) {
            text += &format!(" ack {ack}");
        }
        let options = options(&self.first, shift);
        if options.is_empty() { text } else { format!("{text} <{}>", options.join(",")) }
    }
}

fn options(segment: &Segment, shift: u32) -> Vec<String> {
    let mut options = Vec::new();
    let syn = segment.syn_options().unwrap_or_default();
    options.extend(syn.mss.map(|mss| format!("mss {mss}")));
    options.extend(syn.sack_permitted.then(|| "sackOK".to_owned()));
    let stamps = segment.timestamps();
    options.extend(
        stamps.map(|stamps| format!("TS val {} ecr {}", stamps.value.wrapping_add(shift), stamps.echo)),
    );
    options.extend(syn.window_scale.map(|shift| format!("wscale {shift}")));
    options
}

/// Formats a time in seconds.
pub(crate) fn seconds(at: Time) -> String {
    format!("{:.6}", at.as_secs_f64())
}

/// Formats a time span in milliseconds.
pub(crate) fn millis(span: Span) -> String {
    format!("{} ms", span.as_millis_f64())
}
