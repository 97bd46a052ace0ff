//! A simulated UDP datagram, whose ends exchange more than its size.

use super::bits::HAS_OTHER_OPTIONS;
use super::{FlowId, SackBlock, Segment, Seq};

impl Segment {
    /// Number of words that a datagram carries.
    pub const WORDS: usize = 2 * Self::MAX_SACK;

    /// Creates a datagram of `bytes` bytes with headers. Its ends read the `words`; for every box between them it is an
    /// [opaque](Self::opaque) packet. The words use the space of SACK blocks.
    pub fn datagram(flow: FlowId, bytes: u16, words: [u32; Self::WORDS]) -> Self {
        let mut segment = Self::opaque(flow, bytes);
        let block =
            |number: usize| SackBlock { left: Seq(words[2 * number]), right: Seq(words[2 * number + 1]) };
        segment.rest.blocks = std::array::from_fn(block);
        segment.head.options |= HAS_OTHER_OPTIONS;
        segment
    }

    /// Words of a datagram; `None` for any other packet.
    pub fn words(&self) -> Option<[u32; Self::WORDS]> {
        let word = |number: usize| {
            let block = self.rest.blocks[number / 2];
            if number.is_multiple_of(2) { block.left.0 } else { block.right.0 }
        };
        let has_words = !self.is_tcp() && self.head.options & HAS_OTHER_OPTIONS != 0;
        has_words.then(|| std::array::from_fn(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ends_of_a_datagram_read_its_words() {
        let datagram = Segment::datagram(FlowId(3), 1200, [1, 2, 3, 4, 5, 6]);
        assert_eq!(datagram.words(), Some([1, 2, 3, 4, 5, 6]));
        assert_eq!((datagram.wire_bytes(), datagram.has_data(), datagram.is_tcp()), (1200, false, false));
        assert_eq!((datagram.syn_options(), datagram.sack().len()), (None, 0));
        let parts = Segment::of(*datagram.head(), datagram.timestamps(), datagram.rest());
        assert_eq!(parts, datagram);
        assert_eq!(Segment::opaque(FlowId(3), 1200).words(), None);
        assert_eq!(Segment::data(FlowId(3), Seq(1), 1000, 40).words(), None);
    }
}
