//! Forwarded ports: programs inside reach a server on the machine across the link, at a port of 127.0.0.1 inside.
//!
//! ```text
//!   inside                          link        outside                       the machine
//!   127.0.0.1:8080 --redirected--> =======> ROUTER:8080 (accepted by this process) ----> 127.0.0.1:8080 or [::1]:8080
//! ```
//! The sockets at ROUTER are opened in the network namespace where the link ends, and a socket stays in the namespace
//! in which it was opened. The relay process accepts connections on the sockets at ROUTER, and connects to servers in
//! the machine's namespace, in which the relay runs. Forwarding needs neither root nor a route to the machine.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{getsockopt, sockopt};

use super::addresses::Pair;
use super::obstacle::{Obstacle, Trying};
use super::relay::{Entrance, now, send_to};
use super::stream::{Stream, reset};

/// Port inside the link, and the server on the machine to which it forwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Port of 127.0.0.1 inside the link, for TCP and UDP.
    pub inside: u16,
    /// Addresses of the server on the machine, tried in this order.
    pub servers: Vec<SocketAddr>,
}

/// Maximum number of forwarded ports per link.
pub const MOST_PORTS: usize = 64;
/// Maximum number of simultaneous connections; the kernel queues further connections until a connection ends.
const MOST_STREAMS: usize = 256;
/// Maximum number of client sockets whose datagrams are relayed at a time.
const MOST_PEERS: usize = 1024;
/// Time without datagrams after which the socket for a client is closed.
const IDLE: Duration = Duration::from_secs(60);
/// Interval between searches for idle sockets, milliseconds.
const TICK: u16 = 1000;
/// Maximum number of datagrams relayed from one socket before other sockets are served.
const BURST: usize = 32;
const LONGEST: usize = 1 << 16;

/// Opens the sockets of the forwarded ports in the network namespace of the calling thread.
///
/// # Errors
/// Fails if the kernel refuses to open a socket.
pub(crate) fn open(pair: Pair, forwards: &[Forward]) -> Result<Vec<Entrance>, Obstacle> {
    let open = |forward: &Forward| Entrance::open((pair.router(), forward.inside).into());
    forwards.iter().map(open).collect::<io::Result<_>>().trying("listening for forwarded ports")
}

/// Relay of all forwarded ports of a link.
#[derive(Debug)]
pub(crate) struct Forwarding {
    ports: Vec<Port>,
    streams: BTreeMap<u64, (usize, Stream)>,
    next: u64,
    /// Clients that send datagrams, by port number and client address.
    peers: BTreeMap<(usize, SocketAddr), Peer>,
    used: Used,
}

/// Whether each port has received a connection or a datagram.
pub(crate) type Used = Arc<[AtomicBool]>;

#[derive(Debug)]
struct Port {
    forward: Forward,
    entrance: Entrance,
    /// Place of the servers in messages.
    place: &'static str,
    /// Whether the user was informed that no server listens.
    told: bool,
}

/// Client that sends datagrams.
#[derive(Debug)]
struct Peer {
    upstream: UdpSocket,
    /// Index of the server to which `upstream` is connected.
    server: usize,
    /// Last datagram to a server that has not answered yet; if this server refuses, the datagram is sent to the next
    /// server.
    unanswered: Option<Vec<u8>>,
    moved: Instant,
}

/// Sockets that can be read or written.
#[derive(Clone, Copy, Debug)]
enum Ready {
    Connection(usize),
    Datagram(usize),
    Stream(u64),
    Answer(usize, SocketAddr),
}

type Awaited<'a> = (BorrowedFd<'a>, PollFlags, Ready);

impl Forwarding {
    /// Creates the relay of the given ports, with the sockets of each port.
    ///
    /// # Errors
    /// Fails if the kernel refuses non-blocking sockets.
    pub(crate) fn new(forwards: &[Forward], entrances: Vec<Entrance>) -> io::Result<Self> {
        let ports: Vec<Port> = forwards.iter().cloned().zip(entrances).map(Port::new).collect();
        for Port { entrance, .. } in &ports {
            entrance.datagrams.set_nonblocking(true)?;
            entrance.streams.set_nonblocking(true)?;
        }
        let used = ports.iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Self { ports, streams: BTreeMap::new(), next: 0, peers: BTreeMap::new(), used })
    }

    /// Names the inside as the place of the servers.
    pub(crate) fn inside(mut self) -> Self {
        self.ports.iter_mut().for_each(|port| port.place = "inside at");
        self
    }

    /// Whether each port was used so far, in the order of the ports.
    pub(crate) fn used(&self) -> Used {
        Arc::clone(&self.used)
    }

    /// Name of the congestion control with which the relay sends downloads from forwarded ports.
    pub(crate) fn congestion_control(&self) -> Option<String> {
        let name = getsockopt(&self.ports.first()?.entrance.streams, sockopt::TcpCongestion).ok()?;
        Some(name.to_string_lossy().trim_end_matches('\0').to_owned())
    }

    /// Serves until the process ends; `say` receives messages for the user, one line each.
    ///
    /// # Errors
    /// Fails if the system call for waiting fails.
    pub(crate) fn serve(mut self, say: fn(&str)) -> io::Result<()> {
        // Each connection needs two files, each client of datagrams one file. A lower limit of open files reduces the
        // number of connections.
        if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
        }
        loop {
            self.round(say)?;
        }
    }

    /// Waits until a socket is ready, and serves all ready sockets.
    fn round(&mut self, say: fn(&str)) -> io::Result<()> {
        for ready in self.wait()? {
            let now = now();
            match ready {
                Ready::Connection(port) => self.accept(port, now, say),
                Ready::Datagram(port) => self.take(port, now, say),
                Ready::Stream(id) => self.carry(id, now, say),
                Ready::Answer(port, client) => self.answer(port, client, now, say),
            }
        }
        let now = now();
        self.peers.retain(|_, peer| now < peer.moved + IDLE);
        Ok(())
    }

    fn wait(&self) -> io::Result<Vec<Ready>> {
        let files = self.awaited();
        let timeout = if self.peers.is_empty() { PollTimeout::NONE } else { TICK.into() };
        let mut polled: Vec<_> = files.iter().map(|(file, flags, _)| PollFd::new(*file, *flags)).collect();
        match poll(&mut polled, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened = polled.iter().zip(&files).filter(|(polled, _)| polled.any().unwrap_or(false));
        Ok(happened.map(|(_, (_, _, ready))| *ready).collect())
    }

    fn awaited(&self) -> Vec<Awaited<'_>> {
        let mut files: Vec<Awaited<'_>> = Vec::new();
        let has_room = self.streams.len() < MOST_STREAMS;
        for (number, Port { entrance, .. }) in self.ports.iter().enumerate() {
            files.push((entrance.datagrams.as_fd(), PollFlags::POLLIN, Ready::Datagram(number)));
            if has_room {
                files.push((entrance.streams.as_fd(), PollFlags::POLLIN, Ready::Connection(number)));
            }
        }
        for (id, (_, stream)) in &self.streams {
            files.extend(stream.awaited().map(|(file, flags)| (file, flags, Ready::Stream(*id))));
        }
        let peers = self.peers.iter();
        files.extend(peers.map(|(&(port, client), peer)| {
            (peer.upstream.as_fd(), PollFlags::POLLIN, Ready::Answer(port, client))
        }));
        files
    }

    fn accept(&mut self, port: usize, now: Instant, say: fn(&str)) {
        while self.streams.len() < MOST_STREAMS {
            match self.ports[port].entrance.streams.accept() {
                Ok((client, _)) => self.join(port, client, now, say),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // No file descriptor is left for the new connection, so the connection that was idle longest is closed.
                Err(_) => return self.drop_stillest(),
            }
        }
    }

    fn join(&mut self, port: usize, client: TcpStream, now: Instant, say: fn(&str)) {
        self.used[port].store(true, Ordering::Relaxed);
        // If the kernel refuses a socket setting, the relay works, but more slowly.
        let _ = client.set_nonblocking(true).and_then(|()| client.set_nodelay(true));
        match Stream::join(client, &self.ports[port].forward.servers, now) {
            Ok(stream) => {
                self.streams.insert(self.next, (port, stream));
                self.next += 1;
            }
            Err(client) => {
                reset(client);
                self.ports[port].say_silent(say);
            }
        }
    }

    fn drop_stillest(&mut self) {
        let stillest = self.streams.iter().min_by_key(|(_, (_, stream))| stream.moved).map(|(id, _)| *id);
        if let Some((_, stream)) = stillest.and_then(|id| self.streams.remove(&id)) {
            stream.reset();
        }
    }

    fn carry(&mut self, id: u64, now: Instant, say: fn(&str)) {
        let Some((port, stream)) = self.streams.get_mut(&id) else { return };
        let port = &mut self.ports[*port];
        match stream.carry(&port.forward.servers, now) {
            Ok(true) => {}
            Ok(false) => drop(self.streams.remove(&id)),
            Err(error) => {
                if error.kind() == ErrorKind::ConnectionRefused {
                    port.say_silent(say);
                }
                if let Some((_, stream)) = self.streams.remove(&id) {
                    stream.reset();
                }
            }
        }
    }

    fn take(&mut self, port: usize, now: Instant, say: fn(&str)) {
        let mut datagram = [0; LONGEST];
        for _ in 0..BURST {
            match self.ports[port].entrance.datagrams.recv_from(&mut datagram) {
                Ok((length, client)) => self.pass(port, client, &datagram[..length], now, say),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The socket reports that a client no longer accepts answers; this error is ignored.
                Err(_) => {}
            }
        }
    }

    /// Forwards a datagram of a client to the server.
    fn pass(&mut self, port: usize, client: SocketAddr, datagram: &[u8], now: Instant, say: fn(&str)) {
        self.used[port].store(true, Ordering::Relaxed);
        if let Some(peer) = self.peers.get_mut(&(port, client)) {
            peer.moved = now;
            if peer.unanswered.is_some() {
                peer.unanswered = Some(datagram.to_vec());
            }
            // An error of `send` reports that the server refused an earlier datagram. The relay ignores the error here:
            // when it reads the refusal as an answer, it sends the last datagram to the next server.
            let _ = peer.upstream.send(datagram);
            return;
        }
        if self.peers.len() >= MOST_PEERS {
            let stillest = self.peers.iter().min_by_key(|(_, peer)| peer.moved).map(|(key, _)| *key);
            stillest.and_then(|key| self.peers.remove(&key));
        }
        self.begin(port, client, datagram.to_vec(), 0, now, say);
    }

    /// Sends the first datagram of a client to the first reachable server, from a given server index on.
    fn begin(
        &mut self,
        port: usize,
        client: SocketAddr,
        datagram: Vec<u8>,
        from: usize,
        now: Instant,
        say: fn(&str),
    ) {
        let mut servers = self.ports[port].forward.servers.iter().enumerate().skip(from);
        match servers.find_map(|(server, at)| Some((server, send_to(*at, &datagram).ok()?))) {
            Some((server, upstream)) => {
                let peer = Peer { upstream, server, unanswered: Some(datagram), moved: now };
                self.peers.insert((port, client), peer);
            }
            None => self.ports[port].say_silent(say),
        }
    }

    /// Forwards a server's answers to the client, or tries the next server.
    fn answer(&mut self, port: usize, client: SocketAddr, now: Instant, say: fn(&str)) {
        let mut answer = [0; LONGEST];
        for _ in 0..BURST {
            let Some(peer) = self.peers.get_mut(&(port, client)) else { return };
            match peer.upstream.recv(&mut answer) {
                Ok(length) => {
                    (peer.moved, peer.unanswered) = (now, None);
                    // If sending fails, the client has closed its socket.
                    drop(self.ports[port].entrance.datagrams.send_to(&answer[..length], client));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    if let Some(Peer { server, unanswered: Some(datagram), .. }) =
                        self.peers.remove(&(port, client))
                    {
                        self.begin(port, client, datagram, server + 1, now, say);
                    }
                }
            }
        }
    }
}

impl Port {
    fn new((forward, entrance): (Forward, Entrance)) -> Self {
        Self { forward, entrance, place: "on the machine's", told: false }
    }

    /// Tells the user once that no server accepts connections at a forwarded port.
    fn say_silent(&mut self, say: fn(&str)) {
        if !std::mem::replace(&mut self.told, true) {
            say(&format!("nothing listens {} {}", self.place, self.forward.server_names()));
        }
    }
}

impl Forward {
    /// Forwards a port to the machine's two loopback addresses, because many servers listen at only one of the two.
    pub fn loopback(inside: u16, port: u16) -> Self {
        let addresses: [IpAddr; 2] =
            [std::net::Ipv4Addr::LOCALHOST.into(), std::net::Ipv6Addr::LOCALHOST.into()];
        Self { inside, servers: addresses.map(|address| (address, port).into()).to_vec() }
    }

    /// Addresses of the server as text: `127.0.0.1:8080 or [::1]:8080`.
    fn server_names(&self) -> String {
        self.servers.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" or ")
    }
}
