//! Looks up names of servers beside the thread that moves data.

use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::sys::eventfd::{EfdFlags, EventFd};

/// Threads that look up. A slow name server holds up no more than these.
const THREADS: usize = 4;

/// A question: whose it is, and the server.
type Question = (u64, String, u16);

/// The threads and what they found.
pub struct Names {
    questions: Sender<Question>,
    answers: Receiver<(u64, Vec<SocketAddr>)>,
    bell: Arc<EventFd>,
}

impl Names {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the kernel gives no event descriptor.
    pub fn start() -> std::io::Result<Self> {
        let bell =
            Arc::new(EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
        let (questions, asked) = mpsc::channel::<Question>();
        let (found, answers) = mpsc::channel();
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..THREADS {
            let (asked, found, bell) = (Arc::clone(&asked), found.clone(), Arc::clone(&bell));
            thread::spawn(move || {
                loop {
                    let next = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((whose, host, port)) = next else { return };
                    let addresses = (host.as_str(), port)
                        .to_socket_addrs()
                        .map_or_else(|_| Vec::new(), Iterator::collect);
                    if found.send((whose, addresses)).is_err() || bell.write(1).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { questions, answers, bell })
    }

    /// Asks for the addresses of a server.
    pub fn ask(&self, whose: u64, host: String, port: u16) {
        // The threads live as long as this.
        let _ = self.questions.send((whose, host, port));
    }

    /// What was found since the last call; no addresses where the name is unknown.
    pub fn found(&self) -> impl Iterator<Item = (u64, Vec<SocketAddr>)> + '_ {
        let _ = self.bell.read();
        self.answers.try_iter()
    }

    /// Readable when something was found.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
