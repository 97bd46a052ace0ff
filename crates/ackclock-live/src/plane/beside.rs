//! What happens to packets before the link: a packet of an unselected flow passes beside the link, and a packet that is
//! too big for the hop in front of the link is fragmented or dropped.

use ackclock_core::results::TooBig;
use ackclock_core::{PacketId, Time};

use super::inventory::Inside;
use super::{Beside, Departure, Plane};
use crate::Hop;
use crate::flow::NO_FLOW;
use crate::parse::{Layout, parse};
use crate::port::Side;
use crate::selection::Selection;

impl Plane {
    /// Selects the flows that cross the link. The packets of all other flows pass beside the link: they are neither
    /// queued nor delayed.
    pub fn select(&mut self, selection: Selection) {
        self.traffic.iter_mut().for_each(|traffic| traffic.bypassed = Some(0));
        self.selection = selection;
    }

    /// Puts a hop with a smaller MTU in front of the link, in both directions.
    pub fn narrow(&mut self, hop: Hop) {
        self.traffic.iter_mut().for_each(|traffic| traffic.too_big = Some(TooBig::default()));
        self.hop = Some(hop);
    }

    /// Sends a packet that arrived from the side `from` beside the link, if its flow is not selected. Returns whether the
    /// packet passes beside the link.
    pub(super) fn is_beside(&mut self, now: Time, from: Side, packet: PacketId) -> bool {
        let passes = !self.selection.is_everything()
            && !self.selection.selects(from, parse(self.bytes(packet)).tuple.as_ref());
        if passes {
            self.leave_beside(now, from.other(), packet, Beside::Bypassed);
        }
        passes
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
        let inside =
            Inside { flow: NO_FLOW, user: None, layout: Layout::Opaque, bytes: 0, arrived: at, from: None };
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
        };
        *count = count.saturating_add_signed(change);
    }

    fn too_big(&mut self, from: Side) -> &mut TooBig {
        self.traffic[from as usize].too_big.get_or_insert_default()
    }
}
