//! # Sender
//!
//! The sending half of a TCP connection, as `recovery x undo x congestion control`.
//!
//! ## Source
//! RFC 9293 (sequence numbers, windows, persist timer, open and close), RFC 5681, RFC 6298, RFC 7323, RFC 3168 section 6.1.
//!
//! ## What it does
//! Segments and instants go in, segments come out; nothing here asks a clock. Numbers are bytes modulo 2^32. The sender is
//! the server of a download: with the handshake on it waits for the peer's SYN, or opens the connection itself, else it
//! begins established at its start.
//!
//! ## Differences from the source
//! - The last segment of a file carries the FIN; data of the peer is not taken in.
//! - Two SYNs that cross open no connection; a SYN is repeated for ever, and TIME-WAIT does not end.
//! - A reset is believed anywhere in the window (RFC 5961 section 3.2 would ask about all but the next number).
//!
//! ## Validation
//! The exchanges of `tests/exchanges.rs`, random operations of `tests/hostile.rs`, CR02 Table 1 in `tests/table_one.rs`.

mod ack;
mod asked;
mod connection;
mod handshake;
mod idle;
mod info;
mod input;
mod outgoing;
mod output;
mod pacer;
mod reduction;
mod send_buffer;
mod timer;
mod usage;

use std::sync::Arc;

use ackclock_core::{ConnectionView, FlowId, Port, Rate, Segment, Setting, Sink, Span, Time, prefetch};

pub use self::connection::SenderState;
use self::connection::{Due, Ecn, Fin, Past, Peer, Repeated, Stamps};
use self::outgoing::Outgoing;
use self::output::Caught;
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

/// A sender, whatever it is made of.
///
/// After each [`on_segment`](Self::on_segment) and [`on_timeout`](Self::on_timeout), take segments from
/// [`poll_segment`](Self::poll_segment) until there is none.
pub trait Sender: Send {
    /// Takes in a segment of the peer.
    fn on_segment(&mut self, now: Time, seg: &Segment);

    /// The next segment to send at `now`.
    fn poll_segment(&mut self, now: Time) -> Option<Segment>;

    /// When [`on_timeout`](Self::on_timeout) is due.
    fn poll_timeout(&self) -> Option<Time>;

    /// Does what is due at `now`; early or repeated calls change nothing.
    fn on_timeout(&mut self, now: Time);

    /// All of the above in one call, for hosts: takes in `seg`, or what is due at `now` where there is none, sends what
    /// there is to send out at `port`, and gives the next deadline.
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

    /// Says that an acknowledgement will come soon, so that what each touches is fetched from memory. Changes nothing.
    fn prefetch(&self) {}

    /// The ACK is two or three away: fetches what the [prefetched](Self::prefetch) part points to. Changes nothing.
    fn prefetch_more(&self) {}

    /// What is to be sent. To be called before anything else, and again where the supply is [`Supply::Open`]: what
    /// follows is sent behind what is left, from the next [`poll_segment`](Self::poll_segment) on.
    fn supply(&mut self, supply: Supply);

    /// Opens the connection with a SYN at `now`, instead of waiting for the peer's. Needs the handshake on; does nothing
    /// where the connection has begun.
    fn connect(&mut self, now: Time);

    /// The application set TCP_NODELAY: where the peer's window or a full buffer leaves a part of a segment, it waits for no
    /// acknowledgement. The end of an object never does.
    fn set_nodelay(&mut self);

    /// No data follows what was supplied: the FIN goes with the last byte, or after it.
    fn finish(&mut self);

    /// How the connection stands, for who steers it.
    fn view(&self) -> ConnectionView;

    /// Takes the word of who steers the connection; what it then may send comes from the next [`poll_segment`](Self::poll_segment) on.
    /// One whose row was not [built to be steered](crate::SenderRow::build_steered) keeps its own window.
    fn steer(&mut self, now: Time, setting: &Setting);

    /// What Linux tells of a socket under `TCP_INFO`.
    fn info(&self) -> TcpInfo;

    /// The state of the connection.
    fn state(&self) -> SenderState;

    /// Congestion window, bytes, without what recovery adds to it.
    fn cwnd(&self) -> u32;

    /// Slow-start threshold, bytes; `None` where the controller has none.
    fn ssthresh(&self) -> Option<u32>;

    /// Retransmission timeout, with backoff.
    fn rto(&self) -> Span;

    /// Smoothed round-trip time.
    fn srtt(&self) -> Option<Span>;

    /// Bytes sent and not cumulatively acknowledged.
    fn flight(&self) -> u32;

    /// Where recovery stands.
    fn phase(&self) -> Phase;

    /// Rate at which sending is spread.
    fn pacing_rate(&self) -> Option<Rate>;

    /// Payload of a full segment, bytes.
    fn mss(&self) -> u32;

    /// Payload acknowledged so far, bytes.
    fn acknowledged(&self) -> u64;

    /// When everything, the FIN included, was acknowledged.
    fn finished_at(&self) -> Option<Time>;

    /// What was counted.
    fn stats(&self) -> &SenderStats;
}

/// A sender of recovery `R` and congestion control `C`.
///
/// What every packet touches comes first and lies together: with thousands of flows that is what a packet costs.
#[repr(C)]
pub struct TcpSender<R, C> {
    board: Scoreboard,
    /// Retransmission or persist timer; [`Time::NEVER`] while stopped.
    timer: Time,
    config: Arc<SenderConfig>,
    pacer: Pacer,
    /// When pacing last held something back that it will let out; [`Time::NEVER`] otherwise.
    pacing_wake: Time,
    /// When an established connection begins; [`Time::NEVER`] once it has.
    start: Time,
    peer: Peer,
    /// Configured bound of the window, bytes.
    max_window: u32,
    flow: FlowId,
    mss: u16,
    header: u16,
    outgoing: Outgoing,
    buffer: SendBuffer,
    state: SenderState,
    timestamps: Switch,
    fin: Fin,
    /// What must go out before anything else.
    due: Due,
    /// Payload not sent yet.
    unsent: Supply,
    past: Past,
    ecn: Ecn,
    /// The reduction under way, where it is spread over the recovery.
    reduction: Option<Prr>,
    recovery: R,
    cc: C,
    rate: Option<Box<DeliveryRate>>,
    rtt: RttEstimator,
    /// Where the growth counts bytes.
    usage: Usage,
    stats: SenderStats,
    stamps: Stamps,
    detectors: Detectors,
    undo: Box<dyn Undo>,
    initial_window: u32,
    /// Whether nothing comes of an expiry of the retransmission timer.
    frozen: bool,
    /// What was repeated of the handshake, where anything was.
    repeated: Option<Box<Repeated>>,
    params: FlowParams,
}

/// Lines of the cache from `timer` on that an acknowledgement without news touches; what is rare comes behind them.
const HOT_LINES: usize = 9;

/// What the congestion control of a flow is told when it is built.
pub(crate) fn context_of(config: &SenderConfig, defaults: RowDefaults, params: &FlowParams) -> CcContext {
    let header = params.header_bytes(config.timestamps.unwrap_or(defaults.timestamps));
    context(config, params, params.packet - header)
}

impl<R: Recovery, C: BuildControl> TcpSender<R, C> {
    /// A sender of the flow `params`; both it and the options were checked.
    pub fn new(config: &Arc<SenderConfig>, defaults: RowDefaults, params: FlowParams) -> Self {
        let context = context_of(config, defaults, &params);
        let cc = C::build(config, &context, config.halves.unwrap_or(R::HALVES));
        Self::with_control(config, defaults, params, cc)
    }
}

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// The same with a congestion control that was built for it.
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
            ecn: Ecn { enabled: config.ecn, reacted: None, cwr: false, lasting: false },
            fin: Fin::Absent,
            due: Due::Nothing,
            usage: Usage::new(params.first),
            recovery: R::new(config),
            reduction: None,
            rate: cc.wants_rate().then(Box::default),
            cc,
            rtt: RttEstimator::new(config.rto),
            stamps: Stamps { tick: config.timestamp_tick, recent: 0, seen: false },
            stats: SenderStats::new((timestamps == Switch::On).then_some(0), config.loss_cycle_gap),
            detectors: Detectors::default(),
            undo: undo::build(config.undo.unwrap_or(row.undo), config),
            past: Past { quiet_since: Time::NEVER, finished_at: Time::NEVER, ..Past::default() },
            initial_window: window_in_bytes(params.initial_window, mss),
            frozen: false,
            repeated: None,
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
        let mut caught = Caught(None);
        self.send_next(now, 0, &mut caught);
        caught.0
    }

    fn poll_timeout(&self) -> Option<Time> {
        // A connection that is over repairs nothing any more, whatever its recovery had planned.
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
        self.obey(now, setting);
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

    /// Bytes of a line of the cache.
    const LINE: usize = 64;

    /// Decision 17: what an acknowledgement without news touches lies within the lines that are fetched before it comes.
    #[test]
    fn what_an_acknowledgement_touches_lies_in_the_lines_that_are_fetched() {
        type Classic = TcpSender<Reno, Control>;
        assert_eq!(offset_of!(Classic, board), 0);
        let fetched = offset_of!(Classic, timer) + HOT_LINES * LINE;
        let hot = [
            offset_of!(Classic, recovery) + size_of::<Reno>(),
            offset_of!(Classic, cc) + size_of::<Control>(),
            offset_of!(Classic, rate) + size_of::<Option<Box<DeliveryRate>>>(),
            // The timeout, the smallest round trip and the segment that is timed stand first in the estimator.
            offset_of!(Classic, rtt) + LINE,
        ];
        for end in hot {
            assert!(end <= fetched, "{end} lies beyond {fetched}");
        }
        assert!(offset_of!(Classic, rtt) < offset_of!(Classic, undo), "what is rare comes behind");
        // One byte more, and the allocator takes a place of 1280 bytes for each.
        assert!(size_of::<TcpSender<Sack1, Control>>() <= 1024);
    }
}
