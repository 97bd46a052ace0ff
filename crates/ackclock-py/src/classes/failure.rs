//! The first exception of a regulator in Python during a run, which stops the run.

use std::cell::RefCell;
use std::sync::Arc;

use ackclock_core::Time;
use ackclock_scenario::Progress;
use pyo3::prelude::*;

/// The run of this thread.
struct Running {
    progress: Arc<Progress>,
    extra_wakes: bool,
    failure: Option<PyErr>,
}

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// Calls `run`, which simulates on this thread with regulators in Python; an exception of a regulator stops it by `progress`. With `extra_wakes`,
/// regulators are woken more often than they ask for, to check that extra wakes change nothing.
///
/// # Errors
/// The first exception, with `label` as a note.
pub(crate) fn guarded<T: Send>(
    progress: Arc<Progress>,
    extra_wakes: bool,
    label: &str,
    run: impl FnOnce() -> T + Send,
) -> Result<T, PyErr> {
    RUNNING.set(Some(Running { progress, extra_wakes, failure: None }));
    // The interpreter keeps its state of this thread for the whole run, so that each call is cheap.
    let outcome = Python::attach(|py| py.detach(run));
    match RUNNING.take().and_then(|running| running.failure) {
        Some(failure) => {
            Python::attach(|py| note(py, &failure, label));
            Err(failure)
        }
        None => Ok(outcome),
    }
}

/// Stops the run of this thread because `method` raised `error` at `now`. Only the first exception counts.
pub(super) fn fail(py: Python<'_>, class: &str, method: &str, now: Time, error: PyErr) {
    note(py, &error, &format!("in {class}.{method} at {} s", now.as_secs_f64()));
    RUNNING.with_borrow_mut(|running| {
        if let Some(running) = running {
            running.progress.stop();
            running.failure.get_or_insert(error);
        }
    });
}

fn note(py: Python<'_>, error: &PyErr, text: &str) {
    // A note is help only: an exception that takes none is raised without it.
    let _ = error.value(py).call_method1("add_note", (text,));
}

/// Whether regulators of this thread's run are woken more often than they ask for.
pub(super) fn extra_wakes() -> bool {
    RUNNING.with_borrow(|running| running.as_ref().is_some_and(|running| running.extra_wakes))
}
