//! TCP sequence numbers: 32 bits that wrap (RFC 9293 section 3.4).

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// TCP sequence number, in bytes modulo 2^32.
///
/// `Seq` does not implement `Ord`, because order exists only between numbers less than 2^31 apart. Sequence numbers are
/// compared with named methods instead.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// Returns whether this sequence number comes before `other`.
    pub const fn before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Returns whether this sequence number comes after `other`.
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// Returns whether this sequence number is equal to `other` or comes before `other`.
    pub const fn at_or_before(self, other: Self) -> bool {
        !other.before(self)
    }

    /// Number of bytes from `earlier` to this sequence number; zero if this number comes before `earlier`.
    pub const fn since(self, earlier: Self) -> u32 {
        let distance = self.0.wrapping_sub(earlier.0);
        if (distance as i32) < 0 { 0 } else { distance }
    }

    /// Returns the later of two sequence numbers.
    pub const fn max(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }

    /// Returns the earlier of two sequence numbers.
    pub const fn min(self, other: Self) -> Self {
        if other.before(self) { other } else { self }
    }
}

impl Add<u32> for Seq {
    type Output = Self;
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for Seq {
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for Seq {
    type Output = Self;
    fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let last = Seq(u32::MAX);
        assert!(last.before(last + 1));
        assert!((last + 1).after(last));
        assert_eq!((last + 10).since(last), 10);
        assert_eq!(last.since(last + 10), 0);
        assert_eq!(last.max(last + 1), Seq(0));
    }
}
