//! Two connections whose data is moved from one to the other.
//!
//! What one leg cannot send waits here, at most a buffer; the other leg is not read meanwhile, so that TCP itself slows
//! its source. An end of data goes on as an end, a reset as a reset.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{setsockopt, sockopt};

/// Bytes that are moved at once, and that wait at most.
pub const BUFFER: usize = 64 * 1024;

/// One of the two connections.
#[derive(Debug)]
pub struct Leg {
    /// The socket, which never blocks.
    pub socket: TcpStream,
    /// What waits to be written to it.
    waiting: Vec<u8>,
    /// Its peer has ended its data.
    ended: bool,
    /// The end of data was passed on to it.
    told_end: bool,
}

impl Leg {
    /// A leg to which `first` is to be written.
    pub fn new(socket: TcpStream, first: Vec<u8>) -> Self {
        Self { socket, waiting: first, ended: false, told_end: false }
    }

    /// Writes what waits; whether it is all written.
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

/// Both connections of a client: that with the client first.
#[derive(Debug)]
pub struct Pair {
    legs: [Leg; 2],
}

/// Whether a pair goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// It does.
    On,
    /// Both ends have ended their data, and all was passed on.
    Finished,
    /// One was reset, and so was the other.
    Broken,
}

impl Pair {
    /// Two connected legs.
    pub const fn new(client: Leg, server: Leg) -> Self {
        Self { legs: [client, server] }
    }

    /// The socket of the client (0) or the server (1).
    pub const fn socket(&self, leg: usize) -> &TcpStream {
        &self.legs[leg].socket
    }

    /// Moves what can be moved, both ways, through `buffer`. Returns the bytes that were read as well.
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

    /// Moves data that came from one leg to the other: one buffer a call, so that no pair keeps others waiting.
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

    /// What each leg waits for.
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

    /// Resets both connections. A shutdown before it would make a clean end of it.
    pub fn reset(&self) {
        for leg in &self.legs {
            reset(&leg.socket);
        }
    }
}

/// Makes the closing of a socket a reset.
pub fn reset(socket: &TcpStream) {
    let at_once = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    // A socket that is closed already is as good as reset.
    let _ = setsockopt(&socket.as_fd(), sockopt::Linger, &at_once);
}
