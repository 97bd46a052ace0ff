//! What a box sees of one flow: windows told to its source, data that passed, ACKs for it.

use std::collections::VecDeque;

use ackclock_core::{Segment, Seq, Span, Time};

use super::Side;
use super::detour::Detour;
use super::floor::Floor;

/// The accounts of one flow.
#[derive(Debug)]
pub(super) struct Flow {
    /// When data last passed.
    active: Option<Time>,
    /// The end of the data that passed.
    highest: Option<Seq>,
    /// The furthest edge told, and when each edge was that no data has needed yet.
    edge: Option<Seq>,
    told: VecDeque<Told>,
    /// When the mobile asked for the connection, with which window, and when the source answered.
    syn: Option<(Time, u32)>,
    syn_ack: Option<Time>,
    /// Round trip between box and source.
    wired: LeastOf,
    /// Data that passed and is not acknowledged, in the order of passing; of a box before the queue only.
    passed: VecDeque<Passed>,
    /// The first of `passed` that has not left the queue; all before it have.
    staying: usize,
    /// Bytes that are not acknowledged, and those of them that have left the queue.
    unacknowledged: u64,
    left: u64,
    /// Repetitions in `passed`.
    repetitions: usize,
    /// The least loop of the flow; of a box behind the queue only.
    pub(super) floor: Floor,
    /// Whether the last new data came as soon as the source was told, and bytes that came of late.
    prompt: bool,
    came: Lately,
    /// What of a loop is not of the queue's way.
    detour: Detour,
}

/// An edge that the source was told.
#[derive(Clone, Copy, Debug)]
struct Told {
    at: Time,
    edge: Seq,
    /// The clock of the mobile, which the source echoes from then on.
    stamp: Option<u32>,
}

/// A data segment that passed.
#[derive(Clone, Copy, Debug)]
struct Passed {
    segment: Segment,
    at: Time,
    /// The window had called for it: it came as soon as it could.
    called: bool,
    /// It is a repetition, and its ACK has no round trip where it or its like was sent more than once.
    is_repetition: bool,
    repeated: bool,
    has_left: bool,
}

/// What came of a data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// It is new.
    pub(super) is_new: bool,
    /// From the telling of the edge that it needed until now.
    pub(super) since_told: Option<Span>,
    /// The source sent it as soon as it was told that edge, as far as its echo of the mobile's clock tells.
    pub(super) prompt: bool,
}

/// What an ACK acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acknowledged {
    pub(super) bytes: u64,
    /// The newest of it that was sent once: from its passing until now, and whether it was called for.
    pub(super) newest: Option<(Span, bool)>,
}

/// More edges and segments than these are not remembered; the oldest go.
const MOST_TOLD: usize = 4096;
const MOST_PASSED: usize = 1 << 16;
/// Without data for so long a flow is no longer active.
const QUIET: Span = Span::from_secs(2);
/// Data that comes within this part of the round trip more, and a little, was called for by the window.
const PROMPT_PART: u64 = 8;
const PROMPT: Span = Span::from_millis(2);

impl Flow {
    pub(super) fn new(now: Time) -> Self {
        Self {
            active: None,
            highest: None,
            edge: None,
            told: VecDeque::new(),
            syn: None,
            syn_ack: None,
            wired: LeastOf::default(),
            passed: VecDeque::new(),
            staying: 0,
            unacknowledged: 0,
            left: 0,
            repetitions: 0,
            floor: Floor::new(now),
            prompt: true,
            came: Lately::default(),
            detour: Detour::default(),
        }
    }

    /// Whether it had data lately.
    pub(super) fn is_active(&self, now: Time) -> bool {
        self.active.is_some_and(|at| now.since(at) < QUIET)
    }

    /// The mobile asks for the connection; the source may send `window` bytes.
    pub(super) const fn on_syn(&mut self, now: Time, window: u32) {
        self.syn = Some((now, window));
    }

    /// The source answers with a segment that ends at `end`: from the SYN until now.
    pub(super) fn on_syn_ack(&mut self, now: Time, end: Seq) -> Option<Span> {
        self.syn_ack = Some(now);
        let (asked, window) = self.syn.take()?;
        // Whatever smaller edge is told next, a source may have sent so much by then.
        self.on_told(asked, end + window, None);
        let round_trip = now.since(asked);
        self.wired.add(now, round_trip);
        Some(round_trip)
    }

    /// The mobile's first ACK of the answer: from the SYN-ACK until now.
    pub(super) fn take_handshake(&mut self, now: Time) -> Option<Span> {
        Some(now.since(self.syn_ack.take()?))
    }

    /// The source is told that it may send up to `edge`.
    pub(super) fn on_told(&mut self, at: Time, edge: Seq, stamp: Option<u32>) {
        if self.edge.is_none_or(|old| edge.after(old)) {
            self.edge = Some(edge);
            if self.told.len() == MOST_TOLD {
                self.told.pop_front();
            }
            self.told.push_back(Told { at, edge, stamp });
        }
    }

    /// Data passes.
    pub(super) fn on_data(&mut self, now: Time, segment: &Segment) -> Passage {
        self.active = Some(now);
        let end = segment.end();
        if self.highest.is_some_and(|highest| end.at_or_before(highest)) {
            return Passage { is_new: false, since_told: None, prompt: false };
        }
        self.highest = Some(end);
        while self.told.front().is_some_and(|told| told.edge.before(end)) {
            self.told.pop_front();
        }
        let since_told = self.told.front().map(|told| now.since(told.at));
        self.prompt = self.is_prompt(segment);
        self.came.add(now, segment.payload.into());
        Passage { is_new: true, since_told, prompt: self.prompt }
    }

    /// Whether the source had not heard more, when it sent a segment, than the edge that it needed.
    fn is_prompt(&self, segment: &Segment) -> bool {
        let (Some(needed), Some(timestamps)) = (self.told.front(), segment.timestamps()) else { return true };
        let not_heard = |told: &Told| told.stamp.is_some_and(|stamp| is_after(stamp, timestamps.echo));
        let heard = self.told.partition_point(|told| !not_heard(told));
        let last = heard.checked_sub(1).map_or(needed, |last| &self.told[last]);
        last.at.since(needed.at) <= self.floor.get() / PROMPT_PART + PROMPT
    }

    /// A segment of the end that divides the loop passes: how much longer than the least the way without the queue took.
    pub(super) fn detour(&mut self, now: Time, segment: &Segment, side: Side, all: Option<Span>) -> Span {
        let Some(timestamps) = segment.timestamps() else { return Span::ZERO };
        self.detour.beyond(now, timestamps.value, side, all)
    }

    /// Remembers data that passed until it is acknowledged; gives what had to be forgotten for it and had not left.
    pub(super) fn remember(&mut self, now: Time, segment: &Segment, passage: Passage) -> Option<Segment> {
        let called = passage.since_told.is_some_and(|since| {
            let wired = self.wired.get();
            wired.is_some_and(|wired| since <= wired + wired / PROMPT_PART + PROMPT)
        });
        if let Some(since) = passage.since_told {
            self.wired.add(now, since);
        }
        if !passage.is_new {
            let same = self.passed.iter_mut().filter(|other| other.segment.seq == segment.seq);
            same.for_each(|other| other.repeated = true);
            self.repetitions += 1;
        }
        let forgotten = if self.passed.len() == MOST_PASSED { self.forget_first() } else { None };
        let is_repetition = !passage.is_new;
        self.unacknowledged += u64::from(segment.payload);
        let (segment, repeated, has_left) = (*segment, is_repetition, false);
        self.passed.push_back(Passed { segment, at: now, called, is_repetition, repeated, has_left });
        forgotten
    }

    fn forget_first(&mut self) -> Option<Segment> {
        let first = self.remove(0)?;
        Some(first.segment).filter(|_| !first.has_left)
    }

    /// Takes an ACK: what it acknowledges leaves the accounts, and `on_left` is told of what had not left the queue before.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ack: &Segment,
        mut on_left: impl FnMut(&Segment),
    ) -> Acknowledged {
        let mut acknowledged = Acknowledged::default();
        let mut newest: Option<Passed> = None;
        // Without SACK and repetitions, what is acknowledged is in front.
        let everywhere = !ack.sack().is_empty() || self.repetitions > 0;
        let mut place = 0;
        while let Some(passed) = self.passed.get(place) {
            if !covers(ack, &passed.segment) {
                if !everywhere {
                    break;
                }
                place += 1;
                continue;
            }
            let Some(passed) = self.remove(place) else { break };
            acknowledged.bytes += u64::from(passed.segment.payload);
            if !passed.has_left {
                on_left(&passed.segment);
            }
            if !passed.repeated && newest.is_none_or(|other| passed.at >= other.at) {
                newest = Some(passed);
            }
        }
        acknowledged.newest = newest.map(|passed| (now.since(passed.at), passed.called));
        acknowledged
    }

    fn remove(&mut self, place: usize) -> Option<Passed> {
        let passed = self.passed.remove(place)?;
        self.unacknowledged -= u64::from(passed.segment.payload);
        if passed.has_left {
            self.left -= u64::from(passed.segment.payload);
        }
        self.repetitions -= usize::from(passed.is_repetition);
        self.staying -= usize::from(place < self.staying);
        Some(passed)
    }

    /// So many bytes that are not acknowledged have left the queue; `on_left` is told of those that had not before.
    pub(super) fn leave(&mut self, bytes: u64, mut on_left: impl FnMut(&Segment)) {
        while let Some(passed) = self.passed.get_mut(self.staying) {
            let payload = u64::from(passed.segment.payload);
            if self.left + payload > bytes {
                return;
            }
            passed.has_left = true;
            on_left(&passed.segment);
            self.left += payload;
            self.staying += 1;
        }
    }

    /// Round trip between box and source, once it is known.
    pub(super) fn wired(&self) -> Option<Span> {
        self.wired.get()
    }

    /// Bytes that passed and are not acknowledged.
    pub(super) const fn unacknowledged(&self) -> u64 {
        self.unacknowledged
    }

    /// Bytes that the source was told to send and that have not come. Of a source that does not send what it may, no more are on their way
    /// than came of late.
    pub(super) fn called_for(&self) -> u64 {
        let told: u64 = match (self.edge, self.highest) {
            (Some(edge), Some(highest)) => edge.since(highest).into(),
            _ => 0,
        };
        if self.prompt { told } else { told.min(self.came.get()) }
    }
}

/// Whether one value of a clock comes after another (RFC 7323 section 5.2).
const fn is_after(one: u32, other: u32) -> bool {
    one != other && one.wrapping_sub(other) < 1 << 31
}

/// Whether an ACK acknowledges all of a segment.
fn covers(ack: &Segment, segment: &Segment) -> bool {
    segment.end().at_or_before(ack.ack)
        || ack
            .sack()
            .iter()
            .any(|block| block.left.at_or_before(segment.seq) && segment.end().at_or_before(block.right))
}

/// The least of the samples of the last ten to twenty seconds.
#[derive(Clone, Copy, Debug, Default)]
struct LeastOf {
    /// When the younger half began, and its least.
    younger: Option<(Time, Span)>,
    older: Option<Span>,
}

/// Length of a half.
const HALF: Span = Span::from_secs(10);

impl LeastOf {
    fn add(&mut self, now: Time, sample: Span) {
        match &mut self.younger {
            Some((since, least)) if now.since(*since) <= HALF => *least = (*least).min(sample),
            younger => {
                self.older = younger.map(|(_, least)| least);
                *younger = Some((now, sample));
            }
        }
    }

    fn get(&self) -> Option<Span> {
        self.younger.map(|(_, least)| self.older.map_or(least, |older| older.min(least)))
    }
}

/// Bytes of the last second or two.
#[derive(Debug, Default)]
struct Lately {
    /// When the younger half began, and its bytes.
    younger: (Time, u64),
    older: u64,
}

/// Length of that half.
const LATELY: Span = Span::from_secs(1);

impl Lately {
    fn add(&mut self, now: Time, bytes: u64) {
        if now.since(self.younger.0) > LATELY {
            (self.older, self.younger) = (self.younger.1, (now, 0));
        }
        self.younger.1 += bytes;
    }

    const fn get(&self) -> u64 {
        self.older + self.younger.1
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
        flow.remember(at(millis), &data(seq), passage);
    }

    /// Bytes, loop in ms and the numbers of what left, of an ACK.
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
        // Both sendings of the first are done with; neither has a round trip of its own.
        assert_eq!(acknowledge(&mut flow, 120, &ack(2000, &[])), (2000, None, vec![0, 0]));
        assert_eq!((flow.passed.len(), flow.repetitions, flow.left), (0, 0, 0));
    }

    #[test]
    fn what_left_stays_left_and_leaves_once() {
        let mut flow = Flow::new(at(0));
        (0..4).for_each(|number| pass(&mut flow, 10, number * 1000));
        let mut left = Vec::new();
        flow.leave(2500, |segment| left.push(segment.seq.0));
        flow.leave(1000, |segment| left.push(segment.seq.0));
        assert_eq!(left, [0, 1000]);
        // The first two are acknowledged: of the others 1000 bytes may have left.
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
        // The loop is not known yet: an eighth of 100 ms and 2 ms are 14.5 ms.
        assert_eq!(
            passage(0, 110),
            Passage { is_new: true, since_told: Some(Span::from_millis(400)), prompt: true }
        );
        assert_eq!(
            passage(1000, 405),
            Passage { is_new: true, since_told: Some(Span::from_millis(390)), prompt: false }
        );
        // Of what it may send, no more is on its way than came of late.
        assert_eq!(flow.called_for(), 1000);
        let mut last = data(2000);
        last.payload = 500;
        let passage = flow.on_data(at(600), &last);
        assert!(passage.prompt, "without timestamps nothing is known");
        assert_eq!(flow.called_for(), 500);
    }

    #[test]
    fn the_least_of_a_flow_lasts_ten_to_twenty_seconds() {
        let mut least = LeastOf::default();
        least.add(at(0), Span::from_millis(30));
        least.add(at(10_001), Span::from_millis(50));
        assert_eq!(least.get(), Some(Span::from_millis(30)));
        least.add(at(20_002), Span::from_millis(60));
        assert_eq!(least.get(), Some(Span::from_millis(50)));
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
