//! Pool of raw packets, which stores packet bytes by [`PacketId`] in reused buffers.
//!
//! A packet's id contains the generation of its slot, so an outdated id finds no packet. Buffers are allocated in
//! blocks when first needed; afterwards no packet allocates memory. Every claim, and every additional hold
//! ([`Pool::add_holder`]), must be released. The conservation check compares [`Pool::in_use`] and [`Pool::copies`] to
//! find missing releases.

use ackclock_core::PacketId;

/// Number of buffers allocated at a time.
const BLOCK: usize = 256;

/// Pool of raw packets by packet number.
#[derive(Debug)]
pub struct Pool {
    slots: Vec<Slot>,
    /// Free slots. The slot freed last is on top, because its bytes are likely to be cached.
    free: Vec<u32>,
    slot_bytes: usize,
    most: usize,
    copies: usize,
}

#[derive(Debug)]
struct Slot {
    buffer: Box<[u8]>,
    length: usize,
    generation: u32,
    /// Number of holders of the packet; 0 if the slot is free.
    holders: u32,
}

impl Pool {
    /// Creates a pool of at most `most` packets of at most `slot_bytes` bytes.
    pub fn new(most: usize, slot_bytes: usize) -> Self {
        let mut pool = Self { slots: Vec::new(), free: Vec::new(), slot_bytes, most, copies: 0 };
        pool.grow();
        pool
    }

    /// Maximum size of a packet, bytes.
    pub const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Maximum number of packets in the pool.
    pub const fn most(&self) -> usize {
        self.most
    }

    /// Number of packets in use.
    pub const fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Number of holds beyond the first hold of each packet.
    pub const fn copies(&self) -> usize {
        self.copies
    }

    /// Claims a packet by swapping buffers: the packet takes `buffer`, whose first `length` bytes are its contents, and
    /// `buffer` becomes an unused buffer of the same size. Returns `None` if the pool is full.
    ///
    /// # Panics
    /// Panics if the buffer is not from [`Self::buffer`] or the packet is longer than the buffer; each cause is a bug
    /// in the caller.
    pub fn claim(&mut self, buffer: &mut Box<[u8]>, length: usize) -> Option<PacketId> {
        assert!(buffer.len() == self.slot_bytes && length <= self.slot_bytes, "a buffer of another pool");
        if self.free.is_empty() {
            self.grow();
        }
        let number = self.free.pop()?;
        let slot = &mut self.slots[number as usize];
        std::mem::swap(&mut slot.buffer, buffer);
        slot.length = length;
        slot.holders = 1;
        Some(PacketId { slot: number, generation: slot.generation })
    }

    /// Creates a buffer for [`Self::claim`].
    pub fn buffer(&self) -> Box<[u8]> {
        vec![0; self.slot_bytes].into_boxed_slice()
    }

    /// Bytes of a packet, if it still exists.
    pub fn bytes(&self, packet: PacketId) -> Option<&[u8]> {
        self.slots
            .get(packet.slot as usize)
            .filter(|slot| slot.holds(packet))
            .map(|slot| &slot.buffer[..slot.length])
    }

    /// Mutable bytes of a packet, if it still exists.
    pub fn bytes_mut(&mut self, packet: PacketId) -> Option<&mut [u8]> {
        let slot = self.slots.get_mut(packet.slot as usize).filter(|slot| slot.holds(packet))?;
        Some(&mut slot.buffer[..slot.length])
    }

    /// Adds a holder of a packet, who must release the packet later.
    pub fn add_holder(&mut self, packet: PacketId) {
        if let Some(slot) = self.slots.get_mut(packet.slot as usize).filter(|slot| slot.holds(packet)) {
            slot.holders += 1;
            self.copies += 1;
        }
    }

    /// Whether a packet has more than one holder.
    pub fn is_shared(&self, packet: PacketId) -> bool {
        self.slots.get(packet.slot as usize).is_some_and(|slot| slot.holds(packet) && slot.holders > 1)
    }

    /// Releases one hold of a packet. Returns whether the released hold was the packet's last; false if the packet did
    /// not exist.
    pub fn release(&mut self, packet: PacketId) -> bool {
        let Some(slot) = self.slots.get_mut(packet.slot as usize).filter(|slot| slot.holds(packet)) else {
            return false;
        };
        slot.holders -= 1;
        if slot.holders > 0 {
            self.copies -= 1;
            return false;
        }
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(packet.slot);
        true
    }

    fn grow(&mut self) {
        let first = self.slots.len();
        let last = (first + BLOCK).min(self.most);
        self.slots.extend((first..last).map(|_| Slot {
            buffer: vec![0; self.slot_bytes].into_boxed_slice(),
            length: 0,
            generation: 0,
            holders: 0,
        }));
        self.free.extend((first as u32..last as u32).rev());
    }
}

impl Slot {
    const fn holds(&self, packet: PacketId) -> bool {
        self.holders > 0 && self.generation == packet.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(pool: &mut Pool, byte: u8) -> Option<PacketId> {
        let mut buffer = pool.buffer();
        buffer[0] = byte;
        pool.claim(&mut buffer, 1)
    }

    #[test]
    fn a_packet_keeps_its_bytes_until_it_is_released() {
        let mut pool = Pool::new(10, 64);
        let (a, b) = (claim(&mut pool, 1).unwrap(), claim(&mut pool, 2).unwrap());
        assert_eq!((pool.bytes(a), pool.bytes(b)), (Some(&[1][..]), Some(&[2][..])));
        assert_eq!(pool.in_use(), 2);
        assert!(pool.release(a));
        assert_eq!((pool.bytes(a), pool.in_use()), (None, 1));
        assert!(!pool.release(a), "it is gone already");
    }

    #[test]
    fn a_packet_stays_until_all_who_hold_it_have_given_it_back() {
        let mut pool = Pool::new(10, 64);
        let packet = claim(&mut pool, 1).unwrap();
        pool.add_holder(packet);
        pool.add_holder(packet);
        assert_eq!((pool.in_use(), pool.copies()), (1, 2));
        assert!(!pool.release(packet) && !pool.release(packet));
        assert_eq!((pool.bytes(packet), pool.copies()), (Some(&[1][..]), 0));
        assert!(pool.release(packet));
        pool.add_holder(packet);
        assert_eq!((pool.in_use(), pool.copies()), (0, 0), "it is gone");
    }

    #[test]
    fn a_name_that_outlived_its_packet_does_not_find_the_next() {
        let mut pool = Pool::new(10, 64);
        let old = claim(&mut pool, 1).unwrap();
        pool.release(old);
        let new = claim(&mut pool, 2).unwrap();
        assert_eq!((old.slot, pool.bytes(old)), (new.slot, None));
        assert_eq!(pool.bytes_mut(new), Some(&mut [2][..]));
        assert_eq!(pool.bytes(PacketId::NONE), None);
    }

    #[test]
    fn a_full_pool_takes_nothing_and_makes_no_more_buffers() {
        let mut pool = Pool::new(BLOCK + 3, 64);
        let ids: Vec<_> = std::iter::from_fn(|| claim(&mut pool, 0)).collect();
        assert_eq!(ids.len(), BLOCK + 3);
        pool.release(ids[7]);
        assert_eq!(claim(&mut pool, 9).unwrap().slot, ids[7].slot);
    }
}
