//! Workloads with thousands of short connections.

use ackclock_core::results::TransferResult;
use ackclock_scenario::{DiskFiles, RunOptions, RunResult, Scenario, run};

fn result(text: &str) -> RunResult {
    let scenario = Scenario::load("transfers.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &DiskFiles::in_folder("."), RunOptions::default()).unwrap().result
}

/// 40-byte headers on 1000-byte packets, an initial window of one packet, no loss: the edge serves 1 Mbit/s behind
/// wired paths of 100 Mbit/s and 1 ms; the radio adds 20 ms each way.
const CONSTANT: &str = r#"
[path]
rate = "100Mbit/s"
delay = "1ms"
[edge]
buffer = "1000p"
down = { kind = "constant", rate = "1Mbit/s", delay = "20ms" }
up = { kind = "constant", rate = "1Mbit/s", delay = "20ms" }
"#;

/// Simultaneous pages build a queue of seconds, which must not cause retransmissions.
const PATIENT: &str = "{ kind = \"sack\", rto = { initial = \"30s\", min = \"30s\" } }";

#[test]
fn thousands_of_short_flows_all_arrive_and_nothing_is_lost() {
    let web = r#"{ kind = "web", page_time = "e(4s)" }"#;
    let result = result(&format!(
        "duration = \"4000s\"\n{CONSTANT}\n[[flow]]\ncount = 2\nuser = 7\nsender = {PATIENT}\nworkload = {web}"
    ));
    assert_eq!(result.flows, []);
    let all: u64 = result.transfers.iter().map(|class| class.count).sum();
    let unfinished: u64 = result.transfers.iter().map(|class| class.unfinished).sum();
    // Two clients, a page in 4 s, 5.517 objects a page: 11 034 expected. The number of pages, 2000, has a relative
    // deviation of 1/sqrt(2000) = 2.2 %, that of objects adds 0.9/sqrt(2000) = 2 %: 3 % together.
    assert!((all as f64 / 11_034.0 - 1.0).abs() < 0.12, "{all}");
    assert!(unfinished <= 30, "{unfinished}");
    let [user] = result.users.as_slice() else { panic!("{:?}", result.users) };
    assert_eq!((user.id, u64::from(user.flows)), (7, all + unfinished));
    // Without loss every packet was sent once and carried over the radio, but for those still under way.
    assert_eq!((result.bottleneck.drops, user.retransmits, user.timeouts), (0, 0, 0));
    assert!(user.segments_sent - result.engine.packets <= 30, "{user:?}");
    // 960 bytes of payload a packet, and all objects are whole packets.
    assert!(user.delivered_bytes.abs_diff(result.engine.packets * 960) <= 30 * 960);
    // Classes of all users together only: there is one user.
    assert!(result.transfers.iter().all(|class| class.user.is_none()));
    // Objects of at most 15 packets, 14 400 bytes: P = 0.827, deviation sqrt(0.827 x 0.173/11034) = 0.0036.
    let small: u64 = result
        .transfers
        .iter()
        .filter(|class| class.to_bytes.is_some_and(|to| to <= 15_000))
        .map(|class| class.count)
        .sum();
    assert!((small as f64 / all as f64 - 0.827).abs() < 0.018, "{small} of {all}");
}

/// Latency of a file of this many packets without other traffic, ms.
fn unloaded(packets: u32, sender: &str) -> f64 {
    let result = result(&format!(
        "duration = \"100s\"\n{CONSTANT}\n[[flow]]\nsender = {sender}\nworkload = {{ kind = \"ftp\", size = \"{packets}p\" }}"
    ));
    let [class] = result.transfers.as_slice() else { panic!("{:?}", result.transfers) };
    assert_eq!((class.count, class.unfinished), (1, 0));
    class.latency_ms.mean.unwrap()
}

#[test]
fn an_unloaded_transfer_takes_its_handshake_and_its_rounds_of_slow_start() {
    // A packet's way down: 0.08 ms on the wire, 1 ms, 8 ms on the radio, 20 ms = 29.08 ms. An ACK's way up: 0.32 ms,
    // 20 ms, 0.0032 ms, 1 ms = 21.3232 ms. A round of slow start takes 50.4032 ms.
    let (down, round) = (29.08, 50.4032);
    let reno = "\"reno\"";
    assert!((unloaded(1, reno) - down).abs() < 1e-3);
    // 1 + 2 + 4 packets in three rounds; those of a round leave the radio 8 ms apart. The first ACK of a round lets out
    // two packets, which arrive 8 ms apart; each later pair comes behind. So packet 7 is the fourth of its round.
    assert!((unloaded(3, reno) - (round + down + 8.0)).abs() < 1e-3);
    assert!((unloaded(7, reno) - (2.0 * round + down + 3.0 * 8.0)).abs() < 1e-3);
    // With a handshake first a SYN goes up and its answer down: 40-byte packets take 0.32 ms where data takes 8 ms.
    let handshake = "{ kind = \"reno\", handshake = \"on\" }";
    let syn = 21.3232;
    let syn_ack = 0.0032 + 1.0 + 0.32 + 20.0;
    // The client's ACK of it then lets the first packet out.
    assert!(
        (unloaded(1, handshake) - (syn + syn_ack + syn + down)).abs() < 1e-3,
        "{}",
        unloaded(1, handshake)
    );
}

#[test]
fn an_unrelated_group_changes_nothing() {
    let web = "[[flow]]\nuser = 1\nworkload = { kind = \"web\", page_time = \"e(2s)\" }";
    let ftp = "[[flow]]\nuser = 2\nworkload = \"ftp\"\n[[flow]]\nuser = 3\nworkload = \"file\"";
    let scenario = |flows: &str| {
        let edge = "[path]\nloss = 0.02\n[edge]\nchannel = \"dedicated\"\n[edge.down]\nkind = \"variable\"\nrate = \"2Mbit/s\"\ndelay = \"e(20ms)\"\n";
        result(&format!("duration = \"300s\"\n{edge}{flows}"))
    };
    let (alone, beside) = (scenario(web), scenario(&format!("{web}\n{ftp}")));
    let of_user = beside.transfers.iter().filter(|class| class.user == Some(1));
    let of_user: Vec<_> = of_user.map(|class| TransferResult { user: None, ..class.clone() }).collect();
    assert_eq!(of_user, alone.transfers);
    assert_eq!(alone.users[0], beside.users[0]);
    assert_eq!(beside.users.iter().map(|user| user.id).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn objects_of_a_page_share_a_connection_where_that_is_asked_for() {
    let of = |per: &str| {
        let web = format!("{{ kind = \"web\", connection_per = \"{per}\" }}");
        result(&format!("duration = \"2000s\"\n{CONSTANT}\n[[flow]]\nworkload = {web}"))
    };
    let (object, page) = (of("object"), of("page"));
    let count = |result: &RunResult| result.transfers.iter().map(|class| class.count).sum::<u64>();
    // The same objects; 2000 s / 15 s = 133 pages, deviation 11.5.
    assert_eq!(count(&object), count(&page));
    assert_eq!(object.users[0].delivered_bytes, page.users[0].delivered_bytes);
    assert_eq!(u64::from(object.users[0].flows), count(&object));
    assert!((75..190).contains(&page.users[0].flows), "{}", page.users[0].flows);
}

#[test]
fn a_capture_of_flows_that_come_and_go_names_every_flow_of_every_island_apart() {
    let text =
        "duration = \"200s\"\n[edge]\nchannel = \"dedicated\"\n[[flow]]\ncount = 3\nworkload = \"web\"";
    let scenario = Scenario::load("transfers.toml", text, &[]).unwrap();
    let options = RunOptions { capture: Some(Box::new(std::io::sink())), ..RunOptions::default() };
    let captured = run(&scenario, 0, &DiskFiles::in_folder("."), options).unwrap().result;
    assert_eq!(captured, result(text));
}

#[test]
fn a_program_that_writes_at_a_rate_uses_one_connection() {
    let ftp = r#"{ kind = "ftp", size = "5kB", interval = "100ms", connection_per = "client" }"#;
    let result = result(&format!(
        "duration = \"9950ms\"\n{CONSTANT}\n[[flow]]\nsender = {{ kind = \"sack\", handshake = \"on\" }}\nworkload = {ftp}"
    ));
    let [user] = result.users.as_slice() else { panic!("{:?}", result.users) };
    // Writes at 0, 100, ... 9900 ms, 400 kbit/s of 1 Mbit/s; slow start delays the first ones, not the last ones. Of
    // the last write three packets of 960 bytes arrive in the 50 ms that are left: after 21 ms of wire and radio, 8 ms
    // each.
    assert_eq!((user.flows, user.delivered_bytes, user.retransmits), (1, 99 * 5_000 + 3 * 960, 0));
    let (finished, unfinished) =
        result.transfers.iter().fold((0, 0), |sum, class| (sum.0 + class.count, sum.1 + class.unfinished));
    assert_eq!((finished, unfinished), (99, 1));
}
