//! Detects spurious window reductions: an earlier copy of the first retransmitted segment has arrived or arrives later.

use std::collections::VecDeque;

use ackclock_core::results::SpuriousResult;
use ackclock_core::{Repair, Segment, Seq};

/// Transmissions of one sender, and the window reductions that these transmissions prove spurious.
#[derive(Default)]
pub(super) struct Repairs {
    /// Transmissions of the sender, oldest first.
    sent: VecDeque<Sending>,
    /// Number of first retransmissions whose window reduction is not yet proven spurious.
    open: u32,
    spurious: [u64; 2],
}

#[derive(Clone, Copy)]
struct Sending {
    number: u16,
    seq: Seq,
    arrived: bool,
    /// Cause of the window reduction, if this transmission is the first retransmission after a reduction that may prove
    /// spurious.
    repair: Option<Repair>,
}

/// Maximum number of remembered transmissions of a sender. The limit keeps 16-bit packet numbers unambiguous.
const MOST_REMEMBERED: usize = 32_768;

impl Repairs {
    pub(super) fn sent(&mut self, segment: &Segment) {
        if self.sent.len() == MOST_REMEMBERED {
            let oldest = self.sent.pop_front();
            self.open -= u32::from(oldest.is_some_and(|sending| sending.repair.is_some()));
        }
        let (number, seq) = (segment.sending, segment.seq);
        let mut repair = segment.repair();
        if let Some(cause) = repair
            && self.sent.iter().rev().any(|sending| sending.seq == seq && sending.arrived)
        {
            self.spurious[cause as usize] += 1;
            repair = None;
        }
        self.open += u32::from(repair.is_some());
        self.sent.push_back(Sending { number, seq, arrived: false, repair });
    }

    pub(super) fn arrived(&mut self, number: u16) {
        let Some(&Sending { number: first, .. }) = self.sent.front() else { return };
        // The difference of the packet numbers is an upper bound of the segment's index in `sent`. Packet numbers
        // increase by more than one if segments without payload were sent in between.
        let upper = (usize::from(number.wrapping_sub(first)) + 1).min(self.sent.len());
        let Some(place) = self.sent.range(..upper).rposition(|sending| sending.number == number) else {
            return;
        };
        self.sent[place].arrived = true;
        if self.open == 0 {
            return;
        }
        let seq = self.sent[place].seq;
        for later in self.sent.range_mut(place + 1..) {
            if later.seq == seq
                && let Some(cause) = later.repair.take()
            {
                self.spurious[cause as usize] += 1;
                self.open -= 1;
            }
        }
    }

    pub(super) fn result(&self) -> SpuriousResult {
        let [fast_retransmits, timeouts] = self.spurious;
        SpuriousResult { timeouts, fast_retransmits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::FlowId;

    fn segment(number: u16, seq: u32, repair: Option<Repair>) -> Segment {
        let mut segment = Segment::data(FlowId(0), Seq(seq), 1000, 40);
        segment.sending = number;
        if let Some(repair) = repair {
            segment.set_repair(repair);
        }
        segment
    }

    fn counts(repairs: &Repairs) -> [u64; 2] {
        let SpuriousResult { timeouts, fast_retransmits } = repairs.result();
        [timeouts, fast_retransmits]
    }

    #[test]
    fn a_repetition_of_what_had_arrived_or_arrives_later_was_for_nothing() {
        let mut repairs = Repairs::default();
        (0..4u16).for_each(|n| repairs.sent(&segment(n, 1000 * u32::from(n), None)));
        // The first segment has arrived and its ACK is late. The third segment overtook the second, which arrives last.
        repairs.arrived(0);
        repairs.sent(&segment(4, 0, Some(Repair::Timeout)));
        assert_eq!(counts(&repairs), [1, 0]);
        repairs.arrived(2);
        repairs.sent(&segment(5, 1000, Some(Repair::FastRetransmit)));
        assert_eq!(counts(&repairs), [1, 0]);
        repairs.arrived(1);
        assert_eq!(counts(&repairs), [1, 1]);
        // A spurious reduction counts once, for any number of copies that arrive.
        repairs.arrived(5);
        repairs.arrived(1);
        assert_eq!(counts(&repairs), [1, 1]);
    }

    #[test]
    fn a_repetition_of_what_was_lost_was_not() {
        let mut repairs = Repairs::default();
        (0..4u16).for_each(|n| repairs.sent(&segment(n, 1000 * u32::from(n), None)));
        (1..4).for_each(|n| repairs.arrived(n));
        repairs.sent(&segment(4, 0, Some(Repair::FastRetransmit)));
        repairs.arrived(4);
        assert_eq!(counts(&repairs), [0, 0]);
        // A timeout whose retransmission was lost, followed by a timeout whose retransmission arrived.
        repairs.sent(&segment(5, 5000, None));
        repairs.sent(&segment(6, 5000, Some(Repair::Timeout)));
        repairs.sent(&segment(7, 5000, Some(Repair::Timeout)));
        repairs.arrived(7);
        assert_eq!(counts(&repairs), [0, 0]);
    }

    #[test]
    fn what_never_arrives_does_not_fill_the_memory() {
        let mut repairs = Repairs::default();
        for n in 0..100_000u32 {
            repairs.sent(&segment(n as u16, n, (n % 7 == 0).then_some(Repair::Timeout)));
        }
        assert_eq!(repairs.sent.len(), MOST_REMEMBERED);
        let waiting = repairs.sent.iter().filter(|sending| sending.repair.is_some()).count();
        assert_eq!(repairs.open as usize, waiting);
    }
}
