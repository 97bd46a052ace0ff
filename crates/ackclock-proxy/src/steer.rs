//! Windows of the users, by the reports of their radio.
//!
//! The law is a steering of the simulator's relay. This module keeps one steering for each user; it has no clock and
//! does no I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use ackclock_core::{
    ConnectionEvent, ConnectionView, FlowId, RadioReport, Rate, ReportReason, Steering, SteeringConfig, Time,
};

use crate::reports::wire::Report;

/// User to whom an address belongs: the IPv4 address, or the /64 of the IPv6 address.
pub fn user_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

/// Maximum number of users up to which reports create users without a connection.
const MOST_REPORTED: usize = 10_000;

/// Steerings of all users. Work is done only for users with an event or a due timer, not for each user.
pub struct Users {
    config: Arc<dyn SteeringConfig>,
    users: BTreeMap<IpAddr, User>,
    /// Users whose settings may have changed.
    touched: BTreeSet<IpAddr>,
    timers: BTreeSet<(Time, IpAddr)>,
}

struct User {
    steering: Box<dyn Steering>,
    /// Time of the user's timer.
    due: Option<Time>,
    connections: BTreeMap<u32, Connection>,
    /// Number of accepted reports.
    reports: u32,
}

/// State of a connection, as last set and reported.
#[derive(Clone, Copy, Default)]
struct Connection {
    /// Window in bytes; `None` is no limit.
    window: Option<u32>,
    backlogged: bool,
}

impl User {
    /// Window that the user's connections share, in bytes; `None` without a limit. Connections without data to send
    /// do not use their part, so they count only if no connection has data.
    fn window(&self) -> Option<u64> {
        let any = self.connections.values().any(|connection| connection.backlogged);
        let sharing = self.connections.values().filter(|connection| connection.backlogged == any);
        let windows: Option<Vec<u32>> = sharing.map(|connection| connection.window).collect();
        windows.filter(|windows| !windows.is_empty()).map(|windows| windows.into_iter().map(u64::from).sum())
    }
}

impl Users {
    /// Creates the steerings, with no user.
    pub fn new(config: Arc<dyn SteeringConfig>) -> Self {
        Self { config, users: BTreeMap::new(), touched: BTreeSet::new(), timers: BTreeSet::new() }
    }

    /// Adds a user, if the steering needs users.
    fn add(&mut self, user: IpAddr) {
        if !self.users.contains_key(&user)
            && let Some(steering) = self.config.build()
        {
            let connections = BTreeMap::new();
            self.users.insert(user, User { steering, due: None, connections, reports: 0 });
        }
    }

    /// Calls `call` for a user. Forgets the user if it then has neither a connection nor a timer.
    fn with(&mut self, address: IpAddr, call: impl FnOnce(&mut User)) {
        let Some(user) = self.users.get_mut(&address) else { return };
        call(user);
        let due = user.steering.poll_timeout();
        let is_over = user.connections.is_empty() && due.is_none();
        let before = std::mem::replace(&mut user.due, due);
        if before != due {
            before.map(|at| self.timers.remove(&(at, address)));
            self.timers.extend(due.map(|at| (at, address)));
        }
        if is_over {
            self.users.remove(&address);
            self.touched.remove(&address);
        } else {
            self.touched.insert(address);
        }
    }

    /// Adds a connection of a user.
    pub fn open(&mut self, now: Time, user: IpAddr, id: u32) {
        self.add(user);
        self.with(user, |user| {
            user.connections.insert(id, Connection::default());
            user.steering.on_connection(now, FlowId(id), ConnectionEvent::Opened);
        });
    }

    /// Reports the state of a user's connection.
    pub fn see(&mut self, now: Time, user: IpAddr, id: u32, view: ConnectionView) {
        self.with(user, |user| {
            if let Some(connection) = user.connections.get_mut(&id) {
                connection.backlogged = view.backlogged;
                user.steering.on_connection(now, FlowId(id), ConnectionEvent::Seen(view));
            }
        });
    }

    /// Removes a connection of a user.
    pub fn close(&mut self, now: Time, user: IpAddr, id: u32) {
        self.with(user, |user| {
            if user.connections.remove(&id).is_some() {
                user.steering.on_connection(now, FlowId(id), ConnectionEvent::Closed);
            }
        });
    }

    /// Connections of a user, in the order of their numbers.
    pub fn connections(&self, user: IpAddr) -> Vec<u32> {
        self.users.get(&user).map_or_else(Vec::new, |user| user.connections.keys().copied().collect())
    }

    /// Handles an accepted report about a user. The states of the user's connections must be reported first.
    pub fn report(&mut self, now: Time, report: &Report) {
        let user = user_of(report.user);
        // A radio that invents users must not use up the memory.
        if self.users.len() < MOST_REPORTED {
            self.add(user);
        }
        self.with(user, |user| {
            user.reports = user.reports.wrapping_add(1);
            let report = RadioReport {
                number: user.reports,
                at: Time::from_nanos(report.taken),
                user: None,
                rate: Rate::from_bps(report.rate),
                queued_packets: report.packets,
                queued_bytes: report.bytes.into(),
                reason: if report.change { ReportReason::Change } else { ReportReason::Periodic },
            };
            user.steering.on_report(now, &report);
        });
    }

    /// Handles the timers due at `now`.
    pub fn tick(&mut self, now: Time) {
        while let Some(&(at, user)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.with(user, |user| user.steering.on_timeout(now));
            // A steering must not stop the loop with a timer that stays due.
            if self.timers.contains(&(at, user)) {
                break;
            }
        }
    }

    /// Connections whose window changed, with the new window in bytes; `None` is no limit.
    pub fn windows(&mut self, now: Time) -> Vec<(u32, Option<u32>)> {
        let mut changed = Vec::new();
        for address in std::mem::take(&mut self.touched) {
            let Some(user) = self.users.get_mut(&address) else { continue };
            while let Some((FlowId(id), setting)) = user.steering.poll_setting(now) {
                if let Some(connection) = user.connections.get_mut(&id) {
                    connection.window = setting.window;
                }
                changed.push((id, setting.window));
            }
        }
        changed
    }

    /// Users whose windows are limited, with the window in bytes that the connections of the user share.
    pub fn limited(&self) -> impl Iterator<Item = (IpAddr, u64)> {
        self.users.iter().filter_map(|(&address, user)| Some((address, user.window()?)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use ackclock_core::{Setting, Span};
    use ackclock_edge::STEERINGS;

    use super::*;

    fn users() -> Users {
        Users::new(Arc::clone(&STEERINGS.resolve(&"rnf".into()).unwrap()))
    }

    fn report(user: IpAddr, taken: u64, rate: u64) -> Report {
        let (key, change, epoch, sequence, packets, bytes) = (1, true, 0, taken, 0, 0);
        Report { key, change, epoch, sequence, taken, user, rate, packets, bytes }
    }

    fn view(backlogged: bool) -> ConnectionView {
        let min_rtt = Some(Span::from_millis(120));
        ConnectionView { backlogged, window_limited: backlogged, min_rtt, mss: 1448, packet: 1500 }
    }

    #[test]
    fn connections_of_a_user_share_one_window_and_silence_ends_it() {
        let (mut users, user) = (users(), user_of("10.0.0.2".parse().unwrap()));
        let at = |secs: u64| Time::from_nanos(secs * 1_000_000_000);
        for id in [4, 9] {
            users.open(at(0), user, id);
            users.see(at(0), user, id, view(true));
        }
        assert_eq!(users.windows(at(0)), [], "no report, no limit");
        users.report(at(1), &report(user, 1, 384_000));
        // 384 kbit/s x 120 ms = 3.84 packets of 1500 bytes, and the target queue of 6 packets.
        assert_eq!(users.windows(at(1)), [(4, Some(5 * 1448)), (9, Some(5 * 1448))]);
        assert!(users.limited().eq([(user, 10 * 1448)]));
        users.see(at(2), user, 9, view(false));
        assert_eq!(users.windows(at(2))[0], (4, Some(10 * 1448)), "the window belongs to who has data");
        assert!(users.limited().eq([(user, 10 * 1448)]), "an idle connection uses no part");
        users.tick(at(3));
        assert_eq!(users.windows(at(3)), []);
        users.tick(at(4));
        assert_eq!(users.windows(at(4)), [(4, None), (9, None)], "three seconds of silence");
        assert_eq!(users.limited().count(), 0);
    }

    #[test]
    fn a_report_about_one_user_leaves_others_alone_and_memory_is_freed() {
        let mut users = users();
        let [mine, other] = ["2001:db8::1", "2001:db8:0:1::1"].map(|user| user_of(user.parse().unwrap()));
        users.open(Time::ZERO, mine, 1);
        users.see(Time::ZERO, mine, 1, view(true));
        users.report(Time::ZERO, &report(other, 1, 1000));
        assert_eq!(users.windows(Time::ZERO), []);
        users.close(Time::ZERO, mine, 1);
        users.tick(Time::from_nanos(4_000_000_000));
        assert!(users.users.is_empty());
    }

    /// Steering that counts how often it is polled, and has a timer at ten seconds.
    #[derive(Clone, Debug, Default)]
    struct Counted(Arc<AtomicUsize>);

    impl SteeringConfig for Counted {
        fn build(&self) -> Option<Box<dyn Steering>> {
            Some(Box::new(self.clone()))
        }

        fn patience(&self) -> Option<Span> {
            None
        }
    }

    impl Steering for Counted {
        fn on_connection(&mut self, _: Time, _: FlowId, _: ConnectionEvent) {}

        fn on_report(&mut self, _: Time, _: &RadioReport) {}

        fn poll_setting(&mut self, _: Time) -> Option<(FlowId, Setting)> {
            self.0.fetch_add(1, Ordering::Relaxed);
            None
        }

        fn poll_timeout(&self) -> Option<Time> {
            Some(Time::from_nanos(10_000_000_000))
        }

        fn on_timeout(&mut self, _: Time) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_event_of_one_user_costs_no_work_for_others_and_reports_create_a_limited_number_of_users() {
        let counted = Counted::default();
        let mut users = Users::new(Arc::new(counted.clone()));
        for number in 0..2 * MOST_REPORTED as u32 {
            let user = Ipv4Addr::from_bits(0x0a00_0000 + number).into();
            users.report(Time::ZERO, &report(user, 1, 1000));
        }
        assert_eq!(users.users.len(), MOST_REPORTED);
        users.windows(Time::ZERO);
        let client = "192.0.2.1".parse().unwrap();
        users.open(Time::ZERO, client, 1);
        assert_eq!(users.connections(client), [1], "a client is always known");
        let before = counted.0.load(Ordering::Relaxed);
        users.see(Time::ZERO, client, 1, view(true));
        users.tick(Time::ZERO);
        users.windows(Time::ZERO);
        assert_eq!(counted.0.load(Ordering::Relaxed) - before, 1);
    }

    proptest::proptest! {
        /// The proxy and the simulated relay use one law: equal views and reports give equal windows.
        #[test]
        fn windows_are_those_of_the_simulated_relay(
            steps in proptest::collection::vec((1..2000_u64, 0..3_000_000_u64, 0..60_000_u32, 0..4_u32), 1..60),
        ) {
            let config = Arc::clone(&STEERINGS.resolve(&"rnf".into()).unwrap());
            let (mut users, user) = (Users::new(Arc::clone(&config)), user_of("10.0.0.2".parse().unwrap()));
            let mut relay = config.build().unwrap();
            let mut now = Time::ZERO;
            for id in 0..4 {
                users.open(now, user, id);
                relay.on_connection(now, FlowId(id), ConnectionEvent::Opened);
            }
            for (number, (wait, rate, bytes, id)) in (1..).zip(steps) {
                now = Time::from_nanos(now.as_nanos() + wait * 1_000_000);
                users.tick(now);
                relay.on_timeout(now);
                users.see(now, user, id, view(bytes % 2 == 0));
                relay.on_connection(now, FlowId(id), ConnectionEvent::Seen(view(bytes % 2 == 0)));
                let report = Report { change: rate % 2 == 0, bytes, ..report(user, now.as_nanos(), rate) };
                users.report(now, &report);
                let reason = if report.change { ReportReason::Change } else { ReportReason::Periodic };
                relay.on_report(now, &RadioReport {
                    number,
                    at: now,
                    user: None,
                    rate: Rate::from_bps(rate),
                    queued_packets: 0,
                    queued_bytes: bytes.into(),
                    reason,
                });
                let settings = std::iter::from_fn(|| relay.poll_setting(now));
                let expected: Vec<_> = settings.map(|(id, setting)| (id.0, setting.window)).collect();
                proptest::prop_assert_eq!(users.windows(now), expected);
            }
        }
    }
}
