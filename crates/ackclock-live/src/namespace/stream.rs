//! Relayed TCP connection, which passes the client's bytes to a server and the server's bytes to the client.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Instant;

use nix::libc::linger;
use nix::poll::PollFlags;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};

/// Maximum number of bytes buffered for one direction of a connection.
const CARRIED: usize = 64 << 10;

/// Client's connection, and the relay's connection to the server.
#[derive(Debug)]
pub(super) struct Stream {
    client: TcpStream,
    upstream: TcpStream,
    /// Index of the server to which `upstream` is connected.
    server: usize,
    /// Whether the server has accepted. Before, nothing is read: the end of the client's data could not be passed on.
    connected: bool,
    /// The two directions: from the client to the server, and back.
    ways: [Way; 2],
    /// Time at which bytes were last relayed.
    pub(super) moved: Instant,
}

/// One direction of a relayed connection.
#[derive(Debug, Default)]
struct Way {
    /// Bytes that were read and not yet written.
    carried: Vec<u8>,
    /// Whether the sending end has finished and the receiving end was informed.
    ended: bool,
}

impl Stream {
    /// Connects a client, whose socket is non-blocking, to the first server to which a connection can be started.
    ///
    /// # Errors
    /// Returns the client if no connection can be started.
    pub(super) fn join(client: TcpStream, servers: &[SocketAddr], now: Instant) -> Result<Self, TcpStream> {
        match begin_connecting(servers, 0) {
            Some((server, upstream)) => {
                let ways = Default::default();
                Ok(Self { client, upstream, server, connected: false, ways, moved: now })
            }
            None => Err(client),
        }
    }

    /// Files and events for which the connection waits: first for the server. Then each direction waits until its buffered bytes can be written; a
    /// direction with an empty buffer waits until bytes can be read. An ended direction is omitted, because the kernel
    /// would report a broken connection repeatedly.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let connecting = (!self.connected).then(|| (self.upstream.as_fd(), PollFlags::POLLOUT));
        let ends = [(&self.client, &self.upstream), (&self.upstream, &self.client)];
        let ways = ends.into_iter().zip(&self.ways).filter(|_| self.connected);
        let ways = ways.filter_map(|((from, to), way)| match way {
            Way { ended: true, .. } => None,
            Way { carried, .. } if carried.is_empty() => Some((from.as_fd(), PollFlags::POLLIN)),
            Way { .. } => Some((to.as_fd(), PollFlags::POLLOUT)),
        });
        connecting.into_iter().chain(ways)
    }

    /// Connects to the next server if the current server was not reached; returns false if no server is left.
    pub(super) fn join_next(&mut self, servers: &[SocketAddr], now: Instant) -> bool {
        // Bytes sent over an established connection are lost with the connection, so only an unestablished connection
        // is replaced.
        let next = self.upstream.peer_addr().is_err().then(|| begin_connecting(servers, self.server + 1));
        let Some((server, upstream)) = next.flatten() else { return false };
        (self.server, self.upstream, self.connected, self.moved) = (server, upstream, false, now);
        true
    }

    /// Relays the bytes that can be relayed, or connects to the next server if the current server refuses. Returns
    /// false when the two directions have ended.
    ///
    /// # Errors
    /// Fails if the connection is broken, or no server accepts it.
    pub(super) fn carry(&mut self, servers: &[SocketAddr], now: Instant) -> io::Result<bool> {
        self.moved = now;
        match self.carry_ways() {
            Ok(()) => Ok(self.ways.iter().any(|way| !way.ended)),
            // A reset ends an established connection, which no other server can continue.
            Err(error) if error.kind() != ErrorKind::ConnectionReset && self.join_next(servers, now) => {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Relays in both directions, once the server has accepted.
    fn carry_ways(&mut self) -> io::Result<()> {
        if !self.connected {
            if let Some(error) = self.upstream.take_error()? {
                return Err(error);
            }
            self.connected = self.upstream.peer_addr().is_ok();
            if !self.connected {
                return Ok(());
            }
        }
        let [up, down] = &mut self.ways;
        up.carry(&self.client, &self.upstream).and_then(|()| down.carry(&self.upstream, &self.client))
    }

    /// Resets the connections to the client and to the server.
    pub(super) fn reset(self) {
        [self.client, self.upstream].into_iter().for_each(reset);
    }
}

/// Closes a connection with a RST.
pub(super) fn reset(connection: TcpStream) {
    // Without this option the connection is closed with a FIN.
    let _ = setsockopt(&connection, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 });
}

impl Way {
    /// Reads into an empty buffer, and writes buffered bytes.
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

/// Starts a connection to the first possible server, from index `from` on; returns that server's index and the
/// connection.
fn begin_connecting(servers: &[SocketAddr], from: usize) -> Option<(usize, TcpStream)> {
    let mut servers = servers.iter().enumerate().skip(from);
    servers.find_map(|(number, server)| Some((number, connecting(*server).ok()?)))
}

/// Starts a connection to a server. Reads and writes before the connection is established return `WouldBlock`.
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
