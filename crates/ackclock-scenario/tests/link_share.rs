//! Share of the link capacity that transfers use while they are active.

use ackclock_core::results::{LinkShareResult, RunResult};
use ackclock_scenario::{NoFiles, RunOptions, Scenario, run};

fn result(text: &str, sets: &[&str]) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("share.toml", text, &sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &NoFiles, RunOptions::default()).expect("it runs").result
}

/// Packets of 1000 bytes with 960 of payload. The link is saturated as soon as a file is active.
const FILES: &str = r#"
    duration = "100s"
    measure = ["utilisation"]
    [path]
    rate = "10Mbit/s"
    delay = "10ms"
    [edge]
    buffer = "100p"
    down = { rate = "400kbit/s", delay = "20ms" }
    up = { rate = "400kbit/s", delay = "20ms" }
    at = [
        { time = "10s", set = { down.rate = "0kbit/s" } },
        { time = "15s", set = { down.rate = "800kbit/s" } },
    ]
    [[flow]]
    max_window = "40p"
    start = "5s"
    workload = { kind = "file", size = "480000B" }
"#;

/// Link share and completion time of the only flow, s.
fn file(sets: &[&str]) -> (LinkShareResult, Option<f64>) {
    let flow = result(FILES, sets).flows.remove(0);
    (flow.link.expect("it was asked for"), flow.completion_s)
}

fn near(value: Option<f64>, expected: f64) -> bool {
    within(1e-9, value, expected)
}

/// A separate FIN of 40 bytes adds a millisecond or two to `completion_s`, but not to the transfer's payload.
fn but_for_a_fin(value: Option<f64>, expected: f64) -> bool {
    within(2e-4, value, expected)
}

fn within(error: f64, value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value / expected - 1.0).abs() < error)
}

#[test]
fn what_the_link_could_have_carried_is_its_rates_while_the_file_was_under_way() {
    let (link, done) = file(&[]);
    let done = done.expect("it has time");
    // From 5 to 10 s at 400 kbit/s, 5 s of outage, then 800 kbit/s until the end.
    let could = 5.0 * 400e3 + (done - 10.0) * 800e3;
    assert!(done > 10.0, "{done}");
    assert!(near(link.capacity_bps, could / done), "{link:?} in {done} s");
    // 500 packets of 1000 bytes.
    assert!(near(link.utilisation, 500.0 * 8000.0 / could), "{link:?}");
}

#[test]
fn headers_count_and_repetitions_do_not() {
    // Packets are lost after transmission; the rate is 400 kbit/s all the time.
    let flow = result(FILES, &["edge.at=[]", "edge.down.loss=0.02"]).flows.remove(0);
    assert!(flow.retransmits.unwrap() > 3, "{}", flow.retransmits.unwrap());
    let (link, done) = (flow.link.expect("it was asked for"), flow.completion_s.expect("it has time"));
    assert!(near(link.capacity_bps, 400e3), "{link:?}");
    assert!(near(link.utilisation, 500.0 * 8000.0 / (400e3 * done)), "{link:?}");
}

#[test]
fn what_has_no_end_has_no_share_of_the_link() {
    let nothing = LinkShareResult::default();
    assert_eq!(file(&["duration=20s", "edge.at=[]", "flow.workload.size=4MB"]), (nothing, None));
    assert_eq!(file(&["flow.workload=bulk"]), (nothing, None));
    // Without `measure` there are no results.
    let plain = result(FILES, &["measure=[]"]);
    assert!(plain.flows[0].link.is_none() && !serde_json::to_string(&plain).unwrap().contains("\"link\""));
}

#[test]
fn a_link_whose_rate_is_drawn_for_each_packet_and_was_asked_nothing_yet_tells_nothing() {
    let drawn = "edge.down={ kind = \"variable\", rate = \"u(400kbit/s, 100kbit/s)\" }";
    let (link, done) = file(&["edge.at=[]", drawn]);
    assert!(done.is_some());
    assert_eq!(link, LinkShareResult::default());
    // From time zero on it is what was sent over the time that it took: the harmonic mean of what lies evenly within
    // the square root of 3 of the deviation, 346.4/ln(573.2/226.8) = 373.6 kbit/s; 500 packets are 1.2 % apart in the
    // deviation.
    let (link, _) = file(&["edge.at=[]", drawn, "flow.start=0s"]);
    assert!(within(0.04, link.capacity_bps, 373.6e3), "{link:?}");
}

#[test]
fn an_upload_is_measured_at_the_link_from_the_mobiles() {
    let (link, done) = file(&["flow.towards=server", "edge.at=[]", "edge.up.rate=200kbit/s"]);
    assert!(near(link.capacity_bps, 200e3), "{link:?}");
    assert!(
        but_for_a_fin(link.utilisation, 500.0 * 8000.0 / (200e3 * done.expect("it has time"))),
        "{link:?}"
    );
}

#[test]
fn behind_a_relay_it_is_the_link_with_the_queue() {
    let (link, done) = file(&["relay.core.delay=5ms", "edge.at=[]"]);
    assert!(near(link.capacity_bps, 400e3), "{link:?}");
    assert!(
        but_for_a_fin(link.utilisation, 500.0 * 8000.0 / (400e3 * done.expect("it has time"))),
        "{link:?}"
    );
}

#[test]
fn transfers_that_come_and_go_are_weighed_by_what_the_link_could_have_carried() {
    let ftp = "flow.workload={ kind = \"ftp\", size = \"96000B\" }";
    let result = result(FILES, &[ftp, "edge.at=[]", "duration=2000s"]);
    let [class] = result.transfers.as_slice() else { panic!("{:?}", result.transfers) };
    let link = class.link.expect("it was asked for");
    assert!(class.count > 5, "{}", class.count);
    assert!(near(link.capacity_bps, 400e3), "{link:?}");
    // 100 packets a transfer, in the mean of their times at a rate that is always the same.
    let seconds = class.latency_ms.mean.expect("some ended") / 1e3;
    assert!(near(link.utilisation, 100.0 * 8000.0 / (400e3 * seconds)), "{link:?} {seconds}");
}

#[test]
fn objects_on_one_connection_are_told_apart() {
    // Objects of one packet, several on a connection, each alone on the link: 1000 bytes at 400 kbit/s are 20 ms of its
    // time.
    let web = "flow.workload={ kind = \"web\", page_time = \"e(30s)\", object_time = \"5s\", object_size = \"1p\", \
               max_size = \"1p\", connection_per = \"page\" }";
    let result = result(FILES, &[web, "edge.at=[]", "duration=600s"]);
    let [class] = result.transfers.as_slice() else { panic!("{:?}", result.transfers) };
    let seconds = class.latency_ms.mean.expect("some ended") / 1e3;
    assert!(class.count > 20 && seconds < 0.2, "{class:?}");
    let link = class.link.expect("it was asked for");
    assert!(near(link.utilisation, 0.02 / seconds), "{link:?} {seconds}");
}

#[test]
fn a_cell_tells_nothing_of_single_transfers() {
    let text = r#"
        preset = "cr02"
        duration = "20s"
        measure = ["utilisation"]
        [edge]
        down = { kind = "cell" }
        user = [{ mean_snr = 3 }]
        [[flow]]
        workload = { kind = "file", size = "10kB" }
    "#;
    let flow = result(text, &[]).flows.remove(0);
    assert!(flow.completion_s.is_some());
    assert_eq!(flow.link, Some(LinkShareResult::default()));
}

#[test]
fn asking_a_radio_that_repeats_changes_nothing_else() {
    let radios = [
        "edge.bearer={ kind = \"radio-access\" }",
        "edge.down={ kind = \"power-controlled\" }",
        "edge.down={ kind = \"artificial-delay\", inner = { kind = \"power-controlled\" } }",
    ];
    let text = r#"
        duration = "100s"
        measure = ["utilisation"]
        [path]
        delay = "10ms"
        [edge]
        buffer = "100p"
        [[flow]]
        max_window = "40p"
        start = "5s"
        workload = { kind = "file", size = "480000B" }
    "#;
    for radio in radios {
        let (mut measured, plain) = (result(text, &[radio]), result(text, &[radio, "measure=[]"]));
        let link = measured.flows[0].link.take().expect("it was asked for");
        assert!(link.utilisation.is_some_and(|used| used > 0.3 && used <= 1.0), "{radio}: {link:?}");
        measured.provenance = plain.provenance.clone();
        measured.engine.events = plain.engine.events;
        assert_eq!(measured, plain, "{radio}");
    }
}
