//! Tracks packets in the graph: frees lost packets and logs all packets.

use ackclock_core::{Copied, PacketId, Time};

use super::Plane;
use super::inventory::Inside;
use crate::log::LinkLog;
use crate::port::Side;
use crate::traffic::Traffic;
use crate::watch::Seen;

impl Plane {
    /// Starts logging packets that cross the link towards the side `to`.
    pub fn log(&mut self, to: Side, log: LinkLog) {
        self.graph.begin();
        self.logs[to as usize] = Some(log);
    }

    /// Ends the packet logs.
    pub fn finish_logs(&mut self) {
        let now = self.graph.now();
        self.logs.iter_mut().filter_map(Option::take).for_each(|log| log.finish(now));
    }

    /// Frees packets that the graph discarded, and logs packets seen on its connections.
    pub(super) fn collect(&mut self) {
        while let Some(seen) = self.graph.poll_seen() {
            self.log_seen(seen);
        }
        while let Some((packet, copied)) = self.graph.poll_copied() {
            self.copy(packet, copied);
        }
        while let Some(packet) = self.graph.poll_discarded() {
            if let Some(from) = self.inventory.get(packet).and_then(|inside| inside.from) {
                self.traffic[from as usize].removed += 1;
            }
            self.log_dropped(packet);
            self.release(packet);
        }
    }

    /// Increments or decrements the number of copies of a packet.
    fn copy(&mut self, packet: PacketId, copied: Copied) {
        match copied {
            Copied::Kept => self.inventory.pool.add_holder(packet),
            Copied::Sent | Copied::Duplicated => {
                self.inventory.resend(packet);
                if let Some(from) = self.inventory.get(packet).and_then(|inside| inside.from) {
                    let Traffic { resent, duplicated, .. } = &mut self.traffic[from as usize];
                    *(if copied == Copied::Sent { resent } else { duplicated }) += 1;
                }
                let at = self.graph.now();
                self.log_seen(Seen::Arrived { at, packet });
            }
            Copied::Released => self.inventory.give_back(packet),
        }
    }

    fn log_seen(&mut self, seen: Seen) {
        match seen {
            Seen::Arrived { at, packet } => {
                let Some(inside) = self.inventory.get_mut(packet) else { return };
                inside.arrived = at;
                if let Some(log) = inside.from.and_then(|from| self.logs[from.other() as usize].as_mut()) {
                    log.arrived(at, inside.bytes);
                }
            }
            Seen::Left { at, packet } => self.log_left(at, packet),
        }
    }

    pub(super) fn log_left(&mut self, at: Time, packet: PacketId) {
        let Some(&Inside { bytes, arrived, from, .. }) = self.inventory.get(packet) else {
            return;
        };
        if let Some(log) = from.and_then(|from| self.logs[from.other() as usize].as_mut()) {
            log.left(at, bytes, at.since(arrived));
        }
    }

    fn log_dropped(&mut self, packet: PacketId) {
        let now = self.graph.now();
        let Some(&Inside { bytes, from, .. }) = self.inventory.get(packet) else { return };
        if let Some(log) = from.and_then(|from| self.logs[from.other() as usize].as_mut()) {
            log.dropped(now, bytes);
        }
    }
}
