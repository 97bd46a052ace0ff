//! Calls the regulators of an edge and does what they want.

use ackclock_core::{Copied, Ecn, Flags, FlowId, Segment, Sink, Time};
use ackclock_link::{Bearer, Cause, Direction, LinkView, Observation};

use super::Edge;
use crate::regulators::RegulatorId;
use crate::{Output, Place, Regulator, Verdict};

impl Edge {
    /// A segment of a regulated flow comes from the network.
    pub(super) fn regulate_data(&mut self, now: Time, mut segment: Segment, out: &mut impl Sink) {
        let mut verdict = Verdict::Forward;
        self.regulate(now, segment.flow, out, |regulator, view| {
            verdict = regulator.on_data(now, &segment, view)
        });
        match verdict {
            Verdict::Forward => {}
            Verdict::ForwardKeep => self.keep(&segment, out),
            Verdict::MarkCe => segment.ecn = Ecn::Ce,
            Verdict::Drop => {
                self.statistics.discarded[Direction::Down as usize] += 1;
                out.discard(&segment);
                return;
            }
        }
        if self.enqueue(now, &segment, out) {
            self.regulate(now, segment.flow, out, |regulator, view| regulator.on_queued(now, &segment, view));
        }
        self.close_if_over(now, &segment, out);
        while let Some((surplus, number)) = self.flows.give_up() {
            self.close(now, surplus, number, out);
        }
    }

    /// Keeps a copy where there is room for one more of its flow.
    fn keep(&mut self, segment: &Segment, out: &mut impl Sink) {
        let flow = segment.flow;
        if self.copies.take(flow, self.flows.regulators.user(flow)) {
            self.statistics.kept += 1;
            out.copied(segment, Copied::Kept);
            return;
        }
        let number = self.flows.get(flow).and_then(|flow| flow.regulator());
        if let Some(regulator) = number.and_then(|number| self.flows.regulators.get_mut(number)) {
            regulator.on_copy_refused(segment);
        }
    }

    /// The last byte of a segment has left the queue.
    pub(super) fn departed(&mut self, at: Time, segment: &Segment, out: &mut impl Sink) {
        self.regulate(at, segment.flow, out, |regulator, view| {
            regulator.on_departed(at, segment, view);
            if view.is_idle() {
                regulator.on_idle(at, view);
            }
        });
    }

    /// The buffer keeps a segment no more that had left the queue before.
    #[cold]
    pub(super) fn freed(&mut self, at: Time, segment: &Segment, out: &mut impl Sink) {
        self.regulate(at, segment.flow, out, |regulator, view| regulator.on_freed(at, segment, view));
    }

    /// A bearer that only observes has learnt something.
    #[cold]
    pub(super) fn observed(&mut self, at: Time, observation: &Observation, out: &mut impl Sink) {
        self.regulate(at, observation.flow, out, |regulator, view| {
            regulator.on_observation(at, observation, view)
        });
    }

    /// A segment was refused, or lost later.
    #[cold]
    pub(super) fn dropped(&mut self, at: Time, segment: &Segment, cause: Cause, out: &mut impl Sink) {
        self.statistics.dropped += 1;
        out.discard(segment);
        self.flows.open(at, segment.flow).statistics.dropped += 1;
        self.regulate(at, segment.flow, out, |regulator, view| {
            regulator.on_dropped(at, segment, cause, view)
        });
    }

    /// An ACK from a mobile is its regulator's business. A SYN and a reset may come without one (RFC 9293 section 3.5.2): they
    /// pass, a reset behind what is held.
    pub(super) fn regulate_ack(&mut self, at: Time, segment: &Segment, out: &mut impl Sink) {
        if !segment.flags.contains(Flags::ACK) {
            if segment.flags.intersects(Flags::RST) {
                self.close_if_over(at, segment, out);
            } else {
                self.regulate(at, segment.flow, out, |regulator, view| regulator.on_syn(at, segment, view));
            }
            return self.pass_up(at, segment, out);
        }
        self.regulate(at, segment.flow, out, |regulator, view| regulator.handle_ack(at, *segment, view));
        self.close_if_over(at, segment, out);
    }

    /// Calls the regulator of a flow, if it has one, and does what it wants.
    pub(super) fn regulate(
        &mut self,
        now: Time,
        id: FlowId,
        out: &mut impl Sink,
        call: impl FnOnce(&mut dyn Regulator, LinkView),
    ) {
        let Some(number) = self.flows.open(now, id).regulator() else { return };
        let Some(regulator) = self.flows.regulators.hear(number, id) else { return };
        call(regulator, self.bearer.view(now, Direction::Down, id));
        self.obey(now, number, out);
        self.note_deadline(number);
    }

    /// The deadline of a regulator has come.
    pub(super) fn expire(&mut self, now: Time, number: RegulatorId, out: &mut impl Sink) {
        let heard = self.flows.regulators.heard(number);
        if let Some(regulator) = self.flows.regulators.get_mut(number) {
            regulator.handle_timeout(now, self.bearer.view(now, Direction::Down, heard));
        }
        self.obey(now, number, out);
        self.note_deadline(number);
    }

    /// Does what a regulator wants.
    fn obey(&mut self, now: Time, number: RegulatorId, out: &mut impl Sink) {
        while let Some(output) =
            self.flows.regulators.get_mut(number).and_then(|regulator| regulator.poll_output(now))
        {
            match output {
                Output::ToSender(segment) => {
                    self.statistics.made[Direction::Up as usize] += u64::from(segment.is_made());
                    self.pass_up(now, &segment, out);
                }
                Output::ToReceiver { segment, place } => self.send_down(now, number, &segment, place, out),
                Output::Discard(segment) => {
                    self.statistics.discarded[Direction::Up as usize] += 1;
                    out.discard(&segment);
                }
                Output::Release(segment) => {
                    self.statistics.released += 1;
                    self.copies.release(segment.flow, self.flows.regulators.user(segment.flow));
                    out.copied(&segment, Copied::Released);
                }
            }
        }
    }

    /// Puts a segment of the regulator's own into the queue, and tells it what becomes of it.
    #[cold]
    fn send_down(
        &mut self,
        now: Time,
        number: RegulatorId,
        segment: &Segment,
        place: Place,
        out: &mut impl Sink,
    ) {
        // What is told late has happened before: the bearer is further.
        let now = now.max(self.reached);
        if segment.is_made() {
            self.statistics.made[Direction::Down as usize] += 1;
        } else {
            self.statistics.resent += 1;
            out.copied(segment, Copied::Sent);
        }
        let flow = self.flows.open(now, segment.flow);
        if segment.has_data() {
            flow.statistics.edge_rtt.on_data(now, segment);
        }
        let taken = match place {
            Place::Back => self.bearer.enqueue(now, Direction::Down, segment),
            Place::Front => self.bearer.enqueue_front(now, Direction::Down, segment),
        };
        if taken.is_err() {
            flow.statistics.dropped += 1;
            self.statistics.dropped += 1;
            out.discard(segment);
        }
        let view = self.bearer.view(now, Direction::Down, segment.flow);
        if let Some(regulator) = self.flows.regulators.get_mut(number) {
            match taken {
                Ok(()) => regulator.on_queued(now, segment, view),
                Err(cause) => regulator.on_dropped(now, segment, cause, view),
            }
        }
        self.note_due();
    }

    /// Expects the next deadline of a regulator, or none of one that has gone.
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

    fn close_if_over(&mut self, now: Time, segment: &Segment, out: &mut impl Sink) {
        if self.flows.get(segment.flow).is_some_and(|flow| flow.ends_with(segment))
            && let Some(number) = self.flows.end(segment.flow)
        {
            self.close(now, segment.flow, number, out);
        }
    }

    /// What was held of a flow that has ended goes on its way.
    fn close(&mut self, now: Time, id: FlowId, number: RegulatorId, out: &mut impl Sink) {
        if let Some(regulator) = self.flows.regulators.get_mut(number) {
            regulator.close(now, id);
        }
        self.obey(now, number, out);
        self.flows.regulators.leave(number);
        self.note_deadline(number);
        self.bearer.forget(id);
    }

    /// Takes a flow from its regulator between two events. What that then has to give back of its other flows waits until
    /// the edge is run at `now`.
    pub(super) fn part(&mut self, now: Time, id: FlowId) {
        let Some(number) = self.flows.end(id) else { return };
        if let Some(regulator) = self.flows.regulators.get_mut(number) {
            regulator.close(now, id);
        }
        let gone = self.flows.regulators.leave(number);
        self.set_deadline(number, Some(now).filter(|_| !gone));
    }
}
