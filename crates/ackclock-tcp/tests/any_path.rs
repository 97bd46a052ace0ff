//! Both ends over a path that drops, repeats and reorders: the file arrives complete, and extra polls change nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ackclock_core::{Ecn, FlowId, Segment, Seq, Size, Span, Stream, Streams, Time};
use ackclock_tcp::config::Switch;
use ackclock_tcp::receiver::Opening;
use ackclock_tcp::{AckPolicy, FlowParams, HeaderSize, Receiver, ReceiverConfig, SENDERS, Sender, Supply};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Parameters of a case.
#[derive(Clone, Debug)]
struct Case {
    sender: Value,
    first: u32,
    bytes: u64,
    delayed_acks: bool,
    dsack: bool,
    /// Fractions of segments, in both directions, that are lost and that are duplicated.
    loss: f64,
    repeat: f64,
    /// Each segment takes 20 ms plus up to this much more.
    jitter: Span,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let row = prop::sample::select(SENDERS.entries.iter().map(|entry| entry.name).collect::<Vec<_>>());
    let switch = || prop::sample::select(vec!["on", "off"]);
    let stack = prop::sample::select(vec!["rfc", "linux"]);
    let ecn = prop::sample::select(vec!["on", "off", "accurate", "dctcp"]);
    let switches = (switch(), ecn, switch(), switch(), switch());
    let thresholds = prop::sample::select(vec![json!(3), json!(7), json!("careful"), json!("aggressive")]);
    let sender = (row, switches, stack, thresholds, 1u32..4);
    let sender = sender.prop_map(|(kind, (handshake, ecn, limited, prr, probes), stack, threshold, loss_window)| {
        let (mut limited, mut options) = (limited, json!({}));
        let with_sack = ["sack", "westwood-plus", "cubic", "bbr", "bbr3", "copa", "dctcp", "prague", "abc"];
        if stack == "rfc" {
            options["loss_window"] = format!("{loss_window}p").into();
            let adapts = threshold.is_string();
            if !adapts || with_sack.contains(&kind) {
                options["dup_thresh"] = threshold;
                limited = if adapts { "off" } else { limited };
            }
        } else if with_sack.contains(&kind) {
            options["probe_timeout"] = probes.into();
        }
        let rest = json!({
            "stack": stack, "prr": prr,
            "kind": kind, "handshake": handshake, "ecn": ecn, "limited_transmit": limited, "timestamps": "on",
            "timestamp_tick": "1ms", "rto": {"min": "200ms"},
        });
        options.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        options
    });
    let options = (any::<bool>(), any::<bool>());
    let path = (0.0f64..0.2, 0.0f64..0.1, 0u64..60);
    (sender, any::<u32>(), 1u64..150_000, options, path, any::<u64>()).prop_map(
        |(sender, first, bytes, (delayed_acks, dsack), (loss, repeat, jitter), seed)| {
            let jitter = Span::from_millis(jitter);
            Case { sender, first, bytes, delayed_acks, dsack, loss, repeat, jitter, seed }
        },
    )
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Sender,
    Receiver,
}

struct Run {
    case: Case,
    sender: Box<dyn Sender>,
    receiver: Receiver,
    now: Time,
    chance: Stream,
    /// Segments in transit, by arrival and transmission order; the segment itself is in `segments`.
    underway: BinaryHeap<Reverse<(Time, usize, To)>>,
    segments: Vec<Segment>,
    /// Left and right edge as last advertised by the receiver.
    edges: Option<(Seq, Seq)>,
}

impl Run {
    fn new(case: &Case) -> Self {
        let row = SENDERS.resolve(&case.sender).expect("a row and options of the table");
        let first = Seq(case.first);
        let params = FlowParams {
            header: HeaderSize::Real,
            initial_window: Size::Packets(4),
            max_window: Size::Packets(64),
            first,
            ..FlowParams::new(FlowId(0))
        };
        let mut sender = row.build(params).expect("the packet has room for data");
        sender.supply(Supply::Bytes(case.bytes));
        let acks = AckPolicy::Delayed { count: 2, timeout: Span::from_millis(200), quick: 3 };
        let config = ReceiverConfig {
            opening: if row.config().handshake == Switch::On {
                Opening::Handshake
            } else {
                Opening::Established(first)
            },
            acks: if case.delayed_acks { acks } else { AckPolicy::Every },
            ack_size: HeaderSize::Real,
            max_window: 64_000,
            sack: row.uses_sack(),
            dsack: case.dsack,
            timestamps: true,
            ecn: row.config().ecn.unwrap_or_default(),
            ..ReceiverConfig::default()
        };
        let mut run = Self {
            case: case.clone(),
            sender,
            receiver: Receiver::new(config, FlowId(0)),
            now: Time::ZERO,
            chance: Streams::new(case.seed, 0).stream("path"),
            underway: BinaryHeap::new(),
            segments: Vec::new(),
            edges: None,
        };
        let mut sent = Vec::new();
        run.receiver.start(run.now, &mut |syn| sent.push(*syn));
        run.answer(sent);
        run
    }

    /// Runs until both ends are done; with `poke`, both are also polled at that interval.
    fn finish(&mut self, poke: Option<Span>) {
        while self.sender.finished_at().is_none() {
            let arrival = self.underway.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
            let timers = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
            let timer = timers.into_iter().flatten().min().unwrap_or(Time::NEVER);
            let next = arrival.min(timer).max(self.now);
            assert!(next < Time::ZERO + Span::from_secs(100_000), "stuck: {:?}", self.case);
            if let Some(early) = poke.map(|poke| self.now + poke).filter(|&early| early < next) {
                self.now = early;
                self.wake();
                continue;
            }
            self.now = next;
            if arrival <= timer { self.arrive() } else { self.wake() }
        }
    }

    fn wake(&mut self) {
        let mut acks = Vec::new();
        self.receiver.on_timeout(self.now, &mut |ack| acks.push(*ack));
        self.answer(acks);
        self.sender.on_timeout(self.now);
        self.send();
    }

    fn arrive(&mut self) {
        let Some(Reverse((_, index, to))) = self.underway.pop() else { return };
        let segment = self.segments[index];
        if to == To::Sender {
            self.sender.on_segment(self.now, &segment);
            self.send();
        } else {
            let mut acks = Vec::new();
            self.receiver.on_segment(self.now, &segment, &mut |ack| acks.push(*ack));
            // DCTCP acknowledges the data before a change of the mark separately.
            let most = if self.case.sender["ecn"] == "dctcp" { 2 } else { 1 };
            assert!(acks.len() <= most, "one segment, one ACK at most");
            self.answer(acks);
        }
    }

    fn send(&mut self) {
        while let Some(segment) = self.sender.poll_segment(self.now) {
            self.launch(segment, To::Receiver);
        }
    }

    fn answer(&mut self, acks: Vec<Segment>) {
        for ack in acks {
            if self.receiver.is_established() {
                let right = ack.ack + ack.window_bytes().expect("the scale is always told");
                if let Some((left_before, right_before)) = self.edges.replace((ack.ack, right)) {
                    assert!(left_before.at_or_before(ack.ack), "an ACK never takes back");
                    assert!(right_before.at_or_before(right), "the window never shrinks");
                }
            }
            self.launch(ack, To::Sender);
        }
    }

    fn launch(&mut self, segment: Segment, to: To) {
        let copies = if self.chance.chance(self.case.loss) {
            0
        } else if self.chance.chance(self.case.repeat) {
            2
        } else {
            1
        };
        for _ in 0..copies {
            // One of eight ECN-capable packets is marked.
            let mut segment = segment;
            if segment.ecn != Ecn::NotEct && self.chance.chance(1.0 / 8.0) {
                segment.ecn = Ecn::Ce;
            }
            let more = self.case.jitter.as_secs_f64() * self.chance.unit();
            let at = self.now + Span::from_millis(20) + Span::from_secs_f64(more);
            self.underway.push(Reverse((at, self.segments.len(), to)));
            self.segments.push(segment);
        }
    }
}

proptest! {
    #[test]
    fn a_file_arrives_whole_whatever_the_path_does(case in case()) {
        let mut run = Run::new(&case);
        run.finish(None);
        prop_assert_eq!(run.receiver.delivered_bytes(), case.bytes);
        prop_assert_eq!(run.sender.acknowledged(), case.bytes);
        prop_assert!(run.receiver.delivered_wire_bytes() >= case.bytes + 52);
        let (first, done) = (run.receiver.first_byte_at().unwrap(), run.receiver.finished_at().unwrap());
        prop_assert!(first <= done && done < run.sender.finished_at().unwrap());
    }

    #[test]
    fn waking_both_ends_too_often_changes_nothing(case in case(), poke in 1u64..300) {
        let (mut plain, mut poked) = (Run::new(&case), Run::new(&case));
        plain.finish(None);
        poked.finish(Some(Span::from_millis(poke)));
        prop_assert_eq!(plain.sender.finished_at(), poked.sender.finished_at());
        prop_assert_eq!(plain.segments, poked.segments);
    }
}
