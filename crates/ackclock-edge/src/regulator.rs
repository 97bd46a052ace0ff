//! The [`Regulator`] trait: a regulator acts on the ACKs and the data of flows that cross an edge.

use std::fmt;

use ackclock_core::{FlowId, Segment, Time, Unused};
use ackclock_link::queue::{AckFilter, Place};
use ackclock_link::{Base, Cause, Departures, Left, LinkView, Observation, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Regulator of TCP flows at an edge. A regulator delays or rewrites ACKs, and may drop, mark, keep and retransmit
/// data, and generate segments.
///
/// The regulator's [`Scope`] determines whether it serves one flow, the flows of a user, or all flows. Every call of a
/// regulator passes a [`LinkView`] of the flow's data queue at that instant. The edge drains
/// [`poll_output`](Self::poll_output) after every call. Segments from `poll_output` may belong to any flow that the
/// regulator serves.
pub trait Regulator: Send {
    /// Called when a data segment has arrived from the network and has not yet entered the queue.
    fn on_data(&mut self, _now: Time, _segment: &Segment, _view: LinkView) -> Verdict {
        Verdict::Forward
    }

    /// Called when the mobile requests a connection with a SYN without an ACK. The mobile's SYN is passed on after the
    /// call.
    fn on_syn(&mut self, _now: Time, _segment: &Segment, _view: LinkView) {}

    /// Called when a segment has entered the queue. A queued segment came from the network, or the regulator sent it to
    /// the mobile.
    fn on_queued(&mut self, _now: Time, _segment: &Segment, _view: LinkView) {}

    /// Called when the copy requested by [`Verdict::ForwardKeep`] is not kept, because there is no room. The regulator
    /// must not release a refused copy.
    fn on_copy_refused(&mut self, _segment: &Segment) {}

    /// Called when a segment was refused by the queue, or dropped later. A regulator that retransmits at once on each
    /// refusal would never stop.
    fn on_dropped(&mut self, _now: Time, _segment: &Segment, _cause: Cause, _view: LinkView) {}

    /// Called when the last byte of a segment has left the queue for the radio. When a departure is reported, the next
    /// segment is already in transmission.
    fn on_departed(&mut self, _now: Time, _segment: &Segment, _view: LinkView) {}

    /// Called when a segment no longer counts against the buffer, after it departed or was given up. Only bearers that
    /// keep a segment until the far end of the radio has acknowledged it call this method. With all other bearers, the
    /// departure of a segment frees the segment.
    fn on_freed(&mut self, _now: Time, _segment: &Segment, _view: LinkView) {}

    /// Called when the data queue is empty and no segment is in transmission.
    fn on_idle(&mut self, _now: Time, _view: LinkView) {}

    /// Called when a bearer that only observes has a new estimate of a flow. The departures that follow from the
    /// estimate are reported afterwards.
    fn on_observation(&mut self, _now: Time, _observation: &Observation, _view: LinkView) {}

    /// Handles a TCP segment with an ACK from the mobile: a pure ACK, or an ACK with data, SYN or FIN.
    fn handle_ack(&mut self, now: Time, ack: Segment, view: LinkView);

    /// Called when the deadline of [`poll_timeout`](Self::poll_timeout) has passed. Early and repeated calls of
    /// `handle_timeout` change nothing. The view passed to `handle_timeout` describes the queue of the flow for which
    /// the regulator was last called.
    fn handle_timeout(&mut self, _now: Time, _view: LinkView) {}

    /// Returns the next segment to send, discard or release, or `None` if there is none.
    fn poll_output(&mut self, now: Time) -> Option<Output>;

    /// Time at which [`handle_timeout`](Self::handle_timeout) is next due; `None` without a deadline.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// Limit of a flow's sender, as an amount beyond a base visible in each packet. The allowed amount changes slowly.
    /// A box without an [`Edge`](crate::Edge) advertises the maximum of the previous right edge and `base + bytes`.
    /// Returns `None` if the regulator does not limit the sender by an allowance.
    fn allowance(&mut self, _now: Time, _flow: FlowId, _view: LinkView) -> Option<Allowance> {
        None
    }

    /// Called when the flow has ended, or the flow table is full. Every held segment of the flow must then come out of
    /// [`poll_output`](Self::poll_output), and the state of the flow may be dropped. A regulator is removed with its
    /// last flow.
    fn close(&mut self, _now: Time, _flow: FlowId) {}

    /// Number of held segments of the flow. The edge uses the number of held segments to check that no segment is lost.
    fn held(&self, _flow: FlowId) -> usize {
        0
    }

    /// Number of segments of the flow of which a copy is kept. The edge uses the number of kept copies to check that no
    /// copy is lost.
    fn kept(&self, _flow: FlowId) -> usize {
        0
    }
}

/// Allowance of a sender: the number of bytes that it may send beyond a base visible in packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// Base from which the allowance is counted.
    pub base: Base,
    /// Number of payload bytes allowed beyond the base.
    pub bytes: u32,
    /// Minimum advertised window, bytes. Rounding to a window field never goes below this minimum.
    pub least: u32,
}

/// Decision about a data segment that arrived from the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The data segment is passed to the queue.
    Forward,
    /// The segment is passed to the queue and a copy is kept, which the regulator frees later with [`Output::Release`].
    ForwardKeep,
    /// The data segment is discarded.
    Drop,
    /// The segment is marked with congestion experienced (RFC 3168) and passed to the queue.
    MarkCe,
}

/// Action requested by a regulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Sends a segment to the TCP sender: a segment that arrived, or a [generated](Segment::made) segment.
    ToSender(Segment),
    /// Sends a segment to the mobile through the queue: a kept copy, which remains kept, or a
    /// [generated](Segment::made) segment.
    ToReceiver {
        /// Segment to send to the mobile.
        segment: Segment,
        /// Position in the queue at which the segment is inserted.
        place: Place,
    },
    /// Drops a segment that arrived, instead of passing it on.
    Discard(Segment),
    /// Frees the kept copy of a segment.
    Release(Segment),
}

/// Properties of a new regulator's first flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowContext {
    /// Number of the regulator's first flow.
    pub flow: FlowId,
    /// User of the regulator's first flow. On live links, the user is a mobile's IPv4 address or its IPv6 /64 network.
    pub user: u32,
}

/// Properties of a bearer on which the effect of a regulator's keys depends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Properties {
    /// Side from which the bearer only observes a queue; `None` for a bearer with a queue.
    pub observes: Option<Side>,
    /// Whether the bearer keeps sent packets until they are acknowledged.
    pub keeps_sent: bool,
}

/// Scope of a regulator: the flows that share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Each flow has a separate regulator.
    #[default]
    Flow,
    /// All flows of a user share a regulator, or all flows of a user's class of service.
    User,
    /// All flows of the edge share a regulator.
    Queue,
}

/// Configuration of a regulator, as a table in a scenario file.
pub trait RegulatorConfig: fmt::Debug + Send + Sync {
    /// Builds a regulator. Returns `None` to leave flows unregulated.
    fn build(&self, context: FlowContext) -> Option<Box<dyn Regulator>>;

    /// Scope of the regulators: the flows that share one regulator.
    fn scope(&self) -> Scope {
        Scope::Flow
    }

    /// Returns whether the regulators act on uploads in addition to downloads; otherwise uploads are unregulated.
    fn regulates_uploads(&self) -> bool {
        false
    }

    /// Checks whether the regulator can regulate uploads at the mobile.
    ///
    /// # Errors
    /// Fails with the reason why the regulator cannot regulate uploads at the mobile.
    fn regulates_uplinks(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// Returns whether the regulators need the handshake of a connection, for its window scale. After a hand-over to a
    /// controller with new regulators, running flows then stay unregulated, so that no right edge moves left.
    fn needs_handshake(&self) -> bool {
        false
    }

    /// Returns whether the regulators need the transport's headers. Other regulators only mark and drop packets, also of
    /// flows whose headers are encrypted.
    fn reads_headers(&self) -> bool {
        true
    }

    /// Returns whether the regulators only mark packets, so that they have no effect without ECN-capable senders.
    fn marks_only(&self) -> bool {
        false
    }

    /// Returns whether the regulators need to see departures from the queue.
    fn departures(&self) -> Departures {
        Departures::Watched
    }

    /// Returns whether the regulators give an [`Allowance`](Regulator::allowance).
    fn allows(&self) -> bool {
        false
    }

    /// Returns the filter of ACKs that the queues of the opposite direction get.
    fn ack_filter(&self) -> Option<AckFilter> {
        None
    }

    /// Keys of the regulator's table that are not at their default and have no effect, because of other keys of the
    /// table or because of the bearer. Paths are relative to the table.
    fn unused(&self, _bearer: Properties) -> Vec<Unused> {
        Vec::new()
    }

    /// Event at which data counts as departed, for a bearer that only observes a queue from `side`.
    ///
    /// # Errors
    /// Fails with the reason why the regulator does not work with an observing bearer.
    fn observes(&self, _side: Side) -> Result<Left, &'static str> {
        Err("it acts on the queue itself; an observing bearer has none")
    }
}
