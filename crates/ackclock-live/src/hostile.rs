//! Properties that must hold for arbitrary input bytes. Fuzz targets and property tests call the same functions.
//!
//! Each function returns a description of the violated property, so that a fuzzer stops and a property test shrinks its
//! input.

mod neighbours;
mod relay_trial;

use ackclock_core::{Ecn, Flags, Segment, Seq, Span, Time};
use ackclock_edge::EdgeConfig;
use ackclock_link::{Direction, NoFiles};

use crate::control::{self, LinkRequest};
use crate::gso::{self, Header};
use crate::parse::{Layout, fragment, parse};
use crate::rewrite::rewrite;
use crate::{Plane, PlaneConfig, Side, Traffic};
pub use neighbours::Neighbours;

/// Checks the parsing of a packet: the parsed size must be right, and packets of unknown format must be opaque in every
/// respect.
///
/// # Errors
/// Returns a description of the violated property.
pub fn parsing(bytes: &[u8]) -> Result<(), String> {
    let parsed = parse(bytes);
    let size = parsed.segment.wire_bytes() as usize;
    // The size field of an opaque segment has 16 bits; only a jumbogram exceeds it.
    if size != bytes.len() && (parsed.segment.is_tcp() || size != usize::from(u16::MAX)) {
        return Err(format!("{} bytes count as {size}", bytes.len()));
    }
    if fragment(bytes).is_some() && parsed.segment.is_tcp() {
        return Err("a fragment is read as a segment".to_owned());
    }
    match (parsed.layout, parsed.segment.is_tcp()) {
        (Layout::Opaque, false) | (Layout::Ipv4(_) | Layout::Ipv6(_), true) => Ok(()),
        (layout, tcp) => Err(format!("{layout:?}, and TCP is {tcp}")),
    }
}

/// Checks the rewriting of a packet by a regulator, controlled by `knobs`. Opaque packets must stay unchanged, except
/// for a mark of an ECN-capable packet, and other packets must parse to the changed segment. If the regulator changes
/// nothing, the bytes must stay equal.
///
/// # Errors
/// Returns a description of the violated property.
pub fn rewriting(knobs: [u8; 8], bytes: &[u8]) -> Result<(), String> {
    let parsed = parse(bytes);
    let mut after = bytes.to_vec();
    rewrite(&mut after, parsed.layout, &parsed.segment);
    if after != bytes {
        return Err("a packet changed although its segment did not".to_owned());
    }
    let changed = turn(knobs, parsed.segment);
    rewrite(&mut after, parsed.layout, &changed);
    if parsed.layout == Layout::Opaque {
        let mut marked = parsed;
        if changed.ecn == Ecn::Ce && matches!(parsed.segment.ecn, Ecn::Ect0 | Ecn::Ect1) {
            marked.segment.ecn = Ecn::Ce;
        }
        // The first twelve bytes of an IP header contain its ECN field and the checksum.
        let same = match marked == parsed {
            true => after == bytes,
            false => parse(&after) == marked && after.get(12..) == bytes.get(12..),
        };
        return if same { Ok(()) } else { Err("an opaque packet changed".to_owned()) };
    }
    let read = parse(&after).segment;
    if read == changed { Ok(()) } else { Err(format!("{changed:?} reads back as {read:?}")) }
}

/// Checks the answer to a line at the control socket: the answer must be one line, and an accepted request, written as
/// a line, must parse to the same request.
///
/// # Errors
/// Returns a description of the violated property.
pub fn asking(line: &[u8]) -> Result<(), String> {
    let understood = |request: &LinkRequest| {
        let again = LinkRequest::parse(&request.line());
        // A refusal repeats the name from the request, which may be any text.
        if again.as_ref() == Ok(request) { Err(format!("{request:?}")) } else { Ok(format!("{again:?}")) }
    };
    let answer = control::answer_to(line, understood);
    let is_line = answer.iter().position(|&byte| byte == b'\n') == Some(answer.len() - 1);
    if is_line && answer.starts_with(b"error ") {
        return Ok(());
    }
    Err(format!(
        "{:?} is answered by {:?}",
        line.escape_ascii().to_string(),
        answer.escape_ascii().to_string()
    ))
}

/// Checks the name server relay while clients send arbitrary data in any order: memory must stay bounded, and an answer
/// must reach only the client that sent the query.
///
/// # Errors
/// Returns a description of the violated property.
pub fn relaying(script: &[u8]) -> Result<(), String> {
    relay_trial::play(script).unwrap_or_else(|error| Err(error.to_string()))
}

/// Checks the splitting of bytes read from a device: the parts must hold no more than the packet, and each part must
/// fit its buffer.
///
/// # Errors
/// Returns a description of the violated property.
pub fn splitting(read: &[u8]) -> Result<(), String> {
    let mut read = read.to_vec();
    let whole = read.len();
    let Some((header, packet)) = Header::split_off(&mut read) else { return Ok(()) };
    let mut parts: Vec<Box<[u8]>> = (0..16).map(|_| vec![0; 256].into_boxed_slice()).collect();
    let mut lengths = vec![0; parts.len()];
    let Some(count) = gso::split(header, packet, &mut parts, &mut lengths) else { return Ok(()) };
    let headers = 60 + 60;
    let total: usize = lengths[..count].iter().sum();
    if lengths[..count].iter().any(|&length| length > 256) || total > whole + count * (headers + whole) {
        return Err(format!("{count} parts of {total} bytes from {whole}"));
    }
    Ok(())
}

/// Feeds packets to a data plane; two bytes before each packet select its side, length and delay. Every packet must
/// depart, be discarded or be inside the link.
///
/// # Errors
/// Returns a description of the violated property.
pub fn playing(edge: &EdgeConfig, mut script: &[u8]) -> Result<(), String> {
    let config = PlaneConfig { flows: 4, packets: 64, packet_bytes: 300, ..PlaneConfig::new(edge) };
    let mut plane = Plane::new(&config, &NoFiles).map_err(|error| error.to_string())?;
    let (mut now, mut arrived, mut departed) = (Time::ZERO, 0, 0);
    while let [head, wait, rest @ ..] = script {
        let side = if head & 0x80 == 0 { Side::Wired } else { Side::Radio };
        let (packet, rest) = rest.split_at(usize::from(head & 0x7f).min(rest.len()));
        now += Span::from_micros(u64::from(*wait) * 100);
        let mut buffer = plane.pool().buffer();
        buffer[..packet.len()].copy_from_slice(packet);
        if let Some(packet) = plane.pool_mut().claim(&mut buffer, packet.len()) {
            arrived += 1;
            plane.arrive(now, side, packet);
        }
        while let Some(departure) = plane.poll_departure() {
            departed += 1;
            plane.release(departure.packet);
        }
        script = rest;
    }
    conserves(&plane, arrived, departed)
}

/// Checks in each direction that every arrived packet has departed, is lost or is inside the link. `arrived` and
/// `departed` are the caller's own counts.
///
/// # Errors
/// Returns a description of the imbalance.
pub fn conserves(plane: &Plane, arrived: u64, departed: u64) -> Result<(), String> {
    let traffic = Direction::BOTH.map(|direction| plane.traffic(direction));
    let sum = |of: fn(&Traffic) -> u64| traffic.iter().map(of).sum::<u64>();
    let counts = plane.edge().statistics();
    let held = (plane.inside() + plane.pool().copies()) as u64;
    if traffic.iter().all(|traffic| traffic.unaccounted() == 0)
        && (sum(|one| one.arrived), sum(|one| one.left)) == (arrived, departed)
        && sum(|one| one.inside) + counts.kept == held + counts.released
    {
        Ok(())
    } else {
        Err(format!("{arrived} arrived, {departed} departed, {held} held; {traffic:?}, {counts:?}"))
    }
}

/// Changes a segment as a regulator or a queue may do.
fn turn(knobs: [u8; 8], mut segment: Segment) -> Segment {
    let [what, a, b, c, d, e, f, _] = knobs;
    if what & 1 != 0 && segment.flags.contains(Flags::ACK) {
        segment.ack = Seq(u32::from_be_bytes([a, b, c, d]));
    }
    if what & 2 != 0 {
        segment.window = u16::from_be_bytes([e, f]);
    }
    if what & 4 != 0 {
        segment.flags |= Flags::ECE;
    }
    if what & 8 != 0 {
        segment.ecn = Ecn::Ce;
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_testkit::cases;
    use proptest::prelude::*;

    /// A valid packet with a few changed bytes, which finds more faults than random bytes.
    fn mutated() -> impl Strategy<Value = Vec<u8>> {
        let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
        (any::<bool>(), any::<[u8; 20]>(), prop::collection::vec(any::<u8>(), 0..40), changes).prop_map(
            |(v6, options, payload, changes)| {
                let ip = if v6 {
                    etherparse::PacketBuilder::ipv6([1; 16], [2; 16], 64)
                } else {
                    etherparse::PacketBuilder::ipv4([1; 4], [2; 4], 64)
                };
                let mut bytes = Vec::new();
                let tcp = ip.tcp(1, 2, 3, 4).ack(5).options_raw(&options).unwrap();
                tcp.write(&mut bytes, &payload).unwrap();
                for (index, value) in changes {
                    let at = index.index(bytes.len());
                    bytes[at] = value;
                }
                bytes
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(20)))]

        #[test]
        fn clients_of_a_relay_hear_answers_to_their_own_queries_alone(script in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(relaying(&script), Ok(()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(2000)))]

        #[test]
        fn any_line_at_the_control_socket_is_answered_by_a_line(words in prop::collection::vec("(show|set)?[\\PC\t=]{0,10}", 0..4), end in any::<[u8; 2]>()) {
            let mut line = words.join("\t").into_bytes();
            line.extend(end);
            prop_assert_eq!(asking(&line), Ok(()));
        }

        #[test]
        fn damaged_packets_are_read_and_rewritten_soundly(bytes in mutated(), knobs: [u8; 8]) {
            prop_assert_eq!(parsing(&bytes), Ok(()));
            prop_assert_eq!(rewriting(knobs, &bytes), Ok(()));
        }

        #[test]
        fn random_bytes_are_read_and_rewritten_soundly(bytes in prop::collection::vec(any::<u8>(), 0..120), knobs: [u8; 8]) {
            prop_assert_eq!(parsing(&bytes), Ok(()));
            prop_assert_eq!(rewriting(knobs, &bytes), Ok(()));
        }

        #[test]
        fn whatever_a_device_gives_is_split_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0u8..6) {
            let mut bytes = bytes;
            if let [_, gso_type, ..] = bytes.as_mut_slice() {
                *gso_type = kind;
            }
            prop_assert_eq!(splitting(&bytes), Ok(()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(200)))]

        #[test]
        fn no_packet_is_lost_from_the_books(packets in prop::collection::vec((mutated(), any::<bool>(), 0u8..50), 0..60), regulator in prop::sample::select(vec!["none", "ack-regulator", "ack-rate-control", "snoop", "wrd", "wrb"])) {
            let edge = EdgeConfig { regulator: regulator.into(), buffer: ackclock_core::Size::Packets(3), ..EdgeConfig::default() };
            let mut script = Vec::new();
            for (packet, up, wait) in packets {
                script.extend([packet.len() as u8 | (u8::from(up) << 7), wait]);
                script.extend(packet);
            }
            prop_assert_eq!(playing(&edge, &script), Ok(()));
        }
    }
}
