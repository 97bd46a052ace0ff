//! Assigns packets of the two directions to numbered connections.
//!
//! The graph identifies flows by small numbers. A connection gets a number at its first observed packet and keeps the
//! number while the connection is one of the most recently used. If all numbers are taken, a new connection takes over
//! the number of the connection that was idle longest. Anyone can send first packets, so only proven connections are
//! protected against losing their numbers. A connection is *proven* once one end has acknowledged the peer's data by a
//! segment other than a SYN or a RST, which forged packets cannot achieve. A new connection takes over the number of an
//! unproven connection, preferably of a connection started from the same side if that side has many. Proven connections
//! lose numbers only if together they hold more than half of all numbers.
//!
//! A number is never reused while packets of its old connection are inside the link, because those packets would count
//! for the new connection. Packets that are not IP, or for which no number is free, belong to flow 0, which is no
//! connection and is never regulated.

use std::collections::BTreeMap;

use ackclock_core::{Flags, FlowId, Segment, Seq};

use crate::parse::{End, Parsed, Tuple};
use crate::port::Side;

/// Flow of packets that belong to no connection.
pub const NO_FLOW: FlowId = FlowId(0);

/// Two ends of a connection, as seen by the emulated link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ends {
    /// End of the connection on the wired side.
    pub wired: End,
    /// End of the connection on the mobile side.
    pub radio: End,
    /// IP protocol number.
    pub protocol: u8,
}

impl Ends {
    /// End of the connection on the given side.
    pub const fn of_side(&self, side: Side) -> End {
        match side {
            Side::Wired => self.wired,
            Side::Radio => self.radio,
        }
    }

    /// Whether the connection has a row in results: TCP or UDP with readable ports.
    pub const fn have_row(&self) -> bool {
        self.wired.port != 0
    }

    /// Whether the connection consists of UDP datagrams.
    pub const fn is_udp(&self) -> bool {
        self.protocol == UDP
    }

    /// Name of the connection's protocol; the protocol number if the connection has no row in results.
    pub fn protocol_name(&self) -> String {
        match self.protocol {
            6 => "tcp".to_owned(),
            UDP => "udp".to_owned(),
            number => number.to_string(),
        }
    }

    fn of(tuple: &Tuple, from: Side) -> Self {
        let Tuple { source, destination, protocol } = *tuple;
        match from {
            Side::Wired => Self { wired: source, radio: destination, protocol },
            Side::Radio => Self { wired: destination, radio: source, protocol },
        }
    }
}

/// IP protocol number of UDP.
const UDP: u8 = 17;

/// Result of looking a packet up in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// The packet belongs to a known connection.
    Known(FlowId),
    /// The packet starts a new connection with this number. State of earlier connections with the number must be
    /// discarded.
    New(FlowId),
    /// The packet belongs to no connection, or no number is left for its connection.
    None,
}

/// Table of all connections, of bounded size.
#[derive(Debug)]
pub struct Connections {
    numbers: BTreeMap<Ends, u32>,
    /// Table entries by connection number; number 0 is no connection.
    entries: Vec<Entry>,
    /// Connections grouped by [`Standing`].
    lists: [List; 3],
    /// Number of the connection used last.
    last: u32,
    most: usize,
}

/// Level of trust in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Unproven connection started from [`Side::Wired`].
    FromWired = 0,
    /// Unproven connection started from [`Side::Radio`].
    FromRadio = 1,
    /// Proven connection: one end has acknowledged the peer's data.
    Proven = 2,
}

/// Connections in order of last use.
#[derive(Clone, Copy, Debug, Default)]
struct List {
    /// Number of the connection that was idle longest; 0 if the list is empty.
    oldest: u32,
    /// Number of the connection used last; 0 if the list is empty.
    newest: u32,
    length: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    ends: Option<Ends>,
    /// Number of the connection's packets inside the graph.
    inside: u32,
    scales: Scales,
    /// Whether the options of the handshake forbid changes of every segment.
    protected: bool,
    standing: Standing,
    /// Neighbours of the connection in its list: the connections used before and after it; 0 at an end of the list.
    older: u32,
    newer: u32,
}

/// Window scales of a connection by advertising side (RFC 7323 section 2).
#[derive(Clone, Copy, Debug, Default)]
struct Scales {
    /// The two newest SYNs of each side that are not yet answered.
    offers: [[Option<Offer>; 2]; 2],
    /// Shift of the windows that each side advertises, bits.
    shift: [Option<u8>; 2],
}

/// A SYN that is not yet answered. Anybody can send one; it counts when the other end acknowledges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offer {
    /// First number after the SYN.
    begin: Seq,
    /// End of the SYN's data (RFC 7413).
    end: Seq,
    scale: Option<u8>,
}

impl Standing {
    const fn begun(from: Side) -> Self {
        match from {
            Side::Wired => Self::FromWired,
            Side::Radio => Self::FromRadio,
        }
    }
}

/// Number that stands for no connection.
const NONE: u32 = 0;

impl Connections {
    /// Creates a table of at most `most` connections.
    pub fn new(most: usize) -> Self {
        let none = Entry {
            ends: None,
            inside: 0,
            scales: Scales::default(),
            protected: false,
            standing: Standing::FromWired,
            older: NONE,
            newer: NONE,
        };
        Self { numbers: BTreeMap::new(), entries: vec![none], lists: [List::default(); 3], last: NONE, most }
    }

    /// Returns the connection of a packet that enters at `from`, and adds an unknown connection to the table.
    pub fn meet(&mut self, from: Side, tuple: Option<&Tuple>) -> Met {
        let Some(ends) = tuple.map(|tuple| Ends::of(tuple, from)) else { return Met::None };
        // Packets arrive in bursts, so most belong to the connection used last.
        if self.entries[self.last as usize].ends == Some(ends) {
            return Met::Known(FlowId(self.last));
        }
        if let Some(&number) = self.numbers.get(&ends) {
            self.unlink(number);
            self.link_newest(number);
            return Met::Known(FlowId(number));
        }
        self.number(ends, from).map_or(Met::None, |number| Met::New(FlowId(number)))
    }

    /// Marks a connection as proven: one end has acknowledged the peer's data.
    pub fn prove(&mut self, flow: FlowId) {
        if self.entries[flow.index()].standing != Standing::Proven {
            self.unlink(flow.0);
            self.entries[flow.index()].standing = Standing::Proven;
            self.link_newest(flow.0);
        }
    }

    /// Counts a packet of the flow that enters the graph.
    pub fn enter(&mut self, flow: FlowId) {
        self.entries[flow.index()].inside += 1;
    }

    /// Counts a packet of the flow that has left the graph or was lost inside.
    pub fn leave(&mut self, flow: FlowId) {
        let inside = &mut self.entries[flow.index()].inside;
        *inside = inside.saturating_sub(1);
    }

    /// Number of the flow's packets inside the graph.
    pub fn inside(&self, flow: FlowId) -> u32 {
        self.entries[flow.index()].inside
    }

    /// Ends of a connection; `None` for a number without a connection.
    pub fn ends(&self, flow: FlowId) -> Option<Ends> {
        self.entries.get(flow.index()).and_then(|entry| entry.ends)
    }

    /// Whether changes of this packet of the connection are forbidden, by its own options or by those of the handshake.
    /// Each SYN without ACK starts a new handshake.
    pub fn protects(&mut self, flow: FlowId, parsed: &Parsed) -> bool {
        let of_handshake = &mut self.entries[flow.index()].protected;
        let flags = parsed.segment.flags;
        if flags.intersects(Flags::SYN) {
            *of_handshake = parsed.protected || (*of_handshake && flags.contains(Flags::ACK));
        }
        parsed.protected || *of_handshake
    }

    /// Learns window scales from a segment of the handshake.
    pub fn learn(&mut self, flow: FlowId, from: Side, segment: &Segment) {
        if !segment.flags.intersects(Flags::SYN) {
            return;
        }
        let scale = segment.syn_options().and_then(|options| options.window_scale);
        let scales = &mut self.entries[flow.index()].scales;
        let (here, there) = (from as usize, from.other() as usize);
        if !segment.flags.contains(Flags::ACK) {
            let offer = Some(Offer { begin: segment.seq + 1, end: segment.end(), scale });
            if !scales.offers[here].contains(&offer) {
                scales.offers[here] = [offer, scales.offers[here][0]];
            }
            return;
        }
        let asked = scales.offers[there];
        let answers = |offer: &&Offer| !segment.ack.before(offer.begin) && !segment.ack.after(offer.end);
        let answered = asked.iter().flatten().find(answers);
        let is_first = scales.offers == [[None; 2]; 2] && scales.shift == [None; 2];
        if answered.is_none() && !is_first {
            return;
        }
        scales.shift = match scale {
            // Window scaling is in use only if both SYNs have the option; a SYN-ACK has the option only if the SYN had
            // it.
            Some(_) => {
                let mut shift = [answered.and_then(|offer| offer.scale); 2];
                shift[here] = scale;
                shift
            }
            None => [Some(0); 2],
        };
        scales.offers = Default::default();
    }

    /// Shift of the windows that a side advertises; `None` if the handshake was not seen.
    pub fn scale(&self, flow: FlowId, from: Side) -> Option<u8> {
        self.entries[flow.index()].scales.shift[from as usize]
    }

    /// Number for a new connection: an unused number, or a number taken from another connection.
    fn number(&mut self, ends: Ends, from: Side) -> Option<u32> {
        let number = if self.entries.len() <= self.most {
            self.entries.push(self.entries[NONE as usize]);
            (self.entries.len() - 1) as u32
        } else {
            let number = self.given_up(from)?;
            self.unlink(number);
            if let Some(old) = self.entries[number as usize].ends {
                self.numbers.remove(&old);
            }
            number
        };
        let entry = &mut self.entries[number as usize];
        (entry.ends, entry.inside, entry.scales) = (Some(ends), 0, Scales::default());
        entry.protected = false;
        entry.standing = Standing::begun(from);
        self.numbers.insert(ends, number);
        self.link_newest(number);
        Some(number)
    }

    /// Number that an old connection loses to a new connection started from side `from`.
    fn given_up(&self, from: Side) -> Option<u32> {
        // Each side keeps a quarter of the numbers for connections that it started, so that floods from the opposite
        // side cannot take these numbers.
        let share = (self.most / 4).max(1);
        let length = |standing: Standing| self.lists[standing as usize].length;
        let [own, other] = [Standing::begun(from), Standing::begun(from.other())];
        let too_many_proven = length(Standing::Proven) + 2 * share > self.most;
        let proven = too_many_proven.then(|| self.quiet(Standing::Proven)).flatten();
        let others = || if length(own) < share { self.quiet(other) } else { None };
        proven.or_else(others).or_else(|| self.quiet(own))
    }

    /// Connection of a list that was idle longest and has no packets inside the link.
    fn quiet(&self, standing: Standing) -> Option<u32> {
        // Maximum number of connections to search: few idle connections have packets inside a slow link.
        const LOOK_AT: usize = 64;
        let oldest = self.lists[standing as usize].oldest;
        std::iter::successors(Some(oldest), |&number| Some(self.entries[number as usize].newer))
            .take(LOOK_AT)
            .take_while(|&number| number != NONE)
            .find(|&number| self.entries[number as usize].inside == 0)
    }

    fn unlink(&mut self, number: u32) {
        let Entry { older, newer, standing, .. } = self.entries[number as usize];
        let list = &mut self.lists[standing as usize];
        list.length -= 1;
        match older {
            NONE => list.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
        match newer {
            NONE => list.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
    }

    fn link_newest(&mut self, number: u32) {
        let list = &mut self.lists[self.entries[number as usize].standing as usize];
        let before = std::mem::replace(&mut list.newest, number);
        list.length += 1;
        match before {
            NONE => list.oldest = number,
            before => self.entries[before as usize].newer = number,
        }
        let entry = &mut self.entries[number as usize];
        (entry.older, entry.newer) = (before, NONE);
        self.last = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Layout;
    use ackclock_core::{Seq, SynOptions};
    use proptest::prelude::*;

    fn tuple(port: u16) -> Tuple {
        let end = |last, port| End { address: std::net::IpAddr::from([10, 0, 0, last]), port };
        Tuple { source: end(1, 80), destination: end(2, port), protocol: 6 }
    }

    fn back(tuple: Tuple) -> Tuple {
        Tuple { source: tuple.destination, destination: tuple.source, ..tuple }
    }

    fn syn(flags: Flags, window_scale: Option<u8>) -> Segment {
        let mut segment = Segment::data(FlowId(0), Seq(0), 0, 60);
        segment.ack = Seq(1);
        segment.flags = flags;
        segment.set_syn_options(SynOptions { window_scale, ..SynOptions::default() });
        segment
    }

    #[test]
    fn both_directions_are_one_flow() {
        let mut table = Connections::new(10);
        assert_eq!(table.meet(Side::Wired, Some(&tuple(1))), Met::New(FlowId(1)));
        assert_eq!(table.meet(Side::Radio, Some(&back(tuple(1)))), Met::Known(FlowId(1)));
        assert_eq!(table.meet(Side::Radio, Some(&tuple(1))), Met::New(FlowId(2)), "the other way round");
        assert_eq!(table.meet(Side::Wired, None), Met::None);
    }

    #[test]
    fn the_number_that_was_quiet_for_longest_is_used_again() {
        let mut table = Connections::new(2);
        for port in [1, 2, 1] {
            table.meet(Side::Wired, Some(&tuple(port)));
        }
        assert_eq!(table.meet(Side::Wired, Some(&tuple(3))), Met::New(FlowId(2)));
        assert_eq!(table.meet(Side::Wired, Some(&tuple(1))), Met::Known(FlowId(1)));
        assert_eq!(table.meet(Side::Wired, Some(&tuple(2))), Met::New(FlowId(2)));
    }

    #[test]
    fn a_number_with_packets_inside_is_not_used_again() {
        let mut table = Connections::new(2);
        for port in [1, 2] {
            table.meet(Side::Wired, Some(&tuple(port)));
        }
        table.enter(FlowId(1));
        assert_eq!(table.meet(Side::Wired, Some(&tuple(3))), Met::New(FlowId(2)));
        table.enter(FlowId(2));
        assert_eq!(table.meet(Side::Wired, Some(&tuple(4))), Met::None);
        table.leave(FlowId(1));
        assert_eq!(table.meet(Side::Wired, Some(&tuple(4))), Met::New(FlowId(1)));
    }

    #[test]
    fn scales_are_known_after_the_handshake_and_others_after_the_next() {
        let mut table = Connections::new(2);
        let flow = FlowId(1);
        table.meet(Side::Radio, Some(&tuple(1)));
        table.learn(flow, Side::Radio, &syn(Flags::SYN, Some(7)));
        assert_eq!(table.scale(flow, Side::Radio), None, "not before it is answered");
        table.learn(flow, Side::Wired, &syn(Flags::SYN | Flags::ACK, Some(9)));
        assert_eq!((table.scale(flow, Side::Radio), table.scale(flow, Side::Wired)), (Some(7), Some(9)));
        table.learn(flow, Side::Radio, &syn(Flags::SYN, Some(7)));
        assert_eq!(table.scale(flow, Side::Wired), Some(9), "not before it is answered");
        table.learn(flow, Side::Wired, &syn(Flags::SYN | Flags::ACK, None));
        assert_eq!((table.scale(flow, Side::Radio), table.scale(flow, Side::Wired)), (Some(0), Some(0)));
    }

    /// One packet of somebody who knows no sequence numbers.
    #[test]
    fn a_forged_syn_changes_no_scale_and_keeps_none_from_being_learnt() {
        let forged = |flags, seq, ack| {
            let mut segment = syn(flags, Some(2));
            (segment.seq, segment.ack) = (Seq(seq), Seq(ack));
            segment
        };
        let mut table = Connections::new(2);
        let flow = FlowId(1);
        table.meet(Side::Radio, Some(&tuple(1)));
        table.learn(flow, Side::Radio, &syn(Flags::SYN, Some(7)));
        for side in [Side::Radio, Side::Wired] {
            table.learn(flow, side, &forged(Flags::SYN, 5000, 0));
            table.learn(flow, side, &forged(Flags::SYN | Flags::ACK, 6000, 9000));
        }
        table.learn(flow, Side::Wired, &syn(Flags::SYN | Flags::ACK, Some(9)));
        for side in [Side::Radio, Side::Wired] {
            table.learn(flow, side, &forged(Flags::SYN, 5000, 0));
            table.learn(flow, side, &forged(Flags::SYN | Flags::ACK, 6000, 9000));
            assert_eq!((table.scale(flow, Side::Radio), table.scale(flow, Side::Wired)), (Some(7), Some(9)));
        }
    }

    #[test]
    fn a_handshake_protects_its_connection_until_the_next_one() {
        let mut table = Connections::new(2);
        table.meet(Side::Radio, Some(&tuple(1)));
        let mut protects = |flags, protected| {
            let segment = syn(flags, Some(7));
            table.protects(FlowId(1), &Parsed { segment, tuple: None, layout: Layout::Ipv4(20), protected })
        };
        let answer = Flags::SYN | Flags::ACK;
        assert!(!protects(Flags::SYN, false) && protects(answer, true) && protects(Flags::ACK, false));
        // A new connection of the same ports, one of whose segments is protected alone; then a signed SYN.
        assert!(!protects(Flags::SYN, false) && !protects(answer, false));
        assert!(protects(Flags::ACK, true) && !protects(Flags::ACK, false));
        assert!(protects(Flags::SYN, true) && protects(answer, false));
    }

    #[test]
    fn a_flow_met_at_the_answer_knows_the_scale_of_that_side_only() {
        let mut table = Connections::new(2);
        table.meet(Side::Radio, Some(&tuple(1)));
        table.learn(FlowId(1), Side::Wired, &syn(Flags::SYN | Flags::ACK, Some(9)));
        assert_eq!(
            (table.scale(FlowId(1), Side::Radio), table.scale(FlowId(1), Side::Wired)),
            (None, Some(9))
        );
    }

    /// A connection with this port whose ends have acknowledged each other.
    fn proven(table: &mut Connections, port: u16) -> FlowId {
        let (Met::New(flow) | Met::Known(flow)) = table.meet(Side::Radio, Some(&back(tuple(port)))) else {
            panic!()
        };
        table.prove(flow);
        flow
    }

    #[test]
    fn a_scan_takes_no_number_of_a_proven_connection_nor_of_one_begun_from_the_other_side() {
        let mut table = Connections::new(100);
        // Half of the numbers belong to proven, idle connections; the mobile's share belongs to half-open connections.
        let kept: Vec<_> = (0..50).map(|port| proven(&mut table, port)).collect();
        for port in 50..75 {
            table.meet(Side::Radio, Some(&back(tuple(port))));
        }
        for port in 1_000..43_000 {
            assert!(matches!(table.meet(Side::Wired, Some(&tuple(port))), Met::New(_)), "{port}");
        }
        for (port, flow) in (0..).zip(kept) {
            assert_eq!(table.meet(Side::Wired, Some(&tuple(port))), Met::Known(flow));
        }
        for port in 50..75 {
            assert!(matches!(table.meet(Side::Wired, Some(&tuple(port))), Met::Known(_)), "{port}");
        }
    }

    #[test]
    fn of_too_many_proven_connections_the_quietest_makes_room() {
        let mut table = Connections::new(8);
        let flows: Vec<_> = (0..8).map(|port| proven(&mut table, port)).collect();
        table.meet(Side::Radio, Some(&back(tuple(0))));
        assert_eq!(table.meet(Side::Wired, Some(&tuple(100))), Met::New(flows[1]));
        assert_eq!(table.meet(Side::Wired, Some(&tuple(101))), Met::New(flows[2]));
        assert_eq!(table.meet(Side::Wired, Some(&tuple(0))), Met::Known(flows[0]));
    }

    #[test]
    fn a_number_is_proven_no_more_when_another_connection_gets_it() {
        let mut table = Connections::new(4);
        let flows: Vec<_> = (0..4).map(|port| proven(&mut table, port)).collect();
        assert_eq!(table.meet(Side::Wired, Some(&tuple(100))), Met::New(flows[0]));
        // Two of four connections may stay proven: one more proven connection loses its number, then unproven
        // connections replace each other.
        assert_eq!(table.meet(Side::Wired, Some(&tuple(101))), Met::New(flows[1]));
        assert_eq!(table.meet(Side::Wired, Some(&tuple(102))), Met::New(flows[0]));
        assert_eq!(table.meet(Side::Wired, Some(&tuple(103))), Met::New(flows[1]));
    }

    proptest! {
        #[test]
        fn the_list_by_use_agrees_with_a_plain_one(ports in prop::collection::vec(0u16..12, 1..300)) {
            let mut table = Connections::new(5);
            let mut model: Vec<u16> = Vec::new();
            for port in ports {
                let known = matches!(table.meet(Side::Wired, Some(&tuple(port))), Met::Known(_));
                prop_assert_eq!(known, model.contains(&port));
                model.retain(|&other| other != port);
                model.push(port);
                if model.len() > 5 {
                    model.remove(0);
                }
            }
        }
    }
}
