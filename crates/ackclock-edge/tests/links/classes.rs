//! Classes of service: channels of a user with priorities, weights and radio link control of their own.

use ackclock_core::{FlowId, Span, Time};
use ackclock_link::FadingKind;
use ackclock_link::{AnyBearer, Bearer, Departures, Direction, LinkEvent};
use ackclock_testkit::allocations;
use serde_json::{Value, json};

use crate::common::segment;
use crate::radio_access::{of_user, over_cell, without_iub};

/// A downlink packet that was delivered or dropped.
struct Ended {
    flow: u32,
    after: Span,
    event: LinkEvent,
}

/// Keeps the queues of the flows `full` filled with packets of 1500 bytes, and offers a packet of the flow `single`
/// every 100 ms, until `seconds` have passed. The number of a packet is the millisecond in which it was offered.
fn offer(bearer: &mut AnyBearer, full: &[u32], single: Option<u32>, seconds: u64) -> Vec<Ended> {
    let mut ended = Vec::new();
    for millisecond in 0..seconds * 1000 {
        let now = Time::ZERO + Span::from_millis(millisecond);
        while let Some((at, event)) = bearer.peek_event(now, Direction::Down) {
            let packet = bearer.take_segment(Direction::Down);
            let after = at.since(Time::ZERO + Span::from_millis(packet.seq.0.into()));
            ended.push(Ended { flow: packet.flow.0, after, event });
        }
        while bearer.peek_event(now, Direction::Up).is_some() {
            bearer.take_segment(Direction::Up);
        }
        if let Some(flow) = single.filter(|_| millisecond % 100 == 0) {
            bearer.enqueue(now, Direction::Down, &segment(flow, millisecond as u32, 1500)).unwrap();
        }
        for &flow in full {
            while bearer.enqueue(now, Direction::Down, &segment(flow, millisecond as u32, 1500)).is_ok() {}
        }
    }
    ended
}

fn delivered(ended: &[Ended], flow: u32) -> impl Iterator<Item = &Ended> {
    ended.iter().filter(move |one| one.flow == flow && one.event.is_delivery())
}

/// A cell without chance, as fast as its second but highest rate.
fn steady(scheduler: &str, classes: Value) -> Value {
    let mut table = over_cell(json!({"error": 0}), json!({}));
    table["air"]["down"]["scheduler"] = scheduler.into();
    table["classes"] = classes;
    table
}

/// The same with RLC ends in the base station, whose PDUs fill the blocks that the cell grants.
fn granted(mut table: Value) -> Value {
    table.as_object_mut().unwrap().remove("iub");
    table["rlc"]["pdu"] = "grant".into();
    table
}

/// The table of a class, with the name that it needs.
fn class(name: &str, mut table: Value) -> Value {
    table["name"] = name.into();
    table
}

#[test]
fn a_packet_of_a_class_before_the_others_does_not_wait_for_their_packets() {
    let dedicated = json!({"air": {"down": {"kind": "dedicated", "errors": 0}, "up": {"kind": "dedicated", "errors": 0}}});
    for mut table in [dedicated, steady("pf", Value::Null), granted(steady("pf", Value::Null))] {
        let mean = |table: &Value, full: &[u32]| {
            let mut bearer = of_user(table, 1, FadingKind::None);
            let ended = offer(&mut bearer, full, Some(1), 20);
            let times: Vec<f64> = delivered(&ended, 1).map(|one| one.after.as_millis_f64()).collect();
            assert!(times.len() > 190, "{table}: {}", times.len());
            times.iter().sum::<f64>() / times.len() as f64
        };
        table["classes"] = json!([class("first", json!({"priority": 0}))]);
        let (alone, beside) = (mean(&table, &[]), mean(&table, &[0]));
        assert!(beside <= 1.2 * alone, "{table}: {beside} ms beside others, {alone} alone");
        // With an equal priority the two take turns, so that the packet takes longer.
        table["classes"] = json!([class("equal", json!({}))]);
        let equal = mean(&table, &[0]);
        assert!((1.1 * beside..3.0 * alone).contains(&equal), "{table}: {equal} ms, {beside} before others");
    }
}

#[test]
fn pdus_of_classes_with_equal_priority_alternate_within_a_block() {
    let mut table = without_iub(json!({"error": 0}));
    table["classes"] = json!([class("equal", json!({}))]);
    table["air"]["down"]["delay"] = "u(10ms,5ms)".into();
    let mut bearer = of_user(&table, 1, FadingKind::None);
    // A block has 13 PDUs of 40 octets: 11 of the long packet, and 2 of the short one, which are the second and the fourth.
    // PDUs stay in order, so that the short packet arrives first if one of the last nine PDUs has the largest delay.
    let shorter_first = (0..1000).filter(|&round| {
        let now = Time::ZERO + Span::from_millis(200) * round;
        for (flow, bytes) in [(0, 430), (1, 40)] {
            bearer.enqueue(now, Direction::Down, &segment(flow, round as u32, bytes)).unwrap();
        }
        let [first, second] = [(); 2].map(|()| {
            let (at, _) = bearer.peek_event(now + Span::from_millis(150), Direction::Down).unwrap();
            (at, bearer.take_segment(Direction::Down).flow)
        });
        first.0 < second.0 && first.1 == FlowId(1)
    });
    let share = shorter_first.count() as f64 / 1000.0;
    assert!((share - 9.0 / 13.0).abs() < 0.05, "{share}");
}

#[test]
fn users_are_served_by_the_weights_of_their_classes() {
    let heavy = json!([class("heavy", json!({"weight": 3})), class("light", json!({}))]);
    let ratio = |table: &Value, fading| {
        let mut bearer = of_user(table, 2, fading);
        // Flow 0 and flow 1 belong to different users.
        [(0, 2), (1, 1)].into_iter().for_each(|(flow, class)| bearer.classify(FlowId(flow), class));
        let ended = offer(&mut bearer, &[0, 1], None, 100);
        let [light, heavy] = [0, 1].map(|flow| delivered(&ended, flow).count() as f64);
        heavy / light
    };
    let (none, rayleigh) = (FadingKind::None, FadingKind::Rayleigh);
    for (scheduler, fading) in [("pf", none), ("round-robin", none), ("round-robin", rayleigh)] {
        let table = steady(scheduler, heavy.clone());
        for table in [&table, &granted(table.clone())] {
            let ratio = ratio(table, fading);
            assert!((ratio / 3.0 - 1.0).abs() < 0.1, "{table} {fading:?}: {ratio}");
        }
    }
    // In fading, proportional fair serves the light user where its channel is good, so that its rate falls by less than its
    // claim: with exponentially distributed rates, max (log R1 + 3 log R2) is at R2 = 1.56 R1.
    let ratio = ratio(&steady("pf", heavy.clone()), rayleigh);
    assert!((1.5..2.2).contains(&ratio), "{ratio}");
}

#[test]
fn a_class_without_acknowledgements_loses_what_harq_lost_and_repeats_nothing() {
    // A block is lost with a probability of 20 %, and HARQ repeats nothing, so that only the RLC could.
    let mut table = over_cell(json!({"error": "20%", "limit": 0}), json!({}));
    table["classes"] = json!([class("streaming", json!({"rlc": {"mode": "unacknowledged"}}))]);
    let run = |flow: u32| {
        let mut bearer = of_user(&table, 1, FadingKind::Table);
        let ended = offer(&mut bearer, &[], Some(flow), 60);
        (ended, bearer.gauges(Direction::Down)[3])
    };
    let (ended, repeated) = run(1);
    let lost = ended.iter().filter(|one| matches!(one.event, LinkEvent::Dropped(_))).count();
    assert!(lost > 100 && delivered(&ended, 1).count() > 100, "{lost} of {} lost", ended.len());
    assert!(
        delivered(&ended, 1).all(|one| one.event == LinkEvent::Delivered(ackclock_link::Repetitions::NONE))
    );
    assert_eq!(repeated, 0.0);
    // The unnamed class repeats all of it.
    let (ended, repeated) = run(0);
    assert_eq!(delivered(&ended, 0).count(), ended.len());
    assert!(repeated > 100.0, "{repeated}");
}

#[test]
fn a_status_of_a_class_stays_among_the_pdus_of_the_class() {
    let air = json!({"kind": "dedicated", "errors": 0});
    let classes = json!([class("first", json!({"priority": 0}))]);
    let mut bearer =
        of_user(&json!({"air": {"down": air, "up": air}, "classes": classes}), 1, FadingKind::None);
    for round in 0..2000 {
        let now = Time::ZERO + Span::from_millis(10) * u64::from(round);
        for direction in Direction::BOTH {
            while bearer.peek_event(now, direction).is_some() {
                bearer.take_segment(direction);
            }
        }
        // Uplink TTIs have the STATUS of one class, and data of the other class with room for it.
        bearer.enqueue(now, Direction::Down, &segment(1, round, 200)).unwrap();
        bearer.enqueue(now, Direction::Up, &segment(0, round, 40 + (round * 37 % 200) as u16)).unwrap();
    }
    let resets = Direction::BOTH.map(|direction| bearer.radio(direction, None).unwrap().rlc.resets);
    assert_eq!(resets, [0, 0], "a STATUS about PDUs that were never sent resets the RLC");
}

#[test]
fn packets_of_classes_allocate_nothing_after_warm_up() {
    let mut table = over_cell(json!({"error": "10%"}), json!({}));
    table["classes"] =
        json!([class("a", json!({"priority": 0})), class("b", json!({"rlc": {"mode": "unacknowledged"}}))]);
    let mut bearer = of_user(&table, 2, FadingKind::None);
    bearer.want_departures(Direction::Down, Departures::Watched);
    let mut round = 0;
    let mut offer = |rounds: u32| {
        for _ in 0..rounds {
            let now = Time::ZERO + Span::from_millis(4) * u64::from(round);
            for direction in Direction::BOTH {
                while bearer.peek_event(now, direction).is_some() {
                    bearer.take_segment(direction);
                }
                let _ = bearer.enqueue(now, direction, &segment(round % 6, round, 1000));
            }
            round += 1;
        }
    };
    offer(20_000);
    let before = allocations();
    offer(5_000);
    let made = allocations() - before;
    // A rare row of lost blocks makes a buffer grow.
    assert!(made <= 3, "{made}");
}
