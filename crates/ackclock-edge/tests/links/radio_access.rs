//! The bearer of several users: each user has the events that it would have alone.

use std::ops::Range;

use ackclock_core::{FlowId, Span, Streams, Time};
use ackclock_edge::QUEUES;
use ackclock_edge::{BEARERS, LINKS};
use ackclock_link::FadingKind;
use ackclock_link::{
    AnyBearer, Bearer, BearerContext, BearerLinks, BufferMeaning, Capacity, CellUser, Change, ChangeContext,
    Departures, Direction, LinkEvent, OutageKind, QueuePlan,
};
use serde_json::{Value, json};

use crate::common::{MadeUp, segment, share_out, take_classes};

/// Seconds from which and until which the radio is interrupted.
const OUTAGE: [u64; 2] = [1, 3];

/// The bearer of a table with `users` users, each with one flow.
pub(crate) fn bearer(table: &Value, users: u32) -> AnyBearer {
    of_user(table, users, FadingKind::Rayleigh)
}

/// The same with channels that fade so.
pub(crate) fn of_user(table: &Value, users: u32, fading: FadingKind) -> AnyBearer {
    of_seed(table, users, fading, 7)
}

/// The same with a seed of the random streams.
fn of_seed(table: &Value, users: u32, fading: FadingKind, seed: u64) -> AnyBearer {
    let mut table = table.clone();
    table["kind"] = "radio-access".into();
    let classes = take_classes(&mut table);
    let streams = &Streams::new(seed, 0);
    let link = LINKS.resolve(&json!({"kind": "constant"})).unwrap();
    let links = BearerLinks { down: link.clone(), up: link };
    let queue = QUEUES.resolve(&"drop-tail".into()).unwrap();
    let plan = |name: &str| QueuePlan::new(queue.clone(), Capacity::Packets(150), streams, name);
    let (down, up, meaning, files) =
        (&plan("down/queue"), &plan("up/queue"), BufferMeaning::Waiting, &MadeUp);
    let config = BEARERS.resolve(&table).unwrap();
    let user = CellUser { count: users, mean_snr: 3.0, doppler: 5.6, fading };
    let served = config.serving(&[user]).unwrap().unwrap().with_classes(&classes).unwrap().unwrap();
    let mut bearer = served
        .build(&links, BearerContext { down, up, classes: &[], follows: None, meaning, streams, files })
        .unwrap();
    // Without classes each user has one flow.
    share_out(&mut bearer, users * (classes.len() as u32 + 1), users, classes.len());
    bearer
}

/// Sends packets of each user in both directions every 20 ms for two seconds; returns the events.
fn events(bearer: &mut AnyBearer, users: u32) -> Vec<(u32, Time, LinkEvent, u32)> {
    interrupted(bearer, users, None, 0..users)
}

/// The same with an outage of both directions of some users from one second until three.
fn interrupted(
    bearer: &mut AnyBearer,
    users: u32,
    outage: Option<OutageKind>,
    of: Range<u32>,
) -> Vec<(u32, Time, LinkEvent, u32)> {
    bearer.want_departures(Direction::Down, Departures::Watched);
    let mut seen = Vec::new();
    for round in 0..400u32 {
        if let Some(kind) = outage.filter(|_| round == 50) {
            let [from, until] = OUTAGE.map(|second| Time::ZERO + Span::from_secs(second));
            for direction in Direction::BOTH {
                bearer.change(from, direction, Change::Outage(of.clone(), until, kind));
            }
        }
        let now = Time::ZERO + Span::from_millis(20) * u64::from(round);
        for direction in Direction::BOTH {
            while let Some((at, event)) = bearer.peek_event(now, direction) {
                let segment = bearer.take_segment(direction);
                seen.push((segment.flow.0, at, event, segment.seq.0));
            }
            for user in (0..users).filter(|_| round < 100) {
                let _ = bearer.enqueue(now, direction, &segment(user, round, 600));
            }
        }
    }
    seen
}

#[test]
fn a_user_beside_others_has_the_events_that_it_has_alone() {
    for table in [
        json!({}),
        json!({"air": {"down": {"kind": "dedicated", "errors": "rayleigh"}}}),
        json!({"rlc": {"mode": "unacknowledged"}}),
    ] {
        let mut beside = events(&mut bearer(&table, 3), 3);
        beside.retain(|&(user, ..)| user == 0);
        let alone = events(&mut bearer(&table, 1), 1);
        assert!(alone.len() >= 300, "{table}: {}", alone.len());
        assert_eq!(alone, beside, "{table}");
    }
}

/// A cell like that of HSDPA, whose channels fade as `user` says.
fn cell(harq: Value) -> Value {
    let rows = [
        (68_500, -15.6),
        (188_500, -11.5),
        (631_000, -6.4),
        (1_139_500, -3.4),
        (2_332_000, 1.7),
        (3_584_000, 5.8),
    ];
    let row =
        |(rate, snr): (u64, f64)| json!({"rate": format!("{rate}bit/s"), "snr": snr, "probability": 0.15});
    json!({"kind": "shared", "slots": 500, "drc_delay": 3, "delay": "10ms", "harq": harq, "rates": rows.map(row)})
}

/// The bearer above such a cell, without errors upwards.
pub(crate) fn over_cell(harq: Value, iub: Value) -> Value {
    let up = json!({"kind": "dedicated", "errors": 0});
    json!({"air": {"down": cell(harq), "up": up}, "iub": iub, "rlc": {"poll": {"timer": "100ms"}, "status": {"prohibit": "60ms"}}})
}

#[test]
fn a_user_of_a_cell_beside_one_that_has_nothing_has_the_events_that_it_has_alone() {
    for control in ["credit", "on-off", "none"] {
        let table = over_cell(json!({"error": "20%"}), json!({ "flow_control": control }));
        let alone = events(&mut bearer(&table, 1), 1);
        let beside = events(&mut bearer(&table, 2), 1);
        assert!(alone.len() >= 300, "{table}: {}", alone.len());
        assert_eq!(alone, beside, "{control}");
    }
}

/// The bearer above such a cell, with the radio link control in the base station.
pub(crate) fn without_iub(harq: Value) -> Value {
    let mut table = over_cell(harq, json!(null));
    table.as_object_mut().unwrap().remove("iub");
    table
}

#[test]
fn without_an_iub_too_a_user_has_the_events_that_it_has_alone() {
    let table = without_iub(json!({"error": "20%"}));
    let alone = events(&mut bearer(&table, 1), 1);
    assert!(alone.len() >= 300, "{}", alone.len());
    assert_eq!(alone, events(&mut bearer(&table, 2), 1));
}

#[test]
fn a_packet_on_an_idle_cell_without_an_iub_takes_its_slots_and_the_delay() {
    let mut bearer = of_user(&without_iub(json!({"error": 0})), 1, FadingKind::None);
    // 3 dB: 4664 bits a slot of 2 ms, 13 PDUs of 40 octets; 600 bytes and their mark fill 16. The slot after 1 ms begins
    // at 2 ms, the second one ends at 6 ms, and the packet arrives 10 ms later.
    bearer.enqueue(Time::ZERO + Span::from_millis(1), Direction::Down, &segment(0, 0, 600)).unwrap();
    let (at, event) = bearer.peek_event(Time::ZERO + Span::from_secs(1), Direction::Down).unwrap();
    assert!(event.is_delivery());
    assert_eq!(at, Time::ZERO + Span::from_millis(16));
    // The wait lasts until the first octet is on the air.
    assert_eq!(bearer.waits(Direction::Down).mean(), Some(Span::from_millis(1)));
}

/// What users get who always have something to send.
struct Got {
    packets: f64,
    /// Median of the PDUs at the base station.
    median_pdus: f64,
    repeated_pdus: f64,
}

/// Keeps the buffers of all users full for so many seconds, with packets of 1500 bytes.
fn saturated(bearer: &mut AnyBearer, users: u32, seconds: u64) -> Got {
    let (mut packets, mut waits, mut number) = (0.0, Vec::new(), 0);
    for millisecond in 0..seconds * 1000 {
        let now = Time::ZERO + Span::from_millis(millisecond);
        for direction in Direction::BOTH {
            while let Some((_, event)) = bearer.peek_event(now, direction) {
                bearer.take_segment(direction);
                packets += f64::from(u8::from(matches!(event, LinkEvent::Delivered(_))));
            }
        }
        for user in 0..users {
            while bearer.enqueue(now, Direction::Down, &segment(user, number, 1500)).is_ok() {
                number += 1;
            }
        }
        if millisecond > 5000 {
            waits.push(bearer.gauges(Direction::Down).get(4).copied().unwrap_or_default());
        }
    }
    waits.sort_by(f64::total_cmp);
    let repeated_pdus = bearer.gauges(Direction::Down)[3];
    Got { packets, median_pdus: waits[waits.len() / 2], repeated_pdus }
}

/// PDUs of 40 octets that packets of 1500 bytes fill, each with the octet of its length indicator.
const PDUS: f64 = 1501.0 / 40.0;

#[test]
fn a_block_holds_whole_pdus_and_the_rest_is_padding() {
    // 137, 377, 1262, 2279, 4664 and 7168 bits a slot are 0, 1, 3, 6, 13 and 21 PDUs of 336 bits with their header.
    let expected = 500.0 * 0.15 * (1 + 3 + 6 + 13 + 21) as f64 / PDUS;
    for mut table in [over_cell(json!({"error": 0}), json!({})), without_iub(json!({"error": 0}))] {
        table["air"]["down"].as_object_mut().unwrap().remove("harq");
        let got = saturated(&mut of_user(&table, 1, FadingKind::Table), 1, 200).packets / 200.0;
        assert!((got / expected - 1.0).abs() < 0.01, "{got} packets a second, expected {expected}: {table}");
    }
}

#[test]
fn a_pdu_that_does_not_fit_continues_in_the_next_block() {
    // 137, 377, 1262, 2279, 4664 and 7168 bits a slot, and PDUs of 336 bits with their header.
    let expected = 500.0 * 0.15 * f64::from(137 + 377 + 1262 + 2279 + 4664 + 7168) / 336.0 / PDUS;
    for mut table in [over_cell(json!({"error": 0}), json!({})), without_iub(json!({"error": 0}))] {
        table["air"]["down"].as_object_mut().unwrap().remove("harq");
        table["air"]["down"]["pdus"] = "split".into();
        let got = saturated(&mut of_user(&table, 1, FadingKind::Table), 1, 200).packets / 200.0;
        assert!((got / expected - 1.0).abs() < 0.01, "{got} packets a second, expected {expected}: {table}");
    }
}

/// A cell without an Iub, each of whose blocks holds one PDU.
pub(crate) fn granted(harq: Value) -> Value {
    let mut table = without_iub(harq);
    table["rlc"]["pdu"] = "grant".into();
    table["air"]["up"] = json!({"kind": "dedicated", "rate": "384kbit/s", "errors": 0});
    table
}

#[test]
fn a_pdu_that_fills_its_block_leaves_no_padding() {
    let mut table = granted(json!({"error": 0}));
    table["air"]["down"].as_object_mut().unwrap().remove("harq");
    // 17, 47, 157, 284, 583 and 896 octets a slot, each with a header of 2 octets; a block in which a packet ends has 1.5
    // octets more, rounded up.
    let got = saturated(&mut of_user(&table, 1, FadingKind::Table), 1, 200).packets / 200.0;
    let blocks = 500.0 * 0.15 * f64::from(17 + 47 + 157 + 284 + 583 + 896 - 6 * 2);
    let expected = blocks / (1500.0 + 2.0);
    assert!((got / expected - 1.0).abs() < 0.005, "{got} packets a second, expected {expected}");
}

#[test]
fn a_retransmission_larger_than_its_grant_continues_in_the_next_grants() {
    // Every block is lost at first; the RLC repeats PDUs of good slots also in bad slots.
    let table = granted(json!({"error": "20%", "limit": 0}));
    let got = saturated(&mut of_user(&table, 1, FadingKind::Table), 1, 100);
    assert!(got.repeated_pdus > 5000.0, "{}", got.repeated_pdus);
    // Without padding and without losses of the RLC, 0.8 of the blocks carry what is delivered.
    let all = 500.0 * 0.15 * f64::from(17 + 47 + 157 + 284 + 583 + 896) / 1500.0;
    let share = got.packets / 100.0 / all;
    assert!((0.6..0.8).contains(&share), "{share}");
}

#[test]
fn a_failed_tti_of_a_dedicated_channel_is_sent_again_before_new_data() {
    let harq = json!({"error": "20%", "repetition_error": 0, "delay": "16ms"});
    let table = json!({"air": {"down": {"kind": "dedicated", "tti": "10ms", "harq": harq}, "up": {"kind": "dedicated", "errors": 0}}});
    let got = saturated(&mut bearer(&table, 1), 1, 200);
    // 12 PDUs in a TTI of 10 ms; 1 / 1.2 of the TTIs have new data.
    let expected = 100.0 * 12.0 / 1.2 / PDUS;
    assert!((got.packets / 200.0 / expected - 1.0).abs() < 0.01, "{} and {expected}", got.packets / 200.0);
    // PDUs arrive in sequence, so that the RLC misses none.
    assert_eq!(got.repeated_pdus, 0.0);
}

#[test]
fn what_a_grant_cannot_have_is_refused_with_its_key() {
    let refused = |table: Value| {
        let mut table = table;
        table["kind"] = "radio-access".into();
        BEARERS.resolve(&table).map(drop).unwrap_err().to_string()
    };
    let mut behind = granted(json!({}));
    behind["iub"] = json!({});
    let mut split = granted(json!({}));
    split["air"]["down"]["pdus"] = "split".into();
    let mut huge = granted(json!({}));
    huge["air"]["down"]["rates"] = json!([{"rate": "1Gbit/s", "snr": 0.0}]);
    let mut odd = granted(json!({}));
    odd["rlc"]["pdu"] = "grants".into();
    let mut errors = json!({"air": {"up": {"kind": "dedicated", "harq": {}, "errors": "5%"}}});
    errors["rlc"] = json!({});
    for (table, key) in [
        (behind, "rlc.pdu"),
        (split, "air.down.pdus"),
        (huge, "air.down.rates"),
        (odd, "\"grant\""),
        (errors, "air.up.errors"),
    ] {
        let error = refused(table);
        assert!(error.contains(key), "{key}: {error}");
    }
}

#[test]
fn the_rlc_repeats_what_harq_gave_up() {
    // 10 % of 10 %: a block is lost with its PDUs after one repetition.
    let harq = json!({"error": "10%", "repetition_error": "10%", "limit": 1});
    for table in [over_cell(harq.clone(), json!({})), without_iub(harq)] {
        let got = saturated(&mut of_user(&table, 1, FadingKind::Table), 1, 400);
        let share = got.repeated_pdus / (got.packets * PDUS);
        // 200 000 blocks, of which 2000 are lost: 0.01 +- 0.0003, and blocks differ in size.
        assert!((share / 0.01 - 1.0).abs() < 0.1, "{share}: {table}");
    }
}

#[test]
fn the_rlc_repeats_a_block_whose_nack_was_taken_for_an_ack() {
    // 10 % of 10 %: a block fails and its NACK is misread; every repetition arrives.
    let harq = json!({"error": "10%", "repetition_error": 0, "feedback_error": "10%"});
    let got = saturated(&mut of_user(&over_cell(harq, json!({})), 1, FadingKind::Table), 1, 400);
    let share = got.repeated_pdus / (got.packets * PDUS);
    assert!((share / 0.01 - 1.0).abs() < 0.1, "{share}");
}

#[test]
fn the_rlc_does_not_repeat_pdus_that_wait_for_a_missing_block() {
    for release in ["10ms", "50ms", "100ms"] {
        let harq = json!({"error": "10%", "repetition_error": 0, "feedback_error": "1%", "release": release});
        for seed in 1..=3 {
            let mut bearer = of_seed(&over_cell(harq.clone(), json!({})), 1, FadingKind::Table, seed);
            saturated(&mut bearer, 1, 100);
            let rlc = bearer.radio(Direction::Down, None).unwrap().result().rlc;
            assert!(rlc.lost >= 200, "{rlc:?}");
            assert!(rlc.duplicates * 100 <= rlc.pdus, "release {release}, seed {seed}: {rlc:?}");
            // With a release of 10 ms, the RLC repeats a few PDUs that wait at the base station for longer than the target
            // delay. A longer release covers these waits.
            assert!(release == "10ms" || rlc.duplicates == 0, "release {release}, seed {seed}: {rlc:?}");
        }
    }
}

#[test]
fn the_rlc_repeats_what_the_iub_lost_and_no_credit_is_lost_with_it() {
    let of = |loss: f64| {
        let table = over_cell(json!({"error": 0}), json!({ "loss": loss }));
        saturated(&mut of_user(&table, 1, FadingKind::Table), 1, 100)
    };
    let (without, with) = (of(0.0), of(0.02));
    // Of the PDUs that arrive 2 % were sent twice, and 0.04 % three times.
    let share = with.repeated_pdus / (with.packets * PDUS);
    assert!((share / (0.02 / 0.98) - 1.0).abs() < 0.05, "{share}");
    // Lost PDUs do not occupy the air.
    let goodput = with.packets / without.packets;
    assert!((goodput - 1.0).abs() < 0.01, "{goodput}");
}

#[test]
fn credits_keep_the_goodput_and_a_quarter_of_the_wait_at_the_base_station() {
    for users in [1, 2, 4, 8] {
        let of = |control: &str| {
            let table = over_cell(json!({"repetition_error": "1%"}), json!({ "flow_control": control }));
            saturated(&mut of_user(&table, users, FadingKind::Rayleigh), users, 60)
        };
        let (credit, none) = (of("credit"), of("none"));
        let goodput = credit.packets / none.packets;
        assert!(goodput >= 0.98, "{users} users: goodput {goodput}");
        // The wait is that of the PDUs at the base station at the rate at which they leave.
        let wait = credit.median_pdus / none.median_pdus / goodput;
        assert!(wait <= 0.25, "{users} users: wait {wait}");
        // HARQ gives up one block of ten million, so that whatever the RLC repeats had arrived.
        assert!(
            credit.repeated_pdus <= 0.01 * credit.packets * PDUS,
            "{users} users: {}",
            credit.repeated_pdus
        );
    }
}

#[test]
fn without_flow_control_the_window_of_the_rlc_stands_at_the_base_station() {
    let table = over_cell(json!({"repetition_error": "1%"}), json!({ "flow_control": "none" }));
    let got = saturated(&mut of_user(&table, 1, FadingKind::Rayleigh), 1, 60);
    // Less what is on the Iub, on the air and in the STATUS that comes back.
    assert!((1500.0..2047.0).contains(&got.median_pdus), "{}", got.median_pdus);
}

#[test]
fn nothing_crosses_in_an_outage_and_nothing_is_delivered_twice() {
    let [from, until] = OUTAGE.map(|second| Time::ZERO + Span::from_secs(second));
    for kind in [OutageKind::Silent, OutageKind::Fade] {
        // The radio takes 15 ms; what was sent before the outage still arrives.
        let mut delivered: Vec<_> = interrupted(&mut bearer(&json!({}), 1), 1, Some(kind), 0..u32::MAX)
            .into_iter()
            .filter(|(_, _, event, _)| event.is_delivery())
            .map(|(_, at, _, seq)| (at, seq))
            .collect();
        let during = delivered.iter().filter(|(at, _)| *at > from + Span::from_millis(25) && *at < until);
        assert_eq!(during.count(), 0, "{kind:?}");
        let resumed = delivered.iter().map(|(at, _)| *at).filter(|&at| at >= until).min().unwrap();
        // Silent: one TTI, the delay and what errors repeat; fade: a timer of the transmitter must come first.
        let wait = if kind == OutageKind::Silent { 100 } else { 1000 };
        assert!(resumed <= until + Span::from_millis(wait), "{kind:?}: {resumed:?}");
        let count = delivered.len();
        delivered.sort_by_key(|&(_, seq)| seq);
        // A packet of each direction has the number of its round.
        let most = delivered.chunk_by(|a, b| a.1 == b.1).map(<[_]>::len).max();
        assert!(count > 100 && most <= Some(2), "{kind:?}: {count} {most:?}");
    }
}

#[test]
fn an_outage_of_one_user_leaves_the_others_alone() {
    let [from, until] = OUTAGE.map(|second| Time::ZERO + Span::from_secs(second));
    for kind in [OutageKind::Silent, OutageKind::Fade] {
        let mut seen = interrupted(&mut bearer(&json!({}), 3), 3, Some(kind), 1..2);
        let crossed = |&(user, at, event, _): &(u32, Time, LinkEvent, u32)| {
            user == 1 && event.is_delivery() && at > from + Span::from_millis(25) && at < until
        };
        assert_eq!(seen.iter().filter(|one| crossed(one)).count(), 0, "{kind:?}");
        let mut undisturbed = events(&mut bearer(&json!({}), 3), 3);
        seen.retain(|&(user, ..)| user != 1);
        undisturbed.retain(|&(user, ..)| user != 1);
        assert_eq!(seen, undisturbed, "{kind:?}");
        // Over a cell, the others get the slots of a user in a silent outage.
        let table = over_cell(json!({"error": "10%"}), json!({}));
        let seen = interrupted(&mut bearer(&table, 3), 3, Some(kind), 1..2);
        // Blocks whose last transmission began before the outage arrive 10 ms later.
        assert_eq!(seen.iter().filter(|one| crossed(one)).count(), 0, "{kind:?} over a cell");
        let delivered = |user: u32| {
            let of = |one: &&(u32, Time, LinkEvent, u32)| one.0 == user && one.2.is_delivery();
            let mut numbers: Vec<_> = seen.iter().filter(of).map(|one| one.3).collect();
            numbers.sort_unstable();
            // A packet of each direction has the number of its round.
            assert!(numbers.chunk_by(|a, b| a == b).all(|same| same.len() <= 2), "{kind:?}: {numbers:?}");
            numbers.len()
        };
        assert!([0, 1, 2].map(delivered).into_iter().all(|count| count > 150), "{kind:?}");
    }
}

#[test]
fn a_user_of_a_cell_moves_to_another_snr() {
    let of = |snr| CellUser { mean_snr: snr, fading: FadingKind::None, ..CellUser::default() };
    let mut table = over_cell(json!({"error": 0}), json!({}));
    table["air"]["down"].as_object_mut().unwrap().remove("harq");
    let mut bearer = of_user(&table, 1, FadingKind::None);
    let (middle, end) = (Time::ZERO + Span::from_secs(20), Time::ZERO + Span::from_secs(40));
    // 3 dB: 4664 bits a slot, 13 PDUs of 336 bits; -10 dB: 377 bits, 1 PDU.
    let before = full(&mut bearer, vec![], middle).iter().filter(|(.., event)| event.is_delivery()).count();
    change_users(&mut bearer, &table, of(-10.0), "user.0.mean_snr", middle);
    let after = full_from(&mut bearer, middle, vec![], end);
    let late = after.iter().filter(|(_, at, event)| event.is_delivery() && *at > middle + Span::from_secs(5));
    let [fast, slow] = [13.0, 1.0].map(|pdus| pdus * 500.0 * 40.0 / 601.0);
    assert!((before as f64 / (20.0 * fast) - 1.0).abs() < 0.01, "{before}");
    assert!((late.count() as f64 / (15.0 * slow) - 1.0).abs() < 0.02, "{}", after.len());
    let capacity = bearer.capacity_bps(end, Direction::Down).unwrap();
    let expected = 7.0 * 500.0 * 320.0;
    assert!((capacity / expected - 1.0).abs() < 0.01, "{capacity} and {expected}");
}

#[test]
fn errors_and_delays_of_a_cell_change_and_nothing_overtakes() {
    let of = |error: f64, delay: &str, iub: &str| {
        let harq = json!({"error": error, "limit": 0});
        let mut table = over_cell(harq, json!({"delay": iub}));
        table["air"]["down"]["delay"] = delay.into();
        table["rlc"] = json!({"mode": "unacknowledged"});
        table
    };
    let mut bearer = bearer(&of(0.0, "100ms", "100ms"), 1);
    let [first, second, end] = [10, 20, 120].map(|second| Time::ZERO + Span::from_secs(second));
    let (short, bad) = (of(0.0, "1ms", "1ms"), of(0.5, "1ms", "1ms"));
    let steps = vec![
        (second, &bad, "air.down.harq.error"),
        (first, &short, "iub.delay"),
        (first, &short, "air.down.delay"),
    ];
    let seen = full(&mut bearer, steps, end);
    let mut last = None;
    for (number, at, event) in seen.iter().filter(|(.., event)| event.is_delivery()) {
        assert!(last < Some((number, at)), "{number} at {at:?}");
        assert!(matches!(event, LinkEvent::Delivered(told) if told.times == 0), "{event:?}");
        last = Some((number, at));
    }
    let lost = |from: Time, to: Time| {
        let within =
            |(_, at, event): &&(u32, Time, LinkEvent)| *at > from && *at <= to && !event.is_delivery();
        seen.iter().filter(within).count()
    };
    assert_eq!(lost(Time::ZERO, second), 0);
    assert!(lost(second, end) > 2000, "{}", lost(second, end));
}

/// Changes a running bearer with `users` users at `at`: `key` gets the value that it has in `table`.
fn change(bearer: &mut AnyBearer, table: &Value, users: u32, key: &str, at: Time) {
    change_users(bearer, table, CellUser { count: users, ..CellUser::default() }, key, at);
}

/// The same for these users.
fn change_users(bearer: &mut AnyBearer, table: &Value, user: CellUser, key: &str, at: Time) {
    let mut table = table.clone();
    table["kind"] = "radio-access".into();
    let config = BEARERS.resolve(&table).unwrap().serving(&[user]).unwrap().unwrap();
    let context = ChangeContext { streams: &Streams::new(7, 0), name: "at0", files: &MadeUp };
    for (direction, change) in config.changes(key, context).unwrap() {
        bearer.change(at, direction, change);
    }
}

/// Downlink packets of one user with a buffer that is always full: number, arrival time, retransmissions. The steps are
/// ordered from latest to earliest.
fn full(
    bearer: &mut AnyBearer,
    steps: Vec<(Time, &Value, &str)>,
    until: Time,
) -> Vec<(u32, Time, LinkEvent)> {
    full_from(bearer, Time::ZERO, steps, until)
}

/// The same from `now` on.
fn full_from(
    bearer: &mut AnyBearer,
    mut now: Time,
    mut steps: Vec<(Time, &Value, &str)>,
    until: Time,
) -> Vec<(u32, Time, LinkEvent)> {
    let (mut seen, mut number) = (Vec::new(), 0);
    while now <= until {
        while let Some((at, event)) = bearer.peek_event(now, Direction::Down) {
            seen.push((bearer.take_segment(Direction::Down).seq.0, at, event));
        }
        while bearer.peek_event(now, Direction::Up).is_some() {
            bearer.take_segment(Direction::Up);
        }
        while let Some((_, table, key)) = steps.pop_if(|(at, ..)| *at <= now) {
            change(bearer, table, 1, key, now);
        }
        while bearer.enqueue(now, Direction::Down, &segment(0, number, 600)).is_ok() {
            number += 1;
        }
        now += Span::from_millis(1);
    }
    seen
}

/// A dedicated downlink with these settings, without errors on the uplink.
fn dedicated(rate: &str, delay: &str, errors: f64, mode: &str) -> Value {
    let down = json!({"kind": "dedicated", "rate": rate, "delay": delay, "errors": errors});
    json!({"air": {"down": down, "up": {"kind": "dedicated", "errors": 0}}, "rlc": {"mode": mode}})
}

#[test]
fn a_rate_changes_from_the_next_tti_on_and_the_channel_stays_full() {
    let second = |n: u64| Time::ZERO + Span::from_secs(n);
    for mode in ["acknowledged", "unacknowledged"] {
        let [fast, slow] = ["384kbit/s", "64kbit/s"].map(|rate| dedicated(rate, "15ms", 0.0, mode));
        let key = "air.down.rate";
        // Within a TTI that began at the last multiple of 10 ms.
        let [down, up] = [second(4) + Span::from_millis(3), second(8) + Span::from_millis(3)];
        let mut bearer = bearer(&fast, 1);
        let steps = vec![(up, &fast, key), (down, &slow, key)];
        let seen = full(&mut bearer, steps, second(12));
        // 1200, 200 and 1200 PDUs of 40 octets in a second. Packets of 600 octets have 15 PDUs and an octet in the next.
        let count = |from: Time, to: Time| {
            let within =
                |(_, at, event): &&(u32, Time, LinkEvent)| event.is_delivery() && *at > from && *at <= to;
            seen.iter().filter(within).count() as f64
        };
        let in_transit = Span::from_millis(25);
        for (from, to, pdus) in [(second(0), down, 1200.0), (down, up, 200.0), (up, second(12), 1200.0)] {
            let (from, to) = (from + in_transit, (to + in_transit).min(second(12)));
            let expected = pdus * to.since(from).as_secs_f64() * 40.0 / 601.0;
            assert!((count(from, to) - expected).abs() <= 2.0, "{mode}: {} and {expected}", count(from, to));
        }
        let capacity = bearer.capacity_bps(second(12), Direction::Down).unwrap();
        let delivered =
            seen.iter().filter(|(.., event)| event.is_delivery()).count() as f64 * 600.0 * 8.0 / 12.0;
        // One TTI of 12 PDUs in 12 s is 320 bit/s; what is in transit is part of the capacity only.
        assert!(
            delivered <= capacity + 320.0 && delivered > capacity * 0.98,
            "{mode}: {delivered} of {capacity}"
        );
        let all = (8.0 * 384e3 + 4.0 * 64e3) / 12.0;
        assert!((capacity / all - 1.0).abs() < 0.003, "{mode}: {capacity} and {all}");
    }
}

#[test]
fn no_pdu_overtakes_when_the_delay_changes_and_nothing_counts_as_repeated() {
    let [long, short] = ["200ms", "15ms"].map(|delay| dedicated("384kbit/s", delay, 0.0, "acknowledged"));
    let seconds = [1, 2, 3].map(|n| Time::ZERO + Span::from_millis(1000 * n + 7));
    let slow = dedicated("64kbit/s", "200ms", 0.0, "acknowledged");
    let steps = vec![
        (seconds[2], &slow, "air.down.rate"),
        (seconds[2], &slow, "air.down.delay"),
        (seconds[1], &long, "air.down.delay"),
        (seconds[0], &short, "air.down.delay"),
    ];
    let seen = full(&mut bearer(&long, 1), steps, Time::ZERO + Span::from_secs(6));
    let mut delivered = seen.into_iter().filter(|(.., event)| event.is_delivery());
    let mut last = delivered.next().unwrap();
    for one in delivered {
        assert!(one.0 == last.0 + 1 && one.1 >= last.1, "{one:?} after {last:?}");
        // Without errors every packet arrives as its TTIs say.
        let LinkEvent::Delivered(told) = one.2 else { panic!("{one:?}") };
        assert_eq!((told.times, told.delay), (0, Span::ZERO), "{one:?}");
        last = one;
    }
    assert!(last.0 > 100);
}

#[test]
fn the_errors_of_a_channel_change() {
    let [good, bad] = [0.0, 0.3].map(|errors| dedicated("384kbit/s", "15ms", errors, "unacknowledged"));
    let (middle, end) = (Time::ZERO + Span::from_secs(100), Time::ZERO + Span::from_secs(200));
    let mut bearer = bearer(&good, 1);
    let seen = full(&mut bearer, vec![(middle, &bad, "air.down.errors")], end);
    let lost = |from: Time, to: Time| {
        let within = seen.iter().filter(|(_, at, _)| *at > from && *at <= to);
        within.filter(|(.., event)| !event.is_delivery()).count()
    };
    assert_eq!(lost(Time::ZERO, middle + Span::from_millis(25)), 0);
    // 30 % of 10 000 TTIs are lost, each with all or a part of at least one packet.
    assert!(lost(middle, end) > 2500, "{}", lost(middle, end));
    // Half of the time 384 kbit/s, then 70 % of it: 10 000 TTIs with a standard deviation of 0.46 %.
    let capacity = bearer.capacity_bps(end, Direction::Down).unwrap();
    assert!((capacity / (384e3 * 0.85) - 1.0).abs() < 0.01, "{capacity}");
}

#[test]
fn the_more_users_are_active_the_lower_is_the_rate_of_each() {
    let allocation = json!({"pool": "1Mbit/s", "steps": ["64kbit/s", "128kbit/s", "384kbit/s"]});
    let down = json!({"kind": "dedicated", "errors": 0, "allocation": allocation});
    let table = json!({"air": {"down": down, "up": {"kind": "dedicated", "errors": 0}}});
    let (users, mut number) = (8, 0);
    let mut bearer = bearer(&table, users);
    // Each second another user begins, from the tenth second on the buffers are no longer filled.
    for millisecond in 0..60_000u64 {
        let now = Time::ZERO + Span::from_millis(millisecond);
        for direction in Direction::BOTH {
            while bearer.peek_event(now, direction).is_some() {
                bearer.take_segment(direction);
            }
        }
        for user in (0..users).filter(|&user| millisecond >= u64::from(user) * 1000 && millisecond < 10_000) {
            while bearer.enqueue(now, Direction::Down, &segment(user, number, 600)).is_ok() {
                number += 1;
            }
        }
        let mut rate = |user| bearer.view(now, Direction::Down, FlowId(user)).rate.as_bps() / 1000;
        let rates: Vec<u64> = (0..users).map(&mut rate).collect();
        let allotted: u64 = rates.iter().filter(|&&rate| rate > 64).sum();
        assert!(allotted <= 1000, "{millisecond} ms: {rates:?}");
        // `after` is 500 ms: the first allocation after each start.
        let expected = match millisecond {
            0..=498 => [64, 64, 64],
            502..=1498 => [384, 64, 64],
            1502..=1998 => [384, 384, 64],
            2502..=7498 => [128, 128, 128],
            7502..=9998 => [64, 64, 64],
            // The buffers of 150 packets are empty after 12 s more, and 2 s later no user is active.
            40_000.. => [64, 64, 64],
            _ => continue,
        };
        assert_eq!(rates[..3], expected, "{millisecond} ms");
    }
    let capacity = bearer.capacity_bps(Time::ZERO + Span::from_secs(60), Direction::Down).unwrap();
    assert!(capacity > 8.0 * 64e3 && capacity < 1e6, "{capacity}");
}

#[test]
fn users_draw_errors_of_their_own() {
    let mut seen = events(&mut bearer(&json!({}), 2), 2);
    let second: Vec<_> = seen.extract_if(.., |&mut (user, ..)| user == 1).map(|(_, at, ..)| at).collect();
    let first: Vec<_> = seen.into_iter().map(|(_, at, ..)| at).collect();
    assert_ne!(first, second);
}

/// Deliveries of 5000 packets of a bearer's downlink, one every 40 ms: time, number, and delay from retransmissions.
fn delivered(table: &Value) -> Vec<(Time, u32, Span)> {
    let (mut bearer, mut told) = (bearer(table, 1), Vec::new());
    for round in 0..5100 {
        let now = Time::ZERO + Span::from_millis(40) * u64::from(round);
        for direction in Direction::BOTH {
            while let Some((at, event)) = bearer.peek_event(now, direction) {
                let segment = bearer.take_segment(direction);
                let LinkEvent::Delivered(repeated) = event else { continue };
                told.push((at, segment.seq.0, repeated.delay));
            }
        }
        if round < 5000 {
            bearer.enqueue(now, Direction::Down, &segment(0, round, 600)).unwrap();
        }
    }
    told
}

#[test]
fn learned_delays_hold_a_packet_for_at_most_the_largest_delay_that_does_not_exceed_the_timer() {
    let up = json!({"kind": "dedicated", "errors": 0});
    let harq = json!({"error": "20%", "limit": 3, "delay": "40ms"});
    let dedicated = |keys: Value| {
        let mut down = json!({"kind": "dedicated"});
        down.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        json!({"air": {"down": down, "up": up}})
    };
    let rate = json!([{"rate": "768kbit/s", "snr": -20.0, "probability": 1}]);
    let cell = json!({"kind": "shared", "slots": 500, "delay": "5ms", "rates": rate, "harq": {"error": "10%", "delay": "20ms"}});
    for table in [
        dedicated(json!({"harq": harq})),
        dedicated(json!({"errors": "10%", "tti": "40ms"})),
        json!({"air": {"down": cell.clone(), "up": up}}),
        json!({"air": {"down": cell, "up": up}, "iub": {}}),
    ] {
        let with = |delays: Value| {
            let mut table = table.clone();
            table["rlc"] = json!({"delays": delays});
            delivered(&table)
        };
        let without = delivered(&table);
        assert_eq!(with(json!({})), without, "{table}");
        let rho = Span::from_millis(10);
        let held = with(json!({"learn": {"epsilon": "0.5%", "over": 4000, "every": "1s", "rho": "10ms"}}));
        assert_eq!(held.len(), without.len());
        assert!(held.is_sorted_by_key(|&(_, number, _)| number), "{table}");
        let longest = without.iter().map(|&(.., delay)| delay).max().unwrap();
        let mut sum = Span::ZERO;
        for (after, before) in held.iter().zip(&without) {
            assert_eq!((after.1, after.2), (before.1, before.2), "{table}");
            assert!(before.0 <= after.0 && after.0 <= before.0 + longest + rho, "{before:?} {after:?}");
            sum += after.0.since(before.0);
        }
        assert!(sum > Span::from_secs(1), "{table}: {sum}");
    }
}

#[test]
fn delays_of_a_bearer_that_repeats_nothing_are_refused() {
    let refused = |air: Value, delays: Value, mode: &str| {
        let table = json!({"kind": "radio-access", "air": air, "rlc": {"mode": mode, "delays": delays}});
        BEARERS.resolve(&table).err().map(|error| error.to_string())
    };
    let (cell, dedicated) = (json!({"down": cell(json!({"error": "20%"}))}), json!({}));
    let learn = || json!({"learn": {}});
    assert_eq!(refused(cell, learn(), "unacknowledged"), None);
    assert_eq!(refused(dedicated.clone(), learn(), "acknowledged"), None);
    let error = refused(dedicated.clone(), learn(), "unacknowledged").unwrap();
    assert!(error.starts_with("rlc.delays: with mode"), "{error}");
    let error = refused(dedicated, json!({"learn": {"over": 10}}), "acknowledged").unwrap();
    assert!(error.starts_with("rlc.delays.learn.over: 10 is below"), "{error}");
}

/// The cell of a table as the downlink of the bearer `links`, with queues like those of the other bearers.
fn cell_alone(table: &Value, user: &CellUser, seed: u64) -> AnyBearer {
    let streams = &Streams::new(seed, 0);
    let down = LINKS.resolve(table).unwrap().serving(std::slice::from_ref(user)).unwrap().unwrap();
    let links = BearerLinks { down, up: LINKS.resolve(&json!({"kind": "constant"})).unwrap() };
    let plan = |name: &str| {
        QueuePlan::new(QUEUES.resolve(&"drop-tail".into()).unwrap(), Capacity::Packets(150), streams, name)
    };
    let (down, up, meaning, files) =
        (&plan("down/queue"), &plan("up/queue"), BufferMeaning::Waiting, &MadeUp);
    let context = BearerContext { down, up, classes: &[], follows: None, meaning, streams, files };
    let mut bearer = BEARERS.resolve(&json!({"kind": "links"})).unwrap().build(&links, context).unwrap();
    (0..user.count).for_each(|number| bearer.assign(FlowId(number), number));
    bearer
}

/// Deliveries and losses of a downlink with three users and one flow each, to which packets come at random: time,
/// whether the packet was delivered, and its number.
fn over_random_arrivals(bearer: &mut AnyBearer, bytes: u16, seed: u64) -> Vec<(Time, bool, u32)> {
    let mut draw = Streams::new(seed, 0).stream("arrivals");
    let (mut now, mut told) = (Time::ZERO, Vec::new());
    for number in 0..=6000 {
        let wait = if number == 6000 { Span::from_secs(60) } else { Span::from_secs_f64(draw.unit() * 4e-3) };
        now += wait;
        while let Some((at, event)) = bearer.peek_event(now, Direction::Down) {
            let segment = bearer.take_segment(Direction::Down);
            told.push((at, matches!(event, LinkEvent::Delivered(_)), segment.seq.0));
        }
        let flow = (draw.unit() * 3.0) as u32;
        bearer.enqueue(now, Direction::Down, &segment(flow, number, bytes)).unwrap();
    }
    // Those of one instant come in any order.
    told.sort_by_key(|&(at, _, number)| (at, number));
    told
}

#[test]
fn without_an_iub_and_with_a_packet_in_each_pdu_the_bearer_is_its_cell() {
    let user = CellUser { count: 3, mean_snr: 3.0, doppler: 5.6, fading: FadingKind::Rayleigh };
    for seed in 1..=5 {
        for harq in [Value::Null, json!({"error": "20%", "limit": 1})] {
            // A packet of 158 octets, its length indicator and the header of its PDU take 161 octets.
            let rlc = json!({"mode": "unacknowledged", "pdu": "160B"});
            let mut down = cell(harq.clone());
            if harq.is_null() {
                down.as_object_mut().unwrap().remove("harq");
            }
            // A block holds 1 to 6 packets of 1288 bits in 2 ms, without padding.
            let row =
                |(packets, snr): (u64, f64)| json!({"rate": format!("{}kbit/s", 644 * packets), "snr": snr});
            down["rates"] = [(1, -6.4), (2, -3.4), (4, 1.7), (6, 5.8)].map(row).into();
            let table = json!({"air": {"down": down}, "rlc": rlc});
            let of_bearer =
                over_random_arrivals(&mut of_seed(&table, 3, FadingKind::Rayleigh, seed), 158, seed);
            let mut alone = down.clone();
            alone["kind"] = "cell".into();
            alone["pdus"] = "whole".into();
            let of_cell = over_random_arrivals(&mut cell_alone(&alone, &user, seed), 161, seed);
            assert_eq!(of_cell.len(), 6000);
            for (place, (left, right)) in of_bearer.iter().zip(&of_cell).enumerate() {
                assert_eq!(left, right, "{seed} {harq} {place}");
            }
            assert_eq!(of_bearer.len(), of_cell.len());
        }
    }
}

/// A cell without an Iub whose uplink is scheduled, with the period and the delay of srsRAN 4G.
fn with_scheduled_uplink() -> Value {
    let mut table = granted(json!({"error": 0}));
    let grants = json!({"period": "20ms", "delay": "8ms"});
    table["air"]["up"] = json!({"kind": "dedicated", "rate": "10Mbit/s", "tti": "1ms", "delay": "4ms", "errors": 0, "grants": grants});
    table
}

/// Sends packets of 52 bytes upwards at these times, ms. Returns the delivery time of each, ms.
fn delivered_upwards(table: &Value, times: &[f64]) -> Vec<f64> {
    let mut bearer = of_user(table, 1, FadingKind::None);
    let mut seen = Vec::new();
    let mut drain = |bearer: &mut AnyBearer, now: Time| {
        for direction in Direction::BOTH {
            while let Some((at, event)) = bearer.peek_event(now, direction) {
                bearer.take_segment(direction);
                if event.is_delivery() {
                    seen.push(at.as_nanos() as f64 / 1e6);
                }
            }
        }
    };
    for (number, ms) in (0..).zip(times) {
        let now = Time::from_nanos((ms * 1e6) as u64);
        drain(&mut bearer, now);
        bearer.enqueue(now, Direction::Up, &segment(0, number, 52)).unwrap();
    }
    drain(&mut bearer, Time::ZERO + Span::from_secs(10_000));
    seen
}

#[test]
fn a_packet_of_an_idle_terminal_waits_for_a_scheduling_request_and_the_grant() {
    // Every 997 ms, so that the phases of the requests differ; no packet meets another.
    let times: Vec<f64> = (1..=400).map(|number| f64::from(number) * 997.3).collect();
    let seen = delivered_upwards(&with_scheduled_uplink(), &times);
    let mut delays: Vec<f64> = times.iter().zip(&seen).map(|(sent, seen)| seen - sent).collect();
    delays.sort_by(f64::total_cmp);
    // 8 ms until the granted TTI, 1 ms for the TTI and 4 ms after it; the request waits from 0 to 20 ms.
    assert!(delays[0] >= 13.0 && delays[0] < 13.5, "{}", delays[0]);
    assert!(delays[399] <= 33.0 && delays[399] > 32.5, "{}", delays[399]);
    // The wait is uniform.
    for (place, expected) in [(100, 18.0), (200, 23.0), (300, 28.0)] {
        assert!((delays[place] - expected).abs() < 1.0, "{place}: {}", delays[place]);
    }
}

#[test]
fn acks_leave_in_clumps_like_those_of_a_real_terminal() {
    // 227 ACKs a second at random: those of a download of 5.4 Mbit/s with delayed ACKs.
    let (mut state, mut now) = (1u64, 0.0);
    let times: Vec<f64> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        now -= libm::log(((state >> 11) as f64 + 1.0) / (1u64 << 53) as f64) * 1000.0 / 227.0;
        now
    })
    .take(20_000)
    .collect();
    let seen = delivered_upwards(&with_scheduled_uplink(), &times);
    assert_eq!(seen.len(), times.len());
    let mut pdus = seen.clone();
    pdus.dedup();
    let mut gaps: Vec<f64> = pdus.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_by(f64::total_cmp);
    let quantile = |share: f64| gaps[(gaps.len() as f64 * share) as usize];
    // srsRAN 4G 23.04: a PDU each 8 ms (median) and 27 ms (95th percentile), 2.5 ACKs a clump.
    assert!((quantile(0.5) / 8.0 - 1.0).abs() < 0.2, "{}", quantile(0.5));
    assert!((quantile(0.95) / 27.0 - 1.0).abs() < 0.2, "{}", quantile(0.95));
    let clump = seen.len() as f64 / pdus.len() as f64;
    assert!((clump / 2.5 - 1.0).abs() < 0.2, "{clump}");
}

#[test]
fn a_saturated_uplink_uses_every_tti_whether_it_is_scheduled_or_not() {
    let packets = |table: &Value| {
        let mut bearer = of_user(table, 1, FadingKind::None);
        let (mut delivered, mut number) = (0, 0);
        for millisecond in 0..5000 {
            let now = Time::ZERO + Span::from_millis(millisecond);
            for direction in Direction::BOTH {
                while let Some((_, event)) = bearer.peek_event(now, direction) {
                    bearer.take_segment(direction);
                    delivered += u32::from(event.is_delivery());
                }
            }
            while bearer.enqueue(now, Direction::Up, &segment(0, number, 1500)).is_ok() {
                number += 1;
            }
        }
        delivered
    };
    let scheduled = with_scheduled_uplink();
    let mut free = scheduled.clone();
    free["air"]["up"].as_object_mut().unwrap().remove("grants");
    let [scheduled, free] = [&scheduled, &free].map(packets);
    assert!(f64::from(scheduled) > 0.98 * f64::from(free), "{scheduled} of {free}");
}

#[test]
fn grants_need_pdus_that_fill_them_and_opportunities_at_ttis() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut table = with_scheduled_uplink();
        table["kind"] = "radio-access".into();
        change(&mut table);
        BEARERS.resolve(&table).map(drop).unwrap_err().to_string()
    };
    let fixed = |table: &mut Value| {
        table["rlc"]["pdu"] = "40B".into();
        table["air"]["up"]["rate"] = "320kbit/s".into();
    };
    for (error, said) in [
        (refused(&fixed), "air.up.grants: a PDU of fixed size"),
        (
            refused(&|table| table["air"]["up"]["grants"]["period"] = "2.5ms".into()),
            "air.up.grants.period: 2.5ms is not a multiple",
        ),
        (
            refused(&|table| table["air"]["up"]["grants"]["delay"] = "0s".into()),
            "air.up.grants.delay: 0ms is not above",
        ),
        (
            refused(&|table| table["air"]["down"] = table["air"]["up"].clone()),
            "air.down.grants: the base station",
        ),
    ] {
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn slots_of_control_information_hold_no_data() {
    let share = |control: Option<&str>| {
        let mut table = granted(json!({"error": 0}));
        if let Some(control) = control {
            table["air"]["down"]["control"] = control.into();
        }
        let mut bearer = of_user(&table, 1, FadingKind::None);
        let packets = saturated(&mut bearer, 1, 20).packets;
        let capacity = bearer.capacity_bps(Time::ZERO + Span::from_secs(20), Direction::Down).unwrap();
        (packets, packets * 1500.0 * 8.0 / 20.0 / capacity)
    };
    let (all, _) = share(None);
    for (control, free) in [("24%", 0.76), ("7%", 0.93), ("DDD-", 0.75)] {
        let (packets, used) = share(Some(control));
        assert!((packets / all - free).abs() < 0.01, "{control}: {packets} of {all}");
        // The capacity leaves these slots out; the rest is headers.
        assert!((0.95..1.001).contains(&used), "{control}: {used}");
    }
    let mut table = granted(json!({"error": 0}));
    table["kind"] = "radio-access".into();
    table["air"]["down"]["control"] = "--".into();
    let error = BEARERS.resolve(&table).map(drop).unwrap_err().to_string();
    assert!(error.contains("air.down.control") && error.contains("no slot has data"), "{error}");
}
