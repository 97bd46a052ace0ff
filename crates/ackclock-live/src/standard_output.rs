//! Detects whether this process was started with an open standard output.
//!
//! Before `main`, the standard library replaces closed standard files by `/dev/null`, so that later writes succeed
//! without effect. This module asks the kernel earlier, when the program is loaded.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

static WAS_OPEN: AtomicBool = AtomicBool::new(true);

/// Whether standard output was open at the start of the process.
pub fn was_open() -> bool {
    WAS_OPEN.load(Ordering::Relaxed)
}

#[used]
#[allow(unsafe_code)]
// SAFETY: the section holds functions of this type, which the loader calls before `main`; the function `ask` uses
// nothing that the standard library initialises.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = ask;

#[allow(unsafe_code)]
extern "C" fn ask() {
    // SAFETY: the call only inspects the descriptor, and fails if the descriptor is closed.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_OPEN.store(flags >= 0, Ordering::Relaxed);
}
