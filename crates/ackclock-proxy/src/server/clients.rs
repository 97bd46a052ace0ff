//! Table of the clients. An epoll event or the result of a name lookup can arrive after its client has left, so a token
//! contains the number of the client in addition to its place in the table.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Instant;

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
    /// Epoll events for which each leg is registered.
    pub(super) watched: [EpollFlags; 2],
    /// Whether the steering was told that the client has a backlog.
    pub(super) backlogged: bool,
}

/// All clients, each in a slot of its own.
#[derive(Default)]
pub(super) struct Clients {
    slots: Vec<Option<Client>>,
    free: Vec<usize>,
    next: u64,
    of_user: BTreeMap<IpAddr, usize>,
}

impl Clients {
    /// Adds a client, and returns its slot.
    pub(super) fn add(
        &mut self,
        socket: TcpStream,
        from: SocketAddr,
        state: State,
        deadline: Instant,
    ) -> usize {
        let number = self.next & ((1 << NUMBER_BITS) - 1);
        self.next += 1;
        *self.of_user.entry(user_of(from.ip())).or_default() += 1;
        let (socket, deadline, watched) = (Some(socket), Some(deadline), [EpollFlags::empty(); 2]);
        let client = Client { number, socket, from, state, pair: None, deadline, watched, backlogged: false };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(client);
        slot
    }

    pub(super) fn remove(&mut self, slot: usize) {
        let Some(client) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        self.free.push(slot);
        let user = user_of(client.from.ip());
        if let Some(count) = self.of_user.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                self.of_user.remove(&user);
            }
        }
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
        self.of_user.get(&user_of(address)).copied().unwrap_or(0)
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

    use super::*;
    use crate::asked::Speech;

    #[test]
    fn a_token_does_not_find_the_next_client_in_the_slot() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let state = || State::Asking { bytes: Vec::new(), greeted: false, speech: Speech::Http };
        let [one, other] = ["192.0.2.1:5", "192.0.2.2:5"].map(|from| from.parse::<SocketAddr>().unwrap());
        let mut clients = Clients::default();
        let first = clients.add(socket(), one, state(), Instant::now());
        let second = clients.add(socket(), one, state(), Instant::now());
        let tokens = [0, 1].map(|leg| clients.token(first, leg));
        assert_eq!(tokens.map(|token| clients.find(token)), [Some((first, 0)), Some((first, 1))]);
        assert_eq!((clients.len(), clients.at(one.ip()), clients.at(other.ip())), (2, 2, 0));
        clients.remove(first);
        clients.remove(first);
        assert_eq!(clients.find(tokens[0]), None);
        assert_eq!(clients.add(socket(), other, state(), Instant::now()), first, "the slot is used again");
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
            clients.add(socket, (from, 5).into(), state, Instant::now())
        });
        assert_eq!([one, same, other].map(|address| clients.at(address)), [2, 2, 1]);
        slots.into_iter().for_each(|slot| clients.remove(slot));
        assert_eq!([one, same, other].map(|address| clients.at(address)), [0, 0, 0]);
    }
}
