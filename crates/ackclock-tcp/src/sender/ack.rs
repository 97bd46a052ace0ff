//! Processing of an acknowledgement: round-trip time, recovery, congestion control, undo.

use ackclock_core::{SackBlock, Segment, Span, Time};

use super::{Fin, TcpSender};
use crate::cc::{AckSample, Phase, RenewControl};
use crate::config::{Growth, Switch};
use crate::prr::Delivery;
use crate::recovery::{AckFacts, Exit, Recovery, Timer, Verdict};
use crate::scoreboard::{Acked, Arrivals, Sendings};
use crate::stack::Stack;

/// Facts about one acknowledgement, collected while the acknowledgement is processed.
#[derive(Default)]
pub(super) struct AckOutcome {
    pub(super) acked: Acked,
    pub(super) sacked: u32,
    pub(super) rtt: Option<Span>,
    /// Round-trip time sample for the timeout, if it differs from the sample for congestion control.
    pub(super) first_rtt: Option<Span>,
    /// Data that the receiver reports as a duplicate (D-SACK).
    pub(super) dsack: Option<SackBlock>,
    /// Bytes of the reported duplicate that count as delivered.
    pub(super) repeated: u32,
    /// Number of losses found before this acknowledgement.
    pub(super) losses: u32,
    /// Segments that the acknowledgement newly shows to have arrived; only filled for a recovery that needs them.
    pub(super) arrivals: Arrivals,
}

/// Change of the advertised window by an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Offer {
    /// The right edge of the window is unchanged.
    Same,
    /// The right edge of the window moves, or the window is or was closed.
    New,
}

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Processes an acceptable acknowledgement, given the change of the advertised window.
    #[inline(always)]
    pub(super) fn take_ack(&mut self, now: Time, seg: &Segment, offer: Offer) {
        let advances = seg.ack.after(self.board.una());
        let mut outcome = AckOutcome::default();
        self.buffer.on_ack();
        self.outgoing.on_event();
        self.read(now, seg, &mut outcome);
        if self.ecn.mode.counts_marks() {
            self.take_feedback(seg, &outcome);
        }
        let echoes = self.ecn.mode.is_on() && !(self.ecn.mode.counts_marks() && self.cc.counts_marks());
        if echoes && self.config.stack == Stack::Linux {
            // A loss reported together with an ECN echo belongs to the reduction for this echo. If the acknowledgement
            // ends a recovery, the ECN echo is processed later.
            self.take_echo(now, seg);
        }
        if advances {
            self.on_advance(now, seg, &mut outcome);
        } else {
            self.on_duplicate(now, seg, outcome, offer);
        }
        if echoes {
            self.take_echo(now, seg);
        }
        if self.board.sent().is_empty() {
            self.timer = Time::NEVER;
            if advances {
                self.past.quiet_since = self.past.sent_at;
            }
            if self.fin == Fin::Sent {
                self.past.finished_at = now;
                // The FIN has a sequence number but is not payload.
                self.past.acknowledged -= 1;
                self.close_finished();
            }
        }
    }

    /// Processes the SACK blocks of an acknowledgement that a newer one has overtaken.
    pub(super) fn take_sack(&mut self, now: Time, seg: &Segment) {
        let mut outcome = AckOutcome::default();
        self.read(now, seg, &mut outcome);
        self.on_duplicate(now, seg, outcome, Offer::New);
    }

    /// Updates the scoreboard with an acknowledgement. The outcome is written in place, because copying it would stall
    /// until all fields are written.
    #[inline(always)]
    fn read(&mut self, now: Time, seg: &Segment, outcome: &mut AckOutcome) {
        let mut oldest = None;
        if seg.ack.after(self.board.una()) {
            if self.config.stack == Stack::Linux {
                oldest = self.board.oldest_told(seg.ack);
            }
            let (arrivals, sendings) = (&mut outcome.arrivals, self.sendings(now, seg));
            outcome.acked = self.board.acknowledge(seg.ack, |record| {
                if R::FOLLOWS_ARRIVALS {
                    arrivals.pass(record, &sendings);
                }
            });
        }
        self.past.acknowledged += u64::from(outcome.acked.bytes);
        if outcome.acked.bytes > 0
            && let Some(rate) = &mut self.rate
        {
            rate.on_acked(now, seg.ack);
        }
        outcome.losses = self.board.losses();
        let mut newest = outcome.acked.newest;
        if R::USES_SACK && !seg.sack().is_empty() {
            newest = newest.max(self.read_sack(now, seg, outcome));
        }
        outcome.rtt = newest.map(|sent_at| now.since(sent_at));
        // Linux samples the round-trip time of the first segment acknowledged.
        outcome.first_rtt =
            oldest.filter(|_| outcome.acked.newest.is_some()).map(|sent_at| now.since(sent_at));
    }

    /// Processes the SACK blocks of an acknowledgement. Returns the transmission time of the newest SACKed segment.
    fn read_sack(&mut self, now: Time, seg: &Segment, outcome: &mut AckOutcome) -> Option<Time> {
        let mut newest = None;
        let sendings = self.sendings(now, seg);
        for (position, &block) in seg.sack().iter().enumerate() {
            // The first SACK block reports a duplicate if the ACK or the second block covers it (RFC 2883 section 4).
            let repeats = position == 0
                && (block.right.at_or_before(seg.ack)
                    || seg.sack().get(1).is_some_and(|second| {
                        second.left.at_or_before(block.left) && block.right.at_or_before(second.right)
                    }));
            if repeats {
                outcome.dsack = Some(block);
                outcome.repeated = self.take_repeated(block);
            }
            let (rate, arrivals) = (&mut self.rate, &mut outcome.arrivals);
            let (bytes, sent_at) = self.board.sack(block, |record| {
                if let Some(rate) = rate {
                    rate.on_sacked(now, SackBlock { left: record.seq, right: record.end() });
                }
                if R::FOLLOWS_ARRIVALS {
                    arrivals.sack(record, &sendings);
                }
            });
            outcome.sacked += bytes;
            newest = newest.max(sent_at);
        }
        newest
    }

    #[inline(always)]
    fn on_advance(&mut self, now: Time, seg: &Segment, outcome: &mut AckOutcome) {
        self.past.timed_out_at = None;
        self.measure(now, seg, outcome);
        let adopted = self.timestamps == Switch::On && self.undo_if_spurious(now, seg, outcome);
        self.undo_if_repeated(now, outcome);
        let facts = self.facts(now, outcome, false);
        let verdict = self.recovery.on_advance(&facts, &mut self.board);
        if !matches!(verdict, Verdict::Partial(Timer::Keep)) {
            self.restart_timer(now);
        }
        if matches!(verdict, Verdict::Spurious) {
            // The restored window already includes the growth for this acknowledgement.
            self.take_back_timeout(now);
        }
        let phase = match verdict {
            Verdict::Leave(Exit::Hold | Exit::Cap(_)) | Verdict::Reordered { .. } => Phase::FastRecovery,
            // The restored window already counts this acknowledgement (RFC 4015 section 3).
            _ if adopted => Phase::FastRecovery,
            Verdict::Leave(Exit::Grow) => self.recovery.phase(),
            _ => self.phase_of_control(),
        };
        self.control(now, outcome, phase);
        self.conclude(now, verdict);
        if self.reduction.is_some() {
            self.spread_reduction(outcome, self.board.losses() == outcome.losses);
        }
    }

    /// Restarts the retransmission timer (RFC 6298 (5.3)). After a go-back-N nothing is in flight until data is
    /// retransmitted.
    #[inline(always)]
    fn restart_timer(&mut self, now: Time) {
        self.timer = self.rtt.expiry(now, self.past.sent_at, || {
            let sent = self.board.sent();
            let oldest = sent.front().filter(|_| self.board.next() > sent.first());
            oldest.map(|record| record.sent_at)
        });
    }

    /// Applies the recovery's verdict on an acknowledgement that advances the left edge.
    #[inline(always)]
    fn conclude(&mut self, now: Time, verdict: Verdict) {
        match verdict {
            Verdict::Enter => self.enter(now),
            Verdict::Leave(exit) => {
                self.end_reduction();
                self.cc.on_recovered(now);
                if let Exit::Cap(bytes) = exit {
                    let ssthresh = self.cc.ssthresh();
                    self.cc.adopt(self.cc.window().min(bytes), ssthresh);
                }
            }
            // An ECN echo in this round trip has already reduced the window, so the window stays reduced.
            Verdict::Reordered { cwnd, ssthresh } if self.ecn.reacted.is_none() => {
                self.cc.adopt(cwnd, ssthresh)
            }
            Verdict::Again => {
                self.end_reduction();
                self.enter(now);
            }
            Verdict::Probed(tail) => self.on_probed(now, tail),
            Verdict::Persistent => self.on_persistent_congestion(now),
            Verdict::Open | Verdict::Partial(_) | Verdict::Spurious | Verdict::Reordered { .. } => {}
        }
    }

    // The outcome is passed by value, so that the outcome need not be in memory when the left edge advances.
    #[inline(never)]
    fn on_duplicate(&mut self, now: Time, seg: &Segment, outcome: AckOutcome, offer: Offer) {
        let outcome = &outcome;
        // A window update is not a duplicate acknowledgement (RFC 5681 section 2).
        let duplicate = seg.is_pure_ack() && offer == Offer::Same && !self.board.sent().is_empty();
        if !duplicate && outcome.sacked == 0 && outcome.dsack.is_none() {
            return;
        }
        self.undo_if_repeated(now, outcome);
        if let Some(rtt) = outcome.rtt {
            self.take_rtt(rtt);
            self.restart_behind_head(now, rtt);
        }
        if outcome.sacked > 0 && self.config.probe_timeout == Switch::On {
            // Each arrival sets the probe timeout again (RFC 9002 section A.7).
            self.restart_timer(now);
        }
        let facts = self.facts(now, outcome, duplicate);
        let verdict = self.recovery.on_duplicate(&facts, &mut self.board);
        let sample = self.sample(now, outcome, self.phase_of_control());
        if outcome.sacked > 0 {
            self.cc.on_ack(&sample)
        } else {
            self.cc.on_duplicate(&sample)
        }
        match verdict {
            Verdict::Enter => self.enter(now),
            Verdict::Spurious => self.take_back_timeout(now),
            Verdict::Probed(tail) => self.on_probed(now, tail),
            Verdict::Persistent => self.on_persistent_congestion(now),
            _ => {}
        }
        self.spread_reduction(outcome, false);
    }

    /// Continues a window reduction that is spread over the recovery.
    fn spread_reduction(&mut self, outcome: &AckOutcome, safe: bool) {
        let (delivered, in_flight) = (self.delivered(outcome), self.recovery.in_flight(&self.board));
        if let Some(reduction) = &mut self.reduction {
            reduction.on_ack(&Delivery { delivered, in_flight, safe });
        }
    }

    /// Number of bytes that an acknowledgement delivered.
    #[inline(always)]
    fn delivered(&self, outcome: &AckOutcome) -> u32 {
        let told = outcome.acked.delivered + outcome.sacked;
        self.recovery.delivered(told.saturating_add(outcome.repeated))
    }

    /// Counts bytes that the receiver reports as duplicates, in whole segments. Linux counts duplicates as delivered
    /// too, up to the number of bytes retransmitted (tcp_dsack_seen).
    #[cold]
    fn take_repeated(&mut self, block: SackBlock) -> u32 {
        let mss = u32::from(self.mss);
        let segments = block.right.since(block.left).div_ceil(mss);
        self.past.repeated = self.past.repeated.saturating_add(segments);
        let sent_again = u64::from(self.past.repeated) <= self.stats.retransmits;
        if self.config.stack == Stack::Linux && sent_again { segments.saturating_mul(mss) } else { 0 }
    }

    /// Takes round-trip time samples, from the acknowledged segment (Karn's rule) or from timestamps.
    #[inline(always)]
    fn measure(&mut self, now: Time, seg: &Segment, outcome: &mut AckOutcome) {
        if let Some(rtt) = self.rtt.on_acknowledged(now, seg.ack) {
            self.stats.on_timed(rtt, self.rtt.rto());
        }
        if outcome.rtt.is_none() {
            outcome.rtt = self.echoed(now, seg);
        }
        let Some(rtt) = outcome.first_rtt.or(outcome.rtt) else { return };
        match self.past.rtt_restart {
            None => self.take_rtt(rtt),
            Some(previous) => self.restart_rtt(previous, rtt),
        }
    }

    /// Restarts the estimate with the first round-trip time after a spurious timeout.
    #[cold]
    fn restart_rtt(&mut self, previous: (Span, Span), rtt: Span) {
        self.past.rtt_restart = None;
        self.stats.rtt.record(rtt);
        self.rtt.restart_from(previous, rtt, self.board.max());
    }

    /// Round-trip time from the peer's timestamp echo.
    pub(super) fn echoed(&self, now: Time, seg: &Segment) -> Option<Span> {
        let stamps = seg.timestamps().filter(|_| self.timestamps == Switch::On)?;
        let ticks = self.stamp(now).wrapping_sub(stamps.echo);
        // An echo from the future, or one older than half the clock's range, is invalid.
        (ticks < u32::MAX / 2).then(|| self.stamps.tick * u64::from(ticks))
    }

    /// Evidence of which transmission of a retransmitted segment an acknowledgement answers.
    #[inline(always)]
    fn sendings(&self, now: Time, seg: &Segment) -> Sendings {
        let echoed = seg.timestamps().filter(|_| self.timestamps == Switch::On);
        let min_rtt = self.rtt.min_rtt().unwrap_or(Span::ZERO);
        Sendings { now, min_rtt, echo: echoed.map(|stamps| stamps.echo), tick: self.stamps.tick }
    }

    /// Linux restarts the timer if retransmitted data above the left edge is SACKed, because nothing is known of the
    /// left edge yet.
    fn restart_behind_head(&mut self, now: Time, rtt: Span) {
        let behind = self.board.sent().front().is_some_and(|head| rtt > now.since(head.sent_at));
        if behind && self.config.stack == Stack::Linux {
            self.timer = now + self.rtt.rto();
        }
    }

    /// Passes a round-trip time sample to the estimator.
    #[inline(always)]
    pub(super) fn take_rtt(&mut self, rtt: Span) {
        self.stats.rtt.record(rtt);
        self.rtt.on_sample(rtt, self.board.una(), self.board.max());
    }

    /// Reports delivered data to the congestion control.
    #[inline(always)]
    fn control(&mut self, now: Time, outcome: &AckOutcome, phase: Phase) {
        let sample = self.sample(now, outcome, phase);
        self.cc.on_ack(&sample);
    }

    // This function is inlined, so that values which the controller does not read are not computed.
    #[inline(always)]
    fn sample(&mut self, now: Time, outcome: &AckOutcome, phase: Phase) -> AckSample {
        let min_rtt = self.rtt.min_rtt();
        // `window_limited` and `in_flight` are computed in adjacent lines, so that the compiler computes the bytes in
        // flight only once.
        let window_limited = !self.cc.asks_for_limit() || self.is_window_limited(outcome);
        let in_flight = self.recovery.in_flight(&self.board);
        AckSample {
            now,
            acked: outcome.acked.bytes,
            delivered: self.delivered(outcome),
            in_flight,
            rtt: outcome.rtt,
            srtt: self.rtt.srtt(),
            min_rtt,
            rate: self.rate.as_mut().and_then(|rate| rate.sample(min_rtt)),
            paced_for: self.pacer.holds(now).map_or(Span::ZERO, |until| until.since(now)),
            phase,
            window_limited,
            lost: self.board.losses().wrapping_sub(outcome.losses),
            lost_in_all: self.board.losses(),
            marked: self.take_marked(),
        }
    }

    /// Phase of recovery reported to the controller. While a reduction for an ECN echo is spread, the reported phase
    /// also prevents growth of the window.
    fn phase_of_control(&self) -> Phase {
        if self.reduction.is_some() { Phase::FastRecovery } else { self.recovery.phase() }
    }

    /// Whether the window was full before this acknowledgement, or at some time in the last window of data.
    #[inline(always)]
    fn is_window_limited(&self, outcome: &AckOutcome) -> bool {
        if self.config.growth == Growth::Bytes {
            return self.usage.limits(self.cc.window(), self.cc.ssthresh(), self.mss);
        }
        let before = self.board.in_flight() + outcome.acked.bytes + outcome.sacked;
        before + u32::from(self.mss) > self.cc.window()
    }

    #[inline(always)]
    fn facts(&self, now: Time, outcome: &AckOutcome, duplicate: bool) -> AckFacts {
        AckFacts {
            now,
            latest: outcome.arrivals.latest,
            last: outcome.arrivals.last(),
            original: outcome.arrivals.original,
            passed_repeated: outcome.arrivals.passed_repeated,
            highest_sacked: outcome.arrivals.highest_sacked,
            dsack: outcome.dsack,
            srtt: self.rtt.srtt(),
            rto: self.rtt.rto(),
            base_rto: self.rtt.base_rto(),
            min_rtt: self.rtt.min_rtt(),
            acked: outcome.acked.bytes,
            sacked: outcome.sacked,
            duplicate,
            mss: u32::from(self.mss),
            cwnd: self.cc.window(),
        }
    }
}
