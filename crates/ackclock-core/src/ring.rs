//! Ring buffer for packets in queues and in transit, and for the sent segments of a sender.

use crate::prefetch;

/// First-in, first-out queue in a ring buffer. Unlike a `VecDeque`, the ring stores the positions of both ends instead
/// of computing them for each packet. The ring grows by a sixteenth of its size: with thousands of flows, doubling
/// would leave most of the memory empty.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    slots: Vec<T>,
    /// Index of the first element.
    head: usize,
    /// Index of the slot after the last element.
    tail: usize,
    len: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), head: 0, tail: 0, len: 0 }
    }
}

impl<T: Copy + Default> Ring<T> {
    /// Returns the oldest element of the ring.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.len == 0 { None } else { self.slots.get(self.head) }
    }

    /// Appends an element at the end.
    #[inline(always)]
    pub fn push(&mut self, element: T) {
        *self.add() = element;
    }

    /// Appends a slot and returns it for writing, so that a large element is copied only once.
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

    /// Inserts an element at the front.
    pub fn push_front(&mut self, element: T) {
        if self.len == self.slots.len() {
            self.make_room();
        }
        self.head = if self.head == 0 { self.slots.len() - 1 } else { self.head - 1 };
        self.len += 1;
        self.slots[self.head] = element;
    }

    /// Removes the first element, if any.
    #[inline]
    pub fn drop_front(&mut self) {
        if self.len > 0 {
            self.head = self.after(self.head);
            self.len -= 1;
        }
    }

    /// Prefetches the first elements, and the slot after the last element.
    #[inline]
    pub fn prefetch(&self) {
        // If many elements are read in sequence, the first elements were prefetched by earlier calls.
        const FURTHER: usize = 2;
        for slot in [self.head, self.head + FURTHER, self.tail] {
            prefetch::element(&self.slots, slot);
        }
    }

    /// Prefetches the slot that lies `further` slots after the last element.
    #[inline(always)]
    pub fn prefetch_tail(&self, further: usize) {
        prefetch::element(&self.slots, self.tail + further);
    }

    /// Number of elements in the ring.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the ring has no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the element at this index from the front, or `None` beyond the end.
    #[inline]
    pub fn at(&self, number: usize) -> Option<&T> {
        if number < self.len { self.slots.get(self.slot(number)) } else { None }
    }

    /// Returns the element at this index from the front. The index must be below the number of elements in the ring.
    #[inline]
    pub fn get(&self, number: usize) -> &T {
        debug_assert!(number < self.len);
        &self.slots[self.slot(number)]
    }

    /// Returns the element at this index from the front for changing. The index must be below the number of elements in
    /// the ring.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> &mut T {
        debug_assert!(number < self.len);
        let slot = self.slot(number);
        &mut self.slots[slot]
    }

    /// Iterates over all elements, oldest first.
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
