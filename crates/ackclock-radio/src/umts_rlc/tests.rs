use super::config::Batch;
use super::*;
use ackclock_core::{Config as _, FlowId, Segment, Seq, Streams};
use ackclock_link::queue::DropTailConfig;
use ackclock_link::{
    AnyLink, BufferMeaning, Capacity, Cause, DeliveryOrder, Files, Link, LinkConfig, LinkContext, LinkEvent,
    NoFiles, QueuePlan,
};

/// 384 kbit/s and 20 ms: a block has 960 bytes. No further delay.
fn table() -> UmtsRlcConfig {
    UmtsRlcConfig { delay: Span::ZERO, ..UmtsRlcConfig::default() }
}

fn link(config: &UmtsRlcConfig) -> AnyLink {
    let streams = Streams::new(1, 0);
    let queue = QueuePlan::new(
        std::sync::Arc::new(DropTailConfig::default()),
        Capacity::Unlimited,
        &streams,
        "down/queue",
    );
    let meaning = BufferMeaning::Waiting;
    config.check().unwrap();
    config.build(LinkContext { queue, meaning, streams: &streams, name: "down", files: &NoFiles }).unwrap()
}

struct Written;

impl Files for Written {
    fn read(&self, path: &str) -> Result<std::sync::Arc<[u8]>, String> {
        Ok(path.as_bytes().into())
    }
}

/// A link whose blocks that end in interval n of 20 ms fail if digit n of `errors` is 1.
fn scripted(errors: &str, config: UmtsRlcConfig) -> AnyLink {
    scripted_by(errors, "20ms", config)
}

fn scripted_by(errors: &str, interval: &str, mut config: UmtsRlcConfig) -> AnyLink {
    let table = serde_json::json!({ "kind": "recording", "file": errors, "interval": interval });
    config.bler = serde_json::from_value(table).unwrap();
    let streams = Streams::new(1, 0);
    let queue = QueuePlan::new(
        std::sync::Arc::new(DropTailConfig::default()),
        Capacity::Unlimited,
        &streams,
        "down/queue",
    );
    let meaning = BufferMeaning::Waiting;
    config.build(LinkContext { queue, meaning, streams: &streams, name: "down", files: &Written }).unwrap()
}

/// Sends packets of these sizes (with headers) at time zero; returns number, millisecond and event of each.
fn outcomes(mut link: AnyLink, sizes: &[u16]) -> Vec<(u32, u64, LinkEvent)> {
    for (number, size) in (0..).zip(sizes) {
        link.enqueue(Time::ZERO, &Segment::data(FlowId(0), Seq(number), size - 40, 40)).unwrap();
    }
    let end = Time::ZERO + Span::from_secs(100);
    let events = std::iter::from_fn(|| link.poll_event(end));
    let plain = |event: LinkEvent| if event.is_delivery() { DELIVERED } else { event };
    events.map(|(at, event, segment)| (segment.seq.0, at.as_nanos() / 1_000_000, plain(event))).collect()
}

use LinkEvent::Dropped;
const DELIVERED: LinkEvent = LinkEvent::DELIVERED;

#[test]
fn a_block_takes_the_start_of_the_next_packet_that_waits() {
    // 1440 bytes are a block and a half: two packets are three blocks. The third packet is 480 of the 960 bytes of the
    // fourth.
    let came = outcomes(link(&table()), &[1440, 1440, 480]);
    assert_eq!(came, [(0, 40, DELIVERED), (1, 60, DELIVERED), (2, 80, DELIVERED)]);
}

#[test]
fn the_last_block_is_padded_where_nothing_waits() {
    let mut link = link(&table());
    let packet = |number| Segment::data(FlowId(0), Seq(number), 60, 40);
    link.enqueue(Time::ZERO, &packet(0)).unwrap();
    link.enqueue(Time::ZERO + Span::from_millis(10), &packet(1)).unwrap();
    let end = Time::ZERO + Span::from_secs(1);
    let times: Vec<_> =
        std::iter::from_fn(|| link.poll_event(end)).map(|(at, ..)| at.as_nanos() / 1_000_000).collect();
    // The second found the transmitter busy with a block that had room, and is queued for its own.
    assert_eq!(times, [20, 40]);
}

#[test]
fn a_block_that_failed_is_sent_again_before_new_ones() {
    // Packets of a block each. The first fails at 20 ms and may be retransmitted at 80; until then 1, 2 and 3 are
    // sent.
    let sizes = [960; 5];
    let config = UmtsRlcConfig { order: DeliveryOrder::OutOfSequence, ..table() };
    let came = outcomes(scripted("0100000000000000000000000", config), &sizes);
    let order: Vec<_> = came.iter().map(|&(number, at, _)| (number, at)).collect();
    assert_eq!(order, [(1, 40), (2, 60), (3, 80), (0, 100), (4, 120)]);
    let came = outcomes(scripted("0100000000000000000000000", table()), &sizes);
    let order: Vec<_> = came.iter().map(|&(number, at, _)| (number, at)).collect();
    assert_eq!(order, [(0, 100), (1, 100), (2, 100), (3, 100), (4, 120)]);
}

/// Four blocks of 240 bytes in a TTI of 20 ms: a block takes 5 ms.
fn four_in_a_tti() -> UmtsRlcConfig {
    UmtsRlcConfig { pdus: 4, order: DeliveryOrder::OutOfSequence, ..table() }
}

fn order(came: &[(u32, u64, LinkEvent)]) -> Vec<(u32, u64)> {
    came.iter().map(|&(number, at, _)| (number, at)).collect()
}

#[test]
fn what_a_tti_carried_arrives_together_at_its_end() {
    // Blocks end every 5 ms, six of them: four in the first TTI and two in the second.
    let by_tti = UmtsRlcConfig { delivery: Batch::ByTti, ..four_in_a_tti() };
    assert_eq!(
        order(&outcomes(link(&four_in_a_tti()), &[240; 6])),
        [(0, 5), (1, 10), (2, 15), (3, 20), (4, 25), (5, 30)]
    );
    assert_eq!(
        order(&outcomes(link(&by_tti), &[240; 6])),
        [(0, 20), (1, 20), (2, 20), (3, 20), (4, 40), (5, 40)]
    );
}

/// Blocks that end in the first 10 ms fail; an interval has 10 ms.
fn first_ten_ms(config: UmtsRlcConfig) -> AnyLink {
    scripted_by("1000000000000000000000000", "10ms", config)
}

#[test]
fn failures_of_a_tti_are_repeated_together_after_one_status() {
    // The block of 0 ends at 5 ms and fails: alone it is ready at 65 ms, with its TTI's status at 80. Nothing else is
    // queued then.
    let by_tti = UmtsRlcConfig { status: Batch::ByTti, ..four_in_a_tti() };
    assert_eq!(order(&outcomes(first_ten_ms(four_in_a_tti()), &[240; 2])), [(1, 10), (0, 70)]);
    assert_eq!(order(&outcomes(first_ten_ms(by_tti), &[240; 2])), [(1, 10), (0, 85)]);
}

#[test]
fn a_repetition_waits_for_the_next_tti() {
    // Ready at 65 ms as above. New blocks are not delayed: there are 16, and the last ends at 80 ms just before the
    // retransmission.
    let by_tti = UmtsRlcConfig { repetition: Batch::ByTti, ..four_in_a_tti() };
    let came = order(&outcomes(first_ten_ms(by_tti), &[240; 17]));
    assert_eq!((came.len(), came[14], came[15], came[16]), (17, (15, 80), (0, 85), (16, 90)));
}

#[test]
fn a_block_that_was_given_up_is_known_at_the_end_of_its_tti_too() {
    let config = UmtsRlcConfig { limit: Some(0), delivery: Batch::ByTti, ..four_in_a_tti() };
    assert_eq!(
        outcomes(first_ten_ms(config), &[240; 2]),
        [(0, 20, Dropped(Cause::Medium)), (1, 20, DELIVERED)]
    );
}

#[test]
fn every_packet_with_a_part_in_a_block_that_was_given_up_is_lost() {
    // 0 and 1 share the second block, which ends at 40 ms and again at 120; 2 has separate blocks.
    let config = UmtsRlcConfig { limit: Some(1), ..table() };
    let came = outcomes(scripted("0010001000000000000000000", config), &[1440, 1440, 960]);
    let lost = |number| (number, 120, Dropped(Cause::Medium));
    assert_eq!(came, [lost(0), lost(1), (2, 120, DELIVERED)]);
}

#[test]
fn nobody_waits_for_what_is_left_of_a_lost_packet() {
    // The blocks of 0 end at 20 and 40 ms and fail; 1 arrives at 60. The first block of 0 fails again at 100, and 0 is
    // lost. Its second block, retransmitted until 120 ms, is useless.
    let config = UmtsRlcConfig { limit: Some(1), ..table() };
    let came = outcomes(scripted("0110010000000000000000000", config), &[1920, 960]);
    assert_eq!(came, [(0, 100, Dropped(Cause::Medium)), (1, 100, DELIVERED)]);
}

#[test]
fn a_block_takes_the_time_of_its_bytes() {
    // 100 kbit/s x 10 ms / 3 = 41.67 bytes: 41, which take 3.28 ms. A packet of 100 bytes is 3 of them.
    let config =
        UmtsRlcConfig { rate: Rate::from_bps(100_000), tti: Span::from_millis(10), pdus: 3, ..table() };
    let mut link = link(&config);
    link.enqueue(Time::ZERO, &Segment::data(FlowId(0), Seq(0), 60, 40)).unwrap();
    let (at, ..) = link.poll_event(Time::ZERO + Span::from_secs(1)).unwrap();
    assert_eq!(at, Time::ZERO + Span::from_micros(9840));
}

#[test]
fn a_block_is_sent_as_often_as_independent_errors_make_it() {
    // 1 / (1 - 0.1) times on average: 10 000 blocks of 20 ms take 222.2 s, with a standard deviation of 20 ms x
    // sqrt(10 000 x 0.1) / 0.9 = 0.70 s.
    let config = UmtsRlcConfig { bler: serde_json::from_value(serde_json::json!("10%")).unwrap(), ..table() };
    let mut link = link(&config);
    for number in 0..10_000 {
        link.enqueue(Time::ZERO, &Segment::data(FlowId(0), Seq(number), 920, 40)).unwrap();
    }
    let end = Time::ZERO + Span::from_secs(1000);
    let (mut count, mut last, mut again) = (0, Time::ZERO, 0);
    while let Some((at, event, segment)) = link.poll_event(end) {
        let LinkEvent::Delivered(repeated) = event else { panic!("{event:?}") };
        assert_eq!(segment.seq, Seq(count), "in sequence");
        (count, last, again) = (count + 1, at, again + repeated.times);
    }
    assert_eq!(count, 10_000);
    assert!((last.as_secs_f64() - 222.2).abs() < 4.0 * 0.70, "{last:?}");
    // Each delivery reports the retransmissions of its block: 1111 times in total, with a standard deviation of 35.
    assert!((f64::from(again) - 1111.1).abs() < 4.0 * 35.0, "{again}");
}

/// An outage of 100 ms from 30 ms on.
fn handed_over() -> UmtsRlcConfig {
    let outage = serde_json::json!([{ "at": "30ms", "for": "100ms" }]);
    UmtsRlcConfig { outages: serde_json::from_value(outage).unwrap(), ..table() }
}

#[test]
fn no_block_begins_in_an_outage_and_what_is_under_way_arrives() {
    // The second block is sent from 20 to 40 ms, the third begins at 130.
    assert_eq!(order(&outcomes(link(&handed_over()), &[960; 4])), [(0, 20), (1, 40), (2, 150), (3, 170)]);
    // The first fails at 20 ms. It might be retransmitted from 80 on, and is from 130, before the third.
    let came = outcomes(scripted("0100000000000000000000000", handed_over()), &[960; 3]);
    assert_eq!(order(&came), [(0, 150), (1, 150), (2, 170)]);
    // An arrival in the outage waits for its end, even with an empty queue.
    let mut link = link(&handed_over());
    let came = Time::ZERO + Span::from_millis(50);
    link.enqueue(came, &Segment::data(FlowId(0), Seq(0), 920, 40)).unwrap();
    assert_eq!(link.poll_timeout(), Some(Time::ZERO + Span::from_millis(130)));
    assert_eq!(link.waits().mean(), Some(Span::from_millis(80)));
}

#[test]
fn nothing_could_have_passed_in_an_outage() {
    let outages = serde_json::json!([{ "at": "5s", "for": "5s", "every": "10s" }]);
    let half = UmtsRlcConfig { outages: serde_json::from_value(outages).unwrap(), ..table() };
    assert_eq!(half.nominal(&NoFiles).unwrap().rate, Rate::from_bps(192_000));
    let capacity = link(&half).capacity_bps(Time::ZERO + Span::from_secs(20)).unwrap();
    assert!((capacity - 192_000.0).abs() < 1.0, "{capacity}");
}

#[test]
fn what_makes_no_sense_is_named() {
    for (config, path) in [
        (UmtsRlcConfig { tti: Span::ZERO, ..table() }, "tti"),
        (UmtsRlcConfig { pdus: 0, ..table() }, "pdus"),
        (UmtsRlcConfig { repetition_delay: Span::from_secs(2), ..table() }, "repetition_delay"),
        (UmtsRlcConfig { rate: Rate::from_bps(100), ..table() }, "rate"),
        (
            UmtsRlcConfig {
                outages: serde_json::from_value(serde_json::json!([{ "at": "1s", "for": "0s" }])).unwrap(),
                ..table()
            },
            "outages[0].for",
        ),
    ] {
        assert_eq!(config.check().unwrap_err().path, path);
    }
    let never = UmtsRlcConfig { bler: serde_json::from_value(serde_json::json!(1.0)).unwrap(), ..table() };
    assert_eq!(never.nominal(&NoFiles).unwrap_err().path, "bler");
}
