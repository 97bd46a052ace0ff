//! Laws of hand-overs: every regulator of the registry, over both kinds of air and both modes of the radio link control.

use ackclock_core::{Config, ReportReason, Span};
use ackclock_edge::{EdgeConfig, REGULATORS};
use ackclock_testkit::cases;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::every_bearer::edge_over;
use crate::every_regulator::{build, every_regulator};
use crate::laws::{acks_keep_their_order, extra_wakes_change_nothing, nothing_is_lost, operations};
use crate::reports::over_the_wire;
use crate::windows::{World, steps};

/// An edge with two users.
fn table(air: &str, mode: &str, at: &Value) -> Value {
    let down = json!({"kind": air, "delay": "5ms"});
    let rlc = json!({ "mode": mode });
    json!({
        "bearer": {"kind": "radio-access", "rlc": rlc, "air": {"down": down}},
        "user": [{"count": 2}],
        "at": at,
    })
}

/// Kinds of hand-overs: to a cell and to a controller, with and without forwarding, and each state of the regulator.
fn kinds() -> Vec<Value> {
    let cell = [true, false].map(|forward| json!({"to": "cell", "forward": forward}));
    let controller = [true, false].map(|forward| json!({"to": "controller", "forward": forward}));
    let restarts = controller.clone().map(|mut kind| {
        kind["regulator"] = "restarts".into();
        kind
    });
    cell.into_iter().chain(controller).chain(restarts).collect()
}

/// Edges on which a hand-over of each user follows each other, with the kind of the hand-overs and their length.
fn tables() -> impl Strategy<Value = Value> {
    let air = select(vec!["dedicated", "shared"]);
    let mode = select(vec!["acknowledged", "unacknowledged"]);
    (air, mode, select(kinds()), 0u64..300).prop_map(|(air, mode, kind, lasts)| {
        let step = |(number, time): (u64, u64)| {
            let mut handover = kind.clone();
            handover["user"] = (number % 2).into();
            handover["for"] = format!("{lasts}ms").into();
            json!({"time": format!("{time}ms"), "handover": handover})
        };
        let steps: Value = [(0, 100), (1, 250), (0, 600), (1, 1000), (0, 1700)].map(step).into();
        table(air, mode, &steps)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(6), ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_reordered_and_wakes_change_nothing(operations in operations(), table in tables()) {
        for regulator in every_regulator() {
            let (name, build) = (regulator.to_string(), || build(&regulator));
            nothing_is_lost(&name, &table, &build, &operations)?;
            extra_wakes_change_nothing(&name, &table, &build, &operations)?;
            let edge = edge_over(&table, 4, build());
            acks_keep_their_order(&name, &mut edge.expect("the bearer has a queue"), &operations)?;
        }
    }

    #[test]
    fn no_right_edge_moves_left(
        steps in steps(), buffer in 4u32..30, delayed in 1usize..3, scale in 0u8..12, table in tables(),
    ) {
        for regulator in every_regulator() {
            let edge = edge_over(&table, buffer, build(&regulator)).expect("the bearer has a queue");
            let (mut world, mut edge) = (World::over(edge, scale, delayed), 0);
            for step in &steps {
                for told in world.step(*step) {
                    prop_assert!(told.edge >= edge, "{regulator}: {} after {edge}, {table}", told.edge);
                    edge = told.edge;
                }
            }
        }
    }
}

/// A hand-over at `time`, ms.
fn step(time: u64, handover: Value) -> Value {
    json!({"time": format!("{time}ms"), "handover": handover})
}

#[test]
fn a_window_regulator_that_restarts_leaves_running_flows_alone_and_one_that_moves_does_not() {
    let most = |kind: &str, regulator: &str| {
        let at = json!([step(500, json!({"to": "controller", "for": "0s", "regulator": regulator}))]);
        let table = table("dedicated", "acknowledged", &at);
        let edge = edge_over(&table, 10, REGULATORS.resolve(&kind.into()).unwrap()).unwrap();
        let mut world = World::over(edge, 0, 1);
        let told = world.run_for(Span::from_secs(2));
        told.iter().map(|told| told.edge - told.ack).max()
    };
    for kind in ["wrs", "wrd", "wrb", "forecast"] {
        // The receiver's window is 60 000 bytes, the buffer has room for 10 packets of 1040 bytes.
        assert_eq!(most(kind, "restarts"), Some(60_000), "{kind}");
        if kind != "forecast" {
            assert!(most(kind, "moves") < Some(20_000), "{kind}");
        }
    }
}

#[test]
fn the_rate_is_reported_as_zero_at_the_start_and_again_at_the_end() {
    let at = json!([step(1000, json!({"user": 1, "for": "300ms"}))]);
    let mut table = table("dedicated", "acknowledged", &at);
    table["report"] = json!({"every": "1100ms", "delay": "0s"});
    let heard = over_the_wire(table, 0, Span::from_secs(3));
    let about: Vec<_> = heard
        .iter()
        .filter(|(_, report)| report.user == Some(1))
        .map(|(at, report)| (at.as_nanos() / 1_000_000, report.rate.as_bps(), report.reason))
        .collect();
    let (periodic, change) = (ReportReason::Periodic, ReportReason::Change);
    let expected = [
        (0, 384_000, periodic),
        (1000, 0, change),
        (1100, 0, periodic),
        (1300, 384_000, change),
        (2200, 384_000, periodic),
    ];
    assert_eq!(about, expected);
    assert!(
        heard.iter().filter(|(_, report)| report.user == Some(0)).all(|(_, report)| report.rate.as_bps() > 0)
    );
}

#[test]
fn steps_that_make_no_sense_are_refused_with_their_key() {
    let refused = |at: Value, bearer: Option<&str>| {
        let mut table = table("dedicated", "acknowledged", &at);
        if let Some(bearer) = bearer {
            table = json!({"bearer": bearer, "at": at});
        }
        let config: EdgeConfig = serde_json::from_value(table).unwrap();
        config.check().map_or_else(|error| error.to_string(), |()| "accepted".to_owned())
    };
    let one = |user: u32, time| step(time, json!({"user": user, "for": "300ms"}));
    let outage = |time: u64| json!({"time": format!("{time}ms"), "outage": {"for": "100ms"}});
    let both = json!({"time": "1s", "outage": {"for": "1s"}, "handover": {"for": "1s"}});
    let moves = json!({"for": "1s", "regulator": "moves"});
    for (at, bearer, expected) in [
        (
            json!([one(0, 1000), one(0, 1299)]),
            None,
            "at[1].time: 1.299s is within the hand-over of user 0, which ends at 1.3s",
        ),
        (
            json!([one(0, 1000), one(1, 1100), outage(1350)]),
            None,
            "at[2].time: 1.35s is within the hand-over of user 1",
        ),
        (
            json!([step(1000, json!({"for": "0s"})), one(0, 1000)]),
            None,
            "at[1].time: 1s has another hand-over of user 0",
        ),
        (json!([both]), None, "at[0].outage: a step is an outage or a hand-over, not both"),
        (json!([step(1000, moves)]), None, "at[0].handover.regulator: a hand-over to another cell keeps"),
        (
            json!([one(2, 1000)]),
            None,
            "at[0].handover.user: 2 is not the number of a user: there are 2, from 0 to 1",
        ),
        (
            json!([one(0, 1000)]),
            Some("links"),
            "at[0].handover.user: a bearer of kind `links` has no hand-over",
        ),
        (
            json!([one(0, 1000)]),
            Some("umts-rlc-am"),
            "at[0].handover.user: a bearer of kind `umts-rlc-am` has no",
        ),
        (json!([one(0, 1000), one(1, 1100), one(0, 1300), outage(1600)]), None, "accepted"),
    ] {
        let message = refused(at.clone(), bearer);
        assert!(message.contains(expected), "{at}: {message}");
    }
}
