//! Where chunks begin: what left at once is kept as one, until a part of it meets a fate of its own.
//!
//! Linux keeps what it sent in the pieces in which it left (the skbs of its retransmission queue), and each takes memory beside its
//! payload. One is split where a part is sent again alone (tcp_fragment) or is SACKed (tcp_match_skb_to_sack), and is freed when its
//! last segment is acknowledged (tcp_clean_rtx_queue, tcp_trim_head). What is SACKed is joined to what is SACKed before it
//! (tcp_shift_skb_data).

use super::Scoreboard;
use crate::sent::{Index, Marks};

impl Scoreboard {
    /// Chunks outstanding, of a sender that tells where they begin.
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// What was sent last begins a chunk.
    pub fn begin_chunk(&mut self) {
        self.split(self.sent.end() - 1);
    }

    /// A chunk begins at this record, where there is one; whether none did until now.
    pub fn split(&mut self, index: Index) -> bool {
        if index >= self.sent.end() || self.sent.get(index).marks.has(Marks::BEGINS) {
            return false;
        }
        self.sent.get_mut(index).marks.set(Marks::BEGINS);
        self.chunks += 1;
        true
    }

    /// The chunk that begins at this record, if any, becomes one with that before it.
    pub fn join(&mut self, index: Index) {
        let record = self.sent.get_mut(index);
        self.chunks -= u32::from(record.marks.has(Marks::BEGINS));
        record.marks.clear(Marks::BEGINS);
    }

    /// A record is SACKed, and so were as many records before it and behind it as `left` and `right` say.
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

    /// Segments of 100 bytes in chunks of two.
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
        // 0 1|2|3|4 5|6 7: the fourth alone, between two halves.
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
