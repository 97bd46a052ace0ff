//! Links compared with closed forms: capacity, effective delay, queueing delay, loss.

use crate::common::{Outcome, Polling, What, drive, link, nominal, segment, unlimited};
use ackclock_core::{Segment, Span, Streams, Time};
use ackclock_link::{Capacity, Departures, Link};
use serde_json::{Value, json};

/// Packets of 1000 bytes, all at time zero.
fn backlog(count: u32) -> Vec<(Time, Segment)> {
    (0..count).map(|number| (Time::ZERO, segment(0, number, 1000))).collect()
}

fn play(table: &Value, arrivals: &[(Time, Segment)]) -> Vec<Outcome> {
    drive(&mut *unlimited(table, 5), arrivals, Departures::Unwatched, Polling::AsAsked, Time::NEVER)
}

/// Rate in kbit/s at which a saturated link delivers `count` packets of 1000 bytes.
fn saturated_kbps(table: &Value, count: u32) -> f64 {
    let seen = play(table, &backlog(count));
    8.0 * f64::from(count) / seen[seen.len() - 1].at.as_secs_f64()
}

#[test]
fn a_saturated_constant_link_carries_exactly_its_rate() {
    assert_eq!(
        saturated_kbps(&json!({"kind": "constant", "rate": "200kbit/s", "delay": "0ms"}), 1000),
        200.0
    );
}

#[test]
fn redraw_by_packet_carries_the_harmonic_mean() {
    // links.md section 3: (b-a)/(ln b - ln a). The sd of a service time 1/R is below 45 % of its mean, so the error of the mean
    // of 2e5 is below 0.1 %; three of them.
    for (sd, kbps) in [(20, 198.0), (50, 186.8), (75, 167.7)] {
        let table = json!({"kind": "variable", "rate": format!("u(200kbit/s, {sd}kbit/s)"), "delay": "0ms"});
        let got = saturated_kbps(&table, 200_000);
        assert!((got / kbps - 1.0).abs() < 0.003, "sd {sd}: {got}");
        assert!((nominal(&table).rate.as_bps() as f64 / 1e3 - kbps).abs() < 0.05, "{sd}");
    }
}

#[test]
fn redraw_by_interval_carries_the_arithmetic_mean() {
    for redraw in ["interval(100ms)", "slot", "slot(5ms)"] {
        let table = json!({
            "kind": "variable", "rate": "u(200kbit/s, 50kbit/s)", "delay": "0ms", "redraw": redraw
        });
        // 20 000 packets take 800 s: 8000 intervals of 100 ms, error 0.25/sqrt(8000) = 0.3 %; four of them
        let got = saturated_kbps(&table, 20_000);
        assert!((got / 200.0 - 1.0).abs() < 0.012, "{redraw}: {got}");
        assert_eq!(nominal(&table).rate.as_bps(), 200_000);
    }
}

#[test]
fn outages_take_their_share_and_lose_nothing() {
    let outages = json!([{"at": "1s", "for": "200ms", "every": "1s"}]);
    for redraw in ["packet", "interval(70ms)"] {
        let table = json!({
            "kind": "variable", "rate": "200kbit/s", "delay": "0ms", "redraw": redraw, "outages": outages
        });
        // 8 Mbit at 200 kbit/s take 40 s without outage: 1 s before the first outage, 0.8 s in each of 48 periods, and
        // 0.6 s in the one that starts at 49 s with its outage: 49 + 0.2 + 0.6.
        let seen = play(&table, &backlog(1000));
        assert_eq!(seen.len(), 1000);
        assert_eq!(seen[999].at, Time::ZERO + Span::from_millis(49_800), "{redraw}");
        assert_eq!(nominal(&table).rate.as_bps(), 160_000);
    }
}

#[test]
fn no_overtaking_makes_the_effective_delays_of_the_source() {
    // links.md section 3: with a packet every 40 ms the mean delay of e(20), e(50), e(100) becomes 21.5, 68.9 and 179 ms,
    // so that with 400 ms - x of constant delay and 40 ms of transmission T is 441.5, 458.9 and 519 ms.
    let count = 200_000;
    for (x, round_trip) in [(20, 441.5), (50, 458.9), (100, 519.0)] {
        let table = json!({"kind": "variable", "rate": "200kbit/s", "delay": format!("e({x}ms)")});
        let seen = play(&table, &backlog(count));
        let sum: f64 = seen
            .iter()
            .map(|outcome| {
                let departs = Time::ZERO + Span::from_millis(40) * u64::from(outcome.number + 1);
                outcome.at.since(departs).as_millis_f64()
            })
            .sum();
        let got = sum / f64::from(count) + 440.0 - f64::from(x);
        // Delays are correlated over some x/40 packets; 0.5 ms is three standard errors at x = 100.
        assert!((got - round_trip).abs() < 0.5 + 0.005 * f64::from(x), "e({x}ms): {got}");
    }
}

#[test]
fn the_waiting_time_is_that_of_pollaczek_and_khinchine() {
    // M/D/1: W = rho s / (2 (1 - rho)). At s = 40 ms: rho 0.5 gives 20 ms, rho 0.8 gives 80 ms.
    let count = 400_000u32;
    for (gap_ms, wait_ms, tolerance) in [(80.0, 20.0, 0.02), (50.0, 80.0, 0.04)] {
        let mut stream = Streams::new(11, 0).stream("arrivals");
        let mut now = 0.0;
        let arrivals: Vec<_> = (0..count)
            .map(|number| {
                now -= gap_ms * libm::log(stream.unit());
                (Time::ZERO + Span::from_secs_f64(now / 1e3), segment(0, number, 1000))
            })
            .collect();
        let mut link = unlimited(&json!({"kind": "constant", "rate": "200kbit/s", "delay": "0ms"}), 1);
        drive(&mut *link, &arrivals, Departures::Unwatched, Polling::AsAsked, Time::NEVER);
        let got = link.waits().mean().unwrap().as_millis_f64();
        // Queueing delays are correlated over about 2/(1-rho)^2 packets (8 and 50) with sd of about 1.3 W, so the
        // error of the mean is about 0.6 % and 1.5 %; the tolerance is near three of them.
        assert!((got / wait_ms - 1.0).abs() < tolerance, "{got} against {wait_ms}");
    }
}

#[test]
fn random_loss_is_binomial_and_leaves_the_rest_alone() {
    for kind in ["constant", "variable", "trace"] {
        let mut table = json!({"kind": kind, "delay": "1ms", "loss": 0.1});
        if kind == "trace" {
            table["file"] = "rates".into();
        }
        let seen = play(&table, &backlog(20_000));
        let lost = seen.iter().filter(|outcome| matches!(outcome.what, What::Dropped(_))).count();
        // 2000, standard deviation sqrt(20000·0.1·0.9) = 42; five of them
        assert!(lost.abs_diff(2000) < 212, "{kind}: {lost}");
        table["loss"] = 0.0.into();
        let whole = play(&table, &backlog(20_000));
        assert!(
            seen.iter()
                .filter(|outcome| outcome.what == What::Delivered)
                .all(|outcome| { whole[outcome.number as usize].at == outcome.at || kind == "variable" })
        );
    }
}

#[test]
fn an_infinitely_fast_link_is_the_identity() {
    let arrivals: Vec<_> = (0..100)
        .map(|number| (Time::from_nanos(u64::from(number / 3)), segment(number % 2, number, 1500)))
        .collect();
    for kind in ["constant", "variable"] {
        let table = json!({"kind": kind, "rate": "1000000Gbit/s", "delay": "0ms"});
        for queue in ["drop-tail", "codel", "fq-codel", "short-first"] {
            let mut link = link(&table, &queue.into(), Capacity::Packets(1), 1);
            let seen = drive(&mut *link, &arrivals, Departures::Unwatched, Polling::AsAsked, Time::NEVER);
            let got: Vec<_> = seen.iter().map(|outcome| (outcome.at, outcome.number)).collect();
            let sent: Vec<_> = arrivals.iter().map(|(at, segment)| (*at, segment.seq.0)).collect();
            assert_eq!(got, sent, "{kind} {queue}");
        }
    }
}

/// Mean and standard deviation, ms, of the delays of a link that is always sending packets of 1500 bytes, after their
/// transmission.
fn delays_of_bulk(table: &Value, packet: Span, count: u32) -> (f64, f64) {
    let mut link = unlimited(table, 5);
    let departs = |number: u32| Time::ZERO + packet * u64::from(number + 1);
    let mut delays: Vec<f64> = Vec::new();
    let mut deliver = |link: &mut dyn Link, until: Time| {
        while let Some((at, _, segment)) = link.poll_event(until) {
            delays.push(at.since(departs(segment.seq.0)).as_millis_f64());
        }
    };
    for number in 0..count {
        // Each packet arrives when the one before it has left.
        let now = Time::ZERO + packet * u64::from(number);
        deliver(&mut *link, now);
        link.enqueue(now, &segment(0, number, 1500)).unwrap();
    }
    deliver(&mut *link, departs(count) + Span::from_secs(10));
    assert_eq!(delays.len(), count as usize);
    let mean = delays.iter().sum::<f64>() / f64::from(count);
    let variance = delays.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>() / f64::from(count);
    (mean, variance.sqrt())
}

#[test]
fn jitter_by_interval_keeps_the_mean_and_the_spread_of_bulk_traffic() {
    // The default of `--jitter`: a normal delay, redrawn after ten times its standard deviation.
    for spread in [5u32, 10, 30] {
        for mbps in [1u32, 8, 50] {
            let (delay, interval) = (4 * spread, 10 * spread);
            let table = json!({
                "kind": "variable", "rate": format!("{mbps}Mbit/s"), "delay": format!("n({delay}ms, {spread}ms)"),
                "redraw": format!("interval({interval}ms)"),
            });
            let packet = Span::from_micros(12_000 / u64::from(mbps));
            // 1500 intervals: the mean has a standard error of 2.6 % of the spread.
            let count = 1500 * interval * 1000 / (12_000 / mbps);
            let (mean, deviation) = delays_of_bulk(&table, packet, count);
            let (nominal, spread) = (f64::from(delay), f64::from(spread));
            assert!((mean - nominal).abs() < (0.1 * spread).max(1.0), "{table}: a mean of {mean} ms");
            assert!((deviation - spread).abs() < 0.1 * spread, "{table}: a deviation of {deviation} ms");
        }
    }
}
