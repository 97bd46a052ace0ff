//! The direct-call executor and the event engine give the same results.

use ackclock_core::Span;
use ackclock_scenario::{DiskFiles, RunOptions, Scenario, run};

/// With a capture all islands run in one engine; without one each runs separately.
fn both_ways(text: &str) {
    let scenario = Scenario::load("line.toml", text, &[]).expect("a scenario written here");
    let files = DiskFiles::in_folder(".");
    let options = |capture| RunOptions {
        series_interval: Some(Span::from_millis(500)),
        capture,
        ..RunOptions::default()
    };
    let direct = run(&scenario, 0, &files, options(None)).expect("it runs");
    let engine = run(&scenario, 0, &files, options(Some(Box::new(std::io::sink())))).expect("it runs");
    assert_eq!(
        serde_json::to_string(&direct.result).unwrap(),
        serde_json::to_string(&engine.result).unwrap()
    );
    assert!(direct.result.engine.packets > 100, "{}", direct.result.engine.packets);
    assert!(direct.result.flows.iter().all(|flow| flow.delivered_bytes > 0), "a flow stands still");
    // The columns are compared as text, because missing values are NaN.
    assert_eq!(format!("{:?}", direct.series), format!("{:?}", engine.series));
}

#[test]
fn one_flow_under_every_regulator() {
    for regulator in ackclock_edge::REGULATORS.entries {
        both_ways(&format!(
            r#"
            version = 1
            preset = "cr02"
            duration = "60s"
            [edge]
            buffer = "10p"
            regulator = "{}"
            [edge.down]
            kind = "variable"
            rate = "u(200kbit/s, 50kbit/s)"
            delay = "e(100ms)"
            loss = 0.01
            [[flow]]
            sender = "sack1"
            "#,
            regulator.name
        ));
    }
}

#[test]
fn flows_over_a_relay_on_channels_of_their_own() {
    both_ways(
        r#"
        version = 1
        preset = "linux"
        duration = "20s"
        [path]
        loss = 0.002
        [relay]
        core = { delay = "20ms", loss = 0.01 }
        sender = "reno"
        [edge]
        channel = "dedicated"
        buffer = "30p"
        regulator = "ack-regulator"
        [edge.down]
        kind = "variable"
        rate = "2Mbit/s"
        delay = "e(20ms)"
        [[flow]]
        count = 3
        stagger = "300ms"
        sender = "cubic"
        [[flow]]
        workload = { kind = "web", page_time = "e(2s)" }
        "#,
    );
}

#[test]
fn media_beside_tcp() {
    both_ways(
        r#"
        version = 1
        preset = "linux"
        duration = "20s"
        [path]
        loss = 0.01
        [edge]
        buffer = "30p"
        regulator = "ack-regulator"
        [edge.down]
        kind = "variable"
        rate = "2Mbit/s"
        delay = "e(20ms)"
        [[flow]]
        workload = "media"
        [[flow]]
        sender = "cubic"
        start = "3s"
        [[flow]]
        workload = "media"
        towards = "server"
        "#,
    );
}

#[test]
fn flows_that_share_a_channel_and_flows_that_do_not() {
    for channel in ["shared", "dedicated"] {
        both_ways(&format!(
            r#"
            version = 1
            preset = "linux"
            duration = "20s"
            [path]
            loss = 0.002
            [edge]
            buffer = "30p"
            channel = "{channel}"
            queue = "codel"
            regulator = "ack-regulator"
            [edge.down]
            kind = "variable"
            rate = "2Mbit/s"
            delay = "e(20ms)"
            [[flow]]
            count = 3
            stagger = "300ms"
            sender = "cubic"
            [[flow]]
            sender = "bbr"
            workload = {{ kind = "file", size = "200kB" }}
            "#
        ));
    }
}

#[test]
fn flows_that_come_and_go_over_a_shared_and_over_dedicated_channels() {
    for (channel, per) in [("shared", "object"), ("dedicated", "page")] {
        both_ways(&format!(
            r#"
            version = 1
            preset = "linux"
            duration = "200s"
            [path]
            loss = 0.01
            [edge]
            buffer = "20p"
            channel = "{channel}"
            queue = {{ kind = "drop-tail", per = "flow" }}
            regulator = "ack-regulator"
            [edge.down]
            kind = "variable"
            rate = "1Mbit/s"
            delay = "e(30ms)"
            [[flow]]
            count = 3
            workload = {{ kind = "web", page_time = "e(5s)", connection_per = "{per}", page_time_from = "end" }}
            [[flow]]
            user = 1
            workload = {{ kind = "ftp", interval = "40s" }}
            [[flow]]
            user = 2
            sender = "reno"
            "#
        ));
    }
}

#[test]
fn uploads_beside_downloads() {
    for (channel, handshake) in [("shared", "on"), ("dedicated", "on"), ("shared", "off")] {
        both_ways(&format!(
            r#"
            version = 1
            preset = "linux"
            duration = "60s"
            [path]
            loss = 0.002
            [edge]
            buffer = "30p"
            up_buffer = "20p"
            channel = "{channel}"
            regulator = "ack-regulator"
            [edge.down]
            kind = "variable"
            rate = "2Mbit/s"
            delay = "e(20ms)"
            [edge.up]
            kind = "variable"
            rate = "1Mbit/s"
            delay = "e(20ms)"
            loss = 0.01
            [[flow]]
            sender = {{ kind = "cubic", handshake = "{handshake}" }}
            [[flow]]
            towards = "server"
            sender = {{ kind = "cubic", handshake = "{handshake}" }}
            count = 2
            stagger = "1s"
            [[flow]]
            towards = "server"
            workload = {{ kind = "web", page_time = "e(5s)" }}
            "#
        ));
    }
}
