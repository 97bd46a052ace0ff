//! Packets that are cut when the cell grants a block: the layer above the cell is asked for them at each grant.

use ackclock_core::{Segment, Time};
use ackclock_link::Load;
use ackclock_link::queue::Place;

use super::Cell;

/// Grants to users whose packets are not queued in the cell.
#[derive(Default)]
pub(super) struct Pull {
    /// User of the current grant, if the cell waits for the user's packets.
    granted: Option<u32>,
    /// Weights of users with data that is not cut yet, indexed by user number; 0 for other users.
    more: Vec<u16>,
    /// Payload size and header size of a PDU, bytes, if packets consist of PDUs of one size.
    pdu: Option<[u16; 2]>,
}

/// Room for new packets of a user in a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    /// Start of the block.
    pub(crate) at: Time,
    pub(crate) user: u32,
    /// Number of bits that the user's packets in the cell do not use, rounded down, and rounded up.
    pub(crate) bits: [u64; 2],
}

impl Pull {
    /// Grants the next block to a user.
    pub(super) fn grant(&mut self, user: u32) {
        self.granted = Some(user);
    }
}

impl Cell {
    /// Makes the cell stop at each grant until [`Cell::fill`] supplies packets. If it supplies none, the user
    /// must request its next turn. Packets consist of PDUs of the size `pdu`, if it is given.
    pub(crate) fn want_grants(&mut self, pdu: Option<[u16; 2]>) {
        self.pull = Some(Pull { granted: None, more: vec![0; self.members.len()], pdu });
    }

    /// Number of PDUs in a packet.
    #[inline]
    pub(crate) fn pdus_in(&self, packet: &Segment) -> u16 {
        let pdu = self.pull.as_ref().and_then(|pull| pull.pdu);
        pdu.map_or(1, |[payload, _]| packet.payload / payload)
    }

    /// PDU of a packet, counted from 0.
    pub(crate) fn pdu(&self, packet: &Segment, number: u16) -> Segment {
        let pdu = self.pull.as_ref().and_then(|pull| pull.pdu);
        let seq = packet.seq + u32::from(number);
        pdu.map_or(*packet, |[payload, header]| Segment::data(packet.flow, seq, payload, header))
    }

    /// Serves a user that has data to be cut, from the next slot on, with the weight of the data's class.
    pub(crate) fn request(&mut self, now: Time, user: u32, weight: u16) {
        self.set_more(user, weight);
        self.await_turn(now, user);
    }

    /// Returns the grant for which the cell waits for packets.
    pub(crate) fn granted(&self) -> Option<Granted> {
        let user = self.pull.as_ref()?.granted?;
        let member = &self.members[user as usize];
        let work = self.grants[member.state.1].work;
        let begun = member.begun.as_ref().map_or(0, |fragment| fragment.left);
        let (left, per_second) = (work.saturating_sub(begun), self.slots.per_second());
        let queued = self.backlog.of_user(user).bytes * 8;
        let bits = [left / per_second, left.div_ceil(per_second)].map(|bits| bits.saturating_sub(queued));
        Some(Granted { at: self.slots.start(self.next), user, bits })
    }

    /// Sends the packets `packets` in the current grant. The user keeps its turn if it has more data, whose class has the
    /// weight `more`.
    pub(crate) fn fill(&mut self, packets: &[Segment], more: Option<u16>) {
        let Some(user) = self.pull.as_mut().and_then(|pull| pull.granted.take()) else { return };
        let start = self.slots.start(self.next);
        for packet in packets {
            // A queue without a limit accepts every packet.
            let _ = self.backlog.enqueue(start, packet, Load::NONE, Place::Back);
        }
        if self.members[user as usize].begun.is_none() && self.backlog.is_empty(user) {
            // The user had nothing to send, so that another user gets the slot.
            self.set_more(user, 0);
            return self.leave_turn(user);
        }
        let weight = self.weight(start, user);
        self.set_more(user, more.unwrap_or(0));
        self.serve_new(start, user, weight);
        self.count_backlogged(start);
    }

    /// Sets the weight of a user with data to be cut; 0 for no data.
    pub(super) fn set_more(&mut self, user: u32, more: u16) {
        if let Some(pull) = &mut self.pull {
            pull.more[user as usize] = more;
        }
    }

    /// Whether packets of a user are queued in the cell.
    pub(crate) fn has_queued(&self, user: u32) -> bool {
        !self.backlog.is_empty(user)
    }

    /// Whether a user has data beyond the block that it sends.
    pub(super) fn has_new(&self, user: u32) -> bool {
        self.pull.as_ref().is_some_and(|pull| pull.more[user as usize] > 0) || !self.backlog.is_empty(user)
    }

    /// Weight of the class of the data that the user sends next.
    pub(super) fn weight(&self, now: Time, user: u32) -> u16 {
        match &self.pull {
            Some(pull) => pull.more[user as usize].max(1),
            None => self.backlog.weight(now, user),
        }
    }

    /// Whether the cell waits for the packets of a grant.
    pub(super) fn is_granted(&self) -> bool {
        self.pull.as_ref().is_some_and(|pull| pull.granted.is_some())
    }
}
