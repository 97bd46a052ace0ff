//! Finds the next due timer among many.
//!
//! Each component has one slot for its deadline, so a deadline is overwritten in place and never cancelled. The order
//! of timers is total: the earliest time comes first, and among equal times the lowest slot.
//!
//! The structure is a tree with blocks of eight deadlines at the bottom. The next level of the tree stores the earliest
//! deadline of each block. Up to eight slots, as in an engine with few nodes, the tree is a plain array that is
//! scanned. With many slots, an update scans the block of its slot, and stops if the earliest deadline of the block is
//! unchanged. A retransmission timer moves later at every ACK, so its update usually changes only one block.

use std::hint::select_unpredictable;

use crate::Time;

/// Number of deadlines in a block.
const BLOCK: usize = 8;

/// Block of deadlines, or of the earliest deadlines of blocks on the level below.
type Block = [Time; BLOCK];

/// Block in which no slot has a deadline.
const EMPTY: Block = [Time::NEVER; BLOCK];

/// Next deadline of each slot, and the earliest of all deadlines.
#[derive(Clone, Debug)]
pub struct Wakes {
    /// Levels of the tree of deadlines. `levels[0]` contains the deadlines, each level above contains the earliest
    /// deadline of every block below, and the last level has one block.
    levels: Vec<Vec<Block>>,
    slots: usize,
    /// Earliest deadline, and its slot.
    first: (Time, usize),
}

impl Default for Wakes {
    fn default() -> Self {
        Self { levels: vec![vec![EMPTY]], slots: 0, first: (Time::NEVER, 0) }
    }
}

impl Wakes {
    /// Adds a slot without a deadline and returns its number, counted from zero.
    pub fn add(&mut self) -> usize {
        let slot = self.slots;
        self.slots += 1;
        let mut block = slot / BLOCK;
        for level in 0.. {
            if block < self.levels[level].len() {
                break;
            }
            self.levels[level].push(EMPTY);
            if level + 1 == self.levels.len() {
                // A new level is added on top, because the only block of this level is full.
                let mut above = EMPTY;
                (above[0], _) = earliest(&self.levels[level][0]);
                self.levels.push(vec![above]);
            }
            block /= BLOCK;
        }
        slot
    }

    /// Sets the deadline of `slot`; `None` clears the deadline.
    #[inline]
    pub fn set(&mut self, slot: usize, deadline: Option<Time>) {
        let time = deadline.unwrap_or(Time::NEVER);
        self.levels[0][slot / BLOCK][slot % BLOCK] = time;
        if self.levels.len() > 1 {
            self.carry(slot);
        }
        if (time, slot) < self.first {
            self.first = (time, slot);
        } else if slot == self.first.1 {
            self.first = self.search();
        }
    }

    /// Returns the deadline of `slot`, or `None` without a deadline.
    pub fn deadline(&self, slot: usize) -> Option<Time> {
        Some(self.at(slot)).filter(|&time| time != Time::NEVER)
    }

    /// Sets the deadline of `slot`, unless `slot` already has an earlier deadline.
    #[inline]
    pub fn hasten(&mut self, slot: usize, deadline: Time) {
        if deadline < self.at(slot) {
            self.set(slot, Some(deadline));
        }
    }

    /// Returns the earliest deadline, or [`Time::NEVER`] if no slot has a deadline.
    #[inline]
    pub fn due(&self) -> Time {
        self.first.0
    }

    /// Returns the earliest deadline and its slot, or `None` if no slot has a deadline.
    #[inline]
    pub fn first(&self) -> Option<(Time, usize)> {
        if self.first.0 == Time::NEVER { None } else { Some(self.first) }
    }

    #[inline]
    fn at(&self, slot: usize) -> Time {
        self.levels[0][slot / BLOCK][slot % BLOCK]
    }

    /// Finds the earliest deadline, from the top level of the tree down.
    fn search(&self) -> (Time, usize) {
        let (mut time, mut at) = (Time::NEVER, 0);
        for level in self.levels.iter().rev() {
            let (earliest, place) = earliest(&level[at]);
            (time, at) = (earliest, at * BLOCK + place);
        }
        (time, at)
    }

    /// Updates the tree levels above a slot, and stops at the first level that does not change.
    fn carry(&mut self, slot: usize) {
        let mut at = slot / BLOCK;
        for below in 0..self.levels.len() - 1 {
            let (time, _) = earliest(&self.levels[below][at]);
            let above = &mut self.levels[below + 1][at / BLOCK][at % BLOCK];
            if *above == time {
                return;
            }
            *above = time;
            at /= BLOCK;
        }
    }
}

/// Returns the earliest deadline of a block and its index; among equal deadlines, the lowest index. Deadlines are
/// compared in pairs without branches, because the next of many timers is unpredictable.
#[inline]
fn earliest(block: &Block) -> (Time, usize) {
    let mut left: [_; BLOCK] = std::array::from_fn(|place| (block[place], place));
    let mut pairs = BLOCK / 2;
    while pairs > 0 {
        for pair in 0..pairs {
            let (one, next) = (left[2 * pair], left[2 * pair + 1]);
            let sooner = next.0 < one.0;
            left[pair] =
                (select_unpredictable(sooner, next.0, one.0), select_unpredictable(sooner, next.1, one.1));
        }
        pairs /= 2;
    }
    left[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_times_go_to_the_lowest_slot() {
        let mut wakes = Wakes::default();
        for _ in 0..5 {
            wakes.add();
        }
        for slot in [4, 2, 3] {
            wakes.set(slot, Some(Time::from_nanos(7)));
        }
        assert_eq!(wakes.first(), Some((Time::from_nanos(7), 2)));
        wakes.set(2, None);
        assert_eq!(wakes.first(), Some((Time::from_nanos(7), 3)));
    }

    proptest! {
        #[test]
        fn the_first_is_the_minimum_of_all(ops in prop::collection::vec((0usize..600, prop::option::of(0u64..50)), 1..200)) {
            let mut wakes = Wakes::default();
            let mut model: Vec<Option<Time>> = Vec::new();
            for (slot, nanos) in ops {
                while model.len() <= slot {
                    prop_assert_eq!(wakes.add(), model.len());
                    model.push(None);
                }
                let deadline = nanos.map(Time::from_nanos);
                wakes.set(slot, deadline);
                model[slot] = deadline;
                let expected = model.iter().enumerate().filter_map(|(i, t)| t.map(|t| (t, i))).min();
                prop_assert_eq!(wakes.first(), expected);
            }
        }
    }
}
