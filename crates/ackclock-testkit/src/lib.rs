//! What the tests of several crates share: an allocator that counts, a file in memory, and how many
//! cases a property is tried on. Nothing but tests uses it.

mod allocations;
mod cases;
mod written;

pub use allocations::{Counting, allocations};
pub use cases::cases;
pub use written::Written;
