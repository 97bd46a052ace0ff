//! # Sender
//!
//! The sending half of a TCP connection: `recovery x undo x congestion control`.
//!
//! ## Source
//! RFC 9293 (sequence numbers, windows, persist timer, open and close), RFC 5681, RFC 6298, RFC 7323, RFC 3168 section 6.1, RFC 8257
//! and RFC 9768 (feedback of all congestion marks).
//!
//! ## What it does
//! The sender is event-driven: its inputs are segments and timeouts, its outputs are segments, and it reads no clock.
//! Sequence numbers are bytes modulo 2^32. The sender is the server of a download. If the handshake is on, the sender
//! waits for the peer's SYN or opens the connection itself; otherwise the connection starts established.
//!
//! ## Differences from the source
//! - The last segment of a file has the FIN flag. Data from the peer is ignored.
//! - Retransmissions are not ECN-capable unless the congestion control uses ECT(1), and a SYN-ACK is repeated with its first ECN answer.
//! - Simultaneous open is not supported, a SYN is repeated without limit, and TIME-WAIT does not end.
//! - A reset anywhere in the window is accepted. RFC 5961 section 3.2 would challenge all resets without the next
//!   sequence number.
//!
//! ## Validation
//! `tests/exchanges.rs` checks exchanges of segments, `tests/hostile.rs` random operations, and `tests/table_one.rs`
//! CR02 Table 1.

mod ack;
mod connection;
mod feedback;
mod handshake;
mod idle;
mod info;
mod input;
mod outgoing;
mod output;
mod pacer;
mod reduction;
mod requests;
mod send_buffer;
mod timer;
mod usage;

use std::sync::Arc;

use ackclock_core::{ConnectionView, FlowId, Port, Rate, Segment, Setting, Sink, Span, Time, prefetch};

pub use self::connection::SenderState;
use self::connection::{Due, Ecn, Extra, Fin, Past, Peer, Stamps};
use self::outgoing::Outgoing;
use self::output::Captured;
use self::pacer::Pacer;
use self::send_buffer::SendBuffer;
use self::usage::Usage;
use crate::cc::{BuildControl, CcContext, Phase, RenewControl};
use crate::config::{FlowParams, RowDefaults, SenderConfig, Switch, context, window_in_bytes};
use crate::delivery_rate::DeliveryRate;
use crate::info::TcpInfo;
use crate::prr::Prr;
use crate::recovery::Recovery;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::stats::SenderStats;
use crate::undo::{self, Detectors, Undo};
use crate::workload::Supply;

/// A TCP sender with any recovery and congestion control.
///
/// After each [`on_segment`](Self::on_segment) and [`on_timeout`](Self::on_timeout), call
/// [`poll_segment`](Self::poll_segment) until it returns `None`.
pub trait Sender: Send {
    /// Processes a segment received from the peer.
    fn on_segment(&mut self, now: Time, seg: &Segment);

    /// Returns the next segment to send at `now`; `None` if no segment can be sent.
    fn poll_segment(&mut self, now: Time) -> Option<Segment>;

    /// Time at which [`on_timeout`](Self::on_timeout) is due.
    fn poll_timeout(&self) -> Option<Time>;

    /// Processes all timers due at `now`. Early or repeated calls have no effect.
    fn on_timeout(&mut self, now: Time);

    /// Runs one step of the sender for a host: processes `seg`, or without a segment the timers due at `now`.
    /// Afterwards sends all pending segments at `port`, and returns the next deadline.
    fn drive(&mut self, now: Time, seg: Option<&Segment>, port: Port, out: &mut dyn Sink) -> Option<Time> {
        match seg {
            Some(seg) => self.on_segment(now, seg),
            None => self.on_timeout(now),
        }
        while let Some(segment) = self.poll_segment(now) {
            out.pass(port, &segment);
        }
        self.poll_timeout()
    }

    /// Hints that an acknowledgement will arrive soon: fetches the state that the acknowledgement will access into the
    /// CPU cache. The prefetch has no other effect.
    fn prefetch(&self) {}

    /// Hints that an ACK will arrive in two or three events: fetches the data that the [prefetched](Self::prefetch)
    /// state refers to. The prefetch has no other effect.
    fn prefetch_more(&self) {}

    /// Sets the data that the sender sends. Call `supply` before any other method. If the supply is [`Supply::Open`],
    /// call `supply` again to queue new data behind the unsent data. New data can be sent from the next
    /// [`poll_segment`](Self::poll_segment) on.
    fn supply(&mut self, supply: Supply);

    /// Opens the connection with a SYN at `now`, instead of waiting for the peer's SYN. The handshake must be on. Has
    /// no effect if the connection has already started.
    fn connect(&mut self, now: Time);

    /// Sets TCP_NODELAY: a partial segment, due to the peer's window or a full buffer, does not wait for an
    /// acknowledgement. The last segment of an object never waits.
    fn set_nodelay(&mut self);

    /// Ends the data of the sender. The FIN is sent with the last byte or after it.
    fn finish(&mut self);

    /// State of the connection, as its controller sees it.
    fn view(&self) -> ConnectionView;

    /// Applies a setting from a controller. The setting takes effect at the next [`poll_segment`](Self::poll_segment).
    /// A sender not [built to be steered](crate::SenderRow::build_steered) ignores window settings.
    fn steer(&mut self, now: Time, setting: &Setting);

    /// Socket state as in Linux's `TCP_INFO`.
    fn info(&self) -> TcpInfo;

    /// State of the connection.
    fn state(&self) -> SenderState;

    /// Congestion window in bytes, without inflation by recovery.
    fn cwnd(&self) -> u32;

    /// Slow-start threshold, bytes; `None` if the congestion control has none.
    fn ssthresh(&self) -> Option<u32>;

    /// Current retransmission timeout, including backoff.
    fn rto(&self) -> Span;

    /// Smoothed round-trip time; `None` before the first sample.
    fn srtt(&self) -> Option<Span>;

    /// Bytes sent and not cumulatively acknowledged.
    fn flight(&self) -> u32;

    /// Phase of loss recovery.
    fn phase(&self) -> Phase;

    /// Pacing rate; `None` without pacing.
    fn pacing_rate(&self) -> Option<Rate>;

    /// Payload of a full segment, bytes.
    fn mss(&self) -> u32;

    /// Payload acknowledged so far, bytes.
    fn acknowledged(&self) -> u64;

    /// Time at which everything including the FIN was acknowledged; `None` before.
    fn finished_at(&self) -> Option<Time>;

    /// Counters of the sender.
    fn stats(&self) -> &SenderStats;
}

/// A sender with recovery `R` and congestion control `C`.
///
/// Fields that every packet accesses come first and are adjacent, because cache misses dominate the cost with thousands
/// of flows.
#[repr(C)]
pub struct TcpSender<R, C> {
    board: Scoreboard,
    /// Expiry of the retransmission or persist timer; [`Time::NEVER`] while stopped.
    timer: Time,
    config: Arc<SenderConfig>,
    pacer: Pacer,
    /// Time at which pacing releases the next segment; [`Time::NEVER`] if pacing holds no segment.
    pacing_wake: Time,
    /// Start time of an established connection; [`Time::NEVER`] once the connection has started.
    start: Time,
    peer: Peer,
    /// Largest window that the configuration allows, bytes.
    max_window: u32,
    flow: FlowId,
    mss: u16,
    header: u16,
    outgoing: Outgoing,
    buffer: SendBuffer,
    state: SenderState,
    timestamps: Switch,
    fin: Fin,
    /// Segment that must be sent before any other.
    due: Due,
    /// Data that has not been sent yet.
    unsent: Supply,
    past: Past,
    ecn: Ecn,
    /// Current window reduction, if it is spread over the recovery.
    reduction: Option<Prr>,
    recovery: R,
    cc: C,
    rate: Option<Box<DeliveryRate>>,
    rtt: RttEstimator,
    /// Use of the congestion window, if growth counts bytes.
    usage: Usage,
    stats: SenderStats,
    stamps: Stamps,
    detectors: Detectors,
    undo: Box<dyn Undo>,
    initial_window: u32,
    /// Whether retransmission timeouts are suspended.
    frozen: bool,
    /// State that few connections have.
    extra: Option<Box<Extra>>,
    params: FlowParams,
}

/// Number of cache lines, starting at `timer`, that an ordinary acknowledgement accesses. Rarely used fields come last,
/// behind the cache lines that ordinary acknowledgements touch.
const HOT_LINES: usize = 9;

/// Context for building the congestion control of a flow.
pub(crate) fn context_of(config: &SenderConfig, defaults: RowDefaults, params: &FlowParams) -> CcContext {
    let header = params.header_bytes(config.timestamps.unwrap_or(defaults.timestamps));
    context(config, params, params.packet - header)
}

impl<R: Recovery, C: BuildControl> TcpSender<R, C> {
    /// Creates the sender of the flow `params`. Flow and options must already have been checked.
    pub fn new(config: &Arc<SenderConfig>, defaults: RowDefaults, params: FlowParams) -> Self {
        let context = context_of(config, defaults, &params);
        let cc = C::build(config, &context, config.halves.unwrap_or(R::HALVES));
        Self::with_control(config, defaults, params, cc)
    }
}

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Creates a sender with the given congestion control.
    pub fn with_control(config: &Arc<SenderConfig>, row: RowDefaults, params: FlowParams, cc: C) -> Self {
        let timestamps = config.timestamps.unwrap_or(row.timestamps);
        let mss = params.packet - params.header_bytes(timestamps);
        Self {
            board: Scoreboard::new(params.first),
            timer: Time::NEVER,
            pacer: Pacer::default(),
            pacing_wake: Time::NEVER,
            peer: Peer::with_edge(params.first + window_in_bytes(params.max_window, mss)),
            max_window: window_in_bytes(params.max_window, mss),
            unsent: Supply::Bytes(0),
            mss,
            header: params.packet - mss,
            outgoing: Outgoing::default(),
            buffer: SendBuffer::new(params.first, mss),
            flow: params.flow,
            state: SenderState::Idle,
            timestamps,
            ecn: Ecn { mode: config.ecn.unwrap_or(row.ecn), reacted: None, cwr: false, lasting: false },
            fin: Fin::Absent,
            due: Due::Nothing,
            usage: Usage::new(params.first),
            recovery: R::new(config),
            reduction: None,
            rate: cc.wants_rate().then(Box::default),
            cc,
            rtt: config.estimator(),
            stamps: Stamps { tick: config.timestamp_tick, recent: 0, seen: false },
            stats: SenderStats::new((timestamps == Switch::On).then_some(0), config.loss_cycle_gap),
            detectors: Detectors::default(),
            undo: undo::build(config.undo.unwrap_or(row.undo), config),
            past: Past { quiet_since: Time::NEVER, finished_at: Time::NEVER, ..Past::default() },
            initial_window: window_in_bytes(params.initial_window, mss),
            frozen: false,
            extra: config.ecn.unwrap_or(row.ecn).counts_marks().then(Box::default),
            start: if config.handshake == Switch::On { Time::NEVER } else { params.start },
            params,
            config: Arc::clone(config),
        }
    }
}

impl<R: Recovery, C: RenewControl> Sender for TcpSender<R, C> {
    fn on_segment(&mut self, now: Time, seg: &Segment) {
        self.take_segment(now, seg);
    }

    fn poll_segment(&mut self, now: Time) -> Option<Segment> {
        let mut caught = Captured(None);
        self.send_next(now, 0, &mut caught);
        caught.0
    }

    fn poll_timeout(&self) -> Option<Time> {
        // A closed connection retransmits nothing, even if its recovery had planned to.
        let repairs = self.state == SenderState::Established;
        let repair = if repairs { self.recovery.poll_timeout() } else { Time::NEVER };
        Some(self.timer.min(repair).min(self.pacing_wake).min(self.start)).filter(|&time| time != Time::NEVER)
    }

    fn on_timeout(&mut self, now: Time) {
        self.expire(now);
    }

    fn drive(&mut self, now: Time, seg: Option<&Segment>, port: Port, out: &mut dyn Sink) -> Option<Time> {
        match seg {
            Some(seg) => self.take_segment(now, seg),
            None => self.expire(now),
        }
        while self.send_next(now, port, out) {}
        self.poll_timeout()
    }

    fn prefetch(&self) {
        prefetch::line_of(&self.board);
        prefetch::lines_from(&self.timer, HOT_LINES);
    }

    fn prefetch_more(&self) {
        self.board.sent().prefetch();
        self.stats.rtt.prefetch();
    }

    fn supply(&mut self, supply: Supply) {
        self.begin_writing(self.unsent.at_most(u32::MAX));
        self.unsent = supply.behind(self.unsent);
        self.fin = if let Supply::Bytes(1..) = supply { Fin::Ahead } else { Fin::Absent };
    }

    fn connect(&mut self, now: Time) {
        self.open(now);
    }

    fn set_nodelay(&mut self) {
        self.buffer.set_nodelay();
    }

    fn finish(&mut self) {
        self.unsent = match self.unsent {
            Supply::Endless => Supply::Bytes(0),
            Supply::Open(left) | Supply::Bytes(left) => Supply::Bytes(left),
        };
        if self.fin == Fin::Absent {
            self.fin = Fin::Ahead;
        }
    }

    fn view(&self) -> ConnectionView {
        self.connection_view()
    }

    fn steer(&mut self, now: Time, setting: &Setting) {
        self.apply_setting(now, setting);
    }

    fn info(&self) -> TcpInfo {
        self.tcp_info()
    }

    fn state(&self) -> SenderState {
        self.state
    }

    fn cwnd(&self) -> u32 {
        self.cc.window()
    }

    fn ssthresh(&self) -> Option<u32> {
        Some(self.cc.ssthresh()).filter(|&bytes| bytes != u32::MAX)
    }

    fn rto(&self) -> Span {
        self.rtt.rto()
    }

    fn srtt(&self) -> Option<Span> {
        self.rtt.srtt()
    }

    fn flight(&self) -> u32 {
        self.board.outstanding()
    }

    fn phase(&self) -> Phase {
        self.recovery.phase()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.cc.pacing_rate()
    }

    fn mss(&self) -> u32 {
        u32::from(self.mss)
    }

    fn acknowledged(&self) -> u64 {
        self.past.acknowledged
    }

    fn finished_at(&self) -> Option<Time> {
        Some(self.past.finished_at).filter(|&time| time != Time::NEVER)
    }

    fn stats(&self) -> &SenderStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;
    use crate::cc::reno::Reno as Control;
    use crate::recovery::{Reno, Sack1};

    /// Size of a cache line, bytes.
    const LINE: usize = 64;

    /// Decision 17: the fields that an ordinary acknowledgement accesses are within the prefetched cache lines.
    #[test]
    fn what_an_acknowledgement_touches_lies_in_the_lines_that_are_fetched() {
        type Classic = TcpSender<Reno, Control>;
        assert_eq!(offset_of!(Classic, board), 0);
        let fetched = offset_of!(Classic, timer) + HOT_LINES * LINE;
        let hot = [
            offset_of!(Classic, recovery) + size_of::<Reno>(),
            offset_of!(Classic, cc) + size_of::<Control>(),
            offset_of!(Classic, rate) + size_of::<Option<Box<DeliveryRate>>>(),
            // Timeout, smallest round-trip time and timed segment are the first fields of the estimator.
            offset_of!(Classic, rtt) + LINE,
        ];
        for end in hot {
            assert!(end <= fetched, "{end} lies beyond {fetched}");
        }
        assert!(offset_of!(Classic, rtt) < offset_of!(Classic, undo), "what is rare comes behind");
        // If the sender were one byte larger, the allocator would use 1280 bytes per sender.
        assert!(size_of::<TcpSender<Sack1, Control>>() <= 1024);
    }
}
