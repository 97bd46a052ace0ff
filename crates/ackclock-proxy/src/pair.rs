//! Pair of connections between which the proxy relays data.
//!
//! The proxy buffers data that one leg cannot send, at most one buffer per leg. A leg is one of the two connections.
//! While a leg has buffered data, the proxy does not read from the opposite leg, so that TCP flow control slows the
//! source. A FIN is relayed as a FIN, a RST as a RST.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{setsockopt, sockopt};

/// Maximum number of bytes relayed per call, and buffered per leg.
pub const BUFFER: usize = 64 * 1024;

/// One of the two connections of a pair.
#[derive(Debug)]
pub struct Leg {
    /// Non-blocking socket of the connection.
    pub socket: TcpStream,
    /// Bytes buffered for writing to the socket.
    waiting: Vec<u8>,
    /// Whether the peer has sent a FIN.
    ended: bool,
    /// Whether a FIN was sent to the peer.
    told_end: bool,
}

impl Leg {
    /// Creates a leg; `first` contains the first bytes to write.
    pub fn new(socket: TcpStream, first: Vec<u8>) -> Self {
        Self { socket, waiting: first, ended: false, told_end: false }
    }

    /// Writes buffered bytes; returns whether all bytes were written.
    fn flush(&mut self) -> io::Result<bool> {
        let mut done = 0;
        while done < self.waiting.len() {
            match self.socket.write(&self.waiting[done..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(more) => done += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.waiting.drain(..done);
        Ok(self.waiting.is_empty())
    }
}

/// The two connections of a client: first the connection to the client, then the connection to the server.
#[derive(Debug)]
pub struct Pair {
    legs: [Leg; 2],
}

/// State of a pair after relaying data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// The pair is still open.
    On,
    /// The client and the server have sent a FIN, and all data was relayed.
    Finished,
    /// One connection was reset, so the proxy reset the second connection too.
    Broken,
}

impl Pair {
    /// Creates a pair of two connected legs.
    pub const fn new(client: Leg, server: Leg) -> Self {
        Self { legs: [client, server] }
    }

    /// Socket of the connection to the client (0) or to the server (1).
    pub const fn socket(&self, leg: usize) -> &TcpStream {
        &self.legs[leg].socket
    }

    /// Relays available data in each direction, through `buffer`. The second result is the number of bytes read.
    pub fn go_on(&mut self, buffer: &mut [u8]) -> (Goes, u64) {
        let mut bytes = 0;
        for from in [0, 1] {
            match self.pump(from, buffer) {
                Ok(more) => bytes += more,
                Err(_) => {
                    self.reset();
                    return (Goes::Broken, bytes);
                }
            }
        }
        let is_over = self.legs.iter().all(|leg| leg.ended && leg.told_end);
        (if is_over { Goes::Finished } else { Goes::On }, bytes)
    }

    /// Relays data from one leg to the opposite leg: at most one buffer per call, so that one pair does not delay other
    /// pairs.
    fn pump(&mut self, from: usize, buffer: &mut [u8]) -> io::Result<u64> {
        let [first, second] = &mut self.legs;
        let (from, to) = if from == 0 { (first, second) } else { (second, first) };
        if !to.flush()? {
            return Ok(0);
        }
        let mut moved = 0;
        if !from.ended {
            match from.socket.read(buffer) {
                Ok(0) => from.ended = true,
                Ok(count) => {
                    moved = count as u64;
                    to.waiting.extend_from_slice(&buffer[..count]);
                    to.flush()?;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        if from.ended && to.waiting.is_empty() && !to.told_end {
            to.socket.shutdown(Shutdown::Write)?;
            to.told_end = true;
        }
        Ok(moved)
    }

    /// Epoll events for which each leg waits.
    pub fn interests(&self) -> [EpollFlags; 2] {
        [0, 1].map(|number: usize| {
            let (leg, other) = (&self.legs[number], &self.legs[1 - number]);
            let mut flags = EpollFlags::empty();
            if !leg.ended && other.waiting.is_empty() {
                flags |= EpollFlags::EPOLLIN;
            }
            if !leg.waiting.is_empty() {
                flags |= EpollFlags::EPOLLOUT;
            }
            flags
        })
    }

    /// Resets the two connections of the pair. A shutdown before the reset would send a FIN instead.
    pub fn reset(&self) {
        for leg in &self.legs {
            reset(&leg.socket);
        }
    }
}

/// Sets the socket to send a RST when it is closed.
pub fn reset(socket: &TcpStream) {
    let at_once = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    // The error of an already closed socket is ignored.
    let _ = setsockopt(&socket.as_fd(), sockopt::Linger, &at_once);
}
