//! Windows of the users, by the reports of their radio.
//!
//! The law is a steering of the simulator's relay. This module keeps one steering for each user; it has no clock and
//! does no I/O.

use std::collections::BTreeMap;
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

/// Steerings of all users.
pub struct Users {
    config: Arc<dyn SteeringConfig>,
    users: BTreeMap<IpAddr, User>,
}

struct User {
    steering: Box<dyn Steering>,
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
        Self { config, users: BTreeMap::new() }
    }

    fn user(&mut self, user: IpAddr) -> Option<&mut User> {
        if !self.users.contains_key(&user) {
            let (steering, connections) = (self.config.build()?, BTreeMap::new());
            self.users.insert(user, User { steering, connections, reports: 0 });
        }
        self.users.get_mut(&user)
    }

    /// Adds a connection of a user.
    pub fn open(&mut self, now: Time, user: IpAddr, id: u32) {
        if let Some(user) = self.user(user) {
            user.connections.insert(id, Connection::default());
            user.steering.on_connection(now, FlowId(id), ConnectionEvent::Opened);
        }
    }

    /// Reports the state of a user's connection.
    pub fn see(&mut self, now: Time, user: IpAddr, id: u32, view: ConnectionView) {
        if let Some(user) = self.users.get_mut(&user)
            && let Some(connection) = user.connections.get_mut(&id)
        {
            connection.backlogged = view.backlogged;
            user.steering.on_connection(now, FlowId(id), ConnectionEvent::Seen(view));
        }
    }

    /// Removes a connection of a user.
    pub fn close(&mut self, now: Time, user: IpAddr, id: u32) {
        if let Some(user) = self.users.get_mut(&user)
            && user.connections.remove(&id).is_some()
        {
            user.steering.on_connection(now, FlowId(id), ConnectionEvent::Closed);
        }
    }

    /// Connections of a user, in the order of their numbers.
    pub fn connections(&self, user: IpAddr) -> Vec<u32> {
        self.users.get(&user).map_or_else(Vec::new, |user| user.connections.keys().copied().collect())
    }

    /// Handles an accepted report about a user. The states of the user's connections must be reported first.
    pub fn report(&mut self, now: Time, report: &Report) {
        let Some(user) = self.user(user_of(report.user)) else { return };
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
    }

    /// Handles the timers due at `now`, and forgets users without a connection and without a recent report.
    pub fn tick(&mut self, now: Time) {
        for user in self.users.values_mut() {
            user.steering.on_timeout(now);
        }
        self.users.retain(|_, user| !user.connections.is_empty() || user.steering.poll_timeout().is_some());
    }

    /// Connections whose window changed, with the new window in bytes; `None` is no limit.
    pub fn windows(&mut self, now: Time) -> Vec<(u32, Option<u32>)> {
        let mut changed = Vec::new();
        for user in self.users.values_mut() {
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
    use ackclock_core::Span;
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
