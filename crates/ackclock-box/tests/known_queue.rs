//! Estimates from the records of a download through a queue whose delays are known.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
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

/// Packet numbers at the places of a download by NewReno (RFC 6582) through a queue that drops what finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A packet with these timestamps reaches the queue.
    Reaches(u32, Stamps),
    /// The first packet of the queue leaves it.
    Leaves,
    /// An ACK of all packets below this number, sent at this time, passes the box, then reaches the server.
    Returns(u32, u64),
    Acked(u32, u64),
}

/// Time of sending, and time of the newest ACK that the server has.
type Stamps = (u64, u64);

struct Lossy {
    side: Side,
    /// Packets for which the queue has room.
    room: usize,
    now: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    queue: VecDeque<(u32, u64, Stamps)>,
    // The sender: next new packet, oldest unacknowledged packet, window, duplicate ACKs, and the end of a recovery.
    next: u32,
    oldest: u32,
    window: f64,
    duplicates: u32,
    recovers: Option<u32>,
    echo: u64,
    /// Packets that the mobile has beyond those that it acknowledges.
    beyond: BTreeSet<u32>,
    expected: u32,
    // The kernel's state of the connection.
    record: Record,
    told: [u64; 2],
    records: Vec<Record>,
    waits: Histogram,
    drops: u32,
}

const MS: u64 = 1_000_000;
/// Time of a packet on the radio, and delays of the wired path and of the uplink.
const SERVICE: u64 = 4 * MS;
const WIRED: u64 = 15 * MS;
const UPLINK: u64 = 10 * MS;
/// Smallest window that the mobile advertises, bytes; the mobile always offers twice what the server uses.
const LEAST_WINDOW: u32 = 65_535;

impl Lossy {
    fn run(side: Side, room: usize, seconds: u64) -> Self {
        let begin = BEGIN.as_nanos();
        let subscriber = Subscriber::from(Ipv4Addr::new(10, 0, 0, 7).to_ipv6_mapped());
        let opened = Record {
            at_ns: begin,
            kind: Record::OPENED,
            arrived: 1,
            acked: 1,
            told: u16::MAX.into(),
            value: (2 * WIRED / 1000) as u32,
            subscriber,
            ..Record::default()
        };
        let record =
            Record { kind: 0, value: 0, told: 1 + LEAST_WINDOW, segment: PAYLOAD, stamped: 1, ..opened };
        let at_ns = begin + if side == Side::Mobile { 0 } else { UPLINK };
        let first = Record { kind: Record::ACK, at_ns, value: (at_ns / MS) as u32, ..record };
        let mut all = Self {
            side,
            room,
            now: at_ns + WIRED,
            events: BinaryHeap::new(),
            queue: VecDeque::new(),
            next: 0,
            oldest: 0,
            window: 10.0,
            duplicates: 0,
            recovers: None,
            echo: at_ns,
            beyond: BTreeSet::new(),
            expected: 0,
            record,
            told: [0; 2],
            records: vec![opened, first],
            waits: Histogram::default(),
            drops: 0,
        };
        all.send_new();
        while let Some(Reverse((at, event))) = all.events.pop()
            && at < begin + seconds * 1000 * MS
        {
            all.now = at;
            all.on_event(event);
        }
        all
    }

    fn after(&mut self, time: u64, event: Event) {
        self.events.push(Reverse((self.now + time, event)));
    }

    fn send(&mut self, number: u32) {
        self.after(WIRED, Event::Reaches(number, (self.now, self.echo)));
    }

    fn send_new(&mut self) {
        while f64::from(self.next - self.oldest - self.duplicates.min(self.next - self.oldest)) < self.window
        {
            self.send(self.next);
            self.next += 1;
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Reaches(number, stamps) => self.reach(number, stamps),
            Event::Leaves => self.leave(),
            Event::Returns(number, sent) => {
                self.pass_ack(number, sent);
                self.after(WIRED, Event::Acked(number, sent));
            }
            Event::Acked(number, sent) => {
                self.echo = sent;
                self.on_ack(number);
            }
        }
    }

    fn reach(&mut self, number: u32, stamps: Stamps) {
        if self.side == Side::Network {
            self.pass_data(number, stamps);
        }
        if self.queue.len() == self.room {
            self.drops += 1;
            return;
        }
        self.queue.push_back((number, self.now, stamps));
        if self.queue.len() == 1 {
            self.after(SERVICE, Event::Leaves);
        }
    }

    fn leave(&mut self) {
        let (number, reached, stamps) = self.queue.pop_front().unwrap();
        if !self.queue.is_empty() {
            self.after(SERVICE, Event::Leaves);
        }
        self.waits.record(Span::from_nanos(self.now - reached));
        if self.side == Side::Mobile {
            self.pass_data(number, stamps);
        }
        self.beyond.insert(number);
        while self.beyond.remove(&self.expected) {
            self.expected += 1;
        }
        let uplink = if self.side == Side::Mobile { 0 } else { UPLINK };
        self.after(uplink, Event::Returns(self.expected, self.now));
    }

    fn on_ack(&mut self, number: u32) {
        if number == self.oldest {
            self.duplicates += 1;
            if self.duplicates == 3 && self.recovers.is_none() {
                self.recovers = Some(self.next);
                self.window = (self.window / 2.0).max(2.0);
                self.send(self.oldest);
            }
        } else {
            let newly = number - self.oldest;
            self.oldest = number;
            match self.recovers {
                Some(end) if number < end => {
                    self.duplicates = self.duplicates.saturating_sub(newly);
                    self.send(number);
                }
                _ => {
                    (self.recovers, self.duplicates) = (None, 0);
                    self.window += f64::from(newly) / self.window;
                }
            }
        }
        self.send_new();
    }

    /// As the kernel's program does.
    fn pass_data(&mut self, number: u32, stamps: Stamps) {
        let end = 1 + (number + 1) * PAYLOAD;
        if end <= self.record.acked {
            return;
        }
        if end > self.record.arrived {
            self.record.passed += u64::from(end - self.record.arrived);
            self.record.arrived = end;
        } else {
            self.record.repeated += 1;
        }
        self.tell(Record::DATA, stamps);
    }

    fn pass_ack(&mut self, number: u32, sent: u64) {
        let acked = 1 + number * PAYLOAD;
        if acked > self.record.acked {
            self.record.acked = acked;
            let offered = (2.0 * self.window) as u32 * PAYLOAD;
            self.record.told = self.record.told.max(acked + offered.max(LEAST_WINDOW));
            self.tell(Record::ACK, (sent, 0));
        }
    }

    fn tell(&mut self, kind: u32, (value, echo): Stamps) {
        let last = &mut self.told[kind as usize];
        if self.now - *last >= MS {
            *last = self.now;
            let [value, echo] = [value, echo].map(|time| (time / MS) as u32);
            self.records.push(Record { at_ns: self.now, kind, value, echo, ..self.record });
        }
    }
}

/// Packets behind a hole are acknowledged when the hole is filled; they did not wait for that in the queue.
#[test]
fn the_percentiles_of_the_queueing_delay_are_true_with_drops_and_without() {
    for side in [Side::Mobile, Side::Network] {
        for room in [1000, 60, 25] {
            let Lossy { records, waits: truth, drops, .. } = Lossy::run(side, room, 60);
            let waits = learnt(side, &records).take_waits();
            let of = |waits: &Histogram, q| waits.quantile(q).unwrap().as_millis_f64();
            let [p50, p95] = [0.5, 0.95].map(|q| (of(&waits, q), of(&truth, q)));
            println!(
                "{side:?}, room for {room}, {drops} drops: told {:.0} / {:.0}, true {:.0} / {:.0} ms, {} of {} packets",
                p50.0,
                p95.0,
                p50.1,
                p95.1,
                waits.count(),
                truth.count()
            );
            assert!(room == 1000 || drops > 5);
            for (told, is) in [p50, p95] {
                assert!((told / is - 1.0).abs() < 0.15, "{side:?}, room for {room}: {told} is {is}");
            }
        }
    }
}
