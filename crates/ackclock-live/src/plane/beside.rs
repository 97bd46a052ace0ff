//! What happens to packets before the link: a packet of an unselected flow passes beside the link, and a packet that is
//! too big for the hop in front of the link is fragmented or dropped.

use ackclock_core::results::{FaultResult, TooBig};
use ackclock_core::{PacketId, Time};
use serde_json::Value;

use super::inventory::Inside;
use super::{Beside, Departure, Plane};
use crate::Hop;
use crate::faults::{AddFaultError, Fault, Toward, Verdict, hold_fin, reset};
use crate::flow::NO_FLOW;
use crate::parse::{Fragment, Layout, fragment, parse};
use crate::port::Side;
use crate::selection::{MatchedEnds, Selection};

impl Plane {
    /// Selects the flows that cross the link. The packets of all other flows pass beside the link: they are neither
    /// queued nor delayed.
    pub fn select(&mut self, selection: Selection) {
        self.traffic.iter_mut().for_each(|traffic| traffic.bypassed = Some(0));
        self.selection = selection;
    }

    /// Lets the networks of selections and faults contain these ends of a flow.
    pub fn match_at(&mut self, ends: MatchedEnds) {
        self.selection.ends = ends;
    }

    /// Puts a hop with a smaller MTU in front of the link, in both directions.
    pub fn narrow(&mut self, hop: Hop) {
        self.traffic.iter_mut().for_each(|traffic| traffic.too_big = Some(TooBig::default()));
        self.hop = Some(hop);
    }

    /// Adds a fault of single connections.
    ///
    /// # Errors
    /// Fails if a flow of the fault is not written as a match, or if there are too many faults.
    pub fn add_fault(&mut self, now: Time, fault: Fault) -> Result<(), AddFaultError> {
        self.faults.add(now, fault)
    }

    /// Ends all faults.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// The faults in force and what they did so far, as JSON.
    pub fn faults(&mut self, now: Time) -> Value {
        self.faults.report(now)
    }

    /// What all faults did, also those that have ended.
    pub fn fault_results(&mut self, now: Time) -> Vec<FaultResult> {
        self.faults.results(now)
    }

    /// Shows a packet to the faults; returns the packet that goes on, if one does.
    pub(super) fn meets_faults(&mut self, now: Time, from: Side, packet: PacketId) -> Option<PacketId> {
        if self.faults.is_empty() {
            return Some(packet);
        }
        let parsed = parse(self.inventory.pool.bytes(packet)?);
        match self.faults.judge(now, from, &parsed, self.selection.ends) {
            Verdict::Pass => Some(packet),
            Verdict::HoldFin => {
                hold_fin(self.inventory.pool.bytes_mut(packet)?, parsed.layout);
                Some(packet)
            }
            Verdict::Drop => {
                self.inventory.pool.release(packet);
                None
            }
            Verdict::Reset => {
                if let Some(answer) = self.reset(packet, parsed.layout, Toward::Sender) {
                    self.leave_beside(now, from, answer, Beside::Reset);
                }
                let onward = self.reset(packet, parsed.layout, Toward::Receiver);
                self.inventory.pool.release(packet);
                onward
            }
        }
    }

    /// Packet with a RST in place of a segment.
    fn reset(&mut self, packet: PacketId, layout: Layout, toward: Toward) -> Option<PacketId> {
        let length = reset(self.inventory.pool.bytes(packet)?, layout, toward, &mut self.spare)?;
        self.inventory.pool.claim(&mut self.spare, length)
    }

    /// Sends a packet that arrived from the side `from` beside the link, if its flow is not selected. Returns whether the
    /// packet passes beside the link.
    pub(super) fn is_beside(&mut self, now: Time, from: Side, packet: PacketId) -> bool {
        let passes = !self.selection.is_everything() && !self.is_selected(now, from, packet);
        if passes {
            self.leave_beside(now, from.other(), packet, Beside::Bypassed);
        }
        passes
    }

    /// Whether the flow of a packet is selected. Later fragments follow the first fragment.
    fn is_selected(&mut self, now: Time, from: Side, packet: PacketId) -> bool {
        let bytes = self.inventory.pool.bytes(packet).unwrap_or_default();
        let Some(Fragment { datagram, tuple, is_first }) = fragment(bytes) else {
            return self.selection.selects(from, parse(bytes).tuple.as_ref());
        };
        let selected = self.selection.selects(from, Some(&tuple));
        let fragments = &mut self.fragments[from as usize];
        if is_first {
            fragments.on_first(now, datagram, selected);
            return selected;
        }
        fragments.crosses(now, &datagram).unwrap_or_else(|| {
            self.traffic[from as usize].strays += u64::from(self.selection.depends_on_ports());
            selected
        })
    }

    /// Fragments or drops a packet that is too big for the hop. Returns whether the packet was too big.
    pub(super) fn meets_hop(&mut self, now: Time, from: Side, packet: PacketId) -> bool {
        let Some(mut hop) =
            self.hop.take_if(|hop| !hop.passes(self.inventory.pool.bytes(packet).unwrap_or_default()))
        else {
            return false;
        };
        if self.enter_fragments(now, from, packet, &hop) {
            self.too_big(from).fragmented += 1;
        } else {
            self.too_big(from).dropped += 1;
            let bytes = self.inventory.pool.bytes(packet).unwrap_or_default();
            if let Some(length) = hop.message(now, from, bytes, &mut self.spare)
                && let Some(message) = self.inventory.pool.claim(&mut self.spare, length)
            {
                self.leave_beside(now, from, message, Beside::Message);
            }
        }
        self.inventory.pool.release(packet);
        self.hop = Some(hop);
        true
    }

    /// Enters the fragments of a packet into the link; returns false if the packet must not be fragmented.
    fn enter_fragments(&mut self, now: Time, from: Side, packet: PacketId, hop: &Hop) -> bool {
        let mut at = 0;
        loop {
            let bytes = self.inventory.pool.bytes(packet).unwrap_or_default();
            let Some((length, data)) = hop.fragment(bytes, at, &mut self.spare) else { return at > 0 };
            at += data;
            match self.inventory.pool.claim(&mut self.spare, length) {
                Some(fragment) => self.enter(now, from, fragment),
                None => self.count_unread(from, 1),
            }
        }
    }

    /// Queues a packet for the device of the side `side`.
    fn leave_beside(&mut self, at: Time, side: Side, packet: PacketId, beside: Beside) {
        let inside = Inside { flow: NO_FLOW, layout: Layout::Opaque, arrived: at, ..Inside::default() };
        self.inventory.enter(packet, inside);
        self.count_beside(side, beside, 1);
        self.beside.push_back(Departure { at, side, packet, beside: Some(beside) });
    }

    /// Counts a packet beside the link that the device refused as a packet that the machine lost.
    pub(super) fn refused_beside(&mut self, side: Side, beside: Beside) {
        self.count_beside(side, beside, -1);
        let traffic = &mut self.traffic[side.other() as usize];
        traffic.arrived += 1;
        traffic.left += 1;
    }

    fn count_beside(&mut self, side: Side, beside: Beside, change: i64) {
        let count = match beside {
            Beside::Bypassed => self.traffic[side.other() as usize].bypassed.get_or_insert_default(),
            // The message answers a packet that came from the side to which the message leaves.
            Beside::Message => &mut self.too_big(side).messages,
            // Faults count connections.
            Beside::Reset => return,
        };
        *count = count.saturating_add_signed(change);
    }

    fn too_big(&mut self, from: Side) -> &mut TooBig {
        self.traffic[from as usize].too_big.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Span;
    use ackclock_edge::EdgeConfig;
    use ackclock_link::NoFiles;
    use etherparse::PacketBuilder;

    use super::*;
    use crate::PlaneConfig;

    /// The fragments of a UDP datagram to `port` with this identification: IPv4 without options, or IPv6.
    fn fragments(v6: bool, port: u16, identification: u16) -> Vec<Vec<u8>> {
        let mut whole = Vec::new();
        let payload = vec![7; 3000];
        if v6 {
            let ip = PacketBuilder::ipv6([1; 16], [2; 16], 64);
            ip.udp(4000, port).write(&mut whole, &payload).unwrap();
        } else {
            let ip = PacketBuilder::ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64);
            ip.udp(4000, port).write(&mut whole, &payload).unwrap();
        }
        let (head, data) = whole.split_at(if v6 { 40 } else { 20 });
        let parts: Vec<_> = data.chunks(1200).collect();
        let last = parts.len() - 1;
        let piece = |(n, part): (usize, &&[u8])| {
            let (mut bytes, units, more) = (head.to_vec(), (n * 1200 / 8) as u16, u16::from(n < last));
            if v6 {
                bytes[4..6].copy_from_slice(&(part.len() as u16 + 8).to_be_bytes());
                bytes[6] = 44;
                bytes.extend([17, 0]);
                bytes.extend((units << 3 | more).to_be_bytes());
                bytes.extend(u32::from(identification).to_be_bytes());
            } else {
                bytes[2..4].copy_from_slice(&(part.len() as u16 + 20).to_be_bytes());
                bytes[4..6].copy_from_slice(&identification.to_be_bytes());
                bytes[6..8].copy_from_slice(&(more << 13 | units).to_be_bytes());
                bytes[10..12].fill(0);
                let sum = etherparse::checksum::Sum16BitWords::new().add_slice(&bytes).ones_complement();
                bytes[10..12].copy_from_slice(&sum.to_ne_bytes());
            }
            bytes.extend(*part);
            bytes
        };
        parts.iter().enumerate().map(piece).collect()
    }

    /// Numbers of packets that passed beside the link, and of fragments without a first one, for packets from inside.
    fn bypassed(only: &str, except: &str, packets: &[Vec<u8>]) -> (u64, u64) {
        let list = |text: &str| text.split_whitespace().map(|one| one.parse().unwrap()).collect();
        let edge = EdgeConfig::default();
        let mut plane = Plane::new(&PlaneConfig::new(&edge), &NoFiles).unwrap();
        plane.select(Selection { only: list(only), except: list(except), ends: MatchedEnds::Far });
        for (ms, bytes) in (0..).zip(packets) {
            let mut buffer = plane.pool().buffer();
            buffer[..bytes.len()].copy_from_slice(bytes);
            let packet = plane.pool_mut().claim(&mut buffer, bytes.len()).unwrap();
            plane.arrive(Time::ZERO + Span::from_millis(ms), Side::Radio, packet);
        }
        let traffic = plane.traffic[Side::Radio as usize];
        assert_eq!(traffic.arrived + traffic.bypassed.unwrap(), packets.len() as u64);
        (traffic.bypassed.unwrap(), traffic.strays)
    }

    #[test]
    fn all_fragments_of_a_datagram_go_the_way_of_its_ports() {
        for v6 in [false, true] {
            // Two datagrams of three fragments each, interleaved: one to port 5005, one to port 53.
            let pairs = fragments(v6, 5005, 1).into_iter().zip(fragments(v6, 53, 2));
            let both: Vec<_> = pairs.flat_map(|(one, other)| [one, other]).collect();
            for (only, except, expected) in [
                ("udp:5005", "", 3),
                ("dns", "", 3),
                ("", "udp:5005", 3),
                ("udp:5005 udp:53", "", 0),
                ("tcp:5005", "", 6),
                ("udp:0.0.0.0/0 udp:[::]/0", "", 0),
                ("", "udp:0.0.0.0/0:53 udp:[::]/0:53", 3),
            ] {
                assert_eq!(bypassed(only, except, &both), (expected, 0), "{v6} {only} except {except}");
            }
        }
    }

    #[test]
    fn fragments_before_the_first_are_counted_unless_no_port_matters() {
        for v6 in [false, true] {
            let mut parts = fragments(v6, 5005, 1);
            parts.reverse();
            assert_eq!(bypassed("udp:5005", "", &parts), (2, 2), "{v6}");
            assert_eq!(bypassed("", "udp:5005", &parts), (1, 2), "{v6}");
            assert_eq!(bypassed("udp:0.0.0.0/0 udp:[::]/0", "", &parts), (0, 0), "{v6}");
        }
    }

    /// What a device refuses is lost in the direction in which it came, whether or not it came beside the link.
    #[test]
    fn a_refused_packet_counts_in_its_own_direction() {
        for [up, down] in [[3, 0], [0, 3], [5, 2], [2, 5]] {
            let mut plane = Plane::new(&PlaneConfig::new(&EdgeConfig::default()), &NoFiles).unwrap();
            plane.select(Selection { only: vec!["tcp:1".parse().unwrap()], ..Selection::default() });
            let mut expected = [0; 2];
            for (side, count) in [(Side::Radio, up), (Side::Wired, down)] {
                expected[side as usize] = count;
                for _ in 0..count {
                    let bytes = &fragments(false, 53, 1)[0];
                    let mut buffer = plane.pool().buffer();
                    buffer[..bytes.len()].copy_from_slice(bytes);
                    let packet = plane.pool_mut().claim(&mut buffer, bytes.len()).unwrap();
                    plane.arrive(Time::ZERO, side, packet);
                }
            }
            while let Some(departure) = plane.poll_departure() {
                plane.refused(departure);
            }
            for side in [Side::Radio, Side::Wired] {
                let (traffic, refused) = (plane.traffic[side as usize], expected[side as usize]);
                assert_eq!(
                    (traffic.arrived, traffic.left, traffic.lost.refused),
                    (refused, refused, refused)
                );
                assert_eq!(traffic.bypassed, Some(0), "{up} up, {down} down");
            }
        }
    }
}
