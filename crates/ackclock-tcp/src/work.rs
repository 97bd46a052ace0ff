//! Counts looks at records of segments in flight and at ranges of a receiver, so that tests bound work and never time.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// One more look.
pub(crate) fn look() {
    LOOKS.set(LOOKS.get() + 1);
}

/// Looks that `run` takes.
pub(crate) fn looks_of(run: impl FnOnce()) -> u64 {
    let before = LOOKS.get();
    run();
    LOOKS.get() - before
}
