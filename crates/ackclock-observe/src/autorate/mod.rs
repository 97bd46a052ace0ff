//! # A shaper that adapts its rate
//!
//! ## Source
//! Source: the documented behaviour and defaults of cake-autorate (Lynx and moeller0, versions 2 and 3), from its
//! README and the comments of its settings. Packets are queued as in [`FqCodelConfig`](ackclock_link::queue::FqCodelConfig) or
//! [`CakeConfig`](ackclock_link::queue::CakeConfig).
//!
//! ## What it does
//! Home routers use cake-autorate behind a link of unknown rate. The router shapes traffic below the link's rate, so
//! that the queue builds up in the router, which serves flows in turn. cake-autorate finds the link's rate by itself.
//! Downlink data is queued in an FQ-CoDel or CAKE queue of the size of the edge's buffer, and sent at the shaper's rate;
//! ACKs pass unchanged. With `min`, `base` and `max` alike it is CAKE's shaper. `controller` has the rules for the rate, and `round_trips` takes the delay samples that these rules
//! use. The user must configure three rates. Sender and receiver must use TCP timestamps: without timestamps the rate
//! remains the base rate.
//!
//! ## Differences from the source
//! - CAKE keeps the targets of the rate `base`; Linux sets them anew at each change. ACKs are thinned only by the
//!   regulator `ack-filter`.
//! - Only the downlink is shaped, not the uplink.
//! - The source pings reflectors, about every 50 ms in total. In this model round-trip times come from TCP timestamps,
//!   also about every 50 ms, and no pings are sent. Half of the round-trip time counts for each direction, as with a
//!   ping in the source. A box on the network side measures from the box to the mobile and back; a box on the mobile
//!   side measures from the box to the server and back.
//! - The rate does not change when measurements stop, so a box without traffic does nothing.
//! - The transmission time of a full packet at the shaper's rate is added to all three thresholds; the source says only
//!   that they are adjusted by this time.
//!
//! ## Validation
//! Unit tests compare steps of the rules with steps calculated by hand, and check the properties required of all
//! bearers. `crates/ackclock-scenario/tests/observed.rs` checks that the shaper finds and keeps a constant rate.
//! `docs/how-to/box.md` compares cake-autorate with the regulators.

mod config;
mod controller;
mod round_trips;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use ackclock_core::results::RadioCounts;
use ackclock_core::{FlowId, Histogram, RadioReport, Segment, Span, Time};
use ackclock_link::{
    Bearer, BearerContext, BufferMeaning, Cause, Change, Constant, Departures, Direction, Link, LinkEvent,
    LinkView, Load, Observing, QueuePlan, SerialLink, Side,
};

pub use self::config::{AutorateConfig, ShapedQueue};
use self::controller::Controller;
use self::round_trips::RoundTrips;
use ackclock_link::{Framing, Medium};

/// A bearer that shapes the downlink and passes the uplink unchanged.
pub struct Autorate {
    side: Side,
    controller: Controller,
    overhead: Framing,
    shaper: SerialLink,
    up: VecDeque<(Time, Segment)>,
    flows: BTreeMap<FlowId, RoundTrips>,
    /// Event of the shaper that was returned last.
    told: Option<(Time, LinkEvent)>,
}

impl Autorate {
    fn new(config: &AutorateConfig, context: &BearerContext<'_>) -> Self {
        let (side, controller, overhead) = (config.side, Controller::new(config), config.overhead);
        let queue = QueuePlan::new(config.queue(), context.down.capacity(), context.streams, "down/queue");
        let medium = overhead.around(Constant::new(controller.rate(), Span::ZERO).any());
        let shaper = SerialLink::new(medium, queue.build(), BufferMeaning::Waiting);
        Self { side, controller, overhead, shaper, up: VecDeque::new(), flows: BTreeMap::new(), told: None }
    }

    /// Handles a segment that passes the box on the side of the observed queue.
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
            let medium = self.overhead.around(Constant::new(self.controller.rate(), Span::ZERO).any());
            self.shaper.replace_medium(now, medium.boxed());
        }
    }
}

impl Bearer for Autorate {
    fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        // Downlink segments count later on the network side, when they leave the box towards the observed queue.
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
            let (_, segment) = self.up.pop_front().expect("an event was returned before");
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

    fn want_departures(&mut self, direction: Direction, departures: Departures) {
        if direction == Direction::Down {
            self.shaper.want_departures(departures);
        }
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

    fn waiting_of(&mut self, now: Time, _: u32) -> Load {
        self.waiting(now, Direction::Down)
    }

    fn radio(&self, _: Direction, _: Option<u32>) -> Option<RadioCounts> {
        None
    }

    fn capacity_bps(&mut self, _: Time, _: Direction) -> Option<f64> {
        None
    }

    fn start_capacity(&mut self, _: Time, _: Direction) {}

    fn want_reports(&mut self) {}

    fn poll_report(&mut self, _: Time) -> Option<RadioReport> {
        None
    }

    fn change(&mut self, _: Time, _: Direction, _: Change) {}

    fn classify(&mut self, _: FlowId, _: u8) {}

    #[inline]
    fn observing(&mut self) -> Option<&mut dyn Observing> {
        None
    }
}
