//! Builds the segments of a sender's peer.

use ackclock_core::{Flags, SackBlock, Segment, Seq, SynOptions, Time, Timestamps, scaled_window};

use crate::connection::FLOW;

/// The peer of a sender under test. The peer tracks its own next sequence number.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    next: Seq,
}

/// Fields of a SYN or SYN-ACK that the peer sends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Syn {
    /// Sequence number of the SYN.
    pub seq: Seq,
    /// Acknowledgement number of a SYN-ACK; `None` for a SYN.
    pub ack: Option<Seq>,
    /// Receive window of the peer, bytes. The window of a SYN is never scaled.
    pub window: u16,
    /// TCP options of the SYN.
    pub options: SynOptions,
    /// Echoed timestamp (TSecr), 0 in a first SYN; `None` without the timestamps option.
    pub echo: Option<u32>,
    /// Whether the SYN requests ECN, or the SYN-ACK accepts ECN.
    pub ecn: bool,
}

/// Fields of an ACK that the peer sends.
#[derive(Clone, Debug, Default)]
pub struct Ack {
    /// Acknowledgement number: the next byte that the peer expects.
    pub ack: Seq,
    /// Receive window of the peer, bytes. A window above 65535 is rounded up to a multiple of the smallest sufficient
    /// window scale.
    pub window: u32,
    /// SACK blocks of the ACK; blocks beyond the first [`Segment::MAX_SACK`] are left out.
    pub sack: Vec<SackBlock>,
    /// Echoed timestamp (TSecr); `None` without the timestamps option.
    pub echo: Option<u32>,
    /// Whether the ACK has the ECE flag.
    pub ecn_echo: bool,
}

/// Header size of the peer's segments, bytes. The header size only affects the packet size, which has no effect on the
/// sender.
const HEADER: u16 = 40;

impl Default for Peer {
    /// Creates the peer of a connection without a handshake.
    fn default() -> Self {
        Self { next: Seq(1) }
    }
}

impl Peer {
    /// Builds a SYN or SYN-ACK of the peer.
    pub fn syn(&mut self, now: Time, syn: &Syn) -> Segment {
        self.next = syn.seq + 1;
        let mut segment = Segment::data(FLOW, syn.seq, 0, HEADER);
        segment.flags = match (syn.ack, syn.ecn) {
            (None, false) => Flags::SYN,
            (None, true) => Flags::SYN | Flags::ECE | Flags::CWR,
            (Some(_), false) => Flags::SYN | Flags::ACK,
            (Some(_), true) => Flags::SYN | Flags::ACK | Flags::ECE,
        };
        segment.ack = syn.ack.unwrap_or_default();
        segment.window = syn.window;
        segment.set_syn_options(syn.options);
        stamp(&mut segment, now, syn.echo);
        segment
    }

    /// Builds an ACK of the peer.
    pub fn ack(&self, now: Time, ack: &Ack) -> Segment {
        let mut segment = Segment::pure_ack(FLOW, ack.ack, HEADER);
        segment.seq = self.next;
        let (scale, field) = scaled_window(ack.window);
        segment.window = field;
        segment.set_scale(Some(scale));
        ack.sack.iter().for_each(|&block| segment.push_sack(block));
        stamp(&mut segment, now, ack.echo);
        if ack.ecn_echo {
            segment.flags |= Flags::ECE;
        }
        segment
    }

    /// Builds an ACK with FIN, which closes the peer's direction.
    pub fn fin(&mut self, now: Time, ack: &Ack) -> Segment {
        let mut segment = self.ack(now, ack);
        segment.flags |= Flags::FIN;
        self.next = segment.end();
        segment
    }
}

/// Sets the timestamps of a segment if `echo` is given. The peer's clock counts milliseconds and wraps.
fn stamp(segment: &mut Segment, now: Time, echo: Option<u32>) {
    if let Some(echo) = echo {
        segment.set_timestamps(Timestamps { value: (now.as_nanos() / 1_000_000) as u32, echo });
    }
}
