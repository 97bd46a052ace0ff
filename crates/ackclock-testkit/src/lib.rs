//! Helpers shared by the tests of several crates: a counting allocator, a file in memory, the number of cases of a
//! property test, and the comparison of BPF objects with their source. Only tests use this crate.

mod allocations;
mod cases;
mod objects;
mod written;

pub use allocations::{Counting, allocations};
pub use cases::cases;
pub use objects::objects_are_current;
pub use written::Written;
