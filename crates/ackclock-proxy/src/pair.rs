//! Pair of connections between which the proxy relays data.
//!
//! The kernel moves the data of a tunnel from one leg to the other, through a pipe; what belongs to an HTTP message is
//! copied. A leg is one of the two connections. The proxy buffers data that one leg cannot send, at most one pipe or
//! buffer per leg. While a leg has buffered data, the proxy does not read from the opposite leg, so that TCP flow control slows the
//! source. A FIN is relayed as a FIN. If one leg breaks, the proxy delivers all data that this leg had acknowledged, and
//! then resets the other leg.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::os::fd::AsFd;

use ackclock_core::ConnectionView;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{setsockopt, sockopt};

use crate::http::exchange::{Exchange, Refused};
use crate::kernel::{Measured, measured, outstanding};
use crate::pipe::{Pipe, Pipes};

/// Maximum number of bytes relayed per call, and buffered per leg.
pub const BUFFER: usize = 64 * 1024;
/// Bytes of the IPv4 and TCP headers, with TCP timestamps.
const HEADERS: u32 = 52;

/// One of the two connections of a pair.
#[derive(Debug)]
pub struct Leg {
    /// Non-blocking socket of the connection.
    pub socket: TcpStream,
    /// Bytes buffered for writing to the socket.
    waiting: Vec<u8>,
    /// Pipe with bytes to be sent after those in `waiting`.
    pipe: Option<Pipe>,
    /// Whether the peer has sent a FIN, or nothing more can be read from a broken leg.
    ended: bool,
    /// Whether the connection was reset, or its peer does not answer.
    broken: bool,
    /// Whether a FIN was sent to the peer.
    told_end: bool,
    limit: Option<Limit>,
    /// Whether the limit held back bytes in the last call of `flush`.
    held: bool,
    /// Whether the limit held back bytes since the last call of `view`.
    was_held: bool,
}

/// Limit of the bytes that are in flight on a leg or unsent in its socket.
#[derive(Clone, Copy, Debug)]
struct Limit {
    window: usize,
    /// Smallest number of bytes worth sending: one full-sized packet.
    packet: usize,
}

impl Leg {
    /// Creates a leg; `first` contains the first bytes to write.
    pub fn new(socket: TcpStream, first: Vec<u8>) -> Self {
        let (ended, broken, told_end, limit, held, was_held) = (false, false, false, None, false, false);
        Self { socket, waiting: first, pipe: None, ended, broken, told_end, limit, held, was_held }
    }

    /// Number of bytes that are buffered.
    fn backlog(&self) -> usize {
        self.waiting.len() + self.pipe.as_ref().map_or(0, Pipe::len)
    }

    /// Sends buffered bytes; returns whether all bytes were sent.
    fn flush(&mut self, pipes: &mut Pipes) -> bool {
        let mut waiting = std::mem::take(&mut self.waiting);
        let done = self.write(&waiting);
        // An empty buffer keeps no memory, because most connections are idle.
        if done < waiting.len() {
            waiting.drain(..done);
            self.waiting = waiting;
            return false;
        }
        let Some(mut pipe) = self.pipe.take() else { return true };
        let length = pipe.len();
        if self.send_by(length, |socket, range| pipe.drain(socket, range.len())) < length {
            self.pipe = Some(pipe);
            return false;
        }
        pipes.give_back(pipe);
        true
    }

    /// Writes bytes while no bytes are buffered, and buffers those that cannot be written.
    fn send(&mut self, bytes: &[u8]) {
        let done = self.write(bytes);
        self.waiting.extend_from_slice(&bytes[done..]);
    }

    /// Writes as many bytes as the limit and the socket allow; returns their number. A broken leg takes all bytes.
    fn write(&mut self, bytes: &[u8]) -> usize {
        self.send_by(bytes.len(), |mut socket, range| socket.write(&bytes[range]))
    }

    /// Sends as many of `length` bytes as the limit and the socket allow, by calls that each send a part of a range;
    /// returns their number. A broken leg takes all bytes.
    fn send_by(
        &mut self,
        length: usize,
        mut part: impl FnMut(&TcpStream, Range<usize>) -> io::Result<usize>,
    ) -> usize {
        let mut done = 0;
        let result = self.room(length).and_then(|room| {
            let end = length.min(room);
            self.held = end < length;
            self.was_held |= self.held;
            while done < end {
                match part(&self.socket, done..end) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(more) => done += more,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        self.broken |= result.is_err();
        if self.broken { length } else { done }
    }

    /// Number of bytes of `length` that the limit allows to be written now.
    fn room(&self, length: usize) -> io::Result<usize> {
        let Some(Limit { window, packet }) = self.limit.filter(|_| length > 0) else {
            return Ok(usize::MAX);
        };
        let room = window.saturating_sub(outstanding(&self.socket)?);
        Ok(if room < packet.min(length) { 0 } else { room })
    }

    /// Receives bytes by a call; no bytes if none are available, or at the end.
    fn receive(&mut self, call: impl FnOnce(&TcpStream) -> io::Result<usize>) -> usize {
        match call(&self.socket) {
            Ok(count) => {
                self.ended |= count == 0;
                count
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                self.ended |= self.broken;
                0
            }
            Err(_) => {
                (self.broken, self.ended) = (true, true);
                0
            }
        }
    }
}

/// The two connections of a client: first the connection to the client, then the connection to the server.
#[derive(Debug)]
pub struct Pair {
    legs: [Leg; 2],
    /// Request and answer of HTTP; `None` for a tunnel.
    exchange: Option<Box<Exchange>>,
}

/// Both legs of a pair.
pub const LEGS: &[usize] = &[0, 1];

/// Legs from which an epoll event of a leg lets data go on: from the leg if it can be read or has ended, and from the
/// opposite leg if the leg can be written.
pub fn sources(leg: usize, flags: EpollFlags) -> &'static [usize] {
    let is_writable = flags.contains(EpollFlags::EPOLLOUT);
    let is_readable = flags.intersects(EpollFlags::EPOLLOUT.complement());
    match (is_readable, is_writable, leg) {
        (true, true, _) => LEGS,
        (true, false, 0) | (false, true, 1) => &[0],
        _ => &[1],
    }
}

/// State of a pair after relaying data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goes {
    /// The pair is still open.
    On,
    /// One connection is broken, and bytes that it had acknowledged are not yet delivered to the other one: this many.
    Delivers(usize),
    /// The client and the server have sent a FIN, and all data was relayed.
    Finished,
    /// The answer of an HTTP server was relayed: the connection to the client ends.
    Answered,
    /// A message of HTTP from this leg could be read in two ways: the client receives this answer instead.
    Refused(usize, Vec<u8>),
    /// One connection was reset, so the proxy reset the second connection too.
    Broken,
}

impl Pair {
    /// Creates a pair of two connected legs, with the exchange of a plain HTTP request.
    pub fn new(client: Leg, server: Leg, exchange: Option<Exchange>) -> Self {
        Self { legs: [client, server], exchange: exchange.map(Box::new) }
    }

    /// Socket of the connection to the client (0) or to the server (1).
    pub const fn socket(&self, leg: usize) -> &TcpStream {
        &self.legs[leg].socket
    }

    /// Ends the pair; returns the socket of the client.
    pub fn into_client(self) -> TcpStream {
        let [client, _] = self.legs;
        client.socket
    }

    /// Notes that a connection is broken, as epoll reports.
    pub const fn break_leg(&mut self, leg: usize) {
        self.legs[leg].broken = true;
    }

    /// Relays available data from these legs to the opposite ones, through a pipe or `buffer`. The second result is the
    /// number of bytes read.
    pub fn go_on(&mut self, from: &[usize], buffer: &mut [u8], pipes: &mut Pipes) -> (Goes, u64) {
        let mut bytes = 0;
        for &from in from {
            match self.pump(from, buffer, pipes) {
                Ok(more) => bytes += more,
                Err(refused) => return (self.refuse(from, refused), bytes),
            }
        }
        let goes = match [0, 1].map(|leg: usize| self.legs[leg].broken) {
            [false, false] => self.goes(),
            [true, true] => self.breaks(),
            [client, _] => {
                let broken = usize::from(!client);
                match self.deliver(broken, buffer, pipes) {
                    Ok((left, more)) => {
                        bytes += more;
                        match self.goes() {
                            Goes::Answered => Goes::Answered,
                            _ if left > 0 => Goes::Delivers(left),
                            _ => self.breaks(),
                        }
                    }
                    Err(refused) => self.refuse(broken, refused),
                }
            }
        };
        (goes, bytes)
    }

    fn goes(&self) -> Goes {
        let is_relayed = self.legs[0].backlog() == 0;
        let [client, server] = &self.legs;
        let has_answer = |exchange: &Exchange| exchange.has_answer() || server.ended && !server.broken;
        match &self.exchange {
            Some(exchange) if has_answer(exchange) && is_relayed && !client.broken => Goes::Answered,
            _ if self.legs.iter().all(|leg| leg.ended && leg.told_end) => Goes::Finished,
            _ => Goes::On,
        }
    }

    fn refuse(&self, leg: usize, refused: Refused) -> Goes {
        refused.map_or_else(|| self.breaks(), |answer| Goes::Refused(leg, answer))
    }

    fn breaks(&self) -> Goes {
        self.reset();
        Goes::Broken
    }

    /// Resets the two connections of the pair when they are closed.
    pub fn reset(&self) {
        self.legs.iter().for_each(|leg| reset(&leg.socket));
    }

    /// Relays what a broken leg had acknowledged: all that its receive buffer contains. Returns the number of bytes that
    /// the other leg has not delivered yet, and the number of bytes read.
    fn deliver(
        &mut self,
        broken: usize,
        buffer: &mut [u8],
        pipes: &mut Pipes,
    ) -> Result<(usize, u64), Refused> {
        let mut bytes = 0;
        loop {
            let more = self.pump(broken, buffer, pipes)?;
            bytes += more;
            if more == 0 {
                break;
            }
        }
        let to = &self.legs[1 - broken];
        if to.broken {
            return Ok((0, bytes));
        }
        let unread = usize::from(!self.legs[broken].ended && !self.is_over(broken));
        Ok((unread + to.backlog() + outstanding(&to.socket).unwrap_or(0), bytes))
    }

    /// Whether the message of HTTP from this leg is complete, so that nothing more is read from it.
    fn is_over(&self, from: usize) -> bool {
        let is_over =
            |exchange: &Exchange| if from == 0 { exchange.has_request() } else { exchange.has_answer() };
        self.exchange.as_deref().is_some_and(is_over)
    }

    /// Relays data from one leg to the opposite leg: at most one buffer per call, so that one pair does not delay other
    /// pairs. Returns the number of bytes read.
    fn pump(&mut self, from: usize, buffer: &mut [u8], pipes: &mut Pipes) -> Result<u64, Refused> {
        let is_over = self.is_over(from);
        let [first, second] = &mut self.legs;
        let (source, to) = if from == 0 { (first, second) } else { (second, first) };
        if !to.flush(pipes) || to.broken {
            return Ok(0);
        }
        let mut moved = 0;
        if !source.ended && !is_over {
            to.pipe = if self.exchange.is_none() { pipes.take() } else { None };
            let count = source.receive(|mut socket| match &mut to.pipe {
                Some(pipe) => pipe.fill(socket),
                None => socket.read(buffer),
            });
            moved = count as u64;
            match &mut self.exchange {
                None if to.pipe.is_some() => {}
                None => to.send(&buffer[..count]),
                Some(exchange) if from == 0 => exchange.pass_request(&buffer[..count], &mut to.waiting)?,
                Some(exchange) => {
                    exchange.pass_answer(&buffer[..count], &mut to.waiting)?;
                    if source.ended {
                        exchange.end_answer()?;
                    }
                    if exchange.is_upgraded() {
                        self.exchange = None;
                    }
                }
            }
            to.flush(pipes);
        }
        let has_ended = source.ended && !source.broken && (self.exchange.is_none() || from == 0);
        if has_ended && to.backlog() == 0 && !to.told_end && !to.broken {
            to.broken |= to.socket.shutdown(Shutdown::Write).is_err();
            to.told_end = true;
        }
        Ok(moved)
    }

    /// Limits the bytes in flight towards the client; `None` removes the limit.
    pub fn limit(&mut self, window: Option<u32>) {
        let leg = &mut self.legs[0];
        let packet = measured(&leg.socket).map_or(1, |measured| measured.mss as usize);
        leg.limit = window.map(|window| Limit { window: window as usize, packet });
    }

    /// Whether the limit holds back bytes for the client.
    pub const fn is_held(&self) -> bool {
        self.legs[0].held
    }

    /// Whether the proxy buffers bytes for the client.
    pub fn is_backlogged(&self) -> bool {
        self.legs[0].backlog() > 0
    }

    /// State of the connection to the client, for its steering.
    ///
    /// # Errors
    /// Fails if the kernel does not report the state.
    pub fn view(&mut self) -> io::Result<ConnectionView> {
        let backlogged = self.is_backlogged();
        let leg = &mut self.legs[0];
        let Measured { mss, min_rtt } = measured(&leg.socket)?;
        let headers = if leg.socket.peer_addr()?.is_ipv4() { HEADERS } else { HEADERS + 20 };
        let window_limited = std::mem::take(&mut leg.was_held);
        Ok(ConnectionView { backlogged, window_limited, min_rtt, mss, packet: mss + headers })
    }

    /// Epoll events for which each leg waits, in addition to errors; `None` for a leg whose hang-up or error epoll would
    /// report repeatedly.
    pub fn interests(&self) -> [Option<EpollFlags>; 2] {
        [0, 1].map(|number: usize| {
            let (leg, other) = (&self.legs[number], &self.legs[1 - number]);
            let mut flags = EpollFlags::empty();
            if !leg.ended && !self.is_over(number) && other.backlog() == 0 && !other.broken {
                flags |= EpollFlags::EPOLLIN;
            }
            // A leg held back by its limit is polled instead: epoll would report its free send buffer at once.
            if leg.backlog() > 0 && !leg.held {
                flags |= EpollFlags::EPOLLOUT;
            }
            (!(leg.broken || flags.is_empty() && leg.told_end)).then_some(flags)
        })
    }
}

/// Sets the socket to send a RST when it is closed.
pub fn reset(socket: &TcpStream) {
    let at_once = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    // The error of an already closed socket is ignored.
    let _ = setsockopt(&socket.as_fd(), sockopt::Linger, &at_once);
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests use real sockets")]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn connected() -> (TcpStream, Leg) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        (peer, Leg::new(socket, b"first".to_vec()))
    }

    #[test]
    fn data_keeps_its_order_with_a_pipe_and_by_copies_without_one() {
        for files in [0, Pipes::FILES] {
            let ((mut client, to_client), (mut server, to_server)) = (connected(), connected());
            let (mut pair, mut pipes) = (Pair::new(to_client, to_server, None), Pipes::new(files));
            let sent: Vec<u8> = (0..2_000_000_u32).map(|number| (number % 251) as u8).collect();
            let expected = [b"first", &sent[..]].concat();
            let writes = thread::spawn(move || {
                server.write_all(&sent).unwrap();
                server.shutdown(Shutdown::Write).unwrap();
                server
            });
            let reads = thread::spawn(move || {
                let mut got = vec![0; expected.len()];
                client.read_exact(&mut got).unwrap();
                assert!(got == expected, "{files} files");
                assert_eq!(client.read(&mut [0]).unwrap(), 0, "the end is relayed");
            });
            let (mut relayed, mut buffer) = (0, vec![0; BUFFER]);
            while !(pair.legs[0].told_end) {
                let (goes, bytes) = pair.go_on(LEGS, &mut buffer, &mut pipes);
                assert_eq!(goes, Goes::On);
                relayed += bytes;
                assert_eq!(pair.legs[0].pipe.is_some(), files > 0 && pair.is_backlogged());
            }
            assert_eq!(relayed, 2_000_000);
            reads.join().unwrap();
            drop(writes.join().unwrap());
        }
    }
}
