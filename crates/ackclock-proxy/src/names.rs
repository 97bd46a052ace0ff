//! Looks up server names on separate threads, so that relaying of data is not delayed.

use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::sys::eventfd::{EfdFlags, EventFd};

/// Number of threads for name lookups, and so the maximum number that a slow name server can block.
const THREADS: usize = 4;

/// Lookup request: token of the client, name and port of the server.
type Question = (u64, String, u16);

/// Lookup threads, with their queues of requests and results.
pub struct Names {
    questions: Sender<Question>,
    answers: Receiver<(u64, Vec<SocketAddr>)>,
    bell: Arc<EventFd>,
}

/// Addresses of a server, from the name service of the machine; none for an unknown name.
pub fn addresses(host: &str, port: u16) -> Vec<SocketAddr> {
    (host, port).to_socket_addrs().map_or_else(|_| Vec::new(), Iterator::collect)
}

impl Names {
    /// Starts the lookup threads; `lookup` returns the addresses of a server.
    ///
    /// # Errors
    /// Fails if the kernel cannot create an event descriptor.
    pub fn start(lookup: fn(&str, u16) -> Vec<SocketAddr>) -> std::io::Result<Self> {
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
                    if found.send((whose, lookup(&host, port))).is_err() || bell.write(1).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { questions, answers, bell })
    }

    /// Requests the addresses of a server; `whose` is the client's token.
    pub fn ask(&self, whose: u64, host: String, port: u16) {
        // The threads run as long as this value exists, so sending cannot fail.
        let _ = self.questions.send((whose, host, port));
    }

    /// Lookup results since the last call; an unknown name has no addresses.
    pub fn found(&self) -> impl Iterator<Item = (u64, Vec<SocketAddr>)> + '_ {
        let _ = self.bell.read();
        self.answers.try_iter()
    }

    /// Event descriptor that is readable when results are available.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
