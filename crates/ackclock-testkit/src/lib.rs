//! Helpers shared by the tests of several crates: a counting allocator, a file in memory, and the number of cases of a
//! property test. Only tests use this crate.

mod allocations;
mod cases;
mod written;

pub use allocations::{Counting, allocations};
pub use cases::cases;
pub use written::Written;
