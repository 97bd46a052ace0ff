//! Captures of one TCP flow over a link of constant rate.

use std::io::Cursor;
use std::time::Duration;

use etherparse::{PacketBuilder, TcpOptionElement};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use proptest::prelude::*;

use super::*;
use crate::formats::Towards;

const SERVER: [u8; 4] = [192, 0, 2, 1];
const MOBILE: [u8; 4] = [10, 0, 0, 1];
/// Packets of 1500 bytes that the link delivers in a second, and its one-way delay in seconds.
const PER_SECOND: f64 = 200.0;
const DELAY: f64 = 0.04;

/// End of the path at which packets are captured.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Sender,
    Receiver,
}

/// Captured frame with its time.
type Frame = (f64, Vec<u8>);

/// Ethernet frame from one address to another. A frame without clock values contains UDP.
fn frame(from: [u8; 4], to: [u8; 4], payload: usize, stamps: Option<(f64, f64)>) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from, to, 64);
    let (mut bytes, data) = (Vec::new(), vec![0; payload]);
    let (source, destination) = if from == SERVER { (443, 50_000) } else { (50_000, 443) };
    match stamps {
        Some(stamps) => {
            let [value, echo] = [stamps.0, stamps.1].map(|seconds| (seconds * 1e3 + 4e9) as u64 as u32);
            let noop = TcpOptionElement::Noop;
            let options = [noop.clone(), noop, TcpOptionElement::Timestamp(value, echo)];
            let tcp = builder.tcp(source, destination, 1, 65_000).ack(1).options(&options).unwrap();
            tcp.write(&mut bytes, &data).unwrap();
        }
        None => builder.udp(source, destination).write(&mut bytes, &data).unwrap(),
    }
    bytes
}

/// Frames of packets that the server sends at the times `sent`, with an ACK for each.
fn frames(sent: &[f64], end: End) -> Vec<Frame> {
    let (mut frames, mut arrival, mut acks) = (Vec::new(), f64::MIN, Vec::<f64>::new());
    for &at in sent {
        let heard = acks.iter().rev().find(|ack| **ack + DELAY <= at).copied().unwrap_or(-1.0);
        arrival = f64::max(arrival, at + DELAY) + 1.0 / PER_SECOND;
        acks.push(arrival);
        let (data_at, ack_at) = if end == End::Receiver { (arrival, arrival) } else { (at, arrival + DELAY) };
        frames.push((data_at, frame(SERVER, MOBILE, 1448, Some((at, heard)))));
        frames.push((ack_at, frame(MOBILE, SERVER, 0, Some((arrival, at)))));
    }
    frames.sort_by(|one, next| one.0.total_cmp(&next.0));
    frames
}

fn pcap(frames: &[Frame], snaplen: usize) -> Vec<u8> {
    let header = PcapHeader { datalink: DataLink::ETHERNET, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for (at, frame) in frames {
        let data = &frame[..frame.len().min(snaplen)];
        let at = Duration::from_secs_f64(1.7e9 + at);
        writer.write_packet(&PcapPacket::new(at, frame.len() as u32, data)).unwrap();
    }
    writer.into_writer()
}

/// Times of 20 s of packets at this share of the link's rate, behind a first packet that finds the link idle.
fn times(share: f64) -> Vec<f64> {
    let count = (20.0 * PER_SECOND * share) as u32;
    let times = (1..=count).map(|number| 1.0 + f64::from(number) / (PER_SECOND * share));
    [0.5].into_iter().chain(times).collect()
}

fn import(bytes: &[u8], options: &Options) -> Result<Imported, TraceError> {
    read(&mut Cursor::new(bytes), options)
}

fn grade(imported: &Imported) -> Grade {
    imported.certainty.as_ref().unwrap().grade
}

#[test]
fn a_queue_shows_the_capacity_and_a_slow_sender_does_not() {
    for (share, expected) in [(1.3, Grade::Capacity), (0.9, Grade::Application), (0.5, Grade::Application)] {
        let imported = import(&pcap(&frames(&times(share), End::Receiver), 66), &Options::default()).unwrap();
        assert_eq!(grade(&imported), expected, "{share}: {:?}", imported.certainty);
        let Recording::Samples(samples) = &imported.recording else { panic!("no rates") };
        for (begin, end) in &imported.capacity {
            let inside = samples.rows().iter().filter(|row| row.begins >= *begin && row.begins < *end);
            for row in inside {
                let rate = row.rate.as_bps() as f64;
                assert!((rate / (PER_SECOND * 12e3) - 1.0).abs() <= 0.051, "{share}: {rate}");
            }
        }
    }
}

#[test]
fn a_pause_of_the_sender_is_idle_and_one_of_the_link_is_busy() {
    // A sender of 130 % of the rate that pauses for 10 s, longer than its queue lasts.
    let sent: Vec<f64> = times(1.3).into_iter().chain(times(1.3).iter().map(|at| at + 36.0)).collect();
    let imported = import(&pcap(&frames(&sent, End::Receiver), 66), &Options::default()).unwrap();
    assert_eq!(grade(&imported), Grade::Mixed, "{:?}", imported.certainty);
    let filled =
        import(&pcap(&frames(&sent, End::Receiver), 66), &Options { fill: true, ..Options::default() });
    let slowest = |imported: &Imported| imported.recording.statistics().percentile(0.05).unwrap();
    assert_eq!(slowest(&imported), Rate::ZERO);
    assert!(slowest(&filled.unwrap()).as_bps() > 2_000_000);
    // The same packets; the link delivers nothing for 10 s.
    let mut outage = frames(&times(1.3), End::Receiver);
    outage.iter_mut().filter(|(at, _)| *at > 15.0).for_each(|(at, _)| *at += 10.0);
    let imported = import(&pcap(&outage, 66), &Options::default()).unwrap();
    assert_eq!(grade(&imported), Grade::Capacity, "{:?}", imported.certainty);
    assert_eq!(imported.recording.statistics().outages.len(), 1);
}

#[test]
fn merged_segments_count_their_headers() {
    let times = times(1.0);
    let whole = frames(&times, End::Receiver);
    // Ten segments of 1448 bytes arrive as one packet, with the clock of the last one.
    let data: Vec<&Frame> = whole.iter().filter(|(_, frame)| frame.len() > 1000).collect();
    let others = whole.iter().filter(|(_, frame)| frame.len() < 1000).chain([data[0]]).cloned();
    let mut merged: Vec<Frame> = data[1..]
        .chunks_exact(10)
        .zip(times[1..].chunks_exact(10))
        .map(|(segments, sent)| (segments[9].0, frame(SERVER, MOBILE, 10 * 1448, Some((sent[9], -1.0)))))
        .chain(others)
        .collect();
    merged.sort_by(|one, next| one.0.total_cmp(&next.0));
    let rate = |frames: &[Frame]| {
        let imported = import(&pcap(frames, 96), &Options::default()).unwrap();
        imported.recording.mean_rate().as_bps() as f64
    };
    let (one_by_one, merged) = (rate(&whole), rate(&merged));
    assert!((merged / one_by_one - 1.0).abs() < 0.01, "{merged} and {one_by_one}");
}

#[test]
fn a_capture_at_the_sender_is_refused() {
    let bytes = pcap(&frames(&times(1.3), End::Sender), 66);
    let error = import(&bytes, &Options::default()).unwrap_err().to_string();
    assert!(error.starts_with("most of its bytes were captured near their sender"), "{error}");
    let to_mobile = Options { host: Some(MOBILE.into()), ..Options::default() };
    assert_eq!(import(&bytes, &to_mobile).unwrap_err().to_string(), error);
    let from_mobile = Options { towards: Some(Towards::Server), ..to_mobile };
    assert_eq!(grade(&import(&bytes, &from_mobile).unwrap()), Grade::Application, "ACKs of the mobile");
    let stranger = Options { host: Some([9; 4].into()), ..Options::default() };
    assert_eq!(import(&bytes, &stranger).unwrap_err().to_string(), "it has no packet to 9.9.9.9");
}

#[test]
fn each_sender_has_to_be_busy() {
    // UDP of another sender shows no queue: bins with its packets are not known to be capacity.
    let mut frames = frames(&times(1.3), End::Receiver);
    let others =
        (0..200).map(|step| (10.0 + f64::from(step) * 0.05, frame([192, 0, 2, 9], MOBILE, 1000, None)));
    frames.extend(others);
    frames.sort_by(|one, next| one.0.total_cmp(&next.0));
    let imported = import(&pcap(&frames, 66), &Options::default()).unwrap();
    assert_eq!(grade(&imported), Grade::Mixed, "{:?}", imported.certainty);
    let only_udp: Vec<Frame> = frames.into_iter().filter(|(_, frame)| frame.len() == 1042).collect();
    let imported = import(&pcap(&only_udp, 66), &Options::default()).unwrap();
    assert_eq!(grade(&imported), Grade::Application);
    assert!(imported.notes.iter().any(|note| note.contains("100.0 % of the bytes")), "{:?}", imported.notes);
    assert!(imported.notes.iter().any(|note| note.contains("the receiver is assumed")));
}

#[test]
fn a_file_that_is_cut_off_is_read_to_its_end() {
    let bytes = pcap(&frames(&times(1.3), End::Receiver), 66);
    let imported = import(&bytes[..bytes.len() - 5], &Options::default()).unwrap();
    assert!(imported.notes.iter().any(|note| note.contains("is cut off")), "{:?}", imported.notes);
    for length in 0..60 {
        assert!(import(&bytes[..length], &Options::default()).is_err());
    }
}

/// Grade and mean rate of a capture.
fn judged(frames: &[Frame]) -> (Grade, f64, Vec<String>) {
    let imported = import(&pcap(frames, 96), &Options::default()).unwrap();
    (grade(&imported), imported.recording.mean_rate().as_bps() as f64, imported.notes)
}

#[test]
fn copies_count_once_and_leave_no_grade() {
    let once = frames(&times(1.3), End::Receiver);
    let twice: Vec<Frame> =
        once.iter().flat_map(|(at, frame)| [(*at, frame.clone()), (at + 2e-6, frame.clone())]).collect();
    let (_, rate, _) = judged(&once);
    let (grade, doubled, notes) = judged(&twice);
    assert_eq!((grade, doubled), (Grade::Application, rate));
    assert!(notes.iter().any(|note| note.contains("seen twice")), "{notes:?}");
    // A tenth of a per cent of copies is counted once, and no objection.
    let few =
        once.iter().enumerate().flat_map(|(at, frame)| vec![frame.clone(); 1 + usize::from(at % 1000 == 0)]);
    assert_eq!(judged(&few.collect::<Vec<_>>()).0, Grade::Capacity);
}

#[test]
fn a_clock_that_is_set_back_leaves_no_grade() {
    let mut back = frames(&times(1.3), End::Receiver);
    let half = back.len() / 2;
    back[half..].iter_mut().for_each(|(at, _)| *at -= 1.0);
    let (grade, _, notes) = judged(&back);
    assert_eq!(grade, Grade::Application);
    assert!(notes.iter().any(|note| note.contains("set back")), "{notes:?}");
    // Capture threads swap neighbours by less than 0.1 s.
    let mut swapped = frames(&times(1.3), End::Receiver);
    (10..swapped.len() - 1).step_by(7).for_each(|at| swapped.swap(at, at + 1));
    assert_eq!(judged(&swapped).0, Grade::Capacity);
}

#[test]
fn a_direction_without_a_host_needs_a_syn() {
    let up = Options { towards: Some(Towards::Server), ..Options::default() };
    let plain = frames(&times(1.3), End::Receiver);
    let error = import(&pcap(&plain, 96), &up).unwrap_err().to_string();
    assert!(error.contains("--host ADDRESS"), "{error}");
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(MOBILE, SERVER, 64);
    let mut syn = Vec::new();
    builder.tcp(50_000, 443, 1, 65_000).syn().write(&mut syn, &[]).unwrap();
    let with_syn: Vec<Frame> = [(0.1, syn)].into_iter().chain(plain).collect();
    let of =
        |towards| import(&pcap(&with_syn, 96), &Options { towards: Some(towards), ..Options::default() });
    // The mobile's ACKs are captured where they are sent.
    assert!(of(Towards::Server).unwrap_err().to_string().contains("near their sender"));
    assert_eq!(grade(&of(Towards::Mobile).unwrap()), Grade::Capacity);
}

#[test]
fn packets_inside_vlan_pppoe_and_mpls_are_read() {
    let plain = frames(&times(1.3), End::Receiver);
    let (_, rate, _) = judged(&plain);
    let pppoe: &[u8] = &[0x88, 0x64, 0x11, 0, 0, 1, 0, 0, 0, 0x21];
    let mpls: &[u8] = &[0x88, 0x47, 0, 1, 0, 64, 0, 1, 1, 64];
    let tagged_pppoe = [&[0x81, 0, 0, 7][..], pppoe].concat();
    for wrapper in [pppoe, mpls, &tagged_pppoe] {
        let wrap = |frame: &[u8]| [&frame[..12], wrapper, &frame[14..]].concat();
        let wrapped: Vec<Frame> = plain.iter().map(|(at, frame)| (*at, wrap(frame))).collect();
        assert_eq!(judged(&wrapped).0, Grade::Capacity, "{wrapper:?}");
        assert_eq!(judged(&wrapped).1, rate, "{wrapper:?}");
    }
}

#[test]
fn frames_that_are_not_read_leave_no_grade() {
    let mut mixed = frames(&times(1.3), End::Receiver);
    let arp = [&[2; 12][..], &[0x08, 0x06], &[0; 100]].concat();
    mixed.extend((0..2000).map(|number| (2.0 + f64::from(number) * 0.005, arp.clone())));
    mixed.sort_by(|one, next| one.0.total_cmp(&next.0));
    let (grade, _, notes) = judged(&mixed);
    assert_eq!(grade, Grade::Application, "{notes:?}");
}

proptest! {
    #[test]
    fn no_bytes_are_a_panic(magic in 0..5_usize, bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let whole = [&packets::MAGICS[magic][..], &bytes].concat();
        let _ = import(&whole, &Options::default());
    }

    #[test]
    fn no_changed_byte_is_a_panic(changes in proptest::collection::vec((0..2000_usize, any::<u8>()), 1..8)) {
        let mut bytes = pcap(&frames(&times(0.1), End::Receiver), 66);
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        let _ = import(&bytes, &Options::default());
    }
}

#[test]
fn timestamps_are_found_after_a_signature_and_multipath_data() {
    let stamps = [8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
    for before in [&[&[19, 18][..], &[0xaa; 16]].concat()[..], &[30, 8, 0x20, 1, 0, 0, 0, 5], &[]] {
        let options = [before, &stamps[..]].concat();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(SERVER, MOBILE, 64);
        let mut bytes = Vec::new();
        let tcp = builder.tcp(443, 50_000, 1, 65_000).ack(1).options_raw(&options).unwrap();
        tcp.write(&mut bytes, &[0; 100]).unwrap();
        let mut found = Vec::new();
        each(Cursor::new(pcap(&[(0.0, bytes)], 1500)), |packet| {
            found.extend(packet.segment.map(|segment| (segment.data, segment.stamps)));
        })
        .unwrap();
        assert_eq!(found, [(100, Some((7, Some(9))))], "{before:?}");
    }
}
