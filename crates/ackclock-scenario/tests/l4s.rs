//! L4S: scalable senders over a dual-queue coupled AQM (RFC 9330 to RFC 9332).

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};

/// A link of 40 Mbit/s with a base RTT of 20 ms.
const LINK: &str = r#"
preset = "linux"
duration = "60s"
measure = ["transit"]
[path]
delay = "5ms"
[edge]
buffer = "1000p"
queue = "dualpi2"
[edge.down]
rate = "40Mbit/s"
delay = "5ms"
[edge.up]
rate = "40Mbit/s"
delay = "5ms"
[[flow]]
sender = "prague"
packet = "1500B"
max_window = "4000p"
"#;

/// A classic flow beside the scalable one.
const CLASSIC: &str = r#"
[[flow]]
sender = "cubic"
packet = "1500B"
max_window = "4000p"
"#;

fn result(text: &str, sets: &[&str]) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("l4s.toml", text, &sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &NoFiles, RunOptions::default()).unwrap().result
}

fn goodput(result: &RunResult, flow: usize) -> f64 {
    result.flows[flow].goodput_bps.unwrap()
}

/// Delay of the 99th percentile beyond the 10 ms of propagation and the 0.3 ms of transmission.
fn queueing(result: &RunResult, flow: usize, transmission: f64) -> f64 {
    result.flows[flow].transit_ms.as_ref().unwrap().p99.unwrap() - 10.0 - transmission
}

#[test]
fn prague_alone_fills_the_link_with_a_short_queue() {
    let result = result(LINK, &[]);
    assert!(result.bottleneck.utilisation.unwrap() > 0.9);
    assert!(queueing(&result, 0, 0.3) < 2.0);
    assert_eq!(result.bottleneck.drops, 0);
}

#[test]
fn prague_and_cubic_share_the_link_within_a_factor_of_two() {
    for rate in [4.0, 12.0, 40.0, 120.0, 200.0] {
        let set = format!("edge.down.rate={rate}Mbit/s");
        let result = result(&[LINK, CLASSIC].concat(), &[&set, "duration=100s"]);
        let ratio = goodput(&result, 0) / goodput(&result, 1);
        // The L4S queue stays short beside the classic one, beyond the time of two packets on slow links.
        let low = queueing(&result, 0, 12.0 / rate);
        assert!(low < f64::max(2.0, 3.0 * 12.0 / rate), "{rate}: {low} ms");
        assert!((0.5..=2.0).contains(&ratio), "{rate}: {ratio}");
    }
}

#[test]
fn accurate_and_dctcp_feedback_agree() {
    let with = |ecn: &str| {
        let set = format!(r#"flow.0.sender={{ kind = "dctcp", ecn = "{ecn}" }}"#);
        result(
            LINK,
            &[
                &set,
                "edge.queue={ kind = \"red\", ecn = true, min_threshold = \"20p\", max_threshold = \"40p\", max_probability = 1.0, weight = 1.0 }",
            ],
        )
    };
    let (dctcp, accurate) = (with("dctcp"), with("accurate"));
    assert!((goodput(&accurate, 0) / goodput(&dctcp, 0) - 1.0).abs() < 0.02);
}

/// A drop-tail link whose rate varies between 10 and 30 Mbit/s, with a marker before it.
#[test]
fn a_marker_by_the_predicted_wait_keeps_the_queue_of_prague_short() {
    let varying = [
        "edge.queue=drop-tail",
        r#"edge.down={ kind = "variable", rate = "u(20Mbit/s, 5.77Mbit/s)", delay = "5ms", redraw = "interval(100ms)" }"#,
    ];
    let none = result(LINK, &varying);
    let marked = result(LINK, &[varying[0], varying[1], "edge.regulator=wait-marker"]);
    let [long, short] = [&none, &marked].map(|result| result.bottleneck.queue_ms.mean.unwrap());
    assert!(short < 20.0 && short < long / 4.0, "{short} {long}");
    assert!(goodput(&marked, 0) > 0.8 * goodput(&none, 0), "{} {}", goodput(&marked, 0), goodput(&none, 0));
}

/// The forecast by marks keeps the queue of Prague short and fills the link, steady or varying.
#[test]
fn a_forecast_that_marks_keeps_the_queue_of_prague_short_and_fills_the_link() {
    let varying = r#"edge.down={ kind = "variable", rate = "u(20Mbit/s, 5.77Mbit/s)", delay = "5ms", redraw = "interval(100ms)" }"#;
    for act in ["mark", "both"] {
        let set = format!(r#"edge.regulator={{ kind = "forecast", act = "{act}" }}"#);
        for (link, most_ms) in [("edge.down.delay=5ms", 30.0), (varying, 40.0)] {
            let sets = ["edge.queue=drop-tail", link];
            let (none, marked) = (result(LINK, &sets), result(LINK, &[sets[0], sets[1], &set]));
            let [long, short] = [&none, &marked].map(|result| result.bottleneck.queue_ms.mean.unwrap());
            assert!(short < most_ms && short < long / 4.0, "{act}, {link}: {short} {long}");
            let filled = marked.bottleneck.utilisation.unwrap();
            assert!(filled > 0.9, "{act}, {link}: {filled}");
        }
    }
}

/// With `act = "both"`, marks tell the forecast to Prague and windows to CUBIC without ECN.
#[test]
fn a_forecast_that_marks_and_advertises_windows_regulates_each_sender() {
    let with = |act: &str| {
        let set = format!(r#"edge.regulator={{ kind = "forecast", scope = "queue", act = "{act}" }}"#);
        result(&[LINK, CLASSIC].concat(), &["edge.queue=drop-tail", "edge.down.rate=10Mbit/s", &set])
    };
    let p95 = |act| with(act).bottleneck.queue_ms.p95.unwrap();
    let (mark, both) = (p95("mark"), p95("both"));
    assert!(both < mark / 2.0, "{both} {mark}");
}
