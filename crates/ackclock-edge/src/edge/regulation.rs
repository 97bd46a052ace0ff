//! Calls the regulators of an edge and executes their output. Data in each direction has separate regulators.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use ackclock_core::{Copied, Ecn, Flags, FlowId, Segment, Sink, Time, Wakes};
use ackclock_link::{Bearer, Cause, Direction, Impairment, LinkView, Observation};

use super::Edge;
use crate::flow_table::FlowTable;
use crate::none;
use crate::regulators::RegulatorId;
use crate::{Output, Place, Regulator, RegulatorConfig, Verdict};

/// Regulators of the data in one direction, with their flows and deadlines.
pub(super) struct Regulation {
    pub(super) flows: FlowTable,
    /// Deadlines of the regulators, indexed by regulator number.
    pub(super) timers: Wakes,
    /// Number of slots of `timers`.
    timed: usize,
}

impl Regulation {
    pub(super) fn new(config: Arc<dyn RegulatorConfig>, most_flows: usize) -> Self {
        Self { flows: FlowTable::new(config, most_flows), timers: Wakes::default(), timed: 0 }
    }

    /// Returns the regulator of a flow, or `None` if the flow has no regulator.
    pub(super) fn of(&self, flow: FlowId) -> Option<&dyn Regulator> {
        self.flows.regulators.get(self.flows.get(flow)?.regulator()?)
    }

    #[inline]
    fn get_mut(&mut self, number: RegulatorId) -> Option<&mut (dyn Regulator + 'static)> {
        self.flows.regulators.get_mut(number)
    }

    /// Updates the deadline of a regulator. A removed regulator has no deadline.
    fn note_deadline(&mut self, number: RegulatorId) {
        let deadline = self.flows.regulators.get(number).and_then(|regulator| regulator.poll_timeout());
        self.set_deadline(number, deadline);
    }

    #[inline]
    fn set_deadline(&mut self, number: RegulatorId, deadline: Option<Time>) {
        while self.timed <= number.index() {
            self.timed = self.timers.add() + 1;
        }
        self.timers.set(number.index(), deadline);
    }

    /// Ends the regulation of a flow between two events. The regulator's output for other flows waits until the edge
    /// runs at `now`.
    pub(super) fn part(&mut self, now: Time, id: FlowId) {
        let Some(number) = self.flows.end(id) else { return };
        if let Some(regulator) = self.get_mut(number) {
            regulator.close(now, id);
        }
        let gone = self.flows.regulators.leave(number);
        self.set_deadline(number, Some(now).filter(|_| !gone));
    }
}

/// Regulators of the data in both directions.
pub(super) struct Regulations([Regulation; 2]);

impl Regulations {
    /// Creates regulators for downloads only; uploads stay unregulated.
    pub(super) fn of_downloads(config: Arc<dyn RegulatorConfig>, most_flows: usize) -> Self {
        Self([Regulation::new(config, most_flows), Regulation::new(Arc::new(none::None {}), 0)])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Regulation> {
        self.0.iter()
    }

    /// Time of the next deadline of a regulator.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.0[0].timers.due().min(self.0[1].timers.due())
    }
}

impl Index<Direction> for Regulations {
    type Output = Regulation;

    #[inline(always)]
    fn index(&self, direction: Direction) -> &Regulation {
        &self.0[direction as usize]
    }
}

impl IndexMut<Direction> for Regulations {
    #[inline(always)]
    fn index_mut(&mut self, direction: Direction) -> &mut Regulation {
        &mut self.0[direction as usize]
    }
}

impl Edge {
    /// Processes a segment of a regulated flow that comes from the data sender of this direction.
    pub(super) fn regulate_data(
        &mut self,
        now: Time,
        direction: Direction,
        mut segment: Segment,
        out: &mut impl Sink,
    ) {
        let mut verdict = Verdict::Forward;
        self.regulate(now, direction, segment.flow, out, |regulator, view| {
            verdict = regulator.on_data(now, &segment, view)
        });
        match verdict {
            Verdict::Forward => {}
            Verdict::Drop if self.passes_all => {}
            Verdict::ForwardKeep => self.keep(direction, &segment, out),
            Verdict::MarkCe => segment.ecn = Ecn::Ce,
            Verdict::Drop => {
                self.statistics.discarded[direction as usize] += 1;
                out.discard(&segment);
                return;
            }
        }
        if self.enqueue(now, direction, &segment, out) {
            self.regulate(now, direction, segment.flow, out, |regulator, view| {
                regulator.on_queued(now, &segment, view)
            });
        }
        self.close_if_over(now, direction, &segment, out);
        while let Some((surplus, number)) = self.regulations[direction].flows.give_up() {
            self.close(now, direction, surplus, number, out);
        }
    }

    /// Keeps a copy of the segment if the flow may have one more copy.
    fn keep(&mut self, direction: Direction, segment: &Segment, out: &mut impl Sink) {
        let flow = segment.flow;
        if self.copies.take(flow, self.regulations[direction].flows.regulators.user(flow)) {
            self.statistics.kept += 1;
            out.copied(segment, Copied::Kept);
            return;
        }
        let number = self.regulations[direction].flows.get(flow).and_then(|flow| flow.regulator());
        if let Some(regulator) = number.and_then(|number| self.regulations[direction].get_mut(number)) {
            regulator.on_copy_refused(segment);
        }
    }

    /// Called when the last byte of a segment has left the queue.
    pub(super) fn departed(
        &mut self,
        at: Time,
        direction: Direction,
        segment: &Segment,
        out: &mut impl Sink,
    ) {
        if !self.believes(direction, segment) {
            return;
        }
        self.regulate(at, direction, segment.flow, out, |regulator, view| {
            regulator.on_departed(at, segment, view);
            if view.is_idle() {
                regulator.on_idle(at, view);
            }
        });
    }

    /// Whether data is inside its connection's window, so that a regulator sees it.
    #[inline]
    fn believes(&self, direction: Direction, segment: &Segment) -> bool {
        self.regulations[direction].flows.get(segment.flow).is_none_or(|flow| flow.believes_data(segment))
    }

    /// Called when a segment that has left the queue no longer counts against the buffer.
    #[cold]
    pub(super) fn freed(&mut self, at: Time, direction: Direction, segment: &Segment, out: &mut impl Sink) {
        self.regulate(at, direction, segment.flow, out, |regulator, view| {
            regulator.on_freed(at, segment, view)
        });
    }

    /// Called when an observing bearer has a new estimate.
    #[cold]
    pub(super) fn observed(&mut self, at: Time, observation: &Observation, out: &mut impl Sink) {
        self.regulate(at, Direction::Down, observation.flow, out, |regulator, view| {
            regulator.on_observation(at, observation, view)
        });
    }

    /// Called when a segment was refused by the queue, or dropped later.
    #[cold]
    pub(super) fn dropped(
        &mut self,
        at: Time,
        direction: Direction,
        segment: &Segment,
        cause: Cause,
        out: &mut impl Sink,
    ) {
        self.statistics.on_dropped(direction, cause);
        out.discard(segment);
        if direction == Direction::Up && !self.regulates_up {
            return;
        }
        let lost = u64::from(cause != Cause::Filtered);
        self.regulations[direction].flows.open(at, segment.flow).statistics.dropped += lost;
        if !self.believes(direction, segment) {
            return;
        }
        self.regulate(at, direction, segment.flow, out, |regulator, view| {
            regulator.on_dropped(at, segment, cause, view);
            if cause == Cause::Aged && view.is_idle() {
                regulator.on_idle(at, view);
            }
        });
    }

    /// Called when a segment arrived with a wrong bit. No regulator knows: the receiver drops the segment.
    #[cold]
    pub(super) fn corrupt(&mut self, direction: Direction, segment: &Segment, out: &mut impl Sink) {
        self.statistics.on_corrupt(direction);
        out.discard(segment);
    }

    /// Called when the link has impaired a segment.
    #[cold]
    pub(super) fn impaired(
        &mut self,
        at: Time,
        direction: Direction,
        segment: &Segment,
        what: Impairment,
        out: &mut impl Sink,
    ) {
        self.statistics.on_impaired(direction, what);
        if what != Impairment::Duplicated {
            return;
        }
        out.copied(segment, Copied::Duplicated);
        if direction == Direction::Down || self.regulates_up {
            self.regulate(at, direction, segment.flow, out, |regulator, view| {
                regulator.on_queued(at, segment, view)
            });
        }
    }

    /// Lets the regulator decide about an ACK from the data receiver. A SYN or RST may have no ACK number (RFC 9293
    /// section 3.5.2). A SYN or RST without an ACK number passes, and an RST passes after all held segments.
    pub(super) fn regulate_ack(
        &mut self,
        at: Time,
        direction: Direction,
        segment: &Segment,
        out: &mut impl Sink,
    ) {
        if !segment.flags.contains(Flags::ACK) {
            if segment.flags.intersects(Flags::RST) {
                self.close_if_over(at, direction, segment, out);
            } else {
                self.regulate(at, direction, segment.flow, out, |regulator, view| {
                    regulator.on_syn(at, segment, view)
                });
            }
            return self.pass_ack(at, direction, segment, out);
        }
        self.regulate(at, direction, segment.flow, out, |regulator, view| {
            regulator.handle_ack(at, *segment, view)
        });
        self.close_if_over(at, direction, segment, out);
    }

    /// Calls the regulator of a flow, if the flow has one, and executes the regulator's output.
    pub(super) fn regulate(
        &mut self,
        now: Time,
        direction: Direction,
        id: FlowId,
        out: &mut impl Sink,
        call: impl FnOnce(&mut dyn Regulator, LinkView),
    ) {
        let Some(number) = self.regulations[direction].flows.open(now, id).regulator() else { return };
        let Some(regulator) = self.regulations[direction].flows.regulators.hear(number, id) else { return };
        call(regulator, self.bearer.view(now, direction, id));
        self.obey(now, direction, number, out);
        self.regulations[direction].note_deadline(number);
    }

    /// Called when the deadline of a regulator has passed.
    pub(super) fn expire(
        &mut self,
        now: Time,
        direction: Direction,
        number: RegulatorId,
        out: &mut impl Sink,
    ) {
        let heard = self.regulations[direction].flows.regulators.heard(number);
        if let Some(regulator) = self.regulations[direction].get_mut(number) {
            regulator.handle_timeout(now, self.bearer.view(now, direction, heard));
        }
        self.obey(now, direction, number, out);
        self.regulations[direction].note_deadline(number);
    }

    /// Executes the output of a regulator.
    fn obey(&mut self, now: Time, direction: Direction, number: RegulatorId, out: &mut impl Sink) {
        while let Some(output) =
            self.regulations[direction].get_mut(number).and_then(|regulator| regulator.poll_output(now))
        {
            match output {
                Output::ToSender(segment) => {
                    self.statistics.made[direction.other() as usize] += u64::from(segment.is_made());
                    self.pass_ack(now, direction, &segment, out);
                }
                Output::ToReceiver { segment, place } => {
                    self.send_data(now, direction, number, &segment, place, out)
                }
                Output::Discard(segment) => {
                    self.statistics.discarded[direction.other() as usize] += 1;
                    out.discard(&segment);
                }
                Output::Release(segment) => {
                    self.statistics.released += 1;
                    self.copies.release(
                        segment.flow,
                        self.regulations[direction].flows.regulators.user(segment.flow),
                    );
                    out.copied(&segment, Copied::Released);
                }
            }
        }
    }

    /// Queues a segment of the regulator for the data receiver, and reports the outcome to the regulator.
    #[cold]
    fn send_data(
        &mut self,
        now: Time,
        direction: Direction,
        number: RegulatorId,
        segment: &Segment,
        place: Place,
        out: &mut impl Sink,
    ) {
        // The time of a late event may be in the past, although the bearer has already run further.
        let now = now.max(self.reached);
        if segment.is_made() {
            self.statistics.made[direction as usize] += 1;
        } else {
            self.statistics.resent += 1;
            out.copied(segment, Copied::Sent);
        }
        let flow = self.regulations[direction].flows.open(now, segment.flow);
        if segment.has_data() {
            flow.statistics.edge_rtt.on_data(now, segment);
        }
        let taken = match place {
            Place::Back => self.bearer.enqueue(now, direction, segment),
            Place::Front => self.bearer.enqueue_front(now, direction, segment),
        };
        if let Err(cause) = taken {
            flow.statistics.dropped += 1;
            self.statistics.on_dropped(direction, cause);
            out.discard(segment);
        }
        let view = self.bearer.view(now, direction, segment.flow);
        if let Some(regulator) = self.regulations[direction].get_mut(number) {
            match taken {
                Ok(()) => regulator.on_queued(now, segment, view),
                Err(cause) => regulator.on_dropped(now, segment, cause, view),
            }
        }
        self.note_due();
    }

    /// Ends the regulators of a user's flows, which pass on all held segments, and starts new ones for regulators that
    /// need no handshake.
    pub(super) fn restart_regulators(&mut self, now: Time, user: u32, out: &mut impl Sink) {
        let direction = Direction::Down;
        let flows = self.regulations[direction].flows.regulated_of(user);
        for &(id, number) in &flows {
            self.release(now, direction, id, number, out);
        }
        for (id, _) in flows {
            self.regulations[direction].flows.rejoin(id);
        }
    }

    fn close_if_over(&mut self, now: Time, direction: Direction, segment: &Segment, out: &mut impl Sink) {
        if self.regulations[direction].flows.get(segment.flow).is_some_and(|flow| flow.ends_with(segment))
            && let Some(number) = self.regulations[direction].flows.end(segment.flow)
        {
            self.close(now, direction, segment.flow, number, out);
        }
    }

    /// Ends the regulation of a flow that has ended.
    fn close(
        &mut self,
        now: Time,
        direction: Direction,
        id: FlowId,
        number: RegulatorId,
        out: &mut impl Sink,
    ) {
        self.release(now, direction, id, number, out);
        self.bearer.forget(id);
    }

    /// Passes on the held segments of a flow, which leaves its regulator.
    fn release(
        &mut self,
        now: Time,
        direction: Direction,
        id: FlowId,
        number: RegulatorId,
        out: &mut impl Sink,
    ) {
        if let Some(regulator) = self.regulations[direction].get_mut(number) {
            regulator.close(now, id);
        }
        self.obey(now, direction, number, out);
        self.regulations[direction].flows.regulators.leave(number);
        self.regulations[direction].note_deadline(number);
    }
}
