//! The ring in which packets wait and travel.

/// Elements up to which a ring doubles; larger ones grow by a sixteenth, because with thousands of flows the room that
/// doubling leaves empty would be most of the memory.
const DOUBLES_UP_TO: usize = 1024;

/// First in, first out. Unlike a `VecDeque` it has both ends at hand, so that no place is worked out at each packet.
#[derive(Debug)]
pub(crate) struct Ring<T> {
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

impl<T: Copy> Ring<T> {
    /// The one that has been here for longest.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.len == 0 { None } else { self.slots.get(self.head) }
    }

    /// Puts one behind all others.
    #[inline(always)]
    pub(crate) fn push(&mut self, element: T) {
        if self.len == self.slots.len() {
            self.make_room(element);
        }
        self.slots[self.tail] = element;
        self.tail = self.after(self.tail);
        self.len += 1;
    }

    /// Takes the first one away, if there is one.
    #[inline]
    pub(crate) fn drop_front(&mut self) {
        if self.len > 0 {
            self.head = self.after(self.head);
            self.len -= 1;
        }
    }

    /// All of them, the first one first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        (0..self.len).map(|number| {
            let slot = self.head + number;
            &self.slots[if slot < self.slots.len() { slot } else { slot - self.slots.len() }]
        })
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    /// Makes room; empty places hold copies of `filler`.
    #[cold]
    fn make_room(&mut self, filler: T) {
        let more = if self.len < DOUBLES_UP_TO { self.len.max(4) } else { self.len / 16 };
        self.slots.rotate_left(self.head);
        self.slots.reserve_exact(more);
        self.slots.resize(self.len + more, filler);
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
        fn it_does_what_a_queue_does(operations in prop::collection::vec(0u32..3, 1..400)) {
            let (mut ring, mut queue) = (Ring::default(), VecDeque::new());
            for (number, operation) in operations.into_iter().enumerate() {
                match operation {
                    0 => {
                        ring.drop_front();
                        queue.pop_front();
                    }
                    _ => {
                        ring.push(number);
                        queue.push_back(number);
                    }
                }
                prop_assert_eq!(ring.front(), queue.front());
                prop_assert!(ring.iter().eq(queue.iter()));
            }
        }
    }
}
