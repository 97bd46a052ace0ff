//! # BBR
//!
//! BBR sends at the bottleneck rate and keeps about one bandwidth-delay product in flight. Loss does not affect the
//! rate estimate.
//!
//! ## Source
//! draft-cardwell-iccrg-bbr-congestion-control-00 (BBR v1), section 4. Comments name the functions of the BBR draft.
//!
//! ## What it does
//! Two filters model the path: the largest delivery rate of ten rounds and the smallest round-trip time of ten seconds.
//! Four BBR states, each in a separate file, choose the gains. The gains turn the model of the path into a pacing rate
//! and a congestion window.
//!
//! ## Differences from the source
//! - The clock determines the first phase of the gain cycle; the draft draws the phase at random.
//! - The first round-trip time resets the initial pacing rate, as in Linux. The draft assumes a round-trip time of 1 ms
//!   until the pipe is full. Linux measures the first round-trip time on the handshake, whose packets are small.
//! - During the first round of a recovery (packet conservation) the congestion window is the bytes in flight plus the
//!   bytes just delivered. The draft subtracts each loss from the window, which gives an equal window. Later losses of
//!   a recovery are subtracted only if `losses` is "linux".
//! - Any loss since the start of a bandwidth probe ends the probe. If `losses` is "linux", only a loss found at the
//!   current ACK ends the probe.
//! - Bytes in flight are counted when the ACK arrives. The Linux stack estimates the bytes in flight at the next
//!   departure that pacing allows.
//! - ECN marks are ignored, as in the draft. In the Linux stack ECN marks shorten the recovery of a loss in the same
//!   window of data.
//!
//! ## Validation
//! Unit tests below check bandwidth, window, cycle, PROBE_RTT and loss of a paced sender on a constant link.
//! `tests/cc_paths.rs` tests the complete sender with a queue and with random loss.

mod aggregation;
mod drain;
mod losses;
mod max_filter;
mod policer;
mod probe_bw;
mod probe_rtt;
mod restart;
mod startup;

use ackclock_core::{Config, ConfigError, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::aggregation::Aggregation;
pub use self::losses::LossWindow;
use self::losses::Repair;
use self::max_filter::MaxFilter;
use self::policer::Policer;
use self::probe_bw::Cycle;
use self::probe_rtt::Probe;
use self::startup::FullPipe;
use crate::choices::Switch;
use crate::congestion_control::{
    AckSample, CcContext, Congestion, CongestionControl, CongestionEvent, Departure,
};
use crate::stack::Stack;

/// BBRMinPipeCwnd: smallest congestion window, segments.
const LEAST_SEGMENTS: u32 = 4;
/// Assumed round-trip time before the first sample.
const FIRST_ROUND_TRIP: Span = Span::from_millis(1);
/// Pacing rates below which a burst is one or two segments (draft section 4.2.2).
const ONE_SEGMENT: Rate = Rate::from_bps(1_200_000);
const TWO_SEGMENTS: Rate = Rate::from_bps(24_000_000);
/// Duration of a burst at higher pacing rates; the burst size also has a maximum in bytes.
const QUANTUM: Span = Span::from_millis(1);
const LARGEST_QUANTUM: u64 = 64 * 1024;
/// Number of bursts that the congestion window allows in addition to the bandwidth-delay product (BBRInflight).
const QUANTA: u32 = 3;

/// Options of BBR.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BbrConfig {
    /// Enlarge the congestion window for aggregated ACKs.
    pub aggregation: Switch,
    /// Fraction by which the pacing rate is below the bandwidth estimate, from 0 to below 1.
    pub pacing_margin: f64,
    /// Round the congestion window up to an even number of segments, and allow two more segments while probing, as in
    /// Linux.
    pub even_window: Switch,
    /// Response of the congestion window to losses.
    pub losses: LossWindow,
    /// Detect a token-bucket policer and keep to the policer's rate (long-term sampling), as in Linux.
    pub policer: Switch,
    /// Pace bursts of a send quantum; after a late burst, shorten later pacing intervals by up to half, as in Linux.
    pub bursts: Switch,
}

impl Default for BbrConfig {
    fn default() -> Self {
        Self {
            aggregation: Switch::Off,
            pacing_margin: 0.0,
            even_window: Switch::Off,
            losses: LossWindow::Draft,
            policer: Switch::Off,
            bursts: Switch::Off,
        }
    }
}

impl Config for BbrConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if (0.0..1.0).contains(&self.pacing_margin) {
            return Ok(());
        }
        Err(ConfigError::new("pacing_margin", format!("{} is not from 0 to below 1", self.pacing_margin)))
    }
}

/// BBR congestion control.
#[derive(Clone, Debug)]
pub struct Bbr {
    mss: u32,
    initial_window: u32,
    mode: Mode,
    pacing_gain: f64,
    cwnd_gain: f64,
    cwnd: u32,
    pacing_rate: Rate,
    /// BtlBw: estimate of the bottleneck rate.
    bottleneck: MaxFilter,
    /// RTprop: smallest round-trip time, and when it was last measured.
    round_trip: Option<Span>,
    round_trip_at: Time,
    full_pipe: FullPipe,
    delivered: u64,
    /// Total of delivered bytes at the start of the round. The round ends when a segment sent after that total is
    /// delivered.
    round_end: u64,
    rounds: u64,
    /// Whether this ACK started a round.
    round_start: bool,
    /// Total of delivered bytes up to which sent segments are application-limited. Application-limited segments do not
    /// show the bottleneck rate.
    app_limited_until: u64,
    /// Whether sending restarted with nothing in flight.
    idle_restart: bool,
    repair: Repair,
    /// Congestion window before recovery or PROBE_RTT, bytes.
    prior_cwnd: u32,
    aggregation: Option<Aggregation>,
    even_window: Switch,
    losses: LossWindow,
    stack: Stack,
    policer: Option<Policer>,
    bursts: Switch,
    /// Pacing rate as a fraction of the bandwidth estimate.
    paced: f64,
}

#[derive(Clone, Copy, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw(Cycle),
    ProbeRtt(Probe),
}

impl Bbr {
    /// Creates the controller of a new connection.
    pub fn new(config: &BbrConfig, context: CcContext) -> Self {
        let mut bbr = Self {
            mss: context.mss.max(1),
            initial_window: context.initial_window,
            mode: Mode::Startup,
            pacing_gain: 1.0,
            cwnd_gain: 1.0,
            cwnd: context.initial_window.max(context.mss.max(1)),
            pacing_rate: Rate::ZERO,
            bottleneck: MaxFilter::default(),
            round_trip: None,
            round_trip_at: Time::ZERO,
            full_pipe: FullPipe::default(),
            delivered: 0,
            round_end: 0,
            rounds: 0,
            round_start: false,
            app_limited_until: 0,
            idle_restart: false,
            repair: Repair::None,
            prior_cwnd: 0,
            aggregation: (config.aggregation == Switch::On).then(Aggregation::default),
            even_window: config.even_window,
            losses: config.losses,
            stack: context.stack,
            policer: (config.policer == Switch::On).then(Policer::default),
            bursts: config.bursts,
            paced: 1.0 - config.pacing_margin,
        };
        bbr.enter_startup();
        bbr.init_pacing_rate(FIRST_ROUND_TRIP);
        bbr
    }

    /// BBRInitPacingRate: sets the pacing rate from the initial window and a round-trip time.
    fn init_pacing_rate(&mut self, round_trip: Span) {
        let bytes_a_second = f64::from(self.cwnd) / round_trip.max(Span::from_nanos(1)).as_secs_f64();
        // A pacing rate of zero would stop sending for ever.
        self.pacing_rate =
            Rate::from_bps_f64(self.paced * self.pacing_gain * 8.0 * bytes_a_second).max(Rate::from_bps(1));
    }

    /// BBRUpdateRound and BBRUpdateBtlBw: update the round and the bottleneck rate. Returns whether the sample is
    /// application-limited.
    fn update_bottleneck(&mut self, sample: &AckSample) -> bool {
        self.round_start = false;
        let Some(rate) = sample.rate else {
            self.delivered = self.delivered.saturating_add(sample.delivered.into());
            return true;
        };
        self.delivered = rate.delivered;
        if rate.prior_delivered >= self.round_end {
            self.round_end = self.delivered;
            self.rounds += 1;
            self.round_start = true;
        }
        let app_limited = rate.app_limited || rate.prior_delivered < self.app_limited_until;
        if !app_limited || rate.rate >= self.bottleneck.max() {
            self.bottleneck.update(self.rounds, rate.rate);
        }
        app_limited
    }

    /// BBRSetPacingRateWithGain: sets the pacing rate. Until the pipe is full, the pacing rate only rises.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = Rate::from_bps_f64(self.paced * gain * self.rate().as_bps() as f64);
        if rate != Rate::ZERO && (self.full_pipe.filled || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// BBRInflight: `gain` times the bandwidth-delay product plus [`QUANTA`] bursts, bytes.
    fn inflight(&self, gain: f64) -> u32 {
        self.inflight_with(gain, 0)
    }

    /// BBRInflight with room for `more` additional bytes.
    fn inflight_with(&self, gain: f64, more: u32) -> u32 {
        let Some(round_trip) = self.round_trip else { return self.initial_window };
        let bdp = self.rate().bytes_in(round_trip) as f64;
        // The `as` conversion saturates.
        let (bdp, bursts) = ((gain * bdp) as u32, QUANTA.saturating_mul(self.quantum()));
        match self.even_window {
            Switch::Off => bdp.saturating_add(bursts).saturating_add(more),
            // Linux counts whole segments.
            Switch::On => {
                let segments = bdp.div_ceil(self.mss).saturating_add(bursts / self.mss);
                self.rounded(segments.saturating_add(more.div_ceil(self.mss)))
            }
        }
    }

    /// Bytes of a window of `segments`, rounded up to an even number of segments, plus two segments while probing. The
    /// additional segments prevent delayed ACKs from stalling a probe.
    fn rounded(&self, segments: u32) -> u32 {
        let probing = matches!(self.mode, Mode::ProbeBw(Cycle { phase: 0, .. }));
        let pairs = segments.div_ceil(2) + u32::from(probing);
        pairs.saturating_mul(2).saturating_mul(self.mss)
    }

    /// Bytes that will be in flight when pacing releases the next segment. `in_flight` is the number of bytes currently
    /// in flight. Linux estimates the bytes in flight at the departure time, and counts whole delivered segments.
    fn in_flight_at_departure(&self, sample: &AckSample, in_flight: u32) -> u32 {
        if self.stack == Stack::Rfc {
            return in_flight;
        }
        let leaves = if self.pacing_gain > 1.0 { self.quantum() } else { 0 };
        let delivered = u32::try_from(self.rate().bytes_in(sample.paced_for)).unwrap_or(u32::MAX);
        in_flight.saturating_add(leaves).saturating_sub(delivered - delivered % self.mss)
    }

    /// BBRSetSendQuantum: size of a burst, bytes.
    fn quantum(&self) -> u32 {
        if self.pacing_rate < ONE_SEGMENT {
            self.mss
        } else if self.pacing_rate < TWO_SEGMENTS {
            self.mss.saturating_mul(2)
        } else {
            self.pacing_rate.bytes_in(QUANTUM).min(LARGEST_QUANTUM) as u32
        }
    }

    /// BBRSetCwnd: updates the congestion window after an ACK.
    fn set_cwnd(&mut self, sample: &AckSample) {
        if !self.follow_losses(sample) {
            let target = self.inflight_with(self.cwnd_gain, self.room());
            let grown = self.cwnd.saturating_add(sample.delivered);
            if self.full_pipe.filled {
                self.cwnd = grown.min(target);
            } else if self.cwnd < target || self.delivered < u64::from(self.initial_window) {
                self.cwnd = grown;
            }
            self.cwnd = self.cwnd.max(self.least_cwnd());
        }
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            self.cwnd = self.cwnd.min(self.least_cwnd());
        }
    }

    /// Extra congestion window for aggregated ACKs once the pipe is full, bytes.
    fn room(&self) -> u32 {
        let aggregation = self.aggregation.filter(|_| self.full_pipe.filled);
        aggregation.map_or(0, |aggregation| aggregation.room(self.rate()))
    }

    fn least_cwnd(&self) -> u32 {
        self.mss.saturating_mul(LEAST_SEGMENTS)
    }
}

impl CongestionControl for Bbr {
    fn on_established(&mut self, now: Time, round_trip: Span) {
        // The draft takes round-trip times of segments only, so SYN samples count only in Linux.
        if self.stack == Stack::Linux {
            self.begin_timing(now, round_trip);
        }
    }

    fn on_ack(&mut self, sample: &AckSample) {
        let app_limited = self.update_bottleneck(sample);
        self.update_policer(sample);
        let rate = self.rate();
        if let Some(aggregation) = self.aggregation.as_mut().filter(|_| sample.rate.is_some()) {
            aggregation.on_ack(sample.now, sample.delivered, self.rounds, rate, self.cwnd);
        }
        self.check_cycle(sample);
        self.check_full_pipe(app_limited);
        self.check_drain(sample);
        let expired = self.update_round_trip(sample);
        self.check_probe_rtt(sample, expired);
        self.set_pacing_rate(self.pacing_gain);
        self.set_cwnd(sample);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        if event.cause != Congestion::Ecn {
            self.take_loss(event);
        } else if self.stack == Stack::Linux {
            self.prior_cwnd = self.saved_cwnd(self.cwnd);
        }
    }

    fn on_recovered(&mut self, _now: Time) {
        if self.repair != Repair::None {
            self.repair = Repair::None;
            self.restore_cwnd();
        }
    }

    fn on_spurious(&mut self, now: Time, _cause: Congestion) {
        self.on_recovered(now);
        if self.stack == Stack::Linux {
            // Discards full-pipe rounds measured during the spurious recovery.
            self.full_pipe.forget_rounds();
            if let Some(policer) = &mut self.policer {
                policer.reset();
            }
        }
    }

    fn on_sent(&mut self, sent: &Departure) {
        self.handle_restart_from_idle(sent);
    }

    fn adopt(&mut self, window: u32, _ssthresh: u32) {
        // The draft does not cover congestion windows set from outside, so only Linux's rule exists.
        if self.stack == Stack::Linux {
            self.cwnd = window;
        }
    }

    fn on_persistent_congestion(&mut self, window: u32) {
        self.cwnd = window;
    }

    fn window(&self) -> u32 {
        self.cwnd.max(self.mss)
    }

    fn ssthresh(&self) -> u32 {
        u32::MAX
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing_rate)
    }

    fn burst(&self) -> Option<u32> {
        (self.bursts == Switch::On).then(|| self.quantum())
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    fn wants_rate(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use ackclock_core::{SackBlock, Seq};

    use super::*;
    use crate::congestion_control::Phase;
    use crate::delivery_rate::DeliveryRate;

    const MSS: u32 = 1000;
    const LINK: Rate = Rate::from_bps(10_000_000);
    const ROUND_TRIP: Span = Span::from_millis(40);
    /// 10 Mbit/s x 40 ms = 50 kB
    const BDP: u32 = 50_000;

    /// A paced sender that always has data, and a link with an unlimited queue. Every segment is acknowledged.
    struct Bench {
        bbr: Bbr,
        rate: DeliveryRate,
        now: Time,
        next_send: Time,
        link_free: Time,
        /// ACKs in transit, with their arrival times and the transmission times of their segments.
        acks: VecDeque<(Time, Time)>,
        sent: Seq,
        acked: Seq,
        delivered: u64,
    }

    impl Bench {
        fn new() -> Self {
            Self::with(&BbrConfig::default(), Stack::Rfc)
        }

        fn with(config: &BbrConfig, stack: Stack) -> Self {
            let context = CcContext {
                mss: MSS,
                initial_window: 10 * MSS,
                initial_ssthresh: u32::MAX,
                loss_window: MSS,
                stack,
            };
            Self {
                bbr: Bbr::new(config, context),
                rate: DeliveryRate::default(),
                now: Time::ZERO,
                next_send: Time::ZERO,
                link_free: Time::ZERO,
                acks: VecDeque::new(),
                sent: Seq(1),
                acked: Seq(1),
                delivered: 0,
            }
        }

        fn in_flight(&self) -> u32 {
            self.sent.since(self.acked)
        }

        fn can_send(&self) -> bool {
            self.in_flight() + MSS <= self.bbr.window()
        }

        /// Simulates the next event: an ACK, or a segment that pacing and window allow.
        fn step(&mut self) {
            let ack_at = self.acks.front().map_or(Time::NEVER, |&(at, _)| at);
            if self.can_send() && self.next_send <= ack_at {
                self.now = self.now.max(self.next_send);
                self.send();
            } else {
                self.now = self.now.max(ack_at);
                self.ack();
            }
        }

        fn send(&mut self) {
            self.rate.on_sent(
                self.now,
                SackBlock { left: self.sent, right: self.sent + MSS },
                self.in_flight(),
            );
            self.sent += MSS;
            let in_flight = self.in_flight();
            self.bbr.on_sent(&Departure { now: self.now, bytes: MSS, in_flight, app_limited: false });
            self.next_send = self.now + self.bbr.pacing_rate().unwrap().time_for(MSS.into());
            self.link_free = self.link_free.max(self.now) + LINK.time_for(MSS.into());
            self.acks.push_back((self.link_free + ROUND_TRIP, self.now));
        }

        /// The sender sends nothing until the next ACK.
        fn answered(&mut self) {
            self.now = self.now.max(self.acks.front().expect("something is in flight").0);
            self.ack();
        }

        fn ack(&mut self) {
            let (_, sent_at) = self.acks.pop_front().expect("something is in flight");
            self.acked += MSS;
            self.delivered += u64::from(MSS);
            self.rate.on_acked(self.now, self.acked);
            let rtt = Some(self.now.since(sent_at));
            self.bbr.on_ack(&AckSample {
                now: self.now,
                acked: MSS,
                delivered: MSS,
                in_flight: self.in_flight(),
                rtt,
                srtt: rtt,
                min_rtt: self.bbr.round_trip,
                rate: self.rate.sample(None),
                paced_for: Span::ZERO,
                phase: Phase::Open,
                window_limited: true,
                lost: 0,
                lost_in_all: 0,
                marked: 0,
            });
        }

        fn run(&mut self, span: Span) {
            let until = self.now + span;
            while self.now < until {
                self.step();
            }
        }

        fn congestion(&mut self, cause: Congestion) {
            let (flight, window) = (self.in_flight(), self.bbr.window());
            let event = CongestionEvent {
                now: self.now,
                cause,
                flight,
                window,
                repeated_timeout: false,
                lost_in_all: 0,
            };
            self.bbr.on_congestion(&event);
        }

        fn phase(&self) -> Option<usize> {
            if let Mode::ProbeBw(cycle) = self.bbr.mode { Some(cycle.phase) } else { None }
        }
    }

    fn within(got: f64, expected: f64, share: f64) {
        assert!((got / expected - 1.0).abs() <= share, "{got} is not within {share} of {expected}");
    }

    #[test]
    fn the_handshake_tells_bbr_of_linux_a_round_trip_and_a_rate() {
        let known = [Stack::Linux, Stack::Rfc].map(|stack| {
            let mut bench = Bench::with(&BbrConfig::default(), stack);
            bench.bbr.on_established(Time::ZERO, ROUND_TRIP);
            (bench.bbr.round_trip, bench.bbr.pacing_rate.as_bps())
        });
        // The pacing rate is ten segments of 1000 bytes in 40 ms, or in the assumed millisecond, times the gain of
        // STARTUP.
        assert_eq!(known, [(Some(ROUND_TRIP), 5_770_780), (None, 230_831_207)]);
    }

    #[test]
    fn in_linux_only_whole_segments_are_delivered_until_the_next_departure() {
        let mut bench = Bench::with(&BbrConfig::default(), Stack::Linux);
        bench.run(Span::from_secs(2));
        let segment = bench.bbr.rate().time_for(MSS.into());
        bench.bbr.pacing_gain = 1.0;
        let left = [4, 14, 24].map(|segments| {
            let paced_for = segment * segments / 10;
            bench.bbr.in_flight_at_departure(&AckSample { paced_for, ..AckSample::of(MSS) }, 10 * MSS)
        });
        assert_eq!(left, [10 * MSS, 9 * MSS, 8 * MSS]);
    }

    #[test]
    fn it_finds_the_rate_of_the_link_and_keeps_twice_the_pipe_at_most() {
        let mut bench = Bench::new();
        bench.run(Span::from_secs(3));
        assert!(bench.phase().is_some(), "{:?}", bench.bbr.mode);
        within(bench.bbr.bottleneck.max().as_bps() as f64, LINK.as_bps() as f64, 0.02);
        // The RTT of a lone segment is 40 ms plus its own 0.8 ms. The window is 2 BDP plus 3 quanta of 2 segments.
        assert_eq!(bench.bbr.round_trip, Some(Span::from_micros(40_800)));
        within(bench.bbr.window().into(), 2.0 * 51_000.0 + 6000.0, 0.02);
        let before = bench.delivered;
        bench.run(Span::from_secs(5));
        within((bench.delivered - before) as f64, 6_250_000.0, 0.02);
        // Pacing is the limit, not the window: a quarter of a BDP is queued in the probing phase.
        assert!(bench.in_flight() < BDP * 3 / 2, "{}", bench.in_flight());
    }

    #[test]
    fn startup_doubles_each_round_and_drain_empties_what_it_queued() {
        let mut bench = Bench::new();
        while matches!(bench.bbr.mode, Mode::Startup) {
            bench.step();
        }
        // From 10 segments, three doublings fill the pipe of 51 segments. Three more rounds detect the full pipe.
        assert!((5..=9).contains(&bench.bbr.rounds), "{} rounds", bench.bbr.rounds);
        assert!(bench.in_flight() > 3 * BDP / 2, "a queue was built: {}", bench.in_flight());
        let began = bench.now;
        while matches!(bench.bbr.mode, Mode::Drain) {
            bench.step();
        }
        assert!(bench.in_flight() <= bench.bbr.inflight(1.0));
        assert!(bench.now.since(began) < Span::from_millis(400));
    }

    #[test]
    fn the_cycle_probes_drains_and_cruises_six_times() {
        let mut bench = Bench::new();
        bench.run(Span::from_secs(2));
        let mut phases = Vec::new();
        while phases.len() < 20 {
            bench.step();
            let phase = bench.phase().expect("no PROBE_RTT before ten seconds");
            if phases.last() != Some(&phase) {
                phases.push(phase);
            }
        }
        assert!(phases.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 8), "{phases:?}");
    }

    #[test]
    fn the_pipe_is_emptied_for_200_ms_every_ten_seconds() {
        let mut bench = Bench::new();
        let mut probes: Vec<(Time, Time)> = Vec::new();
        let mut inside = false;
        while bench.now < Time::ZERO + Span::from_secs(45) {
            bench.step();
            let probing = matches!(bench.bbr.mode, Mode::ProbeRtt(_));
            if probing && !inside {
                probes.push((bench.now, Time::NEVER));
            } else if !probing && inside {
                probes.last_mut().expect("it began").1 = bench.now;
            }
            inside = probing;
        }
        assert_eq!(probes.len(), 4, "{probes:?}");
        for pair in probes.windows(2) {
            // PROBE_RTT starts ten seconds after the last smallest RTT sample. The end of a probe counts as such a
            // sample.
            within(pair[1].0.since(pair[0].1).as_secs_f64(), 10.0, 0.02);
        }
        for (begin, end) in probes {
            // The probe lasts for the time to drain the pipe, then 200 ms, and at most one more round.
            let lasted = end.since(begin);
            assert!(lasted > Span::from_millis(200) && lasted < Span::from_millis(350), "{lasted:?}");
        }
        within(bench.bbr.bottleneck.max().as_bps() as f64, LINK.as_bps() as f64, 0.02);
    }

    #[test]
    fn after_the_application_was_silent_the_pipe_was_empty_anyway() {
        for (app_limited, probes) in [(true, false), (false, true)] {
            let mut bench = Bench::with(&BbrConfig::default(), Stack::Linux);
            bench.run(Span::from_secs(3));
            while bench.in_flight() > 0 {
                bench.answered();
            }
            bench.now += Span::from_secs(11);
            bench.send();
            bench.bbr.on_sent(&Departure { now: bench.now, bytes: MSS, in_flight: MSS, app_limited });
            bench.answered();
            // The smallest round trip is more than ten seconds old in both cases.
            assert_eq!(matches!(bench.bbr.mode, Mode::ProbeRtt(_)), probes);
        }
    }

    #[test]
    fn a_loss_does_not_halve_it() {
        let mut bench = Bench::new();
        bench.run(Span::from_secs(3));
        let window = bench.bbr.window();
        bench.congestion(Congestion::FastRetransmit);
        bench.step();
        assert!(bench.bbr.window() <= bench.in_flight() + 2 * MSS, "what leaves is replaced, no more");
        bench.run(ROUND_TRIP * 2);
        bench.bbr.on_recovered(bench.now);
        assert_eq!(bench.bbr.window(), window);
        let least = 0.74 * LINK.as_bps() as f64;
        assert!(bench.bbr.pacing_rate.as_bps() as f64 > least, "the gain cycle goes down to 0.75");
        within(bench.bbr.bottleneck.max().as_bps() as f64, LINK.as_bps() as f64, 0.02);
    }

    #[test]
    fn after_a_timeout_it_begins_with_one_segment_and_takes_the_window_back() {
        let mut bench = Bench::new();
        bench.run(Span::from_secs(3));
        let window = bench.bbr.window();
        bench.congestion(Congestion::Timeout);
        assert_eq!(bench.bbr.window(), MSS);
        bench.ack();
        assert_eq!(bench.bbr.window(), 4 * MSS, "BBRMinPipeCwnd");
        bench.bbr.on_recovered(bench.now);
        assert_eq!(bench.bbr.window(), window);
    }

    #[test]
    fn as_linux_does_each_loss_is_subtracted_and_what_is_not_lost_stays_in_flight() {
        let mut bench =
            Bench::with(&BbrConfig { losses: LossWindow::Linux, ..BbrConfig::default() }, Stack::Linux);
        bench.run(Span::from_secs(3));
        let window = bench.bbr.window();
        let mut ack = |phase, lost, segments: u32| {
            let (now, in_flight) = (bench.now, segments * MSS);
            let rate = crate::cc::RateSample {
                rate: LINK,
                delivered: bench.bbr.delivered + u64::from(MSS),
                prior_delivered: 0,
                app_limited: false,
            };
            bench.bbr.on_ack(&AckSample {
                now,
                acked: MSS,
                delivered: MSS,
                in_flight,
                rtt: None,
                srtt: None,
                min_rtt: None,
                rate: Some(rate),
                paced_for: Span::ZERO,
                phase,
                window_limited: true,
                lost,
                lost_in_all: lost,
                marked: 0,
            });
            bench.bbr.window() / MSS
        };
        assert_eq!(ack(Phase::FastRecovery, 2, 20), 21, "what is in flight, and what was delivered");
        assert_eq!(ack(Phase::FastRecovery, 1, 10), 20, "one less, and never below what is conserved");
        assert_eq!(ack(Phase::Open, 0, 10), window / MSS);
        bench.congestion(Congestion::Timeout);
        bench.bbr.adopt(7 * MSS, u32::MAX);
        assert_eq!(bench.bbr.window(), 7 * MSS);
    }

    #[test]
    fn a_mark_changes_nothing() {
        let mut bench = Bench::new();
        bench.run(Span::from_secs(1));
        let window = bench.bbr.window();
        bench.congestion(Congestion::Ecn);
        assert_eq!((bench.bbr.window(), bench.bbr.repair), (window, Repair::None));
    }

    #[test]
    fn a_slow_sample_of_a_starving_application_is_not_the_bottleneck() {
        let mut bench = Bench::new();
        bench.run(Span::from_secs(3));
        let known = bench.bbr.bottleneck.max();
        for round in 0..50 {
            let delivered = bench.bbr.delivered + 1;
            let slow = crate::cc::RateSample {
                rate: Rate::from_bps(1000 + round),
                delivered,
                prior_delivered: bench.bbr.round_end,
                app_limited: true,
            };
            bench.bbr.on_ack(&AckSample {
                now: bench.now,
                acked: 1,
                delivered: 1,
                in_flight: MSS,
                rtt: None,
                srtt: None,
                min_rtt: None,
                rate: Some(slow),
                paced_for: Span::ZERO,
                phase: Phase::Open,
                window_limited: false,
                lost: 0,
                lost_in_all: 0,
                marked: 0,
            });
        }
        assert_eq!(bench.bbr.bottleneck.max(), known);
    }
}
