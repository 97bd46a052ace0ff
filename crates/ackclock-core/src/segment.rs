//! A TCP segment, the packet type that nodes pass to each other.

mod acc_ecn;
mod bits;
mod datagram;
mod flags;
mod options;
mod packet_id;
mod repair;

use std::ops::{Deref, DerefMut};

pub use self::acc_ecn::{AccEcn, EctField};
use self::bits::{
    BLOCK_COUNT, CORRUPT, ENCRYPTED, HAS_ACC_ECN, HAS_OTHER_OPTIONS, HAS_PACKET, HAS_TIMESTAMPS, NO_SHIFT,
    OPAQUE, SHIFT,
};
pub use self::flags::{Ecn, Flags};
pub use self::options::{
    PROTECTING_OPTIONS, ProtectingOption, ProtectionScope, TcpOptions, is_protected, is_protecting,
};
pub use self::packet_id::PacketId;
pub use self::repair::Repair;
use crate::Seq;

/// Number of a flow (one TCP connection), counted from zero within a run or by the flow table of a live edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowId(pub u32);

impl FlowId {
    /// Returns the flow number as an index into a table.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One SACK block, which says that the bytes `left..right` have arrived (RFC 2018).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// Sequence number of the block's first byte.
    pub left: Seq,
    /// Sequence number after the block's last byte.
    pub right: Seq,
}

/// TCP options of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SynOptions {
    /// Maximum segment size (MSS), bytes of payload.
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// Whether SACK is permitted (RFC 2018 section 2).
    pub sack_permitted: bool,
}

impl SynOptions {
    /// Bytes of these options in a TCP header, padding included. The SACK-permitted option fits into the padding of
    /// timestamps.
    pub const fn header_bytes(&self, timestamps: bool) -> u16 {
        let apart = self.sack_permitted && !timestamps;
        4 * (self.mss.is_some() as u16 + self.window_scale.is_some() as u16 + apart as u16)
    }
}

/// Largest shift of the window field (RFC 7323 section 2.3).
pub const LARGEST_WINDOW_SCALE: u8 = 14;

/// Returns the smallest window scale for a window of `bytes`, and the window field. The window field is rounded up, so
/// that a limit of n segments stays a limit of n segments.
pub fn scaled_window(bytes: u32) -> (u8, u16) {
    let field = |scale: u8| bytes.div_ceil(1 << scale);
    let fits = |&scale: &u8| field(scale) <= u32::from(u16::MAX);
    let scale = (0..LARGEST_WINDOW_SCALE).find(fits).unwrap_or(LARGEST_WINDOW_SCALE);
    (scale, u16::try_from(field(scale)).unwrap_or(u16::MAX))
}

/// TCP timestamps option of a segment (RFC 7323 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval: time of the sender's timestamp clock.
    pub value: u32,
    /// TSecr: echoed time of the peer's timestamp clock.
    pub echo: u32,
}

impl Timestamps {
    const NONE: Self = Self { value: 0, echo: 0 };

    /// Returns whether TSval `one` is later than TSval `other`, modulo 2^32 (RFC 7323 section 5.2).
    pub const fn is_later(one: u32, other: u32) -> bool {
        one != other && one.wrapping_sub(other) < 1 << 31
    }
}

/// A TCP segment, or an opaque packet of which only the size is known. A segment is plain data and cheap to copy.
///
/// A segment dereferences to its [`Head`] fields. Fields that few segments have are separate, so that a queue of many
/// segments can store such fields only if present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Segment {
    head: Head,
    timestamps: Timestamps,
    rest: Rest,
}

/// Fields that every segment has. The size of `Head` is a multiple of the word size, for fast copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(8))]
pub struct Head {
    /// Connection of the segment; both directions have the same number.
    pub flow: FlowId,
    /// Sequence number of the first payload byte.
    pub seq: Seq,
    /// Acknowledgement number: sequence number of the next byte expected. The acknowledgement number is valid only with
    /// the flag [`Flags::ACK`].
    pub ack: Seq,
    /// Length of the payload, bytes.
    pub payload: u16,
    /// Length of the IP and TCP headers with their options, bytes.
    pub header: u16,
    /// Window field of the TCP header, unscaled.
    pub window: u16,
    /// Control bits of the TCP header.
    pub flags: Flags,
    scale: u8,
    /// ECN codepoint of the IP header.
    pub ecn: Ecn,
    options: u8,
    /// Transmission number set by a simulated sender, modulo 65536. A retransmission has a new transmission number.
    /// Real packets do not contain a transmission number.
    pub sending: u16,
}

/// Segment fields that few segments have: raw bytes, and options other than timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(8))]
pub struct Rest {
    packet: PacketId,
    blocks: [SackBlock; Segment::MAX_SACK],
}

/// Value that stands for an option without a window scale in the space of SACK blocks.
const NO_WINDOW_SCALE: u8 = u8::MAX;

impl Head {
    /// Returns whether the segment has no timestamps, no other options and no raw bytes.
    #[inline]
    pub const fn is_all(&self) -> bool {
        !self.has_rest() && !self.has_timestamps()
    }

    /// Returns whether the segment has timestamps.
    pub const fn has_timestamps(&self) -> bool {
        self.options & HAS_TIMESTAMPS != 0
    }

    /// Returns whether the segment has any field of [`Rest`].
    pub const fn has_rest(&self) -> bool {
        self.options & (HAS_PACKET | HAS_OTHER_OPTIONS | BLOCK_COUNT) != 0
    }
}

impl Rest {
    /// Value of [`Rest`] for a segment without raw bytes and without options.
    const NONE: Self = Self {
        packet: PacketId::NONE,
        blocks: [SackBlock { left: Seq(0), right: Seq(0) }; Segment::MAX_SACK],
    };
}

impl Deref for Segment {
    type Target = Head;
    #[inline]
    fn deref(&self) -> &Head {
        &self.head
    }
}

impl DerefMut for Segment {
    #[inline]
    fn deref_mut(&mut self) -> &mut Head {
        &mut self.head
    }
}

/// The default segment is an empty packet, for unused slots.
impl Default for Segment {
    fn default() -> Self {
        Self::data(FlowId(0), Seq(0), 0, 0)
    }
}

impl Default for Head {
    fn default() -> Self {
        *Segment::default().head()
    }
}

impl Default for Rest {
    fn default() -> Self {
        Self::NONE
    }
}

impl Segment {
    /// Maximum number of SACK blocks in a segment (RFC 2018 allows three with timestamps).
    pub const MAX_SACK: usize = 3;

    /// Creates a data segment with `payload` bytes of payload and `header` bytes of headers.
    pub const fn data(flow: FlowId, seq: Seq, payload: u16, header: u16) -> Self {
        let head = Head {
            flow,
            seq,
            ack: Seq(0),
            payload,
            header,
            window: 0,
            flags: Flags::ACK,
            scale: NO_SHIFT,
            ecn: Ecn::NotEct,
            options: 0,
            sending: 0,
        };
        Self::of_head(head)
    }

    /// Creates a pure ACK that acknowledges everything before `ack`.
    pub const fn pure_ack(flow: FlowId, ack: Seq, header: u16) -> Self {
        let mut segment = Self::data(flow, Seq(0), 0, header);
        segment.head.ack = ack;
        segment
    }

    /// Creates a packet of `bytes` bytes that is not TCP or has unreadable headers.
    pub const fn opaque(flow: FlowId, bytes: u16) -> Self {
        let mut segment = Self::data(flow, Seq(0), 0, bytes);
        segment.head.flags = Flags(0);
        segment.head.options = OPAQUE;
        segment
    }

    /// Creates a segment from its head, if the head contains [all fields](Head::is_all) of the segment.
    #[inline]
    pub const fn of_head(head: Head) -> Self {
        Self { head, timestamps: Timestamps::NONE, rest: Rest::NONE }
    }

    /// Creates a segment from its head and the optional parts that the head announces.
    pub fn of(head: Head, timestamps: Option<Timestamps>, rest: Option<Rest>) -> Self {
        let (timestamps, rest) = (timestamps.unwrap_or(Timestamps::NONE), rest.unwrap_or(Rest::NONE));
        Self { head, timestamps, rest }
    }

    /// Returns the fields that every segment has.
    #[inline]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// Returns the fields that few segments have, or `None` if the segment has no such fields.
    pub const fn rest(&self) -> Option<Rest> {
        if self.head.has_rest() { Some(self.rest) } else { None }
    }

    /// Marks the segment as generated by a regulator, not received.
    #[must_use]
    pub const fn made(mut self) -> Self {
        self.identify(self.head.flow, PacketId::MADE);
        self
    }

    /// Returns whether a regulator generated the segment.
    pub fn is_made(&self) -> bool {
        self.rest.packet == PacketId::MADE
    }

    /// Identifier of the raw bytes of a real packet; [`PacketId::NONE`] for a simulated segment.
    pub const fn packet(&self) -> PacketId {
        self.rest.packet
    }

    /// Marks the segment as corrupt: a link made a bit of its payload wrong.
    pub const fn corrupt(&mut self) {
        self.head.scale |= CORRUPT;
    }

    /// Whether a link made a bit of the payload wrong.
    pub const fn is_corrupt(&self) -> bool {
        self.head.scale & CORRUPT != 0
    }

    /// Encrypts the transport header, as QUIC does: only the ends of the connection can read it.
    pub const fn encrypt(&mut self) {
        self.head.scale |= ENCRYPTED;
    }

    /// Whether only the ends of the connection can read the transport header.
    pub const fn is_encrypted(&self) -> bool {
        self.head.scale & ENCRYPTED != 0
    }

    /// Sets the flow number and the raw bytes' identifier of a real packet.
    pub const fn identify(&mut self, flow: FlowId, packet: PacketId) {
        self.head.flow = flow;
        self.rest.packet = packet;
        self.head.options |= HAS_PACKET;
    }

    /// Size of the packet including headers, bytes.
    pub const fn wire_bytes(&self) -> u32 {
        self.head.header as u32 + self.head.payload as u32
    }

    /// Sequence space that the segment uses: its payload bytes, plus one each for SYN and FIN.
    pub const fn sequence_space(&self) -> u32 {
        self.head.payload as u32
            + self.head.flags.intersects(Flags::SYN) as u32
            + self.head.flags.intersects(Flags::FIN) as u32
    }

    /// Sequence number after the last byte of the segment.
    pub fn end(&self) -> Seq {
        self.head.seq + self.sequence_space()
    }

    /// Returns whether the segment is TCP with readable headers.
    pub const fn is_tcp(&self) -> bool {
        self.head.options & OPAQUE == 0
    }

    /// Returns whether the segment uses sequence space and therefore must be acknowledged.
    pub const fn has_data(&self) -> bool {
        self.sequence_space() > 0
    }

    /// Returns whether the segment is a pure ACK, with no data and no SYN, FIN or RST.
    pub const fn is_pure_ack(&self) -> bool {
        self.is_tcp()
            && self.head.flags.contains(Flags::ACK)
            && !self.has_data()
            && !self.head.flags.intersects(Flags::RST)
    }

    /// SACK blocks of the segment, most recent first.
    pub fn sack(&self) -> &[SackBlock] {
        &self.rest.blocks[..(self.head.options & BLOCK_COUNT) as usize]
    }

    /// Appends a SACK block to the segment. The SACK block is ignored if the segment already has [`Self::MAX_SACK`]
    /// blocks, one less with an AccECN option.
    pub fn push_sack(&mut self, block: SackBlock) {
        let count = (self.head.options & BLOCK_COUNT) as usize;
        let most = Self::MAX_SACK - usize::from(self.head.scale & HAS_ACC_ECN != 0);
        if count < most {
            self.rest.blocks[count] = block;
            self.head.options += 1;
        }
    }

    /// TCP timestamps of the segment, or `None` without timestamps.
    pub const fn timestamps(&self) -> Option<Timestamps> {
        if self.head.has_timestamps() { Some(self.timestamps) } else { None }
    }

    /// Sets the timestamps option of the segment.
    pub const fn set_timestamps(&mut self, timestamps: Timestamps) {
        self.timestamps = timestamps;
        self.head.options |= HAS_TIMESTAMPS;
    }

    /// Window scale shift of the sender, if known.
    pub const fn scale(&self) -> Option<u8> {
        let shift = self.head.scale & SHIFT;
        if shift == NO_SHIFT { None } else { Some(shift) }
    }

    /// Sets the window scale shift of the sender; a shift above 14 counts as 14 (RFC 7323 section 2.3).
    pub const fn set_scale(&mut self, scale: Option<u8>) {
        let shift = match scale {
            Some(shift) if shift > LARGEST_WINDOW_SCALE => LARGEST_WINDOW_SCALE,
            Some(shift) => shift,
            None => NO_SHIFT,
        };
        self.head.scale = (self.head.scale & !SHIFT) | shift;
    }

    /// Advertised window in bytes, if the window scale is known. The window of a SYN is never scaled (RFC 7323 2.2).
    pub const fn window_bytes(&self) -> Option<u32> {
        if self.head.flags.intersects(Flags::SYN) {
            return Some(self.head.window as u32);
        }
        match self.scale() {
            Some(shift) => Some((self.head.window as u32) << shift),
            None => None,
        }
    }

    /// TCP options of a SYN, or `None` without such options.
    pub fn syn_options(&self) -> Option<SynOptions> {
        if !self.is_tcp() || self.head.options & HAS_OTHER_OPTIONS == 0 || self.head.scale & HAS_ACC_ECN != 0
        {
            return None;
        }
        let word = self.rest.blocks[0].left.0;
        let scale = self.rest.blocks[0].right.0;
        Some(SynOptions {
            mss: u16::try_from(word).ok().filter(|&mss| mss != 0),
            window_scale: u8::try_from(scale).ok().filter(|&shift| shift != NO_WINDOW_SCALE),
            sack_permitted: self.rest.blocks[1].left.0 != 0,
        })
    }

    /// Stores the options of a SYN in the space of SACK blocks.
    pub fn set_syn_options(&mut self, options: SynOptions) {
        self.rest.blocks[0].left = Seq(options.mss.unwrap_or(0).into());
        self.rest.blocks[0].right = Seq(options.window_scale.unwrap_or(NO_WINDOW_SCALE).into());
        self.rest.blocks[1].left = Seq(options.sack_permitted.into());
        self.head.options = (self.head.options & !BLOCK_COUNT) | HAS_OTHER_OPTIONS;
        self.head.scale &= !HAS_ACC_ECN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_stays_within_its_64_bytes() {
        assert!(size_of::<Segment>() <= 64, "{} bytes", size_of::<Segment>());
    }

    #[test]
    fn a_head_takes_24_bytes() {
        assert_eq!(size_of::<Head>(), 24);
    }

    /// Returns whether a segment has fields outside its head. The function also checks that a segment equals the sum of
    /// its parts.
    fn is_more(segment: &Segment) -> bool {
        let head = *segment.head();
        assert_eq!(Segment::of(head, segment.timestamps(), segment.rest()), *segment);
        assert_eq!(Segment::of_head(head) == *segment, head.is_all());
        !head.is_all()
    }

    #[test]
    fn a_segment_is_its_parts() {
        let mut data = Segment::data(FlowId(3), Seq(7), 960, 40);
        data.window = 17;
        data.ecn = Ecn::Ce;
        data.set_scale(Some(4));
        data.flags |= Flags::FIN;
        assert!(!is_more(&data));
        assert!(!is_more(&Segment::opaque(FlowId(1), 77)));

        let with = |change: fn(&mut Segment)| {
            let mut ack = Segment::pure_ack(FlowId(1), Seq(9), 40);
            change(&mut ack);
            is_more(&ack)
        };
        assert!(with(|ack| ack.push_sack(SackBlock { left: Seq(1), right: Seq(2) })));
        assert!(with(|ack| ack.set_timestamps(Timestamps { value: 1, echo: 2 })));
        assert!(with(|ack| ack.identify(FlowId(2), PacketId { slot: 3, generation: 0 })));
        assert!(with(|ack| ack.set_syn_options(SynOptions { mss: Some(1460), ..SynOptions::default() })));
    }

    /// Every mark can be set on every other one, and none changes another.
    #[test]
    fn each_mark_is_apart_from_the_others() {
        type Mark = (fn(&mut Segment), fn(&Segment) -> String);
        let marks: [Mark; 9] = [
            (
                |one| one.push_sack(SackBlock { left: Seq(1), right: Seq(2) }),
                |one| format!("{:?}", one.sack()),
            ),
            (
                |one| one.set_timestamps(Timestamps { value: 1, echo: 2 }),
                |one| format!("{:?}", one.timestamps()),
            ),
            (|one| one.set_repair(Repair::FastRetransmit), |one| format!("{:?}", one.repair())),
            (|one| one.set_repair(Repair::Timeout), |one| format!("{:?}", one.repair())),
            (Segment::corrupt, |one| format!("{:?}", one.is_corrupt())),
            (Segment::encrypt, |one| format!("{:?}", one.is_encrypted())),
            (|one| one.set_scale(Some(14)), |one| format!("{:?}", one.scale())),
            (
                |one| one.identify(FlowId(0), PacketId { slot: 3, generation: 1 }),
                |one| format!("{:?}", one.packet()),
            ),
            (
                |one| {
                    *one = Segment { head: Head { options: one.head.options | OPAQUE, ..one.head }, ..*one }
                },
                |one| format!("{:?}", one.is_tcp()),
            ),
        ];
        let told = |one: &Segment| marks.map(|(_, tell)| tell(one));
        for chosen in 0..1 << marks.len() {
            let mut segment = Segment::data(FlowId(0), Seq(0), 1, 40);
            for (number, (mark, _)) in
                marks.iter().enumerate().filter(|(number, _)| chosen >> number & 1 == 1)
            {
                let before = told(&segment);
                mark(&mut segment);
                // Two marks are of one field: the cause of a repair.
                let is_own =
                    |other: usize| other == number || ([2, 3].contains(&number) && [2, 3].contains(&other));
                let kept = (0..marks.len()).filter(|&other| !is_own(other));
                kept.for_each(|other| {
                    assert_eq!(told(&segment)[other], before[other], "{number} and {other}")
                });
            }
        }
    }

    #[test]
    fn what_a_regulator_makes_of_a_segment_has_none_of_its_bytes() {
        let mut ack = Segment::pure_ack(FlowId(1), Seq(9), 40);
        ack.identify(FlowId(1), PacketId { slot: 3, generation: 0 });
        assert!(ack.packet().has_bytes() && !ack.is_made());
        assert!(!ack.made().packet().has_bytes() && ack.made().is_made());
        assert!(!Segment::pure_ack(FlowId(1), Seq(9), 40).is_made());
    }

    #[test]
    fn syn_options_come_back_as_they_were_set() {
        let mut syn = Segment::data(FlowId(0), Seq(7), 0, 60);
        syn.flags = Flags::SYN;
        let options = SynOptions { mss: Some(1460), window_scale: Some(7), sack_permitted: true };
        syn.set_syn_options(options);
        assert_eq!(syn.syn_options(), Some(options));
        assert!(syn.sack().is_empty());
        assert_eq!(syn.sequence_space(), 1);
    }

    #[test]
    fn a_fourth_sack_block_is_left_out() {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(1), 40);
        for left in 0..4 {
            ack.push_sack(SackBlock { left: Seq(left), right: Seq(left + 1) });
        }
        assert_eq!(ack.sack().len(), 3);
        assert_eq!(ack.sack()[0].left, Seq(0));
    }

    #[test]
    fn the_window_is_scaled_except_on_a_syn() {
        let mut segment = Segment::pure_ack(FlowId(0), Seq(1), 40);
        segment.window = 1000;
        assert_eq!(segment.window_bytes(), None);
        segment.set_scale(Some(3));
        assert_eq!(segment.window_bytes(), Some(8000));
        segment.flags |= Flags::SYN;
        assert_eq!(segment.window_bytes(), Some(1000));
    }
}
