//! Radio reports leave the edge at their port.

use ackclock_core::{
    Config, Engine, FlowId, Message, Node, Outbox, Port, RadioReport, ReportReason, Segment, Seq, Span,
    Streams, Time,
};
use ackclock_edge::{Edge, EdgeConfig, REPORTS, Surroundings, WIRED};
use ackclock_link::{NoFiles, ReportWire, report_wire};
use serde_json::{Value, json};

/// Collects received reports.
#[derive(Default)]
struct Listens(Vec<(Time, RadioReport)>);

ackclock_core::nodes! {
    enum AnyNode {
        Edge(Edge),
        Wire(ReportWire),
        Listens(Listens),
    }
}

impl Node for Listens {
    fn receive(&mut self, now: Time, _: Port, message: &Message, _: &mut Outbox) {
        if let Message::Report(report) = message {
            self.0.push((now, *report));
        }
    }

    fn wake(&mut self, _: Time, _: &mut Outbox) {}

    fn next_wake(&self) -> Option<Time> {
        None
    }
}

/// Reports received over the path of `[edge.report]` within three seconds, with `packets` of 1000 B queued at the
/// start; the engine is also polled each `step`.
pub(crate) fn over_the_wire(edge: Value, packets: u32, step: Span) -> Vec<(Time, RadioReport)> {
    of_flows(edge, &[packets, 0], &[0, 1], step)
}

/// The same with packets of several flows, which belong to the given users.
fn of_flows(edge: Value, packets: &[u32], users: &[u32], step: Span) -> Vec<(Time, RadioReport)> {
    let table: EdgeConfig = serde_json::from_value(edge).unwrap();
    table.check().unwrap();
    let (streams, around) =
        (Streams::new(1, 0), Surroundings { wired_round_trip: Span::ZERO, packet_bytes: 1000 });
    let mut engine: Engine<AnyNode> = Engine::new(ackclock_core::NullTracer);
    let mut edge = table.build(&streams, &NoFiles, around).unwrap();
    (0..).zip(users).for_each(|(flow, &user)| edge.assign(FlowId(flow), user));
    let edge = engine.add(edge.into());
    let wire = engine.add(table.report.as_ref().unwrap().wire(&streams).unwrap().into());
    let listens = engine.add(Listens::default().into());
    engine.connect((edge, REPORTS), (wire, report_wire::RADIO));
    engine.connect((wire, report_wire::LISTENER), (listens, 0));
    for (flow, number) in
        (0..).zip(packets).flat_map(|(flow, count)| (0..*count).map(move |number| (flow, number)))
    {
        let segment = Segment::data(FlowId(flow), Seq(number * 960), 960, 40);
        engine.inject(Time::ZERO, edge, WIRED, Message::Segment(segment));
    }
    let end = Time::ZERO + Span::from_secs(3);
    let mut now = Time::ZERO;
    while now < end {
        now = end.min(now + step);
        engine.advance(now);
    }
    let AnyNode::Listens(heard) = engine.node(listens) else { panic!("it listens") };
    heard.0.clone()
}

fn schedule() -> Value {
    let link = json!({ "kind": "constant", "rate": "80kbit/s", "delay": "10ms" });
    json!({
        "down": link, "up": link, "buffer": "100p",
        "report": { "every": "1s", "delay": "50ms" },
        "at": [
            { "time": "1s", "set": { "down.rate": "0kbit/s" } },
            { "time": "1500ms", "set": { "down.rate": "160kbit/s" } },
        ],
    })
}

#[test]
fn changes_and_periodic_reports_leave_the_edge_and_come_later_over_a_wire() {
    let heard = over_the_wire(schedule(), 25, Span::from_secs(3));
    let row = |(now, report): &(Time, RadioReport)| {
        let ms = |time: Time| time.as_nanos() / 1_000_000;
        let rate = report.rate.as_bps() / 1000;
        (
            ms(*now),
            report.number,
            ms(report.at),
            report.reason,
            rate,
            report.queued_packets,
            report.queued_bytes,
        )
    };
    let (change, periodic) = (ReportReason::Change, ReportReason::Periodic);
    // 1000 B take 100 ms at 80 kbit/s: at 1 s ten have left, the eleventh has just started, and 14 are queued. From
    // 1.5 s on each takes 50 ms: at 2 s the 21st has just started.
    let expected = [
        (50, 0, 0, periodic, 80, 0, 0),
        (1050, 1, 1000, change, 0, 14, 14_000),
        (1050, 2, 1000, periodic, 0, 14, 14_000),
        (1550, 3, 1500, change, 160, 14, 14_000),
        (2050, 4, 2000, periodic, 160, 4, 4_000),
    ];
    assert_eq!(heard.iter().map(row).collect::<Vec<_>>(), expected);
}

#[test]
fn the_queue_of_a_user_is_reported_once_however_many_flows_share_it() {
    let down = json!({ "kind": "cell", "rates": [{ "rate": "80kbit/s", "snr": -20.0, "probability": 1 }] });
    let mut of_user = down.clone();
    of_user["buffer_per"] = "user".into();
    let rest = json!({ "buffer": "100p", "report": { "every": "100ms" }, "user": [{ "fading": "table" }] });
    let with = |keys: Value| {
        let mut table = keys;
        table.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        table
    };
    for table in [
        with(json!({ "down": down })),
        with(json!({ "down": of_user })),
        with(json!({ "bearer": { "kind": "radio-access" } })),
        with(
            json!({ "bearer": { "kind": "radio-access", "air": { "down": { "kind": "shared" } }, "iub": {} } }),
        ),
    ] {
        let queued = |packets: &[u32]| {
            let heard = of_flows(table.clone(), packets, &vec![0; packets.len()], Span::from_secs(3));
            heard
                .iter()
                .map(|(_, report)| (report.at, report.queued_packets, report.queued_bytes))
                .collect::<Vec<_>>()
        };
        let of_one = queued(&[60]);
        assert!(of_one.iter().any(|&(_, packets, _)| packets > 30), "{table}: {of_one:?}");
        assert_eq!(queued(&[30, 30]), of_one, "{table}");
    }
}

#[test]
fn a_change_is_reported_once_with_its_new_rate() {
    let mut table = schedule();
    table["down"] =
        json!({ "kind": "variable", "rate": "u(400kbit/s, 100kbit/s)", "redraw": "interval(100ms)" });
    table["at"] = json!([]);
    let heard = over_the_wire(table, 100, Span::from_secs(3));
    let changes: Vec<_> = heard.iter().filter(|(_, report)| report.reason == ReportReason::Change).collect();
    // 100 kB take about two seconds.
    assert!(changes.len() > 5, "{changes:?}");
    assert!(changes.windows(2).all(|pair| pair[0].1.rate != pair[1].1.rate));
}

#[test]
fn extra_looks_change_no_report() {
    let mut table = schedule();
    table["report"] = json!({ "every": "20ms", "delay": "e(50ms)", "loss": 0.2 });
    let [seldom, often] =
        [Span::from_secs(3), Span::from_micros(700)].map(|step| over_the_wire(table.clone(), 25, step));
    assert_eq!(seldom, often);
    // Of 150 reports 120, with a deviation of 5.
    assert!(seldom.len().abs_diff(120) < 25, "{}", seldom.len());
}

#[test]
fn in_a_cell_each_user_has_reports_of_its_own() {
    let mut table = schedule();
    table["down"] = json!({ "kind": "cell" });
    table["user"] = json!([{ "count": 2 }]);
    table["at"] = json!([]);
    let heard = over_the_wire(table, 100, Span::from_secs(3));
    let of = |user: u32| {
        let periodic =
            |report: &&RadioReport| report.user == Some(user) && report.reason == ReportReason::Periodic;
        heard.iter().map(|(_, report)| report).filter(periodic).collect::<Vec<_>>()
    };
    assert_eq!([of(0).len(), of(1).len()], [3, 3]);
    assert!(of(1).iter().all(|report| report.queued_packets == 0), "nothing came for the other");
    assert!(heard.iter().any(|(_, report)| report.user == Some(0) && report.queued_packets > 0));
    let numbers: Vec<_> = heard.iter().map(|(_, report)| report.number).collect();
    assert_eq!(numbers, (0..numbers.len() as u32).collect::<Vec<_>>());
}

#[test]
fn a_table_that_asks_for_too_much_is_refused() {
    for (key, value) in
        [("every", json!("0s")), ("every", json!("10us")), ("scale", json!(0)), ("scale", json!(2000))]
    {
        let mut table = schedule();
        table["report"][key] = value.clone();
        let table: EdgeConfig = serde_json::from_value(table).unwrap();
        assert!(table.check().unwrap_err().path.starts_with(&format!("report.{key}")), "{value}");
    }
}

#[test]
fn a_dedicated_channel_and_a_cell_report_their_changes_and_outages() {
    let silent = json!({ "time": "2s", "outage": { "for": "500ms", "kind": "silent", "direction": "down" } });
    let edge = json!({
        "bearer": "radio-access", "report": { "every": "10s", "delay": "0ms" },
        "at": [{ "time": "1s", "set": { "bearer.air.down.rate": "64kbit/s" } }, silent],
    });
    let heard = over_the_wire(edge, 25, Span::from_millis(7));
    let changes = heard.iter().filter(|(_, report)| report.reason == ReportReason::Change);
    let seen: Vec<_> = changes.map(|(_, report)| (report.at, report.user, report.rate.as_bps())).collect();
    let at = |millisecond| Time::ZERO + Span::from_millis(millisecond);
    assert_eq!(seen, [(at(1000), Some(0), 64_000), (at(2000), Some(0), 0), (at(2500), Some(0), 64_000)]);
    // Over a cell the rate is the user's share: what it got, or its channel's mean rate.
    let cell = json!({ "kind": "shared", "rates": [{ "rate": "1Mbit/s", "snr": -10.0 }] });
    let access = json!({ "kind": "radio-access", "air": { "down": cell } });
    for radio in [json!({ "bearer": access }), json!({ "down": { "kind": "cell" } })] {
        let mut edge = radio.clone();
        edge["report"] = json!({ "every": "10s", "delay": "0ms" });
        edge["user"] = json!([{ "fading": "none", "mean_snr": 5.0 }]);
        edge["at"] = json!([silent]);
        let heard = over_the_wire(edge, 25, Span::from_millis(7));
        let changes = heard.iter().filter(|(_, report)| report.reason == ReportReason::Change);
        let seen: Vec<_> =
            changes.map(|(_, report)| (report.at, report.user, report.rate.as_bps() > 0)).collect();
        let at = |millisecond| Time::ZERO + Span::from_millis(millisecond);
        assert_eq!(seen, [(at(2000), Some(0), false), (at(2500), Some(0), true)], "{radio}");
    }
}
