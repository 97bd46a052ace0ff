//! Inventory of the packets inside a plane, and of their connections.

use ackclock_core::{FlowId, PacketId, Time};

use crate::parse::Layout;
use crate::port::Side;
use crate::{Connections, PlaneConfig, Pool};

/// Packets and connections by number. A connection keeps its number while its packets are inside the plane.
pub(super) struct Inventory {
    pub(super) pool: Pool,
    pub(super) flows: Connections,
    /// State of each packet, by slot of the pool.
    packets: Vec<Inside>,
    /// Number of packets inside the plane, by side of arrival.
    present: [usize; 2],
    /// Number of packets inside the plane, by user.
    of_users: Vec<usize>,
    /// Number of packets in transit through the graph, by side of arrival. Copies kept by regulators do not count; a
    /// retransmitted copy counts again.
    under_way: [u64; 2],
}

/// State of a packet inside the plane.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inside {
    pub(super) flow: FlowId,
    /// User of the packet's connection; `None` for a packet without a connection.
    pub(super) user: Option<u32>,
    pub(super) layout: Layout,
    pub(super) bytes: u32,
    /// Time at which the packet arrived at the link.
    pub(super) arrived: Time,
    /// Side at which the packet arrived.
    pub(super) from: Option<Side>,
    /// Whether an intact copy of the packet has left the link.
    pub(super) delivered: bool,
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

    /// Whether a side must refuse packets, so that a queue in one direction does not block the opposite direction.
    pub(super) fn is_crowded(&self, from: Side) -> bool {
        self.present[from as usize] >= self.pool.most() / 2
    }

    /// Whether a connection has used its share of a side's packets, so that other connections have room.
    ///
    /// Packets inside are counted per connection, per user and per side; the sum of the three counts stays below three
    /// quarters of the pool. A single connection gets at most half of a side's packets, and the connections of one user
    /// get three quarters.
    pub(super) fn has_its_share(&self, from: Side, flow: FlowId, user: Option<u32>) -> bool {
        let of_flow = self.flows.inside(flow) as usize;
        let of_user = user.map_or(of_flow, |user| self.of_users.get(user as usize).copied().unwrap_or(0));
        self.present[from as usize] + of_flow + of_user >= self.pool.most() * 3 / 4
    }

    /// Records a packet that was claimed from the pool.
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

    /// Counts a kept copy that a regulator retransmits.
    pub(super) fn resend(&mut self, packet: PacketId) {
        self.pool.add_holder(packet);
        if let Some(from) = self.side(packet) {
            self.under_way[from as usize] += 1;
        }
    }

    /// Counts a packet that has left the graph or was lost inside.
    pub(super) fn leave(&mut self, packet: PacketId) {
        if let Some(from) = self.side(packet) {
            self.under_way[from as usize] -= 1;
        }
        self.give_back(packet);
    }

    /// Releases a packet or a copy of the packet. A packet counts as inside the plane until all holders have released
    /// it.
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

    /// Number of packets from a side that are in transit through the graph.
    pub(super) const fn under_way(&self, from: Side) -> u64 {
        self.under_way[from as usize]
    }

    /// Side at which a packet inside the plane arrived.
    fn side(&self, packet: PacketId) -> Option<Side> {
        self.pool.bytes(packet).and(self.get(packet)?.from)
    }

    /// State of a packet inside the plane.
    pub(super) fn get(&self, packet: PacketId) -> Option<&Inside> {
        self.packets.get(packet.slot as usize)
    }

    /// Mutable state of a packet inside the plane.
    pub(super) fn get_mut(&mut self, packet: PacketId) -> Option<&mut Inside> {
        self.packets.get_mut(packet.slot as usize)
    }
}
