//! Sequence and ACK numbers of a connection that an observer believes.
//!
//! Anybody who knows addresses and ports can send segments with any numbers. Data is believed up to the furthest right
//! edge that the receiver offered, and ACKs up to the data that passed, as RFC 9293 section 3.10.7.4 and RFC 5961
//! section 5 require of the ends. If data took another path, both ends use numbers outside the known window; the
//! window is then learnt again from data and an ACK that agree. A SYN of the sender begins a connection if it answers the
//! receiver's SYN, or if no data of a known connection has passed; others are forged or late.

use ackclock_core::{Flags, Segment, Seq};

/// Numbers of one connection in one direction of its data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    /// End of the data that passed.
    arrived: Option<Seq>,
    /// Furthest right edge that the receiver offered.
    reach: Option<Seq>,
    /// End of the last data beyond the window.
    elsewhere: Option<Seq>,
    /// ACK number that answers the last SYN, and the window of the SYN.
    asked: Option<(Seq, u32)>,
}

impl Numbers {
    /// Handles a SYN of the receiver. What is known stays in force until the sender answers it.
    pub fn on_syn(&mut self, syn: &Segment) {
        self.asked = Some((syn.end(), syn.window.into()));
    }

    /// Handles a segment from the sender. Returns whether its numbers are believed.
    pub fn on_data(&mut self, segment: &Segment) -> bool {
        if segment.flags.intersects(Flags::SYN) {
            return self.begins(segment);
        }
        if !self.believes(segment) {
            self.elsewhere = Some(segment.end());
            return false;
        }
        if segment.sequence_space() > 0 && self.arrived.is_none_or(|arrived| segment.end().after(arrived)) {
            self.arrived = Some(segment.end());
        }
        true
    }

    /// Handles a SYN of the sender. Returns whether it begins a connection, or repeats the SYN that began it. The window
    /// of an answer to the receiver's SYN is the SYN's.
    fn begins(&mut self, syn: &Segment) -> bool {
        let begin = syn.end();
        if let Some((_, window)) = self.asked.filter(|(end, _)| *end == syn.ack) {
            *self = Self { arrived: Some(begin), reach: Some(begin + window), ..Self::default() };
        }
        self.arrived.is_none_or(|arrived| arrived == begin)
    }

    /// Whether a segment of the sender is inside the window, as far as the window is known.
    #[inline]
    pub fn believes(&self, segment: &Segment) -> bool {
        self.reach.is_none_or(|reach| !(segment.seq + u32::from(segment.payload)).after(reach))
    }

    /// Handles an ACK of the receiver. Returns whether its number is believed.
    #[inline]
    pub fn on_ack(&mut self, ack: &Segment) -> bool {
        if !self.believes_ack(ack) && !self.is_learnt_again(ack) {
            return false;
        }
        if let Some(window) = ack.window_bytes() {
            let edge = ack.ack + window;
            self.reach = Some(self.reach.map_or(edge, |reach| reach.max(edge)));
        }
        true
    }

    /// Whether an ACK acknowledges only data that passed, as far as this is known.
    #[inline]
    pub fn believes_ack(&self, ack: &Segment) -> bool {
        self.arrived.is_none_or(|arrived| ack.ack.at_or_before(arrived))
    }

    /// Whether an ACK outside the window agrees with the last data outside the window; the window is then theirs.
    #[cold]
    fn is_learnt_again(&mut self, ack: &Segment) -> bool {
        let Some((end, window)) = self.elsewhere.zip(ack.window_bytes()) else { return false };
        let agrees = ack.ack.at_or_before(end) && end.since(ack.ack) <= window;
        if agrees {
            *self = Self { arrived: Some(end), asked: self.asked, ..Self::default() };
        }
        agrees
    }

    /// Whether all data of a segment has passed before.
    pub fn is_repetition(&self, segment: &Segment) -> bool {
        segment.has_data() && self.arrived.is_some_and(|arrived| segment.end().at_or_before(arrived))
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::FlowId;

    use super::*;

    fn data(seq: u32) -> Segment {
        Segment::data(FlowId(0), Seq(seq), 1000, 40)
    }

    fn ack(number: u32) -> Segment {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(number), 40);
        ack.window = 10_000;
        ack.set_scale(Some(0));
        ack
    }

    /// A connection with a window of 10 000 bytes, of which the first 1000 were used.
    fn known() -> Numbers {
        let mut numbers = Numbers::default();
        let mut syn = ack(0);
        (syn.flags, syn.seq) = (Flags::SYN, Seq(70));
        numbers.on_syn(&syn);
        let mut answer = ack(71);
        (answer.flags, answer.seq) = (Flags::SYN | Flags::ACK, Seq(u32::MAX));
        assert!(numbers.on_data(&answer) && numbers.on_data(&data(0)));
        numbers
    }

    #[test]
    fn numbers_inside_the_window_are_believed() {
        let mut numbers = known();
        assert!(numbers.on_data(&data(9000)) && numbers.on_ack(&ack(1000)));
        assert!(numbers.on_data(&data(10_000)), "the ACK offers 11 000");
        assert!(numbers.is_repetition(&data(0)) && !numbers.is_repetition(&data(11_000)));
    }

    #[test]
    fn one_forged_segment_changes_nothing() {
        let mut numbers = known();
        for far in [20_000, 1 << 30] {
            assert!(!numbers.on_data(&data(far)), "{far}");
            assert!(!numbers.on_ack(&ack(1 << 29)), "{far}");
        }
        // A SYN of the receiver that nobody answers, an answer to no SYN, and a SYN of the sender.
        let mut syn = ack(0);
        (syn.flags, syn.seq) = (Flags::SYN, Seq(7));
        numbers.on_syn(&syn);
        for flags in [Flags::SYN | Flags::ACK, Flags::SYN] {
            let mut forged = ack(500);
            (forged.flags, forged.seq) = (flags, Seq(1 << 30));
            assert!(!numbers.on_data(&forged), "{flags:?}");
        }
        assert!(!numbers.on_data(&data(1 << 30)) && numbers.on_data(&data(1000)));
    }

    #[test]
    fn a_syn_is_believed_until_data_passes() {
        let mut numbers = Numbers::default();
        let mut syn = ack(71);
        (syn.flags, syn.seq) = (Flags::SYN | Flags::ACK, Seq(u32::MAX));
        assert!(numbers.on_data(&syn), "nothing is known");
        let mut asked = ack(0);
        (asked.flags, asked.seq) = (Flags::SYN, Seq(70));
        numbers.on_syn(&asked);
        assert!(numbers.on_data(&syn) && numbers.on_data(&syn), "the answer, and its repetition");
        assert!(numbers.on_data(&data(0)) && !numbers.on_data(&syn), "it is late");
    }

    #[test]
    fn a_connection_whose_data_took_another_path_is_learnt_again() {
        let mut numbers = known();
        assert!(!numbers.on_ack(&ack(50_000)), "no data agrees");
        assert!(!numbers.on_data(&data(51_000)));
        assert!(numbers.on_ack(&ack(51_000)) && numbers.on_data(&data(52_000)));
        assert!(numbers.on_ack(&ack(53_000)));
    }

    #[test]
    fn without_a_handshake_the_first_numbers_are_believed() {
        let mut numbers = Numbers::default();
        assert!(numbers.on_data(&data(5000)) && numbers.on_ack(&ack(6000)));
        assert!(!numbers.on_data(&data(90_000)));
    }
}
