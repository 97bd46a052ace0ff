//! A relay between the wired path and the edge.

use ackclock_core::results::RunResult;
use ackclock_scenario::{DiskFiles, RunOptions, Scenario, run};

const LOSSY: &str = r#"
    version = 1
    preset = "linux"
    duration = "60s"
    [path]
    delay = "100ms"
    [edge]
    buffer = "50p"
    [edge.down]
    rate = "2Mbit/s"
    delay = "30ms"
    loss = 0.01
    [edge.up]
    rate = "1Mbit/s"
    delay = "30ms"
    [[flow]]
    sender = "reno"
"#;

fn result(text: &str, sets: &[&str]) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("relay.toml", text, &sets).expect("a scenario written here");
    run(&scenario, 0, &DiskFiles::in_folder("."), RunOptions::default()).expect("it runs").result
}

#[test]
fn a_split_connection_repairs_losses_of_the_radio_over_its_short_part() {
    let whole = result(LOSSY, &["path.delay=110ms"]);
    let split = result(LOSSY, &["relay.core.delay=10ms"]);
    // A window of W packets a round trip with a loss every 100 packets: the share of the long round trip, 280 ms, is
    // about a third of that of the short one, 80 ms and the queue.
    let [whole, split] = [whole, split].map(|result| result.flows[0].clone());
    let (long, short) = (whole.goodput_bps.unwrap(), split.goodput_bps.unwrap());
    assert!(short > 2.0 * long, "{short} {long}");
    assert_eq!(whole.relay, None);
    let relay = split.relay.expect("there is one");
    let [far, near] = &relay.legs;
    assert_eq!(far.retransmits, 0, "nothing is lost before the relay");
    assert_eq!(Some(near.retransmits), split.retransmits);
    assert_eq!(far.segments_sent + near.segments_sent, split.segments_sent);
    assert!(relay.most_buffered_bytes <= 65_536);
    // Each connection sees its part of the RTT: 200 ms, and 80 ms with the queue.
    assert!((200.0..210.0).contains(&far.rtt_ms.mean.unwrap()), "{:?}", far.rtt_ms);
    assert!((80.0..200.0).contains(&near.rtt_ms.mean.unwrap()), "{:?}", near.rtt_ms);
}

#[test]
fn the_server_is_held_back_by_what_the_relay_holds() {
    for buffer in ["20kB", "200kB"] {
        let result =
            result(LOSSY, &[&format!("relay.buffer={buffer}"), "path.delay=1ms", "edge.down.rate=200kbit/s"]);
        let flow = &result.flows[0];
        let relay = flow.relay.as_ref().expect("there is one");
        let bytes: u64 = buffer.trim_end_matches("kB").parse::<u64>().unwrap() * 1000;
        // Full except for two segments.
        assert!((bytes - 3000..=bytes).contains(&relay.most_buffered_bytes), "{relay:?}");
        let ahead = relay.legs[0].acknowledged_bytes - relay.legs[1].acknowledged_bytes;
        assert!(ahead <= bytes, "{ahead}");
    }
}

#[test]
fn pages_over_a_relay_come_whole() {
    let text = r#"
        version = 1
        preset = "linux"
        duration = "300s"
        [relay]
        core = { delay = "10ms" }
        buffer = "30kB"
        [edge]
        buffer = "50p"
        [edge.down]
        rate = "1Mbit/s"
        delay = "30ms"
        loss = 0.005
        [[flow]]
        count = 4
        workload = { kind = "web", page_time = "e(5s)" }
    "#;
    let result = result(text, &[]);
    let all: Vec<_> = result.transfers.iter().filter(|row| row.user.is_none()).collect();
    let (done, open): (u64, u64) =
        all.iter().fold((0, 0), |(done, open), row| (done + row.count, open + row.unfinished));
    // 240 pages of 5.5 objects, with a deviation of 8 %.
    assert!(done > 900, "{done}");
    assert!(open < 40, "{open}");
}

#[test]
fn a_window_regulator_rules_the_connection_of_the_relay() {
    // Unacknowledged data fills the relay: the default buffer delivers 65 kB per 280 ms.
    let sets = ["relay.core.delay=10ms", "relay.buffer=200kB", "edge.regulator=wrs", "edge.down.loss=0"];
    let result = result(LOSSY, &sets);
    assert_eq!(result.bottleneck.drops, 0);
    assert!(result.bottleneck.utilisation.unwrap() > 0.95, "{:?}", result.bottleneck);
}

#[test]
fn a_sender_of_the_relays_own_has_the_options_of_the_preset() {
    let named = result(LOSSY, &["relay.core.delay=10ms", "relay.sender=reno"]);
    let same = result(LOSSY, &["relay.core.delay=10ms"]);
    // Given explicitly or not, the sender is the Reno of the preset.
    assert_eq!(named.flows, same.flows);
    assert!(named.flows[0].delivered_bytes > 1_000_000);
    let other = result(LOSSY, &["relay.core.delay=10ms", "relay.sender=cubic"]);
    let legs = other.flows[0].relay.as_ref().expect("there is one").legs.each_ref();
    assert_eq!(legs.map(|leg| leg.sender.as_str()), ["reno", "cubic"]);
    assert!(other.flows[0].delivered_bytes > 1_000_000);
}

#[test]
fn a_relay_that_cannot_be_is_refused() {
    for (set, says) in [
        ("relay.buffer=10p", "relay.buffer: 10p is not a size in bytes"),
        ("relay.buffer=100B", "relay.buffer: 100B is less than a full packet"),
        ("relay.sender=renno", "relay.sender"),
        (
            "relay.sender={kind=\"sack\", handshake=\"off\"}",
            "relay.sender.handshake: `off` differs from that of the flow, `on`",
        ),
        ("relay.core.rate=0kbit/s", "relay.core.rate"),
        ("relay.bufer=10kB", "bufer"),
    ] {
        let refusal = Scenario::load("relay.toml", LOSSY, &[set.to_owned()]).unwrap_err().to_string();
        assert!(refusal.contains(says), "{set}: {refusal}");
    }
}

/// The relay also reports the end of the file, whose flow is not one of the short connections.
#[test]
fn a_file_ends_beside_clients_whose_connections_come_and_go() {
    let both = format!(
        "{LOSSY}workload = {{ kind = \"file\", size = \"60kB\" }}\n[[flow]]\nworkload = {{ kind = \"ftp\", interval = \"4s\", size = \"20kB\" }}\n"
    );
    let result = result(&both, &["relay.core.delay=5ms"]);
    assert!(
        result.flows[0].completion_s.is_some() && result.transfers[0].count > 5,
        "{:?}",
        result.transfers
    );
}
