use super::*;
use ackclock_core::registry::read_table;
use ackclock_core::{FlowId, Segment, Seq, Span, Streams};
use ackclock_link::LinkConfig;
use ackclock_link::queue::DropTailConfig;
use ackclock_link::{
    AnyLink, BufferMeaning, Capacity, Cause, Files, Link, LinkContext, LinkEvent, QueuePlan, Repetitions,
};
use serde_json::{Value, json};

struct Written;

impl Files for Written {
    fn read(&self, path: &str) -> Result<std::sync::Arc<[u8]>, String> {
        Ok(path.as_bytes().into())
    }
}

/// 384 kbit/s and 20 ms: a frame has 960 bytes. Slot n is damaged if digit n of `errors` is 1.
fn scripted(errors: &str, mut table: Value) -> AnyLink {
    table["errors"] = json!({ "kind": "recording", "file": errors });
    let streams = Streams::new(1, 0);
    let queue = QueuePlan::new(
        std::sync::Arc::new(DropTailConfig::default()),
        Capacity::Unlimited,
        &streams,
        "up/queue",
    );
    let meaning = BufferMeaning::Waiting;
    let context = LinkContext { queue, meaning, streams: &streams, name: "up", files: &Written };
    read_table::<PowerControlledConfig>(table).unwrap().build(context).unwrap()
}

fn packet(number: u32, bytes: u16) -> Segment {
    Segment::data(FlowId(0), Seq(number), bytes - 40, 40)
}

/// Number, millisecond and event of each packet; if it arrived, number of retransmissions and their delay in ms.
fn outcomes(link: &mut AnyLink) -> Vec<(u32, u64, LinkEvent, u32, u64)> {
    let end = Time::ZERO + Span::from_secs(100);
    let mut seen = Vec::new();
    while let Some((at, event, segment)) = link.poll_event(end) {
        let (what, Repetitions { times, delay }) = match event {
            LinkEvent::Delivered(repeated) => (DELIVERED, repeated),
            lost => (lost, Repetitions::NONE),
        };
        let ms = |nanos: u64| nanos / 1_000_000;
        seen.push((segment.seq.0, ms(at.as_nanos()), what, times, ms(delay.as_nanos())));
    }
    seen
}

/// Outcomes of packets of these sizes that arrive at time zero.
fn sent(errors: &str, table: Value, sizes: &[u16]) -> Vec<(u32, u64, LinkEvent, u32, u64)> {
    let mut link = scripted(errors, table);
    for (number, &size) in (0..).zip(sizes) {
        link.enqueue(Time::ZERO, &packet(number, size)).unwrap();
    }
    outcomes(&mut link)
}

use LinkEvent::Dropped;
const DELIVERED: LinkEvent = LinkEvent::DELIVERED;
const MEDIUM: LinkEvent = Dropped(Cause::Medium);

#[test]
fn frames_are_sent_again_three_slots_later_and_before_new_ones() {
    // Figure 4.6 of the source: two packets of three frames; the second and the sixth frame sent are damaged. The
    // first packet uses slots 0, 1, 2 and 4; the second 3, 5, 6, of which 5 is damaged, and 8.
    assert_eq!(
        sent("0100010000", json!({}), &[2880, 2880]),
        [(0, 100, DELIVERED, 1, 40), (1, 180, DELIVERED, 1, 60)]
    );
}

#[test]
fn a_packet_has_frames_of_its_own_and_waits_for_the_next_slot() {
    let mut link = scripted("0", json!({"delay": "7ms"}));
    // 961 bytes are two frames. A packet arriving at 45 ms uses the slot from 60 ms, one at exactly 80 ms that from 80
    // ms.
    link.enqueue(Time::ZERO, &packet(0, 961)).unwrap();
    for (number, at) in [(1, 45), (2, 80)] {
        link.enqueue(Time::ZERO + Span::from_millis(at), &packet(number, 100)).unwrap();
    }
    assert_eq!(
        outcomes(&mut link),
        [(0, 47, DELIVERED, 0, 0), (1, 87, DELIVERED, 0, 0), (2, 107, DELIVERED, 0, 0)]
    );
    // Only the second was queued.
    assert_eq!(link.waits().sum(), 15_000_000);
}

#[test]
fn in_sequence_a_packet_waits_for_those_before_it_and_its_own_delay_is_its_own() {
    let sizes = [960; 3];
    assert_eq!(
        sent("1000000000", json!({}), &sizes),
        [(1, 40, DELIVERED, 0, 0), (2, 60, DELIVERED, 0, 0), (0, 80, DELIVERED, 1, 60)]
    );
    assert_eq!(
        sent("1000000000", json!({"order": "in-sequence"}), &sizes),
        [(0, 80, DELIVERED, 1, 60), (1, 80, DELIVERED, 0, 0), (2, 80, DELIVERED, 0, 0)]
    );
}

#[test]
fn a_packet_is_lost_with_the_last_round_of_one_of_its_frames() {
    // Slots 0, 3, 6, 9, 12 and 15; the rounds end with 15.
    let five = sent("1001001001001001000", json!({}), &[960]);
    assert_eq!(five, [(0, 320, MEDIUM, 0, 0)]);
    let saved = sent("1001001001001000000", json!({}), &[960]);
    assert_eq!(saved, [(0, 320, DELIVERED, 5, 300)]);
    // Slots 0 and 2.
    let one = sent("1010000", json!({"guard": 2, "rounds": [1]}), &[960]);
    assert_eq!(one, [(0, 60, MEDIUM, 0, 0)]);
}

#[test]
fn without_arq_every_frame_is_sent_once_and_one_that_is_damaged_loses_its_packet() {
    // The first packet is lost with slot 0 and still uses slot 1.
    let seen = sent("1000000000", json!({"arq": "none"}), &[1500, 960]);
    assert_eq!(seen, [(0, 20, MEDIUM, 0, 0), (1, 60, DELIVERED, 0, 0)]);
}

#[test]
fn a_round_of_two_copies_takes_two_slots_and_the_next_counts_from_the_last() {
    let scheme = json!({"guard": 3, "rounds": [2, 1]});
    // Slots 0, then 3 and 4; the first copy arrives, and slot 4 is used all the same: the new packet uses 5.
    let seen = sent("1000000000", scheme.clone(), &[960, 960, 960, 960]);
    assert_eq!(
        seen,
        [
            (1, 40, DELIVERED, 0, 0),
            (2, 60, DELIVERED, 0, 0),
            (0, 80, DELIVERED, 1, 60),
            (3, 120, DELIVERED, 0, 0)
        ]
    );
    // Slots 0, 3, 4 and 7.
    assert_eq!(sent("1001100000", scheme.clone(), &[960]), [(0, 160, DELIVERED, 3, 140)]);
    assert_eq!(sent("1001100100", scheme, &[960]), [(0, 160, MEDIUM, 0, 0)]);
}

#[test]
fn idle_slots_carry_what_would_have_arrived_in_the_mean() {
    // Half of the slots are damaged. Two frames are sent in 10 slots: one arrives, and 4 of the other 8 would.
    let mut link = scripted("10", json!({"guard": 1}));
    link.enqueue(Time::ZERO, &packet(0, 960)).unwrap();
    assert_eq!(link.capacity_bps(Time::ZERO + Span::from_millis(200)), Some(384_000.0 * 5.0 / 10.0));
}

#[test]
fn what_is_no_such_link_is_refused_with_its_key() {
    let refused = |table| read_table::<PowerControlledConfig>(table).unwrap_err().to_string();
    for (table, error) in [
        (json!({"tti": "0s"}), "tti: 0ms is not 1ms to 1s"),
        (json!({"rate": "1bit/s"}), "rate: 1bit/s is less than one byte per slot"),
        (json!({"guard": 0}), "guard: 0 is not 1 to 1000"),
        (json!({"rounds": []}), "rounds: [] must be a list of numbers above 0 with a sum of at most 1000"),
        (
            json!({"rounds": [1, 0]}),
            "rounds: [1, 0] must be a list of numbers above 0 with a sum of at most 1000",
        ),
        (
            json!({"errors": {"step": 9}}),
            "errors.step: 9 does not divide the range from 0 to 6 dB into 2 to 10000 steps",
        ),
    ] {
        assert_eq!(refused(table), error);
    }
    let unused = refused(json!({"arq": "none", "guard": 4}));
    assert_eq!(unused, "guard: nothing is retransmitted with arq = \"none\"");
    assert!(read_table::<PowerControlledConfig>(json!({"errors": {"step": 0.2}, "arq": "none"})).is_ok());
}
