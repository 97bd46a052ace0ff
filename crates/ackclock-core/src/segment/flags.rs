//! The control bits of a TCP header and the ECN codepoint of an IP header.

/// TCP control bits (RFC 9293 section 3.1, RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// FIN: the sender has no more data.
    pub const FIN: Self = Self(0x01);
    /// SYN: synchronises sequence numbers at the start of a connection.
    pub const SYN: Self = Self(0x02);
    /// RST: resets the connection.
    pub const RST: Self = Self(0x04);
    /// PSH: asks the receiver to pass data to the application at once.
    pub const PSH: Self = Self(0x08);
    /// ACK: the acknowledgement number of the segment is valid.
    pub const ACK: Self = Self(0x10);
    /// ECN echo (ECE): the receiver saw a packet marked "congestion experienced".
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (CWR): the sender has reacted to ECE.
    pub const CWR: Self = Self(0x80);

    /// Returns whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// ECN codepoint of the IP header (RFC 3168 section 5).
///
/// `Ecn` is not an `enum`, because the compiler would use invalid enum values for `Option<Segment>`, which makes copies
/// of segments slower.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Ecn(u8);

#[allow(non_upper_case_globals)]
impl Ecn {
    /// Codepoint 00: the transport is not ECN-capable.
    pub const NotEct: Self = Self(0);
    /// Codepoint 01: ECN-capable transport, ECT(1).
    pub const Ect1: Self = Self(1);
    /// Codepoint 10: ECN-capable transport, ECT(0).
    pub const Ect0: Self = Self(2);
    /// Codepoint 11: congestion experienced.
    pub const Ce: Self = Self(3);

    /// Returns the codepoint in the two lowest bits. Bits above the two lowest bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 3)
    }

    /// Returns the two bits of the codepoint.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl std::fmt::Debug for Ecn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(["NotEct", "Ect1", "Ect0", "Ce"][usize::from(self.0)])
    }
}
