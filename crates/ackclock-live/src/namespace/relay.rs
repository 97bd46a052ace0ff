//! Relay for name servers. The relay forwards queries and connections that arrive at one address to the first server
//! that answers, and returns the answers.
//!
//! Like a stub resolver (resolv.conf(5)), the relay tries the servers in order. The relay tries the next server if a
//! server is unreachable, does not answer, or refuses the query.
//!
//! Clients inside may send arbitrary data at any rate. One thread serves all clients without blocking, and the tables
//! of queries and connections are small. When a table is full, an old entry is dropped; resolvers repeat their queries.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::stream::Stream;

/// Relay between an address and name servers.
#[derive(Debug)]
pub(crate) struct Relay {
    datagrams: Datagrams,
    streams: Streams,
}

/// Sockets at which the relay receives queries.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) datagrams: UdpSocket,
    pub(crate) streams: TcpListener,
}

impl Entrance {
    /// Listens at address `at` in the calling thread's network namespace.
    ///
    /// # Errors
    /// Fails if the port is in use.
    pub(crate) fn open(at: SocketAddr) -> io::Result<Self> {
        Ok(Self { datagrams: UdpSocket::bind(at)?, streams: TcpListener::bind(at)? })
    }

    /// Copies the sockets, which then share their queues.
    ///
    /// # Errors
    /// Fails if this process has too many open files.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { datagrams: self.datagrams.try_clone()?, streams: self.streams.try_clone()? })
    }
}

/// Source of a socket event.
#[derive(Clone, Copy, Debug)]
enum Ready {
    Datagram,
    Answer(u64),
    Connection,
    Stream(u64),
}

impl Relay {
    /// Creates a relay to the given servers. The relay tries the servers in this order, from the calling thread's
    /// network namespace.
    ///
    /// # Errors
    /// Fails if the kernel refuses non-blocking sockets.
    pub(crate) fn new(entrance: Entrance, servers: Vec<SocketAddr>) -> io::Result<Self> {
        let Entrance { datagrams, streams } = entrance;
        let datagrams = Datagrams::new(datagrams, servers.clone())?;
        Ok(Self { datagrams, streams: Streams::new(streams, servers)? })
    }

    /// Serves queries until the process ends.
    ///
    /// # Errors
    /// Fails if the system call for waiting fails.
    pub(crate) fn serve(mut self) -> io::Result<()> {
        loop {
            self.round()?;
        }
    }

    /// Number of pending queries, and number of connections.
    pub(crate) fn load(&self) -> (usize, usize) {
        (self.datagrams.waiting.len(), self.streams.open.len())
    }

    /// Waits for socket events and processes them.
    pub(crate) fn round(&mut self) -> io::Result<()> {
        let ready = self.wait()?;
        let now = now();
        for what in ready {
            match what {
                Ready::Datagram => self.datagrams.accept(now),
                Ready::Answer(query) => self.datagrams.answer(query, now),
                Ready::Connection => self.streams.accept(now),
                Ready::Stream(stream) => self.streams.carry(stream, now),
            }
        }
        self.datagrams.expire(now);
        self.streams.expire(now);
        Ok(())
    }

    fn wait(&self) -> io::Result<Vec<Ready>> {
        let mut files: Vec<Awaited<'_>> = self.datagrams.awaited().collect();
        files.extend(self.streams.awaited());
        // If only the two listening sockets are open, no entry can expire.
        let idle = files.len() == 2;
        let timeout = if idle { PollTimeout::NONE } else { TICK.into() };
        let mut polled: Vec<_> = files.iter().map(|(file, flags, _)| PollFd::new(*file, *flags)).collect();
        match poll(&mut polled, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened = polled.iter().zip(&files).filter(|(polled, _)| polled.any().unwrap_or(false));
        Ok(happened.map(|(_, (_, _, what))| *what).collect())
    }
}

/// A file, the poll events to wait for, and the meaning of the events.
type Awaited<'a> = (BorrowedFd<'a>, PollFlags, Ready);

/// Interval between checks for expired entries, ms.
const TICK: u16 = 500;
/// Time limit for the last server's answer, and for the next byte of a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit for servers other than the last server. Three of these time limits together are shorter than the 5 s
/// after which a stub resolver repeats its query (resolv.conf(5), `timeout`).
const TRIAL: Duration = Duration::from_millis(1500);
/// Maximum number of datagrams or connections processed from one socket before other sockets are served.
const BURST: usize = 32;
/// Maximum length of a resolver's datagram, bytes.
const LONGEST: usize = 4096;

/// Pending queries, each with a separate socket, whose port other processes cannot guess.
#[derive(Debug)]
struct Datagrams {
    socket: UdpSocket,
    servers: Vec<SocketAddr>,
    /// Pending queries by age, oldest first.
    waiting: BTreeMap<u64, Query>,
    next: u64,
}

#[derive(Debug)]
struct Query {
    bytes: Vec<u8>,
    client: SocketAddr,
    upstream: UdpSocket,
    /// Index of the server tried last.
    server: usize,
    until: Instant,
}

/// Maximum number of pending queries.
pub(crate) const QUERIES: usize = 128;
/// Maximum number of pending queries from one client socket.
const QUERIES_OF_ONE: usize = 32;

impl Datagrams {
    fn new(socket: UdpSocket, servers: Vec<SocketAddr>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, servers, waiting: BTreeMap::new(), next: 0 })
    }

    fn awaited(&self) -> impl Iterator<Item = Awaited<'_>> {
        let answers = self.waiting.iter();
        let answers =
            answers.map(|(id, query)| (query.upstream.as_fd(), PollFlags::POLLIN, Ready::Answer(*id)));
        std::iter::once((self.socket.as_fd(), PollFlags::POLLIN, Ready::Datagram)).chain(answers)
    }

    fn accept(&mut self, now: Instant) {
        let mut query = [0; LONGEST];
        for _ in 0..BURST {
            match self.socket.recv_from(&mut query) {
                Ok((length, client)) => self.take(query[..length].to_vec(), client, now),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The socket reports that an answer was not delivered; the error is ignored.
                Err(_) => {}
            }
        }
    }

    fn take(&mut self, bytes: Vec<u8>, client: SocketAddr, now: Instant) {
        self.make_room(client);
        // A query that cannot be forwarded is lost, like any datagram.
        if let Some((server, upstream)) = self.ask(&bytes, 0) {
            let until = self.until(server, now);
            self.waiting.insert(self.next, Query { bytes, client, upstream, server, until });
            self.next += 1;
        }
    }

    /// Sends a query to the first reachable server, from index `from` on; returns the server's index and the query's
    /// socket.
    fn ask(&self, query: &[u8], from: usize) -> Option<(usize, UdpSocket)> {
        let mut servers = self.servers.iter().enumerate().skip(from);
        servers.find_map(|(number, server)| Some((number, send_to(*server, query).ok()?)))
    }

    fn until(&self, server: usize, now: Instant) -> Instant {
        now + if server + 1 < self.servers.len() { TRIAL } else { PATIENCE }
    }

    /// Sends the query to the next reachable server, if any.
    fn ask_next(&mut self, mut query: Query, id: u64, now: Instant) {
        if let Some((server, upstream)) = self.ask(&query.bytes, query.server + 1) {
            (query.server, query.upstream, query.until) = (server, upstream, self.until(server, now));
            self.waiting.insert(id, query);
        }
    }

    /// Drops one query: the client's oldest query if the client has used its share, otherwise the oldest of all
    /// queries.
    fn make_room(&mut self, client: SocketAddr) {
        let mut own = self.waiting.iter().filter(|(_, query)| query.client == client).map(|(id, _)| *id);
        let oldest = own.next();
        if let Some(oldest) = oldest
            && own.count() + 1 >= QUERIES_OF_ONE
        {
            self.waiting.remove(&oldest);
        } else if self.waiting.len() >= QUERIES {
            self.waiting.pop_first();
        }
    }

    fn answer(&mut self, id: u64, now: Instant) {
        let mut answer = [0; LONGEST];
        let Some(query) = self.waiting.remove(&id) else { return };
        match query.upstream.recv(&mut answer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => drop(self.waiting.insert(id, query)),
            Ok(length) if !refuses(&answer[..length]) || query.server + 1 == self.servers.len() => {
                // The client may have closed its socket, so errors are ignored.
                drop(self.socket.send_to(&answer[..length], query.client));
            }
            // The server is unreachable or refuses the query, so the next server is tried.
            Ok(_) | Err(_) => self.ask_next(query, id, now),
        }
    }

    fn expire(&mut self, now: Instant) {
        let expired: Vec<u64> =
            self.waiting.iter().filter(|(_, query)| now >= query.until).map(|(id, _)| *id).collect();
        for id in expired {
            if let Some(query) = self.waiting.remove(&id) {
                self.ask_next(query, id, now);
            }
        }
    }
}

/// Sends a query to a server from a new socket, and returns that socket.
pub(super) fn send_to(server: SocketAddr, query: &[u8]) -> io::Result<UdpSocket> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let upstream = UdpSocket::bind((any, 0))?;
    upstream.set_nonblocking(true)?;
    upstream.connect(server)?;
    upstream.send(query)?;
    Ok(upstream)
}

/// Whether an answer means that another server should be tried: server failure, not implemented, refused (RFC 1035
/// section 4.1.1), as in glibc's stub resolver.
fn refuses(answer: &[u8]) -> bool {
    answer.get(3).is_some_and(|flags| matches!(flags & 0x0f, 2 | 4 | 5))
}

/// Connections to servers, each for one client connection.
#[derive(Debug)]
struct Streams {
    listener: TcpListener,
    servers: Vec<SocketAddr>,
    open: BTreeMap<u64, Stream>,
    next: u64,
}

/// Maximum number of open connections.
pub(crate) const STREAMS: usize = 32;

impl Streams {
    fn new(listener: TcpListener, servers: Vec<SocketAddr>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, servers, open: BTreeMap::new(), next: 0 })
    }

    fn awaited(&self) -> impl Iterator<Item = Awaited<'_>> {
        let open = self
            .open
            .iter()
            .flat_map(|(id, stream)| stream.awaited().map(|(file, flags)| (file, flags, Ready::Stream(*id))));
        std::iter::once((self.listener.as_fd(), PollFlags::POLLIN, Ready::Connection)).chain(open)
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..BURST {
            // An old connection is dropped before the next connection is accepted, so that a file descriptor is free.
            if self.open.len() >= STREAMS {
                self.drop_stillest();
            }
            match self.listener.accept() {
                Ok((client, _)) => drop(self.join(client, now)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.drop_stillest(),
            }
        }
    }

    fn join(&mut self, client: TcpStream, now: Instant) -> io::Result<()> {
        client.set_nonblocking(true)?;
        if let Ok(stream) = Stream::join(client, &self.servers, now) {
            self.open.insert(self.next, stream);
            self.next += 1;
        }
        Ok(())
    }

    /// Drops the connection that has been idle longest.
    fn drop_stillest(&mut self) {
        let stillest = self.open.iter().min_by_key(|(_, stream)| stream.moved).map(|(id, _)| *id);
        stillest.and_then(|id| self.open.remove(&id));
    }

    fn carry(&mut self, id: u64, now: Instant) {
        let Some(stream) = self.open.get_mut(&id) else { return };
        if !stream.carry(&self.servers, now).unwrap_or(false) {
            self.open.remove(&id);
        }
    }

    fn expire(&mut self, now: Instant) {
        let servers = &self.servers;
        self.open.retain(|_, stream| {
            if now >= stream.moved + TRIAL {
                // Only the last server gets the full time limit; an earlier server is replaced by the next server after
                // a shorter time limit.
                stream.join_next(servers, now);
            }
            now < stream.moved + PATIENCE
        });
    }
}

#[allow(clippy::disallowed_methods)] // The real world is waited for here; no model asks a clock.
pub(super) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Shutdown;

    use super::*;

    const ANYWHERE: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

    /// Sockets at a port that is free for both UDP and TCP, with their address.
    fn entrance() -> (Entrance, SocketAddr) {
        (0..100)
            .find_map(|_| {
                let at = UdpSocket::bind(ANYWHERE).unwrap().local_addr().unwrap();
                Some((Entrance::open(at).ok()?, at))
            })
            .unwrap()
    }

    /// A relay, its address, and the two sockets of its server.
    fn relay() -> (Relay, SocketAddr, UdpSocket, TcpListener) {
        // The port must be free for UDP and TCP, and the kernel assigns UDP and TCP ports separately.
        let (server, streams) = (0..100)
            .find_map(|_| {
                let streams = TcpListener::bind(ANYWHERE).unwrap();
                Some((UdpSocket::bind(streams.local_addr().unwrap()).ok()?, streams))
            })
            .unwrap();
        let (entrance, at) = entrance();
        let relay = Relay::new(entrance, vec![server.local_addr().unwrap()]).unwrap();
        (relay, at, server, streams)
    }

    /// A relay to several servers, and its address.
    fn relay_to(servers: &[&UdpSocket]) -> (Relay, SocketAddr) {
        let (entrance, at) = entrance();
        let servers = servers.iter().map(|server| server.local_addr().unwrap()).collect();
        (Relay::new(entrance, servers).unwrap(), at)
    }

    #[test]
    fn servers_are_asked_in_their_order_until_one_knows() {
        let six = (Ipv6Addr::LOCALHOST, 0);
        let [refused, silent, unwilling] = [(); 3].map(|()| UdpSocket::bind(ANYWHERE).unwrap());
        let Ok(knows) = UdpSocket::bind(six) else { return };
        let (mut relay, at) = relay_to(&[&refused, &silent, &unwilling, &knows]);
        drop(refused);
        let client = client(at);
        client.send(b"name").unwrap();
        let asked =
            |relay: &Relay, server| relay.datagrams.waiting.values().any(|query| query.server == server);
        while !asked(&relay, 1) {
            relay.round().unwrap();
        }
        relay.datagrams.expire(now() + TRIAL);
        assert!(asked(&relay, 2), "a silent server has its time");
        // The fourth byte contains the response code: 5 means refused.
        answer(&unwilling, &[0, 0, 0x81, 0x85]);
        while !asked(&relay, 3) {
            relay.round().unwrap();
        }
        answer(&knows, b"address");
        relay.round().unwrap();
        let mut got = [0; 16];
        assert_eq!(client.recv(&mut got).unwrap(), 7);
    }

    #[test]
    fn a_connection_goes_to_the_first_server_that_takes_it() {
        let closed = UdpSocket::bind(ANYWHERE).unwrap();
        let streams = TcpListener::bind(ANYWHERE).unwrap();
        let (entrance, at) = entrance();
        let servers = vec![closed.local_addr().unwrap(), streams.local_addr().unwrap()];
        let relay = Relay::new(entrance, servers).unwrap();
        std::thread::spawn(move || relay.serve());
        let mut client = TcpStream::connect(at).unwrap();
        client.write_all(b"query").unwrap();
        let mut query = [0; 5];
        streams.accept().unwrap().0.read_exact(&mut query).unwrap();
        assert_eq!(&query, b"query");
    }

    fn client(at: SocketAddr) -> UdpSocket {
        let client = UdpSocket::bind(ANYWHERE).unwrap();
        client.connect(at).unwrap();
        client
    }

    /// Answers the next query that the server receives.
    fn answer(server: &UdpSocket, with: &[u8]) {
        let mut query = [0; 16];
        let (_, from) = server.recv_from(&mut query).unwrap();
        server.send_to(with, from).unwrap();
    }

    #[test]
    fn a_flood_without_answers_leaves_room_for_others() {
        let (mut relay, at, server, _streams) = relay();
        let [first, flood] = [client(at), client(at)];
        first.send(b"name").unwrap();
        relay.round().unwrap();
        for _ in 0..10_000 {
            flood.send(b"flood").unwrap();
            relay.round().unwrap();
            assert!(relay.datagrams.waiting.len() <= QUERIES_OF_ONE + 1);
        }
        answer(&server, b"address");
        relay.round().unwrap();
        let mut got = [0; 16];
        assert_eq!(first.recv(&mut got).unwrap(), 7);
    }

    #[test]
    fn a_flood_from_many_sockets_keeps_the_newest_queries() {
        let (mut relay, at, _server, _streams) = relay();
        for _ in 0..2 * QUERIES {
            client(at).send(b"flood").unwrap();
            relay.round().unwrap();
        }
        assert_eq!(relay.datagrams.waiting.len(), QUERIES);
        assert_eq!(relay.datagrams.waiting.first_key_value().unwrap().0, &(QUERIES as u64));
    }

    #[test]
    fn queries_and_connections_without_an_answer_expire() {
        let (mut relay, at, _server, _streams) = relay();
        client(at).send(b"name").unwrap();
        let _stream = TcpStream::connect(at).unwrap();
        while relay.datagrams.waiting.is_empty() || relay.streams.open.is_empty() {
            relay.round().unwrap();
        }
        let later = now() + PATIENCE;
        relay.datagrams.expire(later);
        relay.streams.expire(later);
        assert!(relay.datagrams.waiting.is_empty() && relay.streams.open.is_empty());
    }

    #[test]
    fn idle_connections_are_bounded_and_those_at_work_go_on() {
        let (mut relay, at, _server, server) = relay();
        let mut busy = TcpStream::connect(at).unwrap();
        relay.round().unwrap();
        let mut upstream = server.accept().unwrap().0;
        let mut idle = Vec::new();
        for _ in 0..3 * STREAMS {
            idle.push(TcpStream::connect(at).unwrap());
            relay.round().unwrap();
            busy.write_all(b"q").unwrap();
            relay.round().unwrap();
            let mut byte = [0];
            upstream.read_exact(&mut byte).unwrap();
            assert!(relay.streams.open.len() <= STREAMS);
        }
    }

    #[test]
    fn a_connection_carries_more_than_its_buffers_hold_and_ends_one_way_at_a_time() {
        let (relay, at, _server, server) = relay();
        std::thread::spawn(move || relay.serve());
        let mut client = TcpStream::connect(at).unwrap();
        let (mut upstream, _) = server.accept().unwrap();
        client.write_all(b"query").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut query = Vec::new();
        upstream.read_to_end(&mut query).unwrap();
        assert_eq!(query, b"query");
        // The answer is larger than the buffers of both sockets, so that the relay must wait for its reader.
        let zone = vec![7; 16 << 20];
        let writer = std::thread::spawn(move || upstream.write_all(&zone).map(drop));
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        writer.join().unwrap().unwrap();
        assert_eq!(got.len(), 16 << 20);
    }
}
