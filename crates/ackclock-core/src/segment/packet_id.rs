//! What names the raw bytes of a packet.

/// Names the raw bytes of a packet in the live world: a slot of the packet pool and the generation of its use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PacketId {
    /// Slot in the pool.
    pub slot: u32,
    /// How often the slot had been used before.
    pub generation: u32,
}

impl PacketId {
    /// A segment without raw bytes: a simulated one.
    pub const NONE: Self = Self { slot: u32::MAX, generation: u32::MAX };
    /// A segment that a regulator made; where packets are real its bytes are written when it leaves.
    pub const MADE: Self = Self { slot: u32::MAX, generation: 0 };

    /// Whether there are raw bytes.
    pub const fn has_bytes(self) -> bool {
        self.slot != u32::MAX
    }
}
