//! A box that only observes passing traffic, on either side of the radio whose queue it regulates.

use std::path::PathBuf;
use std::sync::Arc;

use ackclock_core::results::RunResult;
use ackclock_scenario::{DiskFiles, Files, RunOptions, Scenario, run};

/// The shipped recordings.
struct Shipped;

impl Files for Shipped {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/recordings");
        std::fs::read(folder.join(path)).map(Into::into).map_err(|error| format!("{path}: {error}"))
    }
}

/// A downlink of 2 Mbit/s and a base RTT of 60 ms, of which 20 ms are the wired path.
const RADIO: &str = r#"
buffer = "1000p"
[edge.behind.down]
kind = "constant"
rate = "2Mbit/s"
delay = "20ms"
[edge.behind.up]
kind = "constant"
rate = "1Mbit/s"
delay = "20ms"
"#;

/// A fast downlink whose rate and delay change.
const STARLINK: &str = r#"
[edge.behind]
buffer = "1s"
[edge.behind.down]
kind = "trace"
file = "synthetic:starlink"
delay = "20ms"
[edge.behind.up]
kind = "constant"
rate = "10Mbit/s"
delay = "20ms"
"#;

fn text(edge: &str, behind: &str) -> String {
    format!(
        "preset = \"linux\"\nduration = \"120s\"\n[path]\ndelay = \"10ms\"\n[edge]\n{edge}\n{behind}\n[[flow]]\nsender = \"cubic\"\n"
    )
}

fn observed(edge: &str, sets: &[&str]) -> RunResult {
    result(&text(edge, &format!("[edge.behind]\n{RADIO}")), sets)
}

fn result(text: &str, sets: &[&str]) -> RunResult {
    let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("observed.toml", text, &sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &DiskFiles::in_folder("."), RunOptions::default()).unwrap().result
}

fn network(regulator: &str) -> String {
    format!(
        "buffer = \"20p\"\nregulator = \"{regulator}\"\nbearer = {{ kind = \"observed\", side = \"network\" }}"
    )
}

fn mobile(regulator: &str) -> String {
    format!(
        "buffer = \"20p\"\nregulator = \"{regulator}\"\nbearer = {{ kind = \"observed\", side = \"mobile\" }}"
    )
}

/// The box does not read the queue, so its presence makes no difference.
#[test]
fn the_static_window_regulator_is_the_same_beside_the_queue_and_before_it() {
    let beside = RADIO.replace("edge.behind", "edge").replace("1000p", "20p");
    let beside = result(&text("regulator = \"wrs\"", &beside), &[]);
    let before = observed(&network("wrs"), &[]);
    assert_eq!(before.flows, beside.flows);
    assert_eq!(before.bottleneck, beside.bottleneck);
}

/// The window covers the packets that leave in one RTT, plus 20 packets of 6 ms each in the queue. The first ACKs
/// arrive before the RTT is known.
#[test]
fn the_dynamic_one_fills_the_link_and_no_more_than_its_buffer_from_either_side() {
    for edge in [network("wrd"), mobile("wrd")] {
        let result = observed(&edge, &["edge.bearer.probe=0s"]);
        let used = result.bottleneck.utilisation.unwrap();
        let p95 = result.bottleneck.queue_ms.p95.unwrap();
        assert!(used > 0.99, "{edge}: {used}");
        // A standing queue is probed every 30 s or 10 s, for a few RTTs.
        let probed = observed(&edge, &[]).bottleneck.utilisation.unwrap();
        assert!(probed > 0.94 && probed < used, "{edge}: {probed} with probes, {used} without");
        assert!(p95 > 60.0 && p95 < 22.0 * 6.1, "{edge}: {p95} ms");
        assert_eq!(result.bottleneck.drops, 0, "{edge}");
        let alone = observed(&edge, &["edge.regulator=none"]);
        assert!(
            alone.bottleneck.queue_ms.p95.unwrap() > 5.0 * p95,
            "{edge}: 1000 packets are there to be filled"
        );
    }
}

/// Over a steady link it finds the rate, and queues only its few packets beyond those that leave in one RTT.
#[test]
fn the_forecast_fills_the_link_with_its_few_packets_from_either_side() {
    for edge in [network("forecast"), mobile("forecast")] {
        let result = observed(&edge, &["edge.buffer=1000p"]);
        let used = result.bottleneck.utilisation.unwrap();
        let p95 = result.bottleneck.queue_ms.p95.unwrap();
        assert!(used > 0.95, "{edge}: {used}");
        assert!(p95 < 130.0, "{edge}: {p95} ms of 6 s that the radio could hold");
        assert_eq!((result.bottleneck.drops, result.flows[0].timeouts), (0, Some(0)), "{edge}");
    }
}

/// 20 packets are an eighth of what leaves in the loop of 60 ms at 32 Mbit/s.
#[test]
fn a_buffer_that_follows_fills_a_fast_link_that_a_fixed_one_limits() {
    for edge in [network, mobile] {
        for rate in ["32Mbit/s", "100Mbit/s"] {
            for regulator in ["wrs", "wrd", "forecast"] {
                let radio = format!("edge.behind.down.rate={rate}");
                let sets = [&radio, "edge.behind.up.rate=20Mbit/s", "duration=10s", "edge.behind.buffer=1s"];
                let used = |buffer| {
                    let result = observed(&edge(regulator), &[&sets[..], &[buffer]].concat());
                    result.bottleneck.utilisation.unwrap()
                };
                let (fixed, follows) = (used("edge.buffer=20p"), used("edge.buffer=3bdp"));
                assert!(follows > 0.93, "{} at {rate}: {follows}", edge(regulator));
                if regulator == "wrs" {
                    assert!(fixed < 0.2, "{} at {rate}: {fixed}", edge(regulator));
                }
            }
        }
    }
}

/// Three bandwidth-delay products of 600 kbit/s and 60 ms are 9 packets, so 20 packets remain.
#[test]
fn a_buffer_that_follows_is_never_below_20_packets() {
    for edge in [network, mobile] {
        for regulator in ["wrs", "wrd", "forecast"] {
            let slow = ["edge.behind.down.rate=600kbit/s", "duration=20s"];
            let result = |buffer| observed(&edge(regulator), &[&slow[..], &[buffer]].concat());
            let (fixed, follows) = (result("edge.buffer=20p"), result("edge.buffer=3bdp"));
            assert_eq!(fixed.bottleneck, follows.bottleneck, "{}", edge(regulator));
        }
    }
}

/// The shaper finds 2 Mbit/s from below and from above. It counts an RTT as late if half of it exceeds the usual by 30
/// ms and a packet of 6 ms, so 72 ms are queued, and the rate rises for some more RTTs.
#[test]
fn a_shaper_that_steers_its_rate_finds_that_of_a_steady_link() {
    for (side, base) in [("network", 1), ("network", 4), ("mobile", 1), ("mobile", 4)] {
        let rates = format!("min = \"200kbit/s\", base = \"{base}Mbit/s\", max = \"20Mbit/s\"");
        let bearer = format!("bearer = {{ kind = \"autorate\", side = \"{side}\", {rates} }}");
        let result = observed(&format!("buffer = \"1000p\"\n{bearer}"), &["duration=300s"]);
        let used = result.bottleneck.utilisation.unwrap();
        let p95 = result.bottleneck.queue_ms.p95.unwrap();
        assert!(used > 0.93, "{side} from {base} Mbit/s: {used}");
        assert!(
            (72.0..144.0).contains(&p95),
            "{side} from {base} Mbit/s: {p95} ms of 6 s that the radio could hold"
        );
    }
}

/// 20 packets of an upload are queued for 240 ms in the uplink, and the ACKs behind them. If that were mistaken for a
/// queue before the radio, delays would be 0.94, 1.7 and 0.87 s. About 0.31 s remain, partly due to the initial gain
/// of the forecast, 1.75.
#[test]
fn acks_that_wait_behind_an_upload_are_not_taken_for_a_queue_of_the_download() {
    let upload = format!(
        "[edge.behind]\nup_buffer = \"20p\"\n{RADIO}[[flow]]\nsender = \"cubic\"\ntowards = \"server\"\n"
    );
    for edge in [network("forecast"), mobile("forecast")] {
        let result = result(&text(&edge, &upload), &["edge.buffer=1000p"]);
        let used = result.bottleneck.utilisation.unwrap();
        let p95 = result.bottleneck.queue_ms.p95.unwrap();
        assert!(used > 0.95, "{edge}: {used}");
        assert!(p95 < 350.0, "{edge}: {p95} ms");
    }
}

/// The uplink delay alternates between 20 and 170 ms every 0.7 s. If that were mistaken for a queue, utilisation would
/// be 0.73 and 0.68.
#[test]
fn an_uplink_that_varies_is_not_taken_for_a_queue() {
    let step = |number: u32| {
        let (time, delay) = (700 * number, if number % 2 == 1 { 170 } else { 20 });
        format!("[[edge.behind.at]]\ntime = \"{time}ms\"\nset = {{ \"up.delay\" = \"{delay}ms\" }}\n")
    };
    let steps: String = (1..170).map(step).collect();
    for edge in [network("forecast"), mobile("forecast")] {
        let text = text(&edge, &format!("[edge.behind]\n{RADIO}{steps}"));
        let result = result(&text, &["edge.buffer=1000p"]);
        let used = result.bottleneck.utilisation.unwrap();
        let p95 = result.bottleneck.queue_ms.p95.unwrap();
        assert!(used > 0.97, "{edge}: {used}");
        assert!(p95 < 200.0, "{edge}: {p95} ms");
    }
}

/// Responses of 64 bytes every 250 ms on a separate connection are sent long after their window was advertised. If that
/// gap were mistaken for queueing delay, utilisation on the mobile side would be 0.72.
#[test]
fn a_source_with_nothing_to_send_is_not_taken_for_one_whose_data_waits() {
    let answers = "[[flow]]\nsender = \"cubic\"\nworkload = { kind = \"ftp\", size = \"64B\", interval = \"250ms\", connection_per = \"client\" }\n";
    for edge in [network("forecast"), mobile("forecast")] {
        let text = text(&edge, &format!("[edge.behind]\n{RADIO}{answers}"));
        let used = result(&text, &["edge.buffer=1000p"]).bottleneck.utilisation.unwrap();
        assert!(used > 0.97, "{edge}: {used}");
    }
}

#[test]
fn flows_of_a_user_share_the_buffer_and_are_equal() {
    for edge in [network("wrs"), network("wrd"), mobile("wrs"), mobile("wrd")] {
        let result = observed(&edge, &["flow.0.count=4"]);
        let p95 = result.bottleneck.queue_ms.p95.unwrap();
        assert!(p95 < 26.0 * 6.1, "{edge}: {p95} ms, 20 packets are 120");
        let jain = jain(&result);
        assert!(jain > 0.95, "{edge}: {jain}");
        assert!(result.bottleneck.utilisation.unwrap() > 0.97, "{edge}");
    }
}

/// Half of the flows have an RTT 120 ms longer. With a queue alone the shorter ones are faster.
#[test]
fn flows_over_routes_of_different_lengths_are_about_equal() {
    for (count, least) in [(2, 0.9), (8, 0.95)] {
        let others = format!(
            "[edge.behind]\n{RADIO}[[flow]]\nsender = \"cubic\"\nroute = \"60ms\"\ncount = {count}\n"
        );
        for edge in [network("forecast"), mobile("forecast")] {
            let set = [&*format!("flow.0.count={count}"), "edge.buffer=1000p"];
            let result = result(&text(&edge, &others), &set);
            let used = result.bottleneck.utilisation.unwrap();
            assert!(used > 0.95, "{edge}, {count}: {used}");
            let jain = jain(&result);
            assert!(jain > least, "{edge}, {count}: {jain}");
        }
    }
}

fn jain(result: &RunResult) -> f64 {
    let rates: Vec<f64> = result.flows.iter().map(|flow| flow.goodput_bps.unwrap()).collect();
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
    sum * sum / (rates.len() as f64 * squares)
}

/// Without a probe the box would mistake the longer route for a queue and keep the windows small: 20 packets in 180 ms
/// are 1.3 Mbit/s.
#[test]
fn a_route_that_grows_is_told_from_a_queue_that_stands() {
    let longer = "[[edge.behind.at]]\ntime = \"30s\"\nset = { \"down.delay\" = \"140ms\" }\n";
    let text = text(&mobile("wrd"), &format!("[edge.behind]\n{RADIO}{longer}"));
    let [with, without] = ["10s", "0s"].map(|probe| {
        result(&text, &[&format!("edge.bearer.probe={probe}"), "duration=300s"])
            .bottleneck
            .utilisation
            .unwrap()
    });
    assert!(with > 0.95, "{with}");
    assert!(without < with - 0.05, "{without} without a probe, {with} with");
}

#[test]
fn what_the_radio_drops_is_counted_as_its_own() {
    let result = observed(&network("none"), &["edge.behind.buffer=10p"]);
    assert!(result.bottleneck.drops > 0);
    // Each loss is retransmitted once; the last may not have been yet.
    let waiting = result.bottleneck.drops - result.flows[0].retransmits.unwrap();
    assert!(waiting <= 2, "{} drops, {waiting} not repaired", result.bottleneck.drops);
}

#[test]
fn what_a_box_cannot_do_is_refused_with_the_reason() {
    let plain = format!("[edge.behind]\n{RADIO}");
    for (edge, behind, sets, says) in [
        (
            network("ack-regulator"),
            &*plain,
            &[][..],
            "edge.regulator: `ack-regulator` cannot be used with a bearer of kind `observed`: it acts on the queue itself",
        ),
        (network("snoop"), &plain, &[], "edge.regulator: `snoop` cannot be used"),
        (
            mobile("wrb"),
            &plain,
            &[],
            "edge.regulator: `wrb` cannot be used with a bearer of kind `observed`: it holds ACKs",
        ),
        (
            network("wrd"),
            &plain,
            &["edge.queue=codel"],
            "edge.queue: a bearer of kind `observed` has no radio and no configurable queue",
        ),
        (
            network("wrd"),
            &plain,
            &["edge.buffer=500ms"],
            "edge.buffer: 500ms: a box that only observes takes packets",
        ),
        (network("wrd"), &plain, &["edge.buffer=0p"], "edge.buffer: 0p: "),
        (network("wrs"), &plain, &["edge.buffer=0bdp"], "edge.buffer: 0bdp: "),
        (mobile("forecast"), &plain, &["edge.buffer=0B"], "edge.buffer: 0B: "),
        (network("wrd"), &plain, &["edge.up_buffer=5p"], "edge.up_buffer: "),
        (
            network("wrd"),
            &plain,
            &["edge.down.rate=1Mbit/s"],
            "edge.down: a bearer of kind `observed` does not have this key",
        ),
        (
            network("wrd"),
            &plain,
            &["edge.behind.regulator=wrd"],
            "edge.behind.regulator: `wrd`: the observing box has the regulator",
        ),
        (network("wrd"), &plain, &["edge.behind.bearer=observed"], "edge.behind.bearer: "),
        (
            network("wrd"),
            &plain,
            &["edge.behind.channel=dedicated"],
            "edge.behind.channel: a setting of the observing box",
        ),
        (network("wrd"), &plain, &["edge.behind.down.rate=fast"], "edge.behind.down.rate"),
        (network("wrd"), &plain, &["edge.bearer.probe=10ms"], "edge.bearer.probe: "),
        (
            network("wrd"),
            &plain,
            &["edge.bearer.kind=autorate"],
            "edge.regulator: `wrd` cannot be used with a bearer of kind `autorate`: the bearer regulates traffic itself",
        ),
        (
            network("none").replace("observed", "autorate"),
            &plain,
            &["edge.bearer.base=1Mbit/s"],
            "edge.bearer.base: ",
        ),
        (network("wrd"), "", &[], "edge.behind: the observed radio is missing"),
        ("regulator = \"wrd\"".to_owned(), &plain, &[], "edge.behind: only an observing bearer has a radio"),
    ] {
        let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
        let error = Scenario::load("observed.toml", &text(&edge, behind), &sets).expect_err(says).to_string();
        assert!(error.contains(says), "{error}\nshould say\n{says}");
    }
}

/// The estimates of the box in a series: the rate within a tenth, the RTT within the two packets that a probe leaves in
/// flight.
#[test]
fn a_box_believes_what_is_so() {
    use ackclock_core::Span;
    let text = text(&network("wrd"), &format!("[edge.behind]\n{RADIO}"));
    let scenario = Scenario::load("observed.toml", &text, &[]).unwrap();
    let options = RunOptions { series_interval: Some(Span::from_secs(1)), ..RunOptions::default() };
    let series = run(&scenario, 0, &DiskFiles::in_folder("."), options).unwrap().series.unwrap();
    let last = |name: &str| *series.column(name).unwrap_or_else(|| panic!("{name}")).last().unwrap();
    // Payload of packets of 1500 bytes with 52 of headers.
    let rate = last("edge.down.estimated_rate_bps");
    assert!((rate / (2e6 * 1448.0 / 1500.0) - 1.0).abs() < 0.1, "{rate}");
    let least = last("edge.down.least_loop_ms");
    // 40 ms of radio, 6 ms of transmission down and 0.4 up; the newest of two packets waits 6 ms for the other.
    assert!((40.0..52.5).contains(&least), "{least}");
}

/// A box in a kernel makes one record per millisecond and flow and loses some. Sums and timestamps in the next record make up for it.
#[test]
fn records_that_are_rare_and_get_lost_teach_what_every_packet_teaches() {
    let driving = "[edge.behind]\nbuffer = \"1000p\"\n[edge.behind.down]\nkind = \"trace\"\nfile = \"synthetic-evdo-NAME.down\"\n[edge.behind.up]\nkind = \"constant\"\nrate = \"1Mbit/s\"\ndelay = \"10ms\"\n";
    for regulator in ["wrs", "wrd", "forecast"] {
        for name in ["driving", "walking", "shared"] {
            let text = text(&mobile(regulator), &driving.replace("NAME", name));
            let with = |sets: &[&str]| {
                let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
                let scenario = Scenario::load("records.toml", &text, &sets).unwrap();
                let result = run(&scenario, 0, &Shipped, RunOptions::default()).unwrap().result;
                (result.bottleneck.utilisation.unwrap(), result.bottleneck.queue_ms.p95.unwrap())
            };
            let every = with(&[]);
            let some = with(&["edge.bearer.record_interval=1ms", "edge.bearer.record_loss=0.1"]);
            assert!((some.0 - every.0).abs() <= 0.01, "{regulator}, {name}: {every:?}, {some:?}");
            assert!((some.1 / every.1 - 1.0).abs() <= 0.1, "{regulator}, {name}: {every:?}, {some:?}");
        }
    }
}

/// Over this part of the recording the radio loses the first SYN-ACK. The second one passes the box.
#[test]
fn a_box_that_observes_discards_no_retransmission() {
    for side in [network, mobile] {
        let sets = ["duration=5s", "edge.buffer=3bdp", "edge.behind.down.begin=30s"];
        let used = result(&text(&side("forecast"), STARLINK), &sets).bottleneck.utilisation.unwrap();
        assert!(used > 0.3, "{}: {used}", side("forecast"));
    }
}

/// Over a fast link, a millisecond has ten packets. Idle time among them is seen, so the window does not limit the link.
#[test]
fn records_of_a_millisecond_do_not_limit_a_fast_link() {
    let used = |edge: &str, sender: &str| {
        let sender = format!("flow.sender={sender}");
        let sets = ["duration=30s", "edge.buffer=3bdp", "edge.bearer.record_interval=1ms", &sender];
        result(&text(edge, STARLINK), &sets).bottleneck.utilisation.unwrap()
    };
    for (side, sender) in [(mobile as fn(&str) -> String, "cubic"), (network, "cubic"), (mobile, "bbr")] {
        let (none, forecast) = (used(&side("none"), sender), used(&side("forecast"), sender));
        assert!(forecast >= 0.93 * none, "{}, {sender}: {forecast} of {none}", side("forecast"));
    }
}

/// A box that learns of a packet each millisecond does not know where a sender cut its data.
#[test]
fn packets_that_records_cut_otherwise_leave_the_count_of_the_queue() {
    let lte = STARLINK.replace("starlink", "lte-driving");
    for regulator in ["wrs", "wrd", "forecast"] {
        let used = |interval: &str| {
            let interval = format!("edge.bearer.record_interval={interval}");
            let sets = ["duration=60s", "edge.buffer=3bdp", &interval];
            result(&text(&network(regulator), &lte), &sets).bottleneck.utilisation.unwrap()
        };
        let (every, some) = (used("0s"), used("1ms"));
        assert!((some - every).abs() < 0.03, "{regulator}: {every} with each packet, {some} with records");
    }
}
