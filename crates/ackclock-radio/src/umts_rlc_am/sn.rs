//! Sequence numbers of 12 bits, sets and rings of sequence numbers, and SDU numbers.

use std::ops::{Index, IndexMut};

/// Number of distinct sequence numbers.
const MODULUS: u16 = 4096;

/// Sequence number of a PDU, modulo 4096.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sn(u16);

impl Sn {
    pub(crate) const ZERO: Self = Self(0);

    /// Largest window, in PDUs, in which each sequence number identifies one PDU.
    pub(crate) const MOST: u16 = MODULUS - 1;

    /// Sequence number that is `steps` higher, modulo 4096.
    pub(crate) const fn plus(self, steps: u16) -> Self {
        Self((self.0 + steps) % MODULUS)
    }

    /// Sequence number that is `steps` lower, modulo 4096.
    pub(crate) const fn minus(self, steps: u16) -> Self {
        Self((self.0 + MODULUS - steps % MODULUS) % MODULUS)
    }

    /// Number of steps from `base` up to this sequence number, modulo 4096: all comparisons are relative to the lowest
    /// sequence number in use.
    pub(crate) const fn above(self, base: Self) -> u16 {
        (self.0 + MODULUS - base.0) % MODULUS
    }

    /// Index of the sequence number in a ring of `length` slots, a power of two.
    const fn place(self, length: usize) -> usize {
        self.0 as usize & (length - 1)
    }

    const fn word(self) -> usize {
        self.0 as usize / 64
    }

    const fn bit(self) -> u64 {
        1 << (self.0 % 64)
    }
}

/// Number of an SDU in its direction, counted from 0. Real PDUs have no SDU number: a receiver identifies SDUs by their
/// octets, which the simulation omits.
pub(crate) type SduNumber = u64;

/// A set of sequence numbers.
#[derive(Clone, Debug)]
pub(crate) struct SnSet {
    words: [u64; WORDS],
    count: u32,
}

const WORDS: usize = MODULUS as usize / 64;

impl Default for SnSet {
    fn default() -> Self {
        Self { words: [0; WORDS], count: 0 }
    }
}

impl SnSet {
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) const fn contains(&self, sn: Sn) -> bool {
        self.words[sn.word()] & sn.bit() != 0
    }

    pub(crate) fn insert(&mut self, sn: Sn) {
        self.count += u32::from(!self.contains(sn));
        self.words[sn.word()] |= sn.bit();
    }

    #[inline]
    pub(crate) fn remove(&mut self, sn: Sn) {
        if self.is_empty() {
            return;
        }
        self.count -= u32::from(self.contains(sn));
        self.words[sn.word()] &= !sn.bit();
    }

    /// First sequence number of the set at or above `base`.
    pub(crate) fn first_from(&self, base: Sn) -> Option<Sn> {
        if self.is_empty() {
            return None;
        }
        let below = base.bit() - 1;
        // The word that contains `base` is visited twice: its upper bits first, its lower bits last.
        (0..=WORDS).find_map(|step| {
            let word = (base.word() + step) % WORDS;
            let bits = match step {
                0 => self.words[word] & !below,
                WORDS => self.words[word] & below,
                _ => self.words[word],
            };
            (bits != 0).then(|| Sn((word * 64) as u16 + bits.trailing_zeros() as u16))
        })
    }
}

/// Values by sequence number. The ring grows with the range of numbers in use.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T>(Vec<T>);

impl<T: Copy + Default> Default for Ring<T> {
    fn default() -> Self {
        Self(vec![T::default()])
    }
}

impl<T: Copy + Default> Ring<T> {
    /// Makes room for `count` numbers from `base` on, of which the first `used` numbers have values.
    #[inline]
    pub(crate) fn reserve(&mut self, base: Sn, used: u16, count: u16) {
        if usize::from(count) > self.0.len() {
            self.grow(base, used, usize::from(count).next_power_of_two());
        }
    }

    #[cold]
    fn grow(&mut self, base: Sn, used: u16, length: usize) {
        let mut longer = vec![T::default(); length];
        for sn in (0..used).map(|step| base.plus(step)) {
            longer[sn.place(length)] = self[sn];
        }
        self.0 = longer;
    }
}

impl<T> Index<Sn> for Ring<T> {
    type Output = T;

    fn index(&self, sn: Sn) -> &T {
        &self.0[sn.place(self.0.len())]
    }
}

impl<T> IndexMut<Sn> for Ring<T> {
    fn index_mut(&mut self, sn: Sn) -> &mut T {
        let place = sn.place(self.0.len());
        &mut self.0[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_its_values_when_it_grows() {
        let mut ring = Ring::default();
        let base = Sn(4090);
        for step in 0..40 {
            ring.reserve(base, step, step + 1);
            ring[base.plus(step)] = step;
            assert!((0..=step).all(|earlier| ring[base.plus(earlier)] == earlier), "{step}");
        }
        assert_eq!(ring.0.len(), 64);
    }

    #[test]
    fn numbers_go_round() {
        assert_eq!(Sn(4095).plus(1), Sn::ZERO);
        assert_eq!(Sn::ZERO.minus(1), Sn(4095));
        assert_eq!(Sn(3).above(Sn(4090)), 9);
        assert_eq!(Sn(4090).above(Sn(3)), 4087);
        assert_eq!(Sn(4090).place(1024), 1018);
    }

    #[test]
    fn the_first_member_is_the_next_going_up() {
        let mut set = SnSet::default();
        assert_eq!(set.first_from(Sn(7)), None);
        for number in [5, 200, 4000] {
            set.insert(Sn(number));
            set.insert(Sn(number));
        }
        assert_eq!(set.count, 3);
        for (base, first) in [(0, 5), (5, 5), (6, 200), (201, 4000), (4001, 5), (4095, 5)] {
            assert_eq!(set.first_from(Sn(base)), Some(Sn(first)), "{base}");
        }
        set.remove(Sn(5));
        set.remove(Sn(5));
        assert_eq!((set.count, set.first_from(Sn(4001))), (2, Some(Sn(200))));
    }
}
