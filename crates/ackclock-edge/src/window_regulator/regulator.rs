//! A Window Regulator: the state of one flow, and the rule by which the flow's ACKs advertise windows.

use std::collections::VecDeque;

use ackclock_core::{Flags, FlowId, Segment, Seq, Time};
use ackclock_link::{Cause, LinkView, Observation};

use super::dequeued::{AckKind, Count};
use super::{Advertiser, tells_a_window};
use crate::{Allowance, Output, Regulator, Verdict};

/// Rule for the right edge that an ACK advertises, and for the time at which the ACK is sent.
pub(super) trait Law: Send {
    /// Whether the right edge depends on the packets in the queue.
    const FOLLOWS_QUEUE: bool = true;

    /// Sends or holds an ACK that advertises a window.
    fn on_ack(&mut self, now: Time, flow: &mut Flow, ack: Segment, kind: AckKind, view: LinkView);

    /// Bytes that the sender may send in addition to its bytes in the queue.
    fn allowance(&self, _advertiser: &Advertiser) -> Option<Allowance> {
        None
    }

    /// Sends held ACKs after room in the queue has become free.
    fn on_room(&mut self, _now: Time, _flow: &mut Flow) {}

    /// Sends all held ACKs.
    fn release_all(&mut self, _now: Time, _flow: &mut Flow) {}

    /// Handles the expiry of the [deadline](Self::deadline) of held ACKs.
    fn on_timeout(&mut self, _now: Time, _flow: &mut Flow) {}

    /// Latest time at which the regulator sends a held ACK.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// Number of held ACKs.
    fn held(&self) -> usize {
        0
    }
}

/// Windows advertised to the source of one flow, and the ACKs that are ready to be sent.
pub(super) struct Flow {
    pub(super) advertiser: Advertiser,
    output: VecDeque<Output>,
}

impl Flow {
    /// Sends `ack` with a window that ends at `edge`.
    pub(super) fn send(&mut self, now: Time, mut ack: Segment, kind: AckKind, edge: Option<Seq>) {
        self.advertiser.write(now, &mut ack, kind, edge);
        self.output.push_back(Output::ToSender(ack));
    }
}

/// The Window Regulator of one flow that follows the rule `L`.
pub(super) struct WindowRegulator<L> {
    law: L,
    flow: Flow,
}

impl<L: Law> WindowRegulator<L> {
    /// Creates a regulator without a minimum goodput.
    pub(super) fn new(law: L, count: Count, min_window: u32, assumed_scale: Option<u8>) -> Self {
        let advertiser = Advertiser::new(count, min_window, assumed_scale);
        Self { law, flow: Flow { advertiser, output: VecDeque::new() } }
    }

    /// Adds a minimum goodput if `wanted`.
    pub(super) fn with_floor(mut self, wanted: bool) -> Self {
        self.flow.advertiser = self.flow.advertiser.with_floor(wanted);
        self
    }
}

impl<L: Law> Regulator for WindowRegulator<L> {
    fn on_data(&mut self, now: Time, segment: &Segment, view: LinkView) -> Verdict {
        // A SYN starts a new connection. If a source retransmits acknowledged data, its timer expired while a held ACK
        // delayed the acknowledgement.
        let accounts = &self.flow.advertiser.accounts;
        let retransmitted = segment.has_data() && accounts.has_acknowledged(segment);
        if segment.flags.intersects(Flags::SYN) || retransmitted {
            self.law.release_all(now, &mut self.flow);
        }
        self.flow.advertiser.on_data(now, segment, view);
        Verdict::Forward
    }

    fn on_queued(&mut self, _: Time, segment: &Segment, _: LinkView) {
        if L::FOLLOWS_QUEUE {
            self.flow.advertiser.accounts.on_queued(segment);
        }
    }

    fn on_dropped(&mut self, now: Time, segment: &Segment, cause: Cause, view: LinkView) {
        self.flow.advertiser.on_dropped(segment, cause, view);
        self.law.on_room(now, &mut self.flow);
    }

    fn on_departed(&mut self, now: Time, segment: &Segment, view: LinkView) {
        if L::FOLLOWS_QUEUE {
            self.flow.advertiser.accounts.on_left(segment, view);
            self.law.on_room(now, &mut self.flow);
        }
    }

    fn on_freed(&mut self, now: Time, _: &Segment, view: LinkView) {
        self.flow.advertiser.accounts.see(view);
        self.law.on_room(now, &mut self.flow);
    }

    fn on_idle(&mut self, now: Time, _: LinkView) {
        self.flow.advertiser.on_idle(now);
        self.law.on_room(now, &mut self.flow);
    }

    fn on_observation(&mut self, _: Time, observation: &Observation, _: LinkView) {
        self.flow.advertiser.on_observation(observation);
    }

    fn allowance(&mut self, _: Time, _: FlowId, view: LinkView) -> Option<Allowance> {
        self.flow.advertiser.accounts.see(view);
        self.law.allowance(&self.flow.advertiser)
    }

    fn handle_ack(&mut self, now: Time, ack: Segment, view: LinkView) {
        if tells_a_window(&ack) {
            let kind = self.flow.advertiser.accounts.on_ack(&ack, view);
            self.law.on_ack(now, &mut self.flow, ack, kind, view);
        } else {
            self.law.release_all(now, &mut self.flow);
            self.flow.output.push_back(Output::ToSender(ack));
        }
    }

    fn handle_timeout(&mut self, now: Time, _: LinkView) {
        if self.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.law.on_timeout(now, &mut self.flow);
        }
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.flow.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.law.deadline()
    }

    fn close(&mut self, now: Time, _: FlowId) {
        self.law.release_all(now, &mut self.flow);
    }

    fn held(&self, _: FlowId) -> usize {
        self.law.held()
    }
}
