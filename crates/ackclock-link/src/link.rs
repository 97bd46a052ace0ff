//! The [`Link`] trait: one direction of a channel, with its queue.

use std::borrow::Cow;

use ackclock_core::{FlowId, Histogram, RadioReport, Rate, Segment, Span, Time};
use delegate::delegate;

use crate::{Medium, SerialLink};

/// One direction of a channel, including its queue. Everything that happens to a segment inside is an event with its
/// instant.
///
/// The caller drains all due events before it [`enqueue`](Self::enqueue)s. Polling at other instants than
/// [`poll_timeout`](Self::poll_timeout) names changes nothing.
///
/// Only [`poll_event`](Self::poll_event) has a default implementation, so that a link that wraps another one cannot
/// forget to forward a method.
pub trait Link: Send {
    /// Accepts a segment at `now`, or refuses it.
    ///
    /// # Errors
    /// The cause if the queue refuses the segment.
    fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause>;

    /// Accepts a segment like [`enqueue`](Self::enqueue), but inserts it before all waiting segments of its flow. A
    /// link that cannot do this refuses it.
    ///
    /// # Errors
    /// The cause if the segment is refused.
    fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause>;

    /// The next event at or before `now`, in order of time. It remains the next until [its segment is
    /// taken](Self::take_segment).
    fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)>;

    /// Takes the segment of the event last returned by [`peek_event`](Self::peek_event).
    ///
    /// # Panics
    /// If `peek_event` returned none.
    // Separate from its event for speed: returning the segment inside another value copies it twice, the largest cost
    // here.
    fn take_segment(&mut self) -> Segment;

    /// The next event like [`peek_event`](Self::peek_event), with its segment.
    fn poll_event(&mut self, now: Time) -> Option<(Time, LinkEvent, Segment)> {
        let (at, event) = self.peek_event(now)?;
        Some((at, event, self.take_segment()))
    }

    /// Instant of the next event, or an earlier one at which to poll again.
    fn poll_timeout(&self) -> Option<Time>;

    /// Whether to report [`LinkEvent::Departed`] events, each at its instant. Off at first, which saves a wake per
    /// packet; drops inside the link are then reported late, with their true instants, before the next delivery.
    fn want_departures(&mut self, departures: Departures);

    /// Generates radio reports from now on, if the link has any.
    fn want_reports(&mut self);

    /// The next report at or before `now`, after all due events were drained. [`poll_timeout`](Self::poll_timeout)
    /// includes the instants of reports.
    fn poll_report(&mut self, now: Time) -> Option<RadioReport>;

    /// State at `now` of the queue that serves `flow`, after all due events were drained. Transmissions that have
    /// ended since count as ended even if their event is not reported.
    fn view(&mut self, now: Time, flow: FlowId) -> LinkView;

    /// Packets and bytes in all queues at `now`, excluding packets whose transmission has begun, whatever counts
    /// against the buffer.
    fn waiting(&mut self, now: Time) -> Load;

    /// Queueing delays of departed segments, from arrival to the start of transmission.
    fn waits(&self) -> Cow<'_, Histogram>;

    /// Mean capacity from time zero until `until` with this run's draws, bit/s: the rate of a saturated link. `until`
    /// never decreases.
    ///
    /// `None` if unknown: the rate is drawn per packet, and there was no packet. Time under such a medium that was
    /// replaced since is left out.
    fn capacity_bps(&mut self, until: Time) -> Option<f64>;

    /// Replaces the medium at `now`; the caller drains due events first. Queued packets stay, packets in flight arrive
    /// as before, and a packet in transmission sends its remaining bits over the new medium. No effect on a link that
    /// is not a queue followed by a medium.
    fn replace_medium(&mut self, now: Time, medium: Box<dyn Medium>);

    /// Sets the user of a flow, for per-user queues.
    fn assign(&mut self, flow: FlowId, user: u32);

    /// Frees the state of a flow that ended.
    fn forget(&mut self, flow: FlowId);

    /// Frees large state; afterwards only counters are read.
    fn let_go(&mut self);
}

/// A link as bearers store it: a queue followed by a medium inline, all others behind a pointer. Nearly every link is of
/// the first kind, and a call through a pointer would be a large part of its cost.
// A bearer has only two links, so it does not matter that one kind is larger than the other.
#[allow(clippy::large_enum_variant)]
pub enum AnyLink {
    /// A queue followed by a medium.
    Serial(SerialLink),
    /// Any other link.
    Other(Box<dyn Link>),
}

impl From<SerialLink> for AnyLink {
    fn from(link: SerialLink) -> Self {
        Self::Serial(link)
    }
}

impl AnyLink {
    /// See [`poll_timeout`](Link::poll_timeout); [`Time::NEVER`] if there is none.
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
            fn waits(&self) -> Cow<'_, Histogram>;
            fn capacity_bps(&mut self, until: Time) -> Option<f64>;
            fn replace_medium(&mut self, now: Time, medium: Box<dyn Medium>);
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
    /// Departures are reported, because a regulator acts on them.
    Watched,
}

/// What happened to a segment inside a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// Its last byte has left the queue for the medium. Reported only while departures are watched.
    Departed,
    /// It no longer counts against the buffer, which had kept it after departure. Reported only while departures are
    /// watched, by bearers that keep packets until the far end has acknowledged them; possibly after its delivery.
    Freed,
    /// It was lost: dropped by the queue after it had been accepted, or lost by the medium.
    Dropped(Cause),
    /// It arrived at the far end, after these link-layer retransmissions; none for a link without retransmissions.
    Delivered(Repetitions),
}

impl LinkEvent {
    /// It arrived without link-layer retransmissions.
    pub const DELIVERED: Self = Self::Delivered(Repetitions::NONE);

    /// Whether it arrived.
    pub const fn is_delivery(self) -> bool {
        matches!(self, Self::Delivered(_))
    }
}

/// Link-layer retransmissions of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Repetitions {
    /// Number of retransmissions of its parts.
    pub times: u32,
    /// How much later it was complete than without any retransmission, of it or of other packets, since its start.
    pub delay: Span,
}

impl Repetitions {
    /// No retransmissions.
    pub const NONE: Self = Self { times: 0, delay: Span::ZERO };
}

/// Why a segment was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An active queue management dropped it.
    Full,
    /// An active queue management chose it.
    Policy,
    /// The medium lost it.
    Medium,
    /// The radio was in outage for too long.
    Outage,
}

/// An amount of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Load {
    /// Packets.
    pub packets: u32,
    /// Bytes, including headers.
    pub bytes: u64,
}

impl Load {
    /// No packets.
    pub const NONE: Self = Self { packets: 0, bytes: 0 };

    /// A single segment.
    pub const fn of(segment: &Segment) -> Self {
        Self { packets: 1, bytes: segment.wire_bytes() as u64 }
    }

    /// Whether there are no packets.
    pub const fn is_none(self) -> bool {
        self.packets == 0
    }
}

impl std::ops::Add for Load {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl std::ops::AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl std::ops::SubAssign for Load {
    fn sub_assign(&mut self, other: Self) {
        self.packets -= other.packets;
        self.bytes -= other.bytes;
    }
}

/// Capacity of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Capacity {
    /// Unlimited.
    #[default]
    Unlimited,
    /// A number of packets.
    Packets(u32),
    /// A number of bytes, including headers.
    Bytes(u64),
}

impl Capacity {
    /// Whether this load fits.
    pub const fn holds(self, load: Load) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Packets(most) => load.packets <= most,
            Self::Bytes(most) => load.bytes <= most,
        }
    }

    /// Whether `waiting` plus `segment` fit.
    pub fn admits(self, waiting: Load, segment: &Segment) -> bool {
        self.holds(waiting + Load::of(segment))
    }

    /// The capacity in packets of `packet_bytes` including headers, at least one; `u32::MAX` if unlimited.
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

/// Which packets count against the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BufferMeaning {
    /// Waiting packets only, not the one in transmission.
    #[default]
    Waiting,
    /// Waiting packets and the one in transmission.
    WithTransmission,
}

/// State of a link's queue as an edge sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    /// Packets waiting in the flow's queue, whose transmission has not begun.
    pub waiting: Load,
    /// Packets in transmission.
    pub in_transmission: Load,
    /// Packets transmitted but not yet acknowledged by the far end; only of a link with ARQ.
    pub unacknowledged: Load,
    /// Load that counts against `capacity` for the next segment. Which of the loads above it includes depends on the
    /// link.
    pub occupied: Load,
    /// Capacity of the buffer.
    pub capacity: Capacity,
    /// Rate at this instant.
    pub rate: Rate,
}

impl LinkView {
    /// An empty queue of which nothing else is known.
    pub const NOTHING: Self = Self {
        waiting: Load::NONE,
        in_transmission: Load::NONE,
        unacknowledged: Load::NONE,
        occupied: Load::NONE,
        capacity: Capacity::Unlimited,
        rate: Rate::ZERO,
    };

    /// Packets of `packet_bytes`, including headers, that still fit into the buffer; `u32::MAX` if unlimited.
    pub fn room(&self, packet_bytes: u32) -> u32 {
        self.capacity.packets(packet_bytes).saturating_sub(self.occupied.packets)
    }

    /// Packets of `packet_bytes`, including headers, that the buffer can queue: its capacity less the transmitted
    /// packets that it keeps until they are acknowledged. `u32::MAX` if unlimited.
    pub fn places(&self, packet_bytes: u32) -> u32 {
        match self.capacity {
            Capacity::Unlimited => u32::MAX,
            capacity => capacity.packets(packet_bytes).saturating_sub(self.kept()),
        }
    }

    /// Transmitted packets that still count against the capacity.
    pub fn kept(&self) -> u32 {
        self.occupied.packets.saturating_sub(self.waiting.packets + self.in_transmission.packets)
    }

    /// Packets in transmission that do not count against the capacity.
    pub fn beside_buffer(&self) -> u32 {
        (self.waiting.packets + self.in_transmission.packets).saturating_sub(self.occupied.packets)
    }

    /// Whether no packet is waiting or in transmission.
    pub const fn is_idle(&self) -> bool {
        self.waiting.is_none() && self.in_transmission.is_none()
    }

    /// Whether the buffer is empty and no packet is in transmission.
    pub const fn is_empty(&self) -> bool {
        self.is_idle() && self.occupied.is_none()
    }
}
