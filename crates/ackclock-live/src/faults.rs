//! # Faults of single connections
//!
//! ## Source
//! RFC 9293 sections 3.5.2 and 3.10.7 (resets), the toxics of Toxiproxy (what test authors ask for).
//!
//! ## What it does
//! A fault acts in front of the link, on the packets of the flows that it matches. `reset` ends a TCP connection at both
//! ends: from its next segment on, or after a number of payload bytes, each segment is replaced by a RST that travels on,
//! and answered by a RST. `cut` drops the packets of one direction or of both. `drop-first` drops the first packets of each
//! connection, in the order of their arrival from either side. `slow-close` clears the FIN flag of segments until a time
//! after the first FIN of a direction.
//!
//! ## Differences from the source
//! A middlebox cannot close an idle connection: a reset needs a segment, and SYNs pass. TCP repeats its FIN with growing
//! intervals, so a connection closes up to twice as late as `slow-close` says.
//!
//! ## Validation
//! Unit tests parse the resets with an independent parser and count checksums anew. Tests of `ackclock link` observe the
//! kernel's TCP: `ECONNRESET` at both ends, a SYN repeated after a second, an end of data that comes late.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use ackclock_core::results::FaultResult;
use ackclock_core::{Flags, Size, Span, Time};
use ackclock_link::Direction;
use serde_json::{Value, json};
use smoltcp::wire::{Ipv4Packet, Ipv6Packet, TcpPacket, TcpSeqNumber};

use crate::parse::{Layout, Parsed, Tuple};
use crate::port::Side;
use crate::selection::{Match, MatchedEnds};

/// A fault, the flows on which it acts, and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happens to a matching connection.
    pub kind: FaultKind,
    /// Flows on which the fault acts, as texts of [`Match`]; empty for all flows that cross the link.
    pub only: Vec<String>,
    /// Time for which the fault acts; `None` until it is cleared.
    pub lasts: Option<Span>,
}

impl Fault {
    /// Parses a fault: its kind, how long it acts, and its flows.
    ///
    /// # Errors
    /// Fails with the wrong text and what is allowed.
    pub fn parse<'a>(
        kind: &str,
        lasts: Option<&str>,
        only: impl Iterator<Item = &'a str>,
    ) -> Result<Self, String> {
        let lasts =
            lasts.map(|lasts| lasts.parse::<Span>().map_err(|error| error.to_string())).transpose()?;
        if lasts == Some(Span::ZERO) {
            return Err("a fault must last longer than 0".to_owned());
        }
        let only: Vec<String> = only.map(str::to_owned).collect();
        only.iter().try_for_each(|text| text.parse::<Match>().map(drop))?;
        Ok(Self { kind: kind.parse()?, only, lasts })
    }
}

/// Reason why a link does not accept a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddFaultError {
    /// The link has as many faults as it can have.
    #[error("there are {MOST_FAULTS} faults already; clear them first")]
    TooMany,
    /// A flow of the fault is not written as a match.
    #[error("{0}")]
    Match(String),
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The connection is reset when its payload in both directions reaches this number of bytes.
    Reset(u64),
    /// Packets of this direction are dropped; of both directions without one.
    Cut(Option<Direction>),
    /// The first packets of a connection are dropped.
    DropFirst(u32),
    /// The end of each direction's data is held back for a time.
    SlowClose(Span),
}

impl FromStr for FaultKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("reset", None) => Ok(Self::Reset(0)),
            ("reset", Some(bytes)) => match bytes.parse() {
                Ok(Size::Bytes(bytes)) => Ok(Self::Reset(bytes)),
                _ => Err(format!("`{bytes}` is no number of bytes; write reset or reset=64kB")),
            },
            ("cut", None | Some("both")) => Ok(Self::Cut(None)),
            ("cut", Some("up")) => Ok(Self::Cut(Some(Direction::Up))),
            ("cut", Some("down")) => Ok(Self::Cut(Some(Direction::Down))),
            ("drop-first", Some(number)) => match number.parse() {
                Ok(packets @ 1..) => Ok(Self::DropFirst(packets)),
                _ => Err(format!("`{number}` is no number of packets from 1 on; write drop-first=2")),
            },
            ("slow-close", Some(time)) => match time.parse() {
                Ok(time) if time > Span::ZERO => Ok(Self::SlowClose(time)),
                _ => Err(format!("`{time}` is no time above 0; write slow-close=5s")),
            },
            _ => Err(format!(
                "`{text}` is no fault; write reset, reset=64kB, cut, cut=up, cut=down, drop-first=2 or slow-close=5s"
            )),
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset(0) => f.write_str("reset"),
            Self::Reset(bytes) => write!(f, "reset={bytes}B"),
            Self::Cut(None) => f.write_str("cut"),
            Self::Cut(Some(Direction::Up)) => f.write_str("cut=up"),
            Self::Cut(Some(Direction::Down)) => f.write_str("cut=down"),
            Self::DropFirst(packets) => write!(f, "drop-first={packets}"),
            Self::SlowClose(time) => write!(f, "slow-close={time}"),
        }
    }
}

/// What happens to a packet in front of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on unchanged.
    Pass,
    /// It is dropped.
    Drop,
    /// It goes on as a RST, and its sender gets a RST.
    Reset,
    /// It goes on without its FIN flag.
    HoldFin,
}

/// Faults of a running link, and what they know about connections.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    active: Vec<Active>,
    /// What ended faults did, one entry for all faults of the same kind and flows.
    ended: Vec<FaultResult>,
}

#[derive(Debug)]
struct Active {
    fault: Fault,
    matches: Vec<Match>,
    until: Option<Time>,
    /// Connections on which the fault has acted, by their ends in the order of the link's sides.
    connections: BTreeMap<Tuple, Seen>,
    /// Number of connections met so far.
    met: u64,
    /// Numbers of packets dropped and of connections reset.
    dropped: u64,
    reset: u64,
}

/// What a fault knows about a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Order in which connections were met.
    number: u64,
    packets: u32,
    payload: u64,
    is_reset: bool,
    /// Time of the first FIN from each side.
    closing: [Option<Time>; 2],
}

/// Maximum number of connections that a fault remembers; the connection met first is forgotten first.
const MOST_CONNECTIONS: usize = 4096;
/// Maximum number of faults of a link.
const MOST_FAULTS: usize = 64;

impl Faults {
    /// Whether no fault acts.
    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// Adds a fault.
    ///
    /// # Errors
    /// Fails if a match is not one, or if there are too many faults.
    pub(crate) fn add(&mut self, now: Time, fault: Fault) -> Result<(), AddFaultError> {
        self.expire(now);
        if self.active.len() >= MOST_FAULTS {
            return Err(AddFaultError::TooMany);
        }
        let matches = fault.only.iter().map(|text| text.parse()).collect::<Result<_, String>>();
        let matches = matches.map_err(AddFaultError::Match)?;
        let until = fault.lasts.map(|lasts| now + lasts);
        self.active.push(Active {
            fault,
            matches,
            until,
            connections: BTreeMap::new(),
            met: 0,
            dropped: 0,
            reset: 0,
        });
        Ok(())
    }

    /// The faults in force, with what they did so far.
    pub(crate) fn report(&mut self, now: Time) -> Value {
        self.expire(now);
        let one = |active: &Active| {
            json!({
                "fault": active.fault.kind.to_string(),
                "only": active.fault.only,
                "remaining_s": active.until.map(|until| until.since(now).as_secs_f64()),
                "dropped": active.dropped,
                "reset": active.reset,
            })
        };
        self.active.iter().map(one).collect()
    }

    /// Ends all faults.
    pub(crate) fn clear(&mut self) {
        for active in std::mem::take(&mut self.active) {
            active.add_to(&mut self.ended);
        }
    }

    /// What all faults did, also those that have ended.
    pub(crate) fn results(&mut self, now: Time) -> Vec<FaultResult> {
        self.expire(now);
        let mut all = self.ended.clone();
        self.active.iter().for_each(|active| active.add_to(&mut all));
        all
    }

    fn expire(&mut self, now: Time) {
        for active in self.active.extract_if(.., |active| active.until.is_some_and(|until| until <= now)) {
            active.add_to(&mut self.ended);
        }
    }

    /// Verdict about a packet that arrives from a side: that of the first fault that does not let it pass. The networks of
    /// faults may contain these ends of its flow.
    pub(crate) fn judge(&mut self, now: Time, from: Side, parsed: &Parsed, ends: MatchedEnds) -> Verdict {
        self.expire(now);
        let Some(tuple) = &parsed.tuple else { return Verdict::Pass };
        let matching = self.active.iter_mut().filter(|active| active.acts_on(from, tuple, ends));
        matching
            .map(|active| active.judge(now, from, tuple, parsed))
            .find(|verdict| *verdict != Verdict::Pass)
            .unwrap_or(Verdict::Pass)
    }
}

impl Active {
    /// Adds what the fault did to the entry of its kind and flows.
    fn add_to(&self, results: &mut Vec<FaultResult>) {
        let (fault, only) = (self.fault.kind.to_string(), &self.fault.only);
        let known = results.iter().position(|result| result.fault == fault && result.only == *only);
        let at = known.unwrap_or_else(|| {
            results.push(FaultResult { fault, only: only.clone(), ..FaultResult::default() });
            results.len() - 1
        });
        results[at].dropped += self.dropped;
        results[at].reset += self.reset;
    }

    fn acts_on(&self, from: Side, tuple: &Tuple, ends: MatchedEnds) -> bool {
        self.matches.is_empty() || self.matches.iter().any(|one| one.matches(from, tuple, ends))
    }

    fn judge(&mut self, now: Time, from: Side, tuple: &Tuple, parsed: &Parsed) -> Verdict {
        let (kind, segment) = (self.fault.kind, &parsed.segment);
        let is_tcp = parsed.layout != Layout::Opaque;
        let verdict = match kind {
            FaultKind::Cut(direction) => {
                let arrives = if from == Side::Radio { Direction::Up } else { Direction::Down };
                if direction.is_none_or(|cut| cut == arrives) { Verdict::Drop } else { Verdict::Pass }
            }
            FaultKind::DropFirst(packets) => {
                let seen = self.seen(from, tuple);
                seen.packets = seen.packets.saturating_add(1);
                if seen.packets <= packets { Verdict::Drop } else { Verdict::Pass }
            }
            FaultKind::Reset(_) if !is_tcp || segment.flags.contains(Flags::SYN) => {
                // A SYN begins a connection, perhaps between the ends of an earlier one.
                self.connections.remove(&in_order(from, tuple));
                Verdict::Pass
            }
            FaultKind::Reset(_) if segment.flags.contains(Flags::RST) => Verdict::Pass,
            FaultKind::Reset(bytes) => {
                let seen = self.seen(from, tuple);
                seen.payload = seen.payload.saturating_add(segment.payload.into());
                let resets = seen.payload >= bytes;
                let is_first = resets && !std::mem::replace(&mut seen.is_reset, resets);
                self.reset += u64::from(is_first);
                if resets { Verdict::Reset } else { Verdict::Pass }
            }
            FaultKind::SlowClose(time) if is_tcp && segment.flags.contains(Flags::FIN) => {
                let closing = self.seen(from, tuple).closing[from as usize].get_or_insert(now);
                if now < *closing + time { Verdict::HoldFin } else { Verdict::Pass }
            }
            FaultKind::SlowClose(_) => Verdict::Pass,
        };
        self.dropped += u64::from(verdict == Verdict::Drop);
        verdict
    }

    /// What the fault knows about a connection; a new connection takes the place of the oldest one if necessary.
    fn seen(&mut self, from: Side, tuple: &Tuple) -> &mut Seen {
        let tuple = in_order(from, tuple);
        if !self.connections.contains_key(&tuple) && self.connections.len() >= MOST_CONNECTIONS {
            let oldest = self.connections.iter().min_by_key(|(_, seen)| seen.number).map(|(tuple, _)| *tuple);
            oldest.and_then(|oldest| self.connections.remove(&oldest));
        }
        self.met += 1;
        self.connections.entry(tuple).or_insert(Seen { number: self.met, ..Seen::default() })
    }
}

/// Ends of a packet in the order of the link's sides, which is equal for both directions of a connection.
fn in_order(from: Side, tuple: &Tuple) -> Tuple {
    match from {
        Side::Radio => *tuple,
        Side::Wired => Tuple { source: tuple.destination, destination: tuple.source, ..*tuple },
    }
}

/// Receiver of a RST that is written in place of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toward {
    /// The receiver of the segment.
    Receiver,
    /// The sender of the segment.
    Sender,
}

/// Length of a TCP header without options.
const TCP_HEADER: usize = 20;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const IPV6_LENGTH: usize = 4;
const NEXT_HEADER: usize = 6;
const TCP: u8 = 6;

/// Writes a RST in place of a TCP segment, and returns its length. `None` if the segment gives no acceptable number for it.
pub(crate) fn reset(bytes: &[u8], layout: Layout, toward: Toward, out: &mut [u8]) -> Option<usize> {
    let at = match layout {
        Layout::Opaque => return None,
        Layout::Ipv4(at) | Layout::Ipv6(at) => usize::from(at),
    };
    let segment = TcpPacket::new_checked(bytes.get(at..)?).ok()?;
    // A RST is acceptable if its number is the next one that the receiver expects (RFC 9293 section 3.10.7.4).
    let (seq, ack) = match toward {
        Toward::Receiver => (segment.seq_number(), segment.ack().then(|| segment.ack_number())),
        Toward::Sender if segment.ack() => (segment.ack_number(), None),
        Toward::Sender => return None,
    };
    let ports = match toward {
        Toward::Receiver => (segment.src_port(), segment.dst_port()),
        Toward::Sender => (segment.dst_port(), segment.src_port()),
    };
    let header = header(bytes, layout, toward, out)?;
    let (from, to) = header.1;
    let length = header.0 + TCP_HEADER;
    let out = out.get_mut(header.0..length)?;
    out.fill(0);
    let mut reset = TcpPacket::new_unchecked(out);
    reset.set_src_port(ports.0);
    reset.set_dst_port(ports.1);
    reset.set_seq_number(seq);
    reset.set_ack_number(ack.unwrap_or(TcpSeqNumber(0)));
    reset.set_header_len(TCP_HEADER as u8);
    reset.set_rst(true);
    reset.set_ack(ack.is_some());
    reset.fill_checksum(&from, &to);
    Some(length)
}

type Ends = (smoltcp::wire::IpAddress, smoltcp::wire::IpAddress);

/// Writes the IP header of a RST, without options. Returns its length, and the packet's addresses.
fn header(bytes: &[u8], layout: Layout, toward: Toward, out: &mut [u8]) -> Option<(usize, Ends)> {
    if matches!(layout, Layout::Ipv4(_)) {
        let whole = Ipv4Packet::new_checked(bytes).ok()?;
        let (from, to) = match toward {
            Toward::Receiver => (whole.src_addr(), whole.dst_addr()),
            Toward::Sender => (whole.dst_addr(), whole.src_addr()),
        };
        let out = out.get_mut(..IPV4_HEADER)?;
        out.copy_from_slice(&bytes[..IPV4_HEADER]);
        let mut ip = Ipv4Packet::new_unchecked(out);
        ip.set_header_len(IPV4_HEADER as u8);
        ip.set_total_len((IPV4_HEADER + TCP_HEADER) as u16);
        ip.set_src_addr(from);
        ip.set_dst_addr(to);
        ip.fill_checksum();
        return Some((IPV4_HEADER, (from.into(), to.into())));
    }
    let whole = Ipv6Packet::new_checked(bytes).ok()?;
    let (from, to) = match toward {
        Toward::Receiver => (whole.src_addr(), whole.dst_addr()),
        Toward::Sender => (whole.dst_addr(), whole.src_addr()),
    };
    let out = out.get_mut(..IPV6_HEADER)?;
    out.copy_from_slice(&bytes[..IPV6_HEADER]);
    out[IPV6_LENGTH..][..2].copy_from_slice(&(TCP_HEADER as u16).to_be_bytes());
    out[NEXT_HEADER] = TCP;
    let mut ip = Ipv6Packet::new_unchecked(out);
    ip.set_src_addr(from);
    ip.set_dst_addr(to);
    Some((IPV6_HEADER, (from.into(), to.into())))
}

/// Clears the FIN flag of a TCP segment.
pub(crate) fn hold_fin(bytes: &mut [u8], layout: Layout) {
    const FLAGS: usize = 12;
    const CHECKSUM: usize = 16;
    const FIN: u16 = 1;
    let (Layout::Ipv4(at) | Layout::Ipv6(at)) = layout else { return };
    let at = usize::from(at) + FLAGS;
    let Some(flags) = bytes.get(at..at + 2).map(|word| u16::from_be_bytes([word[0], word[1]])) else {
        return;
    };
    crate::rewrite::replace(bytes, at, flags & !FIN, Some(at - FLAGS + CHECKSUM));
}

#[cfg(test)]
mod tests {
    use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};

    use super::*;
    use crate::parse::parse;

    /// A segment from inside (10.0.0.2:4000) to 10.0.0.1:80, or its IPv6 sibling, with 100 bytes of payload.
    fn segment(v6: bool, flags: &str, payload: usize) -> Vec<u8> {
        let builder = if v6 {
            PacketBuilder::ipv6([2; 16], [1; 16], 64).tcp(4000, 80, 1000, 512)
        } else {
            PacketBuilder::ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64).tcp(4000, 80, 1000, 512)
        };
        let builder = flags.chars().fold(builder, |builder, flag| match flag {
            'S' => builder.syn(),
            'F' => builder.fin(),
            'R' => builder.rst(),
            _ => builder.ack(7000),
        });
        let mut bytes = Vec::new();
        builder.write(&mut bytes, &vec![7; payload]).unwrap();
        bytes
    }

    fn faults(text: &str, only: &[&str], lasts: Option<Span>) -> Faults {
        let mut faults = Faults::default();
        let only = only.iter().map(|text| (*text).to_owned()).collect();
        faults.add(Time::ZERO, Fault { kind: text.parse().unwrap(), only, lasts }).unwrap();
        faults
    }

    fn judged(faults: &mut Faults, ms: u64, from: Side, bytes: &[u8]) -> Verdict {
        faults.judge(Time::ZERO + Span::from_millis(ms), from, &parse(bytes), MatchedEnds::Far)
    }

    #[test]
    fn faults_are_read_as_they_are_printed() {
        for text in ["reset", "reset=64000B", "cut", "cut=up", "cut=down", "drop-first=3", "slow-close=5s"] {
            assert_eq!(text.parse::<FaultKind>().unwrap().to_string(), text);
        }
        assert_eq!("reset=64kB".parse(), Ok(FaultKind::Reset(64_000)));
        for (text, told) in [
            ("reset=3p", "`3p` is no number of bytes"),
            ("drop-first", "`drop-first` is no fault; write reset"),
            ("drop-first=0", "`0` is no number of packets from 1 on"),
            ("slow-close=0s", "`0s` is no time above 0"),
            ("cut=sideways", "is no fault"),
            ("timeout", "is no fault"),
        ] {
            let error = text.parse::<FaultKind>().unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn a_connection_is_reset_after_its_bytes_and_a_new_one_starts_anew() {
        let mut faults = faults("reset=250B", &["tcp:80"], None);
        let (syn, data) = (segment(false, "S", 0), segment(false, "A", 100));
        let mut of = |bytes: &[u8]| judged(&mut faults, 0, Side::Radio, bytes);
        assert_eq!([of(&syn), of(&data), of(&data)], [Verdict::Pass; 3]);
        assert_eq!([of(&data), of(&data)], [Verdict::Reset; 2]);
        assert_eq!(of(&segment(false, "R", 0)), Verdict::Pass, "a reset is not answered by one");
        assert_eq!([of(&syn), of(&data)], [Verdict::Pass; 2]);
        assert_eq!(faults.report(Time::ZERO)[0]["reset"], 1);
    }

    #[test]
    fn cut_drop_first_and_slow_close_act_on_their_packets() {
        let data = segment(false, "A", 100);
        let mut cut = faults("cut=up", &[], None);
        assert_eq!(judged(&mut cut, 0, Side::Radio, &data), Verdict::Drop);
        assert_eq!(judged(&mut cut, 0, Side::Wired, &data), Verdict::Pass);
        let mut first = faults("drop-first=2", &[], None);
        let all: Vec<_> = (0..4).map(|_| judged(&mut first, 0, Side::Radio, &data)).collect();
        assert_eq!(all, [Verdict::Drop, Verdict::Drop, Verdict::Pass, Verdict::Pass]);
        let (mut slow, fin) = (faults("slow-close=5s", &[], None), segment(false, "FA", 0));
        assert_eq!(judged(&mut slow, 0, Side::Radio, &data), Verdict::Pass);
        let all: Vec<_> =
            [1000, 5999, 6000].into_iter().map(|ms| judged(&mut slow, ms, Side::Radio, &fin)).collect();
        assert_eq!(all, [Verdict::HoldFin, Verdict::HoldFin, Verdict::Pass]);
    }

    #[test]
    fn a_fault_matches_its_flows_and_ends_with_its_time() {
        let data = segment(false, "A", 100);
        let mut other = faults("cut", &["tcp:443", "10.9.0.0/16"], None);
        assert_eq!(judged(&mut other, 0, Side::Radio, &data), Verdict::Pass);
        let mut short = faults("cut", &["tcp:80"], Some(Span::from_secs(2)));
        assert_eq!(judged(&mut short, 1999, Side::Radio, &data), Verdict::Drop);
        assert_eq!(judged(&mut short, 2000, Side::Radio, &data), Verdict::Pass);
        assert!(short.is_empty());
        let error =
            short.add(Time::ZERO, Fault { kind: FaultKind::Reset(0), only: vec!["x".into()], lasts: None });
        assert!(error.unwrap_err().to_string().contains("write tcp:5432"));
    }

    #[test]
    fn a_fault_remembers_a_limited_number_of_connections() {
        let mut faults = faults("drop-first=1", &[], None);
        for port in 0..MOST_CONNECTIONS as u16 + 10 {
            let mut bytes = Vec::new();
            let builder = PacketBuilder::ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64).udp(4000, port);
            builder.write(&mut bytes, &[0]).unwrap();
            assert_eq!(judged(&mut faults, 0, Side::Radio, &bytes), Verdict::Drop);
        }
        assert_eq!(faults.active[0].connections.len(), MOST_CONNECTIONS);
    }

    #[test]
    fn resets_have_acceptable_numbers_and_correct_checksums() {
        for v6 in [false, true] {
            let bytes = segment(v6, "A", 100);
            let layout = parse(&bytes).layout;
            for (toward, ports, seq, ack) in
                [(Toward::Receiver, (4000, 80), 1000, true), (Toward::Sender, (80, 4000), 7000, false)]
            {
                let mut out = vec![0xff; 1500];
                let length = reset(&bytes, layout, toward, &mut out).unwrap();
                let sliced = SlicedPacket::from_ip(&out[..length]).unwrap();
                let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!() };
                assert_eq!((tcp.source_port(), tcp.destination_port()), ports);
                assert_eq!((tcp.sequence_number(), tcp.ack(), tcp.rst()), (seq, ack, true));
                let checksum = match &sliced.net {
                    Some(NetSlice::Ipv4(ip)) => {
                        tcp.to_header().calc_checksum_ipv4(&ip.header().to_header(), &[])
                    }
                    Some(NetSlice::Ipv6(ip)) => {
                        tcp.to_header().calc_checksum_ipv6(&ip.header().to_header(), &[])
                    }
                    _ => panic!(),
                };
                assert_eq!(checksum.unwrap(), tcp.checksum());
                assert_ne!(parse(&out[..length]).layout, Layout::Opaque);
            }
            let mut fin = segment(v6, "FA", 10);
            let layout = parse(&fin).layout;
            hold_fin(&mut fin, layout);
            let parsed = parse(&fin);
            assert_eq!(parsed.layout, layout, "the checksum is right");
            assert!(!parsed.segment.flags.contains(Flags::FIN));
        }
        assert_eq!(reset(&segment(false, "S", 0), Layout::Ipv4(20), Toward::Sender, &mut [0; 1500]), None);
    }
}
