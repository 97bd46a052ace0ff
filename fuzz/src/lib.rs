//! What is fuzzed: each function takes whatever bytes and panics where a promise is broken.
//!
//! `crates/ackclock-scenario/tests/fuzz_targets.rs` runs the same functions on random bytes in every test run.

use ackclock_core::{Ecn, Flags, FlowId, SackBlock, Segment, Seq, Size, Span, Time, Timestamps};
use ackclock_import::Recording;
use ackclock_scenario::Scenario;
use ackclock_tcp::config::HeaderSize;
use ackclock_tcp::receiver::Opening;
use ackclock_tcp::{AckPolicy, EcnMode, FlowParams, Receiver, ReceiverConfig, SENDERS, Supply};

/// A scenario file: read, or refused with one line. What was read can be written down and read again.
pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Scenario::load("fuzz.toml", text, &[]) {
        Ok(scenario) => assert_eq!(scenario.sha256().len(), 64),
        Err(error) => {
            let message = error.to_string();
            assert!(!message.is_empty() && !message.trim_end().contains('\n'), "{message:?}");
        }
    }
}

/// A recording: read, or refused. What was read has statistics, and its mahimahi form is read again.
pub fn trace(data: &[u8]) {
    let Ok(recording) = Recording::parse(data) else { return };
    let _ = recording.statistics();
    if let Ok(text) = recording.to_mahimahi() {
        assert!(Recording::parse(text.as_bytes()).is_ok(), "{text:?}");
    }
}

/// A sender of any row that is told whatever a peer may say, at whatever instants.
pub fn sender(data: &[u8]) {
    let mut bytes = Bytes(data);
    let rows = SENDERS.entries;
    let row = rows[usize::from(bytes.u8()) % rows.len()].name;
    let params = FlowParams {
        packet: 1040,
        initial_window: Size::Packets(4),
        first: Seq(bytes.u32()),
        ..FlowParams::new(FlowId(0))
    };
    let built = SENDERS.resolve(&row.into()).and_then(|row| row.build(params));
    let mut sender = built.expect("every row builds with its defaults");
    sender.supply(Supply::Bytes(bytes.u32().into()));
    sender.on_timeout(Time::ZERO);
    let mut now = Time::ZERO;
    let mut highest = params.first;
    while !bytes.is_empty() {
        // A window of 500 packets, sent again a few times, is the most that one event can call forth.
        for _ in 0..2_000 {
            let Some(segment) = sender.poll_segment(now) else { break };
            assert!(u32::from(segment.payload) <= sender.mss());
            highest = if segment.end().after(highest) { segment.end() } else { highest };
        }
        assert!(sender.poll_segment(now).is_none(), "{row} never stops");
        assert!(sender.cwnd() >= sender.mss(), "{row}: window {}", sender.cwnd());
        match bytes.u8() % 4 {
            0 => {
                now += Span::from_micros(bytes.u32().into());
                sender.on_timeout(now);
            }
            1 => {
                now = sender.poll_timeout().unwrap_or(now).max(now);
                sender.on_timeout(now);
            }
            _ => sender.on_segment(now, &any_segment(&mut bytes, highest)),
        }
    }
}

/// A receiver that is sent whatever a peer or a network may send.
pub fn receiver(data: &[u8]) {
    let mut bytes = Bytes(data);
    let choices = bytes.u8();
    let first = Seq(bytes.u32());
    let config = ReceiverConfig {
        opening: if choices & 1 == 0 { Opening::Established(first) } else { Opening::Handshake },
        acks: match choices & 2 {
            0 => AckPolicy::Every,
            _ => AckPolicy::Delayed { count: 2, timeout: Span::from_millis(200), quick: 1 },
        },
        ack_size: HeaderSize::Real,
        sack: choices & 4 == 0,
        dsack: choices & 8 == 0,
        timestamps: choices & 16 == 0,
        ecn: [EcnMode::On, EcnMode::Off, EcnMode::Accurate, EcnMode::Dctcp][usize::from(choices >> 5) & 3],
        ..ReceiverConfig::default()
    };
    let mut receiver = Receiver::new(config, FlowId(0));
    let mut delivered = 0;
    let mut now = Time::ZERO;
    let mut sent = |_: &Segment| {};
    receiver.start(now, &mut sent);
    while !bytes.is_empty() {
        now += Span::from_micros(bytes.u32().into());
        receiver.on_timeout(now, &mut sent);
        let next = receiver.next();
        receiver.on_segment(now, &any_segment(&mut bytes, next), &mut sent);
        assert!(receiver.delivered_bytes() >= delivered, "what was delivered cannot be taken back");
        delivered = receiver.delivered_bytes();
    }
}

/// A segment near a sequence number that means something, with any options.
fn any_segment(bytes: &mut Bytes<'_>, near: Seq) -> Segment {
    let near_or_far = |bytes: &mut Bytes<'_>| match bytes.u8() {
        255 => Seq(bytes.u32()),
        // Around what is expected, in steps of about a segment.
        step => near + (u32::from(step) * 250).wrapping_sub(20_000),
    };
    let mut segment = Segment::data(FlowId(0), near_or_far(bytes), bytes.u16() % 1461, 40);
    segment.ack = near_or_far(bytes);
    segment.window = bytes.u16();
    let choices = bytes.u8();
    segment.flags = if choices & 1 == 0 { Flags::ACK } else { Flags(bytes.u8()) };
    segment.ecn = if choices & 2 == 0 { Ecn::NotEct } else { Ecn::Ce };
    for _ in 0..(choices >> 2) % 4 {
        segment.push_sack(SackBlock { left: near_or_far(bytes), right: near_or_far(bytes) });
    }
    if choices & 16 == 0 {
        segment.set_timestamps(Timestamps { value: bytes.u32(), echo: bytes.u32() });
    }
    segment
}

/// The input as numbers; zeros once it has ended.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn u8(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes([self.u8(), self.u8(), self.u8(), self.u8()])
    }
}
