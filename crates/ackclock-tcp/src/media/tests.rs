//! Both ends of a media flow over a path that loses chosen packets.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Segment, Span, Time};

use super::config::Media;
use super::{MediaReceiver, MediaSender};

const DELAY: Span = Span::from_millis(20);

/// Both ends, and the packets in transit in each direction with their arrival times.
struct Call {
    sender: MediaSender,
    receiver: MediaReceiver,
    down: VecDeque<(Time, Segment)>,
    up: VecDeque<(Time, Segment)>,
    lost: u64,
}

impl Call {
    fn new(media: &Media) -> Self {
        Self {
            sender: MediaSender::new(FlowId(0), media, 1200, Time::ZERO),
            receiver: MediaReceiver::new(FlowId(0), media, 1200),
            down: VecDeque::new(),
            up: VecDeque::new(),
            lost: 0,
        }
    }

    /// Runs until `end`. The path loses the packets for which `loses` says so, by the order of their transmission.
    fn run(&mut self, end: Time, loses: impl Fn(u64) -> bool) {
        loop {
            let arrivals = [&self.down, &self.up].map(|way| way.front().map_or(Time::NEVER, |(at, _)| *at));
            let timeout = self.receiver.poll_timeout().unwrap_or(Time::NEVER);
            let now = arrivals[0].min(arrivals[1]).min(timeout).min(self.sender.poll_timeout());
            if now > end {
                return;
            }
            let (down, up) = (&mut self.down, &mut self.up);
            let mut feedback = |seg: &Segment| up.push_back((now + DELAY, *seg));
            if let Some((_, seg)) = down.pop_front_if(|(at, _)| *at == now) {
                self.receiver.on_segment(now, &seg, &mut feedback);
            }
            self.receiver.on_timeout(now, &mut feedback);
            if let Some((_, seg)) = up.pop_front_if(|(at, _)| *at == now) {
                self.sender.on_segment(now, &seg);
            }
            let (mut number, lost) = (self.sender.stats().packets, &mut self.lost);
            self.sender.send(now, &mut |seg| {
                if loses(number) {
                    *lost += 1;
                } else {
                    down.push_back((now + DELAY, *seg));
                }
                number += 1;
            });
        }
    }
}

fn seconds(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

#[test]
fn what_was_sent_is_received_lost_or_in_transit() {
    let mut call = Call::new(&Media::default());
    call.run(seconds(20), |number| number % 10 == 3);
    let sent = call.sender.stats().packets;
    // At least one packet for each of 600 frames.
    assert!(call.lost >= 60 && call.sender.stats().retransmits > 0, "{} lost", call.lost);
    assert_eq!(sent, call.receiver.packets() + call.lost + call.down.len() as u64);
    let frames = call.receiver.frames();
    let open = u64::from(call.sender.frames()) - frames.shown - frames.lost;
    assert!(open < 30, "{open} frames are under way");
}

#[test]
fn a_lost_packet_is_sent_again_once() {
    let media = Media::default();
    let mut call = Call::new(&media);
    call.run(seconds(2), |number| number == 20);
    assert_eq!((call.sender.stats().retransmits, call.receiver.frames().lost), (1, 0));
    assert_eq!(call.receiver.frames().freezes(seconds(2)), (0, Span::ZERO));
    assert_eq!(call.sender.stats().key_frames, 1);
    // The gap is noticed with packet 21, the request takes 20 ms, and packet 22 is due before that or with it: of the
    // packets that follow, each in turn may be the repair.
    let numbers = 21..40;
    let twice = numbers.filter(|&repair| {
        let mut call = Call::new(&media);
        call.run(seconds(2), |number| number == 20 || number == repair);
        let stats = call.sender.stats();
        stats.retransmits == 1 && stats.key_frames == 2 && call.receiver.frames().lost > 0
    });
    assert_eq!(twice.count(), 1, "one of them is the repair, which is not repeated");
}

#[test]
fn without_loss_and_queue_the_target_grows_to_its_largest() {
    let mut call = Call::new(&Media::default());
    call.run(seconds(40), |_| false);
    assert_eq!(call.sender.target_bps(), 2.5e6);
    let frames = call.receiver.frames();
    assert_eq!((frames.lost, frames.freezes(seconds(40)).0), (0, 0));
    // A path of 20 ms, and a frame that the pacer spreads over 1/2.5 of the 33 ms between two frames.
    let p95 = frames.delay.quantile(0.95).unwrap().as_millis_f64();
    assert!((20.0..34.0).contains(&p95), "{p95} ms");
    // The round trip of the reports.
    assert_eq!(call.sender.stats().rtt.mean(), Some(DELAY * 2));
}

#[test]
fn a_third_of_the_packets_lost_reduces_the_target() {
    let mut call = Call::new(&Media::default());
    call.run(seconds(20), |number| number % 3 == 0);
    assert!(call.sender.target_bps() < 150e3, "{}", call.sender.target_bps());
}
