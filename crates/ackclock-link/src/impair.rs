//! # Impairments of a link
//!
//! Packets that are reordered, duplicated or corrupted.
//!
//! ## Source
//! The impairments of netem (`tc-netem(8)`); reordered packets and their extent: RFC 4737 sections 3 and 4.2.
//!
//! ## What it does
//! Wraps a link. In order:
//! - `corrupt`: a packet with payload gets a wrong bit before it enters the queue. A simulated packet is dropped by its
//!   receiver's checksum, when it arrives; a real one passes, and its bit is flipped when it leaves. Packets without
//!   payload pass unchanged.
//! - `duplicate`: a copy of the packet enters the queue directly behind it. The copy of a corrupt packet is corrupt.
//!   A full queue can refuse the copy.
//! - `reorder`: a packet leaves the link `extra` later, and later packets pass it. No other key of a link with a queue
//!   and a medium lets packets overtake.
//!
//! Each draws once for each packet, from the streams `NAME/corrupt`, `NAME/duplicate` and `NAME/reorder`.
//!
//! ## Differences from the source
//! netem holds all other packets for its `delay` and sends the chosen ones at once. Here the chosen ones are late.
//!
//! ## Validation
//! Shares, positions and counts by hand (`tests/impair.rs`); the laws of links (`tests/laws.rs`).

use std::borrow::Cow;
use std::collections::VecDeque;

use ackclock_core::{ConfigError, FlowId, Histogram, RadioReport, Segment, Span, Stream, Streams, Time};
use delegate::delegate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AnyLink, Cause, CellChange, Departures, Impairment, Link, LinkEvent, LinkView, Load, Loss, Medium,
};

/// Which packets leave late, and by how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of packets that leave late: 0 to 1 or "0%" to "100%".
    pub share: Loss,
    /// How much later they leave; later packets pass them. No other key lets the packets of a link overtake.
    pub extra: Span,
}

impl Reorder {
    /// Whether no packet is late.
    pub fn is_none(&self) -> bool {
        self.share.is_none()
    }
}

/// The keys `reorder`, `duplicate` and `corrupt` of a link's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Impairments {
    /// Packets that leave late.
    pub reorder: Reorder,
    /// Share of packets that are followed by a copy.
    pub duplicate: Loss,
    /// Share of packets with payload that get a wrong bit.
    pub corrupt: Loss,
}

impl Impairments {
    /// Whether packets stay as they are.
    pub fn is_none(&self) -> bool {
        self.reorder.is_none() && self.duplicate.is_none() && self.corrupt.is_none()
    }

    /// Refuses reordered packets that would not be late.
    ///
    /// # Errors
    /// Names the key.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !self.reorder.is_none() && self.reorder.extra == Span::ZERO {
            let message = "0s: a packet that leaves at its time is not reordered; write a time above 0";
            return Err(ConfigError::new("reorder.extra", message));
        }
        Ok(())
    }

    /// A link with these impairments; `link` itself if there are none.
    pub(crate) fn around(&self, link: AnyLink, streams: &Streams, name: &str) -> AnyLink {
        if self.is_none() {
            return link;
        }
        let chance = |what: &str, share: Loss| Chance {
            share: share.probability(),
            stream: streams.stream(&format!("{name}/{what}")),
        };
        AnyLink::Other(Box::new(Impaired {
            inner: link,
            corrupt: chance("corrupt", self.corrupt),
            duplicate: chance("duplicate", self.duplicate),
            reorder: chance("reorder", self.reorder.share),
            extra: self.reorder.extra,
            delivered: 0,
            held: VecDeque::new(),
        }))
    }
}

/// Draws whether a packet is chosen.
struct Chance {
    share: f64,
    stream: Stream,
}

impl Chance {
    fn strikes(&mut self) -> bool {
        self.stream.chance(self.share)
    }
}

/// A link with impairments.
struct Impaired {
    inner: AnyLink,
    corrupt: Chance,
    duplicate: Chance,
    reorder: Chance,
    extra: Span,
    /// Packets that the inner link has delivered.
    delivered: u64,
    /// Events by instant; at equal instants in order of arrival.
    held: VecDeque<Held>,
}

/// An event that is not reported yet.
struct Held {
    at: Time,
    event: LinkEvent,
    segment: Segment,
    /// Position of the packet among those that the inner link delivered.
    number: u64,
    /// Packets of its flow that were delivered since the first later one passed it.
    extent: u32,
}

impl Held {
    /// What to report next: before the delivery of a reordered packet, that it was reordered.
    fn event(&self) -> LinkEvent {
        match self.extent {
            0 => self.event,
            extent => LinkEvent::Impaired(Impairment::Reordered { extent }),
        }
    }
}

impl Impaired {
    fn hold(&mut self, at: Time, event: LinkEvent, segment: Segment) {
        let later = self.held.iter().rev().take_while(|held| held.at > at).count();
        let held = Held { at, event, segment, number: self.delivered, extent: 0 };
        self.held.insert(self.held.len() - later, held);
    }

    /// Processes the events of the inner link up to `now`.
    fn advance(&mut self, now: Time) {
        while let Some((mut at, mut event)) = self.inner.peek_event(now) {
            let segment = self.inner.take_segment();
            if event.is_delivery() {
                self.delivered += 1;
                if self.reorder.strikes() {
                    at += self.extra;
                }
                if segment.is_corrupt() && !segment.packet().has_bytes() {
                    event = LinkEvent::Corrupt;
                }
            }
            self.hold(at, event, segment);
        }
    }

    /// Counts a delivered packet for those of its flow that it passed.
    fn note_passed(&mut self, passing: &Held) {
        for held in &mut self.held {
            let is_late = held.number < passing.number || held.extent > 0;
            if is_late && held.event.is_delivery() && held.segment.flow == passing.segment.flow {
                held.extent += 1;
            }
        }
    }
}

impl Link for Impaired {
    fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        let mut segment = *segment;
        if self.corrupt.strikes() && (segment.payload > 0 || !segment.is_tcp()) {
            segment.corrupt();
        }
        let is_duplicated = self.duplicate.strikes();
        self.inner.enqueue(now, &segment)?;
        if is_duplicated {
            self.advance(now);
            if self.inner.enqueue(now, &segment).is_ok() {
                self.hold(now, LinkEvent::Impaired(Impairment::Duplicated), segment);
            }
        }
        Ok(())
    }

    fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)> {
        self.advance(now);
        self.held.front().filter(|held| held.at <= now).map(|held| (held.at, held.event()))
    }

    fn take_segment(&mut self) -> Segment {
        let first = self.held.front_mut().expect("the caller has seen the event");
        if first.extent > 0 {
            first.extent = 0;
            return first.segment;
        }
        let taken = self.held.pop_front().expect("there is a first one");
        if taken.event.is_delivery() {
            self.note_passed(&taken);
        }
        taken.segment
    }

    fn poll_timeout(&self) -> Option<Time> {
        let held = self.held.front().map(|held| held.at);
        [self.inner.poll_timeout(), held].into_iter().flatten().min()
    }

    fn let_go(&mut self) {
        self.held = VecDeque::new();
        self.inner.let_go();
    }

    delegate! {
        to self.inner {
            fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause>;
            fn want_departures(&mut self, departures: Departures);
            fn want_reports(&mut self);
            fn poll_report(&mut self, now: Time) -> Option<RadioReport>;
            fn view(&mut self, now: Time, flow: FlowId) -> LinkView;
            fn waiting(&mut self, now: Time) -> Load;
            fn waiting_of(&mut self, now: Time, user: u32) -> Load;
            fn waits(&self) -> Cow<'_, Histogram>;
            fn capacity_bps(&mut self, until: Time) -> Option<f64>;
            fn start_capacity(&mut self, now: Time);
            fn replace_medium(&mut self, now: Time, medium: Box<dyn Medium>);
            fn change_cell(&mut self, now: Time, change: CellChange);
            fn assign(&mut self, flow: FlowId, user: u32);
            fn forget(&mut self, flow: FlowId);
        }
    }
}
