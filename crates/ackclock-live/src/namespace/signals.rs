//! Signals as something to wait for, told apart by who sent them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals that a link takes care of: what ends a program, news of children, and writing to a terminal from behind.
const HANDLED: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGCHLD, Signal::SIGTTOU];

/// Pending signals of this process, instead of their usual effects.
#[derive(Debug)]
pub struct Signals(SignalFd);

/// One signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Which one.
    pub signal: Signal,
    /// Who sent it.
    pub sender: Sender,
}

/// Who sent a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The kernel: a terminal tells all its foreground processes, so each has heard it already.
    Kernel,
    /// A process, which meant this one.
    Process,
}

impl Signals {
    /// Blocks the signals in this thread, and in the threads it starts from now on, and collects them instead.
    ///
    /// # Errors
    /// Where the kernel has no file left.
    pub fn take() -> io::Result<Self> {
        let set: SigSet = HANDLED.into_iter().collect();
        set.thread_block()?;
        Ok(Self(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// The next pending signal.
    pub fn next(&self) -> Option<Received> {
        let info = self.0.read_signal().ok().flatten()?;
        // SI_USER, SI_QUEUE and SI_TKILL, by which processes send, are not above zero.
        let sender = if info.ssi_code > 0 { Sender::Kernel } else { Sender::Process };
        Some(Received { signal: Signal::try_from(info.ssi_signo as i32).ok()?, sender })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
