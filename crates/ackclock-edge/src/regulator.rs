//! The regulator: what an edge does with the ACKs and the data of its flows.

use std::fmt;

use ackclock_core::{FlowId, Segment, Time};
use ackclock_link::{Cause, Departures, Left, LinkView, Observation, Side};

use crate::Scope;

/// Decides when and with which fields ACKs travel on; may drop, mark, keep and send again data, and make segments of its own.
///
/// Whose flows it serves is its [`Scope`]; what is said here of the flow holds of each of them. Every call carries a
/// [`LinkView`] of the flow's data queue at that instant. What it wants to send comes out of
/// [`poll_output`](Self::poll_output), which the edge drains after every call, and may be of any of its flows.
pub trait Regulator: Send {
    /// A data segment arrives from the network and has not entered the queue yet.
    fn on_data(&mut self, _now: Time, _segment: &Segment, _view: LinkView) -> Verdict {
        Verdict::Forward
    }

    /// The mobile asks for a connection: a SYN without an ACK, which then passes.
    fn on_syn(&mut self, _now: Time, _segment: &Segment, _view: LinkView) {}

    /// A segment entered the queue: one that came from the network, or that the regulator has sent to the mobile.
    fn on_queued(&mut self, _now: Time, _segment: &Segment, _view: LinkView) {}

    /// The copy that [`Verdict::ForwardKeep`] asked for is not kept: others use the room. It is not to be released.
    fn on_copy_refused(&mut self, _segment: &Segment) {}

    /// It was refused, or dropped later. One that answers a refusal at once by sending again is refused for ever.
    fn on_dropped(&mut self, _now: Time, _segment: &Segment, _cause: Cause, _view: LinkView) {}

    /// Its last byte left the queue for the radio. The next segment is in transmission already.
    fn on_departed(&mut self, _now: Time, _segment: &Segment, _view: LinkView) {}

    /// It no longer counts against the buffer. Told only of bearers that keep a segment until the far end of the radio has
    /// acknowledged it, of one that departed or was given up before; with others it is freed when it departs.
    fn on_freed(&mut self, _now: Time, _segment: &Segment, _view: LinkView) {}

    /// Nothing is waiting and nothing is in transmission.
    fn on_idle(&mut self, _now: Time, _view: LinkView) {}

    /// A bearer that only observes has learnt something of a flow, before it tells which of its data has left the queue.
    fn on_observation(&mut self, _now: Time, _observation: &Observation, _view: LinkView) {}

    /// A TCP segment with an ACK arrives from the mobile: pure, or with data, SYN or FIN of its own.
    fn handle_ack(&mut self, now: Time, ack: Segment, view: LinkView);

    /// The deadline named by [`poll_timeout`](Self::poll_timeout) has come. Early and repeated calls change nothing. The queue
    /// is that of the flow of which the regulator heard last.
    fn handle_timeout(&mut self, _now: Time, _view: LinkView) {}

    /// What to do next.
    fn poll_output(&mut self, now: Time) -> Option<Output>;

    /// The next deadline.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// The flow ends, or there is no place for it any more: everything of it that is held comes out of
    /// [`poll_output`](Self::poll_output), and what is known of it may be forgotten. After its last flow a regulator goes.
    fn close(&mut self, _now: Time, _flow: FlowId) {}

    /// Segments of the flow that are held, for the law of conservation.
    fn held(&self, _flow: FlowId) -> usize {
        0
    }

    /// Segments of the flow of which a copy is kept, for the same law.
    fn kept(&self, _flow: FlowId) -> usize {
        0
    }
}

/// What to do with a data segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Pass it to the queue.
    Forward,
    /// Pass it to the queue; the regulator keeps a copy, of which it says [`Output::Release`] in the end.
    ForwardKeep,
    /// Discard it.
    Drop,
    /// Mark congestion experienced and pass it to the queue (RFC 3168).
    MarkCe,
}

/// What a regulator does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a segment to the TCP sender: one that came in, or one that was [made](Segment::made).
    ToSender(Segment),
    /// Send a segment to the mobile, through the queue: once more one of which a copy is kept, and stays kept, or one that was
    /// [made](Segment::made).
    ToReceiver {
        /// The segment.
        segment: Segment,
        /// Where in the queue it is put.
        place: Place,
    },
    /// A segment that came in is not passed on.
    Discard(Segment),
    /// A copy is kept no more.
    Release(Segment),
}

/// Where in a queue a segment is put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Behind all others.
    Back,
    /// Before all others of its flow.
    Front,
}

/// What a regulator is told when its flow, or the first of its flows, is first seen.
#[derive(Clone, Copy, Debug)]
pub struct FlowContext {
    /// The flow.
    pub flow: FlowId,
    /// Its user: where packets are real one address of a mobile, and of IPv6 the 64 bits of its network.
    pub user: u32,
}

/// The table of a regulator in a scenario file.
pub trait RegulatorConfig: fmt::Debug + Send + Sync {
    /// Builds a regulator; `None` leaves flows alone.
    fn build(&self, context: FlowContext) -> Option<Box<dyn Regulator>>;

    /// Whose flows one of its regulators serves.
    fn scope(&self) -> Scope {
        Scope::Flow
    }

    /// Whether its regulators act on uploads too; those of others are left alone.
    fn regulates_uploads(&self) -> bool {
        false
    }

    /// Whether its regulators act on departures.
    fn departures(&self) -> Departures {
        Departures::Watched
    }

    /// Whether it works where the bearer only observes a queue, from that side of it, and when data is to count as having left the queue.
    ///
    /// # Errors
    /// Why it does not.
    fn observes(&self, _side: Side) -> Result<Left, &'static str> {
        Err("it acts on the queue itself, which such a bearer does not have")
    }
}
