//! A script of one sender.
//!
//! Segments have 1000 bytes and numbers begin at 0; `sent` lists them in thousands, so `[3, 4]` are the segments that
//! begin at bytes 3000 and 4000.

// Test helpers may unwrap.
#![allow(clippy::unwrap_used)]

use ackclock_core::{FlowId, SackBlock, Segment, Seq, Size, Span, Time};
use ackclock_tcp::{FlowParams, SENDERS, Sender, Supply};
use serde_json::Value;

/// No segments sent.
pub(crate) const NOTHING: [u32; 0] = [];

/// A sender and the state of its script.
pub(crate) struct Script {
    pub(crate) sender: Box<dyn Sender>,
    first: Seq,
    /// Window advertised by the peer, scaled by 4.
    pub(crate) window: u16,
}

pub(crate) fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

pub(crate) fn params(initial_window: u32) -> FlowParams {
    FlowParams {
        packet: 1040,
        initial_window: Size::Packets(initial_window),
        first: Seq(0),
        ..FlowParams::new(FlowId(0))
    }
}

impl Script {
    pub(crate) fn new(config: Value, initial_window: u32) -> Self {
        Self::with(config, params(initial_window), Supply::Endless)
    }

    pub(crate) fn with(config: Value, params: FlowParams, supply: Supply) -> Self {
        let mut sender = SENDERS.resolve(&config).unwrap().build(params).unwrap();
        sender.supply(supply);
        sender.on_timeout(Time::ZERO);
        Self { sender, first: params.first, window: u16::MAX }
    }

    pub(crate) fn segments(&mut self, now: Time) -> Vec<Segment> {
        std::iter::from_fn(|| self.sender.poll_segment(now)).collect()
    }

    /// Segments sent now, in thousands.
    pub(crate) fn sent(&mut self, now: Time) -> Vec<u32> {
        let first = self.first;
        self.segments(now).iter().map(|segment| segment.seq.since(first) / 1000).collect()
    }

    pub(crate) fn ack_segment(&self, thousands: u32) -> Segment {
        let mut ack = Segment::pure_ack(FlowId(0), self.first + thousands * 1000, 40);
        ack.seq = Seq(1);
        ack.window = self.window;
        ack.set_scale(Some(4));
        ack
    }

    pub(crate) fn ack(&mut self, now: Time, thousands: u32) -> Vec<u32> {
        let ack = self.ack_segment(thousands);
        self.sender.on_segment(now, &ack);
        self.sent(now)
    }

    pub(crate) fn sack(&mut self, now: Time, thousands: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
        let mut ack = self.ack_segment(thousands);
        for (left, right) in blocks {
            ack.push_sack(SackBlock { left: self.first + left * 1000, right: self.first + right * 1000 });
        }
        self.sender.on_segment(now, &ack);
        self.sent(now)
    }

    pub(crate) fn timeout(&mut self) -> (Time, Vec<u32>) {
        let now = self.sender.poll_timeout().unwrap();
        self.sender.on_timeout(now);
        (now, self.sent(now))
    }

    pub(crate) fn cwnd(&self) -> u32 {
        self.sender.cwnd() / 1000
    }

    pub(crate) fn ssthresh(&self) -> u32 {
        self.sender.ssthresh().unwrap() / 1000
    }
}
