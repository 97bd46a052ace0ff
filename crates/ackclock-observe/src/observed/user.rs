//! State shared by the flows of a user: an estimate of the observed queue.
//!
//! The rate is the rate of departures from the queue. The idle time of the queue follows from Lindley's recursion, read
//! backwards. Data with a loop of `S` arrived at the queue at the latest `S - S0` ago, where `S0` is the minimum loop.
//! So the queue was empty since the last departure for at least `now - (S - S0) - last`, if this value is positive.

use std::collections::BTreeMap;

use ackclock_core::{FlowId, Segment, Span, Time};

use super::floor::Floor;
use super::flow::Flow;
use super::meter::Meter;
use super::vocabulary::Probe;
use crate::estimate::Recent;
use ackclock_link::{Base, Observation, Side};

/// Estimated state of the queue that the flows of a user share.
#[derive(Debug)]
pub(super) struct User {
    pub(super) side: Side,
    pub(super) flows: BTreeMap<FlowId, Flow>,
    /// Number of flows that share the queue.
    active: f64,
    /// Recent bytes from which on a flow counts as one of these flows.
    full_share: f64,
    counted: Time,
    /// Largest payload of a packet seen, bytes.
    payload: u32,
    meter: Meter,
    /// Minimum loop over all flows of the user; used by a box before the queue.
    pub(super) floor: Floor,
    /// Time at which data of any flow last left the queue.
    last: Option<Time>,
    late: Span,
    /// Latest estimate of the queueing delay, and the time of the estimate.
    wait: (Time, Span),
    /// Longest queueing delay in intervals of a second.
    longest: Recent<Option<Span>>,
    /// Latest queueing delay for reports, and its time.
    reported: (Time, Span),
    pub(super) probe: Probe,
    /// Number of loops that were measured.
    samples: u64,
    /// Total bytes of the user outside its flows, and the part of these bytes that no departure has counted yet.
    others: Option<u64>,
    uncounted: u64,
}

/// Payload of a packet that is assumed before the first packet, bytes.
const USUAL_PAYLOAD: u32 = 1448;
/// Share of the largest flow's recent bytes, as a divisor, from which on a flow counts as one of the flows that share
/// the queue. A flow with less counts in proportion, so a flow that sends a byte a second takes nothing from the others.
const FULL_SHARE: f64 = 4.0;
/// Minimum interval between counts of active flows.
const COUNT_EVERY: Span = Span::from_millis(10);
/// Time for which an estimate of the queueing delay is valid.
const WAIT_LASTS: Span = Span::from_secs(1);
/// Longest gap between departures that still allows conclusions about the loop.
const LONGEST_GAP: Span = Span::from_secs(1);

impl User {
    pub(super) fn new(now: Time, side: Side, probe: Probe) -> Self {
        Self {
            side,
            flows: BTreeMap::new(),
            active: 0.0,
            full_share: 0.0,
            counted: Time::ZERO,
            payload: 0,
            meter: Meter::default(),
            floor: Floor::new(now),
            last: None,
            late: Span::ZERO,
            wait: (Time::ZERO, Span::ZERO),
            longest: Recent::since(now, WAIT_LASTS),
            reported: (Time::ZERO, Span::ZERO),
            probe,
            others: None,
            samples: 0,
            uncounted: 0,
        }
    }

    /// Records that `others` bytes of the user outside its flows have passed so far.
    pub(super) fn note_others(&mut self, others: u64) {
        self.uncounted += others.saturating_sub(self.others.unwrap_or(others));
        self.others = Some(others);
    }

    /// Returns the state of a flow, and creates it if it is new.
    pub(super) fn flow(&mut self, now: Time, id: FlowId) -> &mut Flow {
        self.flows.entry(id).or_insert_with(|| Flow::new(now))
    }

    /// Records that data of a flow passed the box.
    pub(super) fn note_data(&mut self, now: Time, segment: &Segment) {
        self.payload = self.payload.max(segment.payload.into());
        if self.active == 0.0 || now.since(self.counted) >= COUNT_EVERY {
            let bytes = || self.flows.values().map(|flow| flow.recent_bytes(now) as f64);
            self.full_share = bytes().fold(1.0, f64::max) / FULL_SHARE;
            self.active = bytes().map(|bytes| (bytes / self.full_share).min(1.0)).sum();
            self.counted = now;
        }
    }

    /// Whether a flow sends enough to count as one of the flows that share the queue.
    pub(super) fn has_full_share(&self, now: Time, flow: &Flow) -> bool {
        flow.recent_bytes(now) as f64 >= self.full_share
    }

    /// Number of flows that share the queue, at least one. A flow that sent much less than others in the last one to two
    /// seconds counts as a part of a flow.
    pub(super) const fn active(&self) -> f64 {
        self.active.max(1.0)
    }

    /// Payload of a full packet, bytes.
    pub(super) const fn payload(&self) -> u32 {
        if self.payload > 0 { self.payload } else { USUAL_PAYLOAD }
    }

    /// Minimum loop of a flow: the part over the radio if the box is before the queue, the complete loop if the box is
    /// behind the queue.
    pub(super) fn least_loop(&self, flow: FlowId) -> Span {
        let own = self.flows.get(&flow).map(|flow| &flow.floor).filter(|floor| floor.is_known());
        match self.side {
            Side::Network => self.floor.get(),
            Side::Mobile => own.unwrap_or(&self.floor).get(),
        }
    }

    /// Delay from a right edge advertised to a flow's sender to its effect on departures from the queue.
    fn horizon(&self, flow: FlowId) -> Span {
        let wired = || self.flows.get(&flow).and_then(Flow::wired).unwrap_or(UNKNOWN_WIRE);
        match self.side {
            Side::Network => self.least_loop(flow) + wired(),
            Side::Mobile => self.least_loop(flow),
        }
    }

    /// Time up to which departures from the queue are known.
    fn seen(&self, now: Time) -> Time {
        now - self.late
    }

    /// Mean rate over the minimum loop, bytes per second.
    pub(super) fn mean_rate(&self, now: Time, flow: FlowId) -> f64 {
        self.meter.mean_rate(self.seen(now), self.least_loop(flow))
    }

    /// Packets of `times` bandwidth-delay products: the rate of the busy queue times the shortest loop in which a window
    /// takes effect. The mean rate would follow a window that limits it.
    pub(super) fn loop_packets(&self, now: Time, flow: FlowId, times: f64) -> u32 {
        let rate = self.meter.largest_rate(self.seen(now));
        let bytes = times * rate * self.horizon(flow).as_secs_f64();
        (bytes / f64::from(self.payload())).ceil() as u32
    }

    /// A flow's share of the bytes that leave the queue within the minimum loop at the mean rate.
    pub(super) fn share_of_loop(&self, now: Time, flow: FlowId) -> u64 {
        let bytes = self.mean_rate(now, flow) * self.least_loop(flow).as_secs_f64();
        (bytes / self.active()) as u64
    }

    /// Queueing delay of the newest sample, for reports; `None` if there is no recent sample.
    pub(super) fn queueing_delay(&self, now: Time) -> Option<Span> {
        (self.samples > 0 && now.since(self.reported.0) < WAIT_LASTS).then_some(self.reported.1)
    }

    /// Handles a queueing delay for reports that is more certain than the one of the loop.
    pub(super) const fn report(&mut self, now: Time, delay: Span) {
        self.reported = (now, delay);
    }

    /// Estimated length of the queue, bytes.
    pub(super) fn waiting(&self, now: Time) -> u64 {
        (self.meter.largest_rate(self.seen(now)) * self.recent_wait(now).as_secs_f64()) as u64
    }

    /// Latest estimate of the queueing delay; zero if it is too old. Before the queue, an estimate stays valid while data
    /// leaves without samples, as after a retransmission, since the queue is not empty then.
    fn recent_wait(&self, now: Time) -> Span {
        let known = match self.side {
            Side::Network => self.last.map_or(self.wait.0, |last| last.max(self.wait.0)),
            Side::Mobile => self.wait.0,
        };
        if now.since(known) < WAIT_LASTS { self.wait.1 } else { Span::ZERO }
    }

    /// Notes that the queue after the box is empty if all data that passed is acknowledged, of `flow` and of the others.
    pub(super) fn note_empty(&mut self, now: Time, flow: FlowId) {
        let is_empty = |flow: &Flow| flow.unacknowledged() == 0;
        if self.flows.get(&flow).is_some_and(is_empty) && self.flows.values().all(is_empty) {
            self.wait = (now, Span::ZERO);
        }
    }

    /// Handles a connection whose handshake had the round-trip time `round_trip`. The queueing delay that other flows
    /// have measured is subtracted, but not below the minimum loop: the delays themselves are measured from this
    /// minimum, so each new connection could lower it further.
    pub(super) fn on_opened(&mut self, now: Time, flow: FlowId, round_trip: Span) {
        let waits = self.recent_wait(now);
        let less = if waits < round_trip { round_trip.saturating_sub(waits) } else { round_trip };
        let least = if self.floor.is_known() { less.max(self.floor.get().min(round_trip)) } else { less };
        self.sample(now, flow, least);
    }

    /// Number of loops that were measured.
    pub(super) const fn samples(&self) -> u64 {
        self.samples
    }

    /// Takes a sample of the loop of a flow.
    fn sample(&mut self, now: Time, flow: FlowId, sample: Span) {
        self.samples += 1;
        let counts = self.probe.counts(now, sample);
        if self.side == Side::Mobile {
            self.flow(now, flow).floor.on_sample(sample, counts);
        }
        self.floor.on_sample(sample, counts);
        self.wait = (now, sample.saturating_sub(self.least_loop(flow)));
        self.reported = self.wait;
        let longest = self.longest.at(now);
        *longest = Some(longest.map_or(self.wait.1, |longest| longest.max(self.wait.1)));
    }

    /// Handles data of a flow that left the queue; the newest of this data may have a loop sample.
    pub(super) fn on_progress(&mut self, now: Time, progress: Progress) -> Observation {
        let Progress { flow, mut bytes, sample, late, previous, .. } = progress;
        let left = self.last.map_or(now - late, |last| last.max(now - late));
        let gap = self.last.map_or(Span::ZERO, |last| left.since(last));
        // After a gap without active flows, the bytes of other traffic say nothing about the rate.
        let others = std::mem::take(&mut self.uncounted);
        bytes += if gap <= LONGEST_GAP { others } else { 0 };
        self.late = now.since(left);
        let rate = self.meter.largest_rate(left);
        if let Some(sample) = sample {
            self.sample(now, flow, sample);
        }
        let packet = (rate > 0.0).then(|| Span::from_secs_f64(f64::from(self.payload()) / rate));
        let common = self.floor;
        let floor = match self.side {
            Side::Network => common,
            Side::Mobile => self.flow(now, flow).floor,
        };
        let low = sample.is_some_and(|sample| floor.is_low(sample, packet));
        let waited = sample.map(|sample| sample.saturating_sub(floor.get()));
        let own = self.last.map_or(Span::ZERO, |last| left.since(last.max(previous - late)));
        let idle = waited.map_or(Span::ZERO, |waited| idle(gap, own, waited));
        self.note_low(now, flow, low, gap);
        self.meter.on_left(left, bytes, idle);
        self.last = Some(left);
        self.run_probe(now, flow, low);
        self.observation(now, &progress, bytes, idle)
    }

    /// What a regulator learns from data that left the queue: `bytes`, before which the queue was empty for `idle`.
    fn observation(&mut self, now: Time, progress: &Progress, bytes: u64, idle: Span) -> Observation {
        let (flow, probing) = (progress.flow, self.probe.runs());
        _ = self.longest.at(now);
        Observation {
            flow,
            bytes,
            idle,
            called: progress.called && !probing,
            horizon: self.horizon(flow),
            late: self.late,
            probing,
            base: Base::of(self.side),
            leaves: 0,
            waited: self.longest.both().into_iter().flatten().max(),
            passed: progress.passed,
            repeats: self.flow(now, flow).take_repetition(),
        }
    }

    /// Values of the gauges: rate in bit/s, queue in bytes, minimum loop in ms, number of probes.
    pub(super) fn gauges(&self) -> Vec<f64> {
        let now = self.last.unwrap_or(Time::ZERO);
        let least = self.flows.keys().next().map_or(self.floor.get(), |flow| self.least_loop(*flow));
        let rate = 8.0 * self.meter.largest_rate(now);
        vec![rate, self.waiting(now) as f64, least.as_millis_f64(), self.probe.begun().into()]
    }

    fn note_low(&mut self, now: Time, flow: FlowId, low: bool, gap: Span) {
        if low {
            self.floor.note_low(now);
            self.flow(now, flow).floor.note_low(now);
        } else if gap > LONGEST_GAP {
            self.floor.skip(gap);
            self.flows.values_mut().for_each(|flow| flow.floor.skip(gap));
        }
    }
}

/// Wired RTT that is assumed before the first sample.
const UNKNOWN_WIRE: Span = Span::from_millis(50);

/// Data that has left the queue since the last departure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) flow: FlowId,
    pub(super) bytes: u64,
    /// Loop of the newest part of the data, if it gives a sample.
    pub(super) sample: Option<Span>,
    /// Time at which the newest part of the data passed the box, if known.
    pub(super) passed: Option<Time>,
    /// Whether the window triggered the data.
    pub(super) called: bool,
    /// Excess delay with which the box learns that the data has left the queue.
    pub(super) late: Span,
    /// Time at which the box learned of the departure before the newest one.
    pub(super) previous: Time,
}

/// Time for which the queue was empty in the gap since the last known departure. The newest departure was queued for
/// `waited` and followed the previous departure, which may be unknown, after `own`. So the queue was empty for the share
/// `1 - waited / own` of this time. A box that reports the first packet after an interval samples the queue at an instant
/// that does not depend on the packets, so the share holds for the complete gap.
fn idle(gap: Span, own: Span, waited: Span) -> Span {
    if waited >= own {
        return Span::ZERO;
    }
    Span::from_secs_f64(gap.as_secs_f64() * (1.0 - waited.as_secs_f64() / own.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowId = FlowId(0);

    const fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + ms(millis)
    }

    fn user() -> User {
        User::new(Time::ZERO, Side::Network, Probe::new(None))
    }

    /// Idle time before 1000 bytes whose ACK arrives at `millis`, `rtt` after they passed.
    fn idle_before(user: &mut User, millis: u64, rtt: u64) -> Span {
        let sample = Some(ms(rtt));
        let progress = Progress {
            flow: FLOW,
            bytes: 1000,
            sample,
            passed: None,
            called: true,
            late: Span::ZERO,
            previous: Time::ZERO,
        };
        user.on_progress(at(millis), progress).idle
    }

    #[test]
    fn the_queue_was_idle_for_the_gap_between_departures_less_the_queueing_delay() {
        let mut user = user();
        assert_eq!(idle_before(&mut user, 100, 50), Span::ZERO, "nothing left before");
        assert_eq!(idle_before(&mut user, 300, 50), ms(200));
        assert_eq!(idle_before(&mut user, 400, 90), ms(60), "the packet was queued for 40 ms");
        assert_eq!(idle_before(&mut user, 420, 90), Span::ZERO);
    }

    #[test]
    fn data_that_leaves_without_samples_leaves_a_queue_that_is_not_empty() {
        let mut user = user();
        idle_before(&mut user, 100, 50);
        idle_before(&mut user, 300, 500);
        for millis in [1200, 1600, 2100] {
            let progress = Progress {
                flow: FLOW,
                bytes: 1000,
                sample: None,
                passed: None,
                called: false,
                late: Span::ZERO,
                previous: Time::ZERO,
            };
            user.on_progress(at(millis), progress);
            assert_eq!(user.recent_wait(at(millis + 100)), ms(450), "{millis} ms");
        }
        assert_eq!(user.recent_wait(at(3100)), Span::ZERO, "nothing left for a second");
        idle_before(&mut user, 3200, 500);
        user.note_empty(at(3200), FLOW);
        assert_eq!(user.recent_wait(at(3200)), Span::ZERO, "all is acknowledged");
    }

    #[test]
    fn the_gap_before_the_newest_departure_stands_for_departures_without_times() {
        let mut user = user();
        idle_before(&mut user, 100, 50);
        // Ten packets of unknown times, then a pause of 8 ms; the packet after the pause was queued for 2 ms.
        let progress = Progress {
            flow: FLOW,
            bytes: 11_000,
            sample: Some(ms(52)),
            passed: None,
            called: true,
            late: Span::ZERO,
            previous: at(112),
        };
        assert_eq!(user.on_progress(at(120), progress).idle, ms(15), "three quarters of 20 ms");
    }

    #[test]
    fn the_handshake_of_a_new_connection_is_a_sample_without_the_queueing_delay() {
        let mut user = user();
        assert_eq!(user.queueing_delay(at(100)), None);
        idle_before(&mut user, 100, 60);
        idle_before(&mut user, 200, 90);
        assert_eq!(user.queueing_delay(at(201)), Some(ms(30)));
        assert_eq!(user.queueing_delay(at(1201)), None, "too old");
        // 30 ms of queueing delay are in the handshake's 95 ms.
        user.on_opened(at(210), FlowId(1), ms(95));
        assert_eq!((user.least_loop(FlowId(1)), user.queueing_delay(at(211))), (ms(60), Some(ms(5))));
        user.on_opened(at(220), FlowId(2), ms(55));
        assert_eq!(user.least_loop(FlowId(2)), ms(55));
    }

    #[test]
    fn nothing_is_subtracted_from_a_handshake_shorter_than_the_queueing_delay() {
        let mut user = user();
        idle_before(&mut user, 100, 60);
        idle_before(&mut user, 300, 200);
        // The data was queued for 140 ms, so the handshake of 100 ms was not.
        user.on_opened(at(310), FlowId(1), ms(100));
        assert_eq!(user.queueing_delay(at(311)), Some(ms(40)));
    }

    /// Handshakes do not wait as long as the data before them.
    #[test]
    fn many_new_connections_do_not_lower_the_minimum_loop() {
        let mut user = user();
        idle_before(&mut user, 100, 60);
        for number in 1..20 {
            idle_before(&mut user, 200 * u64::from(number), 90);
            user.on_opened(at(200 * u64::from(number) + 50), FlowId(number), ms(70));
        }
        assert_eq!(user.floor.get(), ms(60));
    }

    #[test]
    fn a_pause_of_more_than_a_second_is_not_time_with_a_standing_queue() {
        let mut user = user();
        idle_before(&mut user, 0, 50);
        idle_before(&mut user, 500, 100);
        assert_eq!(user.floor.high_for(at(500)), ms(500));
        idle_before(&mut user, 10_500, 100);
        assert_eq!(user.floor.high_for(at(10_500)), ms(500));
    }
}
