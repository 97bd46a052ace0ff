//! # Two links
//!
//! ## Source
//! Source: the channel of every experiment of CR02 and CR04, one link in each direction.
//!
//! ## What it does
//! The link of `[edge.down]` delivers data, the link of `[edge.up]` delivers ACKs. If a link is a cell, each user has a
//! separate uplink.
//!
//! ## Differences from the source
//! The model does not differ from the source.
//!
//! ## Validation
//! The tests of the individual links cover this bearer.

use std::borrow::Cow;

use ackclock_core::results::RadioCounts;
use ackclock_core::{Config, ConfigError, FlowId, Histogram, RadioReport, Segment, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AnyBearer, Bearer, BearerConfig, BearerContext, BearerLinks, Direction, Observing};
use crate::{
    AnyLink, BufferMeaning, Cause, CellUser, Change, Departures, Files, Link, LinkEvent, LinkView, Load,
    Nominal, OutageKind, PerUser,
};

/// Two independent links: `down` and `up`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinksConfig {}

impl Config for LinksConfig {}

impl BearerConfig for LinksConfig {
    fn uses_links(&self) -> bool {
        true
    }

    fn outage(&self) -> Option<OutageKind> {
        Some(OutageKind::Silent)
    }

    fn nominal(
        &self,
        direction: Direction,
        links: &BearerLinks,
        files: &dyn Files,
    ) -> Result<Nominal, ConfigError> {
        let down = links.down.nominal(files).map_err(|error| error.under("down"))?;
        let up = links.up.nominal(files).map_err(|error| error.under("up"))?;
        let rate = [down.rate, up.rate][direction as usize];
        Ok(Nominal { rate, delay: down.delay + up.delay })
    }

    fn gauges(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn build(&self, links: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError> {
        let down = context.link("down", context.down.clone(), context.meaning);
        let down = links.down.build(down).map_err(|error| error.under("down"))?;
        Ok(PlainBearer::new(down, uplink(links, &context)?).into())
    }
}

/// Builds the uplink: one link for all flows, or one link for each user of a cell.
fn uplink(links: &BearerLinks, context: &BearerContext<'_>) -> Result<AnyLink, ConfigError> {
    let build = |name: &str| {
        let queue = context.up.named(format!("{name}/queue"));
        let up = context.link(name, queue, BufferMeaning::Waiting);
        links.up.build(up).map_err(|error| error.under("up"))
    };
    let Some(users) = links.down.users() else { return build("up") };
    let users: u32 = users.iter().map(|user: &CellUser| user.count).sum();
    let links = (0..users).map(|user| build(&format!("up/{user}")));
    Ok(PerUser::new(links.collect::<Result<_, _>>()?).into())
}

/// A bearer made of two independent links.
pub struct PlainBearer {
    pub(super) links: [AnyLink; 2],
    /// Time of each link's next event, so that a link is polled only if an event is due.
    pub(super) due: [Time; 2],
}

impl PlainBearer {
    /// Creates a bearer from two links.
    pub fn new(down: impl Into<AnyLink>, up: impl Into<AnyLink>) -> Self {
        Self { links: [down.into(), up.into()], due: [Time::NEVER; 2] }
    }

    #[inline(always)]
    fn note_due(&mut self, direction: Direction) {
        self.due[direction as usize] = self.links[direction as usize].due();
    }
}

impl Bearer for PlainBearer {
    #[inline(always)]
    fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        let Self { links, due } = self;
        // Fast path for serial links, because nearly every link is serial.
        if let AnyLink::Serial(link) = &mut links[direction as usize]
            && let Some(planned) = link.planned()
        {
            let taken = planned.enqueue(now, segment);
            due[direction as usize] = planned.due();
            return taken;
        }
        let taken = links[direction as usize].enqueue(now, segment);
        self.note_due(direction);
        taken
    }

    fn enqueue_front(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        let taken = self.links[direction as usize].enqueue_front(now, segment);
        self.note_due(direction);
        taken
    }

    #[inline(always)]
    fn peek_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)> {
        if self.due(direction) > now {
            return None;
        }
        let event = self.links[direction as usize].peek_event(now);
        if event.is_none() {
            self.note_due(direction);
        }
        event
    }

    #[inline(always)]
    fn take_segment(&mut self, direction: Direction) -> Segment {
        let segment = self.links[direction as usize].take_segment();
        self.note_due(direction);
        segment
    }

    #[inline]
    fn due(&self, direction: Direction) -> Time {
        self.due[direction as usize]
    }

    fn want_departures(&mut self, direction: Direction, departures: Departures) {
        self.links[direction as usize].want_departures(departures);
        self.note_due(direction);
    }

    #[inline]
    fn view(&mut self, now: Time, direction: Direction, flow: FlowId) -> LinkView {
        self.links[direction as usize].view(now, flow)
    }

    // The stored deadlines stay valid, because reading the queue length makes no event happen earlier.
    fn waiting(&mut self, now: Time, direction: Direction) -> Load {
        self.links[direction as usize].waiting(now)
    }

    fn waiting_of(&mut self, now: Time, user: u32) -> Load {
        self.links[Direction::Down as usize].waiting_of(now, user)
    }

    fn want_reports(&mut self) {
        self.links[Direction::Down as usize].want_reports();
        self.note_due(Direction::Down);
    }

    #[inline]
    fn poll_report(&mut self, now: Time) -> Option<RadioReport> {
        let report = self.links[Direction::Down as usize].poll_report(now);
        // A report that was generated but not fetched yet is due.
        self.note_due(Direction::Down);
        report
    }

    fn waits(&self, direction: Direction) -> Cow<'_, Histogram> {
        self.links[direction as usize].waits()
    }

    fn gauges(&self, _: Direction) -> Vec<f64> {
        Vec::new()
    }

    fn capacity_bps(&mut self, until: Time, direction: Direction) -> Option<f64> {
        self.links[direction as usize].capacity_bps(until)
    }

    fn start_capacity(&mut self, now: Time, direction: Direction) {
        self.links[direction as usize].start_capacity(now);
    }

    fn change(&mut self, now: Time, direction: Direction, change: Change) {
        let link = &mut self.links[direction as usize];
        match change {
            Change::Medium(medium) => link.replace_medium(now, medium),
            Change::Cell(change) => link.change_cell(now, change),
            // An outage of a link is a replacement of its medium, or a change of a cell. Links have no hand-overs.
            Change::Outage(..) | Change::Dedicated(_) | Change::Iub(..) | Change::Handover(_) => {}
        }
        self.note_due(direction);
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        self.links.iter_mut().for_each(|link| link.assign(flow, user));
    }

    fn forget(&mut self, flow: FlowId) {
        self.links.iter_mut().for_each(|link| link.forget(flow));
    }

    fn let_go(&mut self) {
        self.links.iter_mut().for_each(Link::let_go);
    }

    fn radio(&self, _: Direction, _: Option<u32>) -> Option<RadioCounts> {
        None
    }

    fn classify(&mut self, _: FlowId, _: u8) {}

    #[inline]
    fn observing(&mut self) -> Option<&mut dyn Observing> {
        None
    }
}
