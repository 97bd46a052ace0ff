//! One flow under the forecast regulator: its right edge, the ACKs held for outages, and its window updates.

mod budget;
pub(super) mod turns;

use std::collections::VecDeque;

use ackclock_core::{Ecn, Flags, Segment, Seq, Span, Time};
use ackclock_link::{Cause, LinkView, Observation};

use budget::Look;

use super::air::Air;
use super::pace::Pace;
use super::released::Released;
use super::repair::Repair;
use super::shares::{QUIET, Share};
use super::updates::{SHORT, Updates};
use super::{Act, Config, Shared};
use crate::window_regulator::dequeued::{AckKind, Count};
use crate::window_regulator::source::{Arrival, Source};
use crate::window_regulator::{Advertiser, tells_a_window};
use crate::{Output, Verdict};

/// Maximum number of held ACKs. The limit on held ACKs bounds memory if a receiver acknowledges byte by byte.
const MOST_HELD: usize = 4096;
/// Share of the sender's retransmission timeout after which an ACK is released.
const LIFELINE: f64 = 0.7;
/// Minimum interval between releases of held ACKs, seconds.
const LEAST_LIFELINE: f64 = 0.02;
/// Number of unused packets above which a sender is not window-limited, if more than a quarter of its window is also
/// unused.
const UNUSED: u32 = 3;
/// Number of departures and ACKs over which the lag of the right edge is averaged.
const UNTOLD: f64 = 64.0;

/// Use of the link by one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkUse {
    /// Number of the flow's packets in the queue.
    pub(super) inside: usize,
    /// Whether the flow has data in the queue, or would send data if its held ACKs were released.
    pub(super) wants_link: bool,
}

/// State of one flow under the forecast regulator.
pub(super) struct Flow {
    advertiser: Advertiser,
    source: Source,
    air: Air,
    pace: Pace,
    /// Whether the sender is limited by the advertised window, and not by its congestion window or its data.
    window_limited: bool,
    /// Time at which data last arrived.
    last_data: Time,
    repair: Repair,
    /// Held ACKs, in order of arrival.
    held: VecDeque<Segment>,
    /// Last ACK sent to the sender, as the mobile wrote it.
    passed: Option<Segment>,
    /// Time at which an advancing ACK was last sent to the sender.
    advanced: Time,
    /// Highest ACK number of the mobile.
    newest: Option<Seq>,
    /// The flow's share of the link.
    share: Share,
    updates: Updates,
    /// Mean lag of the advertised right edge behind its target, bytes.
    untold: f64,
    released: Released,
    /// Whether marks tell the forecast to the sender, so that its window is not limited.
    is_marked: bool,
    /// Delay from an advertised right edge to its effect at an observed queue.
    horizon: Option<Span>,
    /// Index of the flow in the regulator's list of flows.
    place: usize,
    /// Whether the flow's ACKs are held until its turn.
    takes_turns: bool,
    in_line: bool,
    /// Use of the link by this flow at the last update.
    noted: LinkUse,
}

impl Flow {
    pub(super) fn new(config: &Config, place: usize) -> Self {
        Self {
            advertiser: Advertiser::new(Count::Exact, config.min_window, config.assumed_scale),
            source: Source::default(),
            air: Air::default(),
            pace: Pace::default(),
            window_limited: false,
            last_data: Time::ZERO,
            repair: Repair::default(),
            held: VecDeque::new(),
            passed: None,
            advanced: Time::ZERO,
            newest: None,
            share: Share::default(),
            updates: Updates::default(),
            untold: 0.0,
            released: Released::default(),
            is_marked: false,
            horizon: None,
            place,
            takes_turns: false,
            in_line: false,
            noted: LinkUse::default(),
        }
    }

    /// Number of the flow's packets in the queue.
    fn inside(&self) -> usize {
        self.advertiser.accounts.inside()
    }

    /// Updates the flow's use of the link. Returns the present and the previous use of the link. Data that passed an
    /// observed queue before `left` has left the queue, even if it is never acknowledged, as after a reset.
    pub(super) fn note(&mut self, left: Option<Time>) -> (LinkUse, LinkUse) {
        let inside = self.inside();
        let waits = match left {
            None => inside > 0 || self.held() > 0,
            // The departure of each packet from an observed queue is not known, but acknowledged data has left.
            Some(left) => self.last_data >= left && !self.advertiser.accounts.is_all_acknowledged(),
        };
        let has_share = self.source.highest().is_some() && self.share.is_due();
        let now = LinkUse { inside, wants_link: has_share && waits };
        (now, std::mem::replace(&mut self.noted, now))
    }

    /// Number of ACKs held for this flow.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the model of the flow's sender.
    pub(super) fn source(&mut self) -> &mut Source {
        &mut self.source
    }

    /// Round-trip time from the queue to the mobile, to the sender, and back to the queue.
    pub(super) fn round_trip(&self) -> Span {
        self.source.wired() + self.air.span()
    }

    /// Returns whether the sender is limited by the advertised window, and does not pace.
    pub(super) fn is_window_limited(&self) -> bool {
        self.window_limited && !self.pace.is_paced()
    }

    /// Processes an observation of the data that has left an observed queue.
    pub(super) fn on_observation(&mut self, observation: &Observation) {
        self.advertiser.on_observation(observation);
    }

    /// Sets the delay from an advertised window to its effect at the observed queue.
    pub(super) const fn on_horizon(&mut self, horizon: Span) {
        self.horizon = Some(horizon);
    }

    /// Processes a packet from the network. A spurious retransmission is discarded: a copy of a packet that is still
    /// queued, or whose ACK the sender could not have received yet.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        segment: &Segment,
        view: LinkView,
        shared: &mut Shared,
    ) -> Verdict {
        // A SYN starts a new connection. If a sender retransmits acknowledged data, its timeout expired while the ACK
        // was held.
        let anew = segment.flags.intersects(Flags::SYN);
        let again = segment.has_data() && self.advertiser.accounts.has_acknowledged(segment);
        let unheard = again && !self.source.had_heard(now, segment.end());
        if anew || (again && !self.takes_turns) {
            self.release_all(now, shared);
        }
        if (unheard || self.advertiser.accounts.holds(segment))
            && !shared.observed
            && !self.is_released(shared)
        {
            return Verdict::Drop;
        }
        if anew {
            let source = Source::answering(now, &self.source);
            self.leave_line(shared);
            let (share, noted) = (self.share, self.noted);
            *self = Self { source, share, noted, ..Self::new(&shared.config, self.place) };
        }
        self.advertiser.on_data(now, segment, view);
        if anew {
            shared.shares.on_begun(now, &mut self.share, self.advertiser.accounts.payload());
        } else if segment.has_data() {
            self.on_payload(now, segment, shared);
        }
        if segment.flags.intersects(Flags::FIN) {
            shared.shares.on_ended(now, &mut self.share);
        }
        self.mark(now, segment, view, shared)
    }

    /// Verdict on data of an ECN-capable sender, whose marks tell the forecast.
    fn mark(&mut self, now: Time, segment: &Segment, view: LinkView, shared: &mut Shared) -> Verdict {
        self.is_marked |= shared.config.act == Act::Both && segment.has_data() && segment.ecn != Ecn::NotEct;
        if !self.is_marked {
            return Verdict::Forward;
        }
        let wired = shared.link.served_in(now, self.source.wired());
        let target = self.total(now, shared) - wired;
        let verdict = shared.marks.verdict(now, segment, view, target);
        if shared.marks.are_recent(now) {
            shared.window_limited_at = now;
        }
        verdict
    }

    /// Processes a data segment that is not a SYN.
    fn on_payload(&mut self, now: Time, segment: &Segment, shared: &mut Shared) {
        let all_acknowledged = self.is_all_acknowledged();
        self.last_data = now;
        self.share.on_data(now, segment.payload.into(), all_acknowledged.then(|| self.at_once()));
        if self.source.on_data(now, segment.end()) != Arrival::Old {
            self.notice_rule(now, shared);
        }
        if !self.is_all_acknowledged() {
            shared.shares.on_heard(now, &mut self.share, self.source.used());
        }
    }

    /// Whether all data of the sender is acknowledged by the ACKs that were sent to the sender.
    fn is_all_acknowledged(&self) -> bool {
        let acknowledged = |highest: Seq| self.passed.is_some_and(|passed| highest.at_or_before(passed.ack));
        self.source.highest().is_none_or(acknowledged)
    }

    /// Time within which the sender sends more data after the ACK of all its data, if it has more data. Between the
    /// turns of its flow, a sender has to wait.
    fn at_once(&self) -> Span {
        if self.takes_turns { QUIET } else { self.source.at_once() }
    }

    /// Updates whether the sender is window-limited. Pacing cannot be detected at an observed queue, or before the link
    /// rate is known.
    fn notice_rule(&mut self, now: Time, shared: &mut Shared) {
        let (payload, part) = (self.advertiser.accounts.payload(), self.part(now, shared));
        self.window_limited = self.source.is_window_limited(f64::from(UNUSED * payload));
        self.pace.on_new(now);
        if !shared.observed && shared.link.is_known() {
            let time = f64::from(payload) / shared.link.served_in(now, Span::from_secs(1)).max(1.0);
            self.pace.on_packet(now, part / f64::from(payload), time, self.source.filling(payload));
        }
        if self.is_window_limited() {
            shared.window_limited_at = now;
        }
    }

    pub(super) fn on_queued(&mut self, segment: &Segment) {
        self.advertiser.accounts.on_queued(segment);
    }

    pub(super) fn on_dropped(&mut self, segment: &Segment, cause: Cause, view: LinkView) {
        self.advertiser.accounts.on_dropped(segment, cause, view);
    }

    pub(super) fn on_left(&mut self, now: Time, segment: &Segment, view: LinkView) {
        self.advertiser.accounts.on_left(segment, view);
        if segment.has_data() {
            self.air.on_left(now, segment.end());
        }
    }

    pub(super) fn on_idle(&mut self) {
        self.advertiser.accounts.on_idle();
    }

    /// Processes an ACK from the mobile. An advancing ACK may be held. Every other ACK is sent at once, after all held
    /// ACKs.
    pub(super) fn handle_ack(&mut self, now: Time, ack: Segment, view: LinkView, shared: &mut Shared) {
        if !tells_a_window(&ack) {
            self.release_all(now, shared);
            shared.output.push_back(Output::ToSender(ack));
            return;
        }
        let kind = self.advertiser.accounts.on_ack(&ack, view);
        if shared.observed {
            // At an observed queue, the window of this ACK depends on whether its flow still shares and waits.
            if self.source.highest().is_none_or(|highest| highest.at_or_before(ack.ack)) {
                let at_once = self.at_once();
                shared.shares.on_all_acknowledged(now, &mut self.share, at_once);
            }
            shared.note(now, self);
        }
        if self.share.is_noted_young() {
            shared.shares.on_heard(now, &mut self.share, self.source.used());
        }
        self.air.on_ack(now, ack.ack);
        self.newest = Some(self.newest.map_or(ack.ack, |newest| newest.max(ack.ack)));
        self.repair.on_ack(&ack, kind, self.source.highest());
        let plain = kind == AckKind::Advance && ack.is_pure_ack() && ack.sack().is_empty();
        let may_wait = plain && self.passed.is_some() && self.advertiser.law.applies(&ack);
        let look = self.look(now, shared);
        if may_wait && (self.takes_turns(&look, shared) || self.reserve(&look, shared) > 0) {
            self.held.push_back(ack);
        } else {
            self.release_all(now, shared);
            self.pass(now, ack, kind, &look, shared);
        }
        self.release_by(now, &look, shared);
    }

    /// Releases the held ACKs that exceed the reserve, and advertises a higher right edge.
    pub(super) fn release(&mut self, now: Time, shared: &mut Shared) {
        let look = self.look(now, shared);
        self.release_by(now, &look, shared);
    }

    fn release_by(&mut self, now: Time, look: &Look, shared: &mut Shared) {
        self.takes_turns = self.takes_turns(look, shared);
        if self.takes_turns {
            self.take_turn(now, look, shared);
            return;
        }
        self.leave_line(shared);
        if !self.held.is_empty() {
            let keep = self.reserve(look, shared);
            while let (Some(head), Some(newest)) = (self.held.front(), self.newest)
                && (newest.since(head.ack) >= keep || self.held.len() > MOST_HELD)
            {
                self.pass_head(now, look, shared);
            }
        }
        self.update(now, look, shared);
    }

    /// Releases all held ACKs of the flow.
    pub(super) fn release_all(&mut self, now: Time, shared: &mut Shared) {
        if self.held.is_empty() {
            return;
        }
        let look = self.look(now, shared);
        while !self.held.is_empty() {
            self.pass_head(now, &look, shared);
        }
    }

    fn pass_head(&mut self, now: Time, look: &Look, shared: &mut Shared) {
        if let Some(head) = self.held.pop_front() {
            self.pass(now, head, AckKind::Advance, look, shared);
        }
    }

    /// Sends an ACK to the sender, with the present right edge.
    fn pass(&mut self, now: Time, mut ack: Segment, kind: AckKind, look: &Look, shared: &mut Shared) {
        let (before, last) = (self.advertiser.law.edge(), self.passed.replace(ack));
        if let (Some(last), Some(window)) = (last, ack.window_bytes()) {
            self.released.on_passed(ack.ack.since(last.ack), ack.ack + window);
        }
        let (edge, _) = self.edge(now, look, shared);
        self.advertiser.write(now, &mut ack, kind, edge);
        if let Some(told) = self.advertiser.law.edge()
            && before.is_none_or(|before| told.after(before))
        {
            let left = self.advertiser.accounts.edge_at(0);
            self.source.on_told(now, before.unwrap_or(ack.ack), told, left);
        }
        if !ack.is_made() {
            self.updates.on_passed(ack.header.into(), shared.config.updates);
        }
        if last.is_none_or(|last| ack.ack.after(last.ack)) {
            self.advanced = now;
            self.share.on_ack(now);
            self.source.on_passed(now, ack.ack);
        }
        if self.is_all_acknowledged() {
            let at_once = self.at_once();
            shared.shares.on_all_acknowledged(now, &mut self.share, at_once);
        }
        shared.output.push_back(Output::ToSender(ack));
    }

    /// Advertises a right edge to a sender whose right edge lags behind by a share of its budget. The right edge is
    /// sent in a held ACK, or in a copy of the last ACK (RFC 9293 section 3.8.6).
    fn update(&mut self, now: Time, look: &Look, shared: &mut Shared) {
        let (Some(last), Some(told)) = (self.passed, self.advertiser.law.edge()) else { return };
        if shared.observed {
            return;
        }
        let (Some(edge), budget) = self.edge(now, look, shared) else { return };
        let short = self.advertiser.reach(&last, edge).since(told);
        if !self.repair.is_under_way() {
            self.note_untold(short, budget);
        }
        if short < self.advertiser.accounts.payload() {
            return;
        }
        let budget = f64::from(budget.unwrap_or_else(|| self.budget(look, shared)));
        if !self.held.is_empty() {
            if f64::from(short) >= SHORT * budget {
                self.pass_head(now, look, shared);
            }
            return;
        }
        if last.sack().is_empty() && self.updates.makes(last.header.into(), short, budget) {
            let mut update = last.made();
            // The update repeats the ECN feedback: without it, an AccECN counter (RFC 9768) would jump.
            let kept = Flags::ACK | Flags::ECE | Flags::CWR;
            (update.seq, update.payload, update.flags) = (last.end(), 0, Flags(last.flags.0 & kept.0));
            self.pass(now, update, AckKind::Other, look, shared);
        }
    }

    /// Updates the mean lag of the right edge. The lag counts as at most the budget, and as zero for a sender released
    /// from regulation.
    fn note_untold(&mut self, short: u32, budget: Option<u32>) {
        let short = budget.map_or(0.0, |budget| f64::from(short).min(f64::from(budget) - self.untold));
        self.untold += (short - self.untold) / UNTOLD;
    }

    /// Time at which the next held ACK must be released, before the sender times out. A flow that waits for its turn
    /// has no deadline.
    pub(super) fn deadline(&self) -> Option<Time> {
        if self.held.is_empty() || self.takes_turns {
            return None;
        }
        let after = LIFELINE * self.source.timeout()?;
        Some(self.advanced + Span::from_secs_f64(after.max(LEAST_LIFELINE)))
    }

    /// Releases an ACK for one packet from the held ACKs, which restarts the sender's timer.
    pub(super) fn spend(&mut self, now: Time, shared: &mut Shared) {
        let (Some(head), Some(last)) = (self.held.front(), self.passed) else { return };
        let next = last.ack + self.advertiser.accounts.payload();
        let look = self.look(now, shared);
        if head.ack.after(next) {
            let mut part = head.made();
            part.ack = next;
            self.pass(now, part, AckKind::Advance, &look, shared);
        } else {
            self.pass_head(now, &look, shared);
        }
        self.advanced = now;
    }

    /// Called when the link is idle: releases all held ACKs, unless the flow takes turns.
    pub(super) fn on_link_idle(&mut self, now: Time, shared: &mut Shared) {
        if !self.takes_turns {
            self.release_all(now, shared);
        }
    }

    /// Called when the flow ends: releases all held ACKs.
    pub(super) fn close(&mut self, now: Time, shared: &mut Shared) {
        self.leave_line(shared);
        self.release_all(now, shared);
        self.advertiser.accounts.on_idle();
        shared.shares.on_ended(now, &mut self.share);
    }
}
