//! The [`CongestionControl`] trait, and the information that a controller gets about the connection.

use ackclock_core::{Rate, Setting, Span, Time};

use crate::stack::Stack;

/// Information for a congestion control about an ACK that acknowledged or newly SACKed data.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Arrival time of the ACK.
    pub now: Time,
    /// Bytes newly acknowledged in order.
    pub acked: u32,
    /// Bytes newly delivered, by a cumulative acknowledgement or by SACK. Each byte is counted once.
    pub delivered: u32,
    /// Bytes in flight after the ACK, as estimated by loss recovery.
    pub in_flight: u32,
    /// Round-trip time sample of this ACK; `None` if the ACK gives no sample (Karn's rule, or no timestamp).
    pub rtt: Option<Span>,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// Smallest round-trip time of the connection so far.
    pub min_rtt: Option<Span>,
    /// Delivery rate sample, for controllers that requested it.
    pub rate: Option<RateSample>,
    /// Time for which pacing delays the next segment.
    pub paced_for: Span,
    /// Phase of loss recovery.
    pub phase: Phase,
    /// Whether the window limited the sender; if growth counts bytes, whether it did at any time in the last window of
    /// data. Set only if [`CongestionControl::asks_for_limit`] returns true.
    pub window_limited: bool,
    /// Number of segments newly found lost by this ACK.
    pub lost: u32,
    /// Number of segments found lost since the start; wraps.
    pub lost_in_all: u32,
}

#[cfg(test)]
impl AckSample {
    /// A sample of `acked` bytes acknowledged in order while the window is full, without measurements.
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

/// Phase of loss recovery while an ACK is processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// No loss is being recovered: the window may grow.
    Open,
    /// Fast recovery: a loss is being retransmitted and the window does not grow.
    FastRecovery,
    /// After a timeout, while lost data is retransmitted in slow start: the window may grow.
    TimeoutRecovery,
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// Bytes delivered over the longer of the send and the ACK interval.
    pub rate: Rate,
    /// Total bytes delivered on the connection when the ACK was processed.
    pub delivered: u64,
    /// Total bytes delivered when the sampled segment was sent.
    pub prior_delivered: u64,
    /// Whether the application, not the window, limited the sending during the sample.
    pub app_limited: bool,
}

/// Cause of a window reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// Recovery found a loss by duplicate ACKs or SACK.
    FastRetransmit,
    /// The retransmission timer expired.
    Timeout,
    /// The receiver echoed a congestion mark (RFC 3168).
    Ecn,
}

/// A congestion event.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// When it was detected.
    pub now: Time,
    /// Cause of the event.
    pub cause: Congestion,
    /// Bytes in flight before any retransmission, at most the controller's window. If the sender halves the window,
    /// that window.
    pub flight: u32,
    /// Window in use, bytes: the smaller of the congestion window and the advertised window.
    pub window: u32,
    /// Whether the same segment had timed out before (RFC 5681 section 3.1 then holds ssthresh).
    pub repeated_timeout: bool,
    /// Segments found lost since the connection began, including by this event; wraps.
    pub lost_in_all: u32,
}

/// A segment being sent.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Time of transmission.
    pub now: Time,
    /// Payload, bytes.
    pub bytes: u32,
    /// Bytes in flight, including this segment.
    pub in_flight: u32,
    /// Whether the application limited sending until now; only set if [`CongestionControl::wants_rate`].
    pub app_limited: bool,
}

/// Limits the bytes in flight. All amounts are bytes of payload; a window never falls below one segment.
pub trait CongestionControl: Send {
    /// An ACK delivered data.
    fn on_ack(&mut self, sample: &AckSample);

    /// The handshake is complete, with this round-trip time.
    fn on_established(&mut self, _now: Time, _round_trip: Span) {}

    /// A duplicate ACK without SACK information: Westwood counts it, most controllers ignore it.
    fn on_duplicate(&mut self, _sample: &AckSample) {}

    /// A loss or congestion mark requires a smaller window. Called once per reduction.
    fn on_congestion(&mut self, event: &CongestionEvent);

    /// Recovery is over: everything in flight when it began is acknowledged.
    fn on_recovered(&mut self, _now: Time) {}

    /// The last reduction was spurious: restore the window.
    fn on_spurious(&mut self, _now: Time, _cause: Congestion) {}

    /// Sets window and threshold, bytes, as computed by recovery (RFC 6582, full acknowledgement) or undo (RFC 4015).
    /// Controllers with their own model may ignore it.
    fn adopt(&mut self, _window: u32, _ssthresh: u32) {}

    /// Steers the window from outside, or releases it. Ignored unless the window can be [steered](held::Held).
    fn steer(&mut self, _setting: &Setting) {}

    /// A segment is sent.
    fn on_sent(&mut self, _sent: &Departure) {}

    /// Congestion window, bytes.
    fn window(&self) -> u32;

    /// Slow-start threshold, bytes; `u32::MAX` if the controller has none.
    fn ssthresh(&self) -> u32;

    /// Pacing rate; `None` sends without pacing.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Bytes sent together when pacing; `None` paces each segment.
    fn burst(&self) -> Option<u32> {
        None
    }

    /// Whether the controller decides how much is sent during recovery.
    fn rules_recovery(&self) -> bool {
        false
    }

    /// Whether [`AckSample::window_limited`] must be set.
    fn asks_for_limit(&self) -> bool {
        true
    }

    /// Whether [`AckSample::rate`] must be set.
    fn wants_rate(&self) -> bool {
        false
    }
}

/// Parameters of a connection, given to its controller at the start.
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
    /// Rule set that applies where no option says otherwise.
    pub stack: Stack,
}
