//! Steering of the windows by radio reports.

use std::collections::BTreeSet;
use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ackclock_core::Time;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};

use super::{HELD, REPORTS, Reports, Server, StartError};
use crate::pair::LEGS;
use crate::reports::gate::Gate;
use crate::steer::{Users, user_of};

/// Maximum number of datagrams read per turn, so that a flood of reports does not delay the connections.
const REPORTS_A_TURN: usize = 64;

/// Socket for radio reports, the rules to accept them, and the windows that follow.
pub(super) struct Radio {
    pub(super) socket: UdpSocket,
    gate: Gate,
    pub(super) users: Users,
    /// Connections that wait for room in their window.
    pub(super) held: BTreeSet<usize>,
    /// Connections whose window has changed.
    changed: Vec<usize>,
    /// Time of the last poll of the held connections.
    polled: Instant,
    /// Number of datagrams that the socket has dropped, modulo 2 to the power of 32.
    lost: u32,
}

impl Radio {
    pub(super) fn start(reports: &Reports, epoll: &Epoll, now: Instant) -> Result<Self, StartError> {
        let at = |error| StartError::Reports(reports.listen, error);
        let socket = UdpSocket::bind(reports.listen).map_err(at)?;
        socket.set_nonblocking(true).map_err(at)?;
        epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, REPORTS)).map_err(io::Error::from)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1).map_err(io::Error::from)?;
        let (gate, users) = (Gate::new(reports.keys.clone()), Users::new(Arc::clone(&reports.steering)));
        Ok(Self { socket, gate, users, held: BTreeSet::new(), changed: Vec::new(), polled: now, lost: 0 })
    }

    /// Time until the held connections are polled next; `None` if no connection is held.
    pub(super) fn next_poll(&self, now: Instant) -> Option<Duration> {
        (!self.held.is_empty()).then(|| HELD.saturating_sub(now.duration_since(self.polled)))
    }
}

impl Server {
    /// Time since the start of the proxy, for the steerings.
    pub(super) fn time(&self) -> Time {
        Time::from_nanos(self.now.duration_since(self.started).as_nanos() as u64)
    }

    /// Reports the state of a client's connection to its steering.
    pub(super) fn show(&mut self, slot: usize) {
        let now = self.time();
        let (Some(radio), Some(client)) = (&mut self.radio, self.clients.get_mut(slot)) else { return };
        if let Some(view) = client.pair.as_mut().and_then(|pair| pair.view().ok()) {
            client.backlogged = view.backlogged;
            radio.users.see(now, user_of(client.from.ip()), slot as u32, view);
        }
    }

    pub(super) fn on_reports(&mut self) {
        for _ in 0..REPORTS_A_TURN {
            let Some(radio) = &mut self.radio else { return };
            let Ok((length, lost)) = receive(&radio.socket, &mut self.buffer) else { return };
            // The kernel's counter has 32 bits and overflows.
            self.counts.lost_reports +=
                u64::from(lost.wrapping_sub(std::mem::replace(&mut radio.lost, lost)));
            let report = match radio.gate.admit(&self.buffer[..length], clock()) {
                Ok(report) => report,
                Err(refusal) => {
                    self.counts.refused_reports.count(refusal);
                    continue;
                }
            };
            self.counts.reports += 1;
            for slot in radio.users.connections(user_of(report.user)) {
                self.show(slot as usize);
            }
            let now = self.time();
            if let Some(radio) = &mut self.radio {
                radio.users.report(now, &report);
            }
        }
    }

    /// Sets changed windows, and lets connections send that have room in their window.
    pub(super) fn steer(&mut self) {
        let now = self.time();
        let Some(radio) = &mut self.radio else { return };
        radio.users.tick(now);
        self.set_windows();
        let Some(radio) = &mut self.radio else { return };
        let mut sends = std::mem::take(&mut radio.changed);
        // Each packet of any connection ends a turn, so that polling in each turn would multiply the work.
        if radio.next_poll(self.now).is_some_and(|after| after.is_zero()) {
            radio.polled = self.now;
            sends.extend(std::mem::take(&mut radio.held));
        }
        for slot in sends {
            self.on_relaying(slot, LEGS);
        }
    }

    pub(super) fn set_windows(&mut self) {
        let now = self.time();
        let Some(radio) = &mut self.radio else { return };
        for (slot, window) in radio.users.windows(now) {
            let client = self.clients.get_mut(slot as usize);
            if let Some(pair) = client.and_then(|client| client.pair.as_mut()) {
                pair.limit(window);
                radio.changed.push(slot as usize);
            }
        }
    }
}

/// Receives a datagram: its length, and the number of datagrams that the socket had dropped before (`SO_RXQ_OVFL`).
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, u32)> {
    let (mut parts, mut space) = ([IoSliceMut::new(buffer)], nix::cmsg_space!(u32));
    let got = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::empty())?;
    let dropped = |message| match message {
        ControlMessageOwned::RxqOvfl(dropped) => Some(dropped),
        _ => None,
    };
    // The kernel sends no counter before the first loss.
    Ok((got.bytes, got.cmsgs()?.find_map(dropped).unwrap_or(0)))
}

/// Time of the machine's clock, nanoseconds since 1970.
#[allow(clippy::disallowed_methods, reason = "reports are signed with the time of day")]
fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests use real sockets and the real clock")]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::thread;

    use ackclock_edge::STEERINGS;

    use super::super::Options;
    use super::*;
    use crate::kernel::outstanding;
    use crate::reports::wire::Report;

    /// Turns at one time until `done`.
    fn turn_until(server: &mut Server, now: Instant, mut done: impl FnMut(&Server) -> bool) {
        for _ in 0..6000 {
            if done(server) {
                return;
            }
            server.turn(now, Duration::from_millis(10)).unwrap();
        }
        panic!("after a minute: {:?}", server.counts());
    }

    #[test]
    fn datagrams_that_the_socket_drops_are_counted() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        setsockopt(&socket, sockopt::RxqOvfl, &1).unwrap();
        setsockopt(&socket, sockopt::RcvBuf, &4096).unwrap();
        socket.set_nonblocking(true).unwrap();
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        sender.connect(socket.local_addr().unwrap()).unwrap();
        let (mut buffer, mut received) = ([0; 100], 0);
        for _ in 0..200 {
            sender.send(&[1; 80]).unwrap();
        }
        while let Ok((length, lost)) = receive(&socket, &mut buffer) {
            assert_eq!((length, lost), (80, 0));
            received += 1;
        }
        // The next datagram tells how many were lost before it.
        sender.send(&[1; 80]).unwrap();
        assert_eq!(receive(&socket, &mut buffer).unwrap(), (80, 200 - received));
        assert!(received < 200);
    }

    #[test]
    fn held_connections_are_polled_at_an_interval_and_not_at_each_event() {
        let listen: Vec<_> = vec![(Ipv4Addr::LOCALHOST, 0).into()];
        let steering =
            Arc::clone(&STEERINGS.resolve(&serde_json::json!({ "kind": "rnf", "tau": "1s" })).unwrap());
        let reports = Some(Reports { listen: listen[0], keys: Vec::new(), steering });
        let options =
            Options { listen, transparent: Vec::new(), allow: Vec::new(), max_connections: 8, reports };
        let now = Instant::now();
        let mut server = Server::start(options, now).unwrap();
        let origin = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = origin.local_addr().unwrap();
        thread::spawn(move || {
            let (mut peer, _) = origin.accept().unwrap();
            while peer.write_all(&[7; 65_536]).is_ok() {}
        });
        let mut client = TcpStream::connect(server.addresses().unwrap()[0]).unwrap();
        write!(client, "CONNECT {to} HTTP/1.1\r\n\r\n").unwrap();
        turn_until(&mut server, now, |server| server.counts.opened == 1);

        let user = Ipv4Addr::LOCALHOST.into();
        let (key, change, epoch, sequence, taken, rate) = (1, true, 0, 1, 0, 800_000);
        let report = Report { key, change, epoch, sequence, taken, user, rate, packets: 0, bytes: 0 };
        server.radio.as_mut().unwrap().users.report(Time::ZERO, &report);
        // The client reads nothing, so that the window is used up.
        turn_until(&mut server, now, |server| !server.radio.as_ref().unwrap().held.is_empty());
        client.set_nonblocking(true).unwrap();
        let (mut buffer, mut is_read) = (vec![0; 1 << 16], false);
        turn_until(&mut server, now, |server| {
            is_read |= client.read(&mut buffer).is_err();
            let pair = server.clients.get(0).and_then(|client| client.pair.as_ref()).unwrap();
            is_read && outstanding(pair.socket(0)).unwrap() == 0
        });
        let before = server.counts.bytes;
        for _ in 0..3 {
            server.turn(now, Duration::ZERO).unwrap();
        }
        assert_eq!(server.counts.bytes, before, "polled before the interval has passed");
        turn_until(&mut server, now + HELD, |server| server.counts.bytes > before);
    }
}
