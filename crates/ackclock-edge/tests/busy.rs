//! A regulator that uses every ability of a regulator, in any scope.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Segment, Span, Time};
use ackclock_edge::{FlowContext, Output, Place, Regulator, RegulatorConfig, Scope, Verdict};
use ackclock_link::{Cause, LinkView};

/// Acts by the number of its calls, so that it behaves equally in every world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy(pub(crate) Scope);

impl RegulatorConfig for Busy {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(BusyRegulator::default()))
    }

    fn scope(&self) -> Scope {
        self.0
    }
}

#[derive(Default)]
struct BusyRegulator {
    heard: u32,
    /// Held ACKs, each with the instant of its release.
    held: VecDeque<(Time, Segment)>,
    /// Kept copies of data, each with the instant of its release.
    kept: VecDeque<(Time, Segment)>,
    output: VecDeque<Output>,
}

impl BusyRegulator {
    /// Whether to act now; true once in about `times` calls.
    fn is_turn(&mut self, times: u32) -> bool {
        self.heard = self.heard.wrapping_add(1);
        // Scattered, so that alternating questions do not always get the same answer.
        (self.heard.wrapping_mul(0x9e37_79b9) >> 16).is_multiple_of(times)
    }

    /// Retransmits the oldest kept copy, of any flow, and generates an ACK for the same flow.
    fn send_again(&mut self, place: Place) {
        if let Some(&(_, segment)) = self.kept.front() {
            self.output.push_back(Output::ToReceiver { segment, place });
            let made = Segment::pure_ack(segment.flow, segment.ack, 40).made();
            self.output.push_back(Output::ToReceiver { segment: made, place: Place::Back });
        }
    }

    /// Releases the entries that `goes` selects, in order.
    fn give_back(&mut self, goes: impl Fn(&(Time, Segment)) -> bool) {
        let (going, staying): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.held).into_iter().partition(&goes);
        self.held = staying;
        self.output.extend(going.into_iter().map(|(_, ack)| Output::ToSender(ack)));
        let (going, staying): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.kept).into_iter().partition(&goes);
        self.kept = staying;
        self.output.extend(going.into_iter().map(|(_, copy)| Output::Release(copy)));
    }
}

impl Regulator for BusyRegulator {
    fn on_data(&mut self, now: Time, segment: &Segment, _: LinkView) -> Verdict {
        if self.is_turn(4) {
            let made = Segment::pure_ack(segment.flow, segment.seq, 40).made();
            self.output.push_back(Output::ToSender(made));
        }
        if !segment.has_data() {
            return Verdict::Forward;
        }
        if self.is_turn(11) {
            return Verdict::Drop;
        }
        if self.is_turn(2) {
            self.kept.push_back((now + Span::from_millis(200), *segment));
            return Verdict::ForwardKeep;
        }
        if self.is_turn(5) { Verdict::MarkCe } else { Verdict::Forward }
    }

    fn on_syn(&mut self, _: Time, _: &Segment, _: LinkView) {
        self.send_again(Place::Back);
    }

    fn on_dropped(&mut self, _: Time, _: &Segment, cause: Cause, _: LinkView) {
        if cause == Cause::Medium {
            self.send_again(Place::Front);
        }
    }

    fn handle_ack(&mut self, now: Time, ack: Segment, _: LinkView) {
        if self.is_turn(3) {
            self.send_again(Place::Front);
        }
        if self.is_turn(5) {
            self.output.push_back(Output::Discard(ack));
        } else {
            self.held.push_back((now + Span::from_millis(50), ack));
        }
    }

    fn handle_timeout(&mut self, now: Time, _: LinkView) {
        self.give_back(|(due, _)| *due <= now);
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.held.front().into_iter().chain(self.kept.front()).map(|(due, _)| *due).min()
    }

    fn close(&mut self, _: Time, flow: FlowId) {
        self.give_back(|(_, segment)| segment.flow == flow);
    }

    fn held(&self, flow: FlowId) -> usize {
        self.held.iter().filter(|(_, ack)| ack.flow == flow).count()
    }

    fn kept(&self, flow: FlowId) -> usize {
        self.kept.iter().filter(|(_, copy)| copy.flow == flow).count()
    }
}
