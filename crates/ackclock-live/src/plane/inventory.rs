//! The packets inside a plane, and the connections that they are of.

use ackclock_core::{FlowId, PacketId, Time};

use crate::parse::Layout;
use crate::port::Side;
use crate::{Connections, PlaneConfig, Pool};

/// Packets and connections by number. Both count each other: a connection keeps its number while packets of it are inside.
pub(super) struct Inventory {
    pub(super) pool: Pool,
    pub(super) flows: Connections,
    /// What is known of each packet, by slot of the pool.
    packets: Vec<Inside>,
    /// Packets inside that came in at each side.
    present: [usize; 2],
    /// Packets inside of each user's connections.
    of_users: Vec<usize>,
    /// Packets of each side on their way through the graph: kept copies do not count, and a packet that was resent counts again.
    under_way: [u64; 2],
}

/// What is known of a packet inside.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inside {
    pub(super) flow: FlowId,
    /// Whose connection it is of, if it is of one.
    pub(super) user: Option<u32>,
    pub(super) layout: Layout,
    pub(super) bytes: u32,
    /// When it came to the link.
    pub(super) arrived: Time,
    /// Where it came in.
    pub(super) from: Option<Side>,
}

impl Inventory {
    pub(super) fn new(config: &PlaneConfig<'_>) -> Self {
        Self {
            pool: Pool::new(config.packets, config.packet_bytes),
            flows: Connections::new(config.flows),
            packets: Vec::new(),
            present: [0, 0],
            of_users: Vec::new(),
            under_way: [0, 0],
        }
    }

    /// Whether no more may come in at a side: what waits one way must not stand in the way of the other.
    pub(super) fn is_crowded(&self, from: Side) -> bool {
        self.present[from as usize] >= self.pool.most() / 2
    }

    /// Whether a connection has its share of the packets of a side: what waits of one, is held or kept of it leaves room for others.
    ///
    /// The packets inside of the connection, of its user and of the side together stay below three quarters of all. So one
    /// connection alone gets half of a side, and the connections of one user three quarters of it.
    pub(super) fn has_its_share(&self, from: Side, flow: FlowId, user: Option<u32>) -> bool {
        let of_flow = self.flows.inside(flow) as usize;
        let of_user = user.map_or(of_flow, |user| self.of_users.get(user as usize).copied().unwrap_or(0));
        self.present[from as usize] + of_flow + of_user >= self.pool.most() * 3 / 4
    }

    /// Notes what is known of a packet that has been claimed.
    pub(super) fn enter(&mut self, packet: PacketId, inside: Inside) {
        let slot = packet.slot as usize;
        self.packets.resize(self.packets.len().max(slot + 1), Inside::default());
        self.packets[slot] = inside;
        self.flows.enter(inside.flow);
        if let Some(user) = inside.user {
            let user = user as usize;
            self.of_users.resize(self.of_users.len().max(user + 1), 0);
            self.of_users[user] += 1;
        }
        if let Some(from) = inside.from {
            self.present[from as usize] += 1;
            self.under_way[from as usize] += 1;
        }
    }

    /// A kept copy of a packet goes on its way.
    pub(super) fn resend(&mut self, packet: PacketId) {
        self.pool.add_holder(packet);
        if let Some(from) = self.side(packet) {
            self.under_way[from as usize] += 1;
        }
    }

    /// A packet has left the graph, one way or another.
    pub(super) fn leave(&mut self, packet: PacketId) {
        if let Some(from) = self.side(packet) {
            self.under_way[from as usize] -= 1;
        }
        self.give_back(packet);
    }

    /// Gives back a packet or a copy of it. The packet is inside until all who hold it have done so.
    pub(super) fn give_back(&mut self, packet: PacketId) {
        if self.pool.release(packet)
            && let Some(&Inside { flow, user, from, .. }) = self.get(packet)
        {
            self.flows.leave(flow);
            if let Some(user) = user {
                self.of_users[user as usize] -= 1;
            }
            if let Some(from) = from {
                self.present[from as usize] -= 1;
            }
        }
    }

    /// Packets that came in at a side and are on their way through the graph.
    pub(super) const fn under_way(&self, from: Side) -> u64 {
        self.under_way[from as usize]
    }

    /// Where a packet that is inside came in.
    fn side(&self, packet: PacketId) -> Option<Side> {
        self.pool.bytes(packet).and(self.get(packet)?.from)
    }

    /// What is known of a packet.
    pub(super) fn get(&self, packet: PacketId) -> Option<&Inside> {
        self.packets.get(packet.slot as usize)
    }

    /// What is known of a packet, to change it.
    pub(super) fn get_mut(&mut self, packet: PacketId) -> Option<&mut Inside> {
        self.packets.get_mut(packet.slot as usize)
    }
}
