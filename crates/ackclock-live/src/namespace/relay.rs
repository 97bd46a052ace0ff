//! A relay for name servers: datagrams and connections that come to one address are passed on to a server, the answers
//! back.
//!
//! Whoever is inside may send what he likes as often as he likes. So one thread serves all, in a loop that never waits for
//! one of them, and queries and connections have room in small tables. Where there is none left somebody gives way, who
//! will ask again as every resolver does.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, socket};

/// A relay between an address and a server.
#[derive(Debug)]
pub(crate) struct Relay {
    datagrams: Datagrams,
    /// None where the port of this address is taken.
    streams: Option<Streams>,
}

/// What there was to wait for.
#[derive(Clone, Copy, Debug)]
enum Ready {
    Datagram,
    Answer(u64),
    Connection,
    Stream(u64),
}

impl Relay {
    /// A relay that listens at `at`.
    ///
    /// # Errors
    /// Where datagrams cannot be received there.
    pub(crate) fn new(at: SocketAddr, server: SocketAddr) -> io::Result<Self> {
        Ok(Self { datagrams: Datagrams::new(at, server)?, streams: Streams::new(at, server).ok() })
    }

    /// Serves for as long as the process lives.
    ///
    /// # Errors
    /// Where the kernel cannot wait.
    pub(crate) fn serve(mut self) -> io::Result<()> {
        loop {
            self.round()?;
        }
    }

    /// Waits until there is something to do, and does it.
    fn round(&mut self) -> io::Result<()> {
        let ready = self.wait()?;
        let now = now();
        for what in ready {
            match (what, &mut self.streams) {
                (Ready::Datagram, _) => self.datagrams.accept(now),
                (Ready::Answer(query), _) => self.datagrams.answer(query),
                (Ready::Connection, Some(streams)) => streams.accept(now),
                (Ready::Stream(stream), Some(streams)) => streams.carry(stream, now),
                (Ready::Connection | Ready::Stream(_), None) => {}
            }
        }
        self.datagrams.expire(now);
        if let Some(streams) = &mut self.streams {
            streams.expire(now);
        }
        Ok(())
    }

    fn wait(&self) -> io::Result<Vec<Ready>> {
        let mut files: Vec<Awaited<'_>> = self.datagrams.awaited().collect();
        files.extend(self.streams.iter().flat_map(Streams::awaited));
        // Only the two sockets that listen: nothing will expire.
        let idle = files.len() == 1 + usize::from(self.streams.is_some());
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

/// A file, what is waited for at it, and what that means.
type Awaited<'a> = (BorrowedFd<'a>, PollFlags, Ready);

/// How often it is looked for what has expired, milliseconds.
const TICK: u16 = 1000;
/// How long an answer is waited for, and the next byte of a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many datagrams or connections are taken before others have their turn.
const BURST: usize = 32;
/// The longest datagram of a resolver.
const LONGEST: usize = 4096;

/// Queries that wait for their answers, each with a socket of its own, whose port nobody else knows.
#[derive(Debug)]
struct Datagrams {
    socket: UdpSocket,
    server: SocketAddr,
    /// By age, the oldest first.
    waiting: BTreeMap<u64, Query>,
    next: u64,
}

#[derive(Debug)]
struct Query {
    upstream: UdpSocket,
    client: SocketAddr,
    until: Instant,
}

/// So many queries wait at most.
const QUERIES: usize = 128;
/// So many of them may come from one socket.
const QUERIES_OF_ONE: usize = 32;

impl Datagrams {
    fn new(at: SocketAddr, server: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(at)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, server, waiting: BTreeMap::new(), next: 0 })
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
                // A query that cannot be passed on is lost, as datagrams may be.
                Ok((length, client)) => drop(self.ask(&query[..length], client, now)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // News of an answer that nobody took.
                Err(_) => {}
            }
        }
    }

    fn ask(&mut self, query: &[u8], client: SocketAddr, now: Instant) -> io::Result<()> {
        self.make_room(client);
        let upstream = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        upstream.set_nonblocking(true)?;
        upstream.connect(self.server)?;
        upstream.send(query)?;
        self.waiting.insert(self.next, Query { upstream, client, until: now + PATIENCE });
        self.next += 1;
        Ok(())
    }

    /// The oldest query gives way: the client's own where it has its share, else that of all.
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

    fn answer(&mut self, id: u64) {
        let mut answer = [0; LONGEST];
        let Some(query) = self.waiting.get(&id) else { return };
        match query.upstream.recv(&mut answer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // A server that refuses is one that does not answer; one that cannot be sent to has gone.
            Err(_) => {}
            Ok(length) => drop(self.socket.send_to(&answer[..length], query.client)),
        }
        self.waiting.remove(&id);
    }

    fn expire(&mut self, now: Instant) {
        self.waiting.retain(|_, query| now < query.until);
    }
}

/// Connections to the server, each for one of a client.
#[derive(Debug)]
struct Streams {
    listener: TcpListener,
    server: SocketAddr,
    open: BTreeMap<u64, Stream>,
    next: u64,
}

#[derive(Debug)]
struct Stream {
    client: TcpStream,
    upstream: TcpStream,
    /// From the client to the server, and back.
    ways: [Way; 2],
    moved: Instant,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Way {
    /// What was read and not yet written.
    carried: Vec<u8>,
    /// Nothing more comes, and the other end knows it.
    ended: bool,
}

/// So many connections are open at most.
const STREAMS: usize = 32;

impl Streams {
    fn new(at: SocketAddr, server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, server, open: BTreeMap::new(), next: 0 })
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
            // Before it is taken, so that there is a file left for it.
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
        let upstream = begin_connecting(self.server)?;
        self.open.insert(self.next, Stream { client, upstream, ways: Default::default(), moved: now });
        self.next += 1;
        Ok(())
    }

    /// The connection on which nothing has moved for longest gives way.
    fn drop_stillest(&mut self) {
        let stillest = self.open.iter().min_by_key(|(_, stream)| stream.moved).map(|(id, _)| *id);
        stillest.and_then(|id| self.open.remove(&id));
    }

    fn carry(&mut self, id: u64, now: Instant) {
        let Some(stream) = self.open.get_mut(&id) else { return };
        stream.moved = now;
        if !stream.carry().is_ok_and(|goes_on| goes_on) {
            self.open.remove(&id);
        }
    }

    fn expire(&mut self, now: Instant) {
        self.open.retain(|_, stream| now < stream.moved + PATIENCE);
    }
}

impl Stream {
    /// Each way waits for a place for what it carries, else for something to carry. What is not waited for is left out: of
    /// a connection that has broken the kernel would tell again and again.
    fn awaited(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let ends = [(&self.client, &self.upstream), (&self.upstream, &self.client)];
        ends.into_iter().zip(&self.ways).filter_map(|((from, to), way)| match way {
            Way { ended: true, .. } => None,
            Way { carried, .. } if carried.is_empty() => Some((from.as_fd(), PollFlags::POLLIN)),
            Way { .. } => Some((to.as_fd(), PollFlags::POLLOUT)),
        })
    }

    /// Carries what can be carried; false where both ways have ended.
    fn carry(&mut self) -> io::Result<bool> {
        let [up, down] = &mut self.ways;
        up.carry(&self.client, &self.upstream)?;
        down.carry(&self.upstream, &self.client)?;
        Ok(!(up.ended && down.ended))
    }
}

impl Way {
    /// Reads where nothing is carried, and writes what is.
    fn carry(&mut self, mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        if self.carried.is_empty() {
            let mut bytes = [0; LONGEST];
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

/// A connection that is being made; what is read from it or written to it before would block.
fn begin_connecting(server: SocketAddr) -> io::Result<TcpStream> {
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

#[allow(clippy::disallowed_methods)] // The real world is waited for here; no model asks a clock.
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANYWHERE: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

    /// A relay, where it listens, and the two sockets of its server.
    fn relay() -> (Relay, SocketAddr, UdpSocket, TcpListener) {
        // A port that is free for both: the kernel gives numbers for datagrams and for streams apart.
        let (server, streams) = (0..100)
            .find_map(|_| {
                let streams = TcpListener::bind(ANYWHERE).unwrap();
                Some((UdpSocket::bind(streams.local_addr().unwrap()).ok()?, streams))
            })
            .unwrap();
        let at = UdpSocket::bind(ANYWHERE).unwrap().local_addr().unwrap();
        let relay = Relay::new(at, server.local_addr().unwrap()).unwrap();
        (relay, at, server, streams)
    }

    fn client(at: SocketAddr) -> UdpSocket {
        let client = UdpSocket::bind(ANYWHERE).unwrap();
        client.connect(at).unwrap();
        client
    }

    /// Answers what the server was asked next.
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
        while relay.datagrams.waiting.is_empty() || relay.streams.as_ref().unwrap().open.is_empty() {
            relay.round().unwrap();
        }
        let later = now() + PATIENCE;
        relay.datagrams.expire(later);
        relay.streams.as_mut().unwrap().expire(later);
        assert!(relay.datagrams.waiting.is_empty() && relay.streams.unwrap().open.is_empty());
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
            assert!(relay.streams.as_ref().unwrap().open.len() <= STREAMS);
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
        // More than the buffers of both sockets hold, so that the relay must wait for its reader.
        let zone = vec![7; 16 << 20];
        let writer = std::thread::spawn(move || upstream.write_all(&zone).map(drop));
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        writer.join().unwrap().unwrap();
        assert_eq!(got.len(), 16 << 20);
    }
}
