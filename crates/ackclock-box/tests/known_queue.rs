//! Estimates from the records of a download through a queue whose delays are known.

use std::net::Ipv4Addr;

use ackclock_box::maps::{Record, Subscriber};
use ackclock_box::subscribers::Subscribers;
use ackclock_core::{Histogram, Span, Time};
use ackclock_link::Side;

use crate::subscribers::policy;

const PAYLOAD: u32 = 1448;
const BEGIN: Time = Time::from_nanos(5_000_000_000);
/// Loop of a packet that does not wait.
const LOOP: Span = Span::from_millis(40);

/// A download through a queue: each ACK calls for one packet, which reaches the queue a loop later.
struct Download {
    side: Side,
    packets: u32,
    /// Packets that the sender may have outstanding.
    window: u32,
    /// Time to send one packet by the radio.
    service: fn(Time) -> Span,
}

impl Download {
    /// The kernel's records, one a packet and kind, and the delays of the packets in the queue.
    fn run(&self) -> (Vec<Record>, Histogram) {
        let (mut waits, mut left, mut records) = (Histogram::default(), Vec::<Time>::new(), Vec::new());
        for number in 0..self.packets as usize {
            let caller = number.checked_sub(self.window as usize).and_then(|caller| left.get(caller));
            let arrives = caller.map_or(BEGIN, |&caller| caller) + LOOP;
            let begins = left.last().map_or(arrives, |&last| last.max(arrives));
            let leaves = begins + (self.service)(begins);
            waits.record(leaves.since(arrives));
            left.push(leaves);
            let (passes, returns) = match self.side {
                Side::Mobile => (leaves, leaves),
                Side::Network => (arrives, leaves + LOOP / 2),
            };
            records.extend([
                self.record(passes, Record::DATA, number),
                self.record(returns, Record::ACK, number),
            ]);
        }
        records.sort_by_key(|record| record.at_ns);
        // On the network side, the handshake also has a part over the radio.
        let (round_trip, radio) =
            if self.side == Side::Mobile { (LOOP, Span::ZERO) } else { (LOOP / 2, LOOP / 2) };
        let opened = Record { at_ns: BEGIN.as_nanos(), passed: 0, arrived: 1, acked: 1, ..records[0] };
        let value = (round_trip.as_nanos() / 1000) as u32;
        let opens = Record { kind: Record::OPENED, value, told: u16::MAX.into(), ..opened };
        let at_ns = (BEGIN + radio).as_nanos();
        let calls = Record { kind: Record::ACK, at_ns, told: 1 + self.window * PAYLOAD, ..opened };
        records.splice(0..0, [opens, calls]);
        (records, waits)
    }

    fn record(&self, at: Time, kind: u32, number: usize) -> Record {
        let end = 1 + (number as u32 + 1) * PAYLOAD;
        Record {
            at_ns: at.as_nanos(),
            kind,
            passed: u64::from(end) - 1,
            arrived: end,
            acked: end,
            told: end + self.window * PAYLOAD,
            segment: PAYLOAD,
            subscriber: Subscriber::from(Ipv4Addr::new(10, 0, 0, 7).to_ipv6_mapped()),
            ..Record::default()
        }
    }
}

/// What a box on this side learns of these records.
fn learnt<'a>(side: Side, records: impl IntoIterator<Item = &'a Record>) -> Subscribers {
    let side = if side == Side::Mobile { "" } else { "side = \"network\"" };
    let mut all = Subscribers::new(policy(side));
    records.into_iter().for_each(|record| _ = all.learn(record));
    all
}

fn percentile(waits: &Histogram) -> f64 {
    waits.quantile(0.95).unwrap().as_millis_f64()
}

/// In a second of five the radio is nearly still. Few packets wait for it, whereas a fifth of the time shows a long delay.
#[test]
fn the_percentiles_of_the_queueing_delay_are_those_of_the_packets() {
    let service = |at: Time| {
        let is_slow = at.as_nanos() % 5_000_000_000 >= 4_000_000_000;
        if is_slow { Span::from_millis(100) } else { Span::from_millis(3) }
    };
    for side in [Side::Mobile, Side::Network] {
        let (records, truth) = Download { side, packets: 20_000, window: 40, service }.run();
        let mut all = learnt(side, &records);
        let waits = all.take_waits();
        let counted = waits.count() as f64 / truth.count() as f64;
        assert!((0.99..=1.0).contains(&counted), "{side:?}: {counted} of the packets");
        let ratio = percentile(&waits) / percentile(&truth);
        println!("{side:?}: p95 {:.0} ms, estimated {:.0} ms", percentile(&truth), percentile(&waits));
        assert!((0.8..1.2).contains(&ratio), "{side:?}: {ratio}");
        let reported = all.worst(1)[0].wait_p95_ms.unwrap();
        assert_eq!(reported, percentile(&waits), "all packets are those of one subscriber");
    }
}
