//! The bearer of several users: each user has the events that it would have alone.

use ackclock_core::{FlowId, Span, Streams, Time};
use ackclock_link::queue::QUEUES;
use ackclock_link::{
    AnyBearer, BEARERS, Bearer, BearerContext, BearerLinks, BufferMeaning, Capacity, CellUser, Departures,
    Direction, LINKS, LinkEvent, QueuePlan,
};
use serde_json::{Value, json};

use crate::common::{MadeUp, segment};

/// The bearer of a table with `users` users, each with one flow.
fn bearer(table: &Value, users: u32) -> AnyBearer {
    let mut table = table.clone();
    table["kind"] = "radio-access".into();
    let streams = &Streams::new(7, 0);
    let link = json!({"kind": "constant"});
    let links = BearerLinks { down: LINKS.resolve(&link).unwrap(), up: LINKS.resolve(&link).unwrap() };
    let queue = QUEUES.resolve(&"drop-tail".into()).unwrap();
    let plan = |name: &str| QueuePlan::new(queue.clone(), Capacity::Packets(50), streams, name);
    let (down, up, meaning, files) =
        (&plan("down/queue"), &plan("up/queue"), BufferMeaning::Waiting, &MadeUp);
    let config = BEARERS.resolve(&table).unwrap();
    let served = config.serving(&[CellUser { count: users, ..CellUser::default() }]).unwrap().unwrap();
    let mut bearer = served.build(&links, BearerContext { down, up, meaning, streams, files }).unwrap();
    (0..users).for_each(|user| bearer.assign(FlowId(user), user));
    bearer
}

/// Sends packets of each user in both directions every 20 ms for two seconds; returns the events.
fn events(bearer: &mut AnyBearer, users: u32) -> Vec<(u32, Time, LinkEvent, u32)> {
    bearer.want_departures(Direction::Down, Departures::Watched);
    let mut seen = Vec::new();
    for round in 0..400u32 {
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

#[test]
fn users_draw_errors_of_their_own() {
    let mut seen = events(&mut bearer(&json!({}), 2), 2);
    let second: Vec<_> = seen.extract_if(.., |&mut (user, ..)| user == 1).map(|(_, at, ..)| at).collect();
    let first: Vec<_> = seen.into_iter().map(|(_, at, ..)| at).collect();
    assert_ne!(first, second);
}
