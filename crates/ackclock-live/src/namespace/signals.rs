//! Signals as something to wait for, told apart by who sent them.

use std::fs;
use std::io;
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals that ask a program to end.
const REQUESTS: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
/// What else a link takes care of: news of children, and writing to a terminal from behind.
const OTHERS: [Signal; 2] = [Signal::SIGCHLD, Signal::SIGTTOU];

/// Pending signals of this process, instead of their usual effects.
#[derive(Debug)]
pub struct Signals {
    pending: SignalFd,
    /// What was blocked before.
    before: SigSet,
}

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
    /// The kernel, for a terminal.
    Kernel,
    /// A process, which meant this one.
    Process,
}

impl Received {
    /// Whether it asks this process to end, and the command that it looks after has not heard of it. A key is heard by every
    /// process in the foreground of a terminal; that the terminal is gone is told to the first process of its session alone.
    pub fn is_ours(&self) -> bool {
        REQUESTS.contains(&self.signal) && (self.sender == Sender::Process || self.signal == Signal::SIGHUP)
    }

    /// Whether it asks for an end, of whomever.
    pub fn is_request(&self) -> bool {
        REQUESTS.contains(&self.signal)
    }
}

impl Signals {
    /// Blocks the signals in this thread, and in the threads it starts from now on, and collects them instead. Requests that
    /// this process was told to ignore when it was started, as `nohup` does, stay ignored.
    ///
    /// # Errors
    /// Where the kernel has no file left.
    pub fn take() -> io::Result<Self> {
        let ignored = ignored();
        let heeded = REQUESTS.into_iter().filter(|signal| ignored & bit(*signal) == 0);
        let set: SigSet = heeded.chain(OTHERS).collect();
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let pending = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { pending, before })
    }

    /// Gives this thread its signals back: for a copy of the process that starts a program, which inherits what is blocked.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub(crate) fn leave(&self) -> io::Result<()> {
        Ok(self.before.thread_set_mask()?)
    }

    /// Waits until signals are pending, and gives them.
    ///
    /// # Errors
    /// Where the kernel cannot wait.
    pub fn wait(&self) -> io::Result<impl Iterator<Item = Received> + '_> {
        match poll(&mut [PollFd::new(self.pending.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(std::iter::from_fn(|| self.next())),
            Err(error) => Err(error.into()),
        }
    }

    fn next(&self) -> Option<Received> {
        let info = self.pending.read_signal().ok().flatten()?;
        // SI_USER, SI_QUEUE and SI_TKILL, by which processes send, are not above zero.
        let sender = if info.ssi_code > 0 { Sender::Kernel } else { Sender::Process };
        Some(Received { signal: Signal::try_from(info.ssi_signo as i32).ok()?, sender })
    }
}

/// Which signals this process ignores, bit n - 1 for signal n (proc(5)); none where that cannot be read.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as u32 - 1)
}
