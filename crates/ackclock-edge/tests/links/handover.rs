//! Hand-overs of the users of the bearer `radio-access`.

use ackclock_core::{FlowId, Rate, Span, Time};
use ackclock_link::{
    Bearer, Cause, CellChange, CellUser, Change, Departures, Direction, FadingKind, Handover, HandoverTo,
    LinkEvent, Load, OutageKind,
};
use ackclock_testkit::cases;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::common::segment;
use crate::radio_access::{self, bearer, over_cell};

const fn ms(milliseconds: u64) -> Time {
    Time::from_nanos(milliseconds * 1_000_000)
}

/// A hand-over of `user` from `from` to `until`, ms.
fn handover(user: u32, [from, until]: [u64; 2], to: HandoverTo, forward: bool) -> (u64, Handover) {
    (from, Handover { user, to, until: ms(until), forward })
}

/// Event of a packet: its direction, its flow, its time, the event and its number.
type Seen = (Direction, u32, Time, LinkEvent, u32);

/// Sends a packet of each of `users` users in both directions every 20 ms for two seconds, and runs the bearer for 20
/// seconds. Returns the events; all packets must have been accepted.
fn events(table: &Value, users: u32, mut handovers: Vec<(u64, Handover)>) -> Vec<Seen> {
    let mut bearer = bearer(table, users);
    bearer.want_departures(Direction::Down, Departures::Watched);
    handovers.sort_by_key(|&(from, _)| from);
    let (mut seen, mut handovers) = (Vec::new(), handovers.into_iter().peekable());
    for now in (0..2000).step_by(5).chain((2000..20_000).step_by(50)) {
        while let Some((from, handover)) = handovers.next_if(|&(from, _)| from <= now) {
            bearer.change(ms(from), Direction::Down, Change::Handover(handover));
        }
        for direction in Direction::BOTH {
            while let Some((at, event)) = bearer.peek_event(ms(now), direction) {
                let packet = bearer.take_segment(direction);
                seen.push((direction, packet.flow.0, at, event, packet.seq.0));
            }
            for user in (0..users).filter(|_| now < 2000 && now % 20 == 0) {
                bearer.enqueue(ms(now), direction, &segment(user, now as u32, 500)).unwrap();
            }
        }
    }
    for user in 0..users {
        let view = bearer.view(ms(20_000), Direction::Down, FlowId(user));
        assert_eq!((view.occupied, view.waiting), (Load::NONE, Load::NONE), "{table}");
    }
    seen
}

fn dedicated(mode: &str, errors: &str) -> Value {
    let air = json!({"kind": "dedicated", "errors": errors});
    json!({"rlc": {"mode": mode}, "air": {"down": air, "up": air}})
}

fn shared(mode: &str, control: &str) -> Value {
    let mut table = over_cell(json!({"error": "20%"}), json!({ "flow_control": control }));
    if mode == "unacknowledged" {
        table["rlc"] = json!({ "mode": mode });
    }
    table
}

/// The table with a class, to which the flow of the second user belongs.
fn with_class(mut table: Value, mut class: Value) -> Value {
    class["name"] = "first".into();
    class["priority"] = 0.into();
    table["classes"] = json!([class]);
    table
}

/// A cell without an Iub whose grants hold one PDU each, as in LTE.
fn granted(mode: &str) -> Value {
    let mut table = radio_access::granted(json!({"error": "20%"}));
    if mode == "unacknowledged" {
        table["rlc"] = json!({"mode": mode, "pdu": "grant"});
    }
    table
}

/// Acknowledged mode over a dedicated channel, over a cell behind an Iub with credits, and over grants.
fn acknowledged() -> [Value; 3] {
    [dedicated("acknowledged", "10%"), shared("acknowledged", "credit"), granted("acknowledged")]
}

const ALL: [(HandoverTo, bool); 4] = [
    (HandoverTo::Cell, false),
    (HandoverTo::Cell, true),
    (HandoverTo::Controller, false),
    (HandoverTo::Controller, true),
];

/// Numbers of the packets that were delivered in a direction to a user, and of those dropped, each with its time.
fn ends(seen: &[Seen], direction: Direction, user: u32) -> [Vec<(Time, u32)>; 2] {
    let of = |wanted: &dyn Fn(&LinkEvent) -> bool| {
        let own = seen.iter().filter(|&&(to, flow, ..)| (to, flow) == (direction, user));
        own.filter(|(.., event, _)| wanted(event)).map(|&(_, _, at, _, number)| (at, number)).collect()
    };
    [of(&|event| event.is_delivery()), of(&|event| matches!(event, LinkEvent::Dropped(_)))]
}

/// Checks that each packet was delivered once and in order, or lost once; returns the numbers of the lost packets.
fn lost(seen: &[Seen], direction: Direction, user: u32) -> Vec<u32> {
    let [delivered, dropped] = ends(seen, direction, user);
    assert!(delivered.is_sorted_by(|a, b| a.1 < b.1), "{direction:?} {user}");
    let mut all: Vec<_> = delivered.iter().chain(&dropped).map(|&(_, number)| number).collect();
    all.sort_unstable();
    assert_eq!(all, (0..2000).step_by(20).collect::<Vec<_>>(), "{direction:?} {user}");
    dropped.into_iter().map(|(_, number)| number).collect()
}

#[test]
fn nothing_crosses_the_air_of_the_user_until_the_handover_ends() {
    for table in acknowledged() {
        for (to, forward) in ALL {
            let seen = events(&table, 2, vec![handover(1, [1000, 1300], to, forward)]);
            for direction in Direction::BOTH {
                let [delivered, _] = ends(&seen, direction, 1);
                // What was sent before propagates for 15 ms at most, after a TTI of 10 ms.
                let during = delivered.iter().filter(|&&(at, _)| ms(1025) < at && at < ms(1300)).count();
                assert_eq!(during, 0, "{table} {to:?}");
                let resumed = delivered.iter().map(|&(at, _)| at).find(|&at| at >= ms(1300)).unwrap();
                assert!(resumed < ms(1500), "{table} {to:?} {forward}: {resumed:?}");
                let [others, _] = ends(&seen, direction, 0);
                let goes_on = others.iter().filter(|&&(at, _)| ms(1025) < at && at < ms(1300)).count();
                assert!(goes_on > 8, "{goes_on}");
            }
        }
    }
}

#[test]
fn blocks_of_other_users_are_sent_again_during_the_handover() {
    // Each block fails once, and is sent again 12 ms later.
    let harq = json!({"error": "100%", "repetition_error": "0%", "delay": "12ms"});
    for table in [over_cell(harq.clone(), json!({})), radio_access::granted(harq)] {
        let mut bearer = bearer(&table, 2);
        let (_, handover) = handover(1, [1000, 3000], HandoverTo::Cell, true);
        bearer.change(ms(1000), Direction::Down, Change::Handover(handover));
        bearer.enqueue(ms(1010), Direction::Down, &segment(1, 0, 500)).unwrap();
        bearer.enqueue(ms(1100), Direction::Down, &segment(0, 0, 500)).unwrap();
        let (at, _) = bearer.peek_event(ms(2000), Direction::Down).unwrap();
        assert_eq!(bearer.take_segment(Direction::Down).flow, FlowId(0));
        assert!(at < ms(1200), "{table}: {at:?}");
    }
}

#[test]
fn acknowledged_mode_loses_nothing_unless_the_old_controller_does_not_forward() {
    for table in acknowledged() {
        for (to, forward) in ALL {
            let seen = events(&table, 1, vec![handover(0, [1000, 1300], to, forward)]);
            let lost = Direction::BOTH.map(|direction| lost(&seen, direction, 0).len());
            let loses = to == HandoverTo::Controller && !forward;
            assert_eq!(lost.map(|count| count > 0), [loses; 2], "{table} {to:?} {forward}: {lost:?}");
        }
    }
}

#[test]
fn an_old_controller_keeps_no_packet_that_it_does_not_forward() {
    for table in acknowledged() {
        let held = [true, false].map(|forward| {
            let seen = events(&table, 2, vec![handover(1, [1000, 1300], HandoverTo::Controller, forward)]);
            // Packet n is sent at n ms.
            let held = |user| {
                Direction::BOTH.map(|direction| {
                    let [delivered, _] = ends(&seen, direction, user);
                    delivered.iter().filter(|&&(at, number)| at >= ms(1300) && number < 1000).count()
                })
            };
            (held(1), lost(&seen, Direction::Down, 0).len())
        });
        let [(forwarded, _), (kept, of_another_user)] = held;
        assert!(forwarded.iter().sum::<usize>() > 0, "{table}: {forwarded:?}");
        assert_eq!((kept, of_another_user), ([0, 0], 0), "{table}");
    }
}

#[test]
fn unacknowledged_mode_loses_what_is_on_its_way_unless_a_cell_forwards_it() {
    for control in ["credit", "none"] {
        let table = shared("unacknowledged", control);
        let lost = ALL.map(|(to, forward)| {
            // While the first hand-over lasts, packets collect at the base station, from which the second takes them.
            let first = handover(0, [1000, 1300], HandoverTo::Cell, true);
            let seen = events(&table, 1, vec![first, handover(0, [1290, 1400], to, forward)]);
            lost(&seen, Direction::Down, 0);
            let handover = |seen: &&Seen| seen.3 == LinkEvent::Dropped(Cause::Handover);
            seen.iter().filter(handover).filter(|seen| seen.0 == Direction::Down).count()
        });
        assert_eq!(lost[1], 0, "{control}");
        assert!(lost[0] >= 10 && lost[2] >= 10 && lost[3] >= 10, "{control}: {lost:?}");
    }
}

#[test]
fn forwarded_pdus_are_lost_separately_where_the_new_cell_has_smaller_blocks() {
    let mut table = radio_access::without_iub(json!({"error": 0, "limit": 0}));
    table["rlc"] = json!({"mode": "unacknowledged"});
    // Whether the packet is delivered if the channel fades in the given time, ms, and when its fate is known.
    let ends = |fade: [u64; 2]| {
        let mut bearer = radio_access::of_user(&table, 1, FadingKind::None);
        // At 3 dB a block has 13 PDUs of 40 octets; the packet fills 11 PDUs of the block that starts at 2 ms.
        bearer.enqueue(ms(1), Direction::Down, &segment(0, 0, 400)).unwrap();
        let (from, step) = handover(0, [3, 21], HandoverTo::Cell, true);
        bearer.change(ms(from), Direction::Down, Change::Handover(step));
        // At -8 dB a block has one PDU: the new cell sends 11 blocks, from 22 ms until 44 ms.
        let user = CellUser { count: 1, mean_snr: -8.0, doppler: 5.6, fading: FadingKind::None };
        bearer.change(ms(from), Direction::Down, Change::Cell(CellChange::User(0..1, user)));
        let outage = CellChange::Outage(0..1, ms(fade[1]), OutageKind::Fade);
        bearer.change(ms(fade[0]), Direction::Down, Change::Cell(outage));
        let (at, event) = bearer.peek_event(ms(200), Direction::Down).unwrap();
        (event.is_delivery(), at)
    };
    assert_eq!(ends([28, 32]), (false, ms(30)));
    assert_eq!(ends([40, 42]), (false, ms(42)));
    assert_eq!(ends([46, 48]), (true, ms(54)));
}

#[test]
fn no_packet_departs_or_is_freed_twice() {
    for table in [dedicated("acknowledged", "30%"), shared("acknowledged", "none"), granted("acknowledged")] {
        for (to, forward) in ALL {
            let seen = events(&table, 1, vec![handover(0, [500, 700], to, forward)]);
            for event in [LinkEvent::Departed, LinkEvent::Freed] {
                let of = |seen: &&Seen| seen.0 == Direction::Down && seen.3 == event;
                let mut numbers: Vec<_> = seen.iter().filter(of).map(|seen| seen.4).collect();
                let count = numbers.len();
                numbers.sort_unstable();
                numbers.dedup();
                assert_eq!(numbers.len(), count, "{event:?} {to:?} {forward}");
                assert!(count >= 75, "{event:?} {to:?} {forward}: {count}");
            }
        }
    }
}

#[test]
fn a_handover_of_no_time_to_a_cell_that_forwards_is_no_step() {
    for table in acknowledged() {
        // At 1995 ms a packet is on its way; at 15 s nothing is.
        let step = handover(0, [15_000, 15_000], HandoverTo::Cell, true);
        assert_eq!(events(&table, 1, Vec::new()), events(&table, 1, vec![step]), "{table}");
    }
    let dedicated = dedicated("acknowledged", "10%");
    let step = handover(0, [995, 995], HandoverTo::Cell, true);
    assert_eq!(events(&dedicated, 1, Vec::new()), events(&dedicated, 1, vec![step]));
}

#[test]
fn what_has_departed_does_not_wait_again() {
    let mut bearer = bearer(&dedicated("acknowledged", "0%"), 1);
    for number in 0..20 {
        bearer.enqueue(ms(0), Direction::Down, &segment(0, number, 1000)).unwrap();
    }
    let seen = |bearer: &mut ackclock_link::AnyBearer, now| {
        let view = bearer.view(ms(now), Direction::Down, FlowId(0));
        [view.waiting, view.in_transmission, view.unacknowledged].map(|load| load.packets)
    };
    let before = seen(&mut bearer, 101);
    assert!(before[2] > 2, "{before:?}");
    let (from, step) = handover(0, [101, 300], HandoverTo::Controller, true);
    bearer.change(ms(from), Direction::Down, Change::Handover(step));
    // A packet of which a part was sent waits again; a regulator was told that the others have departed.
    assert_eq!(seen(&mut bearer, 102), [before[0] + before[1], 0, before[2]]);
}

#[test]
fn the_rate_is_zero_until_the_handover_ends() {
    for table in acknowledged() {
        let mut bearer = bearer(&table, 2);
        let (from, step) = handover(1, [100, 400], HandoverTo::Cell, true);
        bearer.change(ms(from), Direction::Down, Change::Handover(step));
        for direction in Direction::BOTH {
            let mut rate = |now, user| bearer.view(ms(now), direction, FlowId(user)).rate;
            assert_eq!((rate(399, 1), rate(399, 0) > Rate::ZERO), (Rate::ZERO, true), "{table}");
            assert!(rate(400, 1) > Rate::ZERO, "{table}");
        }
    }
}

#[test]
fn a_handover_within_a_fade_of_the_past_changes_nothing_before_it() {
    let mut bearer = bearer(&dedicated("acknowledged", "0%"), 1);
    bearer.change(ms(0), Direction::Down, Change::Outage(0..1, ms(100), OutageKind::Fade));
    let (from, step) = handover(0, [200, 300], HandoverTo::Cell, true);
    bearer.change(ms(from), Direction::Down, Change::Handover(step));
    // 200 of 1000 ms are missing from the capacity of 384 kbit/s.
    let capacity = bearer.capacity_bps(Time::ZERO + Span::from_secs(1), Direction::Down).unwrap();
    assert!((capacity - 0.8 * 384_000.0).abs() < 1.0, "{capacity}");
}

/// Hand-overs of both users, at most one of a user at a time.
fn handovers() -> impl Strategy<Value = Vec<(u64, Handover)>> {
    let one = (1u64..400, 0u64..400, 0u32..2, select(ALL.to_vec()));
    proptest::collection::vec(one, 1..6).prop_map(|steps| {
        let mut free = [0; 2];
        let mut all = Vec::new();
        for (after, lasts, user, (to, forward)) in steps {
            let from = (free[user as usize] + after).next_multiple_of(5);
            free[user as usize] = from + lasts;
            all.push(handover(user, [from, from + lasts], to, forward));
        }
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), ..ProptestConfig::default() })]

    #[test]
    fn each_packet_is_delivered_once_and_in_order_or_lost_once(
        handovers in handovers(),
        table in select(vec![
            dedicated("acknowledged", "20%"),
            dedicated("unacknowledged", "20%"),
            shared("acknowledged", "credit"),
            shared("acknowledged", "on-off"),
            shared("unacknowledged", "none"),
            with_class(shared("acknowledged", "credit"), json!({"rlc": {"mode": "unacknowledged"}})),
            with_class(shared("unacknowledged", "credit"), json!({"rlc": {"mode": "acknowledged"}})),
            with_class(dedicated("acknowledged", "20%"), json!({})),
            granted("acknowledged"),
            granted("unacknowledged"),
            // The RLC repeats every block that HARQ loses, often in several grants.
            radio_access::granted(json!({"error": "20%", "limit": 0})),
        ]),
    ) {
        let seen = events(&table, 2, handovers);
        for direction in Direction::BOTH {
            for user in 0..2 {
                lost(&seen, direction, user);
            }
        }
    }
}
