//! Tracks chunk boundaries. Segments sent together form a chunk, until part of the chunk is retransmitted or SACKed
//! separately.
//!
//! Linux keeps sent data in the pieces in which it was sent (skbs of the retransmission queue). Each piece uses memory
//! in addition to its payload. A piece is split if part of it is retransmitted alone (tcp_fragment) or SACKed
//! (tcp_match_skb_to_sack). A piece is freed when its last segment is acknowledged (tcp_clean_rtx_queue,
//! tcp_trim_head). SACKed data is merged with adjacent earlier SACKed data (tcp_shift_skb_data).

use super::Scoreboard;
use crate::sent::{Index, Marks};

impl Scoreboard {
    /// Number of chunks in flight; zero if the sender does not mark chunks.
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Starts a chunk at the record sent last.
    pub fn begin_chunk(&mut self) {
        self.split(self.sent.end() - 1);
    }

    /// Starts a chunk at this record, if it exists. Returns whether the chunk is new.
    pub fn split(&mut self, index: Index) -> bool {
        if index >= self.sent.end() || self.sent.get(index).marks.has(Marks::BEGINS) {
            return false;
        }
        self.sent.get_mut(index).marks.set(Marks::BEGINS);
        self.chunks += 1;
        true
    }

    /// Joins the chunk that starts at this record, if any, with the chunk before.
    pub fn join(&mut self, index: Index) {
        let record = self.sent.get_mut(index);
        self.chunks -= u32::from(record.marks.has(Marks::BEGINS));
        record.marks.clear(Marks::BEGINS);
    }

    /// Updates the chunk boundaries around a newly SACKed record, with `left` SACKed records before it and `right`
    /// after it.
    pub(super) fn gather(&mut self, index: Index, left: u32, right: u32) {
        if left == 0 {
            self.split(index);
        } else {
            self.join(index);
        }
        if right == 0 {
            self.split(index + 1);
        } else if left > 0 {
            self.join(index + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{SackBlock, Seq, Time};

    use super::*;

    /// Creates segments of 100 bytes in chunks of two.
    fn pairs(chunks: u32) -> Scoreboard {
        let mut board = Scoreboard::new(Seq(0));
        for segment in 0..2 * chunks {
            board.push(Time::ZERO, 100, Marks::default());
            if segment % 2 == 0 {
                board.begin_chunk();
            }
        }
        board
    }

    fn sack(board: &mut Scoreboard, left: u32, right: u32) {
        board.sack(SackBlock { left: Seq(left), right: Seq(right) }, |_| {});
    }

    #[test]
    fn a_chunk_stays_until_its_last_segment_is_acknowledged() {
        let mut board = pairs(3);
        assert_eq!(board.chunks(), 3);
        for (ack, chunks) in [(100, 3), (150, 3), (200, 2), (350, 2), (500, 1), (600, 0)] {
            board.acknowledge(Seq(ack), |_| {});
            assert_eq!(board.chunks(), chunks, "up to {ack}");
        }
    }

    #[test]
    fn what_is_sacked_leaves_its_chunk_and_joins_what_was_sacked_before_it() {
        let mut board = pairs(4);
        // 0 1|2|3|4 5|6 7: the fourth segment is a chunk between two halves of chunks.
        sack(&mut board, 300, 400);
        assert_eq!(board.chunks(), 5);
        // 0 1|2|3 4|5|6 7
        sack(&mut board, 300, 500);
        assert_eq!(board.chunks(), 5);
        // 0 1|2|3 4|5|6|7
        sack(&mut board, 600, 700);
        assert_eq!(board.chunks(), 6);
        // 0 1|2|3 4 5 6|7: the gap between two of them is filled.
        sack(&mut board, 300, 700);
        assert_eq!(board.chunks(), 4);
        board.acknowledge(Seq(300), |_| {});
        assert_eq!(board.chunks(), 2);
        board.acknowledge(Seq(650), |_| {});
        assert_eq!(board.chunks(), 2, "of the first a part is left");
        board.acknowledge(Seq(800), |_| {});
        assert_eq!(board.chunks(), 0);
    }

    #[test]
    fn a_sender_that_tells_no_chunks_has_none() {
        let mut board = Scoreboard::new(Seq(0));
        for _ in 0..4 {
            board.push(Time::ZERO, 100, Marks::default());
        }
        sack(&mut board, 200, 300);
        board.acknowledge(Seq(100), |_| {});
        assert_eq!(board.chunks(), 0);
    }
}
