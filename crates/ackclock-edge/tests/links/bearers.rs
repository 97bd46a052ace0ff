//! Laws that every bearer obeys in both directions with any queue: poll invariance, conservation, order, correct
//! deadlines, repeatability. A failure names the bearer, the queue and the method.

use std::collections::BTreeSet;
use std::sync::Arc;

use ackclock_core::{FlowId, Segment, Span, Streams, Time};
use ackclock_edge::{BEARERS, LINKS};
use ackclock_link::{
    AnyBearer, Bearer, BearerConfig, BearerContext, BearerLinks, BufferMeaning, Capacity, Cause, CellUser,
    Departures, Direction, LinkEvent, Repetitions,
};
use ackclock_testkit::{allocations, cases};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::{
    MadeUp, age_limit, aging_queues, every_queue, marked, micros, pairings, plan, queued_below, segment,
    share_out, take_classes, turns,
};

/// Tables of every bearer of the registry; a bearer without tables here is tested with its defaults.
fn every_bearer() -> Vec<Value> {
    let tables = |name: &str| match name {
        "radio-access" => rlc_tables().into_iter().chain(radio_access()).collect(),
        "observed" => {
            vec![json!({"side": "network", "probe": "1s"}), json!({"side": "mobile", "probe": "1s"})]
        }
        "autorate" => vec![
            json!({"side": "network", "min": "500kbit/s", "base": "1Mbit/s"}),
            json!({"side": "mobile", "min": "500kbit/s", "base": "1Mbit/s"}),
        ],
        _ => vec![json!({})],
    };
    let with_kind = |name: &str, mut table: Value| {
        table["kind"] = name.into();
        table
    };
    let entries = BEARERS.entries.iter();
    entries
        .flat_map(|entry| tables(entry.name).into_iter().map(|table| with_kind(entry.name, table)))
        .collect()
}

/// One user with a dedicated channel in each direction, with every rule of the radio link control.
fn rlc_tables() -> Vec<Value> {
    let table = |rates: [&str; 2], errors: &str, by: &str, rlc: Value| {
        let air = rates.map(|rate| {
            json!({"kind": "dedicated", "rate": rate, "delay": "25ms", "errors": errors, "errors_by": by})
        });
        json!({"rlc": rlc, "air": {"down": air[0], "up": air[1]}})
    };
    let usual = |errors, by, rlc| table(["384kbit/s", "64kbit/s"], errors, by, rlc);
    vec![
        usual("10%", "tti", json!({})),
        usual("rayleigh", "tti", json!({"window": 64, "max_dat": 4, "status": {"prohibit": "60ms"}})),
        usual("30%", "pdu", json!({"window": 32, "order": "out-of-sequence", "poll": {"timer": "90ms"}})),
        usual(
            "40%",
            "tti",
            json!({"max_dat": 3, "on_max_dat": "reset", "reset": {"timer": "80ms", "most": 2}}),
        ),
        usual("50%", "pdu", json!({"max_dat": 2, "mrw": {"timer": "100ms", "most": 2}, "pdu": "16B"})),
        table(
            ["2048kbit/s", "128kbit/s"],
            "20%",
            "tti",
            json!({"pdu": "160B", "poll": {"every_pdus": 7, "every_sdus": 3, "prohibit": "30ms", "period": "150ms"}, "status": {"period": "200ms", "piggyback": false}}),
        ),
        usual(
            "30%",
            "pdu",
            json!({"window": 64, "status": {"missing": "shorter", "windows": [{"at": "200ms", "pdus": 8}, {"at": "900ms", "pdus": 64}]}}),
        ),
        usual("30%", "pdu", json!({"pdu": "16B", "status": {"missing": "bitmap"}})),
        usual("20%", "tti", json!({"mode": "unacknowledged"})),
    ]
}

/// The bearer of several users, whose number the key `users` says, over airs of two kinds.
fn radio_access() -> Vec<Value> {
    let dedicated = |rate: &str, errors: &str| json!({"kind": "dedicated", "rate": rate, "errors": errors});
    let cell = |harq: Value| json!({"kind": "shared", "slots": 500, "delay": "5ms", "harq": harq});
    let split = || json!({"kind": "shared", "slots": 500, "delay": "5ms", "pdus": "split", "harq": {"error": "30%", "limit": 1}});
    let repeated = |rate: &str, error: &str| json!({"kind": "dedicated", "rate": rate, "harq": {"error": error, "limit": 1, "delay": "16ms"}});
    let scheduled = |period: &str, mut air: Value| {
        air["grants"] = json!({"period": period, "delay": "8ms"});
        (air["tti"], air["rate"]) = ("1ms".into(), "1Mbit/s".into());
        air
    };
    let out_of_order = |mut air: Value| {
        air["harq"]["order"] = "out-of-sequence".into();
        air
    };
    let uplink_of_tdd = |error: &str| {
        json!({"kind": "dedicated", "rate": "4Mbit/s", "tti": "0.5ms", "delay": "1ms", "control": "-------DDD",
            "grants": {"period": "10ms", "delay": "4ms"},
            "harq": {"error": error, "limit": 1, "delay": "5ms", "order": "out-of-sequence"}})
    };
    let by_packet = |mut rlc: Value| {
        (rlc["pdu"], rlc["order"]) = ("packet".into(), "out-of-sequence".into());
        rlc
    };
    let first = |mut class: Value| {
        (class["name"], class["priority"]) = ("a".into(), 0.into());
        class
    };
    vec![
        json!({}),
        json!({"users": 3, "air": {"down": dedicated("384kbit/s", "rayleigh"), "up": dedicated("64kbit/s", "10%")}, "rlc": {"window": 64, "max_dat": 4}}),
        json!({"users": 3, "air": {"down": dedicated("128kbit/s", "40%")}, "rlc": {"max_dat": 3, "on_max_dat": "reset", "reset": {"timer": "80ms", "most": 2}}}),
        json!({"users": 2, "air": {"down": dedicated("64kbit/s", "20%")}, "rlc": {"mode": "unacknowledged"}}),
        json!({"users": 3, "air": {"down": cell(json!({"error": "20%"}))}, "rlc": {"poll": {"timer": "100ms"}}}),
        json!({"users": 3, "air": {"down": cell(json!({"error": "20%"}))}, "iub": {}, "rlc": {"poll": {"timer": "100ms"}}}),
        json!({"users": 3, "air": {"down": cell(json!({"error": "40%", "limit": 0}))}, "iub": {"flow_control": "none", "rate": "2Mbit/s", "delay": "3ms"}, "rlc": {"max_dat": 4, "window": 256, "pdu": "80B"}}),
        json!({"air": {"down": cell(json!({"error": "50%", "limit": 0})), "up": dedicated("64kbit/s", "30%")}, "iub": {"flow_control": "on-off", "base_station_buffer": "40p"}, "rlc": {"max_dat": 3, "on_max_dat": "reset", "reset": {"timer": "80ms", "most": 2}}}),
        json!({"users": 2, "air": {"down": cell(json!({"error": "30%", "limit": 0}))}, "rlc": {"mode": "unacknowledged", "pdu": "80B"}}),
        json!({"air": {"down": cell(json!({"error": "50%", "limit": 0}))}, "rlc": {"max_dat": 3, "on_max_dat": "reset", "reset": {"timer": "80ms", "most": 2}}}),
        json!({"users": 2, "air": {"down": cell(json!({"error": "20%"}))}, "rlc": {"pdu": "grant", "max_dat": 5}}),
        json!({"users": 3, "air": {"down": cell(json!({"error": "40%", "limit": 0})), "up": repeated("1Mbit/s", "20%")}, "rlc": {"pdu": "grant", "window": 64, "max_dat": 4}}),
        json!({"users": 2, "air": {"down": cell(json!({"error": "30%", "limit": 0}))}, "rlc": {"pdu": "grant", "mode": "unacknowledged"}}),
        json!({"users": 3, "air": {"down": cell(json!({"error": "20%"})), "up": scheduled("20ms", repeated("1Mbit/s", "20%"))}, "rlc": {"pdu": "grant", "max_dat": 5}}),
        json!({"users": 2, "air": {"down": cell(json!({"error": "30%", "limit": 0})), "up": scheduled("5ms", dedicated("1Mbit/s", "30%"))}, "rlc": {"pdu": "grant", "mode": "unacknowledged"}}),
        json!({"users": 2, "air": {"down": repeated("384kbit/s", "30%"), "up": repeated("64kbit/s", "10%")}}),
        json!({"users": 2, "air": {"down": split(), "up": dedicated("64kbit/s", "10%")}, "rlc": {"max_dat": 4}}),
        json!({"users": 2, "air": {"down": split()}, "iub": {"flow_control": "on-off"}, "rlc": {"mode": "unacknowledged"}}),
        json!({"users": 2, "air": {"down": cell(json!({"error": "20%", "limit": 1, "feedback_error": "20%"}))}, "iub": {"loss": "5%", "flow_control": {"kind": "credit", "target": "40ms"}}, "rlc": {"mode": "unacknowledged"}}),
        json!({"users": 2, "classes": [first(json!({})), json!({"name": "b", "rlc": {"mode": "unacknowledged"}})], "air": {"down": dedicated("384kbit/s", "20%"), "up": dedicated("64kbit/s", "10%")}}),
        json!({"users": 2, "classes": [first(json!({"weight": 3}))], "air": {"down": cell(json!({"error": "20%"}))}, "iub": {}, "rlc": {"max_dat": 3, "on_max_dat": "reset", "reset": {"timer": "80ms", "most": 2}}}),
        json!({"users": 2, "classes": [first(json!({"rlc": {"mode": "unacknowledged"}})), json!({"name": "b"})], "air": {"down": cell(json!({"error": "20%", "limit": 1}))}, "rlc": {"pdu": "grant"}}),
        json!({"users": 2, "classes": [first(json!({})), json!({"name": "b", "rlc": {"mode": "acknowledged", "window": 2047}})], "air": {"down": cell(json!({"error": "20%", "limit": 1}))}, "iub": {"loss": "5%"}, "rlc": {"mode": "unacknowledged"}}),
        json!({"users": 3, "air": {"down": out_of_order(cell(json!({"error": "30%", "limit": 1}))), "up": uplink_of_tdd("30%")}, "rlc": by_packet(json!({"reordering": "60ms", "buffer_counts": "unsent", "max_dat": 4, "window": 64, "poll": {"timer": "45ms"}, "status": {"prohibit": "10ms", "reassembly": "20ms"}}))}),
        json!({"users": 2, "air": {"down": out_of_order(cell(json!({"error": "40%", "limit": 1}))), "up": uplink_of_tdd("30%")}, "rlc": by_packet(json!({"reordering": "30ms", "mode": "unacknowledged"}))}),
        json!({"users": 2, "air": {"down": cell(json!({"error": "40%", "limit": 0}))}, "rlc": by_packet(json!({"max_dat": 3, "on_max_dat": "reset", "reset": {"timer": "80ms", "most": 2}, "status": {"reassembly": "50ms"}}))}),
        json!({"users": 2, "air": {"down": out_of_order(repeated("1Mbit/s", "30%")), "up": out_of_order(repeated("1Mbit/s", "20%"))}, "rlc": by_packet(json!({"reordering": "100ms"})), "classes": [first(json!({"rlc": {"mode": "unacknowledged"}})), json!({"name": "b", "rlc": {"max_dat": 4}})]}),
        json!({"users": 2, "air": {"down": dedicated("384kbit/s", "30%"), "up": dedicated("64kbit/s", "20%")}, "rlc": {"delays": {"table": [["0ms", "30ms"], ["60ms", "20ms"]], "learn": {"epsilon": "10%", "over": 100, "every": "300ms"}}}}),
    ]
}

/// The bearer of a table, with as many users as it says.
fn config(table: &Value) -> Arc<dyn BearerConfig> {
    let mut table = table.clone();
    let users = table.as_object_mut().unwrap().remove("users");
    let classes = take_classes(&mut table);
    let config = BEARERS.resolve(&table).unwrap();
    let count = users.and_then(|users| users.as_u64()).unwrap_or(1) as u32;
    let user = CellUser { count, ..CellUser::default() };
    let config = config.serving(&[user]).unwrap().unwrap_or(config);
    config.with_classes(&classes).unwrap().unwrap_or(config)
}

/// Number of classes with a name that a table has, and number of channels of a user in acknowledged mode.
fn classes(table: &Value) -> [usize; 2] {
    let all = table["classes"].as_array().map_or(&[][..], Vec::as_slice);
    let usual = rlc(table).map_or(&Value::Null, |rlc| &rlc["mode"]);
    let modes = all.iter().map(|class| class["rlc"].get("mode").unwrap_or(usual));
    [all.len(), std::iter::once(usual).chain(modes).filter(|mode| **mode != "unacknowledged").count()]
}

/// How many users a table has.
fn users(table: &Value) -> u32 {
    table["users"].as_u64().unwrap_or(1) as u32
}

/// The settings of the radio link control that a table has; `None` for a bearer without one.
fn rlc(table: &Value) -> Option<&Value> {
    match table["kind"].as_str() {
        Some("radio-access") => Some(&table["rlc"]),
        _ => None,
    }
}

/// Whether packets count against the buffer of a bearer until its peer has acknowledged them.
fn acknowledges(table: &Value) -> bool {
    rlc(table).is_some_and(|rlc| rlc["mode"] != "unacknowledged" && rlc["buffer_counts"].is_null())
}

/// Bearers that have a queue: an observing one only has an estimate.
fn with_a_queue() -> impl Iterator<Item = Value> {
    every_bearer().into_iter().filter(|table| config(table).observes().is_none())
}

fn bearer(table: &Value, queue: &Value, capacity: Capacity, seed: u64) -> AnyBearer {
    let streams = &Streams::new(seed, 0);
    let link = json!({"kind": "constant", "rate": "1Mbit/s", "delay": "3ms"});
    let links = BearerLinks { down: LINKS.resolve(&link).unwrap(), up: LINKS.resolve(&link).unwrap() };
    let plan = |name: &str| plan(queue, capacity, streams, &format!("{name}/queue"));
    let (down, up, meaning, files) = (&plan("down"), &plan("up"), BufferMeaning::Waiting, &MadeUp);
    let context = BearerContext { down, up, classes: &[], follows: None, meaning, streams, files };
    let mut bearer = config(table).build(&links, context).unwrap_or_else(|error| panic!("{table}: {error}"));
    match classes(table) {
        [0, _] => (0..users(table)).for_each(|user| bearer.assign(FlowId(user), user)),
        [classes, _] => share_out(&mut bearer, 3, users(table), classes),
    }
    bearer
}

fn every_combination(capacity: Capacity, seed: u64, mut check: impl FnMut(&str, &dyn Fn() -> AnyBearer)) {
    for table in every_bearer() {
        for queue in every_queue() {
            check(&format!("{table} behind {queue}"), &|| bearer(&table, &queue, capacity, seed));
        }
    }
}

/// Every bearer and every queue at least once, in the [`pairings`] of `turn`, with a name for messages.
fn combinations(
    capacity: Capacity,
    seed: u64,
    turn: usize,
    mut check: impl FnMut(&str, &dyn Fn() -> AnyBearer),
) {
    for (table, queue) in pairings(&every_bearer(), &every_queue(), turn) {
        check(&format!("{table} behind {queue}"), &|| bearer(&table, &queue, capacity, seed));
    }
}

type Arrival = (Time, Direction, Segment);

/// Arrivals of up to three flows in both directions, in bursts and gaps.
fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![3 => Just(0u64), 3 => 0u64..3_000, 1 => 0u64..200_000];
    let arrival =
        (gap, 0u32..3, prop_oneof![Just(41u16), Just(1500), 41u16..1500], prop::bool::weighted(0.3));
    prop::collection::vec(arrival, 1..60).prop_map(|arrivals| {
        let mut now = Time::ZERO;
        let place = |(number, (gap, flow, bytes, up)): (usize, (u64, u32, u16, bool))| {
            now += Span::from_micros(gap);
            (now, if up { Direction::Up } else { Direction::Down }, segment(flow, number as u32, bytes))
        };
        arrivals.into_iter().enumerate().map(place).collect()
    })
}

fn capacity() -> impl Strategy<Value = Capacity> {
    prop_oneof![
        Just(Capacity::Unlimited),
        (1u32..12).prop_map(Capacity::Packets),
        (1500u64..12_000).prop_map(Capacity::Bytes)
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Told(LinkEvent),
    Refused(Cause),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Outcome {
    at: Time,
    direction: Direction,
    flow: u32,
    number: u32,
    what: What,
}

/// Offers each segment at its instant and runs until nothing more happens; polls also every `extra`, if given.
fn drive(
    bearer: &mut AnyBearer,
    arrivals: &[Arrival],
    departures: Departures,
    extra: Option<Span>,
) -> Vec<Outcome> {
    bearer.want_departures(Direction::Down, departures);
    let (mut seen, mut arrivals, mut asks) = (Vec::new(), arrivals.iter().peekable(), Time::ZERO);
    loop {
        let asked = bearer.due(Direction::Down).min(bearer.due(Direction::Up));
        let arrives = arrivals.peek().map_or(Time::NEVER, |(at, ..)| *at);
        let mut now = asked.min(arrives);
        if now == Time::NEVER {
            return seen;
        }
        assert!(now < Time::ZERO + Span::from_secs(3000), "it never ends");
        if let Some(step) = extra
            && asks < now
        {
            now = asks;
            asks += step;
        }
        for direction in Direction::BOTH {
            while let Some((at, event)) = bearer.peek_event(now, direction) {
                assert_eq!(
                    bearer.peek_event(now, direction),
                    Some((at, event)),
                    "`peek_event` gives another event"
                );
                let segment = bearer.take_segment(direction);
                let what = What::Told(event);
                seen.push(Outcome { at, direction, flow: segment.flow.0, number: segment.seq.0, what });
            }
        }
        while let Some((_, direction, segment)) = arrivals.next_if(|(at, ..)| *at == now) {
            if let Err(cause) = bearer.enqueue(now, *direction, segment) {
                let (flow, number, what) = (segment.flow.0, segment.seq.0, What::Refused(cause));
                seen.push(Outcome { at: now, direction: *direction, flow, number, what });
            }
        }
    }
}

/// Where every segment ended, ordered by number.
fn ends(seen: &[Outcome]) -> Vec<Outcome> {
    let goes_on = |what| matches!(what, What::Told(LinkEvent::Departed | LinkEvent::Freed));
    let mut ends: Vec<_> = seen.iter().copied().filter(|outcome| !goes_on(outcome.what)).collect();
    ends.sort_by_key(|outcome| outcome.number);
    ends
}

fn of(seen: &[Outcome], direction: Direction) -> Vec<Outcome> {
    seen.iter().copied().filter(|outcome| outcome.direction == direction).collect()
}

/// A segment comes as it was sent, in both directions.
#[test]
fn what_is_delivered_is_what_was_sent() {
    let mut delivered = 0;
    for table in with_a_queue() {
        let mut bearer = bearer(&table, &"drop-tail".into(), Capacity::Unlimited, 3);
        for number in 0..300 {
            let now = micros(u64::from(number) * 20_000);
            let way = if number % 4 == 0 { Direction::Up } else { Direction::Down };
            let _ = bearer.enqueue(now, way, &marked(number % 3, number));
            let end = if number == 299 { micros(60_000_000) } else { now };
            for direction in Direction::BOTH {
                while let Some((_, event)) = bearer.peek_event(end, direction) {
                    let segment = bearer.take_segment(direction);
                    let sent = marked(segment.flow.0, segment.seq.0);
                    assert_eq!(segment, sent, "{table} {direction:?}: {event:?}");
                    delivered += u32::from(event.is_delivery());
                }
            }
        }
    }
    assert!(delivered > 5000, "{delivered} delivered");
}

/// The packet for which others wait comes at the instant at which they no longer wait for it.
#[test]
fn a_packet_that_comes_when_reordering_ends_keeps_none_behind() {
    let rows: &[(u64, Direction, u32, u32, u16)] = &[
        (849, Direction::Down, 1, 0, 1500),
        (849, Direction::Down, 1, 1, 1500),
        (1213, Direction::Down, 1, 2, 41),
        (1213, Direction::Up, 1, 3, 1500),
        (1213, Direction::Up, 2, 4, 1315),
        (3511, Direction::Up, 1, 5, 681),
        (154717, Direction::Down, 2, 6, 1500),
        (154717, Direction::Down, 2, 7, 788),
        (154717, Direction::Down, 2, 8, 829),
        (155985, Direction::Up, 0, 9, 783),
        (155985, Direction::Up, 0, 10, 1169),
        (156206, Direction::Up, 2, 11, 669),
        (157527, Direction::Up, 0, 12, 41),
        (157527, Direction::Up, 2, 13, 41),
        (159344, Direction::Down, 2, 14, 41),
        (159344, Direction::Down, 2, 15, 941),
        (159344, Direction::Up, 2, 16, 41),
        (159344, Direction::Down, 2, 17, 1065),
        (159344, Direction::Down, 0, 18, 558),
        (161404, Direction::Down, 2, 19, 41),
        (163482, Direction::Down, 2, 20, 1500),
        (189836, Direction::Up, 0, 21, 174),
        (191999, Direction::Down, 1, 22, 1500),
        (191999, Direction::Down, 2, 23, 1500),
        (191999, Direction::Down, 1, 24, 1280),
        (193776, Direction::Up, 0, 25, 913),
    ];
    let arrivals: Vec<Arrival> = rows
        .iter()
        .map(|&(at, way, flow, number, bytes)| (micros(at), way, segment(flow, number, bytes)))
        .collect();
    every_combination(Capacity::Unlimited, 18, |name, build| {
        if name.contains("reordering") {
            let ended = ends(&drive(&mut build(), &arrivals, Departures::Watched, None)).len();
            assert_eq!(ended, arrivals.len(), "{name}");
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), ..ProptestConfig::default() })]

    #[test]
    fn extra_polls_change_nothing(arrivals in arrivals(), capacity in capacity(), seed in 0u64..1000, turn in turns(), step in 50u64..5_000) {
        combinations(capacity, seed, turn, |name, build| {
            let step = Span::from_micros(step);
            let plain = drive(&mut build(), &arrivals, Departures::Watched, None);
            let polled = drive(&mut build(), &arrivals, Departures::Watched, Some(step));
            for direction in Direction::BOTH {
                assert_eq!(of(&plain, direction), of(&polled, direction), "{name}: `peek_event` changes what is told");
            }
            let unwatched = drive(&mut build(), &arrivals, Departures::Unwatched, Some(step));
            assert_eq!(ends(&plain), ends(&unwatched), "{name}: `want_departures` changes what happens");
        });
    }

    #[test]
    fn every_segment_ends_once_in_order_and_time_goes_on(arrivals in arrivals(), capacity in capacity(), seed in 0u64..1000, turn in turns()) {
        combinations(capacity, seed, turn, |name, build| {
            let seen = drive(&mut build(), &arrivals, Departures::Watched, None);
            let numbers: Vec<u32> = ends(&seen).iter().map(|outcome| outcome.number).collect();
            assert_eq!(numbers, (0..arrivals.len() as u32).collect::<Vec<_>>(), "{name}: `enqueue` takes what `peek_event` does not give once");
            for direction in Direction::BOTH {
                let told: Vec<_> = of(&seen, direction).into_iter().filter(|outcome| !matches!(outcome.what, What::Refused(_))).collect();
                assert!(told.is_sorted_by_key(|outcome| outcome.at), "{name}: `peek_event` goes back in time");
                let delivered = |outcome: &&Outcome| matches!(outcome.what, What::Told(LinkEvent::Delivered(_)));
                for flow in (0..3).filter(|_| !name.contains("out-of-sequence")) {
                    let of_flow = told.iter().filter(delivered).filter(|outcome| outcome.flow == flow);
                    assert!(of_flow.is_sorted_by_key(|outcome| outcome.number), "{name}: `peek_event` reorders flow {flow}");
                }
            }
        });
    }

    #[test]
    fn a_packet_leaves_the_queue_at_the_age_limit(arrivals in arrivals(), capacity in capacity(), seed in 0u64..1000, turn in turns()) {
        for (table, queue) in pairings(&with_a_queue().collect::<Vec<_>>(), &aging_queues(), turn) {
            // The window of a UMTS receiver moves before its end reports a packet as lost.
            let late = classes(&table)[1] > 0 && rlc(&table).is_some_and(|rlc| rlc["pdu"] != "grant");
            let limit = age_limit(&queue).unwrap();
            let (mut bearer, name) = (bearer(&table, &queue, capacity, seed), format!("{table} behind {queue}"));
            for Outcome { at, number, what, .. } in drive(&mut bearer, &arrivals, Departures::Watched, None) {
                if what == What::Told(LinkEvent::Dropped(Cause::Aged)) {
                    let age = at.since(arrivals[number as usize].0);
                    assert!(age == limit || late && age > limit, "{name}: {age} where the limit is {limit}");
                }
            }
            for direction in Direction::BOTH {
                let radio = bearer.radio(direction, None);
                let waits = radio.map_or_else(|| bearer.waits(direction).into_owned(), |radio| radio.queue);
                assert!(queued_below(&waits, limit), "{name}: {:?} queued", waits.quantile(1.0));
            }
        }
    }

    #[test]
    fn deadlines_never_lie(arrivals in arrivals(), capacity in capacity(), seed in 0u64..1000, turn in turns()) {
        combinations(capacity, seed, turn, |name, build| {
            let mut bearer = build();
            bearer.want_departures(Direction::Down, Departures::Watched);
            let (mut arrivals, mut reached) = (arrivals.iter().peekable(), Time::ZERO);
            loop {
                let due = bearer.due(Direction::Down).min(bearer.due(Direction::Up));
                let arrives = arrivals.peek().map_or(Time::NEVER, |(at, ..)| *at);
                if due == Time::NEVER && arrives == Time::NEVER {
                    break;
                }
                if due <= arrives {
                    for direction in Direction::BOTH {
                        if due > reached {
                            let early = bearer.peek_event(due - Span::from_nanos(1), direction);
                            assert_eq!(early, None, "{name}: `peek_event` tells before {due:?}, which `due` named");
                        }
                    }
                    for direction in Direction::BOTH {
                        while let Some((at, event)) = bearer.peek_event(due, direction) {
                            assert!(at <= due, "{name}: `peek_event` tells {event:?} of {at:?} already at {due:?}");
                            bearer.take_segment(direction);
                        }
                    }
                    reached = due;
                    let next = bearer.due(Direction::Down).min(bearer.due(Direction::Up));
                    assert!(next > due, "{name}: `due` names {due:?} again");
                }
                if arrives <= due
                    && let Some((at, direction, segment)) = arrivals.next()
                {
                    let _ = bearer.enqueue(*at, *direction, segment);
                    reached = *at;
                }
            }
        });
    }

    #[test]
    fn the_same_seed_gives_the_same_events(arrivals in arrivals(), capacity in capacity(), seed in 0u64..1000, turn in turns()) {
        combinations(capacity, seed, turn, |name, build| {
            let run = || drive(&mut build(), &arrivals, Departures::Watched, None);
            assert_eq!(run(), run(), "{name}: `build` gives bearers that differ");
        });
    }

    #[test]
    fn what_a_view_shows_is_what_is_inside(arrivals in arrivals(), seed in 0u64..1000) {
        for table in with_a_queue() {
            let mut bearer = bearer(&table, &"drop-tail".into(), Capacity::Packets(8), seed);
            let mut inside = 0;
            for (at, direction, segment) in &arrivals {
                while bearer.peek_event(*at, Direction::Down).is_some() {
                    bearer.take_segment(Direction::Down);
                }
                if *direction == Direction::Down && bearer.enqueue(*at, Direction::Down, segment).is_ok() {
                    inside += 1;
                }
                let view = bearer.view(*at, Direction::Down, FlowId(0));
                let shown = view.waiting.packets + view.in_transmission.packets + view.unacknowledged.packets;
                assert!(shown <= inside, "{table}: `view` shows {shown} of {inside}");
                if users(&table) == 1 {
                    assert_eq!(view.waiting, bearer.waiting(*at, Direction::Down), "{table}: `waiting`");
                }
                assert_eq!(view.capacity, Capacity::Packets(8), "{table}: `view`");
                if rlc(&table).is_some_and(|rlc| rlc["buffer_counts"].is_null()) {
                    assert!(shown <= 8, "{table}: {shown} in a buffer of 8");
                }
            }
        }
    }

    #[test]
    fn no_window_is_exceeded_and_no_buffer(arrivals in arrivals(), seed in 0u64..1000) {
        for table in every_bearer() {
            let (names, settings) = (config(&table).gauges(), rlc(&table).unwrap_or(&Value::Null).clone());
            let mut bearer = bearer(&table, &"drop-tail".into(), Capacity::Packets(8), seed);
            let (users, window) = (f64::from(users(&table)), settings["window"].as_f64().unwrap_or(2047.0));
            let [named, acknowledged] = classes(&table);
            let (window, channels) = (window * users * acknowledged as f64, users * (named + 1) as f64);
            for (at, direction, segment) in &arrivals {
                for direction in Direction::BOTH {
                    while bearer.peek_event(*at, direction).is_some() {
                        bearer.take_segment(direction);
                    }
                }
                let _ = bearer.enqueue(*at, *direction, segment);
                for direction in Direction::BOTH {
                    let gauges = bearer.gauges(direction);
                    assert_eq!(gauges.len(), names.len(), "{table}: `gauges`");
                    let of = |name| names.iter().position(|other| *other == name).map(|place| gauges[place]);
                    assert!(of("buffer_packets").is_none_or(|packets| packets <= 8.0 * channels), "{table}: {gauges:?}");
                    if let (Some(outstanding), Some(open)) = (of("outstanding_pdus"), of("open_window_pdus")) {
                        assert!(outstanding + open <= window && open >= 0.0, "{table}: {gauges:?}");
                        // A receiver may have reduced the window.
                        let smaller = !settings["status"]["windows"].is_null();
                        assert!(smaller || outstanding + open == window, "{table}: {gauges:?}");
                    }
                }
            }
        }
    }
}

/// A bearer of 384 kbit/s each way whose PDUs are lost independently.
fn independent(share: f64, others: Value) -> AnyBearer {
    let air = json!({"kind": "dedicated", "delay": "25ms", "errors": share, "errors_by": "pdu"});
    let mut table = json!({"kind": "radio-access", "rlc": {"pdu": "80B"}, "air": {"down": air, "up": air}});
    table["rlc"].as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
    bearer(&table, &"drop-tail".into(), Capacity::Unlimited, 5)
}

/// Selective repeat with a wide enough window sends every PDU 1 / (1 - e) times on average: packets of 1500 octets
/// plus an indicator pass at rate (1 - e) 1500 / 1501.
#[test]
fn a_full_bearer_carries_what_selective_repeat_carries() {
    for share in [0.0, 0.05, 0.1, 0.3] {
        let mut bearer = independent(share, json!({"order": "out-of-sequence"}));
        let count = 40_000u32;
        (0..count).for_each(|number| {
            bearer.enqueue(Time::ZERO, Direction::Down, &segment(0, number, 1500)).unwrap();
        });
        let end = Time::ZERO + Span::from_secs(600);
        let mut delivered = 0;
        while let Some((_, event)) = bearer.peek_event(end, Direction::Down) {
            bearer.take_segment(Direction::Down);
            delivered += u32::from(event.is_delivery());
        }
        // 600 s of 600 PDUs a second: a share of 0.3 varies by 0.0008.
        let expected = 384e3 * (1.0 - share) * 600.0 / (1501.0 * 8.0);
        let ratio = f64::from(delivered) / expected;
        assert!((0.995..1.003).contains(&ratio), "{share}: {delivered} of {expected:.0}");
    }
}

/// A packet of one PDU that arrives alone, at any instant of a TTI, waits 5 ms on average for the next TTI and arrives
/// 35 ms after it starts. If it is lost, Timer_Poll of 200 ms retransmits it: 40 + 200 e / (1 - e) ms.
#[test]
fn a_lone_packet_takes_the_time_of_its_repetitions() {
    for share in [0.0, 0.1, 0.3] {
        let mut bearer = independent(share, json!({"max_dat": 60}));
        let (count, mut sum) = (20_000u64, 0.0);
        for number in 0..count {
            // 3 s apart, so that any exchange has ended, and each 7 us further into its TTI.
            let now = Time::ZERO + (Span::from_secs(5) + Span::from_micros(7)) * number;
            bearer.enqueue(now, Direction::Down, &segment(0, number as u32, 79)).unwrap();
            let until = now + Span::from_secs(5);
            while let Some((at, event)) = bearer.peek_event(until, Direction::Down) {
                bearer.take_segment(Direction::Down);
                assert!(event.is_delivery());
                sum += at.since(now).as_millis_f64();
            }
        }
        let (mean, expected) = (sum / count as f64, 40.0 + 200.0 * share / (1.0 - share));
        // The deviation of a delay is 200 sqrt(e) / (1 - e): at 0.3 it is 156 ms, of 20 000 1.1.
        assert!((mean - expected).abs() < 3.5, "{share}: {mean} ms, {expected} expected");
    }
}

/// Without retransmissions a packet of n PDUs, alone in them, arrives with probability (1 - e)^n.
#[test]
fn unacknowledged_a_packet_arrives_where_all_of_its_pdus_do() {
    for (pdus, bytes) in [(1i32, 79u16), (8, 8 * 80 - 1)] {
        let mut bearer = independent(0.1, json!({"mode": "unacknowledged"}));
        let (count, mut delivered) = (20_000u32, 0);
        for number in 0..count {
            let now = Time::ZERO + Span::from_millis(200) * u64::from(number);
            bearer.enqueue(now, Direction::Down, &segment(0, number, bytes)).unwrap();
            while let Some((_, event)) = bearer.peek_event(now + Span::from_millis(199), Direction::Down) {
                bearer.take_segment(Direction::Down);
                delivered += u32::from(event.is_delivery());
            }
        }
        let (share, expected) = (f64::from(delivered) / f64::from(count), 0.9f64.powi(pdus));
        // Three deviations of a share of 0.43 of 20 000 are 0.0105.
        assert!((share - expected).abs() < 0.0105, "{pdus}: {share}, {expected} expected");
    }
}

#[test]
fn what_goes_to_the_front_leaves_before_what_waits() {
    for table in with_a_queue() {
        let mut bearer = bearer(&table, &"drop-tail".into(), Capacity::Unlimited, 3);
        bearer.want_departures(Direction::Down, Departures::Watched);
        (0..12).for_each(|number| {
            bearer.enqueue(Time::ZERO, Direction::Down, &segment(0, number, 1000)).unwrap()
        });
        bearer.enqueue_front(Time::ZERO, Direction::Down, &segment(0, 99, 1000)).unwrap();
        let mut left = Vec::new();
        while left.len() < 2 {
            let now = bearer.due(Direction::Down);
            while let Some((_, event)) = bearer.peek_event(now, Direction::Down) {
                let segment = bearer.take_segment(Direction::Down);
                left.extend((event == LinkEvent::Departed).then_some(segment.seq.0));
            }
        }
        // One may have been in transmission.
        assert!(left[..2].contains(&99), "{table}: `enqueue_front`: {left:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), ..ProptestConfig::default() })]

    #[test]
    fn the_room_that_is_seen_is_the_room_that_there_is(arrivals in arrivals(), packets in 1u32..12, seed in 0u64..1000) {
        for table in with_a_queue().filter(|table| table["kind"] != "autorate") {
            let mut bearer = bearer(&table, &"drop-tail".into(), Capacity::Packets(packets), seed);
            for (now, direction, segment) in &arrivals {
                for direction in Direction::BOTH {
                    while bearer.peek_event(*now, direction).is_some() {
                        bearer.take_segment(direction);
                    }
                }
                let view = bearer.view(*now, *direction, segment.flow);
                let taken = bearer.enqueue(*now, *direction, segment).is_ok();
                assert_eq!(taken, view.room(1500) > 0, "{table}: `view` says {view:?}");
            }
        }
    }
}

#[test]
fn a_packet_is_freed_once_where_the_buffer_keeps_what_was_sent() {
    for table in every_bearer() {
        let mut bearer = bearer(&table, &"drop-tail".into(), Capacity::Packets(20), 3);
        bearer.want_departures(Direction::Down, Departures::Watched);
        let keeps = acknowledges(&table);
        (0..12).for_each(|number| {
            bearer.enqueue(Time::ZERO, Direction::Down, &segment(0, number, 1000)).unwrap()
        });
        let (mut freed, mut now) = (Vec::new(), Time::ZERO);
        while bearer.due(Direction::Down) != Time::NEVER {
            now = now.max(bearer.due(Direction::Down));
            while let Some((_, event)) = bearer.peek_event(now, Direction::Down) {
                let segment = bearer.take_segment(Direction::Down);
                freed.extend((event == LinkEvent::Freed).then_some(segment.seq.0));
            }
        }
        freed.sort_unstable();
        let expected: Vec<u32> = if keeps { (0..12).collect() } else { Vec::new() };
        assert_eq!(freed, expected, "{table}: `Freed`");
    }
}

#[test]
fn a_packet_is_unacknowledged_from_its_departure_until_it_is_freed() {
    for table in every_bearer().iter().filter(|table| acknowledges(table)) {
        let mut bearer = bearer(table, &"drop-tail".into(), Capacity::Packets(200), 3);
        bearer.want_departures(Direction::Down, Departures::Watched);
        // Sizes of every remainder modulo a PDU, so that some packets fill their last PDU to the last octet.
        for number in 0..120 {
            let packet = segment(0, number, 100 + number as u16);
            bearer.enqueue(Time::ZERO, Direction::Down, &packet).unwrap();
        }
        let (mut departed, mut now) = (BTreeSet::new(), Time::ZERO);
        while bearer.due(Direction::Down) != Time::NEVER {
            now = now.max(bearer.due(Direction::Down));
            while let Some((_, event)) = bearer.peek_event(now, Direction::Down) {
                let number = bearer.take_segment(Direction::Down).seq.0;
                match event {
                    LinkEvent::Departed => drop(departed.insert(number)),
                    LinkEvent::Freed => drop(departed.remove(&number)),
                    _ => {}
                }
            }
            let view = bearer.view(now, Direction::Down, FlowId(0));
            assert_eq!(view.unacknowledged.packets as usize, departed.len(), "{table} at {now:?}");
        }
    }
}

/// Downlink packets, each sent after the previous ones are finished; returns the retransmissions of those that arrive.
fn one_by_one(bearer: &mut AnyBearer, count: u32, bytes: u16) -> Vec<Repetitions> {
    let (mut told, mut now) = (Vec::new(), Time::ZERO);
    for number in 0..count {
        bearer.enqueue(now, Direction::Down, &segment(0, number, bytes)).unwrap();
        while bearer.due(Direction::Down) != Time::NEVER {
            now = now.max(bearer.due(Direction::Down));
            while let Some((_, event)) = bearer.peek_event(now, Direction::Down) {
                bearer.take_segment(Direction::Down);
                told.extend(if let LinkEvent::Delivered(repeated) = event { Some(repeated) } else { None });
            }
        }
    }
    told
}

#[test]
fn a_bearer_that_repeats_tells_it_and_no_other_does() {
    for table in every_bearer() {
        let harq = &table["air"]["down"]["harq"];
        let repeats = acknowledges(&table) && rlc(&table).unwrap()["max_dat"] != 2
            || !harq.is_null() && harq["limit"] != 0;
        let mut bearer = bearer(&table, &"drop-tail".into(), Capacity::Unlimited, 5);
        let told = one_by_one(&mut bearer, 200, 1500);
        let again = told.iter().filter(|repeated| repeated.times > 0).count();
        assert_eq!(again > 0, repeats, "{table}: {again} of {} repeated", told.len());
        assert!(repeats || told.iter().all(|repeated| *repeated == Repetitions::NONE), "{table}");
        let later = told.iter().filter(|repeated| repeated.delay > Span::ZERO).count();
        assert_eq!(later > 0, repeats, "{table}: {later} of {} later", told.len());
    }
}

#[test]
fn what_deliveries_tell_adds_up_to_what_was_sent_again() {
    for order in ["in-sequence", "out-of-sequence"] {
        // 1519 octets and a length indicator fill 19 PDUs, so no two packets share a PDU. Uplink is lossless, so no
        // PDU that has arrived is retransmitted.
        let errors =
            |share: f64| json!({"kind": "dedicated", "delay": "25ms", "errors": share, "errors_by": "pdu"});
        let rlc = json!({"pdu": "80B", "order": order, "max_dat": 40});
        let air = json!({"down": errors(0.3), "up": errors(0.0)});
        let table = json!({"kind": "radio-access", "rlc": rlc, "air": air});
        let mut bearer = bearer(&table, &"drop-tail".into(), Capacity::Unlimited, 5);
        for number in 0..400 {
            bearer.enqueue(Time::ZERO, Direction::Down, &segment(0, number, 1519)).unwrap();
        }
        let (mut told, mut arrived) = (0, 0);
        while bearer.due(Direction::Down) != Time::NEVER {
            let now = bearer.due(Direction::Down);
            while let Some((_, event)) = bearer.peek_event(now, Direction::Down) {
                bearer.take_segment(Direction::Down);
                let LinkEvent::Delivered(repeated) = event else { panic!("{event:?}") };
                (told, arrived) = (told + repeated.times, arrived + 1);
            }
        }
        let names = BEARERS.resolve(&json!({"kind": "radio-access"})).unwrap().gauges();
        let place = names.iter().position(|name| *name == "retransmitted_pdus").unwrap();
        assert_eq!((arrived, f64::from(told)), (400, bearer.gauges(Direction::Down)[place]), "{order}");
        assert!(told > 2000, "{told}");
    }
}

#[test]
fn no_packet_allocates_after_warm_up() {
    for table in every_bearer() {
        let mut bearer = bearer(&table, &"drop-tail".into(), Capacity::Packets(20), 1);
        bearer.want_departures(Direction::Down, Departures::Watched);
        let mut offer = |from: u32, rounds: u32| {
            for round in from..from + rounds {
                let now = Time::ZERO + Span::from_millis(20) * u64::from(round);
                for direction in Direction::BOTH {
                    while bearer.peek_event(now, direction).is_some() {
                        bearer.take_segment(direction);
                    }
                    let _ = bearer.enqueue(now, direction, &segment(round % 3, round, 1000));
                }
            }
        };
        // Queues of unacknowledged packets double at a power of two: none of the three flows does between packets 8333
        // and 10 000.
        offer(0, 25_000);
        let before = allocations();
        offer(25_000, 5_000);
        let made = allocations() - before;
        // A burst of errors longer than all before makes the queue or a histogram grow.
        assert!(made <= 3 * u64::from(users(&table)), "{made}: {table}");
    }
}

#[test]
fn defaults_of_every_entry_are_accepted() {
    for entry in BEARERS.entries {
        (entry.parse)((entry.defaults)()).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
    }
}
