//! Main loop of the proxy: one thread and one buffer serve all connections.

mod clients;
mod opening;
mod steering;

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ackclock_core::{Prefix, SteeringConfig};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{setsockopt, sockopt};

use self::clients::Clients;
use self::steering::Radio;
use crate::asked::{Speech, Trouble, Wish};
use crate::listeners::{Listener, Way};
use crate::names::{Names, addresses};
use crate::pair::{BUFFER, Goes, reset};
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
    /// Number of clients that were not allowed or whose request was refused.
    pub refused: u64,
    /// Number of connections that ended with a reset.
    pub broken: u64,
    /// Number of bytes relayed, for the two directions together.
    pub bytes: u64,
    /// Number of accepted radio reports.
    pub reports: u64,
    /// Number of refused radio reports, by reason.
    pub refused_reports: RefusedReports,
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
    /// The client has left during its name lookup. It counts until the end of the lookup, which limits the lookups of
    /// a user.
    Left,
}

/// Maximum number of open files that are no connections: listeners, name lookups, metrics.
const OTHER_FILES: u64 = 100;

/// Raises the limit of open files to the number needed. Without a free file, no connection can be accepted or refused.
fn allow_files(needed: u64) -> Result<(), StartError> {
    let (limit, most) = getrlimit(Resource::RLIMIT_NOFILE).map_err(io::Error::from)?;
    if needed > most {
        return Err(StartError::Files(needed, most));
    }
    setrlimit(Resource::RLIMIT_NOFILE, limit.max(needed), most).map_err(io::Error::from)?;
    Ok(())
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
    now: Instant,
    looked: Instant,
    started: Instant,
    radio: Option<Radio>,
    forbidden: Option<(IpAddr, SocketAddr)>,
}

impl Server {
    /// Starts to listen for clients.
    ///
    /// # Errors
    /// Fails if the proxy cannot listen on an address, or if every machine that reaches an address could use the proxy.
    pub fn start(options: Options, now: Instant) -> Result<Self, StartError> {
        allow_files(2 * options.max_connections as u64 + OTHER_FILES)?;
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
            now,
            looked: now,
            started: now,
            radio,
            forbidden: None,
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
        let most = self.radio.as_ref().and_then(|radio| radio.next_poll(now)).unwrap_or(LOOK_AT_TIMES);
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
            if !self.admits(from.ip()) || socket.set_nonblocking(true).is_err() {
                self.counts.refused += 1;
                reset(&socket);
                continue;
            }
            let _ = socket.set_nodelay(true);
            let _ = setsockopt(&socket, sockopt::KeepAlive, &true);
            let state = State::Asking { bytes: Vec::new(), greeted: false, speech: Speech::Http };
            let slot = self.clients.add(socket, from, state, self.now + PATIENCE);
            self.counts.connections += 1;
            match way {
                Way::Requests => self.watch(slot),
                Way::Diverted => self.divert(slot),
            }
        }
    }

    fn admits(&self, from: IpAddr) -> bool {
        if self.clients.len() >= self.options.max_connections {
            return false;
        }
        if from.is_loopback() {
            return true;
        }
        self.clients.at(from) < self.options.max_connections.div_ceil(4)
            && self.options.allow.iter().any(|prefix| prefix.contains(from))
    }

    fn on_client(&mut self, slot: usize, leg: usize, flags: EpollFlags) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        match &mut client.state {
            State::Asking { .. } => self.on_asking(slot),
            // The proxy reads a client's further bytes once the server is connected; a client that has disconnected is
            // removed.
            State::Looking { .. } => self.end(slot, true),
            State::Connecting { .. } if leg == 0 => self.end(slot, true),
            State::Connecting { .. } => self.on_connected(slot),
            State::Relaying => self.on_relaying(slot, flags),
            State::Left => {}
        }
    }

    fn on_relaying(&mut self, slot: usize, flags: EpollFlags) {
        let Some(pair) = self.clients.get_mut(slot).and_then(|client| client.pair.as_mut()) else { return };
        if flags.contains(EpollFlags::EPOLLERR) {
            pair.reset();
            self.counts.broken += 1;
            return self.end(slot, false);
        }
        let (goes, bytes) = pair.go_on(&mut self.buffer);
        let (is_held, is_backlogged) = (pair.is_held(), pair.is_backlogged());
        self.counts.bytes += bytes;
        match goes {
            Goes::On => {
                if let Some(radio) = self.radio.as_mut().filter(|_| is_held) {
                    radio.held.insert(slot);
                }
                if self.clients.get(slot).is_some_and(|client| client.backlogged != is_backlogged) {
                    self.show(slot);
                }
                self.watch(slot);
            }
            Goes::Finished => self.end(slot, false),
            Goes::Broken => {
                self.counts.broken += 1;
                self.end(slot, false);
            }
        }
    }

    /// Registers the legs of a client for the epoll events for which they wait.
    fn watch(&mut self, slot: usize) {
        let tokens = [0, 1].map(|leg| self.clients.token(slot, leg));
        let Some(client) = self.clients.get_mut(slot) else { return };
        let wanted = match (&client.state, &client.pair) {
            (State::Asking { .. }, _) => [EpollFlags::EPOLLIN, EpollFlags::empty()],
            // During a name lookup, epoll reports only a reset or hang-up of the client.
            (State::Looking { .. }, _) => [EpollFlags::EPOLLRDHUP; 2],
            // A diverted client may end its data before the server is connected.
            (State::Connecting { wish, .. }, _) if wish.speech == Speech::Diverted => {
                [EpollFlags::empty(), EpollFlags::EPOLLOUT]
            }
            (State::Connecting { .. }, _) => [EpollFlags::EPOLLRDHUP, EpollFlags::EPOLLOUT],
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
            let mut event = EpollEvent::new(wanted, tokens[leg]);
            // A leg that waits for no event is deregistered, because epoll would report its hang-up repeatedly.
            let _ = match (was.is_empty(), wanted.is_empty()) {
                (true, true) => Ok(()),
                (true, false) => self.epoll.add(socket, event),
                (false, true) => self.epoll.delete(socket),
                (false, false) if was == wanted => Ok(()),
                (false, false) => self.epoll.modify(socket, &mut event),
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
        if let Some(socket) = client.socket.take().filter(|_| by_reset) {
            reset(&socket);
        }
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
            let speech = match &client.state {
                State::Looking { wish, .. } | State::Connecting { wish, .. } => Some(wish.speech),
                _ => None,
            };
            match speech {
                Some(speech) => self.refuse(slot, &speech.tells(Trouble::Unreachable)),
                None => self.end(slot, true),
            }
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
            drop(client);
            turn_until(&mut server, |server| count(server, |state| matches!(state, State::Left)) == number);
        }
        let refused = TcpStream::connect(address).unwrap();
        turn_until(&mut server, |server| server.counts.refused == 1);
        drop((held, refused));
        turn_until(&mut server, |server| server.clients.len() == 0);
        assert_eq!(server.counts.connections, 0);
        let _client = TcpStream::connect(address).unwrap();
        turn_until(&mut server, |server| server.clients.len() == 1);
    }
}
