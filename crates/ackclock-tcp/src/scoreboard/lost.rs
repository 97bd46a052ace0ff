//! Marking of lost records.

use super::{SackMemory, Scoreboard};
use crate::sent::{Index, Marks, Record};

impl Scoreboard {
    /// First record from `from` on that is lost, not SACKed, and not retransmitted since.
    pub fn lost_from(&self, from: Index) -> Option<Index> {
        if self.lost == 0 {
            return None;
        }
        let mut index = self.hole(from, self.sent.end());
        while let Some(found) = index {
            if self.sent.get(found).awaits_repair() {
                return Some(found);
            }
            index = self.hole(found + 1, self.sent.end());
        }
        None
    }

    /// First record from `cursor` on that is lost, not SACKed, and not retransmitted since. Moves `cursor` past the
    /// record, or to the end if no record is found. Marking an earlier record as lost must move `cursor` back.
    #[inline]
    pub fn next_lost(&self, cursor: &mut Index) -> Option<Index> {
        if self.lost == 0 {
            return None;
        }
        let found = self.lost_from(*cursor);
        *cursor = found.map_or(self.sent.end(), |index| index + 1);
        found
    }

    /// Updates the set of lost segments (`IsLost` of RFC 6675). Segments have at most `mss` bytes; `dup_thresh`
    /// segments beyond a gap indicate a loss.
    pub fn update_lost(&mut self, mss: u32, dup_thresh: u32) {
        while self.edge < self.sacked_end {
            let record = *self.sent.get(self.edge);
            if record.marks.has(Marks::SACKED) {
                self.leave_above(self.edge, &record);
            } else if self.above_bytes > (dup_thresh - 1) * mss || self.above_runs >= dup_thresh {
                self.mark_lost(self.edge);
            } else {
                return;
            }
            self.edge += 1;
        }
    }

    /// Marks a record as lost, or as lost again if it was retransmitted since. Returns whether the record was neither
    /// SACKed nor lost before.
    pub fn lose(&mut self, index: Index) -> bool {
        let record = self.sent.get_mut(index);
        if record.marks.has(Marks::SACKED) || record.awaits_repair() {
            return false;
        }
        if record.marks.has(Marks::AGAIN) {
            record.marks.clear(Marks::AGAIN);
            self.retransmitted -= u32::from(record.len);
            if record.marks.has(Marks::LOST) {
                self.losses = self.losses.wrapping_add(1);
            }
        }
        self.mark_lost(index);
        true
    }

    /// Whether a record is in flight, lost, and not retransmitted since.
    pub fn awaits_repair(&self, index: Index) -> bool {
        index >= self.sent.first() && self.sent.at(index).is_some_and(Record::awaits_repair)
    }

    /// Marks all data not known to be received as lost after a timeout (RFC 6675 section 5.1).
    pub fn lose_all(&mut self, memory: SackMemory) {
        // A SACKed segment at the left edge means that the receiver discarded it (reneging, RFC 2018 section 8).
        let reneged = !self.sent.is_empty() && self.sent.get(self.sent.first()).marks.has(Marks::SACKED);
        if memory == SackMemory::Clear || reneged {
            self.forget_sack();
        }
        self.edge = self.sent.end();
        (self.above_bytes, self.above_runs) = (0, 0);
        for index in self.sent.first()..self.sent.end() {
            self.lose(index);
        }
    }

    fn mark_lost(&mut self, index: Index) {
        let record = self.sent.get_mut(index);
        if !record.marks.has(Marks::SACKED.with(Marks::LOST)) {
            record.marks.set(Marks::LOST);
            self.lost += u32::from(record.len);
            self.losses = self.losses.wrapping_add(1);
        }
    }

    /// Removes a SACKed record that is now below the edge from the counts above the edge.
    fn leave_above(&mut self, index: Index, record: &Record) {
        self.above_bytes -= u32::from(record.len);
        if !self.is_sacked(index + 1) {
            self.above_runs -= 1;
        }
    }
}
