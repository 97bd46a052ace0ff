//! Laws that every link obeys with every queue: poll invariance, conservation, order, correct deadlines,
//! repeatability. A failure names the link, the queue and the method.

use crate::common::{
    Outcome, Polling, What, age_limit, aging_queues, drive, every_link, every_queue, link, marked, media,
    micros, pairings, queued_below, segment, turns,
};
use ackclock_core::{Ecn, FlowId, Segment, Span, Time};
use ackclock_link::{Capacity, Cause, Departures, Impairment, Link, LinkEvent, Repetitions};
use ackclock_testkit::cases;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Arrivals of up to three flows in bursts and gaps, some ECN-capable.
fn arrivals() -> impl Strategy<Value = Vec<(Time, Segment)>> {
    let gap = prop_oneof![3 => Just(0u64), 3 => 0u64..3_000, 1 => 0u64..200_000];
    let arrival = (gap, 0u32..3, prop_oneof![Just(40u16), Just(1500), 40u16..1500], any::<bool>());
    prop::collection::vec(arrival, 1..60).prop_map(|arrivals| {
        let mut now = Time::ZERO;
        let place = |(number, (gap, flow, bytes, ect)): (usize, (u64, u32, u16, bool))| {
            now += Span::from_micros(gap);
            let mut segment = segment(flow, number as u32, bytes);
            // All packets of a flow are of one class, L4S or classic.
            segment.ecn = match flow {
                2 => Ecn::Ect1,
                _ if ect => Ecn::Ect0,
                _ => Ecn::NotEct,
            };
            (now, segment)
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

/// Every link with every queue, with a name for messages.
fn every_combination(capacity: Capacity, seed: u64, mut check: impl FnMut(&str, &dyn Fn() -> Box<dyn Link>)) {
    for table in every_link() {
        for queue in every_queue() {
            check(&format!("{table} behind {queue}"), &|| link(&table, &queue, capacity, seed));
        }
    }
}

/// Every link and every queue at least once, in the [`pairings`] of `turn`, with a name for messages.
fn combinations(
    capacity: Capacity,
    seed: u64,
    turn: usize,
    mut check: impl FnMut(&str, &dyn Fn() -> Box<dyn Link>),
) {
    for (table, queue) in pairings(&every_link(), &every_queue(), turn) {
        check(&format!("{table} behind {queue}"), &|| link(&table, &queue, capacity, seed));
    }
}

/// Whether a link delivers packets in order, as all do except those with retransmissions and out-of-sequence delivery.
fn keeps_order(name: &str) -> bool {
    !name.contains("power-controlled") || name.contains("in-sequence")
}

fn play(
    link: &mut dyn Link,
    arrivals: &[(Time, Segment)],
    departures: Departures,
    polling: Polling,
) -> Vec<Outcome> {
    drive(link, arrivals, departures, polling, Time::NEVER)
}

/// Where every segment ended, ordered by number: one end each.
fn ends(seen: &[Outcome]) -> Vec<Outcome> {
    let is_end = |what| !matches!(what, What::Departed | What::Impaired(_));
    let mut ends: Vec<_> = seen.iter().copied().filter(|outcome| is_end(outcome.what)).collect();
    ends.sort_by_key(|outcome| outcome.number);
    ends
}

/// The events without deliveries that the link reports as reordered.
fn without_reordered(seen: &[Outcome]) -> Vec<Outcome> {
    let is_reordered = |at: usize| {
        let before = at.checked_sub(1).map(|before| seen[before].what);
        matches!(before, Some(What::Impaired(Impairment::Reordered { .. })))
    };
    (0..seen.len()).filter(|&at| !is_reordered(at)).map(|at| seen[at]).collect()
}

/// Polls only when due, and checks that nothing happens earlier.
fn deadlines_are_honest(
    name: &str,
    link: &mut dyn Link,
    arrivals: &[(Time, Segment)],
    departures: Departures,
) {
    link.want_departures(departures);
    let mut reached = Time::ZERO;
    for (at, segment) in arrivals {
        while let Some(due) = link.poll_timeout().filter(|due| due <= at) {
            reached = step(name, link, departures, reached, due);
        }
        let _ = link.enqueue(*at, segment);
        reached = *at;
    }
    while let Some(due) = link.poll_timeout() {
        reached = step(name, link, departures, reached, due);
    }
}

/// Advances to the next instant that the link has named.
fn step(name: &str, link: &mut dyn Link, departures: Departures, reached: Time, due: Time) -> Time {
    if due > reached {
        let early = link.peek_event(due - Span::from_nanos(1));
        // If departures are not watched, drops inside the link may be reported late.
        let late = departures == Departures::Unwatched && matches!(early, Some((_, LinkEvent::Dropped(_))));
        assert!(
            early.is_none() || late,
            "{name}: `peek_event` tells {early:?} before {due:?}, which `poll_timeout` named"
        );
    }
    // A drop reported late has an instant in the past; time does not go back.
    let due = due.max(reached);
    let mut told = 0;
    while let Some((at, event, _)) = link.poll_event(due) {
        assert!(at <= due, "{name}: `peek_event` tells {event:?} of {at:?} already at {due:?}");
        told += 1;
    }
    let next = link.poll_timeout().unwrap_or(Time::NEVER);
    assert!(told > 0 || next > due, "{name}: `poll_timeout` names {due:?}, when `peek_event` tells nothing");
    due
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), ..ProptestConfig::default() })]

    #[test]
    fn extra_polls_change_nothing(arrivals in arrivals(), capacity in capacity(), seed in 0u64..1000, turn in turns(), step in 50u64..5_000) {
        let extra = Polling::AlsoEvery(Span::from_micros(step));
        combinations(capacity, seed, turn, |name, build| {
            for departures in [Departures::Watched, Departures::Unwatched] {
                let plain = play(&mut *build(), &arrivals, departures, Polling::AsAsked);
                let polled = play(&mut *build(), &arrivals, departures, extra);
                assert_eq!(ends(&plain), ends(&polled), "{name}: `peek_event` changes what happens");
                if departures == Departures::Watched {
                    assert_eq!(plain, polled, "{name}: `peek_event` changes what is told");
                }
            }
        });
    }

    #[test]
    fn a_view_does_not_hang_on_when_the_link_was_asked(arrivals in arrivals(), capacity in capacity(), seed in 0u64..1000, turn in turns(), step in 50u64..5_000) {
        combinations(capacity, seed, turn, |name, build| {
            let (mut seldom, mut often) = (build(), build());
            let mut reached = Time::ZERO;
            for (at, segment) in &arrivals {
                while reached < *at {
                    reached = (reached + Span::from_micros(step)).min(*at);
                    while often.poll_event(reached).is_some() {}
                }
                while seldom.poll_timeout().is_some_and(|due| due <= *at) {
                    while seldom.poll_event(*at).is_some() {}
                }
                for flow in [FlowId(0), FlowId(1)] {
                    assert_eq!(seldom.view(*at, flow), often.view(*at, flow), "{name}: `view` at {at:?}");
                }
                assert_eq!(seldom.enqueue(*at, segment), often.enqueue(*at, segment), "{name}: `enqueue`");
            }
        });
    }

    #[test]
    fn watching_departures_changes_no_end(arrivals in arrivals(), capacity in capacity(), seed in 0u64..1000, turn in turns()) {
        combinations(capacity, seed, turn, |name, build| {
            let watched = play(&mut *build(), &arrivals, Departures::Watched, Polling::AsAsked);
            let unwatched = play(&mut *build(), &arrivals, Departures::Unwatched, Polling::AsAsked);
            assert_eq!(ends(&watched), ends(&unwatched), "{name}: `want_departures` changes what happens");
        });
    }

    #[test]
    fn every_segment_ends_once_in_order_and_time_goes_on(arrivals in arrivals(), capacity in capacity(), seed in 0u64..1000, turn in turns()) {
        combinations(capacity, seed, turn, |name, build| {
            let seen = play(&mut *build(), &arrivals, Departures::Watched, Polling::AsAsked);
            let numbers: Vec<u32> = ends(&seen).iter().map(|outcome| outcome.number).collect();
            let copies = seen.iter().filter(|outcome| outcome.what == What::Impaired(Impairment::Duplicated));
            let mut entered: Vec<u32> = (0..arrivals.len() as u32).chain(copies.map(|copy| copy.number)).collect();
            entered.sort_unstable();
            assert_eq!(numbers, entered, "{name}: `enqueue` takes what `peek_event` does not give once");
            let events: Vec<_> = seen.iter().filter(|outcome| !matches!(outcome.what, What::Refused(_))).collect();
            assert!(events.is_sorted_by_key(|outcome| outcome.at), "{name}: `peek_event` goes back in time");
            let seen = without_reordered(&seen);
            for what in [What::Departed, What::Delivered] {
                for flow in (0..3).filter(|_| keeps_order(name)) {
                    let of_flow = seen.iter().filter(|outcome| outcome.flow == flow && outcome.what == what);
                    assert!(of_flow.is_sorted_by_key(|outcome| outcome.number), "{name}: `peek_event` reorders flow {flow}");
                }
            }
        });
    }

    #[test]
    fn a_packet_leaves_the_queue_at_the_age_limit(arrivals in arrivals(), capacity in capacity(), seed in 0u64..1000, turn in turns()) {
        for (table, queue) in pairings(&every_link(), &aging_queues(), turn) {
            let limit = age_limit(&queue).unwrap();
            let (mut link, name) = (link(&table, &queue, capacity, seed), format!("{table} behind {queue}"));
            for Outcome { at, number, what, .. } in play(&mut *link, &arrivals, Departures::Watched, Polling::AsAsked) {
                // A copy enters the queue at the time of its original, or later.
                if what == What::Dropped(Cause::Aged) && table.get("duplicate").is_none() {
                    let age = at.since(arrivals[number as usize].0);
                    assert_eq!(age, limit, "{name}");
                }
            }
            // A packet that finds a link of blocks idle leaves the queue at once, and waits for its block.
            let blocks = ["umts-rlc", "power-controlled"].iter().any(|kind| name.contains(kind));
            let most = link.waits().quantile(1.0);
            assert!(blocks || queued_below(&link.waits(), limit), "{name}: {most:?} queued");
        }
    }

    #[test]
    fn deadlines_never_lie(arrivals in arrivals(), capacity in capacity(), seed in 0u64..1000, turn in turns()) {
        combinations(capacity, seed, turn, |name, build| {
            for departures in [Departures::Watched, Departures::Unwatched] {
                deadlines_are_honest(name, &mut *build(), &arrivals, departures);
            }
        });
    }

    #[test]
    fn the_same_seed_gives_the_same_events(arrivals in arrivals(), capacity in capacity(), seed in 0u64..1000, turn in turns()) {
        combinations(capacity, seed, turn, |name, build| {
            let run = || play(&mut *build(), &arrivals, Departures::Watched, Polling::AsAsked);
            assert_eq!(run(), run(), "{name}: `build` gives links that differ");
        });
    }
}

#[test]
fn what_goes_to_the_front_leaves_before_all_of_its_flow_that_wait_and_nothing_is_lost_for_it() {
    let waiting: Vec<_> = (0..12).map(|number| segment(number % 2, number, 1000)).collect();
    every_combination(Capacity::Packets(20), 3, |name, build| {
        // Behind an age limit too few packets leave to tell their order.
        if name.contains("age_limit") {
            return;
        }
        let mut link = build();
        link.want_departures(Departures::Watched);
        let mut ends: Vec<(u32, bool)> = Vec::new();
        for segment in &waiting {
            let refused = link.enqueue(Time::ZERO, segment).is_err();
            ends.extend(refused.then_some((segment.seq.0, false)));
        }
        let urgent = segment(0, 12, 1000);
        link.enqueue_front(Time::ZERO, &urgent).unwrap_or_else(|cause| panic!("{name}: {cause:?}"));
        let (mut delivered, mut entered) = (0, (0..13).collect::<Vec<_>>());
        while let Some(due) = link.poll_timeout() {
            while let Some((_, event, segment)) = link.poll_event(due) {
                match event {
                    LinkEvent::Departed | LinkEvent::Dropped(Cause::Medium) => {
                        ends.push((segment.seq.0, segment.flow == urgent.flow));
                    }
                    // It departed before it arrived with a wrong bit.
                    LinkEvent::Corrupt | LinkEvent::Delivered(_) => delivered += 1,
                    LinkEvent::Dropped(_) => ends.push((segment.seq.0, false)),
                    LinkEvent::Impaired(Impairment::Duplicated) => entered.push(segment.seq.0),
                    LinkEvent::Impaired(Impairment::Reordered { .. }) => {}
                    LinkEvent::Freed => panic!("a link frees a packet when it departs"),
                }
            }
        }
        let left: Vec<_> = ends.iter().filter(|(_, left)| *left).map(|(number, _)| *number).collect();
        // One may have been in transmission.
        assert!(left[..2].contains(&12) || !keeps_order(name), "{name}: `enqueue_front`: {left:?}");
        ends.sort_unstable();
        let numbers: Vec<_> = ends.iter().map(|(number, _)| *number).collect();
        entered.sort_unstable();
        assert_eq!(numbers, entered, "{name}: `enqueue_front` ({delivered} delivered)");
        assert_eq!(link.waiting(Time::from_nanos(u64::MAX / 2)).packets, 0, "{name}: `enqueue_front`");
    });
}

/// The queued packet is short, of another flow and often has a low delay. A link that only knew flows it has
/// transmitted would name the arrival of the first packet, which is too late.
#[test]
fn a_waiting_packet_of_another_flow_may_arrive_first() {
    let table = json!({"kind": "variable", "rate": "u(1Mbit/s, 300kbit/s)", "delay": "1ms + e(5ms)"});
    let mut overtaken = 0;
    for seed in 0..200 {
        let arrivals = [(Time::ZERO, segment(0, 0, 1500)), (Time::ZERO, segment(1, 1, 40))];
        let build = || link(&table, &"drop-tail".into(), Capacity::Unlimited, seed);
        deadlines_are_honest("variable", &mut *build(), &arrivals, Departures::Unwatched);
        let seen = play(&mut *build(), &arrivals, Departures::Unwatched, Polling::AsAsked);
        overtaken += u32::from(seen[0].number == 1);
    }
    assert!(overtaken > 20, "{overtaken} of 200: the case does not occur");
}

#[test]
fn what_a_view_shows_is_what_is_inside() {
    let packets: Vec<_> = (0..40).map(|number| (Time::ZERO, segment(number % 3, number, 1000))).collect();
    every_combination(Capacity::Packets(8), 3, |name, build| {
        let mut link = build();
        let mut entered = 0;
        for (at, segment) in &packets {
            entered += u32::from(link.enqueue(*at, segment).is_ok());
        }
        let mut dropped = 0;
        while let Some((_, event, _)) = link.poll_event(Time::ZERO) {
            dropped += u32::from(matches!(event, LinkEvent::Dropped(_)));
            entered += u32::from(event == LinkEvent::Impaired(Impairment::Duplicated));
        }
        let views: Vec<_> = (0..3).map(|flow| link.view(Time::ZERO, ackclock_core::FlowId(flow))).collect();
        let shown: u32 = views.iter().map(|view| view.waiting.packets).sum();
        // In a cell flows have separate queues, unless the flows of a user share a buffer: there are two users, and
        // flow 2 is of the first.
        let pooled = name.contains("buffer_per");
        let apart = !pooled && (name.contains("\"per\":\"flow\"") || name.contains("\"cell\""));
        let in_transmission = views[0].in_transmission.packets.max(views[1].in_transmission.packets);
        if apart {
            assert_eq!(shown + in_transmission, entered - dropped, "{name}: `view`");
        } else if pooled {
            let of_users = views[0].waiting + views[1].waiting;
            assert_eq!(of_users.packets, entered - dropped, "{name}: `view`");
            assert_eq!(views[2], views[0], "{name}: `view`");
        } else if !["fq-codel", "cake"].iter().any(|fair| name.contains(fair)) {
            assert_eq!(views[0].waiting.packets + in_transmission, entered - dropped, "{name}: `view`");
        }
        assert_eq!(
            link.waiting(Time::ZERO).packets + in_transmission,
            entered - dropped,
            "{name}: `waiting`"
        );
        assert_eq!(views[0].capacity, Capacity::Packets(8), "{name}: `view`");
    });
}

/// Retransmissions of packets that arrive, in order, each sent after the previous ones are finished.
fn one_by_one(link: &mut dyn Link, count: u32) -> Vec<Repetitions> {
    let (mut told, mut now) = (Vec::new(), Time::ZERO);
    for number in 0..count {
        link.enqueue(now, &segment(0, number, 1500)).unwrap();
        while let Some(due) = link.poll_timeout() {
            now = now.max(due);
            while let Some((_, event, _)) = link.poll_event(now) {
                told.extend(if let LinkEvent::Delivered(repeated) = event { Some(repeated) } else { None });
            }
        }
    }
    told
}

/// Whether the link retransmits damaged data, and anything is damaged.
fn repeats(table: &Value) -> bool {
    match table["kind"].as_str() {
        Some("umts-rlc") => table.get("bler").is_some() && table["limit"] != 0,
        Some("power-controlled") => table["arq"] != "none",
        Some("cell") => table.get("harq").is_some(),
        Some("artificial-delay") => repeats(&table["inner"]),
        _ => false,
    }
}

#[test]
fn a_link_that_repeats_tells_it_and_no_other_does() {
    for table in every_link() {
        let told = one_by_one(&mut *link(&table, &"drop-tail".into(), Capacity::Unlimited, 5), 200);
        let again = told.iter().filter(|repeated| repeated.times > 0).count();
        assert_eq!(again > 0, repeats(&table), "{table}: {again} of {} repeated", told.len());
        let later = told.iter().filter(|repeated| repeated.delay > Span::ZERO).count();
        assert_eq!(later > 0, repeats(&table), "{table}: {later} of {} later", told.len());
    }
}

/// A segment comes as it was sent: only a queue that is not drop-tail marks it, only `corrupt` damages it, and each tells so.
#[test]
fn what_is_delivered_is_what_was_sent() {
    let constant = json!({"kind": "constant", "rate": "1Mbit/s"});
    let every = every_link().into_iter().map(|table| (table, json!("drop-tail")));
    let mut delivered = 0;
    for (table, queue) in every.chain(every_queue().into_iter().map(|queue| (constant.clone(), queue))) {
        let mut link = link(&table, &queue, Capacity::Unlimited, 3);
        for number in 0..300 {
            let _ = link.enqueue(micros(u64::from(number) * 5000), &marked(number % 3, number));
            let end = if number == 299 { micros(20_000_000) } else { micros(u64::from(number) * 5000) };
            while let Some((_, event, segment)) = link.poll_event(end) {
                let mut sent = marked(segment.flow.0, segment.seq.0);
                match event {
                    LinkEvent::Delivered(_) => delivered += 1,
                    LinkEvent::Corrupt => sent.corrupt(),
                    _ => continue,
                }
                assert!(event.is_delivery() || table.get("corrupt").is_some(), "{table}: {event:?}");
                if queue != "drop-tail" && sent.ecn == Ecn::Ect0 && segment.ecn == Ecn::Ce {
                    sent.ecn = Ecn::Ce;
                }
                assert_eq!(segment, sent, "{table} behind {queue}: {event:?}");
            }
        }
    }
    assert!(delivered > 5000, "{delivered} delivered");
}

/// Steps of `[[edge.at]]` are refused by the table alone, before anything is built.
#[test]
fn a_link_has_the_medium_that_its_table_says() {
    for table in every_link() {
        let [said, built] = media(&table);
        assert_eq!(said, built, "{table}: `has_medium`");
    }
}

/// Registry entries can be built from their defaults, if these are complete.
#[test]
fn defaults_of_every_entry_are_accepted_or_say_what_is_missing() {
    for entry in ackclock_edge::LINKS.entries {
        match (entry.parse)((entry.defaults)()) {
            Ok(_) => {}
            Err(error) => assert_eq!((entry.name, error.path.as_str()), ("trace", "file")),
        }
    }
    for entry in ackclock_edge::QUEUES.entries {
        assert!((entry.parse)((entry.defaults)()).is_ok(), "{}", entry.name);
        assert!((entry.parse)(Value::Object(Default::default())).is_ok(), "{}", entry.name);
    }
}
