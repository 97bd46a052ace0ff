//! Steerings of a relay. Each user has one steering, which controls the connections that forward data to the user.

use std::sync::Arc;

use ackclock_core::{
    ConnectionEvent, ConnectionView, FlowId, RadioReport, Setting, Span, Steering, SteeringConfig, Time,
    Wakes,
};

/// Table of the steerings, by user.
pub(super) struct Steerings {
    config: Arc<dyn SteeringConfig>,
    users: Vec<User>,
    /// Steered connections, indexed by flow number.
    connections: Vec<Option<Connection>>,
    /// Deadline of each user's steering, by user number.
    due: Wakes,
}

struct User {
    steering: Option<Box<dyn Steering>>,
    flows: Vec<FlowId>,
}

/// A steered connection.
#[derive(Clone, Copy)]
struct Connection {
    user: u32,
    /// State of the connection that was last reported to its steering.
    known: Option<(bool, Option<Span>)>,
}

impl Steerings {
    /// Creates an empty table of steerings. Each steering will be built from `config`.
    pub(super) fn new(config: Arc<dyn SteeringConfig>) -> Self {
        Self { config, users: Vec::new(), connections: Vec::new(), due: Wakes::default() }
    }

    /// Adds a new connection of a user.
    pub(super) fn open(&mut self, now: Time, flow: FlowId, user: u32) {
        while self.users.len() <= user as usize {
            self.users.push(User { steering: self.config.build(), flows: Vec::new() });
            self.due.add();
        }
        if self.connections.len() <= flow.index() {
            self.connections.resize(flow.index() + 1, None);
        }
        self.connections[flow.index()] = Some(Connection { user, known: None });
        self.users[user as usize].flows.push(flow);
        self.notify(now, flow, user, ConnectionEvent::Opened);
    }

    /// Reports changes of a connection to its steering. `view` returns the connection's current state.
    pub(super) fn look(&mut self, now: Time, flow: FlowId, view: impl FnOnce() -> ConnectionView) {
        let Some(Some(connection)) = self.connections.get_mut(flow.index()) else { return };
        let view = view();
        let known = Some((view.backlogged, view.min_rtt));
        if std::mem::replace(&mut connection.known, known) != known {
            let user = connection.user;
            self.notify(now, flow, user, ConnectionEvent::Seen(view));
        }
    }

    /// Removes a connection that has ended.
    pub(super) fn close(&mut self, now: Time, flow: FlowId) {
        let Some(connection) = self.connections.get_mut(flow.index()).and_then(Option::take) else { return };
        self.users[connection.user as usize].flows.retain(|&other| other != flow);
        self.notify(now, flow, connection.user, ConnectionEvent::Closed);
    }

    /// Passes on a radio report for one user or for all users. `view` returns the state of a connection.
    pub(super) fn on_report(
        &mut self,
        now: Time,
        report: &RadioReport,
        view: impl Fn(FlowId) -> Option<ConnectionView>,
    ) {
        for (number, user) in (0..).zip(&mut self.users) {
            let Some(steering) = user.steering.as_mut().filter(|_| report.user.is_none_or(|of| of == number))
            else {
                continue;
            };
            for &flow in &user.flows {
                if let Some(view) = view(flow) {
                    steering.on_connection(now, flow, ConnectionEvent::Seen(view));
                }
            }
            steering.on_report(now, report);
            self.due.set(number as usize, steering.poll_timeout());
        }
    }

    /// Runs the steerings that are due at `now`.
    pub(super) fn expire(&mut self, now: Time) {
        while let Some((_, number)) = self.due.first().filter(|(due, _)| *due <= now) {
            let steering = self.users[number].steering.as_mut();
            let next = steering.and_then(|steering| {
                steering.on_timeout(now);
                steering.poll_timeout()
            });
            self.due.set(number, next.filter(|&next| next > now));
        }
    }

    /// Next connection whose window setting changes, and the new setting.
    pub(super) fn poll_setting(&mut self, now: Time) -> Option<(FlowId, Setting)> {
        self.users.iter_mut().find_map(|user| user.steering.as_mut()?.poll_setting(now))
    }

    /// Time at which a steering is next due; [`Time::NEVER`] if no steering has a deadline.
    pub(super) fn due(&self) -> Time {
        self.due.due()
    }

    fn notify(&mut self, now: Time, flow: FlowId, user: u32, event: ConnectionEvent) {
        if let Some(steering) = &mut self.users[user as usize].steering {
            steering.on_connection(now, flow, event);
        }
    }
}
