//! The [`CongestionControl`] trait, and the information that a controller gets about the connection.

use ackclock_core::{Ecn, Rate, Setting, Span, Time};

use crate::stack::Stack;

/// Options of a congestion control with a window and a slow-start threshold.
pub(crate) const WINDOWED: &[&str] = &["prr", "growth", "halves", "initial_ssthresh", "loss_window"];

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
    /// Whether the window limited the sender; if growth counts bytes, at any time in the last window of data. The field
    /// is set only if [`CongestionControl::asks_for_limit`] returns true.
    pub window_limited: bool,
    /// Number of segments newly found lost by this ACK.
    pub lost: u32,
    /// Number of segments found lost since the start; wraps.
    pub lost_in_all: u32,
    /// Bytes that the receiver newly reports as marked with congestion experienced. 0 unless the receiver
    /// [reports all marks](crate::EcnMode::counts_marks).
    pub marked: u32,
}

#[cfg(test)]
impl AckSample {
    /// A sample of `acked` bytes acknowledged in order while the window is full, without rate and RTT measurements.
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
            marked: 0,
        }
    }
}

/// Phase of loss recovery while an ACK is processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// No loss recovery is in progress, and the window may grow.
    Open,
    /// Fast recovery: a lost segment is being retransmitted, and the window does not grow.
    FastRecovery,
    /// Recovery after a timeout: lost data is retransmitted in slow start, and the window may grow.
    TimeoutRecovery,
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// Delivery rate: the bytes delivered over the longer of the send and the ACK interval.
    pub rate: Rate,
    /// Total of bytes delivered on the connection when the ACK was processed.
    pub delivered: u64,
    /// Total of bytes delivered on the connection when the sampled segment was sent.
    pub prior_delivered: u64,
    /// Whether the application, not the window, limited the sending during the sample.
    pub app_limited: bool,
}

/// Cause of a congestion window reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// Recovery found a loss by duplicate ACKs or SACK.
    FastRetransmit,
    /// The retransmission timer expired.
    Timeout,
    /// The receiver echoed a congestion mark (RFC 3168).
    Ecn,
}

/// A loss or congestion mark for which the congestion window is reduced.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// Time at which the loss or congestion mark was detected.
    pub now: Time,
    /// Cause of the window reduction.
    pub cause: Congestion,
    /// Bytes in flight before any retransmission, at most the congestion window. If the sender halves the window, the
    /// congestion window itself.
    pub flight: u32,
    /// Window in use, bytes: the smaller of the congestion window and the advertised window.
    pub window: u32,
    /// Whether the same segment had timed out before. RFC 5681 section 3.1 then keeps ssthresh.
    pub repeated_timeout: bool,
    /// Number of segments found lost since the start of the connection, including by this event; wraps.
    pub lost_in_all: u32,
}

/// Facts about a segment that is being sent.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Transmission time of the segment.
    pub now: Time,
    /// Payload of the segment, bytes.
    pub bytes: u32,
    /// Bytes in flight, including this segment.
    pub in_flight: u32,
    /// Whether the application limited the sending until now. Set only if [`CongestionControl::wants_rate`] returns
    /// true.
    pub app_limited: bool,
}

/// Congestion control: limits the bytes in flight. All amounts are bytes of payload. A window never falls below one
/// segment.
pub trait CongestionControl: Send {
    /// Processes an ACK that delivered data.
    fn on_ack(&mut self, sample: &AckSample);

    /// Called when the handshake is complete, with the handshake's round-trip time.
    fn on_established(&mut self, _now: Time, _round_trip: Span) {}

    /// Processes a duplicate ACK without SACK information. Westwood counts the ACK as a delivered segment; most
    /// controllers ignore it.
    fn on_duplicate(&mut self, _sample: &AckSample) {}

    /// Reduces the window for a loss or congestion mark. Called once per reduction.
    fn on_congestion(&mut self, event: &CongestionEvent);

    /// Called when recovery has ended: everything in flight at its start is acknowledged.
    fn on_recovered(&mut self, _now: Time) {}

    /// Restores the window, because the last reduction was spurious.
    fn on_spurious(&mut self, _now: Time, _cause: Congestion) {}

    /// Sets window and threshold in bytes, as computed by recovery (RFC 6582, full acknowledgement) or undo (RFC 4015).
    /// Controllers with their own model may ignore the call.
    fn adopt(&mut self, _window: u32, _ssthresh: u32) {}

    /// Sets the window to `window` bytes, because everything sent within three probe timeouts was lost (RFC 9002 section
    /// 7.6). Follows the [reduction](Self::on_congestion) for the losses.
    fn on_persistent_congestion(&mut self, window: u32) {
        self.adopt(window, self.ssthresh());
    }

    /// Sets the window from outside, or releases it. Has no effect unless the window can be [steered](held::Held).
    fn steer(&mut self, _setting: &Setting) {}

    /// Called when a segment is sent.
    fn on_sent(&mut self, _sent: &Departure) {}

    /// Congestion window of the connection, bytes.
    fn window(&self) -> u32;

    /// Slow-start threshold, bytes; `u32::MAX` if the controller has no threshold.
    fn ssthresh(&self) -> u32;

    /// Pacing rate of the connection; `None` sends without pacing.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Number of bytes sent together when pacing; `None` paces each segment.
    fn burst(&self) -> Option<u32> {
        None
    }

    /// Whether the controller reacts to [`AckSample::marked`] itself. For other controllers a mark is a
    /// [congestion event](Congestion::Ecn), at most once per window of data.
    fn counts_marks(&self) -> bool {
        false
    }

    /// ECN codepoint of new data, if the connection is ECN-capable.
    fn codepoint(&self) -> Ecn {
        Ecn::Ect0
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

/// Parameters of a connection that its controller gets at the start.
#[derive(Clone, Copy, Debug)]
pub struct CcContext {
    /// Sender's maximum segment size, bytes of payload.
    pub mss: u32,
    /// Initial window of the connection, bytes.
    pub initial_window: u32,
    /// Initial slow-start threshold, bytes.
    pub initial_ssthresh: u32,
    /// Window after a timeout, bytes; at least one segment.
    pub loss_window: u32,
    /// Rules that apply unless an option says otherwise.
    pub stack: Stack,
}
