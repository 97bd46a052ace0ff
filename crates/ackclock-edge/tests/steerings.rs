//! Laws that every steering of the registry obeys for any input.

use std::collections::BTreeMap;

use ackclock_core::{
    ConnectionEvent, ConnectionView, FlowId, RadioReport, Rate, ReportReason, Setting, Span, Steering, Time,
};
use ackclock_edge::STEERINGS;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Largest payload of a packet, bytes.
const LARGEST: u32 = 9000;
/// Packets of the largest window by default.
const MOST_PACKETS: u64 = 1 << 20;

/// An input of a steering.
#[derive(Clone, Copy, Debug)]
enum Fact {
    Connection(u32, ConnectionEvent),
    Report(RadioReport),
    Nothing,
}

fn facts() -> impl Strategy<Value = Vec<(u64, Fact)>> {
    let seen = (any::<bool>(), any::<bool>(), prop::option::of(1u64..4_000_000_000), 1..LARGEST).prop_map(
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
            at: Time::ZERO + Span::from_millis(at),
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
        Just(Fact::Nothing),
    ];
    prop::collection::vec((0u64..2000, fact), 1..200)
}

/// Every row with its defaults, and with its keys if it has any.
fn tables() -> impl Strategy<Value = Value> {
    let rows: Vec<Value> = STEERINGS.entries.iter().map(|row| json!({ "kind": row.name })).collect();
    prop_oneof![prop::sample::select(rows), rnf()]
}

fn rnf() -> impl Strategy<Value = Value> {
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

/// How often a steering is polled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looks {
    WhenDue,
    /// Also at every other input.
    Often,
}

/// A steering with the latest settings of its connections.
struct Told {
    steering: Box<dyn Steering>,
    open: BTreeMap<FlowId, Setting>,
    all: Vec<(Time, FlowId, Setting)>,
}

impl Told {
    /// Settings after these inputs.
    fn of(table: &Value, facts: &[(u64, Fact)], looks: Looks) -> Option<Self> {
        let steering = STEERINGS.resolve(table).unwrap().build()?;
        let mut told = Self { steering, open: BTreeMap::new(), all: Vec::new() };
        let mut now = Time::ZERO;
        for (gap, fact) in facts {
            let next = now + Span::from_millis(*gap);
            told.pass(now, next, looks);
            now = next;
            told.happens(now, fact);
            if looks == Looks::Often {
                told.steering.on_timeout(now);
            }
            told.fetch(now);
        }
        Some(told)
    }

    /// Time passes.
    fn pass(&mut self, mut now: Time, until: Time, looks: Looks) {
        while let Some(due) = self.steering.poll_timeout().filter(|&due| due <= until) {
            if looks == Looks::Often {
                self.steering.on_timeout(now);
            }
            now = now.max(due);
            self.steering.on_timeout(now);
            self.fetch(now);
        }
    }

    fn happens(&mut self, now: Time, fact: &Fact) {
        match fact {
            Fact::Connection(id, event) => {
                let id = FlowId(*id);
                match event {
                    ConnectionEvent::Opened => drop(self.open.entry(id).or_insert(Setting::OWN)),
                    ConnectionEvent::Closed => drop(self.open.remove(&id)),
                    ConnectionEvent::Seen(_) => {}
                }
                self.steering.on_connection(now, id, *event);
            }
            Fact::Report(report) => self.steering.on_report(now, report),
            Fact::Nothing => {}
        }
    }

    /// Fetches the settings; each must be new and of an open connection.
    fn fetch(&mut self, now: Time) {
        while let Some((id, setting)) = self.steering.poll_setting(now) {
            let before = self.open.insert(id, setting).unwrap_or_else(|| panic!("{id:?} is not open"));
            assert_ne!(before, setting, "{id:?} knows that");
            self.all.push((now, id, setting));
        }
    }
}

proptest! {
    #[test]
    fn extra_looks_change_nothing_and_each_setting_is_news_that_a_connection_can_obey(
        table in tables(),
        facts in facts(),
    ) {
        let Some(told) = Told::of(&table, &facts, Looks::WhenDue) else { return Ok(()) };
        prop_assert_eq!(&told.all, &Told::of(&table, &facts, Looks::Often).unwrap().all);
        let most = table["w_max"].as_str().map_or(MOST_PACKETS, |most| most.trim_end_matches('p').parse().unwrap());
        for (_, _, setting) in told.all {
            if let Some(window) = setting.window {
                // The smallest payload is one byte.
                prop_assert!(window >= 1);
                prop_assert!(u64::from(window) <= most * u64::from(LARGEST));
            }
            prop_assert!(setting.pacing.is_none_or(|rate| rate > Rate::ZERO));
        }
    }

    #[test]
    fn connections_rule_themselves_once_no_report_has_come_for_as_long_as_a_steering_is_patient(
        table in tables(),
        facts in facts(),
    ) {
        let Some(patience) = STEERINGS.resolve(&table).unwrap().patience() else { return Ok(()) };
        let mut told = Told::of(&table, &facts, Looks::WhenDue).expect("who hears reports steers");
        let end = facts.iter().fold(Time::ZERO, |now, (gap, _)| now + Span::from_millis(*gap));
        told.pass(end, end + patience, Looks::WhenDue);
        prop_assert!(told.open.values().all(|&setting| setting == Setting::OWN), "{:?}", told.open);
    }
}

#[test]
fn where_nobody_steers_nobody_is_waited_for() {
    for name in STEERINGS.entries.iter().map(|row| row.name) {
        let row = STEERINGS.resolve(&json!(name)).unwrap();
        assert!(row.build().is_some() || row.patience().is_none(), "{name}");
    }
    assert!(STEERINGS.resolve(&json!("none")).unwrap().build().is_none());
}
