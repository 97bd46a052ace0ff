//! One TCP segment as every box of the graph sees it.

mod flags;
mod packet_id;
mod repair;

use std::ops::{Deref, DerefMut};

pub use self::flags::{Ecn, Flags};
pub use self::packet_id::PacketId;
pub use self::repair::Repair;
use crate::Seq;

/// A flow (one TCP connection), numbered from zero within a run or by the flow table of a live edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowId(pub u32);

impl FlowId {
    /// The number as an index into a table.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One SACK block: bytes `left..right` have arrived (RFC 2018).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// First byte of the block.
    pub left: Seq,
    /// The byte after its last.
    pub right: Seq,
}

/// What a SYN offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SynOptions {
    /// Maximum segment size, bytes of payload.
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018 section 2).
    pub sack_permitted: bool,
}

impl SynOptions {
    /// Bytes that they take in a header, padding included: beside timestamps SACK-permitted finds room in the padding of
    /// those.
    pub const fn header_bytes(&self, timestamps: bool) -> u16 {
        let apart = self.sack_permitted && !timestamps;
        4 * (self.mss.is_some() as u16 + self.window_scale.is_some() as u16 + apart as u16)
    }
}

/// Largest shift of the window field (RFC 7323 section 2.3).
pub const LARGEST_WINDOW_SCALE: u8 = 14;

/// The smallest scale with which a window of `bytes` fits its 16 bits, and the field. It is rounded up, so that a limit of
/// n segments stays one of n segments.
pub fn scaled_window(bytes: u32) -> (u8, u16) {
    let field = |scale: u8| bytes.div_ceil(1 << scale);
    let fits = |&scale: &u8| field(scale) <= u32::from(u16::MAX);
    let scale = (0..LARGEST_WINDOW_SCALE).find(fits).unwrap_or(LARGEST_WINDOW_SCALE);
    (scale, u16::try_from(field(scale)).unwrap_or(u16::MAX))
}

/// TCP timestamps (RFC 7323 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the peer's clock, echoed.
    pub echo: u32,
}

impl Timestamps {
    const NONE: Self = Self { value: 0, echo: 0 };
}

/// A TCP segment, or an opaque packet of which only the size is known. Plain data, copied at will.
///
/// It has the fields of its [`Head`]. What not all segments carry lies apart, so that who keeps many may leave it out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Segment {
    head: Head,
    timestamps: Timestamps,
    rest: Rest,
}

/// What every segment has. In whole words, so that it is copied in whole words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(8))]
pub struct Head {
    /// The connection it belongs to, in both directions.
    pub flow: FlowId,
    /// First byte of the payload.
    pub seq: Seq,
    /// Next byte expected; valid with [`Flags::ACK`].
    pub ack: Seq,
    /// Bytes of payload.
    pub payload: u16,
    /// Bytes of headers on the wire: IP, TCP and their options.
    pub header: u16,
    /// The window field as it stands in the header.
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    scale: u8,
    /// ECN codepoint of the IP header.
    pub ecn: Ecn,
    options: u8,
    /// Which sending of a simulated sender it is, modulo 65536: a segment that is sent again has another number. No wire
    /// carries it.
    pub sending: u16,
}

/// What few segments carry: raw bytes, and options other than timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(8))]
pub struct Rest {
    packet: PacketId,
    blocks: [SackBlock; Segment::MAX_SACK],
}

/// Set in `options` where there are raw bytes.
const HAS_PACKET: u8 = 0x80;
/// Set in `options` where timestamps are present.
const HAS_TIMESTAMPS: u8 = 0x10;
/// Set in `options` where the block space holds the options of a SYN.
const HAS_SYN_OPTIONS: u8 = 0x20;
/// Set in `options` where the segment is not TCP, or its headers could not be read.
const OPAQUE: u8 = 0x40;
/// The bits of `options` that count SACK blocks.
const BLOCK_COUNT: u8 = 0x03;
/// Stands in `scale` where the shift is not known.
const NO_SCALE: u8 = u8::MAX;

impl Head {
    /// Whether the segment has nothing else.
    #[inline]
    pub const fn is_all(&self) -> bool {
        !self.has_rest() && !self.has_timestamps()
    }

    /// Whether the segment has timestamps.
    pub const fn has_timestamps(&self) -> bool {
        self.options & HAS_TIMESTAMPS != 0
    }

    /// Whether the segment carries what few do.
    pub const fn has_rest(&self) -> bool {
        self.options & (HAS_PACKET | HAS_SYN_OPTIONS | BLOCK_COUNT) != 0
    }
}

impl Rest {
    /// Of a segment that carries none of it.
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

/// An empty packet, for places in which none stands.
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
    /// Most SACK blocks that a segment carries (RFC 2018 allows three beside timestamps).
    pub const MAX_SACK: usize = 3;

    /// A data segment of `payload` bytes with `header` bytes of headers.
    pub const fn data(flow: FlowId, seq: Seq, payload: u16, header: u16) -> Self {
        let head = Head {
            flow,
            seq,
            ack: Seq(0),
            payload,
            header,
            window: 0,
            flags: Flags::ACK,
            scale: NO_SCALE,
            ecn: Ecn::NotEct,
            options: 0,
            sending: 0,
        };
        Self::of_head(head)
    }

    /// A pure ACK for everything before `ack`.
    pub const fn pure_ack(flow: FlowId, ack: Seq, header: u16) -> Self {
        let mut segment = Self::data(flow, Seq(0), 0, header);
        segment.head.ack = ack;
        segment
    }

    /// A packet that is not TCP or not readable: `bytes` on the wire and nothing more.
    pub const fn opaque(flow: FlowId, bytes: u16) -> Self {
        let mut segment = Self::data(flow, Seq(0), 0, bytes);
        segment.head.flags = Flags(0);
        segment.head.options = OPAQUE;
        segment
    }

    /// The segment of a head that [is all](Head::is_all) of it.
    #[inline]
    pub const fn of_head(head: Head) -> Self {
        Self { head, timestamps: Timestamps::NONE, rest: Rest::NONE }
    }

    /// The segment of a head, and what the head says that it carries.
    pub fn of(head: Head, timestamps: Option<Timestamps>, rest: Option<Rest>) -> Self {
        let (timestamps, rest) = (timestamps.unwrap_or(Timestamps::NONE), rest.unwrap_or(Rest::NONE));
        Self { head, timestamps, rest }
    }

    /// What every segment has.
    #[inline]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// What few carry, if it does.
    pub const fn rest(&self) -> Option<Rest> {
        if self.head.has_rest() { Some(self.rest) } else { None }
    }

    /// The same segment as one that a regulator has made: it is none of those that came in.
    #[must_use]
    pub const fn made(mut self) -> Self {
        self.identify(self.head.flow, PacketId::MADE);
        self
    }

    /// Whether a regulator has made it.
    pub fn is_made(&self) -> bool {
        self.rest.packet == PacketId::MADE
    }

    /// Names its raw bytes in the live world; [`PacketId::NONE`] where there are none.
    pub const fn packet(&self) -> PacketId {
        self.rest.packet
    }

    /// Tells whose it is in the live world, and where its raw bytes are.
    pub const fn identify(&mut self, flow: FlowId, packet: PacketId) {
        self.head.flow = flow;
        self.rest.packet = packet;
        self.head.options |= HAS_PACKET;
    }

    /// Bytes on the wire.
    pub const fn wire_bytes(&self) -> u32 {
        self.head.header as u32 + self.head.payload as u32
    }

    /// Sequence space taken: payload, and one each for SYN and FIN.
    pub const fn sequence_space(&self) -> u32 {
        self.head.payload as u32
            + self.head.flags.intersects(Flags::SYN) as u32
            + self.head.flags.intersects(Flags::FIN) as u32
    }

    /// The byte after the last one that the segment carries.
    pub fn end(&self) -> Seq {
        self.head.seq + self.sequence_space()
    }

    /// Whether it is TCP with readable headers.
    pub const fn is_tcp(&self) -> bool {
        self.head.options & OPAQUE == 0
    }

    /// Whether it takes sequence space, and so must be acknowledged.
    pub const fn has_data(&self) -> bool {
        self.sequence_space() > 0
    }

    /// Whether it is an ACK and nothing else: no data, no SYN, FIN or RST.
    pub const fn is_pure_ack(&self) -> bool {
        self.is_tcp()
            && self.head.flags.contains(Flags::ACK)
            && !self.has_data()
            && !self.head.flags.intersects(Flags::RST)
    }

    /// Its SACK blocks, most recent first.
    pub fn sack(&self) -> &[SackBlock] {
        &self.rest.blocks[..(self.head.options & BLOCK_COUNT) as usize]
    }

    /// Adds a SACK block behind those present; further blocks than [`Self::MAX_SACK`] are left out.
    pub fn push_sack(&mut self, block: SackBlock) {
        let count = (self.head.options & BLOCK_COUNT) as usize;
        if count < Self::MAX_SACK {
            self.rest.blocks[count] = block;
            self.head.options += 1;
        }
    }

    /// Timestamps, if the segment carries them.
    pub const fn timestamps(&self) -> Option<Timestamps> {
        if self.head.has_timestamps() { Some(self.timestamps) } else { None }
    }

    /// Sets the timestamps option.
    pub const fn set_timestamps(&mut self, timestamps: Timestamps) {
        self.timestamps = timestamps;
        self.head.options |= HAS_TIMESTAMPS;
    }

    /// The shift of the window field, where it is known.
    pub const fn scale(&self) -> Option<u8> {
        if self.head.scale == NO_SCALE { None } else { Some(self.head.scale) }
    }

    /// Tells the shift of the window field.
    pub const fn set_scale(&mut self, scale: Option<u8>) {
        self.head.scale = match scale {
            Some(shift) => shift,
            None => NO_SCALE,
        };
    }

    /// The advertised window in bytes, where the scale is known. The window of a SYN is never scaled (RFC 7323 2.2).
    pub const fn window_bytes(&self) -> Option<u32> {
        if self.head.flags.intersects(Flags::SYN) {
            return Some(self.head.window as u32);
        }
        match self.scale() {
            Some(shift) => Some((self.head.window as u32) << shift),
            None => None,
        }
    }

    /// The options of a SYN, if it has any.
    pub fn syn_options(&self) -> Option<SynOptions> {
        if self.head.options & HAS_SYN_OPTIONS == 0 {
            return None;
        }
        let word = self.rest.blocks[0].left.0;
        let scale = self.rest.blocks[0].right.0;
        Some(SynOptions {
            mss: u16::try_from(word).ok().filter(|&mss| mss != 0),
            window_scale: u8::try_from(scale).ok().filter(|&shift| shift != NO_SCALE),
            sack_permitted: self.rest.blocks[1].left.0 != 0,
        })
    }

    /// Puts the options of a SYN where other segments hold their SACK blocks.
    pub fn set_syn_options(&mut self, options: SynOptions) {
        self.rest.blocks[0].left = Seq(options.mss.unwrap_or(0).into());
        self.rest.blocks[0].right = Seq(options.window_scale.unwrap_or(NO_SCALE).into());
        self.rest.blocks[1].left = Seq(options.sack_permitted.into());
        self.head.options = (self.head.options & !BLOCK_COUNT) | HAS_SYN_OPTIONS;
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

    /// Whether a segment is more than its head. It is its parts, in any case.
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
