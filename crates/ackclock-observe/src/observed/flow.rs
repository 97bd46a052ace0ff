//! Observed state of one flow: windows advertised to its sender, data that passed the box, and the flow's ACKs.

use std::collections::VecDeque;

use ackclock_core::{SackBlock, Segment, Seq, Span, Time, Timestamps};

use super::detour::Detour;
use super::echoed::Echoed;
use super::floor::Floor;
use super::outstanding::Outstanding;
use super::record::Record;
use super::vocabulary::{Acknowledged, Passage, Passed, Timing};
use crate::estimate::{Recent, WindowedMin};
use ackclock_link::Side;

/// Observed state of one flow.
#[derive(Debug)]
pub(super) struct Flow {
    /// Last record of the flow.
    pub(super) seen: Option<Record>,
    /// Time at which data last passed the box.
    active: Option<Time>,
    /// End of the highest data that passed the box.
    highest: Option<Seq>,
    reach: i64,
    /// Furthest right edge advertised to the sender.
    edge: Option<Seq>,
    told: VecDeque<AdvertisedEdge>,
    /// Time at which the mobile's SYN passed, and the SYN's window; then the time at which the SYN-ACK passed.
    syn: Option<(Time, u32)>,
    syn_ack: Option<Time>,
    /// Round-trip time between box and sender.
    wired: WindowedMin,
    /// Data that passed the box and is not acknowledged; used only by a box before the queue.
    passed: Outstanding,
    /// Numbers of the segments that an ACK covers; kept to reuse the memory.
    covered: Vec<u64>,
    /// All segments in `passed` with a number below `staying` have left the queue.
    staying: u64,
    /// Time at which data last passed that had passed before.
    repeated: Option<Time>,
    /// Whether data has passed again since the last observation.
    repeats: bool,
    /// Number of unacknowledged bytes.
    unacknowledged: u64,
    left: u64,
    /// Minimum loop of the flow; used only by a box behind the queue.
    pub(super) floor: Floor,
    /// Whether the sender sent its last new data as soon as the window allowed.
    prompt: bool,
    /// Time at which the sender last began an answer, which has not waited for the right edges told before.
    answers_since: Time,
    /// Bytes of the flow that passed in the last one to two seconds.
    recent_bytes: Recent<u64>,
    /// Excess delay of the part of the loop without the queue.
    detour: Detour,
    /// Queueing delay from timestamp echoes; used only by a box behind the queue.
    echoed: Echoed,
}

/// A right edge advertised to the sender.
#[derive(Clone, Copy, Debug)]
struct AdvertisedEdge {
    at: Time,
    edge: Seq,
    /// TSval of the ACK with this right edge, which the sender echoes from then on.
    stamp: Option<u32>,
}

/// Maximum number of remembered right edges and segments; the oldest are dropped.
const MOST_TOLD: usize = 4096;
const MOST_PASSED: usize = 1 << 16;
/// Maximum number of segments that start in a SACK block and extend beyond it before the search ends; senders keep
/// segment boundaries.
const MOST_PARTLY: usize = 64;
/// Time without data after which a flow is not active.
const QUIET: Span = Span::from_secs(2);
/// Fraction of the round-trip time, as a divisor: data that arrives later than expected by at most this fraction, plus
/// `PROMPT`, was triggered by the window.
const PROMPT_PART: u64 = 8;
const PROMPT: Span = Span::from_millis(2);
/// Length of an interval over which recent bytes are summed.
const RECENT: Span = Span::from_secs(1);

impl Flow {
    pub(super) fn new(now: Time) -> Self {
        Self {
            seen: None,
            active: None,
            highest: None,
            reach: 0,
            edge: None,
            told: VecDeque::new(),
            syn: None,
            syn_ack: None,
            wired: WindowedMin::from_first_sample(),
            passed: Outstanding::default(),
            covered: Vec::new(),
            staying: 0,
            repeated: None,
            repeats: false,
            unacknowledged: 0,
            left: 0,
            floor: Floor::new(now),
            prompt: true,
            answers_since: Time::ZERO,
            recent_bytes: Recent::since(Time::ZERO, RECENT),
            detour: Detour::default(),
            echoed: Echoed::default(),
        }
    }

    /// Whether the flow had data recently.
    pub(super) fn is_active(&self, now: Time) -> bool {
        self.active.is_some_and(|at| now.since(at) < QUIET)
    }

    /// Number of bytes that passed in the last one to two seconds; 0 for a flow that had no data in the last two.
    pub(super) fn recent_bytes(&self, now: Time) -> u64 {
        if self.is_active(now) { self.recent_bytes.both().into_iter().sum() } else { 0 }
    }

    /// Handles the mobile's SYN, after which the sender may send `window` bytes.
    pub(super) const fn on_syn(&mut self, now: Time, window: u32) {
        self.syn = Some((now, window));
    }

    /// Handles the SYN-ACK, which ends at `end`. Returns the time since the SYN.
    pub(super) fn on_syn_ack(&mut self, now: Time, end: Seq) -> Option<Span> {
        self.syn_ack = Some(now);
        let (asked, window) = self.syn.take()?;
        // The sender may have sent the complete window of the SYN, even if a smaller right edge is advertised next.
        self.on_told(asked, end + window, None);
        let round_trip = now.since(asked);
        self.wired.add(now, round_trip);
        self.echoed.on_loop(round_trip);
        Some(round_trip)
    }

    /// Handles the mobile's first ACK. Returns the time since the SYN-ACK.
    pub(super) fn take_handshake(&mut self, now: Time) -> Option<Span> {
        Some(now.since(self.syn_ack.take()?))
    }

    /// Records that the right edge `edge` is advertised to the sender.
    pub(super) fn on_told(&mut self, at: Time, edge: Seq, stamp: Option<u32>) {
        if self.edge.is_none_or(|old| edge.after(old)) {
            self.edge = Some(edge);
            if self.told.len() == MOST_TOLD {
                self.told.pop_front();
            }
            self.told.push_back(AdvertisedEdge { at, edge, stamp });
        }
    }

    /// Handles a data segment that passes the box.
    pub(super) fn on_data(&mut self, now: Time, segment: &Segment) -> Passage {
        let active = self.active.replace(now);
        let end = segment.end();
        if self.highest.is_some_and(|highest| end.at_or_before(highest)) {
            return Passage { is_new: false, since_told: None, prompt: Some(false) };
        }
        self.reach = self.place(end);
        self.highest = Some(end);
        while self.told.front().is_some_and(|told| told.edge.before(end)) {
            self.told.pop_front();
        }
        let pause = active.map(|active| now.since(active));
        if self.is_answer(segment, pause) {
            self.answers_since = now;
        }
        let told = self.told.front().filter(|told| told.at >= self.answers_since);
        let since_told = told.map(|told| now.since(told.at));
        let prompt = self.is_prompt(segment);
        self.prompt = prompt.unwrap_or(true);
        *self.recent_bytes.at(now) += u64::from(segment.payload);
        Passage { is_new: true, since_told, prompt }
    }

    /// Queueing delay of new data that just passed, as timestamps show it; `None` without timestamps.
    pub(super) fn echoed_delay(&mut self, now: Time, segment: &Segment) -> Option<Span> {
        let heard = self.heard(segment.timestamps()?).checked_sub(1)?;
        let heard = self.told.get(heard)?.at;
        self.echoed.on_data(now, segment, heard)
    }

    /// Number of right edges that the sender knew when it sent these timestamps, of those that are remembered.
    fn heard(&self, timestamps: Timestamps) -> usize {
        let not_heard = |told: &AdvertisedEdge| {
            told.stamp.is_some_and(|stamp| Timestamps::is_later(stamp, timestamps.echo))
        };
        self.told.partition_point(|told| !not_heard(told))
    }

    /// Whether the sender sent a segment promptly: no right edge newer than the needed one had reached the sender
    /// before. `None` if the segment has no timestamps or needed no known right edge.
    fn is_prompt(&self, segment: &Segment) -> Option<bool> {
        let (needed, timestamps) = (self.told.front()?, segment.timestamps()?);
        let last = self.heard(timestamps).checked_sub(1).map_or(needed, |last| &self.told[last]);
        Some(last.at.since(needed.at) <= self.least() / PROMPT_PART + PROMPT)
    }

    /// Shortest loop of the flow, or its round-trip time to the sender where no loop is known.
    fn least(&self) -> Span {
        self.wired.get().filter(|_| !self.floor.is_known()).unwrap_or(self.floor.get())
    }

    /// Whether a segment answers a packet of the mobile that told no right edge, as the data after a request: the sender
    /// had heard this packet long after the last right edge, and no data had arrived for a loop (`pause`). The mobile's
    /// clock counts milliseconds, as most do (RFC 7323 section 5.4); a slower clock hides short pauses.
    fn is_answer(&self, segment: &Segment, pause: Option<Span>) -> bool {
        let Some(timestamps) = segment.timestamps() else { return false };
        let last = self.heard(timestamps).checked_sub(1).and_then(|last| self.told.get(last));
        let Some(stamp) = last.and_then(|last| last.stamp) else { return false };
        let later = Span::from_millis(timestamps.echo.wrapping_sub(stamp).into());
        pause.is_none_or(|pause| pause >= self.least()) && later > self.least() / PROMPT_PART + PROMPT
    }

    /// Handles a segment of the end whose timestamps divide the loop. Returns the excess delay of the part without the
    /// queue.
    pub(super) fn detour(&mut self, now: Time, segment: &Segment, side: Side, all: Option<Span>) -> Span {
        let Some(timestamps) = segment.timestamps() else { return Span::ZERO };
        self.detour.beyond(now, timestamps.value, side, all)
    }

    /// Handles data that passed before: it fills a hole. The mobile acknowledges the data behind the hole late, when the hole
    /// is filled.
    pub(super) const fn on_repetition(&mut self, now: Time) {
        (self.repeated, self.repeats) = (Some(now), true);
    }

    /// Whether data passed again since the last call.
    pub(super) const fn take_repetition(&mut self) -> bool {
        std::mem::replace(&mut self.repeats, false)
    }

    /// Stores data that passed until it is acknowledged. If the record was full, returns the oldest segment, which was
    /// removed from the record, provided that this segment is still in the queue.
    pub(super) fn remember(
        &mut self,
        now: Time,
        segment: &Segment,
        passage: Passage,
        time: Timing,
    ) -> Option<Segment> {
        let called = passage.since_told.is_some_and(|since| {
            let wired = self.wired.get();
            wired.is_some_and(|wired| since <= wired + wired / PROMPT_PART + PROMPT)
        });
        let called = passage.prompt.unwrap_or(called);
        if let Some(since) = passage.since_told {
            self.wired.add(now, since);
        }
        let place = self.place(segment.seq);
        if !passage.is_new {
            self.passed.mark_repeated(place);
            self.on_repetition(now);
        }
        let forgotten = if self.passed.span() == MOST_PASSED { self.forget_first() } else { None };
        let is_repetition = !passage.is_new;
        self.unacknowledged += u64::from(segment.payload);
        let at = if let Timing::About(at) = time { at } else { now };
        let (segment, repeated, has_left) = (*segment, is_repetition || time == Timing::Latest, false);
        self.passed.push(Passed { segment, at, place, called, is_repetition, repeated, has_left });
        forgotten
    }

    fn forget_first(&mut self) -> Option<Segment> {
        let first = self.remove(self.passed.first()?)?;
        Some(first.segment).filter(|_| !first.has_left)
    }

    /// Position of a sequence number that is within 2^31 of the highest one.
    fn place(&self, seq: Seq) -> i64 {
        let highest = self.highest.unwrap_or(seq);
        self.reach + i64::from(seq.0.wrapping_sub(highest.0) as i32)
    }

    /// Processes an ACK: removes acknowledged segments, and calls `on_left` for each acknowledged segment that had not
    /// left the queue before.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ack: &Segment,
        mut on_left: impl FnMut(&Segment),
    ) -> Acknowledged {
        let mut acknowledged = Acknowledged::default();
        let mut newest: Option<Passed> = None;
        let mut covered = std::mem::take(&mut self.covered);
        self.note_covered(ack, &mut covered);
        let (number_at, repeated) = (self.place(ack.ack), self.repeated);
        // Whether the ACK number covers data that may have been behind a hole; SACK reports such data at once.
        let behind_hole = |passed: &Passed| {
            passed.place < number_at && repeated.is_some_and(|repeated| passed.at < repeated)
        };
        for number in covered.drain(..) {
            let Some(passed) = self.remove(number) else { continue };
            acknowledged.bytes += u64::from(passed.segment.payload);
            if !passed.has_left {
                on_left(&passed.segment);
            }
            if !passed.repeated && !behind_hole(&passed) && newest.is_none_or(|other| passed.at >= other.at) {
                newest = Some(passed);
            }
        }
        self.covered = covered;
        acknowledged.newest = newest.map(|passed| (now.since(passed.at), passed.called));
        acknowledged
    }

    /// Collects the numbers of segments that an ACK covers completely, in the order in which the segments passed.
    fn note_covered(&self, ack: &Segment, covered: &mut Vec<u64>) {
        self.within(i64::MIN, self.place(ack.ack), covered);
        for &SackBlock { left, right } in ack.sack() {
            self.within(self.place(left), self.place(right), covered);
        }
        covered.sort_unstable();
    }

    /// Collects the numbers of segments within the positions `left..right`.
    fn within(&self, left: i64, right: i64, numbers: &mut Vec<u64>) {
        if left >= right {
            return;
        }
        let mut partly = 0;
        for (place, number) in self.passed.within(left, right) {
            #[cfg(test)]
            tests::look();
            let len = self.passed.get(number).map_or(0, |passed| passed.segment.sequence_space());
            if place + i64::from(len) <= right {
                numbers.push(number);
            } else {
                partly += 1;
                if partly == MOST_PARTLY {
                    return;
                }
            }
        }
    }

    fn remove(&mut self, number: u64) -> Option<Passed> {
        let passed = self.passed.remove(number)?;
        self.unacknowledged -= u64::from(passed.segment.payload);
        if passed.has_left {
            self.left -= u64::from(passed.segment.payload);
        }
        Some(passed)
    }

    /// Marks the first `bytes` unacknowledged bytes as having left the queue; calls `on_left` for each segment that had
    /// not left before.
    pub(super) fn leave(&mut self, bytes: u64, mut on_left: impl FnMut(&Segment)) {
        while let Some(number) = self.passed.next_from(self.staying)
            && let Some(passed) = self.passed.get_mut(number)
        {
            let payload = u64::from(passed.segment.payload);
            if self.left + payload > bytes {
                return;
            }
            passed.has_left = true;
            on_left(&passed.segment);
            self.left += payload;
            self.staying = number + 1;
        }
    }

    /// Round-trip time between box and sender; `None` if unknown.
    pub(super) fn wired(&self) -> Option<Span> {
        self.wired.get()
    }

    /// Number of bytes that passed the box and are not acknowledged.
    pub(super) const fn unacknowledged(&self) -> u64 {
        self.unacknowledged
    }

    /// Number of bytes that the sender was allowed to send and that have not arrived. If the sender leaves its window
    /// unused, the number is at most the bytes that arrived recently.
    pub(super) fn called_for(&self) -> u64 {
        let told: u64 = match (self.edge, self.highest) {
            (Some(edge), Some(highest)) => edge.since(highest).into(),
            _ => 0,
        };
        if self.prompt { told } else { told.min(self.recent_bytes.both().into_iter().sum()) }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{FlowId, SackBlock, Timestamps};

    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn data(seq: u32) -> Segment {
        Segment::data(FlowId(0), Seq(seq), 1000, 40)
    }

    fn ack(number: u32, sack: &[(u32, u32)]) -> Segment {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(number), 40);
        sack.iter().for_each(|&(left, right)| {
            ack.push_sack(SackBlock { left: Seq(left), right: Seq(right) });
        });
        ack
    }

    fn pass(flow: &mut Flow, millis: u64, seq: u32) {
        let passage = flow.on_data(at(millis), &data(seq));
        flow.remember(at(millis), &data(seq), passage, Timing::Exact);
    }

    /// Processes an ACK; returns bytes, loop in ms, and the numbers of segments that left.
    fn acknowledge(flow: &mut Flow, millis: u64, ack: &Segment) -> (u64, Option<Span>, Vec<u32>) {
        let mut left = Vec::new();
        let told = flow.on_ack(at(millis), ack, |segment| left.push(segment.seq.0));
        (told.bytes, told.newest.map(|(span, _)| span), left)
    }

    #[test]
    fn an_ack_has_the_loop_of_the_newest_that_it_acknowledges() {
        let mut flow = Flow::new(at(0));
        [(10, 0), (20, 1000), (30, 2000)].into_iter().for_each(|(millis, seq)| pass(&mut flow, millis, seq));
        let loop_of = Some(Span::from_millis(80));
        assert_eq!(acknowledge(&mut flow, 100, &ack(2000, &[])), (2000, loop_of, vec![0, 1000]));
        assert_eq!(flow.unacknowledged(), 1000);
    }

    #[test]
    fn sack_acknowledges_and_what_was_sent_again_has_no_loop() {
        let mut flow = Flow::new(at(0));
        [(10, 0), (20, 1000)].into_iter().for_each(|(millis, seq)| pass(&mut flow, millis, seq));
        let loop_of = Some(Span::from_millis(40));
        assert_eq!(acknowledge(&mut flow, 60, &ack(0, &[(1000, 2000)])), (1000, loop_of, vec![1000]));
        pass(&mut flow, 70, 0);
        // Both transmissions of the first are finished; neither has a loop sample.
        assert_eq!(acknowledge(&mut flow, 120, &ack(2000, &[])), (2000, None, vec![0, 0]));
        assert_eq!((flow.passed.len(), flow.passed.span(), flow.left), (0, 0, 0));
    }

    #[test]
    fn what_left_stays_left_and_leaves_once() {
        let mut flow = Flow::new(at(0));
        (0..4).for_each(|number| pass(&mut flow, 10, number * 1000));
        let mut left = Vec::new();
        flow.leave(2500, |segment| left.push(segment.seq.0));
        flow.leave(1000, |segment| left.push(segment.seq.0));
        assert_eq!(left, [0, 1000]);
        // The first two are acknowledged: 1000 of the other bytes may have left.
        assert_eq!(acknowledge(&mut flow, 20, &ack(2000, &[])).2, [0; 0]);
        flow.leave(1000, |segment| left.push(segment.seq.0));
        assert_eq!(left, [0, 1000, 2000]);
    }

    #[test]
    fn data_is_called_for_where_it_comes_as_soon_as_it_can() {
        let mut flow = Flow::new(at(0));
        flow.on_syn(at(0), 0);
        assert_eq!(flow.on_syn_ack(at(40), Seq(0)), Some(Span::from_millis(40)));
        flow.on_told(at(100), Seq(1000), None);
        flow.on_told(at(110), Seq(2000), None);
        // 40 ms and an eighth of it and 2 ms are 47 ms.
        pass(&mut flow, 147, 0);
        pass(&mut flow, 158, 1000);
        let told = flow.on_ack(at(200), &ack(1000, &[]), |_| ());
        assert_eq!(told.newest, Some((Span::from_millis(53), true)));
        let told = flow.on_ack(at(200), &ack(2000, &[]), |_| ());
        assert_eq!(told.newest, Some((Span::from_millis(42), false)));
    }

    /// A sender that paces sends later than the window allows. Its timestamps say that it waited for the window.
    #[test]
    fn the_echo_of_a_right_edge_shows_that_data_before_the_queue_was_called_for() {
        for (echo, called) in [(1000, true), (1200, false)] {
            let mut flow = Flow::new(at(0));
            flow.on_syn(at(0), 0);
            flow.on_syn_ack(at(40), Seq(0));
            // The sender needed the first of these two.
            [(100, 1000), (120, 1200)].into_iter().for_each(|(now, stamp)| {
                flow.on_told(at(now), Seq(10 * (now as u32)), Some(stamp));
            });
            let mut segment = data(0);
            segment.set_timestamps(Timestamps { value: 1, echo });
            let passage = flow.on_data(at(180), &segment);
            flow.remember(at(180), &segment, passage, Timing::Exact);
            let told = flow.on_ack(at(200), &ack(1000, &[]), |_| ());
            assert_eq!(told.newest, Some((Span::from_millis(20), called)), "{echo}");
        }
    }

    #[test]
    fn data_within_the_window_of_the_syn_was_not_called_for_by_a_smaller_one() {
        let mut flow = Flow::new(at(0));
        flow.on_syn(at(0), 10_000);
        flow.on_syn_ack(at(40), Seq(0));
        flow.on_told(at(50), Seq(3000), None);
        let since = |flow: &mut Flow, seq| flow.on_data(at(90), &data(seq)).since_told;
        assert_eq!(since(&mut flow, 3000), Some(Span::from_millis(90)));
        flow.on_told(at(90), Seq(12_000), None);
        assert_eq!(since(&mut flow, 10_000), Some(Span::ZERO));
    }

    #[test]
    fn data_is_prompt_where_its_source_had_heard_of_no_further_edge() {
        let mut flow = Flow::new(at(0));
        [(100, 1000), (110, 2000), (400, 3000)].into_iter().for_each(|(millis, edge)| {
            flow.on_told(at(millis), Seq(edge), Some(millis as u32));
        });
        let mut passage = |seq, echo| {
            let mut segment = data(seq);
            segment.set_timestamps(Timestamps { value: 0, echo });
            flow.on_data(at(500), &segment)
        };
        // The loop is unknown: an eighth of 100 ms and 2 ms are 14.5 ms.
        assert_eq!(
            passage(0, 110),
            Passage { is_new: true, since_told: Some(Span::from_millis(400)), prompt: Some(true) }
        );
        assert_eq!(
            passage(1000, 405),
            Passage { is_new: true, since_told: Some(Span::from_millis(390)), prompt: Some(false) }
        );
        // At most what arrived recently can be in transit.
        assert_eq!(flow.called_for(), 1000);
        let mut last = data(2000);
        last.payload = 500;
        let passage = flow.on_data(at(600), &last);
        assert_eq!(passage.prompt, None, "without timestamps nothing is known");
        assert_eq!(flow.called_for(), 500);
    }

    /// A connection is open for ten seconds, then the mobile asks for data, and again five seconds later.
    #[test]
    fn the_answer_to_a_request_after_a_pause_has_not_waited_for_its_window() {
        let mut flow = Flow::new(at(0));
        flow.on_syn(at(0), 500);
        flow.on_syn_ack(at(40), Seq(0));
        flow.on_told(at(41), Seq(5000), Some(41));
        let arrives = |flow: &mut Flow, millis: u64, seq: u32, echo: u32| {
            let mut segment = data(seq);
            segment.set_timestamps(Timestamps { value: 0, echo });
            flow.on_data(at(millis), &segment).since_told
        };
        assert_eq!(arrives(&mut flow, 10_050, 0, 10_000), None, "the first answer");
        assert_eq!(arrives(&mut flow, 10_050, 1000, 10_000), None, "its second packet");
        flow.on_told(at(10_051), Seq(6000), Some(10_051));
        assert_eq!(arrives(&mut flow, 15_050, 2000, 15_000), None, "five seconds later");
        // An outage: the sender had heard only of the right edge when it sent the data.
        flow.on_told(at(15_051), Seq(7000), Some(15_051));
        let waited = arrives(&mut flow, 20_000, 6000, 15_052);
        assert_eq!(waited, Some(Span::from_millis(4949)));
    }

    #[test]
    fn of_a_source_that_does_not_fill_its_window_no_more_is_in_flight_than_arrived_lately() {
        let mut flow = Flow::new(at(0));
        [(100, 1000), (400, 50_000)].into_iter().for_each(|(millis, edge)| {
            flow.on_told(at(millis), Seq(edge), Some(millis as u32));
        });
        let mut segment = data(0);
        segment.set_timestamps(Timestamps { value: 0, echo: 405 });
        assert_eq!(flow.on_data(at(500), &segment).prompt, Some(false));
        assert_eq!(flow.called_for(), 1000, "the window allows 49 000");
    }

    thread_local! {
        static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// Counts one comparison with a segment.
    pub(super) fn look() {
        LOOKS.set(LOOKS.get() + 1);
    }

    #[test]
    fn an_ack_with_sack_looks_at_what_it_acknowledges_however_much_is_outstanding() {
        let looks = |outstanding: u32| {
            let mut flow = Flow::new(at(0));
            (0..outstanding).for_each(|number| pass(&mut flow, 10, number * 1000));
            LOOKS.set(0);
            // The first is missing; segments in the middle, and retransmissions, are SACKed one by one.
            for number in outstanding / 2..outstanding / 2 + 100 {
                pass(&mut flow, 20, number * 1000);
                let block = [(number * 1000, number * 1000 + 1000)];
                assert_eq!(acknowledge(&mut flow, 100, &ack(0, &block)).0, 2000);
            }
            LOOKS.get()
        };
        let (few, many) = (looks(1000), looks(60_000));
        assert!(many <= 2 * few, "{few} looks at 1000 outstanding, {many} at 60 000");
    }

    #[test]
    fn what_is_cut_otherwise_is_not_looked_through_again_and_again() {
        let mut flow = Flow::new(at(0));
        (0..10_000).for_each(|_| pass(&mut flow, 10, 0));
        LOOKS.set(0);
        assert_eq!(acknowledge(&mut flow, 20, &ack(500, &[])).0, 0);
        assert!(LOOKS.get() <= MOST_PARTLY as u64, "{}", LOOKS.get());
        assert_eq!(acknowledge(&mut flow, 30, &ack(1000, &[])).0, 10_000_000);
    }

    #[test]
    fn nothing_grows_without_bound() {
        let mut flow = Flow::new(at(0));
        for number in 0..70_000u32 {
            flow.on_told(at(1), Seq(number.wrapping_mul(1000)), None);
        }
        for number in 0..70_000u32 {
            pass(&mut flow, 2, number.wrapping_mul(1000));
        }
        assert!(flow.told.len() <= MOST_TOLD && flow.passed.len() <= MOST_PASSED);
    }
}
