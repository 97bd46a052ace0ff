//! Whether this process was started with a standard output.
//!
//! Before `main` the standard library puts `/dev/null` in the place of standard files that are closed, and from then on
//! everything can be printed and nobody hears of its loss. So the kernel is asked before that, when the program is loaded.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

static WAS_OPEN: AtomicBool = AtomicBool::new(true);

/// Whether standard output was open when the process was started.
pub fn was_open() -> bool {
    WAS_OPEN.load(Ordering::Relaxed)
}

#[used]
#[allow(unsafe_code)]
// SAFETY: the section holds functions of this form, which the loader calls before `main`; this one uses nothing that the
// standard library prepares.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = ask;

#[allow(unsafe_code)]
extern "C" fn ask() {
    // SAFETY: the call only looks at the number, and says where nothing is open under it.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_OPEN.store(flags >= 0, Ordering::Relaxed);
}
