//! A Window Regulator: the state of one flow, and the rule by which the flow's ACKs advertise windows.

use std::collections::VecDeque;

use ackclock_core::{Flags, FlowId, Segment, Seq, Span, Time};
use ackclock_link::{Cause, LinkView, Observation};

use super::dequeued::{AckKind, Count};
use super::{Advertiser, tells_a_window};
use crate::{Allowance, Output, Regulator, Verdict};

/// Rule for the right edge that an ACK advertises, and for the time at which the ACK is sent.
pub(super) trait Law: Send {
    /// Whether the right edge depends on the packets in the queue.
    const FOLLOWS_QUEUE: bool = true;

    /// Right edge up to which the buffer has room, for an ACK that is sent now.
    fn edge(&self, advertiser: &Advertiser, ack: &Segment, _view: LinkView) -> Option<Seq> {
        advertiser.accounts.right_edge(ack.ack, 0)
    }

    /// Sends or holds an ACK that advertises a window.
    fn on_ack(&mut self, now: Time, flow: &mut Flow, ack: Segment, kind: AckKind, view: LinkView) {
        let edge = self.edge(&flow.advertiser, &ack, view);
        flow.send(now, ack, kind, edge);
    }

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

/// Longest time for which an ACK waits for room in the buffer.
const MOST_WAIT: Span = Span::from_secs(1);
/// Maximum number of waiting ACKs, which bounds the memory if a receiver acknowledges byte by byte.
const MOST_WAITING: usize = 4096;

/// The Window Regulator of one flow that follows the rule `L`.
///
/// A link layer may keep packets in the buffer that TCP has already acknowledged. If these packets leave no room for
/// the minimum window of an ACK, the ACK waits until the link layer frees packets, before the rule `L` sees the ACK.
pub(super) struct WindowRegulator<L> {
    law: L,
    flow: Flow,
    /// ACKs that wait for room, in order of arrival.
    waiting: VecDeque<Segment>,
    /// Arrival time of the first waiting ACK.
    waiting_since: Time,
    /// View of the link when the last ACK arrived.
    view: Option<LinkView>,
}

impl<L: Law> WindowRegulator<L> {
    /// Creates a regulator without a minimum goodput.
    pub(super) fn new(law: L, count: Count, min_window: u32, assumed_scale: Option<u8>) -> Self {
        let advertiser = Advertiser::new(count, min_window, assumed_scale);
        let flow = Flow { advertiser, output: VecDeque::new() };
        Self { law, flow, waiting: VecDeque::new(), waiting_since: Time::ZERO, view: None }
    }

    /// Adds a minimum goodput if `wanted`.
    pub(super) fn with_floor(mut self, wanted: bool) -> Self {
        self.flow.advertiser = self.flow.advertiser.with_floor(wanted);
        self
    }

    /// Whether the buffer has no room for the minimum window of an ACK.
    fn lacks_room(&self, ack: &Segment, view: LinkView) -> bool {
        let advertiser = &self.flow.advertiser;
        let edge = self.law.edge(advertiser, ack, view);
        edge.is_some_and(|edge| advertiser.lacks_room(ack, edge, view))
    }

    /// Passes on the waiting ACKs for which the buffer has room.
    fn admit(&mut self, now: Time, view: LinkView) {
        while let Some(&ack) = self.waiting.front()
            && !self.lacks_room(&ack, view)
        {
            self.admit_first(now, view);
        }
    }

    fn admit_first(&mut self, now: Time, view: LinkView) {
        if let Some(ack) = self.waiting.pop_front() {
            self.law.on_ack(now, &mut self.flow, ack, AckKind::Advance, view);
        }
    }

    /// Passes on all waiting ACKs.
    fn admit_all(&mut self, now: Time, view: LinkView) {
        while !self.waiting.is_empty() {
            self.admit_first(now, view);
        }
    }

    /// Latest time at which the waiting ACKs are passed on.
    fn last_wait(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then(|| self.waiting_since + MOST_WAIT)
    }
}

impl<L: Law> Regulator for WindowRegulator<L> {
    fn on_data(&mut self, now: Time, segment: &Segment, view: LinkView) -> Verdict {
        // A SYN starts a new connection. If a source retransmits acknowledged data, its timer expired while a held ACK
        // delayed the acknowledgement.
        let accounts = &self.flow.advertiser.accounts;
        let retransmitted = segment.has_data() && accounts.has_acknowledged(segment);
        if segment.flags.intersects(Flags::SYN) || retransmitted {
            self.admit_all(now, view);
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
        self.admit(now, view);
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
        self.admit(now, view);
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
        self.view = Some(view);
        if !tells_a_window(&ack) {
            self.admit_all(now, view);
            self.law.release_all(now, &mut self.flow);
            self.flow.output.push_back(Output::ToSender(ack));
            return;
        }
        let kind = self.flow.advertiser.accounts.on_ack(&ack, view);
        let may_wait = kind == AckKind::Advance && ack.is_pure_ack() && self.waiting.len() < MOST_WAITING;
        if may_wait && (!self.waiting.is_empty() || self.lacks_room(&ack, view)) {
            if self.waiting.is_empty() {
                self.waiting_since = now;
            }
            self.waiting.push_back(ack);
            return;
        }
        self.admit_all(now, view);
        self.law.on_ack(now, &mut self.flow, ack, kind, view);
    }

    fn handle_timeout(&mut self, now: Time, view: LinkView) {
        if self.last_wait().is_some_and(|deadline| deadline <= now) {
            self.admit_all(now, view);
        }
        if self.law.deadline().is_some_and(|deadline| deadline <= now) {
            self.law.on_timeout(now, &mut self.flow);
        }
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.flow.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.last_wait().into_iter().chain(self.law.deadline()).min()
    }

    fn close(&mut self, now: Time, _: FlowId) {
        if let Some(view) = self.view {
            self.admit_all(now, view);
        }
        self.law.release_all(now, &mut self.flow);
    }

    fn held(&self, _: FlowId) -> usize {
        self.waiting.len() + self.law.held()
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Rate;
    use ackclock_link::{Capacity, Load};

    use super::*;
    use crate::REGULATORS;
    use crate::window_regulator::bench::Bench;

    /// View of an empty queue for four packets whose link layer keeps `kept` transmitted packets.
    fn view(kept: u32) -> LinkView {
        let load = Load { packets: kept, bytes: u64::from(kept) * 1040 };
        LinkView {
            waiting: Load::NONE,
            in_transmission: Load::NONE,
            unacknowledged: load,
            occupied: load,
            capacity: Capacity::Packets(4),
            rate: Rate::ZERO,
        }
    }

    fn sent(regulator: &mut dyn Regulator) -> Vec<(u32, u16)> {
        let output = std::iter::from_fn(|| regulator.poll_output(Time::ZERO));
        let sent = output.map(|output| match output {
            Output::ToSender(ack) => (ack.ack.0 / 1000, ack.window / 1000),
            other => panic!("{other:?} is no ACK"),
        });
        sent.collect()
    }

    #[test]
    fn an_ack_waits_for_room_that_the_link_layer_keeps() {
        for name in ["wrs", "wrd", "wrb"] {
            let context = crate::FlowContext { flow: FlowId(0), user: 0 };
            let config = REGULATORS.resolve(&name.into()).expect("a name of the registry");
            let mut regulator = config.build(context).expect("every table builds a regulator");
            for number in 0..4 {
                regulator.on_data(Time::ZERO, &Bench::data(number), view(number));
                regulator.on_queued(Time::ZERO, &Bench::data(number), view(number));
                regulator.on_departed(Time::ZERO, &Bench::data(number), view(number + 1));
            }
            // Of the four places, packets that TCP has acknowledged take two.
            regulator.handle_ack(Time::ZERO, Bench::pure_ack(2), view(4));
            assert_eq!(sent(&mut *regulator), [(2, 2)], "{name}");
            regulator.handle_ack(Time::ZERO, Bench::pure_ack(4), view(4));
            regulator.on_freed(Time::ZERO, &Bench::data(0), view(3));
            assert_eq!((sent(&mut *regulator).len(), regulator.held(FlowId(0))), (0, 1), "{name}");
            assert_eq!(regulator.poll_timeout(), Some(Time::ZERO + MOST_WAIT), "{name}");
            regulator.on_freed(Time::ZERO, &Bench::data(1), view(2));
            assert_eq!(sent(&mut *regulator), [(4, 2)], "{name}");
            assert_eq!((regulator.held(FlowId(0)), regulator.poll_timeout()), (0, None), "{name}");
        }
    }
}
