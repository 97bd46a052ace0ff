//! Table of the clients. An epoll event or the result of a name lookup can arrive after its client has left, so a token
//! contains the number of the client in addition to its place in the table.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use nix::sys::epoll::EpollFlags;

use super::State;
use crate::pair::Pair;
use crate::steer::user_of;

/// Number of bits of a client's number in a token.
const NUMBER_BITS: u32 = 29;

/// Client of the proxy.
pub(super) struct Client {
    /// Number of the client, modulo 2 to the power of [`NUMBER_BITS`].
    number: u64,
    pub(super) socket: Option<TcpStream>,
    pub(super) from: SocketAddr,
    pub(super) state: State,
    pub(super) pair: Option<Pair>,
    pub(super) deadline: Option<Instant>,
    /// Epoll events for which each leg is registered, in addition to errors; `None` for a leg that is not registered.
    pub(super) watched: [Option<EpollFlags>; 2],
    /// Whether the steering was told that the client has a backlog.
    pub(super) backlogged: bool,
    /// Bytes of a broken leg that were not delivered at the last poll.
    pub(super) undelivered: usize,
    /// Time of the last data, [`COARSE`] at most too early.
    active: Instant,
}

/// Resolution of the times of the last data: not each packet reorders the connections.
const COARSE: Duration = Duration::from_secs(1);
/// Time without data after which a connection is idle, and can be closed for a new one.
const IDLE: Duration = Duration::from_secs(2);

/// All clients, each in a slot of its own.
#[derive(Default)]
pub(super) struct Clients {
    slots: Vec<Option<Client>>,
    free: Vec<usize>,
    next: u64,
    /// Clients of each user, and of all, by the time of their last data.
    of_user: BTreeMap<IpAddr, BTreeSet<(Instant, usize)>>,
    of_all: BTreeSet<(Instant, usize)>,
}

impl Clients {
    /// Adds a client, and returns its slot.
    pub(super) fn add(
        &mut self,
        socket: TcpStream,
        from: SocketAddr,
        state: State,
        now: Instant,
        patience: Duration,
    ) -> usize {
        let number = self.next & ((1 << NUMBER_BITS) - 1);
        self.next += 1;
        let client = Client {
            number,
            socket: Some(socket),
            from,
            state,
            pair: None,
            deadline: Some(now + patience),
            watched: [None; 2],
            backlogged: false,
            undelivered: 0,
            active: now,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(client);
        self.of_user.entry(user_of(from.ip())).or_default().insert((now, slot));
        self.of_all.insert((now, slot));
        slot
    }

    pub(super) fn remove(&mut self, slot: usize) {
        let Some(client) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        self.free.push(slot);
        let user = user_of(client.from.ip());
        self.of_all.remove(&(client.active, slot));
        if let Some(clients) = self.of_user.get_mut(&user) {
            clients.remove(&(client.active, slot));
            if clients.is_empty() {
                self.of_user.remove(&user);
            }
        }
    }

    /// Notes that a client has sent or received data.
    pub(super) fn touch(&mut self, slot: usize, now: Instant) {
        let Some(client) = self.slots.get_mut(slot).and_then(Option::as_mut) else { return };
        if now.duration_since(client.active) < COARSE {
            return;
        }
        let (user, before) = (user_of(client.from.ip()), std::mem::replace(&mut client.active, now));
        for clients in self.of_user.get_mut(&user).into_iter().chain([&mut self.of_all]) {
            clients.remove(&(before, slot));
            clients.insert((now, slot));
        }
    }

    /// Client that has been idle for longest, of a user or of all; `None` if none is idle. A client with a name lookup
    /// counts until its lookup has ended, so that closing it makes no room.
    pub(super) fn longest_idle(&self, user: Option<IpAddr>, now: Instant) -> Option<usize> {
        let clients = user.map_or(Some(&self.of_all), |user| self.of_user.get(&user))?;
        let idle = clients.iter().take_while(|(active, _)| now.duration_since(*active) >= IDLE);
        let makes_room = |client: &Client| !matches!(client.state, State::Looking { .. } | State::Left);
        idle.map(|&(_, slot)| slot).find(|&slot| self.get(slot).is_some_and(makes_room))
    }

    pub(super) fn get(&self, slot: usize) -> Option<&Client> {
        self.slots.get(slot)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut Client> {
        self.slots.get_mut(slot)?.as_mut()
    }

    /// Slots of all clients, and of clients that have left.
    pub(super) fn slots(&self) -> std::ops::Range<usize> {
        0..self.slots.len()
    }

    /// Current number of clients.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Current number of clients of the user to whom this address belongs.
    pub(super) fn at(&self, address: IpAddr) -> usize {
        self.of_user.get(&user_of(address)).map_or(0, BTreeSet::len)
    }

    /// Token for events of a leg of a client; smaller than 2 to the power of 62.
    pub(super) fn token(&self, slot: usize, leg: usize) -> u64 {
        let number = self.get(slot).map_or(0, |client| client.number);
        number << 33 | (slot as u64) << 1 | leg as u64
    }

    /// Slot and leg of a token; `None` if the client has left.
    pub(super) fn find(&self, token: u64) -> Option<(usize, usize)> {
        let (slot, leg) = ((token >> 1) as u32 as usize, token as usize & 1);
        (self.get(slot)?.number == token >> 33).then_some((slot, leg))
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests use real sockets and the real clock")]
mod tests {
    use std::net::TcpListener;

    use super::super::PATIENCE;
    use super::*;
    use crate::asked::Speech;

    #[test]
    fn a_token_does_not_find_the_next_client_in_the_slot() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let state = || State::Asking { bytes: Vec::new(), greeted: false, speech: Speech::Http };
        let [one, other] = ["192.0.2.1:5", "192.0.2.2:5"].map(|from| from.parse::<SocketAddr>().unwrap());
        let mut clients = Clients::default();
        let first = clients.add(socket(), one, state(), Instant::now(), PATIENCE);
        let second = clients.add(socket(), one, state(), Instant::now(), PATIENCE);
        let tokens = [0, 1].map(|leg| clients.token(first, leg));
        assert_eq!(tokens.map(|token| clients.find(token)), [Some((first, 0)), Some((first, 1))]);
        assert_eq!((clients.len(), clients.at(one.ip()), clients.at(other.ip())), (2, 2, 0));
        clients.remove(first);
        clients.remove(first);
        assert_eq!(clients.find(tokens[0]), None);
        assert_eq!(
            clients.add(socket(), other, state(), Instant::now(), PATIENCE),
            first,
            "the slot is used again"
        );
        assert_eq!(tokens.map(|token| clients.find(token)), [None, None]);
        assert_eq!(clients.find(clients.token(second, 1)), Some((second, 1)));
        assert_eq!((clients.len(), clients.at(one.ip()), clients.at(other.ip())), (2, 1, 1));
    }

    #[test]
    fn all_addresses_of_a_v6_network_count_as_one_user() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut clients = Clients::default();
        let addresses = ["2001:db8::1", "2001:db8::2:3:4:5", "2001:db8:0:1::1"];
        let [one, same, other] = addresses.map(|address| address.parse::<IpAddr>().unwrap());
        let slots = [one, same, other].map(|from| {
            let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let state = State::Asking { bytes: Vec::new(), greeted: false, speech: Speech::Http };
            clients.add(socket, (from, 5).into(), state, Instant::now(), PATIENCE)
        });
        assert_eq!([one, same, other].map(|address| clients.at(address)), [2, 2, 1]);
        slots.into_iter().for_each(|slot| clients.remove(slot));
        assert_eq!([one, same, other].map(|address| clients.at(address)), [0, 0, 0]);
    }

    #[test]
    fn the_client_that_is_idle_for_longest_makes_room() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let start = Instant::now();
        let at = |secs: u64| start + Duration::from_secs(secs);
        let [one, other] = ["192.0.2.1:5", "192.0.2.2:5"].map(|from| from.parse::<SocketAddr>().unwrap());
        let mut clients = Clients::default();
        let add = |clients: &mut Clients, from, secs| {
            let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            clients.add(socket, from, State::Relaying, at(secs), PATIENCE)
        };
        let [a, b] = [0, 1].map(|secs| add(&mut clients, one, secs));
        let c = add(&mut clients, other, 2);
        let user = |from: SocketAddr| Some(user_of(from.ip()));
        assert_eq!(clients.longest_idle(None, at(1)), None, "one second is not idle");
        assert_eq!([None, user(one)].map(|user| clients.longest_idle(user, at(5))), [Some(a), Some(a)]);
        assert_eq!(clients.longest_idle(user(other), at(5)), Some(c), "each user pays for itself");
        clients.touch(a, at(5));
        assert_eq!(clients.longest_idle(None, at(6)), Some(b));
        clients.get_mut(b).unwrap().state = State::Left;
        assert_eq!(clients.longest_idle(user(one), at(6)), None, "a lookup still counts");
        assert_eq!(clients.longest_idle(user(one), at(9)), Some(a));
        [a, b, c].into_iter().for_each(|slot| clients.remove(slot));
        assert!(clients.of_user.is_empty() && clients.of_all.is_empty());
    }
}
