//! Prefetching of memory into the processor caches.
//!
//! With thousands of flows, the state of a flow has left the caches when its next packet arrives. A packet in transit
//! shows early which state is needed next, so this state can be fetched while earlier packets are processed.
//! Prefetching affects only speed, and prefetching an invalid address is harmless.

use std::slice::from_ref;

use prefetch_index::prefetch_index;

/// Size of a cache line, bytes.
const LINE: usize = 64;

/// Prefetches the first cache line of `place`.
#[inline(always)]
pub fn line_of<T>(place: &T) {
    prefetch_index(from_ref(place), 0);
}

/// Prefetches `lines` cache lines, starting with the first line of `start`.
#[inline(always)]
pub fn lines_from<T>(start: &T, lines: usize) {
    const { assert!(LINE.is_multiple_of(size_of::<T>()), "lines are counted in elements") };
    for line in 0..lines {
        prefetch_index(from_ref(start), line * (LINE / size_of::<T>()));
    }
}

/// Prefetches the first cache line of an element. The index of the element may be out of bounds.
#[inline(always)]
pub fn element<T>(elements: &[T], index: usize) {
    prefetch_index(elements, index);
}
