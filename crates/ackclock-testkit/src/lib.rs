//! What the tests of several crates share: an allocator that counts, and a file in memory. Nothing but tests uses it.

mod allocations;
mod written;

pub use allocations::{Counting, allocations};
pub use written::Written;
