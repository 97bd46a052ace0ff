//! Laws of hand-overs: every regulator of the registry, over each kind of air and both modes of the radio link control.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use ackclock_core::{Config, ReportReason, Span, name_of};
use ackclock_edge::{EdgeConfig, REGULATORS};
use ackclock_testkit::cases;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::every_bearer::edge_over;
use crate::every_regulator::{build, every_regulator};
use crate::laws::{
    Operation, acks_keep_their_order, extra_wakes_change_nothing, nothing_is_lost, operations, run,
};
use crate::reports::over_the_wire;
use crate::windows::{World, steps};

/// An edge with two users of a dedicated channel.
fn table(at: &Value) -> Value {
    over(&bearers("acknowledged")[0].1, at)
}

/// An edge with two users of a bearer.
fn over(bearer: &Value, at: &Value) -> Value {
    json!({"bearer": bearer, "user": [{"count": 2}], "at": at})
}

/// The bearers of UMTS (dedicated channels), HSDPA (a cell behind an Iub with credits) and LTE (grants) in a mode of the
/// radio link control.
fn bearers(mode: &str) -> [(&'static str, Value); 3] {
    let bearer = |keys: Value| {
        let mut bearer = json!({"kind": "radio-access", "rlc": {}});
        keys.as_object().into_iter().flatten().for_each(|(key, value)| bearer[key] = value.clone());
        bearer["rlc"]["mode"] = mode.into();
        bearer
    };
    let cell = json!({"kind": "shared", "delay": "5ms", "harq": {}});
    [
        ("umts", bearer(json!({"air": {"down": {"kind": "dedicated", "delay": "5ms"}}}))),
        ("hsdpa", bearer(json!({"air": {"down": cell}, "iub": {}}))),
        ("lte", bearer(json!({"air": {"down": cell}, "rlc": {"pdu": "grant"}}))),
    ]
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
    let bearer = select(["acknowledged", "unacknowledged"].map(bearers).concat());
    (bearer, select(kinds()), 0u64..300).prop_map(|((_, bearer), kind, lasts)| {
        let step = |(number, time): (u64, u64)| {
            let mut handover = kind.clone();
            handover["user"] = (number % 2).into();
            handover["for"] = format!("{lasts}ms").into();
            json!({"time": format!("{time}ms"), "handover": handover})
        };
        let steps: Value = [(0, 100), (1, 250), (0, 600), (1, 1000), (0, 1700)].map(step).into();
        over(&bearer, &steps)
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

/// Times at which a hand-over of 20 ms starts, ms.
const STARTS: RangeInclusive<u64> = 130..=4000;

/// Each bearer with each kind of hand-over of user 0, one every 130 ms, with a name for messages.
fn each_handover() -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    for (name, bearer) in bearers("acknowledged") {
        for mut kind in kinds() {
            kind["for"] = "20ms".into();
            let steps: Value = STARTS.step_by(130).map(|time| step(time, kind.clone())).collect();
            all.push((name, over(&bearer, &steps)));
        }
    }
    all
}

/// Regulators that clip windows or hold ACKs.
fn regulated() -> [Value; 4] {
    let holding = json!({
        "kind": "ack-rate-control", "alpha": 1.0,
        "min_threshold": 0, "max_threshold": 4, "min_delay": "30ms", "max_delay": "30ms",
    });
    ["wrd".into(), "ack-regulator".into(), "forecast".into(), holding]
}

#[test]
fn over_each_bearer_right_edges_and_acks_never_go_back_and_everything_arrives() {
    let mut held = BTreeSet::new();
    for (bearer, table) in each_handover() {
        for regulator in regulated() {
            let case = format!("{} over {bearer}, {}", name_of(&regulator), table["at"][0]);
            let mut world = World::over(edge_over(&table, 10, build(&regulator)).unwrap(), 0, 1);
            let mut told = world.run_for(Span::from_millis(*STARTS.start()));
            for number in 0..STARTS.step_by(130).count() {
                if world.held() > 0 {
                    held.insert((name_of(&regulator).to_owned(), bearer));
                }
                if number % 4 == 3 {
                    world.go_back();
                }
                told.extend(world.run_for(Span::from_millis(130)));
            }
            let in_order = told.is_sorted_by(|a, b| a.ack <= b.ack && a.edge <= b.edge);
            assert!(in_order && told.len() > 5, "{case}: {}", told.len());
            assert!(world.finish(), "{case}");
            world.run_for(Span::from_secs(2));
            assert_eq!(world.held(), 0, "{case}");
        }
    }
    // ACKs were held when a hand-over started.
    for regulator in ["ack-regulator", "ack-rate-control"] {
        for (bearer, _) in bearers("acknowledged") {
            assert!(held.contains(&(regulator.to_owned(), bearer)), "{held:?}");
        }
    }
}

/// Packets of two flows with their ACKs, one each 4 ms.
fn traffic() -> impl Iterator<Item = (u32, Operation)> {
    (0u8..150).flat_map(|number| {
        let flow = number % 2;
        let data = (4_000, Operation::Data { flow, back: 0, fin: false, ect: false });
        [data, (4_000, Operation::Ack { flow, behind: number % 5, sack: false })]
    })
}

#[test]
fn a_handover_of_no_time_over_an_idle_bearer_is_no_step() {
    let step = json!([step(11_000, json!({"to": "cell", "forward": true, "for": "0s"}))]);
    // 1.2 s of traffic, and again after 20 s.
    let operations: Vec<_> =
        traffic().chain([(20_000_000, Operation::Opaque { flow: 0 })]).chain(traffic()).collect();
    for (name, bearer) in bearers("acknowledged") {
        for regulator in regulated() {
            let seen = |at: &Value| {
                run(&mut edge_over(&over(&bearer, at), 4, build(&regulator)).unwrap(), &operations, 0)
            };
            assert_eq!(seen(&step), seen(&json!([])), "{regulator} over {name}");
        }
    }
}

#[test]
fn over_each_bearer_every_packet_and_ack_is_delivered_or_counted() {
    let operations: Vec<_> = traffic().collect();
    for (_, table) in each_handover() {
        for regulator in regulated() {
            let (name, build) = (regulator.to_string(), || build(&regulator));
            nothing_is_lost(&name, &table, &build, &operations).unwrap();
            extra_wakes_change_nothing(&name, &table, &build, &operations).unwrap();
            let mut edge = edge_over(&table, 4, build()).unwrap();
            acks_keep_their_order(&name, &mut edge, &operations).unwrap();
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
        let table = table(&at);
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
    let mut table = table(&at);
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
        let mut table = table(&at);
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
        (json!([one(0, 1000), one(1, 1100), one(0, 1300), outage(1600)]), None, "accepted"),
    ] {
        let message = refused(at.clone(), bearer);
        assert!(message.contains(expected), "{at}: {message}");
    }
}
