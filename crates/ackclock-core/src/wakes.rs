//! Which of many timers is due next: a tournament over fixed slots.
//!
//! One slot a component, so a deadline is overwritten in place and nothing is ever cancelled. The order is total:
//! earliest time first, and among equal times the lowest slot. Setting a slot that does not change any match of
//! the tournament stops at once, which is the usual case of a retransmission timer that moves later at every ACK.

use crate::Time;

/// The next deadline of each of a set of slots, and the earliest among them.
#[derive(Clone, Debug)]
pub struct Wakes {
    /// A complete binary tree: node 1 is the root, leaves begin at `leaves`. Each holds the winner below it.
    tree: Vec<(Time, u32)>,
    leaves: usize,
    len: usize,
}

impl Default for Wakes {
    fn default() -> Self {
        Self { tree: vec![(Time::NEVER, 0); 2], leaves: 1, len: 0 }
    }
}

impl Wakes {
    /// Adds a slot that is not due, and gives its number. Slots count from zero.
    pub fn add(&mut self) -> usize {
        if self.len == self.leaves {
            self.grow();
        }
        self.len += 1;
        self.len - 1
    }

    /// Sets the deadline of `slot`; `None` stops it.
    pub fn set(&mut self, slot: usize, deadline: Option<Time>) {
        let time = deadline.unwrap_or(Time::NEVER);
        let mut at = self.leaves + slot;
        if self.tree[at].0 == time {
            return;
        }
        self.tree[at].0 = time;
        while at > 1 {
            at /= 2;
            let winner = Self::play(self.tree[2 * at], self.tree[2 * at + 1]);
            if self.tree[at] == winner {
                return;
            }
            self.tree[at] = winner;
        }
    }

    /// The deadline of `slot`.
    pub fn deadline(&self, slot: usize) -> Option<Time> {
        Some(self.tree[self.leaves + slot].0).filter(|&time| time != Time::NEVER)
    }

    /// The earliest deadline and its slot.
    pub fn first(&self) -> Option<(Time, usize)> {
        let (time, slot) = self.tree[1];
        if time == Time::NEVER { None } else { Some((time, slot as usize)) }
    }

    fn play(left: (Time, u32), right: (Time, u32)) -> (Time, u32) {
        if right.0 < left.0 { right } else { left }
    }

    fn grow(&mut self) {
        let leaves = self.leaves * 2;
        let mut tree = vec![(Time::NEVER, 0); 2 * leaves];
        for slot in 0..leaves {
            let time = if slot < self.leaves { self.tree[self.leaves + slot].0 } else { Time::NEVER };
            // Slots are numbered by u32 because flows are.
            tree[leaves + slot] = (time, slot as u32);
        }
        for at in (1..leaves).rev() {
            tree[at] = Self::play(tree[2 * at], tree[2 * at + 1]);
        }
        *self = Self { tree, leaves, len: self.len };
    }
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
        fn the_first_is_the_minimum_of_all(ops in prop::collection::vec((0usize..40, prop::option::of(0u64..50)), 1..200)) {
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
