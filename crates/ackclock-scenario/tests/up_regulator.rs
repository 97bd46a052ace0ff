//! Regulators of uploads: `edge.up_regulator`.

use ackclock_core::results::{RunResult, Towards};
use ackclock_edge::REGULATORS;
use ackclock_scenario::{DiskFiles, RunOptions, Scenario, run};

/// Every regulator that may act on uploads, with several tables.
const TABLES: &[&str] = &[
    "\"none\"",
    "\"ack-regulator\"",
    "{ kind = \"ack-regulator\", alpha = 2 }",
    "\"wrs\"",
    "{ kind = \"wrs\", floor = true }",
    "\"wrd\"",
    "{ kind = \"wrd\", count = \"printed\", min_window = 3 }",
    "\"wrb\"",
    "{ kind = \"wrb\", safety = \"100ms\" }",
    "\"forecast\"",
    "{ kind = \"forecast\", scope = \"queue\", reserve = 2 }",
    "{ kind = \"forecast\", act = \"mark\" }",
    "{ kind = \"forecast\", act = \"both\" }",
    "\"ack-rate-control\"",
    "{ kind = \"ack-rate-control\", alpha = 0.5 }",
    "\"wait-marker\"",
    "{ kind = \"wait-marker\", target = \"5ms\" }",
    "\"ack-filter\"",
    "{ kind = \"ack-filter\", mode = \"aggressive\" }",
];

/// Regulators that keep the sender's window within the room of the queue.
const WINDOWS: &[&str] = &["wrs", "wrd", "wrb"];

fn load(text: &str) -> Result<Scenario, String> {
    Scenario::load("up.toml", text, &[]).map_err(|error| error.to_string())
}

fn result(text: &str) -> RunResult {
    let scenario = load(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&scenario, 0, &DiskFiles::in_folder("."), RunOptions::default()).expect("it runs").result
}

/// One flow in either direction over a slow link with a queue of `buffer` packets, and its regulator.
fn one_way(towards: Towards, regulator: &str, sender: &str, buffer: u32) -> RunResult {
    let (data, acks, keys) = match towards {
        Towards::Mobile => ("down", "up", ["buffer", "up_buffer", "regulator"]),
        Towards::Server => ("up", "down", ["up_buffer", "buffer", "up_regulator"]),
    };
    let [own, other, regulated_by] = keys;
    result(&format!(
        "version = 1\npreset = \"cr02\"\nduration = \"300s\"\n[path]\ndelay = \"0s\"\nrate = \"1000Gbit/s\"\n\
         [edge]\n{own} = \"{buffer}p\"\n{other} = \"100p\"\n{regulated_by} = {regulator}\n\
         [edge.{data}]\nkind = \"constant\"\nrate = \"200kbit/s\"\ndelay = \"200ms\"\n\
         [edge.{acks}]\nkind = \"constant\"\nrate = \"64kbit/s\"\ndelay = \"200ms\"\n\
         [[flow]]\nsender = \"{sender}\"\ntowards = \"{}\"\n",
        if towards == Towards::Mobile { "mobile" } else { "server" }
    ))
}

/// The law: nothing but the side differs, so an upload does as the download of which it is the mirror image.
#[test]
fn an_upload_is_regulated_as_its_mirror_image() {
    for regulator in TABLES {
        for sender in ["reno", "sack"] {
            let [down, up] =
                [Towards::Mobile, Towards::Server].map(|way| one_way(way, regulator, sender, 10));
            let case = format!("{regulator} {sender}");
            assert!(down.flows[0].delivered_bytes > 2_000_000, "{case}");
            let measures = |flow: &ackclock_core::results::FlowResult| {
                [flow.goodput_bps.unwrap(), flow.rtt_ms.mean.unwrap(), flow.rtt_ms.p95.unwrap()]
            };
            for (down, up) in measures(&down.flows[0]).into_iter().zip(measures(&up.flows[0])) {
                assert!((down / up - 1.0).abs() < 0.001, "{case}: {down} down, {up} up");
            }
            assert_eq!(down.bottleneck.drops, up.uplink.drops, "{case}");
            let [down, up] = [&down.flows[0], &up.flows[0]].map(|flow| (flow.retransmits, flow.timeouts));
            assert_eq!(down, up, "{case}");
        }
    }
}

/// Every regulator of the registry is either in the mirror law or refused with the reason.
#[test]
fn every_regulator_acts_on_uploads_or_says_why_not() {
    for entry in REGULATORS.entries {
        let text = format!(
            "version = 1\npreset = \"cr02\"\n[edge]\nup_regulator = \"{}\"\n[[flow]]\ntowards = \"server\"\n",
            entry.name
        );
        match load(&text) {
            Ok(_) => assert!(TABLES.contains(&format!("{:?}", entry.name).as_str()), "{}", entry.name),
            Err(error) => assert!(error.contains(&format!("edge.up_regulator: `{}`", entry.name)), "{error}"),
        }
    }
}

#[test]
fn a_window_within_the_room_of_the_uplink_queue_loses_nothing() {
    for regulator in WINDOWS {
        for sender in ["reno", "cubic"] {
            let result = one_way(Towards::Server, &format!("{regulator:?}"), sender, 10);
            assert_eq!(result.flows[0].regulator.as_deref(), Some(*regulator));
            assert_eq!(
                (result.uplink.drops, result.flows[0].retransmits.unwrap()),
                (0, 0),
                "{regulator} {sender}"
            );
        }
        let without = one_way(Towards::Server, "\"none\"", "reno", 10);
        assert!(without.uplink.drops > 0 && without.flows[0].regulator.is_none());
    }
}

/// A download at 4 Mbit/s, and an upload in whose queue of 15 kB, 120 ms, the ACKs of the download wait.
fn both_ways(regulators: &str, upload: &str) -> RunResult {
    result(&format!(
        "version = 1\npreset = \"linux\"\nduration = \"300s\"\n[path]\ndelay = \"10ms\"\n\
         [edge]\nbuffer = \"50p\"\nup_buffer = \"15kB\"\nregulator = \"wrd\"\n{regulators}\n\
         [edge.down]\nrate = \"4Mbit/s\"\ndelay = \"30ms\"\n[edge.up]\nrate = \"1Mbit/s\"\ndelay = \"30ms\"\n\
         [[flow]]\nsender = \"reno\"\n{upload}"
    ))
}

/// Each direction has a regulator of its own. With one for the upload, nearly nothing of the uplink queue's is lost, the ACKs of
/// the download among it, so that the download runs as if it were alone.
#[test]
fn downloads_and_uploads_have_their_own_regulators() {
    const UPLOAD: &str = "[[flow]]\nsender = \"reno\"\ntowards = \"server\"\n";
    let alone = both_ways("", "");
    let [without, with] = ["", "up_regulator = \"wrd\""].map(|regulators| both_ways(regulators, UPLOAD));
    let regulators =
        |result: &RunResult| result.flows.iter().map(|flow| flow.regulator.clone()).collect::<Vec<_>>();
    assert_eq!(regulators(&without), [Some("wrd".to_owned()), None]);
    assert_eq!(regulators(&with), [Some("wrd".to_owned()), Some("wrd".to_owned())]);
    let share =
        |result: &RunResult| result.flows[0].goodput_bps.unwrap() / alone.flows[0].goodput_bps.unwrap();
    assert!(
        share(&with) >= 0.95 && share(&without) < 0.9,
        "{} with, {} without",
        share(&with),
        share(&without)
    );
    assert!(10 * with.uplink.drops < without.uplink.drops, "{} {}", with.uplink.drops, without.uplink.drops);
    assert!(with.uplink.queue_ms.p95.unwrap() <= 120.0, "{:?}", with.uplink.queue_ms);
}

#[test]
fn what_no_uplink_can_have_is_refused() {
    let upload = "[[flow]]\ntowards = \"server\"\n";
    let refused = |edge: &str, flow: &str| {
        load(&format!("version = 1\npreset = \"linux\"\n[edge]\n{edge}\n{flow}")).unwrap_err()
    };
    let none = refused("up_regulator = \"wrd\"", "[[flow]]\n");
    assert!(none.contains("edge.up_regulator: acts on uploads, but there is none"), "{none}");
    let other = refused("regulator = \"wrd\"", upload);
    assert!(other.contains("edge.up_regulator = \"wrd\""), "{other}");
    let key = refused("up_regulator = { kind = \"wrd\", min_windw = 2 }", upload);
    assert!(key.contains("edge.up_regulator") && key.contains("min_windw"), "{key}");
    let box_ =
        refused("bearer = \"observed\"\nup_regulator = \"wrd\"\n[edge.behind]\nbuffer = \"20p\"", upload);
    assert!(box_.contains("edge.up_regulator: a bearer of kind `observed`"), "{box_}");
}
