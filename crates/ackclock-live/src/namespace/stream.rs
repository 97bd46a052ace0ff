//! A TCP connection that a relay passes on: what comes from the client goes to a server, and back.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Instant;

use nix::libc::linger;
use nix::poll::PollFlags;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};

/// Most bytes that are held for one direction.
const CARRIED: usize = 64 << 10;

/// A client's connection and the one to the server.
#[derive(Debug)]
pub(super) struct Stream {
    client: TcpStream,
    upstream: TcpStream,
    /// Number of the server that `upstream` leads to.
    server: usize,
    /// From the client to the server, and back.
    ways: [Way; 2],
    /// When bytes moved last.
    pub(super) moved: Instant,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Way {
    /// What was read and not yet written.
    carried: Vec<u8>,
    /// Nothing more comes, and the other end knows it.
    ended: bool,
}

impl Stream {
    /// Connects a client, whose socket does not block, with the first of these servers that a connection can be begun to.
    ///
    /// # Errors
    /// The client, where there is none.
    pub(super) fn join(client: TcpStream, servers: &[SocketAddr], now: Instant) -> Result<Self, TcpStream> {
        match begin_connecting(servers, 0) {
            Some((server, upstream)) => {
                Ok(Self { client, upstream, server, ways: Default::default(), moved: now })
            }
            None => Err(client),
        }
    }

    /// Each direction waits until what it holds can be written, else until something can be read. An ended direction is left
    /// out: the kernel would report a broken connection again and again.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let ends = [(&self.client, &self.upstream), (&self.upstream, &self.client)];
        ends.into_iter().zip(&self.ways).filter_map(|((from, to), way)| match way {
            Way { ended: true, .. } => None,
            Way { carried, .. } if carried.is_empty() => Some((from.as_fd(), PollFlags::POLLIN)),
            Way { .. } => Some((to.as_fd(), PollFlags::POLLOUT)),
        })
    }

    /// Connects to the next server where this one has not been reached; false where there is no other.
    pub(super) fn join_next(&mut self, servers: &[SocketAddr], now: Instant) -> bool {
        // Bytes sent over an established connection are lost with it.
        let next = self.upstream.peer_addr().is_err().then(|| begin_connecting(servers, self.server + 1));
        let Some((server, upstream)) = next.flatten() else { return false };
        (self.server, self.upstream, self.moved) = (server, upstream, now);
        true
    }

    /// Moves the bytes that can be moved, or connects to the next server where this one refuses; false when both directions
    /// have ended.
    ///
    /// # Errors
    /// Where the connection is broken, or no server accepts it.
    pub(super) fn carry(&mut self, servers: &[SocketAddr], now: Instant) -> io::Result<bool> {
        self.moved = now;
        let [up, down] = &mut self.ways;
        let carried =
            up.carry(&self.client, &self.upstream).and_then(|()| down.carry(&self.upstream, &self.client));
        match carried {
            Ok(()) => Ok(self.ways.iter().any(|way| !way.ended)),
            // A reset ends an established connection, which no other server can go on with.
            Err(error) if error.kind() != ErrorKind::ConnectionReset && self.join_next(servers, now) => {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Resets both connections.
    pub(super) fn reset(self) {
        [self.client, self.upstream].into_iter().for_each(reset);
    }
}

/// Closes a connection by a reset.
pub(super) fn reset(connection: TcpStream) {
    // Without it the connection is closed in order.
    let _ = setsockopt(&connection, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 });
}

impl Way {
    /// Reads where nothing is held, and writes what is.
    fn carry(&mut self, mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        if self.carried.is_empty() {
            let mut bytes = [0; CARRIED];
            let Some(length) = unless_blocked(from.read(&mut bytes))? else { return Ok(()) };
            self.carried.extend(&bytes[..length]);
            if length == 0 {
                self.ended = true;
                return to.shutdown(Shutdown::Write);
            }
        }
        if let Some(written) = unless_blocked(to.write(&self.carried))? {
            self.carried.drain(..written);
        }
        Ok(())
    }
}

/// A connection that is being made to the first server from a number on that can be, and the number of that server.
fn begin_connecting(servers: &[SocketAddr], from: usize) -> Option<(usize, TcpStream)> {
    let mut servers = servers.iter().enumerate().skip(from);
    servers.find_map(|(number, server)| Some((number, connecting(*server).ok()?)))
}

/// A connection that is being made; what is read from it or written to it before would block.
fn connecting(server: SocketAddr) -> io::Result<TcpStream> {
    let family = if server.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(family, SockType::Stream, flags, None)?;
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(server)) {
        Ok(()) | Err(nix::Error::EINPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

fn unless_blocked(outcome: io::Result<usize>) -> io::Result<Option<usize>> {
    match outcome {
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
