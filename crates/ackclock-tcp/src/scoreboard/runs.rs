//! Runs of SACKed records. Each run stores its length at both ends.

use super::Scoreboard;
use crate::sent::{Index, Marks, Record};

impl Scoreboard {
    /// Shortens the run that starts at the front record, which is removed.
    pub(super) fn shorten_run(&mut self, record: &Record) {
        let index = self.sent.first();
        if !record.marks.has(Marks::SACKED) {
            return;
        }
        if record.run <= 1 {
            if index >= self.edge {
                self.above_runs -= 1;
            }
            return;
        }
        let last = index + u64::from(record.run) - 1;
        self.sent.get_mut(index + 1).run = record.run - 1;
        self.sent.get_mut(last).run = record.run - 1;
    }

    /// Number of records to skip from a SACKed record: the whole run if the record is the first of its run.
    pub(super) fn run_from(&self, index: Index) -> u64 {
        if index == self.sent.first() || !self.is_sacked(index - 1) {
            u64::from(self.sent.get(index).run)
        } else {
            1
        }
    }

    pub(super) fn mark_sacked(&mut self, index: Index) {
        let left = if index > self.sent.first() && self.is_sacked(index - 1) {
            self.sent.get(index - 1).run
        } else {
            0
        };
        let right = if self.is_sacked(index + 1) { self.sent.get(index + 1).run } else { 0 };
        if self.chunks > 0 {
            self.gather(index, left, right);
        }
        let record = self.sent.get_mut(index);
        let (len, marks) = (u32::from(record.len), record.marks);
        record.marks.set(Marks::SACKED);
        record.marks.clear(Marks::LOST.with(Marks::AGAIN));
        self.sacked += len;
        if marks.has(Marks::LOST) {
            self.lost -= len;
        }
        if marks.has(Marks::AGAIN) {
            self.retransmitted -= len;
        }
        let run = left + 1 + right;
        self.sent.get_mut(index - u64::from(left)).run = run;
        self.sent.get_mut(index + u64::from(right)).run = run;
        self.sacked_end = self.sacked_end.max(index + 1);
        if index >= self.edge {
            self.above_bytes += len;
            // A run that extends below the edge was already removed from the count above the edge.
            let joins_left = left > 0 && index > self.edge;
            self.above_runs = self.above_runs + 1 - u32::from(joins_left) - u32::from(right > 0);
        }
    }
}
