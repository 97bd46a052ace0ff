//! Messages between the two ends of a media flow, as words of a [datagram](Segment::datagram).

use ackclock_core::{FlowId, Segment, Span, Time};

/// Headers of a media packet, bytes: IPv4 20, UDP 8, RTP 12 (RFC 3550 section 5.1).
pub(crate) const HEADER_BYTES: u16 = 40;
/// Size of a report, bytes: IPv4 and UDP 28, RTCP receiver report 32 (RFC 3550 section 6.4.2), estimate of the maximum
/// bitrate 24 (draft-alvestrand-rmcat-remb-03 section 2.2).
const REPORT_BYTES: u16 = 84;
/// Size of a request for packets, bytes: IPv4 and UDP 28, generic NACK 16 (RFC 4585 section 6.2.1).
const NACK_BYTES: u16 = 44;
/// Size of a request for a key frame, bytes: IPv4 and UDP 28, picture loss indication 12 (RFC 4585 section 6.3.1).
const KEY_REQUEST_BYTES: u16 = 40;

/// A message of one end to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    Packet(Packet),
    Report(Report),
    /// Requests the packets with the numbers `first..=last` again.
    Nack {
        first: u32,
        last: u32,
    },
    KeyRequest,
}

/// A packet of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packet {
    /// Transmission number; a retransmission has a new number.
    pub(crate) number: u32,
    pub(crate) sent: Micros,
    pub(crate) frame: u32,
    /// Time at which the frame was captured.
    pub(crate) captured: Micros,
    /// Position of the packet within its frame.
    pub(crate) index: u16,
    /// Whether the packet is the last one of its frame.
    pub(crate) is_last: bool,
    /// Whether the frame can be decoded without earlier frames.
    pub(crate) is_key: bool,
    /// Round-trip time measured by the sender, µs; zero before the first sample.
    pub(crate) round_trip: u32,
}

/// Feedback on the packets received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Report {
    /// Bitrate that the delays allow, bit/s.
    pub(crate) bps: u32,
    /// Share of packets lost since the last periodic report, in 1/256; `None` in a report out of turn.
    pub(crate) lost: Option<u8>,
    /// Transmission time of the latest packet received.
    pub(crate) echo: Micros,
    /// Time since the latest packet arrived, µs.
    pub(crate) held: u32,
}

/// An instant in microseconds, modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Micros(pub(crate) u32);

impl Micros {
    pub(crate) fn of(now: Time) -> Self {
        Self((now.as_nanos() / 1000) as u32)
    }

    /// Time since `earlier`, µs; negative if `earlier` is later.
    pub(crate) fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// Time since `earlier`; zero if `earlier` is later.
    pub(crate) fn span_since(self, earlier: Self) -> Span {
        Span::from_micros(self.since(earlier).max(0) as u64)
    }
}

const KIND: u32 = 0b11;
const PACKET: u32 = 0;
const REPORT: u32 = 1;
const NACK: u32 = 2;
const KEY_REQUEST: u32 = 3;
/// Bit of a packet that is the last of its frame.
const LAST: u32 = 1 << 2;
/// Bit of a packet of a key frame.
const KEY: u32 = 1 << 3;
/// Bit of a report that contains the lost share.
const HAS_LOST: u32 = 1 << 2;
/// Position of the index of a packet, and of the lost share of a report.
const NUMBER_SHIFT: u32 = 16;

impl Message {
    /// The message as a datagram of `flow`; a media packet has `bytes` bytes.
    pub(crate) fn datagram(self, flow: FlowId, bytes: u16) -> Segment {
        match self {
            Self::Packet(packet) => {
                let flags = if packet.is_last { LAST } else { 0 } | if packet.is_key { KEY } else { 0 };
                let kind = PACKET | flags | u32::from(packet.index) << NUMBER_SHIFT;
                let Packet { number, sent, frame, captured, round_trip, .. } = packet;
                Segment::datagram(flow, bytes, [kind, number, sent.0, frame, captured.0, round_trip])
            }
            Self::Report(Report { bps, lost, echo, held }) => {
                let lost = lost.map_or(0, |lost| HAS_LOST | u32::from(lost) << NUMBER_SHIFT);
                Segment::datagram(flow, REPORT_BYTES, [REPORT | lost, bps, echo.0, held, 0, 0])
            }
            Self::Nack { first, last } => Segment::datagram(flow, NACK_BYTES, [NACK, first, last, 0, 0, 0]),
            Self::KeyRequest => Segment::datagram(flow, KEY_REQUEST_BYTES, [KEY_REQUEST, 0, 0, 0, 0, 0]),
        }
    }

    /// Reads the message of a datagram; `None` for any other packet.
    pub(crate) fn of(segment: &Segment) -> Option<Self> {
        let [kind, a, b, c, d, e] = segment.words()?;
        Some(match kind & KIND {
            PACKET => Self::Packet(Packet {
                number: a,
                sent: Micros(b),
                frame: c,
                captured: Micros(d),
                index: (kind >> NUMBER_SHIFT) as u16,
                is_last: kind & LAST != 0,
                is_key: kind & KEY != 0,
                round_trip: e,
            }),
            REPORT => Self::Report(Report {
                bps: a,
                lost: (kind & HAS_LOST != 0).then_some((kind >> NUMBER_SHIFT) as u8),
                echo: Micros(b),
                held: c,
            }),
            NACK => Self::Nack { first: a, last: b },
            _ => Self::KeyRequest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were_sent() {
        let packet = Packet {
            number: 7,
            sent: Micros(u32::MAX),
            frame: 3,
            captured: Micros(1),
            index: u16::MAX,
            is_last: true,
            is_key: false,
            round_trip: 40_000,
        };
        let report = Report { bps: 2_500_000, lost: Some(26), echo: Micros(9), held: 5 };
        let messages = [
            Message::Packet(packet),
            Message::Packet(Packet { index: 0, is_last: false, is_key: true, ..packet }),
            Message::Report(report),
            Message::Report(Report { lost: None, ..report }),
            Message::Nack { first: 3, last: 4 },
            Message::KeyRequest,
        ];
        for message in messages {
            assert_eq!(Message::of(&message.datagram(FlowId(1), 900)), Some(message));
        }
        assert_eq!(Message::of(&Segment::opaque(FlowId(1), 900)), None);
    }

    #[test]
    fn instants_are_compared_modulo_their_range() {
        assert_eq!(Micros(2).since(Micros(u32::MAX)), 3);
        assert_eq!(Micros(u32::MAX).since(Micros(2)), -3);
        assert_eq!(Micros(u32::MAX).span_since(Micros(2)), Span::ZERO);
    }
}
