//! Steering of the windows by radio reports.

use std::collections::BTreeSet;
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ackclock_core::Time;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};

use super::{REPORTS, Reports, Server, StartError};
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
}

impl Radio {
    pub(super) fn start(reports: &Reports, epoll: &Epoll) -> Result<Self, StartError> {
        let at = |error| StartError::Reports(reports.listen, error);
        let socket = UdpSocket::bind(reports.listen).map_err(at)?;
        socket.set_nonblocking(true).map_err(at)?;
        epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, REPORTS)).map_err(io::Error::from)?;
        let (gate, users) = (Gate::new(reports.keys.clone()), Users::new(Arc::clone(&reports.steering)));
        Ok(Self { socket, gate, users, held: BTreeSet::new() })
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
            let Ok((length, _)) = radio.socket.recv_from(&mut self.buffer) else { return };
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
        let held = self.radio.as_mut().map(|radio| std::mem::take(&mut radio.held));
        for slot in held.into_iter().flatten() {
            self.on_relaying(slot, EpollFlags::empty());
        }
    }

    pub(super) fn set_windows(&mut self) {
        let now = self.time();
        let Some(radio) = &mut self.radio else { return };
        for (slot, window) in radio.users.windows(now) {
            let client = self.clients.get_mut(slot as usize);
            if let Some(pair) = client.and_then(|client| client.pair.as_mut()) {
                pair.limit(window);
                radio.held.insert(slot as usize);
            }
        }
    }
}

/// Time of the machine's clock, nanoseconds since 1970.
#[allow(clippy::disallowed_methods, reason = "reports are signed with the time of day")]
fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
