//! The [`Link`] trait: one direction of a channel, with its queue.

use std::borrow::Cow;

use ackclock_core::{FlowId, Histogram, RadioReport, Rate, Segment, Span, Time};
use delegate::delegate;

use crate::{CellChange, Medium, SerialLink};

/// One direction of a channel, including its queue. The link reports what happens to a segment as events, each with its
/// time.
///
/// The caller drains all due events before it calls [`enqueue`](Self::enqueue). Polling at times other than those of
/// [`poll_timeout`](Self::poll_timeout) does not change the result.
///
/// Only [`poll_event`](Self::poll_event) has a default implementation, so that a link that wraps another link cannot
/// forget to forward a method.
pub trait Link: Send {
    /// Accepts a segment at `now`, or refuses it.
    ///
    /// # Errors
    /// Returns the cause if the queue refuses the segment.
    fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause>;

    /// Accepts a segment like [`enqueue`](Self::enqueue), but inserts it before all queued segments of its flow. A link
    /// that cannot insert at the front refuses the segment.
    ///
    /// # Errors
    /// Returns the cause if the queue refuses the segment.
    fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause>;

    /// Returns the next event at or before `now`; events come in order of time. The event stays the next one until [its
    /// segment is taken](Self::take_segment).
    fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)>;

    /// Takes the segment of the event last returned by [`peek_event`](Self::peek_event).
    ///
    /// # Panics
    /// Panics if `peek_event` returned `None`.
    // The segment is separate from its event for speed: returning the segment inside another value copies it twice,
    // which is the largest cost here.
    fn take_segment(&mut self) -> Segment;

    /// Returns the next event like [`peek_event`](Self::peek_event), together with its segment.
    fn poll_event(&mut self, now: Time) -> Option<(Time, LinkEvent, Segment)> {
        let (at, event) = self.peek_event(now)?;
        Some((at, event, self.take_segment()))
    }

    /// Time of the next event, or an earlier time at which to poll again.
    fn poll_timeout(&self) -> Option<Time>;

    /// Sets whether [`LinkEvent::Departed`] events are reported, each at its time. By default departures are not
    /// reported, which saves one wake-up per packet. Drops inside the link are then reported late, before the next
    /// delivery, but with their true times.
    fn want_departures(&mut self, departures: Departures);

    /// Starts to generate radio reports, if the link supports reports.
    fn want_reports(&mut self);

    /// Returns the next report at or before `now`, after all due events were drained.
    /// [`poll_timeout`](Self::poll_timeout) includes the times of reports.
    fn poll_report(&mut self, now: Time) -> Option<RadioReport>;

    /// State of the queue that serves `flow` at `now`, after all due events were drained. A transmission that has ended
    /// counts as ended even if its event is not reported.
    fn view(&mut self, now: Time, flow: FlowId) -> LinkView;

    /// Number of packets and bytes in all queues at `now`. Packets whose transmission has started are excluded, even if
    /// they count against the buffer.
    fn waiting(&mut self, now: Time) -> Load;

    /// The part of [`waiting`](Self::waiting) that belongs to a user; all of it if the link does not tell users apart.
    fn waiting_of(&mut self, now: Time, user: u32) -> Load;

    /// Queueing delays of departed segments, from arrival to the start of transmission.
    fn waits(&self) -> Cow<'_, Histogram>;

    /// Mean capacity from time zero until `until` with this run's random draws, bit/s: the rate that a saturated link
    /// achieves. `until` never decreases from call to call.
    ///
    /// Returns `None` if the capacity is unknown, because the rate is drawn for each packet and no packet was sent. The
    /// mean leaves out the time under an earlier medium of unknown capacity.
    fn capacity_bps(&mut self, until: Time) -> Option<f64>;

    /// Traffic starts at `now`: a capacity that is unknown counts as nothing until then, and is not extrapolated to that
    /// time later.
    fn start_capacity(&mut self, now: Time);

    /// Replaces the medium at `now`; the caller drains due events first. Queued packets stay, packets in flight arrive
    /// as before, and a packet in transmission sends its remaining bits over the new medium. The call has no effect on
    /// a link that is not a queue followed by a medium.
    fn replace_medium(&mut self, now: Time, medium: Box<dyn Medium>);

    /// Changes a cell at `now`; the caller drains due events first. The call has no effect on any other link.
    fn change_cell(&mut self, now: Time, change: CellChange);

    /// Sets the user of a flow, for per-user queues.
    fn assign(&mut self, flow: FlowId, user: u32);

    /// Frees the state of a flow that ended.
    fn forget(&mut self, flow: FlowId);

    /// Frees large state when the run is over; afterwards only counters are read.
    fn let_go(&mut self);
}

/// A link as bearers store it: a queue followed by a medium inline, any other link behind a pointer. Nearly every link
/// is a queue followed by a medium, and a call through a pointer would be a large part of its cost.
// The size difference of the variants does not matter: a bearer has only two links.
#[allow(clippy::large_enum_variant)]
pub enum AnyLink {
    /// A link that is a queue followed by a medium.
    Serial(SerialLink),
    /// A link that is not a queue followed by a medium.
    Other(Box<dyn Link>),
}

impl From<SerialLink> for AnyLink {
    fn from(link: SerialLink) -> Self {
        Self::Serial(link)
    }
}

impl AnyLink {
    /// Time of the next event, as in [`poll_timeout`](Link::poll_timeout); [`Time::NEVER`] if no event is pending.
    #[inline(always)]
    pub(crate) fn due(&self) -> Time {
        match self {
            Self::Serial(link) => link.due(),
            Self::Other(link) => link.poll_timeout().unwrap_or(Time::NEVER),
        }
    }
}

impl Link for AnyLink {
    delegate! {
        to match self {
            Self::Serial(link) => link,
            Self::Other(link) => link,
        } {
            #[inline(always)]
            fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause>;
            fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause>;
            #[inline(always)]
            fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)>;
            #[inline(always)]
            fn take_segment(&mut self) -> Segment;
            #[inline(always)]
            fn poll_timeout(&self) -> Option<Time>;
            fn want_departures(&mut self, departures: Departures);
            fn want_reports(&mut self);
            fn poll_report(&mut self, now: Time) -> Option<RadioReport>;
            fn view(&mut self, now: Time, flow: FlowId) -> LinkView;
            fn waiting(&mut self, now: Time) -> Load;
            fn waiting_of(&mut self, now: Time, user: u32) -> Load;
            fn waits(&self) -> Cow<'_, Histogram>;
            fn capacity_bps(&mut self, until: Time) -> Option<f64>;
            fn start_capacity(&mut self, now: Time);
            fn replace_medium(&mut self, now: Time, medium: Box<dyn Medium>);
            fn change_cell(&mut self, now: Time, change: CellChange);
            fn assign(&mut self, flow: FlowId, user: u32);
            fn forget(&mut self, flow: FlowId);
            fn let_go(&mut self);
        }
    }
}

/// Whether a link reports departures as events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Departures {
    /// Departures are not reported.
    #[default]
    Unwatched,
    /// Departures are not reported; [`LinkEvent::Freed`] is, because a regulator acts on it.
    Freed,
    /// Departures are reported, because a regulator acts on them.
    Watched,
}

/// Event of a segment inside a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The last byte of the segment has left the queue for the medium. `Departed` is reported only while departures are
    /// watched.
    Departed,
    /// The segment no longer counts against the buffer, which had kept it after its departure. `Freed` is reported only
    /// on request ([`Departures`]), by bearers that keep packets until the receiver has acknowledged them. `Freed` may
    /// come after the delivery of the segment.
    Freed,
    /// The segment was lost: dropped by the queue after it had been accepted, or lost by the medium.
    Dropped(Cause),
    /// The segment arrived at the far end, after the given link-layer retransmissions; a link without retransmissions
    /// always reports zero.
    Delivered(Repetitions),
    /// The segment arrived with a wrong bit: its receiver drops it, because the checksum is wrong.
    Corrupt,
    /// The link impaired the segment, which is not an end: its delivery or loss is reported too.
    Impaired(Impairment),
}

/// An impairment of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impairment {
    /// A copy of the segment entered the queue behind it, and has its own end.
    Duplicated,
    /// The segment, which is delivered next, was passed by a later one of its flow (RFC 4737).
    Reordered {
        /// Segments of its flow delivered from the first one that passed it.
        extent: u32,
    },
}

impl LinkEvent {
    /// Delivery without link-layer retransmissions.
    pub const DELIVERED: Self = Self::Delivered(Repetitions::NONE);

    /// Whether the event is the delivery of the segment.
    #[inline]
    pub const fn is_delivery(self) -> bool {
        matches!(self, Self::Delivered(_))
    }
}

/// Link-layer retransmissions of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Repetitions {
    /// Number of retransmissions of the packet's parts.
    pub times: u32,
    /// Extra delay until the packet was complete, caused by all retransmissions since its start, of this packet and of
    /// other packets.
    pub delay: Span,
}

impl Repetitions {
    /// Value for a packet without retransmissions.
    pub const NONE: Self = Self { times: 0, delay: Span::ZERO };
}

/// Reason for the loss of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The buffer was full.
    Full,
    /// An active queue management algorithm dropped the segment.
    Policy,
    /// The segment was queued for longer than the age limit of the queue.
    Aged,
    /// The medium lost the segment.
    Medium,
    /// The radio outage lasted too long.
    Outage,
    /// A hand-over did not forward the segment.
    Handover,
    /// The ACK was redundant to a filter of ACKs.
    Filtered,
}

/// An amount of traffic, in packets and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Load {
    /// Number of packets.
    pub packets: u32,
    /// Number of bytes, including headers.
    pub bytes: u64,
}

impl Load {
    /// The load without any packets.
    pub const NONE: Self = Self { packets: 0, bytes: 0 };

    /// Load of a single segment.
    #[inline]
    pub const fn of(segment: &Segment) -> Self {
        Self { packets: 1, bytes: segment.wire_bytes() as u64 }
    }

    /// Whether the load has no packets.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.packets == 0
    }
}

impl std::ops::Add for Load {
    type Output = Self;
    #[inline]
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl std::ops::AddAssign for Load {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl std::ops::SubAssign for Load {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.packets -= other.packets;
        self.bytes -= other.bytes;
    }
}

/// Maximum load of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Capacity {
    /// The queue is unlimited.
    #[default]
    Unlimited,
    /// Maximum number of packets.
    Packets(u32),
    /// Maximum number of bytes, including headers.
    Bytes(u64),
}

impl Capacity {
    /// Whether a load fits into the capacity.
    #[inline]
    pub const fn holds(self, load: Load) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Packets(most) => load.packets <= most,
            Self::Bytes(most) => load.bytes <= most,
        }
    }

    /// Whether the load `waiting` plus the segment fit into the capacity.
    #[inline]
    pub fn admits(self, waiting: Load, segment: &Segment) -> bool {
        self.holds(waiting + Load::of(segment))
    }

    /// Capacity in packets of `packet_bytes` bytes including headers, at least one packet; `u32::MAX` if unlimited.
    #[inline]
    pub const fn packets(self, packet_bytes: u32) -> u32 {
        match self {
            Self::Unlimited => u32::MAX,
            Self::Packets(count) => count,
            Self::Bytes(bytes) => {
                let size = if packet_bytes == 0 { 1 } else { packet_bytes as u64 };
                let count = bytes / size;
                if count == 0 {
                    1
                } else if count > u32::MAX as u64 {
                    u32::MAX
                } else {
                    count as u32
                }
            }
        }
    }
}

/// Packets that count against the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BufferMeaning {
    /// Only queued packets count, not the packet in transmission.
    #[default]
    Waiting,
    /// Queued packets and the packet in transmission count.
    WithTransmission,
}

/// State of a link's queue as an edge sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    /// Packets in the flow's queue whose transmission has not started.
    pub waiting: Load,
    /// Packets in transmission.
    pub in_transmission: Load,
    /// Packets that were transmitted but not acknowledged by the receiver yet; only on a link with ARQ.
    pub unacknowledged: Load,
    /// Load that counts against `capacity` when the next segment arrives. The link decides which other loads `occupied`
    /// includes.
    pub occupied: Load,
    /// Capacity of the buffer.
    pub capacity: Capacity,
    /// Current rate of the link.
    pub rate: Rate,
}

impl LinkView {
    /// View of an empty queue whose other properties are unknown.
    pub const NOTHING: Self = Self {
        waiting: Load::NONE,
        in_transmission: Load::NONE,
        unacknowledged: Load::NONE,
        occupied: Load::NONE,
        capacity: Capacity::Unlimited,
        rate: Rate::ZERO,
    };

    /// Number of packets of `packet_bytes` bytes, including headers, that still fit into the buffer; `u32::MAX` if
    /// unlimited.
    pub fn room(&self, packet_bytes: u32) -> u32 {
        self.capacity.packets(packet_bytes).saturating_sub(self.occupied.packets)
    }

    /// Number of packets of `packet_bytes` bytes, including headers, that the buffer can queue; `u32::MAX` if
    /// unlimited. The number is the buffer's capacity less the transmitted packets that the buffer keeps until they are
    /// acknowledged.
    pub fn places(&self, packet_bytes: u32) -> u32 {
        match self.capacity {
            Capacity::Unlimited => u32::MAX,
            capacity => capacity.packets(packet_bytes).saturating_sub(self.kept()),
        }
    }

    /// Number of transmitted packets that still count against the capacity.
    pub fn kept(&self) -> u32 {
        self.occupied.packets.saturating_sub(self.waiting.packets + self.in_transmission.packets)
    }

    /// Number of packets in transmission that do not count against the capacity.
    pub fn beside_buffer(&self) -> u32 {
        (self.waiting.packets + self.in_transmission.packets).saturating_sub(self.occupied.packets)
    }

    /// Whether no packet is queued or in transmission.
    pub const fn is_idle(&self) -> bool {
        self.waiting.is_none() && self.in_transmission.is_none()
    }

    /// Whether the buffer is empty and no packet is in transmission.
    pub const fn is_empty(&self) -> bool {
        self.is_idle() && self.occupied.is_none()
    }
}
