//! Pair of connections between which the proxy relays data.
//!
//! The proxy buffers data that one leg cannot send, at most one buffer per leg. A leg is one of the two connections.
//! While a leg has buffered data, the proxy does not read from the opposite leg, so that TCP flow control slows the
//! source. A FIN is relayed as a FIN, a RST as a RST.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

use ackclock_core::ConnectionView;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{setsockopt, sockopt};

use crate::kernel::{Measured, measured, outstanding};

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
    /// Whether the peer has sent a FIN.
    ended: bool,
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
        let (ended, told_end, limit, held, was_held) = (false, false, None, false, false);
        Self { socket, waiting: first, ended, told_end, limit, held, was_held }
    }

    /// Writes buffered bytes; returns whether all bytes were written.
    fn flush(&mut self) -> io::Result<bool> {
        let (mut done, room) = (0, self.room()?);
        let end = self.waiting.len().min(room);
        self.held = end < self.waiting.len();
        self.was_held |= self.held;
        while done < end {
            match self.socket.write(&self.waiting[done..end]) {
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

    /// Number of bytes that the limit allows to be written now.
    fn room(&self) -> io::Result<usize> {
        let Some(Limit { window, packet }) = self.limit.filter(|_| !self.waiting.is_empty()) else {
            return Ok(usize::MAX);
        };
        let room = window.saturating_sub(outstanding(&self.socket)?);
        Ok(if room < packet.min(self.waiting.len()) { 0 } else { room })
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
    pub const fn is_backlogged(&self) -> bool {
        !self.legs[0].waiting.is_empty()
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

    /// Epoll events for which each leg waits.
    pub fn interests(&self) -> [EpollFlags; 2] {
        [0, 1].map(|number: usize| {
            let (leg, other) = (&self.legs[number], &self.legs[1 - number]);
            let mut flags = EpollFlags::empty();
            if !leg.ended && other.waiting.is_empty() {
                flags |= EpollFlags::EPOLLIN;
            }
            // A leg held back by its limit is polled instead: epoll would report its free send buffer at once.
            if !leg.waiting.is_empty() && !leg.held {
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
