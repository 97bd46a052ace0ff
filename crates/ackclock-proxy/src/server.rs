//! Main loop of the proxy: one thread and one buffer serve all connections.

mod clients;
mod opening;
pub mod refusals;
mod steering;

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ackclock_core::{Prefix, SteeringConfig};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use self::clients::Clients;
use self::refusals::{Refusal, RefusedClients};
use self::steering::Radio;
use crate::alive::{LOOK_AT_READERS, probe_idle, spare_reader};
use crate::asked::{Speech, Trouble, Wish};
use crate::listeners::{Listener, Way};
use crate::names::{Names, addresses};
use crate::pair::{BUFFER, Goes, LEGS, Pair, reset, sources};
use crate::pipe::Pipes;
use crate::reports::gate::RefusedReports;
use crate::reports::keys::Key;
use crate::steer::user_of;

/// Settings of the proxy.
#[derive(Clone, Debug)]
pub struct Options {
    /// Addresses on which the proxy listens for requests.
    pub listen: Vec<SocketAddr>,
    /// Addresses at which the proxy takes connections that the firewall diverts (TPROXY).
    pub transparent: Vec<SocketAddr>,
    /// Networks whose clients may use the proxy, in addition to this machine's own programs.
    pub allow: Vec<Prefix>,
    /// Maximum number of simultaneous connections; one user in an allowed network, which is an IPv4 address or an IPv6
    /// /64, gets at most a quarter of this number.
    pub max_connections: usize,
    /// Radio reports by which the proxy limits the windows of its clients.
    pub reports: Option<Reports>,
}

impl Options {
    /// Starts to listen at all addresses.
    fn listeners(&self) -> Result<Vec<Listener>, StartError> {
        let requests = self.listen.iter().map(|&address| (Way::Requests, address));
        let diverted = self.transparent.iter().map(|&address| (Way::Diverted, address));
        let listener = |(way, address): (Way, SocketAddr)| {
            if !address.ip().is_loopback() && self.allow.is_empty() {
                return Err(StartError::Open(way, address));
            }
            Listener::new(way, address).map_err(|error| match (way, error.kind()) {
                (Way::Diverted, ErrorKind::PermissionDenied) => StartError::Privilege(address),
                _ => StartError::Listen(way, address, error),
            })
        };
        requests.chain(diverted).map(listener).collect()
    }
}

/// Settings for radio reports.
#[derive(Clone, Debug)]
pub struct Reports {
    /// UDP address at which the reports arrive.
    pub listen: SocketAddr,
    /// Keys of the radios.
    pub keys: Vec<Key>,
    /// Controller of the windows.
    pub steering: Arc<dyn SteeringConfig>,
}

/// Counters of the proxy since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Current number of open connections.
    pub connections: usize,
    /// Number of connections opened to servers.
    pub opened: u64,
    /// Number of refused clients, by reason.
    pub refused: RefusedClients,
    /// Number of idle connections that were closed for new ones at a limit.
    pub displaced: u64,
    /// Number of connections that ended with a reset.
    pub broken: u64,
    /// Number of bytes relayed, for the two directions together.
    pub bytes: u64,
    /// Number of accepted radio reports.
    pub reports: u64,
    /// Number of refused radio reports, by reason.
    pub refused_reports: RefusedReports,
    /// Number of radio reports that the socket dropped because its buffer was full.
    pub lost_reports: u64,
}

/// Reason why the proxy cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Other machines can reach this address, but no network is allowed to use the proxy.
    #[error("{1} can be reached from other machines: say whose with --allow, as --allow 192.0.2.0/24")]
    Open(Way, SocketAddr),
    /// The proxy cannot listen on this address.
    #[error("{1}: {2}")]
    Listen(Way, SocketAddr, io::Error),
    /// The proxy may not take diverted connections.
    #[error("{0}: diverted connections need root or the capability CAP_NET_ADMIN")]
    Privilege(SocketAddr),
    /// The proxy cannot receive radio reports at this address.
    #[error("{0}: {1}")]
    Reports(SocketAddr, io::Error),
    /// The proxy may not open two files for each connection: number of files needed, and maximum number.
    #[error(
        "{0} open files are needed, but the limit is {1}: raise it with `ulimit -Hn`, or allow fewer connections"
    )]
    Files(u64, u64),
    /// A system call failed while the proxy started.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Time limit for a client's request, and for connecting to a server.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK_AT_TIMES: Duration = Duration::from_secs(1);
/// Time for which a closing connection reads what the client still sends, because unread bytes turn a close into a reset,
/// which can destroy the answer (RFC 9112 section 9.6).
const LINGER: Duration = Duration::from_secs(5);
/// Interval at which connections with a broken leg are polled, and time after which one without progress is reset.
const DELIVERY: Duration = Duration::from_millis(20);
const DELIVERY_PATIENCE: Duration = Duration::from_secs(60);
/// Epoll token of the name lookup events. The tokens of listeners start at [`LISTENERS`]; those of clients are smaller.
const BELL: u64 = u64::MAX;
const LISTENERS: u64 = 1 << 62;
/// Epoll token of the radio reports.
const REPORTS: u64 = BELL - 1;
/// Interval at which connections held back by their window are polled.
const HELD: Duration = Duration::from_millis(5);

enum State {
    Asking {
        bytes: Vec<u8>,
        greeted: bool,
        speech: Speech,
    },
    Looking {
        wish: Wish,
        rest: Vec<u8>,
    },
    Connecting {
        wish: Wish,
        rest: Vec<u8>,
        server: TcpStream,
        others: VecDeque<SocketAddr>,
    },
    Relaying,
    /// The client has its answer, and the proxy has sent a FIN.
    Closing,
    /// The client has left during its name lookup. It counts until the end of the lookup, which limits the lookups of
    /// a user.
    Left,
}

/// Maximum number of open files that are no connections: listeners, name lookups, metrics.
const OTHER_FILES: u64 = 100;

/// Raises the limit of open files to the number needed, and to that of all pipes if it can; returns the number left for
/// pipes. Without a free file, no connection can be accepted or refused.
fn allow_files(needed: u64) -> Result<u64, StartError> {
    let (limit, most) = getrlimit(Resource::RLIMIT_NOFILE).map_err(io::Error::from)?;
    let pipes = most.checked_sub(needed).ok_or(StartError::Files(needed, most))?.min(Pipes::FILES);
    setrlimit(Resource::RLIMIT_NOFILE, limit.max(needed + pipes), most).map_err(io::Error::from)?;
    Ok(pipes)
}

/// Proxy with its listeners and clients.
pub struct Server {
    options: Options,
    listeners: Vec<Listener>,
    epoll: Epoll,
    names: Names,
    clients: Clients,
    counts: Counts,
    buffer: Vec<u8>,
    pipes: Pipes,
    now: Instant,
    looked: Instant,
    started: Instant,
    radio: Option<Radio>,
    forbidden: Option<(IpAddr, SocketAddr)>,
    limited: Option<IpAddr>,
    /// Connections of which one leg is broken, and the time of their last poll.
    delivering: BTreeSet<usize>,
    delivered: Instant,
    looked_at_readers: Instant,
}

impl Server {
    /// Starts to listen for clients.
    ///
    /// # Errors
    /// Fails if the proxy cannot listen on an address, or if every machine that reaches an address could use the proxy.
    pub fn start(options: Options, now: Instant) -> Result<Self, StartError> {
        let pipes = Pipes::new(allow_files(2 * options.max_connections as u64 + OTHER_FILES)?);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(io::Error::from)?;
        let names = Names::start(addresses)?;
        epoll.add(names.bell(), EpollEvent::new(EpollFlags::EPOLLIN, BELL)).map_err(io::Error::from)?;
        let listeners = options.listeners()?;
        for (number, listener) in listeners.iter().enumerate() {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, LISTENERS + number as u64);
            epoll.add(&listener.socket, event).map_err(io::Error::from)?;
        }
        let radio = options.reports.as_ref().map(|reports| Radio::start(reports, &epoll, now)).transpose()?;
        Ok(Self {
            options,
            listeners,
            epoll,
            names,
            clients: Clients::default(),
            counts: Counts::default(),
            buffer: vec![0; BUFFER],
            pipes,
            now,
            looked: now,
            started: now,
            radio,
            forbidden: None,
            limited: None,
            delivering: BTreeSet::new(),
            delivered: now,
            looked_at_readers: now,
        })
    }

    /// Addresses on which the proxy listens, for requests first, with the ports chosen by the kernel.
    ///
    /// # Errors
    /// Fails if the kernel does not report an address.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(|listener| listener.socket.local_addr()).collect()
    }

    /// UDP address at which radio reports arrive; `None` without reports.
    ///
    /// # Errors
    /// Fails if the kernel does not report the address.
    pub fn reports_address(&self) -> io::Result<Option<SocketAddr>> {
        self.radio.as_ref().map(|radio| radio.socket.local_addr()).transpose()
    }

    /// Counters of the proxy since its start.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Last client, since the previous call, that wanted to reach an address which is not on another machine, and this
    /// address.
    pub const fn take_forbidden(&mut self) -> Option<(IpAddr, SocketAddr)> {
        self.forbidden.take()
    }

    /// Last client, since the previous call, that wanted a connection more than a limit allows.
    pub const fn take_limited(&mut self) -> Option<IpAddr> {
        self.limited.take()
    }

    /// Users whose windows are limited now, with the window in bytes that the connections of a user share.
    pub fn windows(&self) -> Vec<(IpAddr, u64)> {
        self.radio.as_ref().map_or_else(Vec::new, |radio| radio.users.limited().collect())
    }

    /// Waits at most `patience` for events and processes them; `now` is the current time.
    ///
    /// # Errors
    /// Fails if the system call for waiting fails.
    pub fn turn(&mut self, now: Instant, patience: Duration) -> io::Result<()> {
        self.now = now;
        let mut events = [EpollEvent::empty(); 256];
        let held = self.radio.as_ref().and_then(|radio| radio.next_poll(now)).unwrap_or(LOOK_AT_TIMES);
        let most = if self.delivering.is_empty() { held } else { held.min(DELIVERY) };
        // Rounded up: a timeout of zero would make the loop spin.
        let millis = patience.min(most).as_micros().div_ceil(1000);
        let patience = EpollTimeout::try_from(millis).unwrap_or(EpollTimeout::ZERO);
        let count = match self.epoll.wait(&mut events, patience) {
            Err(Errno::EINTR) => 0,
            waited => waited?,
        };
        for event in &events[..count] {
            match event.data() {
                BELL => self.on_names(),
                REPORTS => self.on_reports(),
                token @ LISTENERS.. => self.let_in((token - LISTENERS) as usize),
                token => {
                    if let Some((slot, leg)) = self.clients.find(token) {
                        self.on_client(slot, leg, event.events());
                    }
                }
            }
        }
        self.steer();
        if self.now.duration_since(self.delivered) >= DELIVERY {
            self.delivered = self.now;
            for slot in std::mem::take(&mut self.delivering) {
                self.on_relaying(slot, LEGS);
            }
        }
        if self.now.duration_since(self.looked) >= LOOK_AT_TIMES {
            self.looked = self.now;
            self.end_late();
        }
        Ok(())
    }

    fn let_in(&mut self, listener: usize) {
        // The number of clients accepted per turn is limited, so that other clients are not delayed.
        for _ in 0..64 {
            let Some(Listener { way, socket }) = self.listeners.get(listener) else { return };
            let way = *way;
            let Ok((socket, from)) = socket.accept() else { return };
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            if let Err(refusal) = self.admit(from.ip()) {
                self.counts.refused.count(refusal);
                reset(&socket);
                continue;
            }
            if socket.set_nonblocking(true).is_err() {
                continue;
            }
            let _ = socket.set_nodelay(true);
            probe_idle(&socket);
            spare_reader(&socket);
            let state = State::Asking { bytes: Vec::new(), greeted: false, speech: Speech::Http };
            let slot = self.clients.add(socket, from, state, self.now, PATIENCE);
            self.counts.connections += 1;
            match way {
                Way::Requests => self.watch(slot),
                Way::Diverted => self.divert(slot),
            }
        }
    }

    /// Admits one more connection of a client. At a limit, the connection that has been idle for longest makes room: of
    /// the user at the limit of a user, of all at the limit of all.
    fn admit(&mut self, from: IpAddr) -> Result<(), Refusal> {
        let (most, is_own) = (self.options.max_connections, from.is_loopback());
        if !is_own && !self.options.allow.iter().any(|prefix| prefix.contains(from)) {
            return Err(Refusal::Network);
        }
        let is_user_full = !is_own && self.clients.at(from) >= most.div_ceil(4);
        if !is_user_full && self.clients.len() < most {
            return Ok(());
        }
        self.limited = Some(from);
        let user = is_user_full.then(|| user_of(from));
        let idle = self.clients.longest_idle(user, self.now).ok_or(Refusal::Limit)?;
        self.counts.displaced += 1;
        self.end(idle, true);
        Ok(())
    }

    fn on_client(&mut self, slot: usize, leg: usize, flags: EpollFlags) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        match &mut client.state {
            State::Asking { .. } => self.on_asking(slot),
            // Only an error is reported: a client that ends its data still waits for its answer.
            State::Looking { .. } => self.end(slot, true),
            State::Connecting { .. } if leg == 0 => self.end(slot, true),
            State::Connecting { .. } => self.on_connected(slot),
            State::Relaying => {
                if let Some(pair) = client.pair.as_mut().filter(|_| flags.contains(EpollFlags::EPOLLERR)) {
                    pair.break_leg(leg);
                }
                self.on_relaying(slot, sources(leg, flags));
            }
            State::Closing => self.on_closing(slot),
            State::Left => {}
        }
    }

    /// Relays what is available from these legs of a client.
    fn on_relaying(&mut self, slot: usize, from: &[usize]) {
        let Some(pair) = self.clients.get_mut(slot).and_then(|client| client.pair.as_mut()) else { return };
        let (goes, bytes) = pair.go_on(from, &mut self.buffer, &mut self.pipes);
        let (is_held, is_backlogged) = (pair.is_held(), pair.is_backlogged());
        self.counts.bytes += bytes;
        if bytes > 0 {
            self.clients.touch(slot, self.now);
        }
        match goes {
            Goes::On | Goes::Delivers(_) => {
                if let Some(radio) = self.radio.as_mut().filter(|_| is_held) {
                    radio.held.insert(slot);
                }
                if self.clients.get(slot).is_some_and(|client| client.backlogged != is_backlogged) {
                    self.show(slot);
                }
                if let Goes::Delivers(left) = goes {
                    self.deliver(slot, left);
                }
                self.watch(slot);
            }
            Goes::Finished => self.end(slot, false),
            Goes::Answered => self.close(slot),
            Goes::Refused(leg, answer) => {
                let reason = if leg == 0 { Refusal::Request } else { Refusal::Server };
                self.refuse(slot, reason, &answer);
            }
            Goes::Broken => {
                self.counts.broken += 1;
                self.end(slot, false);
            }
        }
    }

    /// Polls a connection until the bytes of its broken leg are delivered; `left` are not yet.
    fn deliver(&mut self, slot: usize, left: usize) {
        self.delivering.insert(slot);
        if let Some(client) = self.clients.get_mut(slot).filter(|client| client.undelivered != left) {
            (client.undelivered, client.deadline) = (left, Some(self.now + DELIVERY_PATIENCE));
        }
    }

    /// Ends the data to a client that has its answer, and closes the connection when the client does the same.
    fn close(&mut self, slot: usize) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        if let Some(pair) = client.pair.take() {
            client.socket = Some(pair.into_client());
        }
        if client.socket.as_ref().is_none_or(|socket| socket.shutdown(Shutdown::Write).is_err()) {
            return self.end(slot, false);
        }
        (client.state, client.deadline) = (State::Closing, Some(self.now + LINGER));
        self.watch(slot);
    }

    fn on_closing(&mut self, slot: usize) {
        let Some(socket) = self.clients.get_mut(slot).and_then(|client| client.socket.as_mut()) else {
            return;
        };
        match socket.read(&mut self.buffer) {
            Ok(1..) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Ok(0) | Err(_) => self.end(slot, false),
        }
    }

    /// Registers the legs of a client for the epoll events for which they wait.
    fn watch(&mut self, slot: usize) {
        let tokens = [0, 1].map(|leg| self.clients.token(slot, leg));
        let Some(client) = self.clients.get_mut(slot) else { return };
        let errors = Some(EpollFlags::empty());
        let wanted = match (&client.state, &client.pair) {
            (State::Asking { .. } | State::Closing, _) => [Some(EpollFlags::EPOLLIN), None],
            (State::Looking { .. }, _) => [errors, None],
            (State::Connecting { .. }, _) => [errors, Some(EpollFlags::EPOLLOUT)],
            (State::Relaying, Some(pair)) => pair.interests(),
            (State::Relaying, None) | (State::Left, _) => return,
        };
        for (leg, wanted) in wanted.into_iter().enumerate() {
            let socket = match (&client.state, &client.pair, leg) {
                (_, Some(pair), leg) => pair.socket(leg),
                (State::Connecting { server, .. }, _, 1) => server,
                (_, None, 0) => match &client.socket {
                    Some(socket) => socket,
                    None => continue,
                },
                _ => continue,
            };
            let was = std::mem::replace(&mut client.watched[leg], wanted);
            let event = |flags| EpollEvent::new(flags, tokens[leg]);
            let _ = match (was, wanted) {
                (None, Some(flags)) => self.epoll.add(socket, event(flags)),
                (Some(_), None) => self.epoll.delete(socket),
                (Some(was), Some(flags)) if was != flags => self.epoll.modify(socket, &mut event(flags)),
                _ => Ok(()),
            };
        }
    }

    /// Closes the sockets of a client and removes it.
    fn end(&mut self, slot: usize, by_reset: bool) {
        let now = self.time();
        let Some(client) = self.clients.get_mut(slot) else { return };
        if let Some(radio) = &mut self.radio {
            radio.users.close(now, user_of(client.from.ip()), slot as u32);
        }
        if by_reset {
            client.socket.iter().for_each(reset);
            client.pair.iter().for_each(Pair::reset);
        }
        (client.socket, client.pair) = (None, None);
        let user = user_of(client.from.ip());
        let is_looking = matches!(client.state, State::Looking { .. });
        let token = self.clients.token(slot, 0);
        if is_looking && !self.names.withdraw(user, token) {
            let Some(client) = self.clients.get_mut(slot) else { return };
            (client.state, client.deadline) = (State::Left, None);
        } else {
            self.clients.remove(slot);
            self.counts.connections -= 1;
        }
    }

    /// Removes clients that did not send a complete request in time, or whose server does not answer.
    fn end_late(&mut self) {
        let now = self.now;
        for slot in self.clients.slots() {
            let Some(client) = self.clients.get(slot) else { continue };
            if client.deadline.is_none_or(|deadline| now < deadline) {
                continue;
            }
            match &client.state {
                State::Looking { wish, .. } | State::Connecting { wish, .. } => {
                    let answer = wish.speech.tells(Trouble::Unreachable);
                    self.refuse(slot, Refusal::Server, &answer);
                }
                State::Closing => self.end(slot, false),
                _ => self.end(slot, true),
            }
        }
        if now.duration_since(self.looked_at_readers) >= LOOK_AT_READERS {
            self.looked_at_readers = now;
            let clients = self.clients.slots().filter_map(|slot| self.clients.get(slot));
            clients.filter_map(|client| client.pair.as_ref()).for_each(|pair| spare_reader(pair.socket(0)));
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests use real sockets and the real clock")]
mod tests {
    use std::io::Write;
    use std::net::Ipv4Addr;
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// Name lookups wait as long as the test holds this lock.
    static NAME_SERVER: Mutex<()> = Mutex::new(());

    fn slow(_: &str, _: u16) -> Vec<SocketAddr> {
        drop(NAME_SERVER.lock().unwrap_or_else(PoisonError::into_inner));
        Vec::new()
    }

    fn turn_until(server: &mut Server, done: impl Fn(&Server) -> bool) {
        for _ in 0..6000 {
            if done(server) {
                return;
            }
            server.turn(Instant::now(), Duration::from_millis(10)).unwrap();
        }
        panic!("after a minute: {:?}", server.counts());
    }

    fn count(server: &Server, wanted: impl Fn(&State) -> bool) -> usize {
        let clients = server.clients.slots().filter_map(|slot| server.clients.get(slot));
        clients.filter(|client| wanted(&client.state)).count()
    }

    #[test]
    fn a_client_that_leaves_counts_until_its_name_lookup_has_ended() {
        let held = NAME_SERVER.lock().unwrap();
        let listen = vec![(Ipv4Addr::LOCALHOST, 0).into()];
        let options =
            Options { listen, transparent: Vec::new(), allow: Vec::new(), max_connections: 8, reports: None };
        let mut server = Server::start(options, Instant::now()).unwrap();
        server.names = Names::start(slow).unwrap();
        server.epoll.add(server.names.bell(), EpollEvent::new(EpollFlags::EPOLLIN, BELL)).unwrap();
        let address = server.addresses().unwrap()[0];
        for number in 1..=8 {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(b"CONNECT slow.example:80 HTTP/1.1\r\n\r\n").unwrap();
            turn_until(&mut server, |server| {
                count(server, |state| matches!(state, State::Looking { .. })) == 1
            });
            reset(&client);
            drop(client);
            turn_until(&mut server, |server| count(server, |state| matches!(state, State::Left)) == number);
        }
        let refused = TcpStream::connect(address).unwrap();
        turn_until(&mut server, |server| server.counts.refused.of(Refusal::Limit) == 1);
        drop((held, refused));
        turn_until(&mut server, |server| server.clients.len() == 0);
        assert_eq!(server.counts.connections, 0);
        let _client = TcpStream::connect(address).unwrap();
        turn_until(&mut server, |server| server.clients.len() == 1);
    }
}
