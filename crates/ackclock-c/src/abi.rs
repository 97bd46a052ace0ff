//! The structs and numbers of `include/ackclock.h`, and their conversions.
//!
//! All structs consist of integers, so that any bytes from a host are valid values in Rust. Each struct starts with its
//! size, which identifies its version. Numbers without a meaning are refused.

use std::ffi::CStr;

use ackclock_core::{Ecn, Flags, FlowId, PacketId, Rate, SackBlock, Segment, Seq, SynOptions, Timestamps};
use ackclock_core::{LARGEST_WINDOW_SCALE, Time};
use ackclock_edge::{Output, Place, Verdict};
use ackclock_link::{Capacity, Cause, LinkView, Load};

/// Version of the interface. It increases if a function or a struct changes its meaning.
pub const VERSION: u32 = 1;
/// Value of [`AckclockSegment::window_scale`] for an unknown window scale, or a SYN without this option.
pub const NO_SCALE: u8 = u8::MAX;
/// Value of [`AckclockSegment::packet`] for a segment that a regulator generated.
pub const MADE: u64 = u32::MAX as u64;
/// Number of packets above which no load is accepted. Sums of a few loads stay within 32 bits.
pub const MOST_PACKETS: u64 = 1 << 28;
/// Number of bytes above which no load is accepted.
pub const MOST_BYTES: u64 = 1 << 48;

/// Reason why a call is refused. The number is the return value of the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Refusal {
    /// A pointer is null or misaligned.
    Pointer = -1,
    /// A struct has another size than in this version.
    Size = -2,
    /// A value is outside its range.
    Value = -3,
    /// The flow is not open.
    UnknownFlow = -4,
    /// The flow is already open.
    FlowOpen = -5,
    /// The time is before the time of an earlier call, or 2^63 ns or more.
    Time = -6,
    /// The library has failed. The regulator can only be freed.
    Failed = -7,
}

impl Refusal {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Pointer, Self::Size, Self::Value, Self::UnknownFlow, Self::FlowOpen, Self::Time, Self::Failed];

    /// Message for a person.
    pub const fn text(self) -> &'static CStr {
        match self {
            Self::Pointer => c"a pointer is null or misaligned",
            Self::Size => c"the size of a struct is not its size in this version of the library",
            Self::Value => c"a value is outside its range",
            Self::UnknownFlow => c"the flow is not open",
            Self::FlowOpen => c"the flow is already open",
            Self::Time => c"the time is before the time of an earlier call, or 2^63 ns or more",
            Self::Failed => c"the library has failed; free the regulator",
        }
    }
}

/// Returns the time `nanos` nanoseconds after the host's time zero.
pub(crate) fn time(nanos: u64) -> Result<Time, Refusal> {
    if nanos >= 1 << 63 { Err(Refusal::Time) } else { Ok(Time::from_nanos(nanos)) }
}

/// A struct that starts with its size.
///
/// # Safety
/// The type must be `repr(C)`, consist of integers without padding, and start with a `u32`.
#[allow(unsafe_code)]
pub(crate) unsafe trait Sized32: Copy {}

/// Packets and bytes in a part of the queue.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AckclockLoad {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes, including IP headers.
    pub bytes: u64,
}

impl AckclockLoad {
    fn load(self) -> Result<Load, Refusal> {
        match u32::try_from(self.packets) {
            Ok(packets) if self.packets <= MOST_PACKETS && self.bytes <= MOST_BYTES => {
                Ok(Load { packets, bytes: self.bytes })
            }
            _ => Err(Refusal::Value),
        }
    }
}

/// State of the queue of a flow.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AckclockView {
    /// Size of this struct, bytes.
    pub size: u32,
    /// Unit of `capacity`: 0 unlimited, 1 packets, 2 bytes.
    pub capacity_unit: u32,
    /// Capacity of the buffer.
    pub capacity: u64,
    /// Current rate of the link, bit/s; 0 while the link is silent.
    pub rate: u64,
    /// Packets whose transmission has not started.
    pub waiting: AckclockLoad,
    /// Packets in transmission.
    pub in_transmission: AckclockLoad,
    /// Packets transmitted and not yet acknowledged by the receiver of the radio.
    pub unacknowledged: AckclockLoad,
    /// Packets and bytes that count against `capacity`.
    pub occupied: AckclockLoad,
}

// SAFETY: the struct is `repr(C)`, has only integers, starts with a `u32`, and its fields leave no gap.
#[allow(unsafe_code)]
unsafe impl Sized32 for AckclockView {}

impl AckclockView {
    /// State of the queue in the words of the library.
    ///
    /// # Errors
    /// If a value is outside its range.
    pub fn view(self) -> Result<LinkView, Refusal> {
        let capacity = match self.capacity_unit {
            0 => Capacity::Unlimited,
            1 if self.capacity <= MOST_PACKETS => Capacity::Packets(self.capacity as u32),
            2 if self.capacity <= MOST_BYTES => Capacity::Bytes(self.capacity),
            _ => return Err(Refusal::Value),
        };
        Ok(LinkView {
            waiting: self.waiting.load()?,
            in_transmission: self.in_transmission.load()?,
            unacknowledged: self.unacknowledged.load()?,
            occupied: self.occupied.load()?,
            capacity,
            rate: Rate::from_bps(self.rate),
        })
    }
}

/// Header fields of a TCP segment.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AckclockSegment {
    /// Size of this struct, bytes.
    pub size: u32,
    /// Number that the host gave to the connection; equal in both directions.
    pub flow: u32,
    /// The host's handle of the packet: any number whose lower 32 bits are not all ones; [`MADE`] for a generated segment.
    pub packet: u64,
    /// Sequence number of the first payload byte.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// TSval of the timestamps option.
    pub timestamp_value: u32,
    /// TSecr of the timestamps option.
    pub timestamp_echo: u32,
    /// Length of the payload, bytes.
    pub payload: u16,
    /// Length of the IP and TCP headers with their options, bytes.
    pub header: u16,
    /// Window field of the TCP header, unscaled.
    pub window: u16,
    /// SYN only: maximum segment size, bytes; 0 without this option.
    pub mss: u16,
    /// Control bits of the TCP header.
    pub flags: u8,
    /// ECN codepoint of the IP header, plus 4 if the control bit AE (RFC 9768) is set.
    pub ecn: u8,
    /// Window scale shift of the segment's sender, on a SYN its option; [`NO_SCALE`] if unknown or without option.
    pub window_scale: u8,
    /// Whether the segment has the timestamps option.
    pub has_timestamps: u8,
    /// SYN only: whether SACK is permitted.
    pub sack_permitted: u8,
    /// Number of SACK blocks, at most 3; 0 on a SYN.
    pub sack_blocks: u8,
    /// Reserved, 0.
    pub reserved: [u8; 2],
    /// Left and right edges of the SACK blocks, most recent block first.
    pub sack: [[u32; 2]; Segment::MAX_SACK],
}

/// Bit of `ecn` for the control bit AE.
const AE: u8 = 4;

// SAFETY: the struct is `repr(C)`, has only integers, starts with a `u32`, and its fields leave no gap.
#[allow(unsafe_code)]
unsafe impl Sized32 for AckclockSegment {}

impl AckclockSegment {
    pub(crate) fn segment(&self) -> Result<Segment, Refusal> {
        self.check()?;
        let mut segment = Segment::data(FlowId(self.flow), Seq(self.sequence), self.payload, self.header);
        let packet = PacketId { slot: self.packet as u32, generation: (self.packet >> 32) as u32 };
        segment.identify(FlowId(self.flow), packet);
        segment.ack = Seq(self.acknowledgement);
        segment.window = self.window;
        segment.flags = Flags(self.flags);
        segment.ecn = Ecn::from_bits(self.ecn);
        segment.set_ae(self.ecn & AE != 0);
        if self.has_timestamps == 1 {
            segment.set_timestamps(Timestamps { value: self.timestamp_value, echo: self.timestamp_echo });
        }
        let scale = Some(self.window_scale).filter(|&shift| shift != NO_SCALE);
        if segment.flags.intersects(Flags::SYN) {
            segment.set_syn_options(SynOptions {
                mss: Some(self.mss).filter(|&mss| mss != 0),
                window_scale: scale,
                sack_permitted: self.sack_permitted == 1,
            });
        } else {
            segment.set_scale(scale);
            for &[left, right] in &self.sack[..usize::from(self.sack_blocks)] {
                segment.push_sack(SackBlock { left: Seq(left), right: Seq(right) });
            }
        }
        Ok(segment)
    }

    fn check(&self) -> Result<(), Refusal> {
        let scale = self.window_scale <= LARGEST_WINDOW_SCALE || self.window_scale == NO_SCALE;
        let blocks = if Flags(self.flags).intersects(Flags::SYN) { 0 } else { Segment::MAX_SACK as u8 };
        let packet = self.packet as u32 != u32::MAX;
        let bits = self.has_timestamps <= 1 && self.sack_permitted <= 1 && self.ecn < 2 * AE;
        let fits = scale && packet && bits && self.sack_blocks <= blocks && self.reserved == [0; 2];
        if fits { Ok(()) } else { Err(Refusal::Value) }
    }
}

impl From<&Segment> for AckclockSegment {
    fn from(segment: &Segment) -> Self {
        let syn = segment.syn_options();
        let options = syn.unwrap_or_default();
        let scale = if syn.is_some() { options.window_scale } else { segment.scale() };
        let timestamps = segment.timestamps();
        let PacketId { slot, generation } = segment.packet();
        let mut sack = [[0; 2]; Segment::MAX_SACK];
        for (block, edges) in segment.sack().iter().zip(&mut sack) {
            *edges = [block.left.0, block.right.0];
        }
        Self {
            size: size_of::<Self>() as u32,
            flow: segment.flow.0,
            packet: u64::from(generation) << 32 | u64::from(slot),
            sequence: segment.seq.0,
            acknowledgement: segment.ack.0,
            timestamp_value: timestamps.unwrap_or_default().value,
            timestamp_echo: timestamps.unwrap_or_default().echo,
            payload: segment.payload,
            header: segment.header,
            window: segment.window,
            mss: options.mss.unwrap_or(0),
            flags: segment.flags.0,
            ecn: segment.ecn.bits() | if segment.ae() { AE } else { 0 },
            window_scale: scale.unwrap_or(NO_SCALE),
            has_timestamps: timestamps.is_some().into(),
            sack_permitted: options.sack_permitted.into(),
            sack_blocks: segment.sack().len() as u8,
            reserved: [0; 2],
            sack,
        }
    }
}

/// Action that a regulator requests.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AckclockOutput {
    /// Size of this struct, bytes.
    pub size: u32,
    /// Action: 1 to the sender, 2 to the back of the queue, 3 to the front of its flow in the queue, 4 discard, 5 release.
    pub action: u32,
    /// Segment of the action.
    pub segment: AckclockSegment,
}

// SAFETY: the struct is `repr(C)`, has only integers, starts with a `u32`, and its fields leave no gap.
#[allow(unsafe_code)]
unsafe impl Sized32 for AckclockOutput {}

impl From<&Output> for AckclockOutput {
    fn from(output: &Output) -> Self {
        let (action, segment) = match output {
            Output::ToSender(segment) => (1, segment),
            Output::ToReceiver { segment, place: Place::Back } => (2, segment),
            Output::ToReceiver { segment, place: Place::Front } => (3, segment),
            Output::Discard(segment) => (4, segment),
            Output::Release(segment) => (5, segment),
        };
        Self { size: size_of::<Self>() as u32, action, segment: segment.into() }
    }
}

/// Number of a verdict in the header file.
pub const fn verdict(verdict: Verdict) -> i32 {
    match verdict {
        Verdict::Forward => 0,
        Verdict::ForwardKeep => 1,
        Verdict::Drop => 2,
        Verdict::MarkCe => 3,
    }
}

/// Cause of a loss, from its number in the header file.
///
/// # Errors
/// If no cause has this number.
pub const fn cause(number: u32) -> Result<Cause, Refusal> {
    match number {
        0 => Ok(Cause::Full),
        1 => Ok(Cause::Policy),
        2 => Ok(Cause::Medium),
        3 => Ok(Cause::Outage),
        4 => Ok(Cause::Handover),
        5 => Ok(Cause::Aged),
        _ => Err(Refusal::Value),
    }
}
