//! Counts how many records in flight and how many ranges of a receiver are examined. Tests limit the number of examined
//! records and ranges instead of the CPU time.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// Counts one examined record or range.
pub(crate) fn look() {
    LOOKS.set(LOOKS.get() + 1);
}

/// Number of records and ranges that `run` examines.
pub(crate) fn looks_of(run: impl FnOnce()) -> u64 {
    let before = LOOKS.get();
    run();
    LOOKS.get() - before
}
