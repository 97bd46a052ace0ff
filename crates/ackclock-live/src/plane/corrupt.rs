//! Corrupt packets: one wrong bit of the payload, which the receiver's checksum reveals.

use ackclock_core::PacketId;

use super::Plane;
use crate::parse::payload;
use crate::port::Side;

/// State of a departing packet's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Intact,
    Corrupt,
}

impl Plane {
    /// Flips one bit of a departing packet's payload. Returns the packet with the wrong bit: a new one if the bytes have
    /// other holders. Packets without payload pass unchanged, and so does one for whose bytes the pool has no room.
    pub(super) fn corrupt(&mut self, from: Side, packet: PacketId) -> (PacketId, Content) {
        let range = payload(self.bytes(packet));
        if range.is_empty() {
            return (packet, Content::Intact);
        }
        let Some(own) = self.own_bytes(packet) else { return (packet, Content::Intact) };
        let bit = self.wrong_bits.bits() % (range.len() as u64 * 8);
        if let Some(bytes) = self.inventory.pool.bytes_mut(own) {
            bytes[range.start + (bit / 8) as usize] ^= 1 << (bit % 8);
            self.traffic[from as usize].corrupted += 1;
        }
        (own, Content::Corrupt)
    }

    /// The packet itself if nobody else holds it; otherwise a new packet with the same bytes, which replaces one hold.
    fn own_bytes(&mut self, packet: PacketId) -> Option<PacketId> {
        if !self.inventory.pool.is_shared(packet) {
            return Some(packet);
        }
        let inside = *self.inventory.get(packet)?;
        let bytes = self.inventory.pool.bytes(packet)?;
        let length = bytes.len();
        self.spare[..length].copy_from_slice(bytes);
        let own = self.inventory.pool.claim(&mut self.spare, length)?;
        self.inventory.enter(own, inside);
        self.inventory.leave(packet);
        Some(own)
    }
}
