//! Handles signals that ask a running link to end. The first signal goes to the command; a second signal ends the link
//! at once.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use ackclock_live::namespace::{Received, Signals};

use crate::failure::Failure;

/// Receiver of this process's signals, in a separate thread that no other operation can block.
pub(super) struct Requests {
    heard: Receiver<Received>,
    command_ended: Arc<AtomicBool>,
}

impl Requests {
    /// Starts collecting the signals of this thread and of all threads started later.
    ///
    /// # Errors
    /// Fails if signals cannot be collected.
    pub(super) fn hear() -> Result<Self, Failure> {
        Self::collect().map_err(|error| Failure::Run(format!("signals cannot be collected: {error}")))
    }

    fn collect() -> io::Result<Self> {
        let signals = Signals::take()?;
        let (sender, heard) = mpsc::channel();
        let command_ended = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&command_ended);
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || forward(&signals, &sender, &ended))?;
        Ok(Self { heard, command_ended })
    }

    /// Waits at most `most` for signals, and returns the received signals.
    pub(super) fn wait(&self, most: Duration) -> impl Iterator<Item = Received> + '_ {
        let first = self.heard.recv_timeout(most).ok();
        first.into_iter().chain(self.heard.try_iter())
    }

    /// Records that the command has ended, so that the command can no longer receive signals.
    pub(super) fn command_has_ended(&self) {
        self.command_ended.store(true, Ordering::Relaxed);
    }
}

fn forward(signals: &Signals, sender: &Sender<Received>, command_ended: &AtomicBool) {
    let mut patience = Patience::default();
    while let Ok(pending) = signals.wait() {
        for received in pending {
            let command = if command_ended.load(Ordering::Relaxed) { Command::Ended } else { Command::Runs };
            if patience.ends_with(received, command, now()) {
                // When this process exits, the kernel kills the command and its namespaces. Incomplete output files
                // keep their temporary names.
                process::exit(128 + received.signal as i32);
            }
            // If no thread receives the signal, the link is about to end anyway.
            let _ = sender.send(received);
        }
    }
}

/// Whether the command still runs and can receive signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Runs,
    Ended,
}

/// State of the earlier requests to end the link.
#[derive(Default)]
struct Patience {
    /// Time of the last request to end the link, whether sent to the command or to this process.
    heard: Option<Instant>,
    /// Whether an earlier request to end the link was sent to this process.
    asked: bool,
}

/// Maximum interval between signals that count as one request: `timeout` sends its signal twice, and closing a terminal
/// may send two signals.
const ONE_REQUEST: Duration = Duration::from_millis(500);

impl Patience {
    /// Returns whether a signal ends the link at once, because an earlier request was made or the command has ended.
    fn ends_with(&mut self, received: Received, command: Command, now: Instant) -> bool {
        if !received.is_request() || self.heard.is_some_and(|heard| now < heard + ONE_REQUEST) {
            return false;
        }
        let ends = command == Command::Ended || (self.asked && received.is_ours());
        self.heard = Some(now);
        self.asked |= received.is_ours();
        ends
    }
}

#[allow(clippy::disallowed_methods)] // The command may ask a clock.
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use ackclock_live::namespace::Sender::{self, Kernel, Process};
    use nix::sys::signal::Signal::{self, SIGCHLD, SIGHUP, SIGINT, SIGTERM};

    use super::Command::{Ended, Runs};
    use super::*;

    /// Feeds signals with their times in ms. Returns the index of the signal that ends the link.
    fn last_of(signals: &[(u64, Signal, Sender, Command)]) -> Option<usize> {
        let (mut patience, begun) = (Patience::default(), now());
        signals.iter().position(|&(at, signal, sender, command)| {
            patience.ends_with(Received { signal, sender }, command, begun + Duration::from_millis(at))
        })
    }

    #[test]
    fn a_second_request_ends_the_link_and_the_echo_of_the_first_does_not() {
        let term = |at| (at, SIGTERM, Process, Runs);
        assert_eq!(last_of(&[term(0), term(1), term(499)]), None);
        assert_eq!(last_of(&[term(0), term(1), term(500)]), Some(2));
        assert_eq!(last_of(&[(0, SIGHUP, Kernel, Runs), (900, SIGHUP, Process, Runs)]), Some(1));
        assert_eq!(last_of(&[term(0), (900, SIGCHLD, Kernel, Runs)]), None);
    }

    #[test]
    fn keys_belong_to_the_command_while_it_runs() {
        let key = |at, command| (at, SIGINT, Kernel, command);
        assert_eq!(last_of(&[key(0, Runs), key(1000, Runs), key(2000, Runs)]), None);
        assert_eq!(last_of(&[key(0, Runs), key(1, Ended)]), None, "the key that ended the command");
        assert_eq!(last_of(&[key(0, Runs), key(1000, Ended)]), Some(1));
        assert_eq!(last_of(&[key(0, Ended)]), Some(0));
    }
}
