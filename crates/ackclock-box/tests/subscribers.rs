//! Many subscribers: who is listed, what is measured of each, and what a scan may take.

use std::net::Ipv6Addr;

use ackclock_box::clip::MOST_SUBSCRIBERS;
use ackclock_box::config::{BoxTable, EdgeValues, Policy};
use ackclock_box::maps::{Allowance, Record, Subscriber, Totals};
use ackclock_box::subscribers::{MUCH, Subscribers};
use ackclock_core::{Size, Span, Time};

const PAYLOAD: u32 = 1448;
const WIRE: u64 = 1448 + 52;
const BEGIN: Time = Time::from_nanos(5_000_000_000);
/// Shortest loop of every subscriber, packets per loop.
const LOOP_PACKETS: u32 = 4;

pub(crate) fn policy(more: &str) -> Policy {
    let text =
        format!("[box]\ninterface = \"wwan0\"\nsubscribers = [\"10.0.0.0/16\", \"2001:db8::/32\"]\n{more}");
    let edge = EdgeValues { regulator: "wrd".into(), buffer: Size::Packets(20), observed: None };
    BoxTable::read(&text).unwrap().policy(edge, None).unwrap()
}

fn key(number: u32) -> Ipv6Addr {
    let [_, _, high, low] = number.to_be_bytes();
    std::net::Ipv4Addr::new(10, 0, high, low).to_ipv6_mapped()
}

fn record(at: Time, number: u32, flow: u32, kind: u32) -> Record {
    Record {
        at_ns: at.as_nanos(),
        kind,
        flow,
        subscriber: Subscriber::from(key(number)),
        ..Record::default()
    }
}

/// Records of a download with one packet every `every`, of which `queued` packets wait beyond the four of the shortest
/// loop, from the 50th packet on.
fn download(number: u32, every: Span, queued: u32, packet: u32) -> [Record; 2] {
    let (now, end) = (BEGIN + every * u64::from(packet), 1 + packet * PAYLOAD);
    let ahead = LOOP_PACKETS + if packet < 50 { 0 } else { queued };
    let of = |kind| Record {
        passed: u64::from(end) - 1,
        arrived: end,
        acked: end,
        segment: PAYLOAD,
        ..record(now, number, number, kind)
    };
    [of(Record::DATA), Record { told: 1 + (packet + ahead) * PAYLOAD, ..of(Record::ACK) }]
}

/// A thousand subscribers, ten of them with a download for ten seconds; of the others only handshakes.
#[test]
fn ten_of_a_thousand_subscribers_are_measured() {
    let mut all = Subscribers::new(policy(""));
    let every = |number: u32| Span::from_millis(4 + 2 * u64::from(number));
    let queued = |number: u32| 2 + 3 * number;
    for number in 0..1000 {
        let opened = Record {
            value: (every(number % 10).as_nanos() / 1000) as u32 * LOOP_PACKETS,
            arrived: 1,
            acked: 1,
            told: 4 * PAYLOAD,
            ..record(BEGIN, number, number, Record::OPENED)
        };
        assert_eq!(all.learn(&opened), None);
    }
    assert_eq!((all.len(), all.connections()), (0, 0));
    let mut records: Vec<_> = (0..10)
        .flat_map(|number| {
            let packets = (Span::from_secs(10).as_nanos() / every(number).as_nanos()) as u32;
            (1..=packets).flat_map(move |packet| download(number, every(number), queued(number), packet))
        })
        .collect();
    records.sort_by_key(|record| record.at_ns);
    let (mut listed, mut tick, mut written) = (Vec::new(), BEGIN, 0);
    for record in &records {
        listed.extend(all.learn(record));
        while tick.as_nanos() < record.at_ns {
            tick += Span::from_millis(5);
            let count = |_, _: Allowance| -> Result<(), ()> {
                written += 1;
                Ok(())
            };
            all.update(tick, Span::from_secs(1), count).unwrap();
        }
    }
    assert_eq!((all.len(), all.connections(), listed.len()), (10, 10, 10));
    assert!(written > 10, "{written}");
    all.note_totals(BEGIN + Span::from_secs(9), &[]);
    let totals: Vec<_> = (0..10)
        .map(|number| {
            let bytes = Span::from_secs(10).as_nanos() / every(number).as_nanos() * WIRE;
            (key(number), Totals { in_bytes: bytes, in_flow_bytes: bytes })
        })
        .collect();
    all.note_totals(BEGIN + Span::from_secs(10), &totals);
    let worst = all.worst(100);
    assert_eq!(worst.len(), 10);
    assert!(worst.is_sorted_by(|one, next| one.wait_p95_ms >= next.wait_p95_ms), "{worst:?}");
    for number in 0..10 {
        let one = worst.iter().find(|one| one.key == format!("10.0.0.{number}")).unwrap();
        let rate = WIRE as f64 * 8.0 / every(number).as_secs_f64();
        let wait = every(number).as_millis_f64() * f64::from(queued(number));
        let measured = one.wait_p95_ms.unwrap();
        assert!((one.rate_bps / rate - 1.0).abs() < 0.1, "{rate} bit/s: {one:?}");
        assert!((measured / wait - 1.0).abs() < 0.2, "{number}: {wait} ms: {one:?}");
    }
}

#[test]
fn a_scan_lists_nobody_and_removes_nobody() {
    let mut all = Subscribers::new(policy(""));
    for packet in 1..100 {
        download(7, Span::from_millis(10), 0, packet).iter().for_each(|record| _ = all.learn(record));
    }
    let now = BEGIN + Span::from_secs(1);
    for flow in 1000..1_001_000 {
        let record = Record { arrived: 1, ..record(now, flow % 60_000, flow, Record::OPENED) };
        assert_eq!(all.learn(&record), None);
        all.learn(&Record { kind: Record::ACK, ..record });
    }
    assert!(all.sweep(now).is_empty());
    assert_eq!((all.len(), all.connections()), (1, 1));
    assert!(all.openings() <= 1024, "{}", all.openings());
    // Data to 5000 addresses: the tables have an end, and those who came first stay.
    for number in 100..5100 {
        all.learn(&Record { arrived: 2, passed: 1, ..record(now, number, 2_000_000 + number, Record::DATA) });
    }
    assert_eq!((all.len(), all.refused()), (4096, 905));
    assert!(all.lists(key(7)));
    // The table is full: whoever was quiet for ten seconds goes.
    for packet in 100..1300 {
        download(7, Span::from_millis(10), 0, packet).iter().for_each(|record| _ = all.learn(record));
    }
    assert_eq!(all.sweep(now + Span::from_secs(12)).len(), 4095);
    assert!(all.lists(key(7)) && all.len() == 1);
}

/// Nothing is lost in silence: what is not observed is counted as long as it has data.
#[test]
fn connections_have_a_bound() {
    let data = |at, flow| Record { arrived: 2, passed: 1, ..record(at, flow % 40, flow, Record::DATA) };
    let mut all = Subscribers::new(policy(""));
    (0..40_000).for_each(|flow| _ = all.learn(&data(BEGIN, flow)));
    assert_eq!((all.connections(), all.unobserved(), all.len()), (16_384, 40_000 - 16_384, 40));
    let later = BEGIN + Span::from_secs(8);
    (39_000..40_000).for_each(|flow| _ = all.learn(&data(later, flow)));
    all.sweep(BEGIN + Span::from_secs(11));
    assert_eq!((all.connections(), all.unobserved(), all.len()), (0, 1000, 40));
    // There is room now.
    (39_500..40_000).for_each(|flow| _ = all.learn(&data(BEGIN + Span::from_secs(11), flow)));
    assert_eq!((all.connections(), all.unobserved()), (500, 500));
}

#[test]
fn the_connections_of_a_subscriber_have_a_bound() {
    let mut all = Subscribers::new(policy(""));
    for flow in 0..2000 {
        all.learn(&Record { arrived: 2, passed: 1, ..record(BEGIN, 7, flow, Record::DATA) });
    }
    assert_eq!((all.connections(), all.unobserved(), all.refused()), (1024, 976, 976));
}

#[test]
fn an_allowance_is_written_when_it_changes_or_gets_old() {
    let mut all = Subscribers::new(policy("act_on = [\"10.0.0.8\"]"));
    let inherited = Allowance { at_ns: 1, bytes: 5000, base: 1, least: 100, act: 0 };
    assert!(all.inherit(BEGIN, key(7), inherited) && all.inherit(BEGIN, key(8), inherited));
    assert!(!all.inherit(BEGIN, Ipv6Addr::LOCALHOST, inherited), "not in the networks");
    let mut written = Vec::new();
    for second in [0, 1, 2, 3, 4] {
        let now = BEGIN + Span::from_secs(second);
        let write = |key, allowance: Allowance| -> Result<(), ()> {
            written.push((second, key, allowance.act, allowance.bytes));
            Ok(())
        };
        all.update(now, Span::from_secs(2), write).unwrap();
    }
    let expected = [0, 2, 4].map(|second| [(second, key(7), 0, 5000), (second, key(8), 1, 5000)]);
    assert_eq!(written, expected.concat());
}

#[test]
fn a_reload_keeps_those_whose_rule_stays() {
    let mut all = Subscribers::new(policy(""));
    for number in [7, 300] {
        all.learn(&Record { arrived: 2, passed: 1, ..record(BEGIN, number, number, Record::DATA) });
    }
    let text = "[box]\ninterface = \"wwan0\"\nsubscribers = [\"10.0.0.0/24\"]\nleave_alone = [\"10.0.0.7\"]";
    let edge = EdgeValues { regulator: "wrd".into(), buffer: Size::Packets(20), observed: None };
    let changed = BoxTable::read(text).unwrap().policy(edge, None).unwrap();
    assert_eq!(all.reload(changed).unwrap(), [key(300)]);
    let worst = all.worst(100);
    assert_eq!((worst.len(), worst[0].acted_on, worst[0].connections), (1, false, 1));
}

#[test]
fn a_subscriber_with_only_udp_is_listed_by_its_traffic() {
    let mut all = Subscribers::new(policy(""));
    let after = |seconds| BEGIN + Span::from_secs(seconds);
    for record in download(1, Span::from_millis(4), 0, 0) {
        all.learn(&record);
    }
    // Of a scan, of UDP, and of an address that belongs to no subscriber.
    let stranger = std::net::Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped();
    let unlisted = [(key(2), MUCH), (key(3), MUCH - 1), (stranger, MUCH)];
    assert_eq!(all.note_unlisted(after(1), &unlisted), [key(2)]);
    assert!(all.worst(9).iter().all(|one| one.traffic_share.is_none()), "no traffic was counted");
    let totals = |bytes| {
        [
            (key(1), Totals { in_bytes: 3000, in_flow_bytes: 3000 }),
            (key(2), Totals { in_bytes: bytes, in_flow_bytes: 0 }),
        ]
    };
    all.note_totals(after(2), &totals(9000));
    let reports = all.worst(9);
    let udp = reports.iter().find(|one| one.key == "10.0.0.2").unwrap();
    assert_eq!((reports.len(), udp.bytes, udp.traffic_share), (2, 9000, Some(0.75)));
    assert_eq!((udp.wait_p50_ms, udp.wait_p95_ms, udp.connections), (None, None, 0));
    // Traffic of any protocol keeps it; without traffic it is forgotten.
    all.note_totals(after(500), &totals(10_000));
    assert_eq!(all.sweep(after(700)), [key(1)]);
    assert_eq!(all.sweep(after(1200)), [key(2)]);
}

#[test]
fn many_addresses_with_udp_leave_room_for_those_with_connections() {
    let mut all = Subscribers::new(policy(""));
    let unlisted: Vec<_> = (0..60_000).map(|number| (key(number), MUCH)).collect();
    assert_eq!(all.note_unlisted(BEGIN, &unlisted).len(), MOST_SUBSCRIBERS / 2);
    let new = download(60_001, Span::from_millis(4), 0, 0);
    assert_eq!(all.learn(&new[0]), Some(key(60_001)));
}
