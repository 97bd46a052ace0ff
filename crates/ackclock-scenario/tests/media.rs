//! Real-time media: use of a constant link, delay, loss, and conservation of packets.

use ackclock_core::results::{FlowResult, MediaResult, RunResult};
use ackclock_scenario::{DiskFiles, RunOptions, Scenario, run};

/// A call over a link of 1 Mbit/s and 40 ms, with keys changed.
const CALL: &str = r#"
    version = 1
    duration = "60s"
    [path]
    delay = "10ms"
    [edge]
    buffer = "100p"
    [edge.down]
    rate = "1Mbit/s"
    delay = "10ms"
    [edge.up]
    rate = "1Mbit/s"
    delay = "10ms"
    [[flow]]
    packet = "1200B"
    workload = { kind = "media", start_rate = "500kbit/s" }
"#;

fn result(text: &str, sets: &[&str]) -> RunResult {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let scenario = Scenario::load("media.toml", text, &sets).expect("a scenario written here");
    let files = DiskFiles::in_folder(".");
    run(&scenario, 0, &files, RunOptions::default()).expect("it runs").result
}

fn media(flow: &FlowResult) -> &MediaResult {
    flow.media.as_deref().expect("a media flow")
}

#[test]
fn a_call_alone_uses_most_of_a_constant_link_without_freezes() {
    let run = result(CALL, &[]);
    let (flow, media) = (&run.flows[0], media(&run.flows[0]));
    // 30 frames per second, and one at the end of the run.
    assert_eq!((flow.sender.as_str(), flow.timeouts, media.frames), ("gcc", None, 1801));
    assert_eq!((media.freezes, media.frames_lost), (0, 0));
    // The target cannot leave the link unused for long, nor exceed it.
    let target = media.target_bps.unwrap();
    assert!((600e3..1e6).contains(&target), "{target}");
    assert!(run.bottleneck.utilisation.unwrap() > 0.6, "{:?}", run.bottleneck.utilisation);
    // 20 ms of path, at most 33 ms of pacer and link for a frame, and what queues before an over-use is noticed.
    let delay = media.frame_delay_ms.p50.unwrap();
    assert!((25.0..90.0).contains(&delay), "{delay}");
}

#[test]
fn what_is_sent_is_received_dropped_or_under_way() {
    for sets in [&["edge.buffer=3p"][..], &["edge.down.loss=0.05"]] {
        let run = result(CALL, sets);
        let (flow, media) = (&run.flows[0], media(&run.flows[0]));
        let gone = media.packets_received + run.bottleneck.drops;
        assert!(run.bottleneck.drops > 0, "{sets:?}");
        // A frame's packets and the queue may be under way at the end.
        assert!((gone..=gone + 110).contains(&flow.segments_sent), "{sets:?}: {flow:?}");
        let frames = media.frames_shown + media.frames_lost;
        assert!((frames..=frames + 60).contains(&media.frames), "{sets:?}: {media:?}");
        assert!(flow.retransmits.unwrap() <= run.bottleneck.drops, "{sets:?}");
    }
}

#[test]
fn lost_packets_are_repaired_once_unless_loss_is_high() {
    let run = result(CALL, &["edge.down.loss=0.01"]);
    let flow = &run.flows[0];
    let lost = flow.segments_sent - media(flow).packets_received;
    assert!(lost > 20 && flow.retransmits.unwrap() > lost / 2, "{flow:?}");
    // Of 1 % of the packets, 1 % are lost twice: few frames of 1800 are.
    assert!(media(flow).frames_lost < 60, "{:?}", media(flow));
    let high = result(CALL, &["edge.down.loss=0.2"]);
    let [target, low] = [&run, &high].map(|run| media(&run.flows[0]).target_bps.unwrap());
    assert!(low < 0.5 * target, "{low} against {target}");
}

#[test]
fn a_download_in_the_same_queue_delays_frames_and_a_separate_queue_does_not() {
    let both = format!("{CALL}\n[[flow]]\nsender = \"cubic\"\nmax_window = \"500p\"\n");
    let [shared, separate] = ["drop-tail", "fq-codel"].map(|queue| {
        let run = result(&both, &[&format!("edge.queue={queue}")]);
        media(&run.flows[0]).frame_delay_ms.p95.unwrap()
    });
    assert!(shared > 3.0 * separate, "{shared} against {separate}");
}

#[test]
fn uploads_and_cells_have_media_too() {
    let up = result(CALL, &["flow.towards=server"]);
    assert!(
        media(&up.flows[0]).frames_shown > 1700 && up.uplink.goodput_bps.unwrap() > 4e5,
        "{:?}",
        up.uplink
    );
    let cell = CALL.replace("[edge.down]\n    rate = \"1Mbit/s\"", "[edge.down]\n    kind = \"cell\"");
    let cell = result(&cell.replace("delay = \"10ms\"\n    [edge.up]", "[edge.up]"), &["duration=10s"]);
    assert!(media(&cell.flows[0]).frames_shown > 0);
}

#[test]
fn a_relay_and_a_tiny_packet_are_refused() {
    let refused = |text: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        Scenario::load("media.toml", text, &sets).unwrap_err().to_string()
    };
    let relay = refused(&format!("{CALL}\n[relay]\ncore = {{ delay = \"1ms\" }}\n"), &[]);
    assert!(relay.contains("a relay splits TCP connections"), "{relay}");
    let tiny = refused(CALL, &["flow.packet=99B"]);
    assert!(tiny.contains("99B is below 100B"), "{tiny}");
    let rate = refused(CALL, &["flow.workload={ kind = \"media\", start_rate = \"3Mbit/s\" }"]);
    assert!(rate.contains("start_rate: 3Mbit/s is not between"), "{rate}");
}
