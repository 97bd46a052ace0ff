//! What came of a script, in the words of scripts.

use ackclock_core::{Ecn, Flags, Segment, Span, Time};

use crate::script::{codepoint_name, letters};

/// What came of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Every segment up to the end, or up to what failed.
    pub seen: Vec<Seen>,
    /// What did not come about, if anything.
    pub failure: Option<Failure>,
}

/// A segment that passed. Segments of one instant that follow one another are one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// When.
    pub at: Time,
    /// From whom.
    pub direction: Direction,
    /// The segment as a script writes it.
    pub text: String,
}

/// Who sent a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The peer.
    In,
    /// The sender.
    Out,
}

/// What did not come about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Its line.
    pub line: usize,
    /// What the script says.
    pub expected: String,
    /// What happened instead.
    pub got: String,
}

impl Direction {
    /// The sign by which scripts write it.
    pub const fn sign(self) -> char {
        match self {
            Self::In => '<',
            Self::Out => '>',
        }
    }
}

/// Segments of one instant that follow one another and differ in nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    pub(crate) at: Time,
    pub(crate) first: Segment,
    /// Control bits of any of them.
    pub(crate) flags: Flags,
    /// Payload of all, bytes.
    pub(crate) len: u32,
}

impl Burst {
    pub(crate) fn new(at: Time, segment: Segment) -> Self {
        Self { at, first: segment, flags: segment.flags, len: segment.payload.into() }
    }

    /// Takes in a segment that goes on where the burst ends; whether it does.
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

    /// Takes in a segment whatever it is.
    pub(crate) fn add(&mut self, segment: &Segment) {
        self.len += u32::from(segment.payload);
        self.flags |= segment.flags;
    }

    /// As a script writes it, whose timestamps are `shift` ahead of the sender's clock.
    pub(crate) fn text(&self, shift: u32) -> String {
        let (seq, ack) = (self.first.seq.0, self.first.ack.0);
        let end = self.first.seq + self.len;
        let mut text = if self.first.ecn == Ecn::NotEct {
            String::new()
        } else {
            format!("{} ", codepoint_name(self.first.ecn))
        };
        text += &format!("{} {seq}:{}({})", letters(self.flags), end.0, self.len);
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

/// An instant in seconds.
pub(crate) fn seconds(at: Time) -> String {
    format!("{:.6}", at.as_secs_f64())
}

/// A span of time in milliseconds.
pub(crate) fn millis(span: Span) -> String {
    format!("{} ms", span.as_millis_f64())
}
