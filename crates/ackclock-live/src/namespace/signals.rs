//! Signals as events for which a thread can wait, with their senders.

use std::fs;
use std::io;
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals that request a program to end.
const REQUESTS: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
/// Signals to a link that do not request its end: child state changes, and background writes to a terminal.
const OTHERS: [Signal; 2] = [Signal::SIGCHLD, Signal::SIGTTOU];

/// Receiver of this process's pending signals, which replaces their default actions.
#[derive(Debug)]
pub struct Signals {
    pending: SignalFd,
    /// Signal mask before the signals were blocked.
    before: SigSet,
}

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Number of the signal.
    pub signal: Signal,
    /// Sender of the signal.
    pub sender: Sender,
}

/// Sender of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The kernel sent the signal, for example because of a key press at a terminal.
    Kernel,
    /// A process sent the signal.
    Process,
}

impl Received {
    /// Whether the signal requests this process to end, and the supervised command did not receive it. Key presses
    /// reach every foreground process of a terminal; a hang-up reaches only the first process of its session.
    pub fn is_ours(&self) -> bool {
        REQUESTS.contains(&self.signal) && (self.sender == Sender::Process || self.signal == Signal::SIGHUP)
    }

    /// Whether the signal requests a process to end.
    pub fn is_request(&self) -> bool {
        REQUESTS.contains(&self.signal)
    }
}

impl Signals {
    /// Blocks the signals in this thread and in threads that it starts later, and collects the blocked signals. Signals
    /// that were ignored when this process started, as under `nohup`, stay ignored.
    ///
    /// # Errors
    /// Fails if the kernel has no file descriptors left.
    pub fn take() -> io::Result<Self> {
        let ignored = ignored();
        let heeded = REQUESTS.into_iter().filter(|signal| ignored & bit(*signal) == 0);
        let set: SigSet = heeded.chain(OTHERS).collect();
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let pending = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { pending, before })
    }

    /// Restores this thread's signal mask. A forked child calls this function before it starts a program, which would
    /// inherit the blocked mask.
    ///
    /// # Errors
    /// Returns the kernel's error if the kernel refuses the request.
    pub(crate) fn leave(&self) -> io::Result<()> {
        Ok(self.before.thread_set_mask()?)
    }

    /// Waits for pending signals and returns them.
    ///
    /// # Errors
    /// Fails if the system call for waiting fails.
    pub fn wait(&self) -> io::Result<impl Iterator<Item = Received> + '_> {
        match poll(&mut [PollFd::new(self.pending.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(std::iter::from_fn(|| self.next())),
            Err(error) => Err(error.into()),
        }
    }

    fn next(&self) -> Option<Received> {
        let info = self.pending.read_signal().ok().flatten()?;
        // Codes above zero come from the kernel; processes use SI_USER, SI_QUEUE and SI_TKILL, which are not above
        // zero.
        let sender = if info.ssi_code > 0 { Sender::Kernel } else { Sender::Process };
        Some(Received { signal: Signal::try_from(info.ssi_signo as i32).ok()?, sender })
    }
}

/// Bit mask of the signals that this process ignores, bit n - 1 for signal n (proc(5)); zero if unreadable.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as u32 - 1)
}
