//! Which of many timers is due next.
//!
//! One slot a component, so a deadline is overwritten in place and nothing is ever cancelled. The order is total:
//! earliest time first, and among equal times the lowest slot.
//!
//! Deadlines stand in blocks of eight; above them stands the earliest of each block, again in blocks of eight, and so
//! on. Up to eight slots that is a plain array, which is scanned: the case of an engine with its few nodes. With many
//! slots setting one looks through its block and stops where the earliest does not change, which is the usual case of a
//! retransmission timer that moves later at every ACK.

use crate::Time;

/// Entries of a block.
const BLOCK: usize = 8;

/// The next deadline of each of a set of slots, and the earliest among them.
#[derive(Clone, Debug)]
pub struct Wakes {
    /// `levels[0]` are the deadlines; each level above has the earliest of every block below. The last has at most one
    /// block.
    levels: Vec<Vec<Time>>,
    /// The earliest deadline and its slot.
    first: (Time, usize),
}

impl Default for Wakes {
    fn default() -> Self {
        Self { levels: vec![Vec::new()], first: (Time::NEVER, 0) }
    }
}

impl Wakes {
    /// Adds a slot that is not due, and gives its number. Slots count from zero.
    pub fn add(&mut self) -> usize {
        for level in 0.. {
            self.levels[level].push(Time::NEVER);
            let entries = self.levels[level].len();
            if entries <= BLOCK {
                break;
            }
            if level + 1 == self.levels.len() {
                // The first block of this level has just become too small.
                let (time, _) = earliest(&self.levels[level][..BLOCK], 0);
                self.levels.push(vec![time]);
            }
            if entries % BLOCK != 1 {
                break;
            }
        }
        self.levels[0].len() - 1
    }

    /// Sets the deadline of `slot`; `None` stops it.
    #[inline]
    pub fn set(&mut self, slot: usize, deadline: Option<Time>) {
        let time = deadline.unwrap_or(Time::NEVER);
        self.levels[0][slot] = time;
        if self.levels.len() > 1 {
            self.carry(slot);
        }
        if (time, slot) < self.first {
            self.first = (time, slot);
        } else if slot == self.first.1 {
            self.first = self.search();
        }
    }

    /// The deadline of `slot`.
    pub fn deadline(&self, slot: usize) -> Option<Time> {
        Some(self.levels[0][slot]).filter(|&time| time != Time::NEVER)
    }

    /// Sets the deadline of `slot`, unless an earlier one stands there.
    #[inline]
    pub fn hasten(&mut self, slot: usize, deadline: Time) {
        if deadline < self.levels[0][slot] {
            self.set(slot, Some(deadline));
        }
    }

    /// The earliest deadline; [`Time::NEVER`] where no slot has one.
    #[inline]
    pub fn due(&self) -> Time {
        self.first.0
    }

    /// The earliest deadline and its slot.
    #[inline]
    pub fn first(&self) -> Option<(Time, usize)> {
        if self.first.0 == Time::NEVER { None } else { Some(self.first) }
    }

    /// Looks for the earliest deadline from the top down.
    fn search(&self) -> (Time, usize) {
        let (mut time, mut at) = (Time::NEVER, 0);
        for level in self.levels.iter().rev() {
            (time, at) = earliest(block(level, at), at * BLOCK);
        }
        (time, at)
    }

    /// Brings the levels above a slot up to date, as far as they change.
    fn carry(&mut self, slot: usize) {
        let mut at = slot / BLOCK;
        for below in 0..self.levels.len() - 1 {
            let (time, _) = earliest(block(&self.levels[below], at), 0);
            if self.levels[below + 1][at] == time {
                return;
            }
            self.levels[below + 1][at] = time;
            at /= BLOCK;
        }
    }
}

/// Block number `at` of a level; the last may be short.
#[inline]
fn block(level: &[Time], at: usize) -> &[Time] {
    &level[at * BLOCK..level.len().min((at + 1) * BLOCK)]
}

/// The earliest of a block and its place, counted from `first`; the lowest place among equals.
#[inline]
fn earliest(block: &[Time], first: usize) -> (Time, usize) {
    let mut best = (Time::NEVER, first);
    for (place, &time) in block.iter().enumerate() {
        if time < best.0 {
            best = (time, first + place);
        }
    }
    best
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
