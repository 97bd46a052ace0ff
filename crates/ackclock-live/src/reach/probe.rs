//! Tests the route out of a link before its command starts.
//!
//! The test writes SYN segments into the link's end as if they came from inside. One segment goes to the base address,
//! where our own socket listens. Further segments go to addresses beyond the machine, with a TTL that expires one hop
//! out. The machine's routing and a trace of its firewall show the rule that refuses a segment. If routing and trace
//! show no cause and an answer is missing, only the route to this machine is reported as broken.

use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::read;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{IpProtocol, IpRepr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};

use super::routing::Heading;
use super::trace::{Place, Step, Trace, ends};
use super::{masquerade, routing};
use crate::gso::{self, Header};
use crate::namespace::interface::{Interface, octets};
use crate::namespace::tun::Tun;
use ackclock_netlink::{Message, Netlink};

/// End of a link, and this machine's interface towards the link.
pub(super) struct Way<'a> {
    pub(super) tun: &'a Tun,
    pub(super) link: &'a Interface,
    /// Address of the inside in one IP version.
    pub(super) inside: IpAddr,
    pub(super) base: IpAddr,
}

/// Time limit of a test. IPv4 and IPv6 are tested one after the other, together in less than 100 ms.
const PATIENCE: Duration = Duration::from_millis(45);
/// Destination port of the test segments: HTTPS, the port that router firewalls are most likely to pass.
const PORT: u16 = 443;
/// Addresses reserved for documentation (RFC 5737, RFC 3849), which no host has: packets to these addresses take the
/// default route.
const FAR: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];
/// TTL of the test segments: it covers the router, this machine, and one hop out.
const HOPS: u8 = 3;

/// Remarks for the user on where and why packets are lost, one per line. The list is empty if all routes work or the
/// cause is unknown.
pub(super) fn remarks(ways: &[Way<'_>]) -> Vec<String> {
    let findings: Vec<Finding> = ways.iter().flat_map(findings).collect();
    let mut ends: Vec<Option<&End>> = Vec::new();
    for finding in &findings {
        if !ends.contains(&finding.end.as_ref()) {
            ends.push(finding.end.as_ref());
        }
    }
    ends.into_iter()
        .map(|end| {
            let concerned = findings.iter().filter(|finding| finding.end.as_ref() == end);
            line(&concerned.collect::<Vec<_>>(), end)
        })
        .collect()
}

fn findings(way: &Way<'_>) -> Vec<Finding> {
    let (Ok(listener), Ok(mut trace)) =
        (TcpListener::bind((way.base, 0)), Trace::begin(way.link.index, way.inside))
    else {
        return Vec::new();
    };
    let port = listener.local_addr().map_or(0, |address| address.port());
    let mut trial = Trial {
        way,
        port,
        own: Probe::own(way, port),
        beyond: way.targets().into_iter().map(|to| Probe::new(way, to, PORT)).collect(),
        answer: None,
    };
    trial.send();
    trial.watch(&mut trace);
    trial.forget();
    trial.findings().collect()
}

impl Way<'_> {
    /// Addresses to test: this machine's gateway and an address behind it. The list is empty if the machine has no
    /// default route.
    fn targets(&self) -> Vec<IpAddr> {
        let far = FAR[usize::from(self.inside.is_ipv6())];
        let Ok(gateway) = routing::gateway(far) else { return Vec::new() };
        gateway.into_iter().chain([far]).collect()
    }
}

/// Test segment and its fate.
struct Probe {
    to: IpAddr,
    port: u16,
    /// Whether the segment has left this machine.
    passed: bool,
    end: Option<End>,
}

/// Result of testing one address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Answered,
    /// The machine's routing refused the segment, for the given reason.
    Refused(String),
    Dropped(Place),
    AnswerDropped(Place),
}

impl Probe {
    fn new(way: &Way<'_>, to: IpAddr, port: u16) -> Self {
        let refusal = routing::refusal(way.inside, to, way.link, Heading::Outside);
        Self { to, port, passed: false, end: refusal.map(End::Refused) }
    }

    fn own(way: &Way<'_>, port: u16) -> Self {
        let mut own = Self::new(way, way.base, port);
        let refusal = routing::refusal(way.base, way.inside, way.link, Heading::Inside);
        own.end = own.end.or(refusal.map(End::Refused));
        own
    }

    /// Whether the segment has left this machine without being dropped later.
    fn has_left(&self) -> bool {
        self.passed && self.end.is_none()
    }

    fn ends(&mut self, how: End) {
        self.end.get_or_insert(how);
    }
}

struct Trial<'a> {
    way: &'a Way<'a>,
    /// Source port of the test segments, and port of our listening socket.
    port: u16,
    own: Probe,
    beyond: Vec<Probe>,
    /// Result of the first answer from beyond this machine.
    answer: Option<End>,
}

impl Trial<'_> {
    fn probes(&mut self) -> impl Iterator<Item = &mut Probe> {
        std::iter::once(&mut self.own).chain(&mut self.beyond)
    }

    fn has_left(&self) -> bool {
        self.beyond.iter().any(Probe::has_left)
    }

    /// A segment that cannot be written counts as lost.
    fn send(&self) {
        let header = gso::header(self.way.tun.file.as_fd()).unwrap_or(0);
        for probe in std::iter::once(&self.own).chain(&self.beyond) {
            let segment = segment(self.way.inside, self.port, probe);
            let whole = [IoSlice::new(&Header::NONE[..header]), IoSlice::new(&segment)];
            let _ = nix::sys::uio::writev(&self.way.tun.file, &whole);
        }
    }

    /// Receives the trace of segments and their answers until the result is known or the time limit has passed.
    fn watch(&mut self, trace: &mut Trace) {
        let until = now() + PATIENCE;
        loop {
            trace.steps().iter().for_each(|step| self.on_step(step));
            self.read_answers();
            let left = until.saturating_duration_since(now());
            if left.is_zero() || self.is_settled() {
                return;
            }
            let mut files =
                [trace.as_fd(), self.way.tun.file.as_fd()].map(|file| PollFd::new(file, PollFlags::POLLIN));
            // An interrupted wait is treated like an event.
            let _ = poll(&mut files, PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO));
        }
    }

    fn is_settled(&self) -> bool {
        let stopped = self.beyond.iter().all(|probe| probe.end.is_some());
        self.own.end.is_some() && (self.answer.is_some() || stopped)
    }

    fn on_step(&mut self, step: &Step) {
        let (from, to) = step.packet;
        let ours = step.place.table == masquerade::name(self.way.link.index);
        let drops = step.dropped && !ours;
        let leaves = ours && step.place.chain == masquerade::OUT;
        let (inside, base) = (self.way.inside, self.way.base);
        if from == inside
            && let Some(probe) = self.probes().find(|probe| probe.to == to)
        {
            probe.passed |= leaves;
            if drops {
                probe.ends(End::Dropped(step.place.clone()));
            }
        } else if to == inside && drops {
            let end = End::AnswerDropped(step.place.clone());
            if from == base {
                self.own.ends(end);
            } else {
                self.answer.get_or_insert(end);
            }
        }
    }

    fn read_answers(&mut self) {
        let header = gso::header(self.way.tun.file.as_fd()).unwrap_or(0);
        let mut bytes = [0; 2048];
        while let Ok(length) = read(&self.way.tun.file, &mut bytes) {
            let Some(packet) = bytes.get(header..length) else { continue };
            match ends(packet) {
                // A firewall that rejects a segment also answers from this machine's address, but only a listening
                // socket accepts the connection.
                Some((from, _)) if from == self.way.base && accepts(packet, self.port) => {
                    self.own.ends(End::Answered);
                }
                Some((from, to)) if from != self.way.base && to == self.way.inside && self.has_left() => {
                    self.answer.get_or_insert(End::Answered);
                }
                _ => {}
            }
        }
    }

    /// Removes the test connections from the kernel's table, so that late packets are dropped.
    fn forget(&mut self) {
        let from = (self.way.inside, self.port);
        for probe in self.probes() {
            // If the table lacks a connection, the connection was already removed.
            let _ = Netlink::netfilter()
                .and_then(|mut netlink| netlink.request(&[delete_connection(from, (probe.to, probe.port))]));
        }
        self.read_answers();
    }

    /// Addresses that the test segments did not reach. An address beyond the machine is left out if its segment has
    /// left the machine, because routers may be silent.
    fn findings(&self) -> impl Iterator<Item = Finding> {
        let version = if self.way.inside.is_ipv6() { " by IPv6" } else { "" };
        let finding =
            |unreached: String, beyond, end| Finding { unreached, beyond, end, inside: self.way.inside };
        let own = (self.own.end != Some(End::Answered))
            .then(|| finding(format!("this machine at {}", self.way.base), false, self.own.end.clone()));
        let beyond = match &self.answer {
            Some(End::Answered) => None,
            Some(dropped) => Some(Some(dropped.clone())),
            None if self.beyond.is_empty() || self.has_left() => None,
            None => Some(self.beyond.iter().find_map(|probe| probe.end.clone())),
        };
        let beyond = beyond.map(|end| finding(format!("other hosts{version}"), true, end));
        own.into_iter().chain(beyond)
    }
}

/// Unreached address, with the reason if known.
struct Finding {
    unreached: String,
    /// Whether the address is beyond this machine.
    beyond: bool,
    end: Option<End>,
    inside: IpAddr,
}

/// Remark about all addresses unreached for the same reason, on one line.
fn line(findings: &[&Finding], end: Option<&End>) -> String {
    let unreached: Vec<&str> = findings.iter().map(|finding| finding.unreached.as_str()).collect();
    let dropped = |place: &Place, what: &str, from| {
        let beyond = findings.iter().any(|finding| finding.beyond);
        let inside = findings.first().map_or(IpAddr::from([0; 4]), |finding| finding.inside);
        let remedy = place.remedy(inside, from, beyond || !from);
        format!("its firewall drops {what}: {}; to let them pass: {remedy}", place.describe())
    };
    let why = match end {
        Some(End::Refused(why)) => why.clone(),
        Some(End::Dropped(place)) => dropped(place, "their packets", true),
        Some(End::AnswerDropped(place)) => dropped(place, "the answers", false),
        Some(End::Answered) | None => {
            "packets are lost on this machine, and no rule of nftables drops them; \
             see: sudo iptables-legacy -S; ip rule; ip route"
                .to_owned()
        }
    };
    format!("programs behind the link do not reach {}: {why}", unreached.join(" or "))
}

/// Bytes of a SYN segment for the test.
fn segment(from: IpAddr, port: u16, probe: &Probe) -> Vec<u8> {
    let tcp = TcpRepr {
        src_port: port,
        dst_port: probe.port,
        control: TcpControl::Syn,
        seq_number: TcpSeqNumber(0),
        ack_number: None,
        window_len: u16::MAX,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload: &[],
    };
    let (from, to) = (from.into(), probe.to.into());
    let ip = IpRepr::new(from, to, IpProtocol::Tcp, tcp.buffer_len(), HOPS);
    let mut bytes = vec![0; ip.buffer_len()];
    let checksums = ChecksumCapabilities::default();
    ip.emit(&mut bytes, &checksums);
    tcp.emit(&mut TcpPacket::new_unchecked(&mut bytes[ip.header_len()..]), &from, &to, &checksums);
    bytes
}

/// Whether a packet without IP options has SYN and ACK set, and so accepts a connection from `port`.
fn accepts(packet: &[u8], port: u16) -> bool {
    let header = if packet.first().is_some_and(|first| first >> 4 == 4) { 20 } else { 40 };
    let protocol = packet.get(if header == 20 { 9 } else { 6 });
    let tcp = packet.get(header..).and_then(|bytes| TcpPacket::new_checked(bytes).ok());
    protocol == Some(&u8::from(IpProtocol::Tcp))
        && tcp.is_some_and(|tcp| tcp.dst_port() == port && tcp.syn() && tcp.ack())
}

/// Removes a TCP connection from the kernel's table (`linux/netfilter/nfnetlink_conntrack.h`).
fn delete_connection(from: (IpAddr, u16), to: (IpAddr, u16)) -> Message {
    const SUBSYSTEM: u16 = libc::NFNL_SUBSYS_CTNETLINK as u16;
    const DELETE: u16 = 2;
    let (family, source) = if from.0.is_ipv4() { (libc::AF_INET, 1) } else { (libc::AF_INET6, 3) };
    Message::new(SUBSYSTEM << 8 | DELETE, 0, &[family as u8, 0, 0, 0]).nested(1, |tuple| {
        tuple
            .nested(1, |ip| ip.attribute(source, &octets(from.0)).attribute(source + 1, &octets(to.0)))
            .nested(2, |tcp| {
                tcp.attribute(1, &[libc::IPPROTO_TCP as u8])
                    .attribute(2, &from.1.to_be_bytes())
                    .attribute(3, &to.1.to_be_bytes())
            })
    })
}

#[allow(clippy::disallowed_methods)] // The real world is waited for here; no model asks a clock.
fn now() -> Instant {
    Instant::now()
}
