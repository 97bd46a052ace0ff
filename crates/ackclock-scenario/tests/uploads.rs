//! Uploads: flows from the mobile to the server.

use ackclock_core::Span;
use ackclock_core::results::{RunResult, Towards};
use ackclock_scenario::{DiskFiles, Outcome, RunOptions, Scenario, run};
use proptest::prelude::*;

/// An upload at 1 Mbit/s, alone.
const ALONE: &str = r#"
    version = 1
    preset = "linux"
    duration = "60s"
    [edge]
    up_buffer = "50p"
    [edge.down]
    rate = "4Mbit/s"
    delay = "30ms"
    [edge.up]
    rate = "1Mbit/s"
    delay = "30ms"
    [[flow]]
    towards = "server"
    sender = "reno"
"#;

fn load(text: &str, sets: &[&str]) -> Result<Scenario, String> {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    Scenario::load("uploads.toml", text, &sets).map_err(|error| error.to_string())
}

fn outcome(text: &str, sets: &[&str]) -> Outcome {
    let scenario = load(text, sets).expect("a scenario written here");
    let options = RunOptions { series_interval: Some(Span::from_secs(1)), ..RunOptions::default() };
    run(&scenario, 0, &DiskFiles::in_folder("."), options).expect("it runs")
}

fn result(text: &str, sets: &[&str]) -> RunResult {
    outcome(text, sets).result
}

#[test]
fn an_upload_fills_the_link_from_the_mobile_and_says_so() {
    for handshake in ["on", "off"] {
        let handshake_is = format!("flow.0.sender.handshake={handshake}");
        let result = result(ALONE, &[&handshake_is, "flow.0.sender.kind=reno", "duration=600s"]);
        let flow = &result.flows[0];
        assert_eq!((flow.towards, flow.regulator.as_deref()), (Towards::Server, None));
        // 1448 of 1500 bytes are payload of at most 1 Mbit/s: 965.3 kbit/s. The buffer of 50 packets is more than the 8
        // of the pipe, so that half a window fills it. Slow start overshoots it once: a time-out of a second or two, of
        // 600 s, and some 100 packets of 50 000 sent twice.
        let goodput = flow.goodput_bps.unwrap();
        assert!((958_000.0..=965_400.0).contains(&goodput), "{handshake}: {goodput}");
        assert!(result.uplink.utilisation.unwrap() > 0.995 && result.uplink.drops > 0, "{:?}", result.uplink);
        // The downlink carries ACKs of 52 bytes, one for at most two packets.
        assert!(result.bottleneck.utilisation.unwrap() < 0.02 && result.bottleneck.drops == 0);
        assert!(
            flow.rtt_ms.mean.unwrap() > 80.0,
            "10 ms of wire, 30 and 30 of radio, both ways, and the queue"
        );
    }
}

#[test]
fn the_mobile_opens_the_connection_and_an_upload_takes_one_round_trip_more_than_without() {
    let file = "flow.0.workload={kind=\"file\", size=\"1000B\"}";
    let seconds = |handshake: &str| {
        let kind = format!("flow.0.sender={{kind=\"reno\", handshake=\"{handshake}\"}}");
        let result = result(ALONE, &[file, &kind]);
        assert_eq!(result.flows[0].delivered_bytes, 1000);
        result.flows[0].completion_s.unwrap()
    };
    // SYN and answer: 40 ms each way (10 of wire, 30 of radio) and 0.6 ms of transmission.
    let more = seconds("on") - seconds("off");
    assert!((0.080..0.082).contains(&more), "{more}");
}

#[test]
fn uploads_are_measured_and_sampled_as_downloads_are() {
    let Outcome { result, series } = outcome(ALONE, &["measure=[\"transit\", \"ack-gaps\"]"]);
    let flow = &result.flows[0];
    let transit = flow.transit_ms.as_ref().unwrap().mean.unwrap();
    // 40 ms, 12 ms of transmission, and the queue of at most 50 packets.
    assert!((52.0..700.0).contains(&transit), "{transit}");
    let gaps = flow.ack_gap_ms.as_ref().unwrap();
    // An ACK for two packets of 12 ms each.
    assert!((20.0..26.0).contains(&gaps.server.ms.mean.unwrap()), "{gaps:?}");
    let series = series.unwrap();
    assert_eq!(*series.column("flow0.delivered_bytes").unwrap().last().unwrap(), flow.delivered_bytes as f64);
}

#[test]
fn a_regulator_of_downloads_leaves_an_upload_beside_them_alone() {
    for regulator in ackclock_edge::REGULATORS.entries {
        let set = format!("edge.regulator={}", regulator.name);
        let mixed = format!("{ALONE}\n[[flow]]\n");
        // Each has a channel of its own, so that nothing but a regulator could tell the upload of the download.
        let [alone, beside] = ["edge.regulator=none", &set]
            .map(|set| result(&mixed, &["edge.channel=dedicated", "edge.buffer=50p", set]));
        assert_eq!(beside.flows.len(), 2);
        assert_eq!(beside.flows[0], alone.flows[0], "{}", regulator.name);
        assert_eq!(beside.flows[0].regulator, None);
        assert_eq!(beside.flows[1].regulator.as_deref(), Some(regulator.name));
        assert!(beside.flows[1].delivered_bytes > 100_000, "{}", regulator.name);
    }
}

#[test]
fn what_no_upload_can_have_is_refused() {
    let only = load(ALONE, &["edge.regulator=ack-regulator"]).unwrap_err();
    assert!(only.contains("edge.regulator: `ack-regulator` acts on the ACKs of downloads"), "{only}");
    let other = load(ALONE, &["flow.0.towards=sideways"]).unwrap_err();
    assert!(other.contains("towards") && other.contains("mobile"), "{other}");
}

#[test]
fn the_queue_of_the_mobile_holds_what_the_other_does_unless_it_is_said() {
    let left_out = ALONE.replace("up_buffer", "buffer");
    let most = |text: &str, sets: &[&str]| {
        let series = outcome(text, sets).series.unwrap();
        series.column("edge.up.queue_packets").unwrap().iter().copied().fold(0.0, f64::max)
    };
    assert_eq!(result(&left_out, &[]).uplink, result(ALONE, &[]).uplink);
    assert!((40.0..=50.0).contains(&most(&left_out, &[])));
    assert!((10.0..=20.0).contains(&most(&left_out, &["edge.up_buffer=20p"])));
    let said = load(&left_out, &[]).unwrap().configuration();
    assert_eq!(said["edge"]["up_buffer"], "50p");
    assert!(
        load(&left_out, &["flow.0.towards=mobile"]).unwrap().configuration()["edge"]
            .get("up_buffer")
            .is_none()
    );
}

/// Drops of a series row are those since the last row; their sum is the number in the results.
#[test]
fn the_series_has_the_queue_and_the_drops_of_both_directions() {
    let Outcome { result, series } = outcome(&format!("{ALONE}\n[[flow]]\n"), &["edge.buffer=10p"]);
    let series = series.unwrap();
    let sum = |name: &str| series.column(name).unwrap().iter().sum::<f64>();
    assert!(result.bottleneck.drops > 0 && result.uplink.drops > 0);
    assert_eq!(sum("edge.drops"), result.bottleneck.drops as f64);
    assert_eq!(sum("edge.up.drops"), result.uplink.drops as f64);
    let (packets, bytes) = (sum("edge.up.queue_packets"), sum("edge.up.queue_bytes"));
    assert!(packets > 0.0 && bytes > 40.0 * packets && bytes <= 1500.0 * packets);
}

/// Two users of a cell: one downloads, one uploads. Each has a separate uplink.
const IN_A_CELL: &str = r#"
    version = 1
    preset = "linux"
    duration = "60s"
    [edge]
    buffer = "50p"
    [edge.down]
    kind = "cell"
    [edge.up]
    rate = "1Mbit/s"
    delay = "30ms"
    [[edge.user]]
    [[edge.user]]
    [[flow]]
    [[flow]]
    user = 1
    towards = "server"
    sender = "reno"
"#;

#[test]
fn an_upload_in_a_cell_has_the_uplink_of_its_user() {
    let result = result(IN_A_CELL, &["duration=300s"]);
    let flow = &result.flows[1];
    assert_eq!((flow.towards, flow.user), (Towards::Server, 1));
    // 1448 of 1500 bytes of 1 Mbit/s, less slow start and what waits for ACKs while the channel towards the mobile has
    // no rate (3 % of the time).
    let goodput = flow.goodput_bps.unwrap();
    assert!((930_000.0..=965_400.0).contains(&goodput), "{goodput}");
    // Of two uplinks one is full, and one has the ACKs of the download.
    let used = result.uplink.utilisation.unwrap();
    assert!((0.49..0.56).contains(&used), "{used}");
    assert!(result.flows[0].goodput_bps.unwrap() > 100_000.0);
}

#[test]
fn an_upload_over_a_relay_is_two_connections() {
    let relay =
        ["relay.core.delay=10ms", "relay.buffer=64kB", "flow.0.workload={kind=\"file\", size=\"2MB\"}"];
    for handshake in ["on", "off"] {
        let kind = format!("flow.0.sender={{kind=\"reno\", handshake=\"{handshake}\"}}");
        let result =
            result(ALONE, &[&relay[..], &[&kind, "measure=[\"transit\"]", "path.loss=0.01"]].concat());
        let flow = &result.flows[0];
        assert_eq!(flow.delivered_bytes, 2_000_000);
        let relay = flow.relay.as_ref().expect("there is one");
        let [own, on] = &relay.legs;
        assert_eq!((own.acknowledged_bytes, on.acknowledged_bytes), (2_000_000, 2_000_000));
        // The radio is the part of the mobile's own connection: 30 ms at least, beside 10 ms of wire.
        assert!(
            own.transit_ms.as_ref().unwrap().p50.unwrap() > 40.0
                && on.transit_ms.as_ref().unwrap().p50.unwrap() < 40.0
        );
        assert!(on.retransmits > 0, "the wire behind the relay loses");
        assert!(relay.most_buffered_bytes <= 64_000);
    }
}

#[test]
fn transfers_that_come_and_go_are_uploaded_whole() {
    let text = ALONE.replace(
        "sender = \"reno\"",
        "count = 3\nworkload = { kind = \"ftp\", interval = \"5s\", size = \"20kB\" }",
    );
    for relay in [&[][..], &["relay.core.delay=5ms"]] {
        let result = result(&text, &[&["duration=300s"], relay].concat());
        let row = &result.transfers[0];
        assert!(row.count > 150 && row.unfinished <= 6, "{row:?}");
        assert!(result.uplink.utilisation.unwrap() > 0.05);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Each planned flow has a row. A file arrives completely despite losses, whichever end opens the connection.
    #[test]
    fn every_planned_flow_has_a_row_and_every_file_arrives(
        uploads in proptest::collection::vec(any::<bool>(), 1..6),
        handshake in any::<bool>(),
        relay in any::<bool>(),
        dedicated in any::<bool>(),
        sender in prop::sample::select(vec!["reno", "sack", "cubic", "bbr"]),
        loss in 0.0..0.05f64,
        buffer in 5u32..40,
        seed in 0u64..1000,
    ) {
        let mut text = format!(
            "version = 1\npreset = \"linux\"\nduration = \"300s\"\nseed = {seed}\n\
             [path]\nloss = {loss}\n[edge]\nbuffer = \"{buffer}p\"\nup_buffer = \"{buffer}p\"\n\
             channel = \"{}\"\n[edge.down]\nrate = \"2Mbit/s\"\nloss = {loss}\n[edge.up]\nrate = \"1Mbit/s\"\n\
             loss = {loss}\n",
            if dedicated { "dedicated" } else { "shared" },
        );
        if relay {
            text += "[relay]\ncore = { delay = \"5ms\" }\n";
        }
        for upload in &uploads {
            let (towards, on) = (if *upload { "server" } else { "mobile" }, if handshake { "on" } else { "off" });
            text += &format!(
                "[[flow]]\ntowards = \"{towards}\"\nsender = {{ kind = \"{sender}\", handshake = \"{on}\" }}\n\
                 workload = {{ kind = \"file\", size = \"50kB\" }}\n"
            );
        }
        let result = result(&text, &[]);
        prop_assert_eq!(result.flows.len(), uploads.len());
        for (flow, upload) in result.flows.iter().zip(&uploads) {
            prop_assert_eq!(flow.towards == Towards::Server, *upload);
            prop_assert_eq!(flow.delivered_bytes, 50_000);
            prop_assert!(flow.completion_s.is_some());
        }
    }
}
