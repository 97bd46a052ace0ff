//! Flows by number: which connection a packet belongs to, in either direction.
//!
//! The graph knows flows by a small number. A connection gets one at its first packet, wherever in its life that is, and
//! keeps it while it is among the `most` that were used last. The number of the connection that was quiet for longest goes
//! to the next new one, but never while packets of the old one are still inside: they would be taken for the new one's.
//! Where every number is in use that way, and for what is not IP, there is flow 0, which is no connection and is never
//! regulated.

use std::collections::BTreeMap;

use ackclock_core::{Flags, FlowId, Segment};

use crate::parse::{End, Tuple};
use crate::port::Side;

/// Packets of no connection.
pub const NO_FLOW: FlowId = FlowId(0);

/// The ends of a connection, as the emulated link sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ends {
    /// The end towards the wired network.
    pub wired: End,
    /// The end towards the mobile.
    pub radio: End,
    /// Number of the protocol above IP.
    pub protocol: u8,
}

impl Ends {
    fn of(tuple: &Tuple, from: Side) -> Self {
        let Tuple { source, destination, protocol } = *tuple;
        match from {
            Side::Wired => Self { wired: source, radio: destination, protocol },
            Side::Radio => Self { wired: destination, radio: source, protocol },
        }
    }
}

/// What a packet met in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// A connection that is known.
    Known(FlowId),
    /// A connection that was not; the number is its own from now on. What was known under it must be forgotten.
    New(FlowId),
    /// No connection, or one for which there is no number.
    None,
}

/// All connections, bounded.
#[derive(Debug)]
pub struct FlowTable {
    numbers: BTreeMap<Ends, u32>,
    /// By number; number 0 stands for no connection and heads the list by use.
    entries: Vec<Entry>,
    most: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    ends: Option<Ends>,
    /// Packets inside the graph.
    inside: u32,
    scales: Scales,
    /// Neighbours in the list by use: towards those used before and after.
    older: u32,
    newer: u32,
}

/// Window scales of a connection by the side that announced them (RFC 7323 section 2).
#[derive(Clone, Copy, Debug, Default)]
struct Scales {
    /// What a SYN offered that is not answered yet.
    offered: [Option<u8>; 2],
    /// The shift of the windows that each side announces.
    shift: [Option<u8>; 2],
}

const HEAD: u32 = 0;

impl FlowTable {
    /// A table of at most `most` connections.
    pub fn new(most: usize) -> Self {
        let head = Entry { ends: None, inside: 0, scales: Scales::default(), older: HEAD, newer: HEAD };
        Self { numbers: BTreeMap::new(), entries: vec![head], most }
    }

    /// Finds or numbers the connection of a packet that comes in at `from`.
    pub fn meet(&mut self, from: Side, tuple: Option<&Tuple>) -> Met {
        let Some(ends) = tuple.map(|tuple| Ends::of(tuple, from)) else { return Met::None };
        // Packets come in trains: most are of the connection that was used last.
        let last = self.entries[HEAD as usize].older;
        if last != HEAD && self.entries[last as usize].ends == Some(ends) {
            return Met::Known(FlowId(last));
        }
        if let Some(&number) = self.numbers.get(&ends) {
            self.unlink(number);
            self.link_newest(number);
            return Met::Known(FlowId(number));
        }
        self.number(ends).map_or(Met::None, |number| Met::New(FlowId(number)))
    }

    /// A packet of the flow enters the graph.
    pub fn enter(&mut self, flow: FlowId) {
        self.entries[flow.index()].inside += 1;
    }

    /// A packet of the flow has left the graph, one way or another.
    pub fn leave(&mut self, flow: FlowId) {
        let inside = &mut self.entries[flow.index()].inside;
        *inside = inside.saturating_sub(1);
    }

    /// Packets of the flow inside the graph.
    pub fn inside(&self, flow: FlowId) -> u32 {
        self.entries[flow.index()].inside
    }

    /// The ends of a connection.
    pub fn ends(&self, flow: FlowId) -> Option<Ends> {
        self.entries.get(flow.index()).and_then(|entry| entry.ends)
    }

    /// Learns the window scales from a segment of the handshake.
    pub fn learn(&mut self, flow: FlowId, from: Side, segment: &Segment) {
        if !segment.flags.intersects(Flags::SYN) {
            return;
        }
        let scale = segment.syn_options().and_then(|options| options.window_scale);
        let scales = &mut self.entries[flow.index()].scales;
        let (here, there) = (from as usize, from.other() as usize);
        if !segment.flags.contains(Flags::ACK) {
            *scales = Scales::default();
            scales.offered[here] = scale;
            return;
        }
        match scale {
            // Scaling is in use only where both SYNs carry the option, and an answer carries it only if the SYN did.
            Some(shift) => {
                scales.shift[here] = Some(shift);
                scales.shift[there] = scales.offered[there];
            }
            None => scales.shift = [Some(0); 2],
        }
    }

    /// The shift of the windows that a side announces, where the handshake was seen.
    pub fn scale(&self, flow: FlowId, from: Side) -> Option<u8> {
        self.entries[flow.index()].scales.shift[from as usize]
    }

    /// The number for a new connection: one never used, or the one whose connection was quiet for longest.
    fn number(&mut self, ends: Ends) -> Option<u32> {
        let number = if self.entries.len() <= self.most {
            self.entries.push(self.entries[HEAD as usize]);
            (self.entries.len() - 1) as u32
        } else {
            let number = self.quiet()?;
            self.unlink(number);
            if let Some(old) = self.entries[number as usize].ends {
                self.numbers.remove(&old);
            }
            number
        };
        let entry = &mut self.entries[number as usize];
        (entry.ends, entry.inside, entry.scales) = (Some(ends), 0, Scales::default());
        self.numbers.insert(ends, number);
        self.link_newest(number);
        Some(number)
    }

    /// The connection that was quiet for longest and has nothing inside.
    fn quiet(&self) -> Option<u32> {
        // One that is quiet but has packets inside waits for a slow link; few do.
        const LOOK_AT: usize = 64;
        let oldest = self.entries[HEAD as usize].newer;
        std::iter::successors(Some(oldest), |&number| Some(self.entries[number as usize].newer))
            .take(LOOK_AT)
            .take_while(|&number| number != HEAD)
            .find(|&number| self.entries[number as usize].inside == 0)
    }

    fn unlink(&mut self, number: u32) {
        let Entry { older, newer, .. } = self.entries[number as usize];
        self.entries[older as usize].newer = newer;
        self.entries[newer as usize].older = older;
    }

    /// The list is a ring: the head's `older` is the newest of all, its `newer` the oldest.
    fn link_newest(&mut self, number: u32) {
        let newest = self.entries[HEAD as usize].older;
        self.entries[number as usize].older = newest;
        self.entries[number as usize].newer = HEAD;
        self.entries[newest as usize].newer = number;
        self.entries[HEAD as usize].older = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        segment.flags = flags;
        segment.set_syn_options(SynOptions { window_scale, ..SynOptions::default() });
        segment
    }

    #[test]
    fn both_directions_are_one_flow() {
        let mut table = FlowTable::new(10);
        assert_eq!(table.meet(Side::Wired, Some(&tuple(1))), Met::New(FlowId(1)));
        assert_eq!(table.meet(Side::Radio, Some(&back(tuple(1)))), Met::Known(FlowId(1)));
        assert_eq!(table.meet(Side::Radio, Some(&tuple(1))), Met::New(FlowId(2)), "the other way round");
        assert_eq!(table.meet(Side::Wired, None), Met::None);
    }

    #[test]
    fn the_number_that_was_quiet_for_longest_is_used_again() {
        let mut table = FlowTable::new(2);
        for port in [1, 2, 1] {
            table.meet(Side::Wired, Some(&tuple(port)));
        }
        assert_eq!(table.meet(Side::Wired, Some(&tuple(3))), Met::New(FlowId(2)));
        assert_eq!(table.meet(Side::Wired, Some(&tuple(1))), Met::Known(FlowId(1)));
        assert_eq!(table.meet(Side::Wired, Some(&tuple(2))), Met::New(FlowId(2)));
    }

    #[test]
    fn a_number_with_packets_inside_is_not_used_again() {
        let mut table = FlowTable::new(2);
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
    fn scales_are_known_after_the_handshake_and_forgotten_at_the_next() {
        let mut table = FlowTable::new(2);
        let flow = FlowId(1);
        table.meet(Side::Radio, Some(&tuple(1)));
        table.learn(flow, Side::Radio, &syn(Flags::SYN, Some(7)));
        assert_eq!(table.scale(flow, Side::Radio), None, "not before it is answered");
        table.learn(flow, Side::Wired, &syn(Flags::SYN | Flags::ACK, Some(9)));
        assert_eq!((table.scale(flow, Side::Radio), table.scale(flow, Side::Wired)), (Some(7), Some(9)));
        table.learn(flow, Side::Radio, &syn(Flags::SYN, Some(7)));
        assert_eq!(table.scale(flow, Side::Wired), None);
        table.learn(flow, Side::Wired, &syn(Flags::SYN | Flags::ACK, None));
        assert_eq!((table.scale(flow, Side::Radio), table.scale(flow, Side::Wired)), (Some(0), Some(0)));
    }

    #[test]
    fn a_flow_met_at_the_answer_knows_the_scale_of_that_side_only() {
        let mut table = FlowTable::new(2);
        table.meet(Side::Radio, Some(&tuple(1)));
        table.learn(FlowId(1), Side::Wired, &syn(Flags::SYN | Flags::ACK, Some(9)));
        assert_eq!(
            (table.scale(FlowId(1), Side::Radio), table.scale(FlowId(1), Side::Wired)),
            (None, Some(9))
        );
    }

    proptest! {
        #[test]
        fn the_list_by_use_agrees_with_a_plain_one(ports in prop::collection::vec(0u16..12, 1..300)) {
            let mut table = FlowTable::new(5);
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
