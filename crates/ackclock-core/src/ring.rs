//! The ring in which packets wait and travel, and in which a sender keeps what it sent.

use crate::prefetch;

/// First in, first out. Unlike a `VecDeque` it has both ends at hand, so that no place is worked out at each packet, and grows
/// by a sixteenth: with thousands of flows the room that doubling leaves empty would be most of the memory.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    slots: Vec<T>,
    /// Where the first one is.
    head: usize,
    /// Where the next one goes.
    tail: usize,
    len: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), head: 0, tail: 0, len: 0 }
    }
}

impl<T: Copy + Default> Ring<T> {
    /// The one that has been here for longest.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.len == 0 { None } else { self.slots.get(self.head) }
    }

    /// Puts one behind all others.
    #[inline(always)]
    pub fn push(&mut self, element: T) {
        *self.add() = element;
    }

    /// Adds a place behind all others, to be written: what is large is then copied once.
    #[inline(always)]
    pub fn add(&mut self) -> &mut T {
        if self.len == self.slots.len() {
            self.make_room();
        }
        let place = self.tail;
        self.tail = self.after(place);
        self.len += 1;
        &mut self.slots[place]
    }

    /// Puts one before all others.
    pub fn push_front(&mut self, element: T) {
        if self.len == self.slots.len() {
            self.make_room();
        }
        self.head = if self.head == 0 { self.slots.len() - 1 } else { self.head - 1 };
        self.len += 1;
        self.slots[self.head] = element;
    }

    /// Takes the first one away, if there is one.
    #[inline]
    pub fn drop_front(&mut self) {
        if self.len > 0 {
            self.head = self.after(self.head);
            self.len -= 1;
        }
    }

    /// Says that the first ones will be read soon, and one be put behind the last.
    #[inline]
    pub fn prefetch(&self) {
        // Where many come after one another the first ones have been fetched before them.
        const FURTHER: usize = 2;
        for slot in [self.head, self.head + FURTHER, self.tail] {
            prefetch::element(&self.slots, slot);
        }
    }

    /// Says that one will be put in so many places behind the last.
    #[inline(always)]
    pub fn prefetch_tail(&self, further: usize) {
        prefetch::element(&self.slots, self.tail + further);
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The one before which so many came, if there are more than that.
    #[inline]
    pub fn at(&self, number: usize) -> Option<&T> {
        if number < self.len { self.slots.get(self.slot(number)) } else { None }
    }

    /// The one before which so many came; there must be more than that.
    #[inline]
    pub fn get(&self, number: usize) -> &T {
        debug_assert!(number < self.len);
        &self.slots[self.slot(number)]
    }

    /// The element at this place, to change it.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> &mut T {
        debug_assert!(number < self.len);
        let slot = self.slot(number);
        &mut self.slots[slot]
    }

    /// All of them, the first one first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        (0..self.len).map(|number| self.get(number))
    }

    #[inline]
    fn slot(&self, number: usize) -> usize {
        let slot = self.head + number;
        if slot < self.slots.len() { slot } else { slot - self.slots.len() }
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    #[cold]
    fn make_room(&mut self) {
        const LEAST: usize = 4;
        let more = (self.len / 16).max(LEAST);
        self.slots.rotate_left(self.head);
        self.slots.reserve_exact(more);
        self.slots.resize(self.len + more, T::default());
        (self.head, self.tail) = (0, self.len);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_does_what_a_queue_does(operations in prop::collection::vec(0u32..6, 1..400)) {
            let (mut ring, mut queue) = (Ring::default(), VecDeque::new());
            for (number, operation) in operations.into_iter().enumerate() {
                match operation {
                    0..2 => {
                        ring.drop_front();
                        queue.pop_front();
                    }
                    2 => {
                        ring.push_front(number);
                        queue.push_front(number);
                    }
                    _ => {
                        ring.push(number);
                        queue.push_back(number);
                    }
                }
                prop_assert_eq!(ring.front(), queue.front());
                prop_assert_eq!((ring.len(), ring.is_empty()), (queue.len(), queue.is_empty()));
                prop_assert!(ring.iter().eq(queue.iter()));
            }
        }
    }
}
