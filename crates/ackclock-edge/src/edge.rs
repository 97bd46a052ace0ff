//! The edge: a bearer, and the regulators of the flows that cross this bearer.
//!
//! When data arrives, the bearer first runs up to `now`. For arriving data, the edge calls `on_data` and `enqueue`,
//! followed by `on_queued` or `on_dropped`. Every segment that enters the edge is delivered, dropped, discarded or
//! held. If a segment were forgotten, the packet pool of a live link would leak.

mod regulation;

use std::borrow::Cow;
use std::sync::Arc;

use ackclock_core::results::{ImpairedCounts, LinkCounts, RadioCounts};
use ackclock_core::{FlowId, Histogram, Message, Node, Outbox, Port, Segment, Sink, Time};
use ackclock_link::{AnyBearer, Bearer, BearerListener, Change, Direction, Left, LinkEvent, LinkView, Load};

use self::regulation::{Regulation, Regulations};
use crate::copies::Copies;
use crate::regulators::RegulatorId;
use crate::report::Reporter;
use crate::scheduled::{Changes, HandoverEvent, Handovers};
use crate::{AtHandover, EdgeStatistics, FlowStatistics, Regulator, RegulatorConfig};

/// Port of the edge towards the wired network.
pub const WIRED: Port = 0;
/// Port of the edge towards the mobiles.
pub const RADIO: Port = 1;
/// Port of the edge towards the listener of radio reports.
pub const REPORTS: Port = 2;

/// The edge of a radio network: a bearer, and the regulators of its flows.
pub struct Edge {
    bearer: AnyBearer,
    /// Generator of radio reports; `None` without a listener.
    reporter: Option<Box<Reporter>>,
    regulations: Regulations,
    /// Whether the edge also regulates data from the mobiles.
    regulates_up: bool,
    /// Whether the edge passes all data on, because its bearer only observes.
    passes_all: bool,
    copies: Copies,
    /// Time at which the bearer next has an event, changes, or has a report due.
    bearer_due: Time,
    /// Time up to which the bearer has run.
    reached: Time,
    /// Scheduled changes of the bearer.
    changes: Changes,
    /// Scheduled hand-overs.
    handovers: Handovers,
    /// Time at which the next change or periodic report is due.
    planned: Time,
    statistics: EdgeStatistics,
}

impl Edge {
    /// Creates an edge over `bearer` that regulates at most `most_flows` flows at a time.
    pub fn new(bearer: impl Into<AnyBearer>, regulator: Arc<dyn RegulatorConfig>, most_flows: usize) -> Self {
        let mut bearer = bearer.into();
        bearer.want_departures(Direction::Down, regulator.departures());
        Self {
            bearer,
            reporter: None,
            regulations: Regulations::of_downloads(regulator, most_flows),
            regulates_up: false,
            passes_all: false,
            copies: Copies::new(usize::MAX),
            bearer_due: Time::NEVER,
            reached: Time::ZERO,
            changes: Changes::default(),
            handovers: Handovers::default(),
            planned: Time::NEVER,
            statistics: EdgeStatistics::default(),
        }
    }

    /// Regulates data from the mobiles, in addition to data from the network, for at most `most_flows` flows at a time.
    /// Callers must call `regulate_uploads` before the edge's first segment.
    pub fn regulate_uploads(&mut self, regulator: Arc<dyn RegulatorConfig>, most_flows: usize) {
        self.bearer.want_departures(Direction::Up, regulator.departures());
        self.regulations[Direction::Up] = Regulation::new(regulator, most_flows);
        self.regulates_up = true;
    }

    /// Only observes a queue, whose data counts as departed under the condition `left_when`. All data passes, because
    /// regulators do not know the contents of an observed queue.
    pub(crate) fn observe(&mut self, left_when: Left) {
        self.passes_all = true;
        if let Some(observing) = self.bearer.observing() {
            observing.leave_when(left_when);
        }
    }

    /// Counters of the edge, over all flows.
    pub fn statistics(&self) -> &EdgeStatistics {
        &self.statistics
    }

    /// Counters of one flow; `None` if the edge has never seen the flow.
    pub fn flow_statistics(&self, flow: FlowId) -> Option<&FlowStatistics> {
        self.regulations[Direction::Down].flows.get(flow).map(|flow| &flow.statistics)
    }

    /// Mean capacity of the link in one direction from the start to `until`, bit/s. `until` must not decrease between
    /// calls. Returns `None` if the bearer does not know its capacity.
    pub fn capacity_bps(&mut self, until: Time, direction: Direction) -> Option<f64> {
        self.bearer.capacity_bps(until, direction)
    }

    /// The first traffic of a run starts at `now`: a link whose capacity is unknown before its first packet counts no
    /// capacity until then.
    pub fn start_capacity(&mut self, now: Time, direction: Direction) {
        self.bearer.start_capacity(now, direction);
    }

    /// Counters of the link in one direction up to `until`. The edge must have run up to `until`.
    pub fn link_counts(&mut self, until: Time, direction: Direction) -> LinkCounts {
        // Computing the capacity runs the link up to `until`, so that queueing delays are complete.
        let capacity_bps = self.capacity_bps(until, direction);
        let waits = self.waits(direction).into_owned();
        let radio = self.bearer.radio(direction, None).map(Box::new);
        LinkCounts { capacity_bps, waits, radio, ..self.statistics.of(direction) }
    }

    /// Counters of the radio network in one direction for the user with the number `user`, as of the latest event;
    /// `None` if the bearer does not tell its users apart.
    pub fn radio_of(&self, direction: Direction, user: u32) -> Option<RadioCounts> {
        self.bearer.radio(direction, Some(user))
    }

    /// Queueing delays of the packets of a direction until their transmission starts, as of the latest event.
    pub fn waits(&self, direction: Direction) -> Cow<'_, Histogram> {
        self.bearer.waits(direction)
    }

    /// State of the queue that serves `flow`, as of the latest event.
    pub fn view(&mut self, now: Time, flow: FlowId) -> LinkView {
        self.bearer.view(now, Direction::Down, flow)
    }

    /// Packets and bytes in all queues of a direction at `now`. The edge must have run up to `now`.
    pub fn waiting(&mut self, now: Time, direction: Direction) -> Load {
        self.bearer.waiting(now, direction)
    }

    /// Link-layer state of one direction, with one value per name of [`EdgeConfig::gauges`](crate::EdgeConfig::gauges).
    pub fn gauges(&self, direction: Direction) -> Vec<f64> {
        self.bearer.gauges(direction)
    }

    /// Sets the user of a flow for cells, per-user queues and per-user regulators. Callers must call `assign` before
    /// the flow's first segment.
    pub fn assign(&mut self, flow: FlowId, user: u32) {
        self.bearer.assign(flow, user);
        self.regulations[Direction::Down].flows.regulators.assign(flow, user);
        if self.regulates_up {
            self.regulations[Direction::Up].flows.regulators.assign(flow, user);
        }
        if let Some(reporter) = &mut self.reporter {
            reporter.assign(flow, user);
        }
    }

    /// Sets the class of service of a flow, after [`assign`](Self::assign). The class without a name has number 0.
    pub fn classify(&mut self, flow: FlowId, class: u8) {
        self.bearer.classify(flow, class);
        for direction in Direction::BOTH {
            self.regulations[direction].flows.regulators.classify(flow, class);
        }
    }

    /// Sets the number of classes of service, each with separate queues.
    pub(crate) fn serve_classes(&mut self, classes: u32) {
        for direction in Direction::BOTH {
            self.regulations[direction].flows.regulators.classes = classes;
        }
    }

    /// Sets the direction of a flow's data, before the flow's first segment. The flow gets no regulator for data of the
    /// opposite direction, unless the regulator of downloads also acts on uploads. Without a call of this method, a
    /// flow has regulators for both directions.
    pub fn expect_data(&mut self, flow: FlowId, direction: Direction) {
        match direction {
            Direction::Up => self.regulations[Direction::Down].flows.regulators.leave_upload_alone(flow),
            Direction::Down if self.regulates_up => {
                self.regulations[Direction::Up].flows.regulators.leave_alone(flow);
            }
            Direction::Down => {}
        }
    }

    /// Hides the headers of a flow's transport from regulators, before the flow's first segment. Only regulators that
    /// need no headers act on the flow.
    pub fn hide_headers(&mut self, flow: FlowId) {
        for direction in Direction::BOTH {
            self.regulations[direction].flows.regulators.hide_headers(flow);
        }
    }

    /// Removes a flow and its state, so that its number can be reused. No segment of the flow may be in the bearer or
    /// held. If the flow's regulator serves more flows, the regulator's remaining output is handled at `now`.
    pub fn forget(&mut self, now: Time, flow: FlowId) {
        for direction in Direction::BOTH {
            self.regulations[direction].part(now, flow);
            self.regulations[direction].flows.forget(flow);
        }
        self.bearer.forget(flow);
        if let Some(reporter) = &mut self.reporter {
            reporter.forget(flow);
        }
    }

    /// Ends the edge and frees all segments inside the edge.
    pub fn let_go(&mut self) {
        self.bearer.let_go();
    }

    /// Changes a direction of the bearer at `time`, or at once if `time` has passed.
    pub fn change(&mut self, time: Time, direction: Direction, change: Change) {
        self.changes.add(time, direction, change);
        self.note_planned();
    }

    /// Counts the impaired segments of these directions, even if there are none.
    pub(crate) fn count_impaired(&mut self, directions: [bool; 2]) {
        self.statistics.impaired = directions.map(|is_impaired| is_impaired.then(ImpairedCounts::default));
    }

    /// Counts the segments that the queues of these directions drop at an age limit, even if there are none.
    pub(crate) fn count_aged(&mut self, directions: [bool; 2]) {
        self.statistics.aged = directions.map(|is_limited| is_limited.then_some(0));
    }

    /// Schedules these changes of the bearer.
    pub(crate) fn expect(&mut self, changes: Changes) {
        self.changes = changes;
        self.note_planned();
    }

    /// Schedules these hand-overs.
    pub(crate) fn expect_handovers(&mut self, handovers: Handovers) {
        self.handovers = handovers;
        self.note_planned();
    }

    /// Sends the reports of this reporter at the port [`REPORTS`].
    pub(crate) fn report_by(&mut self, reporter: Reporter) {
        self.bearer.want_reports();
        self.reporter = Some(Box::new(reporter));
        self.note_planned();
    }

    /// Number of ACKs that regulators hold for `flow`.
    pub fn held(&self, flow: FlowId) -> usize {
        self.regulators_of(flow).map(|regulator| regulator.held(flow)).sum()
    }

    /// Limits the segment copies that regulators keep. Callers must call `keep_at_most` before the edge's first
    /// segment. A flow gets one more copy while the copies of the flow, of its user and of all users add up to less
    /// than `most`. By default, the number of segment copies is unlimited.
    pub fn keep_at_most(&mut self, most: usize) {
        self.copies = Copies::new(most);
    }

    /// Number of segment copies kept for all flows.
    pub fn copies(&self) -> usize {
        self.copies.all()
    }

    /// Number of segments of `flow` of which a regulator keeps a copy.
    pub fn kept(&self, flow: FlowId) -> usize {
        self.regulators_of(flow).map(|regulator| regulator.kept(flow)).sum()
    }

    fn regulators_of(&self, flow: FlowId) -> impl Iterator<Item = &dyn Regulator> {
        self.regulations.iter().filter_map(move |regulation| regulation.of(flow))
    }

    /// Processes a segment that arrives at `port` of the edge.
    #[inline(always)]
    pub fn take(&mut self, now: Time, port: Port, segment: &Segment, out: &mut impl Sink) {
        if self.bearer_due <= now {
            self.catch_up(now, out);
        }
        if port == WIRED {
            self.statistics.entered += 1;
            self.handle_data(now, Direction::Down, segment, out);
        } else if self.regulates_up {
            self.handle_data(now, Direction::Up, segment, out);
        } else if let Err(cause) = self.bearer.enqueue(now, Direction::Up, segment) {
            self.dropped(now, Direction::Up, segment, cause, out);
        }
        self.note_due();
        // A bearer may report events late, with an instant in the past, but the edge's time never goes back.
        self.bearer_due = self.bearer_due.max(now);
    }

    /// Processes all events that are due at `now`.
    #[inline(always)]
    pub fn run(&mut self, now: Time, out: &mut impl Sink) {
        if self.bearer_due <= now {
            self.drain(now, out);
        }
        self.expire_due(now, Direction::Down, out);
        if self.regulates_up {
            self.expire_due(now, Direction::Up, out);
        }
    }

    /// Calls the regulators of one direction whose deadlines have passed.
    #[inline(always)]
    fn expire_due(&mut self, now: Time, direction: Direction, out: &mut impl Sink) {
        while let Some((deadline, slot)) =
            self.regulations[direction].timers.first().filter(|&(deadline, _)| deadline <= now)
        {
            self.expire(now, direction, RegulatorId::at(slot), out);
            // Without a check for progress, a regulator that does not move its deadline would be called for ever.
            let timers = &mut self.regulations[direction].timers;
            if timers.deadline(slot).is_some_and(|next| next <= deadline) {
                timers.set(slot, None);
            }
        }
    }

    /// Time at which the edge next has an event due; [`Time::NEVER`] without one.
    #[inline]
    pub fn due(&self) -> Time {
        self.regulations.due().min(self.bearer_due)
    }

    /// Processes all events of the bearer up to `now`, and all changes of the bearer that are due.
    #[inline(always)]
    fn drain(&mut self, now: Time, out: &mut impl Sink) {
        if self.planned <= now {
            self.do_planned(now, out);
        }
        self.drain_bearer(now, out);
        self.note_due();
    }

    /// Calls [`drain`](Self::drain) before an arrival. `catch_up` is not inlined, because the bearer rarely has events
    /// left before an arrival.
    #[cold]
    fn catch_up(&mut self, now: Time, out: &mut impl Sink) {
        self.drain(now, out);
    }

    /// Applies the due changes of the bearer, then sends the due reports.
    #[cold]
    fn do_planned(&mut self, now: Time, out: &mut impl Sink) {
        while self.planned <= now {
            let at = self.planned;
            while let Some((at, direction, change)) = self.changes.take(at) {
                self.drain_bearer(at, out);
                self.bearer.change(at, direction, change);
            }
            while let Some(event) = self.handovers.take(at) {
                self.drain_bearer(at, out);
                self.on_handover(at, event, out);
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

    /// Begins or ends a hand-over, and reports the rate of the user.
    fn on_handover(&mut self, at: Time, event: HandoverEvent, out: &mut impl Sink) {
        let user = match event {
            HandoverEvent::Begins(handover, regulator) => {
                self.bearer.change(at, Direction::Down, Change::Handover(handover));
                self.drain_bearer(at, out);
                if regulator == AtHandover::Restarts {
                    self.restart_regulators(at, handover.user, out);
                }
                handover.user
            }
            HandoverEvent::Ends(user) => user,
        };
        if let Some(reporter) = &mut self.reporter {
            reporter.change(at, user, &mut self.bearer).iter().for_each(|report| out.report(REPORTS, report));
        }
    }

    #[inline(always)]
    fn drain_bearer(&mut self, now: Time, out: &mut impl Sink) {
        self.reached = now;
        while let Some((at, observation)) =
            self.bearer.observing().and_then(|bearer| bearer.poll_observation())
        {
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
            LinkEvent::Departed => self.departed(at, Direction::Down, segment, out),
            LinkEvent::Freed => self.freed(at, Direction::Down, segment, out),
            LinkEvent::Delivered(_) => {
                self.statistics.on_delivered(segment);
                if self.regulates_up {
                    self.handle_ack(at, Direction::Up, segment, out);
                } else {
                    out.pass(RADIO, segment);
                }
            }
            LinkEvent::Dropped(cause) => self.dropped(at, Direction::Down, segment, cause, out),
            LinkEvent::Corrupt => self.corrupt(Direction::Down, segment, out),
            LinkEvent::Impaired(what) => self.impaired(at, Direction::Down, segment, what, out),
        }
    }

    #[inline(always)]
    fn on_event_up(&mut self, at: Time, event: LinkEvent, segment: &Segment, out: &mut impl Sink) {
        match event {
            LinkEvent::Delivered(_) => {
                self.statistics.on_delivered_up(segment);
                self.handle_ack(at, Direction::Down, segment, out);
            }
            LinkEvent::Dropped(cause) => self.dropped(at, Direction::Up, segment, cause, out),
            LinkEvent::Corrupt => self.corrupt(Direction::Up, segment, out),
            LinkEvent::Impaired(what) => self.impaired(at, Direction::Up, segment, what, out),
            LinkEvent::Departed if self.regulates_up => self.departed(at, Direction::Up, segment, out),
            LinkEvent::Freed if self.regulates_up => self.freed(at, Direction::Up, segment, out),
            LinkEvent::Departed | LinkEvent::Freed => {}
        }
    }

    #[inline]
    fn note_due(&mut self) {
        let (down, up) = (self.bearer.due(Direction::Down), self.bearer.due(Direction::Up));
        self.bearer_due = down.min(up).min(self.planned);
    }

    fn note_planned(&mut self) {
        let report = self.reporter.as_ref().map_or(Time::NEVER, |reporter| reporter.due);
        self.planned = report.min(self.changes.due()).min(self.handovers.due());
        self.note_due();
    }

    /// Processes a segment before the queue of its direction: calls the regulator of that direction's data, then queues
    /// the segment.
    #[inline]
    fn handle_data(&mut self, now: Time, direction: Direction, segment: &Segment, out: &mut impl Sink) {
        let flow = self.regulations[direction].flows.open(now, segment.flow);
        let mut regulated = segment.is_tcp() && flow.is_regulated();
        if regulated || segment.has_data() {
            regulated &= flow.on_data(segment);
            flow.statistics.edge_rtt.on_data(now, segment);
        }
        if regulated {
            self.regulate_data(now, direction, *segment, out);
        } else {
            self.enqueue(now, direction, segment, out);
        }
    }

    /// Passes a segment to the bearer. A refused segment counts as dropped. Returns whether the segment was accepted.
    #[inline(always)]
    fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment, out: &mut impl Sink) -> bool {
        match self.bearer.enqueue(now, direction, segment) {
            Ok(()) => true,
            Err(cause) => {
                self.dropped(now, direction, segment, cause, out);
                false
            }
        }
    }

    /// Processes a segment that has crossed the radio in the direction of ACKs. `direction` is the direction of the
    /// data that the segment may acknowledge.
    #[inline(always)]
    fn handle_ack(&mut self, at: Time, direction: Direction, segment: &Segment, out: &mut impl Sink) {
        if self.regulations[direction].flows.concerns_regulator(at, segment) {
            self.regulate_ack(at, direction, segment, out);
        } else {
            self.pass_ack(at, direction, segment, out);
        }
    }

    /// Passes a segment on to the end that sends data in this direction.
    #[inline(always)]
    fn pass_ack(&mut self, at: Time, direction: Direction, segment: &Segment, out: &mut impl Sink) {
        match direction {
            Direction::Down => {
                if let Some(observing) = self.bearer.observing() {
                    observing.on_told(at, segment);
                }
                out.pass(WIRED, segment);
            }
            Direction::Up => out.pass(RADIO, segment),
        }
    }
}

/// Receives the events of an edge's bearer and passes the results on.
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
