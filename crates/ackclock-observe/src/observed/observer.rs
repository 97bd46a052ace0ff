//! Estimates the state of an observed queue from records of passing traffic, without an edge or a queue.

use std::collections::{BTreeMap, VecDeque};

use ackclock_core::{FlowId, Rate, Segment, Span, Time};
use ackclock_link::{Capacity, Departures, LinkView, Load};

use super::flow::Flow;
use super::record::{Acked, Record};
use super::user::{Progress, User};
use super::vocabulary::{Passage, Probe, Timing};
use ackclock_link::{Left, Observation, Side};

/// Minimum share of the buffer for one flow, packets.
const LEAST_PACKETS: u32 = 2;
/// Minimum of a buffer that follows the rate, packets. A slow start, and ACKs that come in clumps, need as much on any
/// link.
const LEAST_FOLLOWING: u32 = 20;

/// Estimates the rate, minimum loop and queue of each user from the [`Record`]s of the user's flows.
pub struct Observer {
    side: Side,
    probe_after: Option<Span>,
    /// Buffer `B`, shared by the flows of a user.
    capacity: Capacity,
    /// Multiple of the measured bandwidth-delay product that the buffer is, if the buffer is not `capacity`.
    follows: Option<f64>,
    /// Whether to estimate rates and delays, not only the number of flows.
    measures: bool,
    /// Whether a regulator uses the estimates.
    heeded: bool,
    left_when: Left,
    users: BTreeMap<u32, User>,
    /// User of each flow; 0 by default.
    user_numbers: Vec<u32>,
    observations: VecDeque<(Time, Observation)>,
    /// Data that has left the queue according to the estimate.
    left: VecDeque<(Time, Segment)>,
}

impl Observer {
    /// Creates an observer on the side `side` of the queue, with the buffer `capacity` for the flows of each user. A
    /// probe starts after `probe_after` without a loop near the minimum; `None` means never. The observer assumes that
    /// a regulator uses the estimates.
    pub fn new(side: Side, probe_after: Option<Span>, capacity: Capacity) -> Self {
        Self {
            side,
            probe_after,
            capacity,
            follows: None,
            measures: true,
            heeded: true,
            left_when: Left::Estimated,
            users: BTreeMap::new(),
            user_numbers: Vec::new(),
            observations: VecDeque::new(),
            left: VecDeque::new(),
        }
    }

    /// Makes the buffer of each user follow the measured rate and loop: `times` bandwidth-delay products, at least
    /// 20 packets.
    pub const fn follow(&mut self, times: f64) {
        self.follows = Some(times);
    }

    /// Side of the queue on which the box is.
    pub const fn side(&self) -> Side {
        self.side
    }

    /// Sets whether a regulator acts on departures. Without a regulator only the flows of a user are counted, unless
    /// [`measure`](Self::measure) is called.
    pub fn heed(&mut self, departures: Departures) {
        self.heeded = departures == Departures::Watched;
        self.measures = self.heeded || self.follows.is_some();
    }

    /// Estimates rates, loops and queueing delays even if no regulator uses them.
    pub const fn measure(&mut self) {
        self.measures = true;
    }

    /// Sets the condition under which data counts as departed from the queue.
    pub fn leave_when(&mut self, left_when: Left) {
        self.left_when = left_when;
    }

    /// Sets the user of a flow; by default the user is 0.
    pub fn assign(&mut self, flow: FlowId, user: u32) {
        if user > 0 || self.user_numbers.len() > flow.index() {
            self.user_numbers.resize(self.user_numbers.len().max(flow.index() + 1), 0);
            self.user_numbers[flow.index()] = user;
        }
    }

    /// Removes a flow that ended, and the flow's user if the user has no other flow.
    pub fn forget(&mut self, flow: FlowId) {
        let number = self.user_of(flow);
        if let Some(user) = self.users.get_mut(&number) {
            user.flows.remove(&flow);
            if user.flows.is_empty() {
                self.users.remove(&number);
            }
        }
    }

    /// Removes all flows and users from the observer.
    pub fn clear(&mut self) {
        self.users.clear();
    }

    /// Processes a record of a flow; one record may cover several packets.
    pub fn on_record(&mut self, record: &Record) {
        let (id, measures) = (record.flow, self.measures);
        let before = self.known(id).and_then(|flow| flow.seen);
        let before = before.as_ref();
        if let Some((at, syn)) = record.asked.filter(|_| measures && record.asks_since(before)) {
            self.on_syn(at, &syn);
        }
        if let Some((at, answer)) = record.answered.filter(|_| record.answers_since(before)) {
            self.on_syn_ack(at, &answer);
        }
        if let Some(newest) = record.passed.newest {
            self.on_passed(record, before, &newest);
        }
        if self.known(id).is_none() {
            return;
        }
        if record.repeats_since(before) {
            self.user(record.at, id).flow(record.at, id).on_repetition(record.at);
        }
        if let Some(ack) = record.acks_since(before).filter(|_| measures && self.side == Side::Network) {
            self.on_ack(&record.acked, &ack);
        }
        let flow = self.user(record.at, id).flow(record.at, id);
        record
            .told_since(before)
            .filter(|_| measures)
            .for_each(|told| flow.on_told(told.at, told.edge, told.stamp));
        flow.seen = Some(*record);
    }

    /// Handles the data that passed since the record `before`; `newest` is its last packet.
    fn on_passed(&mut self, record: &Record, before: Option<&Record>, newest: &Segment) {
        self.user(record.at, record.flow).note_others(record.others);
        let (mut missed, of_missed) = (0, record.time_of_missed(before));
        let known = before.and_then(|before| before.passed.highest);
        // Data that no record told of may have passed twice since.
        let may_repeat = record.repeats_since(before);
        record.passed_since(before).for_each(|segment| {
            let is_missed = segment.seq.before(newest.seq) || segment.end().after(newest.end());
            let is_untold = known.is_some_and(|known| segment.end().after(known));
            let time = match of_missed {
                _ if may_repeat && is_untold => Timing::Latest,
                _ if !is_missed => Timing::Exact,
                Some(at) => Timing::About(at),
                None => Timing::Latest,
            };
            self.on_data(record, &segment, time, &mut missed);
        });
        if missed > 0 {
            self.on_untimed(record, missed);
        }
    }

    /// Returns the next new estimate, in order of time.
    pub fn poll_observation(&mut self) -> Option<(Time, Observation)> {
        self.observations.pop_front()
    }

    /// Returns the next data that has left the queue according to the estimate; only on the network side.
    pub fn poll_left(&mut self) -> Option<(Time, Segment)> {
        self.left.pop_front()
    }

    /// View of the queue for a regulator of the flow: queued load, the flow's share of the buffer, and the current
    /// rate.
    pub fn view(&self, now: Time, flow: FlowId) -> LinkView {
        let Some(user) = self.users.get(&self.user_of(flow)) else {
            return self.blind(now, flow);
        };
        let bytes = match self.left_when {
            Left::Estimated => user.waiting(now),
            Left::Certain => user.flows.get(&flow).map_or(0, Flow::unacknowledged),
        };
        let packets = bytes.div_ceil(u64::from(user.payload())) as u32;
        let waiting = if packets > 0 { Load { packets, bytes } } else { Load::NONE };
        let rate = Rate::from_bps((user.mean_rate(now, flow) * 8.0) as u64);
        LinkView { waiting, occupied: waiting, rate, ..self.blind(now, flow) }
    }

    /// Queueing delay that the newest loop sample of the flow's user showed; `None` if there is no recent sample.
    pub fn queueing_delay(&self, now: Time, flow: FlowId) -> Option<Span> {
        self.users.get(&self.user_of(flow))?.queueing_delay(now)
    }

    /// View that contains only the flow's share of the buffer.
    pub(super) fn blind(&self, now: Time, flow: FlowId) -> LinkView {
        LinkView { capacity: self.share(now, flow), ..LinkView::NOTHING }
    }

    /// Number of loop samples taken for the flow's user; estimates from few samples are inaccurate.
    pub fn samples(&self, flow: FlowId) -> u64 {
        self.users.get(&self.user_of(flow)).map_or(0, User::samples)
    }

    /// Gauges of the first user: rate in bit/s, queue in bytes, minimum loop in ms, number of probes.
    pub fn gauges(&self) -> Vec<f64> {
        self.users.values().next().map_or_else(|| vec![0.0; 4], User::gauges)
    }

    /// Packets of one bandwidth-delay product of a flow's user, if a fixed buffer holds fewer: the buffer may then limit
    /// the rate. `None` if the buffer is large enough or follows the rate, and before the first loop sample.
    pub fn packets_missed(&self, now: Time, flow: FlowId) -> Option<u32> {
        let user = self.users.get(&self.user_of(flow)).filter(|user| user.samples() > 0)?;
        let packets = user.loop_packets(now, flow, 1.0);
        let holds = match (self.follows, self.capacity) {
            (None, Capacity::Packets(packets)) => packets.into(),
            (None, Capacity::Bytes(bytes)) => bytes / u64::from(user.payload()),
            _ => return None,
        };
        (holds < u64::from(packets)).then_some(packets)
    }

    /// State of a flow; `None` if no traffic of the flow has passed since it was opened or forgotten.
    fn known(&self, flow: FlowId) -> Option<&Flow> {
        self.users.get(&self.user_of(flow))?.flows.get(&flow)
    }

    fn user_of(&self, flow: FlowId) -> u32 {
        self.user_numbers.get(flow.index()).copied().unwrap_or(0)
    }

    fn user(&mut self, now: Time, flow: FlowId) -> &mut User {
        let (side, after) = (self.side, self.probe_after.filter(|_| self.heeded));
        self.users.entry(self.user_of(flow)).or_insert_with(|| User::new(now, side, Probe::new(after)))
    }

    fn on_syn(&mut self, now: Time, syn: &Segment) {
        let side = self.side;
        let flow = self.user(now, syn.flow).flow(now, syn.flow);
        flow.on_syn(now, syn.window.into());
        if side == Side::Network {
            flow.detour(now, syn, side, None);
        }
    }

    fn on_syn_ack(&mut self, now: Time, answer: &Segment) {
        let (side, id) = (self.side, answer.flow);
        let user = self.user(now, id);
        let round_trip = user.flow(now, id).on_syn_ack(now, answer.end());
        if let (Side::Mobile, Some(round_trip)) = (side, round_trip) {
            user.flow(now, id).detour(now, answer, side, Some(round_trip));
            user.on_opened(now, id, round_trip);
        }
    }

    /// Handles data of a record. `missed` sums the bytes that have no record of their own: their times are unknown, so
    /// the newest packet of the record stands for them.
    fn on_data(&mut self, record: &Record, segment: &Segment, time: Timing, missed: &mut u64) {
        let (now, id, measures) = (record.passed.at, segment.flow, self.measures);
        let user = self.user(now, id);
        let passage = user.flow(now, id).on_data(now, segment);
        user.note_data(now, segment);
        match self.side {
            _ if !measures => (),
            Side::Network => {
                let forgotten = self.user(now, id).flow(now, id).remember(now, segment, passage, time);
                self.left.extend(forgotten.map(|segment| (now, segment)));
            }
            Side::Mobile if time != Timing::Exact => *missed += u64::from(segment.payload),
            Side::Mobile => {
                let bytes = std::mem::take(missed) + u64::from(segment.payload);
                if !passage.is_new {
                    self.user(now, id).flow(now, id).on_repetition(now);
                }
                self.on_arrived(record, segment, passage, bytes);
            }
        }
    }

    /// Handles data behind the queue whose record has no time of it.
    fn on_untimed(&mut self, record: &Record, bytes: u64) {
        let (now, flow) = (record.passed.at, record.flow);
        let progress = Progress {
            flow,
            bytes,
            sample: None,
            passed: Some(now),
            called: false,
            late: Span::ZERO,
            previous: now,
        };
        let observation = self.user(now, flow).on_progress(now, progress);
        self.observations.push_back((now, observation));
    }

    /// Handles the newest data of a record behind the queue; `bytes` arrived since the last record.
    fn on_arrived(&mut self, record: &Record, segment: &Segment, passage: Passage, bytes: u64) {
        let (now, previous, side, flow) = (record.passed.at, record.passed.previous, self.side, segment.flow);
        let user = self.user(now, flow);
        let sample = passage
            .since_told
            .map(|since| since.saturating_sub(user.flow(now, flow).detour(now, segment, side, Some(since))));
        let delay = passage.since_told.and_then(|_| user.flow(now, flow).echoed_delay(now, segment));
        let called = passage.prompt.unwrap_or(true);
        let (late, passed) = (Span::ZERO, Some(now));
        let progress = Progress { flow, bytes, sample, passed, called, late, previous };
        let observation = user.on_progress(now, progress);
        delay.into_iter().for_each(|delay| user.report(now, delay));
        self.observations.push_back((now, observation));
    }

    fn on_ack(&mut self, acked: &Acked, ack: &Segment) {
        let (now, previous) = (acked.at, acked.previous);
        let (id, left_when, mut left) = (ack.flow, self.left_when, std::mem::take(&mut self.left));
        let user = self.user(now, id);
        let handshake = user.flow(now, id).take_handshake(now);
        let acknowledged = user.flow(now, id).on_ack(now, ack, |segment| left.push_back((now, *segment)));
        let (sample, called) = acknowledged.newest.unzip();
        let late = user.flow(now, id).detour(now, ack, Side::Network, sample);
        let mut observation = None;
        if acknowledged.bytes > 0 {
            let (bytes, called) = (acknowledged.bytes, called.unwrap_or(false));
            let passed = sample.map(|sample| now - sample);
            let sample = sample.map(|sample| sample.saturating_sub(late));
            let progress = Progress { flow: id, bytes, sample, passed, called, late, previous };
            observation = Some(user.on_progress(now, progress));
            user.note_empty(now, id);
        } else if let Some(round_trip) = handshake {
            user.on_opened(now, id, round_trip);
        }
        let certain = user.probe.runs() || left_when == Left::Certain;
        let share = if certain { 0 } else { user.share_of_loop(now, id) };
        user.flow(now, id).leave(share, |segment| left.push_back((now, *segment)));
        self.left = left;
        self.observations
            .extend(observation.map(|observation| (now, Observation { leaves: share, ..observation })));
    }

    /// A flow's share of the buffer, in packets of `payload` bytes or in bytes including headers.
    fn share(&self, now: Time, flow: FlowId) -> Capacity {
        let Some(user) = self.users.get(&self.user_of(flow)) else { return self.capacity };
        if user.probe.runs() {
            return Capacity::Packets(LEAST_PACKETS);
        }
        // Whether the box is behind the queue and uses estimates: data that leaves within a loop is then in transit.
        let behind = self.heeded && self.side == Side::Mobile && self.left_when == Left::Estimated;
        let ahead = if behind { user.share_of_loop(now, flow) } else { 0 };
        let (active, payload) = (user.active(), u64::from(user.payload()));
        let follows = |times| Capacity::Packets(user.loop_packets(now, flow, times).max(LEAST_FOLLOWING));
        match self.follows.map_or(self.capacity, follows) {
            Capacity::Unlimited => Capacity::Unlimited,
            Capacity::Packets(packets) => {
                let ahead = u32::try_from(ahead / payload).unwrap_or(u32::MAX);
                let share = (f64::from(packets) / active) as u32;
                Capacity::Packets(share.saturating_add(ahead).max(LEAST_PACKETS))
            }
            Capacity::Bytes(bytes) => {
                let share = (bytes as f64 / active) as u64;
                Capacity::Bytes(share.saturating_add(ahead).max(u64::from(LEAST_PACKETS) * payload))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{Flags, Seq};

    use super::super::vocabulary::Run;
    use super::*;

    /// A sender's kernel sends bursts of many packets at once, and the box makes one record per millisecond.
    #[test]
    fn a_packet_without_a_record_of_its_own_gives_no_short_loop() {
        let (flow, mut observer) = (FlowId(0), Observer::new(Side::Network, None, Capacity::Packets(50)));
        let mut record = Record::new(flow);
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        for burst in 0..5u32 {
            let (now, seq) = (u64::from(burst) * 40, Seq(burst * 3000));
            record.on_down(at(now), &Segment::data(flow, seq, 1000, 40));
            observer.on_record(&record);
            // These two pass within the same millisecond: the next record counts them, when the first is acknowledged.
            (1..3).for_each(|number| {
                _ = record.on_down(at(now), &Segment::data(flow, seq + number * 1000, 1000, 40))
            });
            for (millis, acked) in [(40, 1000), (41, 3000)] {
                if millis == 41 {
                    record.on_down(at(now + 40), &Segment::data(flow, seq + 3000, 1000, 40));
                }
                record.on_up(at(now + millis), &Segment::pure_ack(flow, seq + acked, 40));
                observer.on_record(&record);
            }
        }
        let [_, _, least_ms, _] = observer.gauges()[..] else { panic!("four gauges") };
        assert!(least_ms >= 40.0, "{least_ms} ms");
    }

    #[test]
    fn a_buffer_of_one_bandwidth_delay_product_is_large_enough() {
        let flow = FlowId(0);
        let missed = |capacity| {
            let (mut observer, mut record) =
                (Observer::new(Side::Network, None, capacity), Record::new(flow));
            // A packet every 4 ms, whose ACK comes 40 ms later.
            for number in 0..200u32 {
                let now = Time::ZERO + Span::from_millis(4) * u64::from(number);
                if let Some(acked) = number.checked_sub(9) {
                    record.on_up(now, &Segment::pure_ack(flow, Seq(1000 * acked), 40));
                }
                record.on_down(now, &Segment::data(flow, Seq(1000 * number), 1000, 40));
                observer.on_record(&record);
            }
            observer.packets_missed(Time::ZERO + Span::from_millis(800), flow)
        };
        let product = missed(Capacity::Packets(1)).expect("one packet is not enough");
        assert_eq!(missed(Capacity::Packets(product - 1)), Some(product));
        assert_eq!(missed(Capacity::Packets(product)), None);
    }

    /// A packet passes every 0.3 ms and is never queued. Every fourth packet has a record, and a new right edge.
    #[test]
    fn idle_time_between_packets_without_records_of_their_own_is_seen() {
        // A packet passes 30 ms after its right edge, and its ACK another 30 ms later.
        const LOOP: u32 = 100;
        let flow = FlowId(0);
        for side in [Side::Mobile, Side::Network] {
            let mut observer = Observer::new(side, None, Capacity::Packets(500));
            let (mut record, mut idle) = (Record::new(flow), Span::ZERO);
            let mut syn = Segment::pure_ack(flow, Seq(0), 40);
            (syn.flags, syn.window) = (Flags::SYN, 0);
            record.on_up(Time::ZERO, &syn);
            for number in 0..4000u32 {
                let now = Time::ZERO + Span::from_micros(300) * u64::from(number);
                let ack = |packets: u32| Segment::pure_ack(flow, Seq(1000 * packets), 40);
                if let Some(acked) = number.checked_sub(2 * LOOP) {
                    record.on_up(now, &ack(acked));
                }
                let mut told = ack(number - number % 4 + 4);
                told.window = 0;
                told.set_scale(Some(0));
                record.on_told(now, &told);
                if let Some(packet) = number.checked_sub(LOOP) {
                    record.on_down(now, &Segment::data(flow, Seq(1000 * packet), 1000, 40));
                }
                if number % 4 == 0 {
                    observer.on_record(&record);
                }
                while let Some((_, observation)) = observer.poll_observation() {
                    idle += if number < 1000 { Span::ZERO } else { observation.idle };
                }
            }
            // Of 3000 intervals of 0.3 ms.
            assert!(idle.as_secs_f64() > 0.89, "{side:?}: {idle:?}");
        }
    }

    /// The last packet of a burst has no record of its own, and is retransmitted before its ACK comes.
    #[test]
    fn data_that_passes_again_before_a_record_told_of_it_has_no_loop() {
        let (flow, mut record) = (FlowId(0), Record::new(FlowId(0)));
        let mut observer = Observer::new(Side::Network, None, Capacity::Packets(50));
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let data = |packet: u32| Segment::data(flow, Seq(1000 * packet), 1000, 40);
        record.on_down(at(0), &data(0));
        observer.on_record(&record);
        record.on_down(at(0), &data(1));
        record.on_up(at(60), &Segment::pure_ack(flow, Seq(1000), 40));
        observer.on_record(&record);
        record.on_down(at(100), &data(2));
        observer.on_record(&record);
        record.on_down(at(100), &data(3));
        record.on_down(at(250), &data(3));
        record.passed.repeated += 1;
        observer.on_record(&record);
        record.on_up(at(260), &Segment::pure_ack(flow, Seq(4000), 40));
        observer.on_record(&record);
        assert_eq!(observer.gauges()[2], 60.0, "not the 10 ms from the retransmission");
    }

    /// A burst of ten packets has the record of its first one; the next record comes 50 ms later.
    #[test]
    fn packets_that_passed_just_after_a_record_have_a_loop() {
        let (flow, mut record) = (FlowId(0), Record::new(FlowId(0)));
        let mut observer = Observer::new(Side::Network, None, Capacity::Packets(50));
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let data = |packet: u32| Segment::data(flow, Seq(1000 * packet), 1000, 40);
        record.on_down(at(0), &data(0));
        observer.on_record(&record);
        (1..10).for_each(|packet| _ = record.on_down(at(1), &data(packet)));
        record.on_down(at(50), &data(10));
        observer.on_record(&record);
        record.on_up(at(80), &Segment::pure_ack(flow, Seq(5000), 40));
        observer.on_record(&record);
        assert_eq!((observer.samples(flow), observer.gauges()[2]), (1, 80.0));
    }

    #[test]
    fn a_flow_that_sends_a_byte_a_second_takes_no_part_of_the_buffer() {
        let mut observer = Observer::new(Side::Network, None, Capacity::Packets(40));
        let mut records: Vec<_> = (0..201).map(|number| Record::new(FlowId(number))).collect();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        for step in 0..400u32 {
            let now = at(u64::from(step) * 10);
            let mut pass = |number: usize, seq, payload| {
                let flow = FlowId(number as u32);
                records[number].on_down(now, &Segment::data(flow, Seq(seq), payload, 40));
                observer.on_record(&records[number]);
            };
            pass(0, step * 1000, 1000);
            if step % 100 == 0 {
                (1..201).for_each(|number| pass(number, step, 1));
            }
        }
        assert_eq!(observer.view(at(4000), FlowId(0)).capacity, Capacity::Packets(39));
        // A second download has its half when it has sent a quarter of what the first did.
        for step in 400..500u32 {
            for (number, begun) in [(0, 0), (1, 400)] {
                let (flow, seq) = (FlowId(number), Seq((step - begun) * 1000));
                let record = &mut records[flow.index()];
                record.on_down(at(u64::from(step) * 10), &Segment::data(flow, seq, 1000, 40));
                observer.on_record(record);
            }
        }
        assert_eq!(observer.view(at(5000), FlowId(1)).capacity, Capacity::Packets(19));
    }

    #[test]
    fn a_probe_closes_the_windows_to_two_packets() {
        let mut observer = Observer::new(Side::Network, Some(Span::from_secs(1)), Capacity::Packets(50));
        let (flow, mut record) = (FlowId(0), Record::new(FlowId(0)));
        record.on_down(Time::ZERO, &Segment::data(flow, Seq(0), 1000, 40));
        observer.on_record(&record);
        assert_eq!(observer.view(Time::ZERO, flow).capacity, Capacity::Packets(50));
        observer.user(Time::ZERO, flow).probe.runs = Some(Run { since: Time::ZERO, empty: None });
        assert_eq!(observer.view(Time::ZERO, flow).capacity, Capacity::Packets(2));
    }
}
