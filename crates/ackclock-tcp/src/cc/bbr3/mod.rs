//! # BBRv3
//!
//! BBR version 3 sends at the bottleneck rate, probes for more from time to time, and bounds its bytes in flight by the
//! losses that a probe meets.
//!
//! ## Source
//! draft-ietf-ccwg-bbr (Cardwell, Swett and Beshay), working copy of 3 August 2026 (commit 4ce5e87 of the working
//! group's repository), section "Detailed Algorithm". Comments name the functions of the draft.
//!
//! ## What it does
//! The model of the path has a long-term part (the largest delivery rate of two probing cycles, the smallest round-trip
//! time of ten seconds, the largest safe bytes in flight) and a short-term part (rate and bytes in flight that recent
//! losses allow). The states Startup, Drain, ProbeBW (down, cruise, refill, up) and ProbeRTT choose gains; gains times
//! model give the pacing rate and the congestion window. A probe raises the bytes in flight until the delivery rate stops
//! growing for three rounds or more than 2 % of a flight is lost. Losses outside of probes lower the short-term part by
//! 30 % per round at most.
//!
//! ## Differences from the source
//! - Losses are processed per ACK. The lost segment's own bytes in flight at departure are approximated by those of the
//!   segment that the ACK delivered last.
//! - Discontiguous lost ranges are counted as ACKs that reveal losses.
//! - The random parts of the waiting time between probes are a hash of the time, so runs are repeatable.
//! - Windows are not rounded for offload; the offload budget is three quanta, as for TCP.
//! - The draft leaves the response to ECN open, and requires one. A mark counts as a loss in its round.
//! - The first round-trip time resets the initial pacing rate.
//!
//! ## Validation
//! Unit tests follow the draft's appendix "BBR Example Test Cases" for startup, drain, the probing phases, ProbeRTT and
//! rates that change tenfold. `tests/cc_paths.rs` tests the complete sender with a queue and with random loss.

mod flights;
mod model;
mod probe_bw;
mod probe_rtt;
mod startup;

use ackclock_core::{Rate, Span, Time};

use self::flights::Flights;
use self::model::{Aggregation, LongTerm, ShortTerm};
use self::probe_bw::Probing;
use self::probe_rtt::RoundTrips;
use self::startup::FullPipe;
use super::BuildControl;
use crate::config::{Halves, SenderConfig};
use crate::congestion_control::{
    AckSample, CcContext, Congestion, CongestionControl, CongestionEvent, Departure,
};

/// BBR.LossThresh: largest fraction of a flight that a probe may lose.
const LOSS_THRESHOLD: f64 = 0.02;
/// BBR.Beta: factor by which a round with losses lowers the bounds at most.
const BETA: f64 = 0.7;
/// BBR.Headroom: fraction of the long-term bytes in flight left to other flows.
const HEADROOM: f64 = 0.15;
/// BBR.MinPipeCwnd, segments.
const LEAST_SEGMENTS: f64 = 4.0;
/// BBR.DefaultCwndGain, and the gain while probing up.
const CWND_GAIN: f64 = 2.0;
const CWND_GAIN_UP: f64 = 2.25;
const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.5;
/// BBR.ProbeRTTCwndGain.
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// Pacing rate as a fraction of the modelled rate: 1 - BBR.PacingMarginPercent.
const PACED: f64 = 0.99;
/// Duration and largest size of a send quantum, and quanta in the offload budget.
const QUANTUM: f64 = 0.001;
const LARGEST_QUANTUM: f64 = 65_536.0;
const QUANTA: f64 = 3.0;
/// Assumed round-trip time before the first sample.
const FIRST_ROUND_TRIP: Span = Span::from_millis(1);
/// Largest window, bytes (RFC 7323 section 2.3).
const LARGEST_WINDOW: f64 = (1 << 30) as f64;

/// State of the controller (draft, "State Machine").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// IsInAProbeBWState.
    const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// IsProbingBW: whether losses are the result of probing.
    const fn is_accelerating(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    const fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_PACING_GAIN,
            Self::Drain => DRAIN_PACING_GAIN,
            Self::Down => 0.9,
            Self::Up => 1.25,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
        }
    }

    const fn cwnd_gain(self) -> f64 {
        match self {
            Self::Up => CWND_GAIN_UP,
            Self::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => CWND_GAIN,
        }
    }
}

/// Facts of one ACK (RS of the draft); amounts in bytes, rates in bytes per second.
#[derive(Clone, Copy, Debug)]
struct Ack {
    now: Time,
    newly_acked: f64,
    in_flight: f64,
    window_limited: bool,
    /// RS.delivery_rate; zero without a sample.
    rate: f64,
    /// RS.delivered: bytes delivered since the sampled segment was sent.
    delivered: f64,
    prior_delivered: u64,
    app_limited: bool,
    /// RS.tx_in_flight: bytes in flight when the sampled segment was sent.
    tx_in_flight: f64,
    /// RS.lost: bytes lost since the sampled segment was sent.
    lost: f64,
    /// Bytes lost by this ACK.
    newly_lost: f64,
    rtt: Option<Span>,
}

/// BBRv3 congestion control.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    mss: f64,
    initial_window: f64,
    state: State,
    cwnd: f64,
    pacing_rate: f64,
    /// C.delivered.
    delivered: u64,
    /// BBR.next_round_delivered, BBR.round_count and BBR.round_start.
    round_end: u64,
    rounds: u64,
    round_start: bool,
    long: LongTerm,
    short: ShortTerm,
    aggregation: Aggregation,
    full: FullPipe,
    drain_start: u64,
    probing: Probing,
    trips: RoundTrips,
    flights: Flights,
    /// Total of delivered bytes up to which sent segments count as application-limited.
    app_limited_until: u64,
    idle_restart: bool,
    /// BBR.prior_cwnd.
    prior_cwnd: f64,
    recovers: bool,
    /// State and bounds before the last loss episode, to undo it.
    undo: Undo,
}

/// Undo state of the draft.
#[derive(Clone, Copy, Debug)]
struct Undo {
    state: Option<State>,
    short: ShortTerm,
    inflight: f64,
}

impl Bbr3 {
    /// Creates the controller of a new connection.
    pub fn new(context: &CcContext) -> Self {
        let (mss, initial_window) = (f64::from(context.mss.max(1)), f64::from(context.initial_window));
        let short = ShortTerm::default();
        let mut bbr = Self {
            mss,
            initial_window,
            state: State::Startup,
            cwnd: initial_window.max(mss),
            pacing_rate: 0.0,
            delivered: 0,
            round_end: 0,
            rounds: 0,
            round_start: false,
            long: LongTerm::default(),
            short,
            aggregation: Aggregation::default(),
            full: FullPipe::default(),
            drain_start: 0,
            probing: Probing::default(),
            trips: RoundTrips::default(),
            flights: Flights::default(),
            app_limited_until: 0,
            idle_restart: false,
            prior_cwnd: 0.0,
            recovers: false,
            undo: Undo { state: None, short, inflight: f64::INFINITY },
        };
        bbr.init_pacing_rate(FIRST_ROUND_TRIP);
        bbr
    }

    /// InitPacingRate.
    fn init_pacing_rate(&mut self, round_trip: Span) {
        let seconds = round_trip.max(Span::from_nanos(1)).as_secs_f64();
        // A pacing rate of zero would stop sending for ever.
        self.pacing_rate = (STARTUP_PACING_GAIN * self.cwnd / seconds).max(1.0);
    }

    /// BBR.bw: rate that the model allows, bytes per second (BoundBWForModel).
    fn bandwidth(&self) -> f64 {
        self.long.max_bandwidth().min(self.short.bandwidth)
    }

    /// BBR.bdp; the initial window without a round-trip time (BDPMultiple).
    fn bdp(&self, gain: f64) -> f64 {
        let Some(min_rtt) = self.trips.min_rtt() else { return self.initial_window };
        gain * self.bandwidth() * min_rtt.as_secs_f64()
    }

    fn least_cwnd(&self) -> f64 {
        LEAST_SEGMENTS * self.mss
    }

    /// SetSendQuantum.
    fn quantum(&self) -> f64 {
        (self.pacing_rate * QUANTUM).min(LARGEST_QUANTUM).max(2.0 * self.mss)
    }

    /// QuantizationBudget.
    fn with_budget(&self, inflight: f64) -> f64 {
        let probing = if self.state == State::Up { 2.0 * self.mss } else { 0.0 };
        inflight.max(QUANTA * self.quantum()).max(self.least_cwnd()) + probing
    }

    /// Inflight.
    fn inflight(&self, gain: f64) -> f64 {
        self.with_budget(self.bdp(gain))
    }

    /// TargetInflight.
    fn target_inflight(&self) -> f64 {
        self.bdp(1.0).min(self.cwnd)
    }

    /// StartRound.
    fn start_round(&mut self) {
        self.round_end = self.delivered;
    }

    /// UpdateRound.
    fn update_round(&mut self, ack: &Ack) {
        self.round_start = ack.prior_delivered >= self.round_end;
        if self.round_start {
            self.start_round();
            self.rounds += 1;
            self.probing.rounds_since_up += 1;
        }
    }

    /// Collects the facts of an ACK (GenerateRateSample).
    fn facts(&mut self, sample: &AckSample) -> Ack {
        let mss = self.mss;
        let prior = sample.rate.map_or(self.delivered, |rate| rate.prior_delivered);
        self.delivered = match sample.rate {
            Some(rate) => rate.delivered,
            None => self.delivered.saturating_add(sample.delivered.into()),
        };
        let flight = self.flights.sampled(prior);
        self.flights.on_lost(sample.lost_in_all);
        let lost = sample.lost_in_all.wrapping_sub(flight.lost);
        Ack {
            now: sample.now,
            newly_acked: sample.delivered.into(),
            in_flight: sample.in_flight.into(),
            window_limited: sample.window_limited,
            rate: sample.rate.map_or(0.0, |sample| sample.rate.as_bps() as f64 / 8.0),
            delivered: self.delivered.saturating_sub(prior) as f64,
            prior_delivered: prior,
            app_limited: sample.rate.is_none_or(|rate| rate.app_limited || prior < self.app_limited_until),
            tx_in_flight: flight.in_flight.into(),
            lost: f64::from(lost) * mss,
            newly_lost: f64::from(sample.lost) * mss,
            rtt: sample.rtt,
        }
    }

    /// SetPacingRateWithGain: until the pipe is full, the pacing rate only rises.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = PACED * gain * self.bandwidth();
        if rate.is_finite() && rate > 0.0 && (self.full.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate.max(1.0);
        }
    }

    /// SetCwnd.
    fn set_cwnd(&mut self, ack: &Ack) {
        let most = self.with_budget(self.bdp(self.state.cwnd_gain()) + self.aggregation.extra());
        if self.full.reached {
            self.cwnd = (self.cwnd + ack.newly_acked).min(most);
        } else if self.cwnd < most || (self.delivered as f64) < self.initial_window {
            self.cwnd += ack.newly_acked;
        }
        self.cwnd = self.cwnd.max(self.least_cwnd());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd();
    }

    /// BoundCwndForModel.
    fn bound_cwnd(&mut self) {
        let long = match self.state {
            State::Down | State::Refill | State::Up => self.long.inflight,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        let bound = long.min(self.short.inflight).max(self.least_cwnd());
        self.cwnd = self.cwnd.min(bound).min(LARGEST_WINDOW);
    }

    /// SaveCwnd.
    fn save_cwnd(&mut self) {
        let modulated = self.recovers || self.state == State::ProbeRtt;
        self.prior_cwnd = if modulated { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// RestoreCwnd.
    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// SaveStateUponLoss.
    fn save_state(&mut self) {
        self.save_cwnd();
        self.undo = Undo { state: None, short: self.short, inflight: self.long.inflight };
    }

    /// NoteLoss.
    fn note_loss(&mut self) {
        if !self.short.is_loss_in_round {
            self.short.round_end = self.delivered;
            self.save_state();
        }
        self.short.is_loss_in_round = true;
    }
}

impl CongestionControl for Bbr3 {
    /// UpdateOnACK.
    fn on_ack(&mut self, sample: &AckSample) {
        let ack = self.facts(sample);
        if ack.newly_lost > 0.0 {
            self.note_loss();
            self.handle_losses(&ack);
        }
        let ends_loss_round = self.short.update_latest(&ack, self.delivered);
        self.update_round(&ack);
        self.long.update(&ack);
        if ends_loss_round {
            self.adapt_lower_bounds();
        }
        let bandwidth = self.bandwidth();
        self.aggregation.update(&ack, bandwidth, self.cwnd, self.rounds, self.full.reached);
        self.full.check(&ack, self.round_start);
        self.check_startup_done(&ack);
        self.check_drain_done(&ack);
        self.update_probe_bw(&ack);
        self.check_probe_rtt(&ack);
        if ends_loss_round {
            self.short.advance_latest(&ack);
        }
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_cwnd(&ack);
    }

    fn on_established(&mut self, _now: Time, round_trip: Span) {
        self.init_pacing_rate(round_trip);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        match event.cause {
            Congestion::Ecn => self.note_loss(),
            Congestion::FastRetransmit => {
                self.save_state();
                self.recovers = true;
            }
            Congestion::Timeout => {
                self.save_state();
                self.recovers = true;
                self.cwnd = self.mss;
            }
        }
        self.full.on_recovery(self.delivered);
    }

    fn on_recovered(&mut self, _now: Time) {
        if self.recovers {
            self.recovers = false;
            self.restore_cwnd();
        }
    }

    /// HandleSpuriousLossDetection.
    fn on_spurious(&mut self, _now: Time, _cause: Congestion) {
        self.recovers = false;
        self.restore_cwnd();
        self.short.is_loss_in_round = false;
        self.full.restart(0.0);
        self.short.bandwidth = self.short.bandwidth.max(self.undo.short.bandwidth);
        self.short.inflight = self.short.inflight.max(self.undo.short.inflight);
        self.long.inflight = self.long.inflight.max(self.undo.inflight);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && self.state != State::ProbeRtt => {
                self.start_refill()
            }
            _ => {}
        }
    }

    /// HandleRestartFromIdle.
    fn on_sent(&mut self, sent: &Departure) {
        let restarts = sent.in_flight <= sent.bytes && sent.app_limited;
        if restarts {
            self.idle_restart = true;
            self.aggregation.restart(sent.now);
            if self.state.is_probe_bw() {
                self.set_pacing_rate(1.0);
            } else if self.state == State::ProbeRtt {
                self.check_probe_rtt_done(sent.now);
            }
        }
        self.flights.push(self.delivered, sent.in_flight);
    }

    fn on_persistent_congestion(&mut self, window: u32) {
        self.cwnd = window.into();
    }

    fn window(&self) -> u32 {
        // The `as` conversion saturates.
        self.cwnd.max(self.mss) as u32
    }

    fn ssthresh(&self) -> u32 {
        u32::MAX
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps_f64(8.0 * self.pacing_rate).max(Rate::from_bps(1)))
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    fn wants_rate(&self) -> bool {
        true
    }
}

impl BuildControl for Bbr3 {
    const OPTIONS: &'static [&'static str] = &["growth"];

    fn build(_: &SenderConfig, context: &CcContext, _: Halves) -> Self {
        Self::new(context)
    }
}

#[cfg(test)]
mod tests;
