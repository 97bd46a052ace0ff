//! Impairments of a link: shares, positions and counts.

use crate::common::{Polling, segment};
use crate::common::{What, drive, every_queue, link, unlimited};
use ackclock_core::{FlowId, Segment, Span, Time};
use ackclock_edge::LINKS;
use ackclock_link::{Capacity, Departures, Impairment};
use serde_json::{Value, json};

/// A fast link with these keys.
fn fast(keys: Value) -> Value {
    let mut table = json!({"kind": "constant", "rate": "1Gbit/s", "delay": "1ms"});
    table.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    table
}

/// Packets of one flow, one in each 100 us.
fn paced(count: u32) -> Vec<(Time, Segment)> {
    let at = |number: u32| Time::ZERO + Span::from_micros(100) * u64::from(number);
    (0..count).map(|number| (at(number), segment(0, number, 1000))).collect()
}

/// What a link with these keys reports of `count` packets: each event with the number of its packet.
fn events(keys: Value, count: u32) -> Vec<(What, u32)> {
    let mut link = unlimited(&fast(keys), 7);
    let seen = drive(&mut *link, &paced(count), Departures::Unwatched, Polling::AsAsked, Time::NEVER);
    seen.into_iter().map(|outcome| (outcome.what, outcome.number)).collect()
}

fn delivered(seen: &[(What, u32)]) -> Vec<u32> {
    seen.iter().filter(|(what, _)| *what == What::Delivered).map(|(_, number)| *number).collect()
}

#[test]
fn shares_are_within_three_standard_errors() {
    const COUNT: u32 = 100_000;
    for (name, value) in [
        ("reorder", json!({"share": 0.02, "extra": "250us"})),
        ("duplicate", json!(0.02)),
        ("corrupt", json!(0.02)),
    ] {
        let is_one = |what: &What| match name {
            "reorder" => matches!(what, What::Impaired(Impairment::Reordered { .. })),
            "duplicate" => *what == What::Impaired(Impairment::Duplicated),
            _ => *what == What::Corrupt,
        };
        let seen = events(json!({ name: value }), COUNT);
        let share = seen.iter().filter(|(what, _)| is_one(what)).count() as f64 / f64::from(COUNT);
        // A chosen packet is not passed if both packets behind it are late too.
        let expected = if name == "reorder" { 0.02 * (1.0 - 0.02 * 0.02) } else { 0.02 };
        let error = (expected * (1.0 - expected) / f64::from(COUNT)).sqrt();
        assert!((share - expected).abs() < 3.0 * error, "{name}: {share}, not {expected} ± {error}");
    }
}

#[test]
fn a_share_of_0_changes_nothing_and_of_1_everything() {
    let plain = events(json!({}), 100);
    let none = json!({"reorder": {"share": 0, "extra": "1ms"}, "duplicate": 0, "corrupt": "0%"});
    assert_eq!(events(none, 100), plain);
    // All are equally late, so that none passes another.
    assert_eq!(events(json!({"reorder": {"share": 1, "extra": "9ms"}}), 100), plain);
    let twice: Vec<u32> = (0..100).flat_map(|number| [number, number]).collect();
    assert_eq!(delivered(&events(json!({"duplicate": 1}), 100)), twice);
    let lost: Vec<_> = (0..100).map(|number| (What::Corrupt, number)).collect();
    assert_eq!(events(json!({"corrupt": 1}), 100), lost);
}

#[test]
fn a_reordered_packet_arrives_extra_later_and_its_extent_counts_those_between() {
    let keys = json!({"reorder": {"share": 0.05, "extra": "250us"}});
    let seen = events(keys.clone(), 1000);
    let arrived = delivered(&seen);
    let mut told = 0;
    for (at, (what, number)) in seen.iter().enumerate() {
        let What::Impaired(Impairment::Reordered { extent }) = what else { continue };
        assert_eq!(seen[at + 1], (What::Delivered, *number));
        let place = arrived.iter().position(|other| other == number).unwrap();
        let first = arrived.iter().position(|other| other > number).unwrap();
        assert_eq!(*extent as usize, place - first, "{number}");
        told += 1;
    }
    // RFC 4737: a packet is reordered if one with a higher number arrived before it.
    let mut highest = 0;
    let late = arrived.iter().filter(|&&number| {
        highest = highest.max(number);
        number < highest
    });
    assert_eq!((told, told > 20), (late.count(), true));
    // A packet 250 us late is delivered 250 us after its time.
    let mut link = unlimited(&fast(keys), 7);
    let seen = drive(&mut *link, &paced(1000), Departures::Unwatched, Polling::AsAsked, Time::NEVER);
    let delay =
        |number: u32, at: Time| at.since(Time::ZERO + Span::from_micros(100) * u64::from(number)).as_nanos();
    for outcome in seen.iter().filter(|outcome| outcome.what == What::Delivered) {
        let late = delay(outcome.number, outcome.at) - 1_008_000;
        assert!(late == 0 || late == 250_000, "{}: {late} ns", outcome.number);
    }
}

#[test]
fn the_extent_counts_packets_of_the_same_flow_only() {
    // Even numbers are of flow 0, odd ones of flow 1.
    let packets: Vec<_> = paced(1000)
        .into_iter()
        .map(|(at, _)| at)
        .zip(0..)
        .map(|(at, n)| (at, segment(n % 2, n, 1000)))
        .collect();
    let mut link = unlimited(&fast(json!({"reorder": {"share": 0.1, "extra": "550us"}})), 7);
    let seen = drive(&mut *link, &packets, Departures::Unwatched, Polling::AsAsked, Time::NEVER);
    let arrived: Vec<u32> =
        seen.iter().filter(|outcome| outcome.what == What::Delivered).map(|outcome| outcome.number).collect();
    let mut told = 0;
    for outcome in &seen {
        let What::Impaired(Impairment::Reordered { extent }) = outcome.what else { continue };
        let own: Vec<u32> = arrived.iter().copied().filter(|other| other % 2 == outcome.number % 2).collect();
        let place = own.iter().position(|&other| other == outcome.number).unwrap();
        let first = own.iter().position(|&other| other > outcome.number).unwrap();
        assert_eq!(extent as usize, place - first, "{}", outcome.number);
        told += 1;
    }
    assert!(told > 40, "{told}");
}

#[test]
fn a_copy_waits_behind_its_original_and_a_full_queue_refuses_it() {
    let slow = json!({"kind": "constant", "rate": "80kbit/s", "delay": "0ms", "duplicate": 1});
    let is_usual = |queue: &&Value| queue["kind"] == "drop-tail" && queue.get("age_limit").is_none();
    for queue in every_queue().iter().filter(is_usual) {
        let mut link = link(&slow, queue, Capacity::Packets(4), 7);
        let all: Vec<_> = (0..4).map(|number| (Time::ZERO, segment(0, number, 1000))).collect();
        let seen = drive(&mut *link, &all, Departures::Unwatched, Polling::AsAsked, Time::NEVER);
        let seen: Vec<_> = seen.into_iter().map(|outcome| (outcome.what, outcome.number)).collect();
        // One is in transmission and four wait: 0, 0, 1, 1, 2, whose copy is refused, as 3 is.
        assert_eq!(delivered(&seen), [0, 0, 1, 1, 2], "{queue}");
        assert_eq!(seen.iter().filter(|(what, _)| matches!(what, What::Refused(_))).count(), 1);
    }
}

#[test]
fn packets_without_payload_are_never_corrupt() {
    let mut link = unlimited(&fast(json!({"corrupt": 1})), 7);
    let acks: Vec<_> =
        (0..10).map(|_| (Time::ZERO, Segment::pure_ack(FlowId(0), ackclock_core::Seq(1), 40))).collect();
    let seen = drive(&mut *link, &acks, Departures::Unwatched, Polling::AsAsked, Time::NEVER);
    assert!(seen.len() == 10 && seen.iter().all(|outcome| outcome.what == What::Delivered), "{seen:?}");
}

#[test]
fn wrong_impairments_are_refused_with_their_key() {
    let refused = |keys| LINKS.resolve(&fast(keys)).unwrap_err().to_string();
    let error = refused(json!({"reorder": {"share": 0.1}}));
    assert!(error.contains("extra"), "{error}");
    let error = refused(json!({"reorder": {"share": 0.1, "extra": "0ms"}}));
    assert!(error.starts_with("reorder.extra: 0s: a packet that leaves at its time"), "{error}");
    let error = refused(json!({"duplicate": 1.5}));
    assert!(error.contains("1.5 is not a probability"), "{error}");
    let error = refused(json!({"corupt": 0.5}));
    assert!(error.contains("corrupt"), "{error}");
}
