//! Opening of connections: requests of clients, name lookups, and connections to servers.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};

use super::refusals::Refusal;
use super::{PATIENCE, Server, State};
use crate::asked::{Asked, Speech, Trouble, Wish, can_complete, read};
use crate::listeners::begin;
use crate::pair::{LEGS, Leg, Pair};
use crate::routes::leave_machine;
use crate::steer::user_of;

impl Server {
    pub(super) fn on_asking(&mut self, slot: usize) {
        self.clients.touch(slot, self.now);
        let Some(client) = self.clients.get_mut(slot) else { return };
        let (State::Asking { bytes, .. }, Some(socket)) = (&mut client.state, &mut client.socket) else {
            return;
        };
        match socket.read(&mut self.buffer[..4096]) {
            Ok(0) => return self.end(slot, false),
            Ok(count) => {
                bytes.extend_from_slice(&self.buffer[..count]);
                if !can_complete(bytes, count) {
                    return;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Err(_) => return self.end(slot, true),
        }
        self.read_words(slot);
    }

    fn read_words(&mut self, slot: usize) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        let (State::Asking { bytes, greeted, speech }, Some(socket)) =
            (&mut client.state, &mut client.socket)
        else {
            return;
        };
        loop {
            match read(bytes, *greeted) {
                Asked::More => return,
                Asked::Say(answer, used) => {
                    bytes.drain(..used);
                    (*greeted, *speech) = (true, Speech::Socks);
                    // The send buffer of a new connection always has room for two bytes.
                    if !matches!(socket.write(&answer), Ok(written) if written == answer.len()) {
                        return self.end(slot, true);
                    }
                }
                Asked::Refuse(answer) => return self.refuse(slot, Refusal::Request, &answer),
                Asked::Connect(mut wish) => {
                    let mut rest = bytes.split_off(wish.used);
                    if let Some(exchange) = &mut wish.exchange {
                        let received = std::mem::take(&mut rest);
                        if let Err(answer) = exchange.pass_request(&received, &mut wish.forward) {
                            return self.refuse(slot, Refusal::Request, &answer.unwrap_or_default());
                        }
                    }
                    let (host, port) = (wish.host.clone(), wish.port);
                    if let Ok(address) = host.parse::<IpAddr>() {
                        let to = [(address, port).into()].into();
                        return self.try_next(slot, wish, rest, to, Trouble::Unreachable);
                    }
                    client.state = State::Looking { wish, rest };
                    let user = user_of(client.from.ip());
                    self.names.ask(user, self.clients.token(slot, 0), host, port);
                    return self.watch(slot);
                }
            }
        }
    }

    /// Connects a diverted client to the server that the client wanted to reach. A client that connects to the listener
    /// itself wants to reach this machine, and is refused.
    pub(super) fn divert(&mut self, slot: usize) {
        let Some(client) = self.clients.get(slot) else { return };
        let to = client.socket.as_ref().and_then(|socket| socket.local_addr().ok());
        self.try_next(slot, Wish::diverted(), Vec::new(), to.into_iter().collect(), Trouble::Unreachable);
    }

    /// Sends a refusal and closes the connection. An empty answer resets the connection.
    pub(super) fn refuse(&mut self, slot: usize, reason: Refusal, answer: &[u8]) {
        self.counts.refused.count(reason);
        if answer.is_empty() {
            return self.end(slot, true);
        }
        let Some(client) = self.clients.get_mut(slot) else { return };
        if let Some(mut socket) = client.pair.as_ref().map(|pair| pair.socket(0)).or(client.socket.as_ref()) {
            let _ = socket.write(answer);
        }
        // The lookup of a client continues, and the client counts until the lookup has ended.
        if matches!(client.state, State::Looking { .. }) { self.end(slot, false) } else { self.close(slot) }
    }

    pub(super) fn on_names(&mut self) {
        for (token, addresses) in self.names.found() {
            let Some((slot, _)) = self.clients.find(token) else { continue };
            let Some(client) = self.clients.get_mut(slot) else { continue };
            let State::Looking { wish, rest } = std::mem::replace(&mut client.state, State::Relaying) else {
                self.end(slot, false);
                continue;
            };
            let trouble = if addresses.is_empty() { Trouble::Unknown } else { Trouble::Unreachable };
            self.try_next(slot, wish, rest, addresses.into(), trouble);
        }
    }

    /// Starts a connection to the next address of the server.
    fn try_next(
        &mut self,
        slot: usize,
        wish: Wish,
        rest: Vec<u8>,
        mut others: VecDeque<SocketAddr>,
        mut trouble: Trouble,
    ) {
        while let Some(address) = others.pop_front() {
            let Some(client) = self.clients.get(slot) else { return };
            match self.begin_for(client.from, wish.speech == Speech::Diverted, address) {
                Ok(server) => {
                    let Some(client) = self.clients.get_mut(slot) else { return };
                    client.deadline = Some(self.now + PATIENCE);
                    client.state = State::Connecting { wish, rest, server, others };
                    return self.watch(slot);
                }
                Err(error) => trouble = error,
            }
        }
        self.refuse(slot, trouble.into(), &wish.speech.tells(trouble));
    }

    /// Starts a connection of a client to an address, unless the address is this machine's own.
    fn begin_for(
        &mut self,
        client: SocketAddr,
        is_diverted: bool,
        to: SocketAddr,
    ) -> Result<TcpStream, Trouble> {
        // This machine's own programs can reach the machine anyway; a diverted client would reach the proxy itself.
        let may_reach_own = client.ip().is_loopback() && !is_diverted;
        if !may_reach_own && !leads_out(to.ip()).map_err(|error| trouble_of(&error))? {
            self.forbidden = Some((client.ip(), to));
            return Err(Trouble::Forbidden);
        }
        begin(is_diverted.then_some(client), to).map_err(|error| trouble_of(&error))
    }

    pub(super) fn on_connected(&mut self, slot: usize) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        let State::Connecting { wish, rest, server, others } =
            std::mem::replace(&mut client.state, State::Relaying)
        else {
            return;
        };
        client.watched[1] = None;
        let _ = self.epoll.delete(&server);
        match getsockopt(&server, sockopt::SocketError).map(Errno::from_raw) {
            Ok(Errno::UnknownErrno) => {}
            Ok(errno) => return self.try_next(slot, wish, rest, others, trouble_of(&errno.into())),
            Err(errno) => return self.try_next(slot, wish, rest, others, trouble_of(&errno.into())),
        }
        let Some(socket) = client.socket.take() else { return };
        let first = [wish.forward, rest].concat();
        client.pair =
            Some(Pair::new(Leg::new(socket, wish.connected), Leg::new(server, first), wish.exchange));
        client.deadline = None;
        self.counts.opened += 1;
        let user = user_of(client.from.ip());
        let now = self.time();
        if let Some(radio) = &mut self.radio {
            radio.users.open(now, user, slot as u32);
        }
        self.show(slot);
        self.set_windows();
        self.on_relaying(slot, LEGS);
    }
}

/// Whether an address belongs to another machine: neighbours must not reach services of this machine through the proxy.
fn leads_out(to: IpAddr) -> io::Result<bool> {
    let to = to.to_canonical();
    // The kernel connects to itself for the unspecified address.
    let is_general = match to {
        IpAddr::V4(to) => !(to.is_unspecified() || to.is_link_local()),
        IpAddr::V6(to) => !(to.is_unspecified() || to.is_unicast_link_local()),
    };
    Ok(is_general && leave_machine(to)?)
}

fn trouble_of(error: &io::Error) -> Trouble {
    if error.kind() == ErrorKind::ConnectionRefused { Trouble::Refused } else { Trouble::Unreachable }
}
