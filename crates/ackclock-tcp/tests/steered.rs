//! Senders whose windows are steered from outside.

use ackclock_core::{FlowId, Segment, Seq, Setting, Span, Time, Timer};
use ackclock_tcp::{FlowParams, SENDERS, Sender, Supply};
use serde_json::json;

const MSS: u32 = 960;

fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn told(packets: u32, timer: Timer) -> Setting {
    Setting { window: Some(packets * MSS), pacing: None, timer }
}

/// A sender of `row` with unlimited data, which on release uses the congestion control of `own`.
fn sender(row: &str, own: &str) -> Box<dyn Sender> {
    let [row, own] = [row, own].map(|name| SENDERS.resolve(&json!(name)).unwrap());
    let mut sender = row.build_steered(FlowParams::new(FlowId(0)), &*own).unwrap();
    sender.supply(Supply::Endless);
    sender.on_timeout(Time::ZERO);
    sender
}

fn sent(sender: &mut dyn Sender, now: Time) -> u32 {
    std::iter::from_fn(|| sender.poll_segment(now)).count() as u32
}

/// An acknowledgement of `packets` packets.
fn ack(packets: u32) -> Segment {
    let mut ack = Segment::pure_ack(FlowId(0), Seq(1 + packets * MSS), 40);
    (ack.seq, ack.window) = (Seq(1), u16::MAX);
    ack
}

#[test]
fn a_window_that_grows_is_used_at_once_and_one_that_shrinks_by_acknowledgements() {
    for row in SENDERS.entries {
        let mut sender = sender(row.name, "bbr");
        assert_eq!(sent(&mut *sender, ms(0)), 1, "{}: until it is told it has its initial window", row.name);
        sender.steer(ms(1), &told(8, Timer::Runs));
        assert_eq!(sent(&mut *sender, ms(1)), 7, "{}", row.name);
        sender.on_segment(ms(100), &ack(2));
        assert_eq!(sent(&mut *sender, ms(100)), 2, "{}", row.name);
        sender.steer(ms(101), &told(3, Timer::Runs));
        // Five of eight must leave the network before another is sent.
        sender.on_segment(ms(200), &ack(7));
        assert_eq!(sent(&mut *sender, ms(200)), 0, "{}", row.name);
        sender.on_segment(ms(210), &ack(8));
        assert_eq!(sent(&mut *sender, ms(210)), 1, "{}", row.name);
        assert!(sender.view().window_limited);
    }
}

#[test]
fn whichever_control_it_is_let_go_to_begins_with_the_window_that_is_there() {
    for own in SENDERS.entries {
        let mut sender = sender("sack", own.name);
        sender.steer(ms(0), &told(8, Timer::Runs));
        assert_eq!(sent(&mut *sender, ms(0)), 8);
        sender.steer(ms(50), &Setting::OWN);
        assert_eq!(sender.cwnd(), 8 * MSS, "{}", own.name);
        // All round trips are equal: no control sees a queue.
        let mut acked = 8;
        for round in 1..6 {
            sender.on_segment(ms(100 * round), &ack(acked));
            acked += sent(&mut *sender, ms(100 * round));
        }
        // ABC limits its window to twice the packets in flight and five more; its pacing leaves one in flight here.
        let least = if own.name == "abc" { 7 } else { 8 };
        assert!(sender.cwnd() >= least * MSS, "{}", own.name);
        sender.steer(ms(2000), &told(2, Timer::Runs));
        assert_eq!(sender.cwnd(), 2 * MSS, "{}: and it is taken back", own.name);
    }
}

#[test]
fn nothing_comes_of_a_frozen_timer_and_a_whole_timeout_passes_after_it() {
    let mut sender = sender("sack", "bbr");
    sender.steer(ms(0), &told(4, Timer::Frozen));
    assert_eq!(sent(&mut *sender, ms(0)), 4);
    let mut looks = 0;
    while let Some(due) = sender.poll_timeout().filter(|&due| due < ms(20_000)) {
        sender.on_timeout(due);
        assert_eq!(sent(&mut *sender, due), 0, "{due:?}");
        looks += 1;
    }
    assert!(looks < 20, "it is not asked again and again: {looks}");
    assert_eq!((sender.stats().timeouts, sender.phase()), (0, ackclock_tcp::cc::Phase::Open));
    let rto = sender.rto();
    sender.steer(ms(20_000), &told(4, Timer::Runs));
    assert_eq!(sender.poll_timeout(), Some(ms(20_000) + rto));
    sender.on_timeout(ms(20_000) + rto);
    // The window is one segment until something is acknowledged.
    assert_eq!((sent(&mut *sender, ms(20_000) + rto), sender.stats().timeouts), (1, 1));
    sender.on_segment(ms(30_000), &ack(4));
    assert_eq!(sent(&mut *sender, ms(30_000)), 4);
}

#[test]
fn a_loss_is_repaired_within_the_window_and_does_not_move_it() {
    let mut sender = sender("newreno", "reno");
    sender.steer(ms(0), &told(6, Timer::Runs));
    assert_eq!(sent(&mut *sender, ms(0)), 6);
    for _ in 0..3 {
        sender.on_segment(ms(100), &ack(0));
    }
    assert!(sent(&mut *sender, ms(100)) >= 1);
    assert_eq!((sender.stats().retransmits, sender.cwnd()), (1, 6 * MSS));
    sender.on_segment(ms(200), &ack(6));
    sent(&mut *sender, ms(200));
    assert_eq!(sender.cwnd(), 6 * MSS);
}
