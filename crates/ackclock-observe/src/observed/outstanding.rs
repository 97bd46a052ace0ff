//! Data segments that passed the box and are not acknowledged, found by number and by position without allocation.

use std::collections::VecDeque;
use std::ops::Range;

use super::vocabulary::Passed;

/// Unacknowledged segments, by number in the order of passing, and by the position of their first byte.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// Number of the first slot; a slot becomes empty when its segment is acknowledged.
    first: u64,
    slots: VecDeque<Option<Passed>>,
    /// Positions and numbers of the segments, sorted by position. New data is appended; only retransmissions are
    /// inserted elsewhere.
    by_place: VecDeque<(i64, u64)>,
}

impl Outstanding {
    /// Number of unacknowledged segments.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Count of numbers from the first segment to the last, inclusive.
    pub(super) fn span(&self) -> usize {
        self.slots.len()
    }

    /// Number of the first unacknowledged segment.
    pub(super) fn first(&self) -> Option<u64> {
        // The first slot always has a segment.
        (!self.slots.is_empty()).then_some(self.first)
    }

    /// Adds a segment that passed the box.
    pub(super) fn push(&mut self, passed: Passed) {
        let entry = (passed.place, self.first + self.slots.len() as u64);
        self.slots.push_back(Some(passed));
        match self.by_place.back() {
            Some(last) if *last > entry => {
                let at = self.by_place.partition_point(|other| *other < entry);
                self.by_place.insert(at, entry);
            }
            _ => self.by_place.push_back(entry),
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<&Passed> {
        self.slots.get(usize::try_from(number.checked_sub(self.first)?).ok()?)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Passed> {
        self.slots.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)?.as_mut()
    }

    /// Removes a segment that is acknowledged or dropped.
    pub(super) fn remove(&mut self, number: u64) -> Option<Passed> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let passed = self.slots.get_mut(at)?.take()?;
        while self.slots.pop_front_if(|slot| slot.is_none()).is_some() {
            self.first += 1;
        }
        if let Ok(at) = self.by_place.binary_search(&(passed.place, number)) {
            self.by_place.remove(at);
        }
        Some(passed)
    }

    /// Marks all copies of the segment at `place` as retransmitted. Copies sent before an earlier retransmission were
    /// marked by that retransmission.
    pub(super) fn mark_repeated(&mut self, place: i64) {
        for at in self.range(place, place + 1).rev() {
            let (_, number) = self.by_place[at];
            let Some(other) = self.get_mut(number) else { continue };
            other.repeated = true;
            if other.is_repetition {
                return;
            }
        }
    }

    /// Number of the first segment at or after `number`.
    pub(super) fn next_from(&self, number: u64) -> Option<u64> {
        let last = self.first + self.slots.len() as u64;
        (number.max(self.first)..last).find(|number| self.get(*number).is_some())
    }

    /// Positions and numbers of the segments that start within `left..right`, in order of position.
    pub(super) fn within(&self, left: i64, right: i64) -> impl Iterator<Item = (i64, u64)> {
        self.by_place.range(self.range(left, right)).copied()
    }

    fn range(&self, left: i64, right: i64) -> Range<usize> {
        let begins = |at: i64| self.by_place.partition_point(|(place, _)| *place < at);
        begins(left)..begins(right.max(left))
    }
}
