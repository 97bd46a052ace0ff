//! What will be read soon, told to the processor.
//!
//! With thousands of flows the state of one has left the caches when its next packet comes. A packet that is under way says
//! early whose state that will be, so that it can be fetched while others are served. Nothing but time depends on it, and
//! addresses that are nobody's do no harm.

use std::slice::from_ref;

use prefetch_index::prefetch_index;

/// Bytes that a cache fetches at a time.
const LINE: usize = 64;

/// Fetches the line in which `place` begins.
#[inline(always)]
pub fn line_of<T>(place: &T) {
    prefetch_index(from_ref(place), 0);
}

/// Fetches so many lines, from the one in which `start` begins.
#[inline(always)]
pub fn lines_from<T>(start: &T, lines: usize) {
    const { assert!(LINE.is_multiple_of(size_of::<T>()), "lines are counted in elements") };
    for line in 0..lines {
        prefetch_index(from_ref(start), line * (LINE / size_of::<T>()));
    }
}

/// Fetches the line in which an element begins, or would.
#[inline(always)]
pub fn element<T>(elements: &[T], index: usize) {
    prefetch_index(elements, index);
}
