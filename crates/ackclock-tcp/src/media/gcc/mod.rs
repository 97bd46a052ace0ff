//! # Google Congestion Control
//!
//! Controls the bitrate of real-time media by the growth of delay and by loss.
//!
//! ## Source
//! draft-ietf-rmcat-gcc-02 (Holmer, Lundin, Carlucci, De Cicco, Mascolo 2016), the variant in which the receiver runs
//! the delay-based controller and the sender the loss-based one.
//!
//! ## What it does
//! The [arrival filter](arrival_filter) estimates how much the one-way delay grows from one group of packets to the
//! next (sections 5.2 and 5.3). The [detector](over_use) compares the estimate with an adaptive threshold (section 5.4).
//! The [rate control](rate_control) raises the bitrate until the detector signals over-use, and then falls below the
//! received bitrate (section 5.5). The [loss control](loss_control) lowers the bitrate above 10 % loss (section 6). The
//! target is the lower of both.
//!
//! ## Differences from the source
//! - The detector multiplies the estimate by the number of groups, at most 60, as libwebrtc does. With the estimate
//!   alone a queue would have to grow by 12.5 ms per group before the detector signals over-use.
//! - Between two groups the adaptive threshold moves for at most 100 ms, as in libwebrtc. Otherwise one outage sets it
//!   anywhere.
//! - Under lasting over-use the bitrate falls once per round trip, as in libwebrtc, between 10 ms and 200 ms.
//! - The draft leaves open where the loss-based bitrate starts. Here it starts at the largest bitrate, so that loss
//!   limits the target only after loss was reported, and a reduction starts from the bitrate that is sent.
//! - There are no probes: the target grows from its start by 8 % per second until over-use. libwebrtc probes with short
//!   bursts, so its target grows within a second.
//! - Without reports the target stays; libwebrtc reduces it.
//!
//! ## Validation
//! Unit tests compare with hand-computed steps. `tests/media.rs` of `ackclock-scenario` checks the use of a constant
//! link, the delay on it, and the reaction to loss. There is no comparison with libwebrtc yet.

mod arrival_filter;
mod loss_control;
mod over_use;
mod rate_control;

pub(super) use self::arrival_filter::ArrivalFilter;
pub(super) use self::loss_control::LossControl;
pub(super) use self::over_use::OverUseDetector;
pub(super) use self::rate_control::{PacketBits, RateControl};

/// Result of the detector for one group of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Signal {
    OverUse,
    #[default]
    Normal,
    UnderUse,
}

/// Estimate after a group of packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Gradient {
    /// m(i): growth of the one-way delay from group to group, ms.
    pub(super) ms: f64,
    /// Number of groups so far.
    pub(super) groups: u32,
    /// Time between the transmissions of the last two groups, ms.
    pub(super) sent_apart_ms: f64,
    /// Time between the arrivals of the last two groups, ms.
    pub(super) arrived_apart_ms: f64,
}
