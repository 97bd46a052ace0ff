//! Server for socket clients with one request and one answer each; no client can block another client.
//!
//! One thread serves at most 64 clients. If another client connects, the server drops the client that has spent the
//! longest time sending its request. A client has five seconds in total to send its request and receive the answer.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Request and answer format of a service.
pub(crate) trait Protocol {
    /// Maximum length of a request in bytes; longer requests are not answered.
    const LONGEST: usize;

    /// Whether the bytes received so far are a complete request.
    fn is_whole(question: &[u8]) -> bool;

    /// Answer to a client without permission; `None` for a permitted client.
    fn refusal(&self, client: &File) -> Option<Vec<u8>>;

    /// Answer to a request.
    fn answer(&self, question: &[u8]) -> Vec<u8>;
}

/// Serves clients of a listening socket until the process ends; `accept` accepts one client.
///
/// # Errors
/// Fails if the kernel does not report new clients.
pub(crate) fn serve<P: Protocol>(
    door: BorrowedFd<'_>,
    accept: impl Fn() -> io::Result<OwnedFd>,
    protocol: &P,
) -> io::Result<()> {
    stop_blocking(door)?;
    let mut clients: Vec<Client> = Vec::new();
    let mut at_the_door = Came::Perhaps;
    loop {
        wait(door, at_the_door, &clients)?;
        let now = now();
        clients.retain_mut(|client| client.go_on(protocol) == Then::Stay && now < client.deadline);
        at_the_door = let_in(&accept, protocol, now, &mut clients);
    }
}

/// Whether more clients may be waiting to connect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    Perhaps,
    /// A client tried to connect but cannot be accepted: no file descriptors are left.
    InVain,
}

fn let_in<P: Protocol>(
    accept: impl Fn() -> io::Result<OwnedFd>,
    protocol: &P,
    now: Instant,
    clients: &mut Vec<Client>,
) -> Came {
    // The loop is bounded, so that many new clients do not block clients already accepted.
    for _ in 0..MOST {
        match accept().and_then(|client| stop_blocking(client.as_fd()).map(|()| client)) {
            Ok(client) => {
                if clients.len() == MOST {
                    // A client that is receiving its answer is nearly finished, so a client that is still sending its
                    // request is dropped first.
                    clients.remove(clients.iter().position(Client::is_asking).unwrap_or(0));
                }
                clients.push(Client::new(client, now, protocol));
            }
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Came::Perhaps,
            Err(_) => return Came::InVain,
        }
    }
    Came::Perhaps
}

/// Waits until a client connects, sends, can receive, or times out.
fn wait(door: BorrowedFd<'_>, at_the_door: Came, clients: &[Client]) -> io::Result<()> {
    let mut files: Vec<PollFd<'_>> = clients.iter().map(Client::waits_for).collect();
    let first_end = clients.iter().map(|client| client.deadline).min();
    let mut most = first_end.map(|end| end.saturating_duration_since(now()) + Duration::from_millis(1));
    match at_the_door {
        Came::Perhaps => files.push(PollFd::new(door, PollFlags::POLLIN)),
        Came::InVain => most = Some(BREATH),
    }
    let timeout =
        most.map_or(PollTimeout::NONE, |most| PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX));
    match poll(&mut files, timeout) {
        Ok(_) | Err(nix::Error::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn stop_blocking(file: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(file, FcntlArg::F_GETFL)?);
    fcntl(file, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "real clients are waited for in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Maximum number of simultaneous clients.
const MOST: usize = 64;
/// Time limit for a client's request and answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause after the server could not accept a client.
const BREATH: Duration = Duration::from_millis(100);

/// Client that is sending its request or receiving its answer.
struct Client {
    stream: File,
    deadline: Instant,
    question: Vec<u8>,
    /// Answer to the client, with the number of bytes already sent.
    answer: Option<(Vec<u8>, usize)>,
}

/// Next action of the server for a client.
#[derive(PartialEq, Eq)]
enum Then {
    Stay,
    Leave,
}

impl Client {
    fn new(stream: OwnedFd, now: Instant, protocol: &impl Protocol) -> Self {
        let stream = File::from(stream);
        let answer = protocol.refusal(&stream).map(|refusal| (refusal, 0));
        Self { stream, deadline: now + PATIENCE, question: Vec::new(), answer }
    }

    fn is_asking(&self) -> bool {
        self.answer.is_none()
    }

    fn waits_for(&self) -> PollFd<'_> {
        let event = if self.is_asking() { PollFlags::POLLIN } else { PollFlags::POLLOUT };
        PollFd::new(self.stream.as_fd(), event)
    }

    /// Receives the request and sends the answer as far as possible without blocking.
    fn go_on<P: Protocol>(&mut self, protocol: &P) -> Then {
        if self.answer.is_none() {
            match self.hear::<P>() {
                Ok(Heard::All) => self.answer = Some((protocol.answer(&self.question), 0)),
                Ok(Heard::Nothing) => return Then::Leave,
                Err(error) => return Self::after(&error),
            }
        }
        match self.say() {
            Ok(()) => Then::Leave,
            Err(error) => Self::after(&error),
        }
    }

    fn after(error: &io::Error) -> Then {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Then::Stay,
            // The client disconnected before it received its answer.
            _ => Then::Leave,
        }
    }

    /// Receives more of the request; returns an error while the request is incomplete.
    fn hear<P: Protocol>(&mut self) -> io::Result<Heard> {
        let mut piece = [0; 4096];
        loop {
            let length = self.stream.read(&mut piece)?;
            self.question.extend_from_slice(&piece[..length]);
            if self.question.len() > P::LONGEST || (length == 0 && self.question.is_empty()) {
                return Ok(Heard::Nothing);
            }
            if length == 0 || P::is_whole(&self.question) {
                return Ok(Heard::All);
            }
        }
    }

    fn say(&mut self) -> io::Result<()> {
        let Some((answer, said)) = &mut self.answer else { return Ok(()) };
        while *said < answer.len() {
            match self.stream.write(&answer[*said..])? {
                0 => return Err(ErrorKind::WriteZero.into()),
                length => *said += length,
            }
        }
        Ok(())
    }
}

enum Heard {
    /// The client's request is complete.
    All,
    /// The received bytes are not a request that can be answered.
    Nothing,
}
