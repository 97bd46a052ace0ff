//! The link: one direction of a channel.

use std::borrow::Cow;

use ackclock_core::{FlowId, Histogram, RadioReport, Rate, Segment, Span, Time};
use delegate::delegate;

use crate::{Medium, SerialLink};

/// One direction of a channel. It owns its queue; whatever happens to a segment inside comes out as an event, with the
/// instant at which it happened.
///
/// The caller drains the events that are due before it [`enqueue`](Self::enqueue)s. Asking at other instants than
/// [`poll_timeout`](Self::poll_timeout) names changes nothing.
///
/// No method has a default but [`poll_event`](Self::poll_event): a link around another one must pass each of them on.
pub trait Link: Send {
    /// Takes a segment at `now`, or refuses it.
    ///
    /// # Errors
    /// The cause, where the queue does not take it.
    fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause>;

    /// Takes a segment as [`enqueue`](Self::enqueue) does, and puts it before all others of its flow that wait. One that has no
    /// such place refuses it.
    ///
    /// # Errors
    /// The cause, where it is not taken.
    fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause>;

    /// The next event with an instant of at most `now`; instants never decrease. It stays the next until
    /// [its segment is taken](Self::take_segment).
    fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)>;

    /// Takes the segment of the event that [`peek_event`](Self::peek_event) gave last.
    ///
    /// # Panics
    /// Where it gave none.
    // Apart from its event: a segment that is handed on inside of something else is taken apart and put together again, which
    // costs more than all else here.
    fn take_segment(&mut self) -> Segment;

    /// The next event as [`peek_event`](Self::peek_event) gives it, and its segment taken.
    fn poll_event(&mut self, now: Time) -> Option<(Time, LinkEvent, Segment)> {
        let (at, event) = self.peek_event(now)?;
        Some((at, event, self.take_segment()))
    }

    /// The instant of the next event, or an earlier one at which more will be known.
    fn poll_timeout(&self) -> Option<Time>;

    /// Whether [`LinkEvent::Departed`] is wanted, each at its instant. Unwatched at first, which saves a wake a packet;
    /// drops inside the link are then told late, with their own instants, before the delivery that follows them.
    fn want_departures(&mut self, departures: Departures);

    /// Somebody acts on reports of the radio: from now on they are made, where the link has any.
    fn want_reports(&mut self);

    /// The next report of an instant of at most `now`, after the events due at `now` were drained. Their instants are among
    /// those that [`poll_timeout`](Self::poll_timeout) names.
    fn poll_report(&mut self, now: Time) -> Option<RadioReport>;

    /// What an edge may see at `now` of the queue that serves `flow`, after the events that are due were drained. Transmissions that
    /// ended since, and of which nothing is told, count as ended.
    fn view(&mut self, now: Time, flow: FlowId) -> LinkView;

    /// What waits in all its queues at `now`: nothing of which the transmission has begun, whatever counts against the buffer.
    fn waiting(&mut self, now: Time) -> Load;

    /// How long the segments that departed had waited, from their arrival until the link began to transmit them.
    fn waits(&self) -> Cow<'_, Histogram>;

    /// Mean rate that it could have carried from time zero until `until`, bit/s: always with something to send, and with the
    /// draws of this run. `until` never decreases.
    ///
    /// `None` where nothing shows it: its rate is drawn for each packet, and none came. Time under such a medium that has
    /// since given its place to another is left out.
    fn capacity_bps(&mut self, until: Time) -> Option<f64>;

    /// From `now` on the link has another medium: what waits stays where it is, what is in flight arrives when it would
    /// have, and a packet in transmission sends its remaining bits over the new medium. Events that are due are drained
    /// before. A link that is no queue in front of a medium stays as it is.
    fn replace_medium(&mut self, now: Time, medium: Box<dyn Medium>);

    /// Tells whose flow it is, for queues that are kept by user.
    fn assign(&mut self, flow: FlowId, user: u32);

    /// The flow has ended: give back what was kept for it.
    fn forget(&mut self, flow: FlowId);

    /// Nothing more will be asked but what was counted: what takes much room may go.
    fn let_go(&mut self);
}

/// A link as bearers hold it: a queue in front of a medium in place, because nearly every link is one and a call through a
/// pointer would be much of its cost; every other behind a pointer.
// There are two to a bearer, so it does not matter that one kind is larger than the other.
#[allow(clippy::large_enum_variant)]
pub enum AnyLink {
    /// A queue in front of a medium.
    Serial(SerialLink),
    /// Any other.
    Other(Box<dyn Link>),
}

impl From<SerialLink> for AnyLink {
    fn from(link: SerialLink) -> Self {
        Self::Serial(link)
    }
}

impl AnyLink {
    /// As [`poll_timeout`](Link::poll_timeout); [`Time::NEVER`] where there is none.
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

/// Whether departures are events of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Departures {
    /// They are not.
    #[default]
    Unwatched,
    /// They are, because a regulator acts on them.
    Watched,
}

/// What happened to a segment inside a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// Its last byte has left the queue for the medium. Told only where departures are watched.
    Departed,
    /// It no longer counts against the buffer, which had kept it after its departure. Told only where departures are watched, by
    /// bearers that keep a packet until the far end has acknowledged it; possibly after its delivery.
    Freed,
    /// It was lost: by the queue after it had been accepted, or by the medium.
    Dropped(Cause),
    /// It arrived at the far end, after so many repetitions; none of a link that does not repeat.
    Delivered(Repetitions),
}

impl LinkEvent {
    /// It arrived, and everything was sent once.
    pub const DELIVERED: Self = Self::Delivered(Repetitions::NONE);

    /// Whether it arrived.
    pub const fn is_delivery(self) -> bool {
        matches!(self, Self::Delivered(_))
    }
}

/// What a link had to repeat of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Repetitions {
    /// How often parts of it were sent again.
    pub times: u32,
    /// How much later it was complete than if nothing had been sent again since it was begun, neither of it nor of others.
    pub delay: Span,
}

impl Repetitions {
    /// Everything was sent once.
    pub const NONE: Self = Self { times: 0, delay: Span::ZERO };
}

/// Why a segment was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The buffer was full.
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
    /// Bytes on the wire.
    pub bytes: u64,
}

impl Load {
    /// No packets.
    pub const NONE: Self = Self { packets: 0, bytes: 0 };

    /// One segment.
    pub const fn of(segment: &Segment) -> Self {
        Self { packets: 1, bytes: segment.wire_bytes() as u64 }
    }

    /// Whether it is nothing.
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

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Capacity {
    /// Everything that comes.
    #[default]
    Unlimited,
    /// So many packets.
    Packets(u32),
    /// So many bytes on the wire.
    Bytes(u64),
}

impl Capacity {
    /// Whether so much fits.
    pub const fn holds(self, load: Load) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Packets(most) => load.packets <= most,
            Self::Bytes(most) => load.bytes <= most,
        }
    }

    /// Whether `waiting` and one more `segment` fit.
    pub fn admits(self, waiting: Load, segment: &Segment) -> bool {
        self.holds(waiting + Load::of(segment))
    }

    /// The capacity in packets of `packet_bytes` on the wire, at least one; `u32::MAX` where it is unlimited.
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
    /// Those waiting; the one in transmission does not count.
    #[default]
    Waiting,
    /// Those waiting and the one in transmission.
    WithTransmission,
}

/// What an edge sees of a link's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    /// Waiting in the queue that serves the flow; transmission has not begun.
    pub waiting: Load,
    /// In transmission.
    pub in_transmission: Load,
    /// Transmitted but not yet acknowledged by the far end of a link with ARQ; nothing on others.
    pub unacknowledged: Load,
    /// Counts against `capacity` when the next segment arrives. Which of the loads above it includes depends on the link.
    pub occupied: Load,
    /// How much the buffer holds.
    pub capacity: Capacity,
    /// The rate at this instant.
    pub rate: Rate,
}

impl LinkView {
    /// Of a queue in which nothing is, and of which nothing else is known.
    pub const NOTHING: Self = Self {
        waiting: Load::NONE,
        in_transmission: Load::NONE,
        unacknowledged: Load::NONE,
        occupied: Load::NONE,
        capacity: Capacity::Unlimited,
        rate: Rate::ZERO,
    };

    /// Packets of `packet_bytes` on the wire that the buffer still takes; `u32::MAX` where it is unlimited.
    pub fn room(&self, packet_bytes: u32) -> u32 {
        self.capacity.packets(packet_bytes).saturating_sub(self.occupied.packets)
    }

    /// Packets of `packet_bytes` on the wire that the buffer holds in front of the transmitter: its capacity less the
    /// transmitted packets that it keeps until they are acknowledged. `u32::MAX` where it is unlimited.
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

    /// Nothing waiting and nothing in transmission.
    pub const fn is_idle(&self) -> bool {
        self.waiting.is_none() && self.in_transmission.is_none()
    }

    /// Nothing in the buffer and nothing in transmission.
    pub const fn is_empty(&self) -> bool {
        self.is_idle() && self.occupied.is_none()
    }
}
