//! The edge: a bearer, and the regulators of the flows that cross it.
//!
//! For arriving data the bearer first runs up to `now`, then: `on_data`, `enqueue`, `on_queued` or `on_dropped`. Every
//! segment that enters is delivered, dropped, discarded or held; otherwise the packet pool of the live world would
//! leak.

mod regulation;

use std::sync::Arc;

use ackclock_core::results::LinkCounts;
use ackclock_core::{FlowId, Message, Node, Outbox, Port, Segment, Sink, Time, Wakes};
use ackclock_link::{AnyBearer, Bearer, BearerListener, Direction, LinkEvent, LinkView, Load, Medium};

use crate::copies::Copies;
use crate::flow_table::FlowTable;
use crate::regulators::RegulatorId;
use crate::report::Reporter;
use crate::step::Changes;
use crate::{EdgeStatistics, FlowStatistics, Regulator, RegulatorConfig};

/// Port towards the wired network.
pub const WIRED: Port = 0;
/// Port towards the mobiles.
pub const RADIO: Port = 1;
/// Port towards the listener of radio reports.
pub const REPORTS: Port = 2;

/// A bearer and the regulators of its flows.
pub struct Edge {
    bearer: AnyBearer,
    /// Sends radio reports; `None` without a listener.
    reporter: Option<Box<Reporter>>,
    flows: FlowTable,
    copies: Copies,
    /// Deadlines of the regulators, by regulator number.
    timers: Wakes,
    /// Number of slots of `timers`.
    timed: usize,
    /// When the bearer next has an event, changes, or has a report due.
    bearer_due: Time,
    /// Instant up to which the bearer has run.
    reached: Time,
    /// Scheduled changes of the bearer.
    changes: Changes,
    /// When the next change or periodic report is due.
    planned: Time,
    statistics: EdgeStatistics,
}

impl Edge {
    /// An edge over `bearer` that regulates at most `most_flows` flows at a time.
    pub fn new(bearer: impl Into<AnyBearer>, regulator: Arc<dyn RegulatorConfig>, most_flows: usize) -> Self {
        let mut bearer = bearer.into();
        bearer.want_departures(regulator.departures());
        Self {
            bearer,
            reporter: None,
            flows: FlowTable::new(regulator, most_flows),
            copies: Copies::new(usize::MAX),
            timers: Wakes::default(),
            timed: 0,
            bearer_due: Time::NEVER,
            reached: Time::ZERO,
            changes: Changes::default(),
            planned: Time::NEVER,
            statistics: EdgeStatistics::default(),
        }
    }

    /// Counters of the whole edge.
    pub fn statistics(&self) -> &EdgeStatistics {
        &self.statistics
    }

    /// Counters of one flow; `None` if it was never seen.
    pub fn flow_statistics(&self, flow: FlowId) -> Option<&FlowStatistics> {
        self.flows.get(flow).map(|flow| &flow.statistics)
    }

    /// Mean capacity of the link of a direction from the start to `until`, bit/s; `until` never decreases. `None` if
    /// the bearer does not know.
    pub fn capacity_bps(&mut self, until: Time, direction: Direction) -> Option<f64> {
        self.bearer.capacity_bps(until, direction)
    }

    /// Counters of the link of a direction up to `until`; the edge must have run up to there.
    pub fn link_counts(&mut self, until: Time, direction: Direction) -> LinkCounts {
        // Runs the link up to `until`, so that queueing delays are complete.
        let capacity_bps = self.capacity_bps(until, direction);
        let waits = self.bearer.waits(direction).into_owned();
        LinkCounts { capacity_bps, waits, ..self.statistics.of(direction) }
    }

    /// State of the queue that serves `flow`, as of the last event.
    pub fn view(&mut self, now: Time, flow: FlowId) -> LinkView {
        self.bearer.view(now, Direction::Down, flow)
    }

    /// Packets and bytes in all queues of a direction at `now`; the edge must have run up to there.
    pub fn waiting(&mut self, now: Time, direction: Direction) -> Load {
        self.bearer.waiting(now, direction)
    }

    /// Link-layer state of a direction: one value per name of [`EdgeConfig::gauges`](crate::EdgeConfig::gauges).
    pub fn gauges(&self, direction: Direction) -> Vec<f64> {
        self.bearer.gauges(direction)
    }

    /// Sets the user of a flow before its first segment, for cells, per-user queues and per-user regulators.
    pub fn assign(&mut self, flow: FlowId, user: u32) {
        self.bearer.assign(flow, user);
        self.flows.regulators.assign(flow, user);
        if let Some(reporter) = &mut self.reporter {
            reporter.assign(flow, user);
        }
    }

    /// Marks a flow as an upload before its first segment: it gets no regulator, unless regulators act on uploads.
    pub fn leave_upload_alone(&mut self, flow: FlowId) {
        self.flows.regulators.leave_upload_alone(flow);
    }

    /// Removes a flow and its state, so its number can be reused. No segment of the flow may be in the bearer or held.
    /// If the regulator serves other flows too, its remaining output is handled at `now`.
    pub fn forget(&mut self, now: Time, flow: FlowId) {
        self.part(now, flow);
        self.flows.forget(flow);
        self.bearer.forget(flow);
        if let Some(reporter) = &mut self.reporter {
            reporter.forget(flow);
        }
    }

    /// Ends the edge: frees all segments still inside.
    pub fn let_go(&mut self) {
        self.bearer.let_go();
    }

    /// Replaces the medium of a direction at `time`, or at once if that has passed.
    pub fn replace_medium(&mut self, time: Time, direction: Direction, medium: Box<dyn Medium>) {
        self.changes.add(time, direction, medium);
        self.note_planned();
    }

    /// Schedules these changes.
    pub(crate) fn expect(&mut self, changes: Changes) {
        self.changes = changes;
        self.note_planned();
    }

    /// Sends the reports of this reporter at port [`REPORTS`].
    pub(crate) fn report_by(&mut self, reporter: Reporter) {
        self.bearer.want_reports();
        self.reporter = Some(Box::new(reporter));
        self.note_planned();
    }

    /// Number of ACKs held for `flow`.
    pub fn held(&self, flow: FlowId) -> usize {
        self.regulator_of(flow).map_or(0, |regulator| regulator.held(flow))
    }

    /// Limits the copies that regulators keep; call before the first segment. A flow gets one more copy while the
    /// copies of the flow, of its user and of all users add up to less than `most`. Default: unlimited.
    pub fn keep_at_most(&mut self, most: usize) {
        self.copies = Copies::new(most);
    }

    /// Copies kept for all flows.
    pub fn copies(&self) -> usize {
        self.copies.all()
    }

    /// Segments of `flow` of which a copy is kept.
    pub fn kept(&self, flow: FlowId) -> usize {
        self.regulator_of(flow).map_or(0, |regulator| regulator.kept(flow))
    }

    fn regulator_of(&self, flow: FlowId) -> Option<&dyn Regulator> {
        self.flows.regulators.get(self.flows.get(flow)?.regulator()?)
    }

    /// Processes a segment that arrives at `port`.
    #[inline(always)]
    pub fn take(&mut self, now: Time, port: Port, segment: &Segment, out: &mut impl Sink) {
        if self.bearer_due <= now {
            self.catch_up(now, out);
        }
        if port == WIRED {
            self.handle_downlink(now, segment, out);
        } else if self.bearer.enqueue(now, Direction::Up, segment).is_err() {
            self.dropped_up(segment, out);
        }
        self.note_due();
        // A bearer may report events late, with an instant in the past; time never goes back.
        self.bearer_due = self.bearer_due.max(now);
    }

    /// Processes everything that is due at `now`.
    #[inline(always)]
    pub fn run(&mut self, now: Time, out: &mut impl Sink) {
        if self.bearer_due <= now {
            self.drain(now, out);
        }
        while let Some((deadline, slot)) = self.timers.first().filter(|&(deadline, _)| deadline <= now) {
            self.expire(now, RegulatorId::at(slot), out);
            // A regulator that does not move its deadline would be called forever.
            if self.timers.deadline(slot).is_some_and(|next| next <= deadline) {
                self.timers.set(slot, None);
            }
        }
    }

    /// When something is next due; [`Time::NEVER`] if nothing is.
    #[inline]
    pub fn due(&self) -> Time {
        self.timers.due().min(self.bearer_due)
    }

    /// Processes all events of the bearer up to `now`, and its changes that are due.
    #[inline(always)]
    fn drain(&mut self, now: Time, out: &mut impl Sink) {
        if self.planned <= now {
            self.do_planned(now, out);
        }
        self.drain_bearer(now, out);
        self.note_due();
    }

    /// Like [`drain`](Self::drain), out of line: before an arrival the bearer rarely has events left.
    #[cold]
    fn catch_up(&mut self, now: Time, out: &mut impl Sink) {
        self.drain(now, out);
    }

    /// Applies due changes of the bearer, then sends due reports.
    #[cold]
    fn do_planned(&mut self, now: Time, out: &mut impl Sink) {
        while self.planned <= now {
            let at = self.planned;
            while let Some((at, direction, medium)) = self.changes.take(at) {
                self.drain_bearer(at, out);
                self.bearer.replace_medium(at, direction, medium);
            }
            if self.reporter.as_ref().is_some_and(|reporter| reporter.due <= at) {
                self.drain_bearer(at, out);
                if let Some(reporter) = &mut self.reporter {
                    let reports = reporter.sample(at, &mut self.bearer);
                    reports.iter().for_each(|report| out.report(REPORTS, report));
                }
            }
            self.note_planned();
        }
    }

    #[inline(always)]
    fn drain_bearer(&mut self, now: Time, out: &mut impl Sink) {
        self.reached = now;
        while let Some((at, observation)) = self.bearer.poll_observation() {
            self.observed(at, &observation, out);
        }
        let mut listener = Listener { edge: self, out };
        AnyBearer::drain(&mut listener, now, Direction::Down);
        AnyBearer::drain(&mut listener, now, Direction::Up);
        if self.reporter.is_some() {
            self.pass_reports(now, out);
        }
    }

    #[inline(never)]
    fn pass_reports(&mut self, now: Time, out: &mut impl Sink) {
        let Some(reporter) = &mut self.reporter else { return };
        while let Some(report) = self.bearer.poll_report(now) {
            out.report(REPORTS, &reporter.numbered(report));
        }
    }

    #[inline(always)]
    fn on_event_down(&mut self, at: Time, event: LinkEvent, segment: &Segment, out: &mut impl Sink) {
        match event {
            LinkEvent::Departed => self.departed(at, segment, out),
            LinkEvent::Freed => self.freed(at, segment, out),
            LinkEvent::Delivered(_) => {
                self.statistics.on_delivered(segment);
                out.pass(RADIO, segment);
            }
            LinkEvent::Dropped(cause) => self.dropped(at, segment, cause, out),
        }
    }

    #[inline(always)]
    fn on_event_up(&mut self, at: Time, event: LinkEvent, segment: &Segment, out: &mut impl Sink) {
        match event {
            LinkEvent::Departed | LinkEvent::Freed => {}
            LinkEvent::Delivered(_) => self.handle_uplink(at, segment, out),
            LinkEvent::Dropped(_) => self.dropped_up(segment, out),
        }
    }

    #[inline]
    fn note_due(&mut self) {
        let (down, up) = (self.bearer.due(Direction::Down), self.bearer.due(Direction::Up));
        self.bearer_due = down.min(up).min(self.planned);
    }

    fn note_planned(&mut self) {
        self.planned =
            self.reporter.as_ref().map_or(Time::NEVER, |reporter| reporter.due).min(self.changes.due());
        self.note_due();
    }

    /// Processes a segment from the network: consults the regulator, then queues it.
    #[inline]
    fn handle_downlink(&mut self, now: Time, segment: &Segment, out: &mut impl Sink) {
        self.statistics.entered += 1;
        let flow = self.flows.open(now, segment.flow);
        let regulated = segment.is_tcp() && flow.is_regulated();
        if regulated || segment.has_data() {
            flow.on_data(segment);
            flow.statistics.edge_rtt.on_data(now, segment);
        }
        if regulated {
            self.regulate_data(now, *segment, out);
        } else {
            self.enqueue(now, segment, out);
        }
    }

    /// Passes a segment to the bearer and processes a refusal as a drop. Returns whether it was accepted.
    #[inline(always)]
    fn enqueue(&mut self, now: Time, segment: &Segment, out: &mut impl Sink) -> bool {
        match self.bearer.enqueue(now, Direction::Down, segment) {
            Ok(()) => true,
            Err(cause) => {
                self.dropped(now, segment, cause, out);
                false
            }
        }
    }

    fn dropped_up(&mut self, segment: &Segment, out: &mut impl Sink) {
        self.statistics.dropped_up += 1;
        out.discard(segment);
    }

    /// Processes a segment from a mobile.
    #[inline(always)]
    fn handle_uplink(&mut self, at: Time, segment: &Segment, out: &mut impl Sink) {
        self.statistics.on_delivered_up(segment);
        if self.flows.concerns_regulator(at, segment) {
            self.regulate_ack(at, segment, out);
        } else {
            self.pass_up(at, segment, out);
        }
    }

    /// Passes a segment on to the servers.
    #[inline(always)]
    fn pass_up(&mut self, at: Time, segment: &Segment, out: &mut impl Sink) {
        self.bearer.on_told(at, segment);
        out.pass(WIRED, segment);
    }
}

/// Receives the events of an edge's bearer and passes on the results.
struct Listener<'a, S> {
    edge: &'a mut Edge,
    out: &'a mut S,
}

impl<S: Sink> BearerListener for Listener<'_, S> {
    #[inline(always)]
    fn bearer(&mut self) -> &mut AnyBearer {
        &mut self.edge.bearer
    }

    #[inline(always)]
    fn on_event(&mut self, at: Time, direction: Direction, event: LinkEvent, segment: &Segment) {
        match direction {
            Direction::Down => self.edge.on_event_down(at, event, segment, self.out),
            Direction::Up => self.edge.on_event_up(at, event, segment, self.out),
        }
    }
}

impl Node for Edge {
    fn receive(&mut self, now: Time, port: Port, message: &Message, out: &mut Outbox) {
        if let Message::Segment(segment) = message {
            self.take(now, port, segment, out);
        }
    }

    fn wake(&mut self, now: Time, out: &mut Outbox) {
        self.run(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        Some(self.due()).filter(|&time| time != Time::NEVER)
    }
}
