//! Whatever happens to a steering: windows stay bounded, and extra looks change nothing.

use super::*;
use proptest::prelude::*;

/// What may happen to a steering.
#[derive(Clone, Copy, Debug)]
enum Fact {
    Connection(u32, ConnectionEvent),
    Report(RadioReport),
    Timeout,
}

fn facts() -> impl Strategy<Value = Vec<(u64, Fact)>> {
    let seen = (any::<bool>(), any::<bool>(), prop::option::of(1u64..4_000_000_000), 1u32..9000).prop_map(
        |(backlogged, window_limited, nanos, mss)| {
            let min_rtt = nanos.map(Span::from_nanos);
            ConnectionEvent::Seen(ConnectionView {
                backlogged,
                window_limited,
                min_rtt,
                mss,
                packet: mss + 40,
            })
        },
    );
    let event = prop_oneof![Just(ConnectionEvent::Opened), Just(ConnectionEvent::Closed), seen.clone(), seen];
    let rate = prop_oneof![Just(0), 1u64..10_000_000, any::<u64>()];
    let report = (any::<u32>(), 0u64..100_000, rate, any::<u64>(), any::<bool>()).prop_map(
        |(number, at, bps, queued_bytes, change)| RadioReport {
            number: number % 64,
            at: ms(at),
            user: None,
            rate: Rate::from_bps(bps),
            queued_packets: 0,
            queued_bytes: queued_bytes >> (number % 64),
            reason: if change { ReportReason::Change } else { ReportReason::Periodic },
        },
    );
    let fact = prop_oneof![
        (0u32..5, event).prop_map(|(id, event)| Fact::Connection(id, event)),
        report.prop_map(Fact::Report),
        Just(Fact::Timeout),
    ];
    prop::collection::vec((0u64..2000, fact), 1..200)
}

fn any_table() -> impl Strategy<Value = Value> {
    let q_ref = prop_oneof![Just("6p"), Just("100ms"), Just("auto"), Just("1p")];
    (q_ref, 0.0..2.0f64, prop_oneof![Just("burst"), Just("round-trip")], prop::option::of(1u32..1000))
        .prop_map(|(q_ref, gain, pacing, most)| {
            let mut table = json!({ "kind": "rnf", "q_ref": q_ref, "gain": gain, "pacing": pacing });
            if let Some(most) = most {
                table["w_max"] = json!(format!("{most}p"));
            }
            table
        })
}

/// Every setting with its instant; `extra` looks at the steering more often than something happens.
fn played(table: &Value, facts: &[(u64, Fact)], extra: bool) -> Vec<(Time, FlowId, Setting)> {
    let mut steering = STEERINGS.resolve(table).unwrap().build().unwrap();
    let (mut told, mut now) = (Vec::new(), Time::ZERO);
    for (gap, fact) in facts {
        let next = now + Span::from_millis(*gap);
        while let Some(due) = steering.poll_timeout().filter(|&due| due <= next) {
            if extra {
                steering.on_timeout(now);
            }
            now = now.max(due);
            steering.on_timeout(now);
            told.extend(
                std::iter::from_fn(|| steering.poll_setting(now)).map(|(id, setting)| (now, id, setting)),
            );
        }
        now = next;
        match fact {
            Fact::Connection(id, event) => steering.on_connection(now, FlowId(*id), *event),
            Fact::Report(report) => steering.on_report(now, report),
            Fact::Timeout => {}
        }
        if extra {
            steering.on_timeout(now);
        }
        told.extend(
            std::iter::from_fn(|| steering.poll_setting(now)).map(|(id, setting)| (now, id, setting)),
        );
        assert_eq!(steering.poll_setting(now), None);
    }
    told
}

proptest! {
    #[test]
    fn whatever_is_reported_windows_are_bounded_and_extra_looks_change_nothing(table in any_table(), facts in facts()) {
        let told = played(&table, &facts, false);
        prop_assert_eq!(&told, &played(&table, &facts, true));
        let most = table["w_max"].as_str().map_or(MOST_PACKETS, |most| most.trim_end_matches('p').parse().unwrap());
        for (_, _, setting) in told {
            if let Some(window) = setting.window {
                // The smallest payload that was told is one byte, the largest is below 9000.
                prop_assert!(window >= 1 && u64::from(window) <= u64::from(most) * 9000);
            }
            prop_assert!(setting.pacing.is_none_or(|rate| rate > Rate::ZERO));
        }
    }
}
