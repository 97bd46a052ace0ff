//! Counters of the radio network, compared with counts by hand and with the events of the bearer.

use ackclock_core::results::{LostBy, RadioCounts, RadioResult};
use ackclock_core::{Span, Time};
use ackclock_link::{AnyBearer, Bearer, Cause, Direction, LinkEvent};
use serde_json::{Value, json};

use crate::common::segment;
use crate::radio_access::{bearer, over_cell};

/// Number of packets of each user and direction.
const PACKETS: u32 = 100;

/// What became of all packets of a direction.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    delivered: u64,
    lost: u64,
    refused: u64,
}

/// Sends packets of 600 bytes of each user in both directions every 20 ms, and runs the bearer until nothing is in transit.
fn seen(bearer: &mut AnyBearer, users: u32) -> [Seen; 2] {
    let mut seen = [Seen::default(), Seen::default()];
    for round in 0..100 * PACKETS {
        let now = Time::ZERO + Span::from_millis(20) * u64::from(round);
        for direction in Direction::BOTH {
            let seen = &mut seen[direction as usize];
            while let Some((_, event)) = bearer.peek_event(now, direction) {
                bearer.take_segment(direction);
                match event {
                    LinkEvent::Delivered(_) => seen.delivered += 1,
                    LinkEvent::Dropped(Cause::Full) => seen.refused += 1,
                    LinkEvent::Dropped(_) => seen.lost += 1,
                    _ => {}
                }
            }
            for user in (0..users).filter(|_| round < PACKETS) {
                let taken = bearer.enqueue(now, direction, &segment(user, round, 600));
                seen.refused += u64::from(taken.is_err());
            }
        }
    }
    seen
}

fn result(bearer: &AnyBearer, direction: Direction) -> RadioResult {
    bearer.radio(direction, None).unwrap().result()
}

fn sum(lost: LostBy) -> u64 {
    lost.max_dat + lost.reset + lost.air + lost.base_station + lost.handover
}

#[test]
fn one_packet_over_a_dedicated_channel_is_counted_by_hand() {
    let air = || json!({"kind": "dedicated", "errors": 0});
    let mut bearer = bearer(&json!({"air": {"down": air(), "up": air()}}), 1);
    bearer.enqueue(Time::ZERO, Direction::Down, &segment(0, 0, 1500)).unwrap();
    while bearer.peek_event(Time::ZERO + Span::from_secs(2), Direction::Down).is_some() {
        bearer.take_segment(Direction::Down);
    }
    let down = result(&bearer, Direction::Down);
    // 1500 octets and the length indicator of one octet fill 38 PDUs of 40 octets.
    assert_eq!((down.rlc.pdus, down.rlc.retransmitted, down.rlc.lost, down.rlc.status), (38, 0, 0, 0));
    // A packet that arrives at the start of a TTI waits for the next TTI.
    assert_eq!(
        (down.controller_queue_ms.mean, down.harq, down.iub, down.padding),
        (Some(10.0), None, None, None)
    );
    // The poll in the last PDU has one answer.
    let up = result(&bearer, Direction::Up);
    assert_eq!((up.rlc.pdus, up.rlc.status, up.lost_by), (0, 1, LostBy::default()));
}

#[test]
fn one_packet_over_a_cell_is_counted_by_hand() {
    let mut table = over_cell(json!({"error": 0}), json!({}));
    table["air"]["down"]["rates"] = json!([{"rate": "2332kbit/s", "snr": -90.0}]);
    let mut bearer = bearer(&table, 1);
    bearer.enqueue(Time::ZERO, Direction::Down, &segment(0, 0, 1500)).unwrap();
    while bearer.peek_event(Time::ZERO + Span::from_secs(2), Direction::Down).is_some() {
        bearer.take_segment(Direction::Down);
    }
    let down = result(&bearer, Direction::Down);
    // The 64 credits at the start allow all 38 PDUs at once. A block of 4664 bits holds 13 PDUs of 336 bits: 3 blocks.
    let (harq, iub) = (down.harq.unwrap(), down.iub.unwrap());
    assert_eq!((down.rlc.pdus, harq.blocks, harq.repeated, harq.lost), (38, 3, 0, 0));
    assert!((down.padding.unwrap() - (1.0 - 38.0 * 336.0 / (3.0 * 4664.0))).abs() < 1e-9, "{down:?}");
    // The PDUs arrive after 10 ms, when slot 5 of 2 ms has begun; blocks follow each other in the slots 6, 7 and 8.
    let waits = (13.0 * 2.0 + 13.0 * 4.0 + 12.0 * 6.0) / 38.0;
    let wait = down.base_station_queue_ms.as_ref().unwrap().mean.unwrap();
    assert!((wait - waits).abs() < 1e-3, "{wait} and {waits}");
    assert!(down.controller_queue_ms.mean.unwrap() < 1e-3 && iub.credits_unused.unwrap() >= 26, "{down:?}");
    assert_eq!(result(&bearer, Direction::Up).harq, None);
}

/// Bearers that lose PDUs in different places.
fn losing() -> Vec<Value> {
    let cell = |harq: Value, iub: Value| over_cell(harq, iub);
    let mut tables = vec![
        json!({"air": {"down": {"kind": "dedicated", "errors": "20%"}, "up": {"kind": "dedicated", "errors": "10%"}}}),
        cell(json!({"error": "30%", "limit": 1}), json!({})),
        cell(json!({"error": "10%", "feedback_error": "10%"}), json!({"loss": "2%", "flow_control": "none"})),
        cell(json!({"error": "10%"}), json!({"base_station_buffer": "20p", "flow_control": "none"})),
    ];
    for number in 1..tables.len() {
        let mut table = tables[number].clone();
        table["rlc"] = json!({"mode": "unacknowledged"});
        tables.push(table);
    }
    tables
}

#[test]
fn every_packet_is_delivered_or_lost_with_a_cause_and_every_pdu_too() {
    for table in losing() {
        let mut bearer = bearer(&table, 2);
        let seen = seen(&mut bearer, 2);
        for direction in Direction::BOTH {
            let (seen, of) = (&seen[direction as usize], result(&bearer, direction));
            assert_eq!(seen.delivered + seen.lost + seen.refused, u64::from(2 * PACKETS), "{table}");
            assert_eq!(sum(of.lost_by), seen.lost, "{table}: {:?}", of.lost_by);
            assert_eq!(of.lost_by.handover, 0);
            if table["rlc"]["mode"] == "unacknowledged" {
                assert_eq!((of.rlc.retransmitted, of.rlc.status), (0, 0), "{table}");
                assert_eq!(seen.lost > 0, of.rlc.lost > 0, "{table}");
            } else {
                assert_eq!(of.rlc.retransmitted, of.rlc.duplicates + of.rlc.lost, "{table}: {:?}", of.rlc);
                assert_eq!((seen.lost, of.lost_by), (0, LostBy::default()), "{table}");
            }
        }
        let down = result(&bearer, Direction::Down);
        assert!(down.rlc.lost > 0 && down.rlc.pdus > down.rlc.lost, "{table}: {:?}", down.rlc);
        let base_station =
            table["iub"]["loss"] != Value::Null || table["iub"]["base_station_buffer"] != Value::Null;
        if table["rlc"]["mode"] == "unacknowledged" {
            assert_eq!(down.lost_by.base_station > 0, base_station, "{table}: {:?}", down.lost_by);
        }
    }
}

#[test]
fn packets_given_up_and_packets_of_a_reset_have_their_cause() {
    let of = |on_max_dat: &str| {
        let air =
            json!({"down": {"kind": "dedicated", "errors": "50%"}, "up": {"kind": "dedicated", "errors": 0}});
        let mut bearer = bearer(&json!({"rlc": {"max_dat": 3, "on_max_dat": on_max_dat}, "air": air}), 1);
        let [down, _] = seen(&mut bearer, 1);
        (down, result(&bearer, Direction::Down))
    };
    let (seen, discarded) = of("discard");
    assert_eq!((discarded.lost_by.max_dat, discarded.lost_by.reset), (seen.lost, 0));
    assert!(seen.lost > 0 && discarded.rlc.discarded_sdus > 0, "{discarded:?}");
    let (seen, reset) = of("reset");
    assert_eq!(sum(reset.lost_by), seen.lost);
    assert!(reset.rlc.resets > 0 && reset.lost_by.reset > 0, "{reset:?}");
}

#[test]
fn the_users_add_up_to_their_direction() {
    let mut bearer = bearer(&over_cell(json!({"error": "20%"}), json!({})), 3);
    seen(&mut bearer, 3);
    for direction in Direction::BOTH {
        let mut sum = RadioCounts::default();
        (0..3).for_each(|user| sum += &bearer.radio(direction, Some(user)).unwrap());
        assert_eq!(sum.result(), result(&bearer, direction));
        assert!(bearer.radio(direction, Some(3)).is_none());
    }
}
