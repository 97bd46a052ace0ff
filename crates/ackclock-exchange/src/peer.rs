//! What the peer of a sender says, as segments.

use ackclock_core::{Flags, SackBlock, Segment, Seq, SynOptions, Time, Timestamps, scaled_window};

use crate::connection::FLOW;

/// The peer: it knows the number of its next byte.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    next: Seq,
}

/// A SYN of the peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Syn {
    /// Its number.
    pub seq: Seq,
    /// What it acknowledges, where it answers a SYN.
    pub ack: Option<Seq>,
    /// Window, bytes: that of a SYN is never scaled.
    pub window: u16,
    /// What it offers.
    pub options: SynOptions,
    /// Timestamp that it echoes, 0 where it answers nothing; `None` where it offers no timestamps.
    pub echo: Option<u32>,
    /// Whether it offers explicit congestion notification, or agrees to it.
    pub ecn: bool,
}

/// An acknowledgement of the peer.
#[derive(Clone, Debug, Default)]
pub struct Ack {
    /// Next number that it expects.
    pub ack: Seq,
    /// Window, bytes; beyond 65535 it is rounded up to what a header with the smallest scale can say.
    pub window: u32,
    /// What arrived out of order; what is beyond [`Segment::MAX_SACK`] is left out.
    pub sack: Vec<SackBlock>,
    /// Timestamp that it echoes.
    pub echo: Option<u32>,
    /// Whether it echoes congestion.
    pub ecn_echo: bool,
}

/// Headers of what it says; they only add to the size on the wire, which nobody sees here.
const HEADER: u16 = 40;

impl Default for Peer {
    /// The peer of a connection that began without a SYN.
    fn default() -> Self {
        Self { next: Seq(1) }
    }
}

impl Peer {
    /// Its SYN, or its answer to one.
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

    /// An acknowledgement.
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

    /// An acknowledgement with which it closes its own direction.
    pub fn fin(&mut self, now: Time, ack: &Ack) -> Segment {
        let mut segment = self.ack(now, ack);
        segment.flags |= Flags::FIN;
        self.next = segment.end();
        segment
    }
}

/// Sets the peer's own clock, in milliseconds, which wraps, where it echoes ours.
fn stamp(segment: &mut Segment, now: Time, echo: Option<u32>) {
    if let Some(echo) = echo {
        segment.set_timestamps(Timestamps { value: (now.as_nanos() / 1_000_000) as u32, echo });
    }
}
