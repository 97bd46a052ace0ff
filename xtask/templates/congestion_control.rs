//! # NAME
//!
//! ## Source
//! Name the document, the section and the equation.
//!
//! ## What it does
//! So far additive increase and multiplicative decrease (RFC 5681 section 3.1).
//!
//! ## Differences from the source
//! Name each one and why.
//!
//! ## Validation
//! None yet.

use crate::cc::{AckSample, BuildControl, CcContext, Congestion, CongestionControl, CongestionEvent, Phase};
use crate::config::{Halves, SenderConfig};
use crate::recovery::Sack;
use crate::senders::SenderParts;

/// The row of the sender table.
pub(crate) enum Sender {}

impl SenderParts for Sender {
    type Recovery = Sack;
    type Control = STRUCT;
    const HELP: &'static str = "NAME: say in one sentence what it does; this line is its documentation.";
}

/// The controller; windows in bytes.
pub(crate) struct STRUCT {
    mss: u32,
    window: u32,
    ssthresh: u32,
    loss_window: u32,
}

impl BuildControl for STRUCT {
    fn build(_: &SenderConfig, context: &CcContext, _: Halves) -> Self {
        let window = context.initial_window.max(context.mss);
        let &CcContext { mss, initial_ssthresh: ssthresh, loss_window, .. } = context;
        Self { mss, window, ssthresh, loss_window }
    }
}

impl CongestionControl for STRUCT {
    fn on_ack(&mut self, sample: &AckSample) {
        if sample.acked == 0 || sample.phase == Phase::FastRecovery {
            return;
        }
        let segment = u64::from(self.mss);
        // RFC 5681 equation (3): a segment a round trip, in parts.
        let part = (segment * segment / u64::from(self.window)).max(1) as u32;
        let growth = if self.window < self.ssthresh { self.mss } else { part };
        self.window = self.window.saturating_add(growth);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        // RFC 5681 equation (4).
        self.ssthresh = (event.flight / 2).max(self.mss.saturating_mul(2));
        self.window = match event.cause {
            Congestion::Timeout => self.loss_window,
            Congestion::FastRetransmit | Congestion::Ecn => self.ssthresh.min(self.window),
        };
    }

    fn window(&self) -> u32 {
        self.window
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }
}
