//! More than 4 GiB: sequence numbers wrap without any effect.

// Test helpers may unwrap.
#![allow(clippy::unwrap_used)]

use ackclock_core::{FlowId, Segment, Seq, Size, Span, Time};
use ackclock_tcp::receiver::Opening;
use ackclock_tcp::{AckPolicy, FlowParams, Receiver, ReceiverConfig, SENDERS, Supply};
use serde_json::json;

#[test]
fn five_gigabytes_pass_from_a_number_just_below_the_wrap() {
    const BYTES: u64 = 5_000_000_000;
    for kind in ["reno", "newreno", "sack", "sack1", "cubic", "bbr"] {
        let first = Seq(u32::MAX - 100_000);
        let params = FlowParams {
            packet: 65_040,
            initial_window: Size::Packets(64),
            max_window: Size::Packets(64),
            first,
            ..FlowParams::new(FlowId(0))
        };
        let mut sender = SENDERS.resolve(&json!(kind)).unwrap().build(params).unwrap();
        sender.supply(Supply::Bytes(BYTES));
        let config = ReceiverConfig {
            opening: Opening::Established(first),
            acks: AckPolicy::Every,
            max_window: 1 << 23,
            ..ReceiverConfig::default()
        };
        let mut receiver = Receiver::new(config, FlowId(0));
        let mut now = Time::ZERO;
        let mut sent = 0u64;
        let mut flight: Vec<Segment> = Vec::new();
        sender.on_timeout(now);
        while sender.finished_at().is_none() {
            if let Some(due) = sender.poll_timeout().filter(|&due| due <= now) {
                sender.on_timeout(due.max(now));
            }
            flight.extend(std::iter::from_fn(|| sender.poll_segment(now)));
            now += Span::from_millis(20);
            let mut acks = Vec::new();
            for segment in flight.drain(..) {
                sent += 1;
                // One in 5000 is lost, the first losses just before the wrap.
                if sent % 5000 != 1 || sent < 5000 && sent != 1 {
                    receiver.on_segment(now, &segment, &mut |ack| acks.push(*ack));
                }
            }
            for ack in &acks {
                sender.on_segment(now, ack);
                flight.extend(std::iter::from_fn(|| sender.poll_segment(now)));
            }
            assert!(now < Time::ZERO + Span::from_secs(100_000), "{kind} stalls");
        }
        assert_eq!((sender.acknowledged(), receiver.delivered_bytes()), (BYTES, BYTES), "{kind}");
        assert!(sender.stats().retransmits > 10, "{kind}");
    }
}
