//! The steerings of a relay: one for each user, with the connections over which data is sent on to it.

use ackclock_core::{
    ConnectionEvent, ConnectionView, FlowId, RadioReport, Setting, Span, Steering, SteeringConfig, Time,
    Wakes,
};

/// The steerings by user.
pub(super) struct Steerings {
    config: Box<dyn SteeringConfig>,
    users: Vec<User>,
    /// The connections that are steered, by their flow.
    connections: Vec<Option<Connection>>,
    /// When a user's steering is due, by its number.
    due: Wakes,
}

struct User {
    steering: Option<Box<dyn Steering>>,
    flows: Vec<FlowId>,
}

/// A connection that is steered.
#[derive(Clone, Copy)]
struct Connection {
    user: u32,
    /// What its steering knows of it.
    known: Option<(bool, Option<Span>)>,
}

impl Steerings {
    /// None yet; each is as `config` says.
    pub(super) fn new(config: Box<dyn SteeringConfig>) -> Self {
        Self { config, users: Vec::new(), connections: Vec::new(), due: Wakes::default() }
    }

    /// A connection of a user begins.
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

    /// Something happened on a connection: its steering is told what is news to it.
    pub(super) fn look(&mut self, now: Time, flow: FlowId, view: impl FnOnce() -> ConnectionView) {
        let Some(Some(connection)) = self.connections.get_mut(flow.index()) else { return };
        let view = view();
        let known = Some((view.backlogged, view.min_rtt));
        if std::mem::replace(&mut connection.known, known) != known {
            let user = connection.user;
            self.notify(now, flow, user, ConnectionEvent::Seen(view));
        }
    }

    /// A connection is over.
    pub(super) fn close(&mut self, now: Time, flow: FlowId) {
        let Some(connection) = self.connections.get_mut(flow.index()).and_then(Option::take) else { return };
        self.users[connection.user as usize].flows.retain(|&other| other != flow);
        self.notify(now, flow, connection.user, ConnectionEvent::Closed);
    }

    /// A report came, of one user or of all; `view` tells how a connection stands.
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

    /// Does what is due.
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

    /// The next connection that is to do something else.
    pub(super) fn poll_setting(&mut self, now: Time) -> Option<(FlowId, Setting)> {
        self.users.iter_mut().find_map(|user| user.steering.as_mut()?.poll_setting(now))
    }

    /// When something is due; [`Time::NEVER`] where nothing is.
    pub(super) fn due(&self) -> Time {
        self.due.due()
    }

    fn notify(&mut self, now: Time, flow: FlowId, user: u32, event: ConnectionEvent) {
        if let Some(steering) = &mut self.users[user as usize].steering {
            steering.on_connection(now, flow, event);
        }
    }
}
