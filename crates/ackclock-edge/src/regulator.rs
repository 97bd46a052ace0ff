//! The [`Regulator`] trait: acts on the ACKs and the data of flows that cross an edge.

use std::fmt;

use ackclock_core::{FlowId, Segment, Time};
use ackclock_link::{Base, Cause, Departures, Left, LinkView, Observation, Side};

use crate::Scope;

/// Delays or rewrites ACKs; may drop, mark, keep and retransmit data, and generate segments.
///
/// Its [`Scope`] determines which flows it serves: one, those of a user, or all. Every call carries a [`LinkView`] of
/// the flow's data queue at that instant. The edge drains [`poll_output`](Self::poll_output) after every call;
/// segments from there may belong to any flow that the regulator serves.
pub trait Regulator: Send {
    /// A data segment arrived from the network and has not entered the queue yet.
    fn on_data(&mut self, _now: Time, _segment: &Segment, _view: LinkView) -> Verdict {
        Verdict::Forward
    }

    /// The mobile requests a connection: a SYN without an ACK, which is passed on afterwards.
    fn on_syn(&mut self, _now: Time, _segment: &Segment, _view: LinkView) {}

    /// A segment entered the queue: from the network, or sent to the mobile by the regulator.
    fn on_queued(&mut self, _now: Time, _segment: &Segment, _view: LinkView) {}

    /// The copy that [`Verdict::ForwardKeep`] requested is not kept: no room. It must not be released.
    fn on_copy_refused(&mut self, _segment: &Segment) {}

    /// A segment was refused by the queue, or dropped later. Retransmitting at once on each refusal would never end.
    fn on_dropped(&mut self, _now: Time, _segment: &Segment, _cause: Cause, _view: LinkView) {}

    /// The last byte of a segment left the queue for the radio. The next segment is already in transmission.
    fn on_departed(&mut self, _now: Time, _segment: &Segment, _view: LinkView) {}

    /// A segment no longer counts against the buffer. Called only if the bearer keeps a segment until the far end of
    /// the radio has acknowledged it, for a segment that departed or was given up; elsewhere departure frees it.
    fn on_freed(&mut self, _now: Time, _segment: &Segment, _view: LinkView) {}

    /// The data queue is empty and no segment is in transmission.
    fn on_idle(&mut self, _now: Time, _view: LinkView) {}

    /// A bearer that only observes has a new estimate of a flow. Called before the departures that follow from it.
    fn on_observation(&mut self, _now: Time, _observation: &Observation, _view: LinkView) {}

    /// A TCP segment with an ACK arrived from the mobile: a pure ACK, or one with data, SYN or FIN.
    fn handle_ack(&mut self, now: Time, ack: Segment, view: LinkView);

    /// The deadline of [`poll_timeout`](Self::poll_timeout) has passed. Early and repeated calls change nothing. The
    /// view is of the queue of the flow that was in the latest other call.
    fn handle_timeout(&mut self, _now: Time, _view: LinkView) {}

    /// The next segment to send, discard or release; `None` when there is nothing left to do.
    fn poll_output(&mut self, now: Time) -> Option<Output>;

    /// The next instant at which [`handle_timeout`](Self::handle_timeout) is due; `None`: no deadline.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// Limit of a flow's sender as an amount that changes slowly, beyond a base visible in each packet. A box without
    /// an [`Edge`](crate::Edge) advertises the further of the previous right edge and `base + bytes`. `None`: not
    /// available.
    fn allowance(&mut self, _now: Time, _flow: FlowId, _view: LinkView) -> Option<Allowance> {
        None
    }

    /// The flow ended, or the flow table is full: every held segment of the flow must come out of
    /// [`poll_output`](Self::poll_output); state of the flow may be dropped. A regulator is removed with its last
    /// flow.
    fn close(&mut self, _now: Time, _flow: FlowId) {}

    /// Number of held segments of the flow. The edge uses it to check that no segment is lost.
    fn held(&self, _flow: FlowId) -> usize {
        0
    }

    /// Number of segments of the flow of which a copy is kept. The edge uses it to check that no copy is lost.
    fn kept(&self, _flow: FlowId) -> usize {
        0
    }
}

/// How much a sender may send: bytes beyond a base visible in packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// Base of the bytes.
    pub base: Base,
    /// Payload bytes beyond the base.
    pub bytes: u32,
    /// Minimum advertised window, bytes; a window field is not rounded down below it.
    pub least: u32,
}

/// What to do with a data segment that arrived from the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Pass the segment to the queue.
    Forward,
    /// Pass the segment to the queue and keep a copy, which the regulator frees later with [`Output::Release`].
    ForwardKeep,
    /// Discard the segment.
    Drop,
    /// Mark the segment with congestion experienced (RFC 3168) and pass it to the queue.
    MarkCe,
}

/// An action of a regulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a segment to the TCP sender: one that arrived, or a [generated](Segment::made) one.
    ToSender(Segment),
    /// Send a segment to the mobile through the queue: a kept copy, which remains kept, or a
    /// [generated](Segment::made) one.
    ToReceiver {
        /// The segment.
        segment: Segment,
        /// Where in the queue to insert the segment.
        place: Place,
    },
    /// Drop a segment that arrived instead of passing it on.
    Discard(Segment),
    /// Free a kept copy.
    Release(Segment),
}

/// Where in a queue a segment is inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Behind all other segments.
    Back,
    /// Before all other segments of its flow.
    Front,
}

/// Describes the first flow of a new regulator.
#[derive(Clone, Copy, Debug)]
pub struct FlowContext {
    /// The flow.
    pub flow: FlowId,
    /// User of the flow. On live links: a mobile's IPv4 address, or its IPv6 /64 network.
    pub user: u32,
}

/// Configuration of a regulator: its table in a scenario file.
pub trait RegulatorConfig: fmt::Debug + Send + Sync {
    /// Builds a regulator; `None` leaves flows unregulated.
    fn build(&self, context: FlowContext) -> Option<Box<dyn Regulator>>;

    /// Which flows share one regulator.
    fn scope(&self) -> Scope {
        Scope::Flow
    }

    /// Whether the regulators act on uploads too; if not, uploads are unregulated.
    fn regulates_uploads(&self) -> bool {
        false
    }

    /// Whether it can regulate uploads at the mobile.
    ///
    /// # Errors
    /// Why it cannot.
    fn regulates_uplinks(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// Whether the regulators need to see departures from the queue.
    fn departures(&self) -> Departures {
        Departures::Watched
    }

    /// Whether its regulators give an [`Allowance`](Regulator::allowance).
    fn allows(&self) -> bool {
        false
    }

    /// When data counts as departed, for a bearer that only observes a queue from `side`.
    ///
    /// # Errors
    /// The reason why the regulator does not work with an observing bearer.
    fn observes(&self, _side: Side) -> Result<Left, &'static str> {
        Err("it acts on the queue itself; an observing bearer has none")
    }
}
