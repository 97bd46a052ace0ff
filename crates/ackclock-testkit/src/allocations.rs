//! A counting allocator, for tests that code allocates no memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Wrapper of the system allocator that counts the allocations of each thread. A test file installs the wrapper as
/// global allocator:
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

/// Number of allocations made by the calling thread since it started; zero unless [`Counting`] is the global allocator.
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
// SAFETY: every call is passed unchanged to the system allocator. Counting allocates nothing: the counter is a plain
// number without a destructor, available for the whole life of its thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::alloc`, which is also the contract of
        // `System.alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::dealloc`, which is also the contract of
        // `System.dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}
