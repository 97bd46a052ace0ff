//! An allocator that counts, for tests of what allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with a count for each thread. A test file makes it its own:
///
/// ```
/// use ackclock_testkit::{Counting, allocations};
///
/// #[global_allocator]
/// static ALLOCATOR: Counting = Counting;
///
/// let before = allocations();
/// std::hint::black_box(Box::new(7));
/// assert_eq!(allocations() - before, 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Counting;

/// Allocations of the calling thread since it began. Where [`Counting`] is not the allocator, none.
pub fn allocations() -> u64 {
    COUNT.with(Cell::get)
}

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

#[allow(
    unsafe_code,
    reason = "an allocator can only be written in unsafe code; this one counts and hands on"
)]
// SAFETY: every call goes to the system's allocator as it came. Counting allocates nothing: the count is a plain number
// without a destructor, which is there as soon as its thread is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
