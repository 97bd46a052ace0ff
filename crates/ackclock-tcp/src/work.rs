//! Counts examined records of segments in flight and ranges of a receiver, so that tests bound work instead of time.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// Counts one examination.
pub(crate) fn look() {
    LOOKS.set(LOOKS.get() + 1);
}

/// Number of examinations made by `run`.
pub(crate) fn looks_of(run: impl FnOnce()) -> u64 {
    let before = LOOKS.get();
    run();
    LOOKS.get() - before
}
