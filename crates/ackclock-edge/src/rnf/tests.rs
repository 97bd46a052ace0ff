//! Rules of RNF by hand. Packets have 1000 B including headers and 960 B of payload; 80 kbit/s are 10 packets a
//! second.

use super::*;
use crate::STEERINGS;
use ackclock_core::{Config as _, ReportReason};
use serde_json::{Value, json};

const MSS: u32 = 960;

fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// A steering and its latest settings.
struct Proxy {
    steering: Box<dyn Steering>,
    number: u32,
    settings: Vec<Setting>,
}

impl Proxy {
    fn new(table: Value, connections: u32) -> Self {
        let steering = STEERINGS.resolve(&table).unwrap().build().unwrap();
        let mut proxy = Self { steering, number: 0, settings: vec![Setting::OWN; connections as usize] };
        for id in 0..connections {
            proxy.steering.on_connection(Time::ZERO, FlowId(id), ConnectionEvent::Opened);
        }
        proxy
    }

    /// One connection with unlimited data and a round trip of 100 ms.
    fn busy(table: Value) -> Self {
        let mut proxy = Self::new(table, 1);
        proxy.see(0, view(true, true));
        proxy
    }

    fn see(&mut self, id: u32, view: ConnectionView) {
        self.steering.on_connection(Time::ZERO, FlowId(id), ConnectionEvent::Seen(view));
        self.fetch(Time::ZERO);
    }

    /// A report generated at `at`, in ms, that arrives 50 ms later.
    fn report(&mut self, at: u64, kbps: u64, queued: u32, reason: ReportReason) {
        let report = RadioReport {
            number: self.number,
            at: ms(at),
            user: None,
            rate: Rate::from_bps(kbps * 1000),
            queued_packets: queued,
            queued_bytes: u64::from(queued) * 1000,
            reason,
        };
        self.number = self.number.wrapping_add(1);
        self.steering.on_report(ms(at + 50), &report);
        self.fetch(ms(at + 50));
    }

    fn change(&mut self, at: u64, kbps: u64) {
        self.report(at, kbps, 0, ReportReason::Change);
    }

    /// A sample of the queue while a window is full.
    fn sample(&mut self, at: u64, kbps: u64, queued: u32) {
        self.see(0, view(true, true));
        self.report(at, kbps, queued, ReportReason::Periodic);
    }

    fn fetch(&mut self, now: Time) {
        while let Some((id, setting)) = self.steering.poll_setting(now) {
            self.settings[id.index()] = setting;
        }
    }

    /// Windows in packets; `None` for a connection with its own congestion control.
    fn windows(&self) -> Vec<Option<u32>> {
        self.settings.iter().map(|setting| setting.window.map(|bytes| bytes / MSS)).collect()
    }

    fn window(&self) -> u32 {
        self.windows()[0].expect("it is steered")
    }
}

fn view(backlogged: bool, window_limited: bool) -> ConnectionView {
    let min_rtt = Some(Span::from_millis(100));
    ConnectionView { backlogged, window_limited, min_rtt, mss: MSS, packet: 1000 }
}

#[test]
fn a_change_of_the_rate_sets_the_window_to_what_the_way_holds_and_what_is_to_wait() {
    let mut proxy = Proxy::busy(json!("rnf"));
    assert_eq!(proxy.windows(), [None], "nothing is known of the radio");
    // 10 a second for 0.1 s, plus 6; 50 a second for 0.1 s, plus 6.
    proxy.change(0, 80);
    assert_eq!(proxy.window(), 7);
    proxy.change(5000, 400);
    assert_eq!(proxy.window(), 11);
}

#[test]
fn the_queue_is_at_its_target_two_samples_after_a_disturbance() {
    // M05-D1 in the map q(k+1) = w(k) - b tau of section 3.5. True tau 0.3 s, assumed 0.1 s: b tau is 3, not 1.
    let mut proxy = Proxy::busy(json!("rnf"));
    proxy.change(0, 80);
    let queues: Vec<u32> = (1..=4)
        .map(|sample| {
            let queue = proxy.window() - 3;
            proxy.sample(sample * 2000, 80, queue);
            queue
        })
        .collect();
    assert_eq!(queues, [4, 6, 6, 6]);
}

#[test]
fn a_smaller_gain_leaves_its_share_of_the_error() {
    let mut proxy = Proxy::busy(json!({ "kind": "rnf", "gain": 0.5 }));
    proxy.change(0, 80);
    // 7 + (6 - 2) / 2, 9 + (6 - 16) / 2
    proxy.sample(2000, 80, 2);
    assert_eq!(proxy.window(), 9);
    proxy.sample(4000, 80, 16);
    assert_eq!(proxy.window(), 4);
}

#[test]
fn a_sample_before_the_change_has_settled_is_left_out() {
    // 50 ms of lag, tau, and 6 packets at 10 a second: 0.75 s; with 9 in the queue 1.05 s.
    for (at, queued, window) in [(750, 0, 7), (751, 0, 13), (1050, 9, 7), (1051, 9, 4)] {
        let mut proxy = Proxy::busy(json!("rnf"));
        proxy.change(0, 80);
        proxy.sample(at, 80, queued);
        assert_eq!(proxy.window(), window, "{at} ms");
    }
}

#[test]
fn a_sample_before_the_last_correction_has_settled_is_left_out() {
    let mut proxy = Proxy::busy(json!({ "kind": "rnf", "lag": "1s" }));
    proxy.change(0, 80);
    proxy.sample(2000, 80, 4);
    assert_eq!(proxy.window(), 9);
    // 1 s of lag, 0.1 s and 0.6 s: the reaction at 3 s is visible from 3.7 s on.
    proxy.sample(3000, 80, 4);
    assert_eq!(proxy.window(), 9);
    proxy.sample(4000, 80, 7);
    assert_eq!(proxy.window(), 8);
    // No correction was made: the next sample counts.
    proxy.sample(6000, 80, 6);
    proxy.sample(6100, 80, 5);
    assert_eq!(proxy.window(), 9);
}

#[test]
fn what_waits_is_a_number_of_packets_or_what_passes_in_a_time() {
    let window = |q_ref: &str, kbps| {
        let mut proxy = Proxy::busy(json!({ "kind": "rnf", "q_ref": q_ref }));
        proxy.change(0, kbps);
        proxy.window()
    };
    // b tau is 1, 5 and 10; the packets served in 100 ms are the same numbers, limited to 2 to 6.
    assert_eq!([80, 400, 800].map(|kbps| window("6p", kbps)), [7, 11, 16]);
    assert_eq!([80, 400, 800].map(|kbps| window("100ms", kbps)), [3, 10, 16]);
}

#[test]
fn the_outer_loop_asks_for_more_where_the_queue_was_empty_and_for_less_where_it_never_is() {
    let mut proxy = Proxy::busy(json!({ "kind": "rnf", "q_ref": "auto" }));
    proxy.change(0, 80);
    // Ten samples at the target of 6: from then on it is 5, finally 1.
    let mut at = 0;
    let mut settle = |proxy: &mut Proxy, samples: u32| {
        for _ in 0..samples {
            at += 2000;
            proxy.sample(at, 80, proxy.window() - 1);
        }
    };
    settle(&mut proxy, 10);
    assert_eq!(proxy.window(), 6);
    settle(&mut proxy, 100);
    assert_eq!(proxy.window(), 2);
    // One is added because the queue was empty, and one to fill it.
    proxy.sample(1_000_000, 80, 0);
    assert_eq!(proxy.window(), 4);
}

#[test]
fn connections_with_something_to_send_share_one_window() {
    let mut proxy = Proxy::new(json!("rnf"), 4);
    (0..4).for_each(|id| proxy.see(id, view(true, true)));
    proxy.change(0, 400);
    // 11 among four; the first three share the remainder.
    assert_eq!(proxy.windows(), [Some(3), Some(3), Some(3), Some(2)]);
    (2..4).for_each(|id| proxy.see(id, view(false, false)));
    assert_eq!(proxy.windows()[..2], [Some(6), Some(5)], "the others have nothing to send");
    proxy.steering.on_connection(Time::ZERO, FlowId(0), ConnectionEvent::Closed);
    proxy.fetch(Time::ZERO);
    assert_eq!(proxy.windows()[1], Some(11));
}

#[test]
fn each_connection_may_have_a_packet_in_flight() {
    let mut proxy = Proxy::new(json!({ "kind": "rnf", "q_ref": "1p" }), 4);
    (0..4).for_each(|id| proxy.see(id, view(true, true)));
    proxy.change(0, 80);
    assert_eq!(proxy.windows(), [Some(1); 4], "the window is of two");
}

#[test]
fn a_periodic_rate_near_the_one_fed_forward_is_a_sample_and_one_beyond_sets_the_window() {
    let mut proxy = Proxy::busy(json!("rnf"));
    proxy.change(0, 80);
    assert_eq!(proxy.window(), 7);
    // 6 - 2 packets are missing at 64, 80 or 100 kbit/s alike: no rate differs by more than a quarter.
    for kbps in [64, 80, 100] {
        let mut near = Proxy::busy(json!("rnf"));
        near.change(0, 80);
        near.sample(2000, kbps, 2);
        assert_eq!(near.window(), 11, "{kbps} kbit/s");
    }
    // 101 kbit/s: 1.26 packets in 0.1 s, plus 6; a change is fed forward however small.
    for reason in [ReportReason::Periodic, ReportReason::Change] {
        let mut beyond = Proxy::busy(json!({ "kind": "rnf", "change": 0.25 }));
        beyond.change(0, 800);
        beyond.report(2000, if reason == ReportReason::Periodic { 1010 } else { 810 }, 2, reason);
        let expected = if reason == ReportReason::Periodic { 19 } else { 16 };
        assert_eq!(beyond.window(), expected, "{reason:?}");
    }
}

#[test]
fn a_window_that_nobody_fills_does_not_grow_and_may_shrink() {
    let mut proxy = Proxy::busy(json!("rnf"));
    proxy.change(0, 80);
    proxy.sample(2000, 80, 6);
    for at in [4000, 6000, 8000] {
        proxy.see(0, view(false, false));
        proxy.report(at, 80, 0, ReportReason::Periodic);
    }
    assert_eq!(proxy.window(), 7);
    proxy.report(10_000, 80, 8, ReportReason::Periodic);
    assert_eq!(proxy.window(), 5);
}

#[test]
fn an_overtaken_report_is_left_out_and_a_lost_change_is_made_good_by_the_next_report() {
    let mut proxy = Proxy::busy(json!("rnf"));
    proxy.number = u32::MAX;
    proxy.change(0, 80);
    proxy.number = 5;
    proxy.sample(3000, 400, 0);
    assert_eq!(proxy.window(), 11, "its number wrapped, and the rate differs");
    for overtaken in [4, 5, u32::MAX] {
        proxy.number = overtaken;
        proxy.change(2900, 80);
        assert_eq!(proxy.window(), 11);
    }
}

#[test]
fn in_silence_connections_rule_themselves_until_the_next_report() {
    let mut proxy = Proxy::busy(json!({ "kind": "rnf", "stale": "3s" }));
    assert_eq!(proxy.steering.poll_timeout(), None);
    proxy.change(0, 80);
    proxy.sample(2000, 80, 4);
    assert_eq!((proxy.window(), proxy.steering.poll_timeout()), (9, Some(ms(5050))));
    proxy.steering.on_timeout(ms(5049));
    proxy.fetch(ms(5049));
    assert_eq!(proxy.window(), 9);
    proxy.steering.on_timeout(ms(5050));
    proxy.fetch(ms(5050));
    assert_eq!((proxy.settings[0], proxy.steering.poll_timeout()), (Setting::OWN, None));
    // Earlier corrections are obsolete.
    proxy.sample(9000, 80, 1);
    assert_eq!(proxy.window(), 7);
}

#[test]
fn in_an_outage_nothing_new_leaves_and_the_timer_is_frozen_unless_it_is_to_run() {
    for (table, timer) in
        [(json!("rnf"), Timer::Frozen), (json!({ "kind": "rnf", "outage_timer": "runs" }), Timer::Runs)]
    {
        let mut proxy = Proxy::busy(table);
        proxy.change(0, 80);
        proxy.change(2000, 0);
        assert_eq!((proxy.window(), proxy.settings[0].timer), (6, timer));
        proxy.sample(4000, 0, 17);
        assert_eq!(proxy.window(), 6, "the queue during an outage is ignored");
        proxy.change(5000, 80);
        assert_eq!((proxy.window(), proxy.settings[0].timer), (7, Timer::Runs));
    }
}

#[test]
fn a_window_is_spread_over_the_round_trip_where_that_is_asked_for() {
    let mut proxy = Proxy::busy(json!({ "kind": "rnf", "pacing": "round-trip" }));
    proxy.change(0, 80);
    // 7 of 960 B in 0.1 s
    assert_eq!(proxy.settings[0].pacing, Some(Rate::from_bps(537_600)));
}

#[test]
fn the_round_trip_is_the_smallest_that_was_seen_or_what_is_said() {
    let mut proxy = Proxy::new(json!("rnf"), 2);
    proxy.change(0, 800);
    proxy.see(0, ConnectionView { min_rtt: None, ..view(true, true) });
    assert_eq!(proxy.windows()[0], None, "no round trip was measured");
    proxy.see(0, ConnectionView { min_rtt: Some(Span::from_millis(300)), ..view(true, true) });
    assert_eq!(proxy.windows()[0], Some(36));
    proxy.see(1, view(false, false));
    assert_eq!(proxy.windows()[0], Some(16), "another connection of the user saw a smaller one");
    let mut said = Proxy::busy(json!({ "kind": "rnf", "tau": "200ms" }));
    said.change(0, 800);
    assert_eq!(said.window(), 26);
}

#[test]
fn the_largest_window_bounds_what_a_wrong_report_can_do() {
    let mut proxy = Proxy::busy(json!({ "kind": "rnf", "w_max": "20p" }));
    proxy.change(0, 1_000_000);
    assert_eq!(proxy.window(), 20);
    proxy.sample(1000, 1_000_000, 0);
    assert_eq!(proxy.window(), 20);
}

#[test]
fn a_table_that_cannot_be_is_refused() {
    for (key, value) in [
        ("q_ref", "0p"),
        ("q_ref", "0ms"),
        ("q_ref", "much"),
        ("tau", "0ms"),
        ("tau", "guessed"),
        ("w_max", "0p"),
        ("w_max", "10kB"),
        ("stale", "0s"),
    ] {
        let error = STEERINGS.resolve(&json!({ "kind": "rnf", key: value })).unwrap_err();
        assert!(error.path == key, "{key} = {value}: {error}");
    }
    assert_eq!(STEERINGS.resolve(&json!({ "kind": "rnf", "gain": 2 })).unwrap_err().path, "gain");
    assert_eq!(STEERINGS.resolve(&json!({ "kind": "rnf", "change": 1 })).unwrap_err().path, "change");
    assert!(Config::default().check().is_ok());
}
