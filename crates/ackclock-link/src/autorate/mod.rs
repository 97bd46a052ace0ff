//! # A shaper that steers its rate
//!
//! ## Source
//! The documented behaviour and the documented defaults of cake-autorate (Lynx and moeller0, versions 2 and 3): its README and the comments of its settings.
//! Queueing is that of [`FqCodelConfig`](crate::queue::FqCodelConfig).
//!
//! ## What it does
//! What a home router does today behind a link whose rate nobody knows: it shapes to a rate so low that the queue stands in the router, where flows are
//! served in turn, and looks for that rate by itself. Data waits in an FQ-CoDel of the edge's buffer and is passed on at the rate of the
//! shaper; ACKs pass. The rules by which the rate rises and falls stand in `controller`; the round trip that they act on in `round_trips`.
//! It needs three rates from its user, and that the sender and the receiver have timestamps: without any it stays at its base rate.
//!
//! ## Differences from the source
//! - CAKE is FQ-CoDel here: no shares by host, no thinning of ACKs.
//! - Only the direction towards the mobiles is shaped.
//! - The source pings reflectors, about every 50 ms in all. Here the timestamps of TCP tell the round trip, as often, and nothing is sent. It counts half
//!   for each direction, as the source counts that of a ping. On the side of the network it is that from the box to the mobile and back, on the other that to the server.
//! - Nothing is done where pings stay away; a box without traffic does nothing.
//! - A full packet at the rate of the shaper counts in all three thresholds; the source says that they are adjusted by it.
//!
//! ## Validation
//! The rules by hand (unit tests); the laws of bearers; a constant link found and kept (`crates/ackclock-scenario/tests/observed.rs`); beside the
//! regulators in `docs/how-to/box.md`.

mod config;
mod controller;
mod round_trips;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ackclock_core::{FlowId, Histogram, Segment, Span, Time};

pub use self::config::AutorateConfig;
use self::controller::Controller;
use self::round_trips::RoundTrips;
use crate::queue::FqCodelConfig;
use crate::{
    Bearer, BearerContext, BufferMeaning, Cause, Constant, Departures, Direction, Link, LinkEvent, LinkView,
    Load, QueuePlan, SerialLink, Side,
};

/// A bearer that shapes what goes down and passes on what goes up.
pub struct Autorate {
    side: Side,
    controller: Controller,
    shaper: SerialLink,
    up: VecDeque<(Time, Segment)>,
    flows: BTreeMap<FlowId, RoundTrips>,
    /// The event of the shaper that was told last.
    told: Option<(Time, LinkEvent)>,
}

impl Autorate {
    fn new(side: Side, controller: Controller, context: &BearerContext<'_>) -> Self {
        let queue = Arc::new(FqCodelConfig::default());
        let queue = QueuePlan::new(queue, context.down.capacity(), context.streams, "down/queue");
        let medium = Constant::new(controller.rate(), Span::ZERO);
        let shaper = SerialLink::new(medium, queue.build(), BufferMeaning::Waiting);
        Self { side, controller, shaper, up: VecDeque::new(), flows: BTreeMap::new(), told: None }
    }

    /// A segment passes the end of the box that is next to the queue of others.
    fn note_passage(&mut self, now: Time, direction: Direction, segment: &Segment) {
        if !segment.is_tcp() {
            return;
        }
        let trips = self.flows.entry(segment.flow).or_default();
        let asks = direction == if self.side == Side::Mobile { Direction::Up } else { Direction::Down };
        if asks {
            return trips.on_asked(now, segment);
        }
        let Some(round_trip) = trips.on_answer(now, segment) else { return };
        let before = self.controller.rate();
        self.controller.on_round_trip(now, round_trip);
        if self.controller.rate() != before {
            self.shaper.replace_medium(now, Box::new(Constant::new(self.controller.rate(), Span::ZERO)));
        }
    }
}

impl Bearer for Autorate {
    fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        // What comes down to a box before the queue has not passed its other end yet.
        if direction == Direction::Up || self.side == Side::Mobile {
            self.note_passage(now, direction, segment);
        }
        match direction {
            Direction::Down => self.shaper.enqueue(now, segment),
            Direction::Up => {
                self.up.push_back((now, *segment));
                Ok(())
            }
        }
    }

    fn enqueue_front(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        match direction {
            Direction::Down => self.shaper.enqueue_front(now, segment),
            Direction::Up => self.enqueue(now, direction, segment),
        }
    }

    fn peek_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)> {
        match direction {
            Direction::Down => {
                self.told = self.shaper.peek_event(now);
                self.told
            }
            Direction::Up => {
                let (at, _) = self.up.front().filter(|(at, _)| *at <= now)?;
                Some((*at, LinkEvent::DELIVERED))
            }
        }
    }

    fn take_segment(&mut self, direction: Direction) -> Segment {
        if direction == Direction::Up {
            let (_, segment) = self.up.pop_front().expect("an event was told before");
            return segment;
        }
        let segment = self.shaper.take_segment();
        if let Some((at, LinkEvent::Delivered(_))) = self.told.take() {
            self.controller.on_carried(at, segment.wire_bytes());
            if self.side == Side::Network {
                self.note_passage(at, direction, &segment);
            }
        }
        segment
    }

    fn due(&self, direction: Direction) -> Time {
        match direction {
            Direction::Down => self.shaper.poll_timeout().unwrap_or(Time::NEVER),
            Direction::Up => self.up.front().map_or(Time::NEVER, |(at, _)| *at),
        }
    }

    fn want_departures(&mut self, departures: Departures) {
        self.shaper.want_departures(departures);
    }

    fn view(&mut self, now: Time, direction: Direction, flow: FlowId) -> LinkView {
        match direction {
            Direction::Down => self.shaper.view(now, flow),
            Direction::Up => LinkView::NOTHING,
        }
    }

    fn waiting(&mut self, now: Time, direction: Direction) -> Load {
        match direction {
            Direction::Down => self.shaper.waiting(now),
            Direction::Up => Load::NONE,
        }
    }

    fn waits(&self, direction: Direction) -> Cow<'_, Histogram> {
        match direction {
            Direction::Down => self.shaper.waits(),
            Direction::Up => Cow::Owned(Histogram::default()),
        }
    }

    fn gauges(&self, direction: Direction) -> Vec<f64> {
        match direction {
            Direction::Down => self.controller.gauges(),
            Direction::Up => vec![0.0; 4],
        }
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        self.shaper.assign(flow, user);
    }

    fn forget(&mut self, flow: FlowId) {
        self.shaper.forget(flow);
        self.flows.remove(&flow);
    }

    fn let_go(&mut self) {
        self.shaper.let_go();
        self.flows.clear();
    }
}
