//! ECN marks reach the sender: the edge sets CE, the receiver echoes ECE, the sender answers with CWR (RFC 3168).

use std::collections::BTreeMap;

use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};
use ackclock_testkit::Written;
use etherparse::{IpEcn, Ipv4Header, TcpHeader};
use pcap_file::pcapng::{Block, PcapNgReader};

/// One flow in congestion avoidance over a buffer of 20 packets, where the round-trip time holds 12: a window of 32
/// packets fills both, and the regulator's target is 2 * (20 + 1) = 42.
const MARKED: &str = r#"
preset = "linux"
duration = "60s"
[path]
delay = "25ms"
[edge]
buffer = "20p"
[edge.down]
rate = "1Mbit/s"
delay = "25ms"
[edge.up]
rate = "10Mbit/s"
delay = "25ms"
[[flow]]
sender = { kind = "sack", ecn = "on" }
"#;

/// ECN-marked packets, by capture interface.
type Signs = BTreeMap<(&'static str, &'static str), u64>;

fn signs(sets: &[&str]) -> (Signs, RunResult) {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("marked.toml", MARKED, &sets).unwrap_or_else(|error| panic!("{error}"));
    let file = Written::default();
    let options = RunOptions { capture: Some(Box::new(file.clone())), ..RunOptions::default() };
    let result = run(&scenario, 0, &NoFiles, options).unwrap().result;
    let (bytes, mut signs) = (file.bytes(), Signs::new());
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let interface = ["server", "client"][packet.interface_id as usize];
        // The payload is not captured.
        let (ip, rest) = Ipv4Header::from_slice(&packet.data).unwrap();
        let (tcp, _) = TcpHeader::from_slice(rest).unwrap();
        let seen = [("ce", ip.ecn == IpEcn::THREE), ("ece", tcp.ece), ("cwr", tcp.cwr)];
        // In a SYN these flags negotiate ECN and do not indicate congestion.
        for (sign, _) in seen.into_iter().filter(|(_, is_there)| *is_there && !tcp.syn) {
            *signs.entry((interface, sign)).or_default() += 1;
        }
    }
    (signs, result)
}

#[test]
fn a_mark_of_the_regulator_or_of_the_queue_leaves_the_edge_and_is_echoed_and_answered() {
    for set in ["edge.regulator=ack-regulator", r#"edge.queue={ kind = "codel", ecn = true }"#] {
        let (signs, _) = signs(&[set]);
        let count = |interface, sign| signs.get(&(interface, sign)).copied().unwrap_or(0);
        let marked = count("client", "ce");
        assert!(marked >= 3, "{set}: {signs:?}");
        // The server marks nothing itself.
        assert_eq!(count("server", "ce"), 0, "{set}: {signs:?}");
        // Each mark is echoed until the sender answers it, once a window (RFC 3168 section 6.1.2).
        assert!(count("server", "ece") >= count("server", "cwr"), "{set}: {signs:?}");
        assert!((1..=marked).contains(&count("client", "cwr")), "{set}: {signs:?}");
    }
}

#[test]
fn nothing_is_marked_for_a_sender_that_is_not_capable_or_by_a_regulator_that_is_told_not_to() {
    for sets in [
        &["edge.regulator=ack-regulator", r#"flow.0.sender={ kind = "sack", ecn = "off" }"#][..],
        &[r#"edge.regulator={ kind = "ack-regulator", ecn = "ignore" }"#],
    ] {
        let (signs, result) = signs(sets);
        // An ECN-capable sender also sets CWR after a reduction for a loss (RFC 3168 section 6.1.2).
        let marks: Vec<_> = signs.keys().filter(|(_, sign)| *sign != "cwr").collect();
        assert!(marks.is_empty(), "{sets:?}: {signs:?}");
        assert_eq!(signs.is_empty(), sets.len() == 2, "{sets:?}: {signs:?}");
        assert!(result.bottleneck.drops >= 3, "{sets:?}: one packet is let drop instead");
    }
}

#[test]
fn an_ack_of_the_regulator_echoes_congestion_that_no_packet_met() {
    let (signs, _) = signs(&[r#"edge.regulator={ kind = "ack-regulator", ecn = "echo-ack" }"#]);
    let count = |interface, sign| signs.get(&(interface, sign)).copied().unwrap_or(0);
    assert_eq!((count("client", "ce"), count("client", "ece")), (0, 0), "{signs:?}");
    // One ACK for each answer.
    assert!(count("server", "ece") >= 3, "{signs:?}");
    assert_eq!(count("server", "ece"), count("client", "cwr"), "{signs:?}");
}
