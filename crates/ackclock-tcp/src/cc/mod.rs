//! Congestion control: how much may be in flight.
//!
//! Which segment is lost is [recovery](crate::recovery)'s business, whether the loss was real is
//! [undo](crate::undo)'s. A controller sees events and keeps a window; it never sees a sequence number.

pub mod bbr;
mod bictcp;
pub mod cubic;
pub mod held;
mod hystart;
mod hystart_classic;
pub mod reno;
mod steps;
pub mod westwood;
pub mod westwood_plus;

use ackclock_core::{Rate, Setting, Span, Time};

use crate::config::{Halves, SenderConfig};
use crate::stack::Stack;

/// What an ACK that advanced the left edge, or newly SACKed data, tells a controller.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When the ACK arrived.
    pub now: Time,
    /// Bytes newly acknowledged in order.
    pub acked: u32,
    /// Bytes newly delivered: acknowledged in order or by SACK, each counted once.
    pub delivered: u32,
    /// Bytes in flight after the ACK, as recovery estimates them.
    pub in_flight: u32,
    /// The round-trip time of this ACK, where it gave one (Karn's rule, or timestamps).
    pub rtt: Option<Span>,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// Smallest round-trip time of the connection so far.
    pub min_rtt: Option<Span>,
    /// The delivery rate, for controllers that asked for it.
    pub rate: Option<RateSample>,
    /// How long pacing holds the next segment back.
    pub paced_for: Span,
    /// Where recovery stands.
    pub phase: Phase,
    /// Whether the window was what kept the sender from sending more; where the growth counts bytes, within a window of data. Of
    /// use where [`CongestionControl::asks_for_limit`].
    pub window_limited: bool,
    /// Segments that it showed to be lost, and all that were found lost so far (wraps).
    pub lost: u32,
    /// See [`lost`](Self::lost).
    pub lost_in_all: u32,
}

#[cfg(test)]
impl AckSample {
    /// So many bytes are acknowledged in order while the window is full; nothing was measured.
    pub(crate) fn of(acked: u32) -> Self {
        Self {
            now: Time::ZERO,
            acked,
            delivered: acked,
            in_flight: 0,
            rtt: None,
            srtt: None,
            min_rtt: None,
            rate: None,
            paced_for: Span::ZERO,
            phase: Phase::Open,
            window_limited: true,
            lost: 0,
            lost_in_all: 0,
        }
    }
}

/// Where loss recovery stands while an ACK is taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// No loss is being repaired: the window may grow.
    Open,
    /// Fast recovery: a loss is being repaired and the window stays.
    FastRecovery,
    /// After a timeout, while what was lost is sent again in slow start: the window may grow.
    TimeoutRecovery,
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// Bytes delivered over the longer of the send and the ACK interval.
    pub rate: Rate,
    /// Total bytes delivered on the connection when the ACK was taken in.
    pub delivered: u64,
    /// Total bytes delivered when the sampled segment was sent.
    pub prior_delivered: u64,
    /// Whether the application, not the window, limited the sending during the sample.
    pub app_limited: bool,
}

/// Why a window must shrink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// Recovery found a loss by duplicate ACKs or SACK.
    FastRetransmit,
    /// The retransmission timer expired.
    Timeout,
    /// The receiver echoed congestion experienced (RFC 3168).
    Ecn,
}

/// The facts of a congestion event.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// When it was found.
    pub now: Time,
    /// Why.
    pub cause: Congestion,
    /// Bytes outstanding, before anything is sent again, but not more than the controller's window; that window itself
    /// where that is what is halved.
    pub flight: u32,
    /// The window in use, in bytes: the smaller of the controller's own and the peer's.
    pub window: u32,
    /// Whether the same segment had timed out before (RFC 5681 section 3.1 then holds ssthresh).
    pub repeated_timeout: bool,
    /// Losses since the connection began, in segments, with those that this event found; wraps.
    pub lost_in_all: u32,
}

/// What leaves the sender.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// When.
    pub now: Time,
    /// Its payload.
    pub bytes: u32,
    /// Bytes in flight, these counted.
    pub in_flight: u32,
    /// Whether the application limited the sending until now, which is known where [`CongestionControl::wants_rate`].
    pub app_limited: bool,
}

/// How much may be in flight. All amounts are bytes of payload; a window never falls below one segment.
pub trait CongestionControl: Send {
    /// An ACK delivered something.
    fn on_ack(&mut self, sample: &AckSample);

    /// The handshake is over; it told a round-trip time.
    fn on_established(&mut self, _now: Time, _round_trip: Span) {}

    /// A duplicate ACK that delivered nothing known (no SACK): Westwood counts it, most do not care.
    fn on_duplicate(&mut self, _sample: &AckSample) {}

    /// A loss or a mark asks for a smaller window. Called once per reduction.
    fn on_congestion(&mut self, event: &CongestionEvent);

    /// Recovery is over: everything outstanding when it began is acknowledged.
    fn on_recovered(&mut self, _now: Time) {}

    /// The last reduction was for nothing: take the window back.
    fn on_spurious(&mut self, _now: Time, _cause: Congestion) {}

    /// Takes over a window and a threshold, bytes, that recovery (RFC 6582, full acknowledgement) or undo (RFC 4015)
    /// worked out. A controller that has a model of its own may keep to it.
    fn adopt(&mut self, _window: u32, _ssthresh: u32) {}

    /// Somebody outside says the window, or leaves it to the controller; but a window that can be [held](held::Held) nobody heeds it.
    fn steer(&mut self, _setting: &Setting) {}

    /// Something leaves the sender.
    fn on_sent(&mut self, _sent: &Departure) {}

    /// The congestion window, bytes.
    fn window(&self) -> u32;

    /// The slow-start threshold, bytes; `u32::MAX` where the controller has none.
    fn ssthresh(&self) -> u32;

    /// The rate at which to spread what the window allows; `None` sends at once.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Bytes that leave together where sending is spread; `None` where each segment waits for its turn.
    fn burst(&self) -> Option<u32> {
        None
    }

    /// Whether the controller itself says how much is sent while losses are repaired.
    fn rules_recovery(&self) -> bool {
        false
    }

    /// Whether [`AckSample::window_limited`] must be filled.
    fn asks_for_limit(&self) -> bool {
        true
    }

    /// Whether [`AckSample::rate`] must be filled.
    fn wants_rate(&self) -> bool {
        false
    }
}

/// Congestion control that the options of a sender can build.
pub trait BuildControl: CongestionControl + Sized {
    /// At the beginning of a connection.
    fn build(config: &SenderConfig, context: &CcContext, halves: Halves) -> Self;
}

/// Congestion control that can begin again where the peer takes smaller segments than it was built for.
pub trait RenewControl: CongestionControl {
    /// Begins the connection again.
    fn renew(&mut self, config: &SenderConfig, context: &CcContext, halves: Halves);
}

impl<C: BuildControl> RenewControl for C {
    fn renew(&mut self, config: &SenderConfig, context: &CcContext, halves: Halves) {
        *self = Self::build(config, context, halves);
    }
}

/// What a controller is told when its connection begins.
#[derive(Clone, Copy, Debug)]
pub struct CcContext {
    /// Sender's maximum segment size, bytes of payload.
    pub mss: u32,
    /// Initial window, bytes.
    pub initial_window: u32,
    /// Initial slow-start threshold, bytes.
    pub initial_ssthresh: u32,
    /// Window after a timeout, bytes; at least one segment.
    pub loss_window: u32,
    /// Whose rules hold where no option says otherwise.
    pub stack: Stack,
}
