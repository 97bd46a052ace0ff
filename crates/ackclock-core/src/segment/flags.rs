//! The control bits of a TCP header and the ECN codepoint of an IP header.

/// TCP control bits (RFC 9293 section 3.1, RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is valid.
    pub const ACK: Self = Self(0x10);
    /// ECN echo: the receiver saw congestion experienced.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced: the sender has reacted to ECE.
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
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
/// Not an `enum`: the compiler would use its invalid values for `Option<Segment>`, which makes copies of segments
/// slower.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Ecn(u8);

#[allow(non_upper_case_globals)]
impl Ecn {
    /// Not ECN-capable.
    pub const NotEct: Self = Self(0);
    /// ECN-capable transport, codepoint 01.
    pub const Ect1: Self = Self(1);
    /// ECN-capable transport, codepoint 10.
    pub const Ect0: Self = Self(2);
    /// Congestion experienced.
    pub const Ce: Self = Self(3);

    /// The codepoint of the two lowest bits; higher bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 3)
    }

    /// The two bits of the codepoint.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl std::fmt::Debug for Ecn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(["NotEct", "Ect1", "Ect0", "Ce"][usize::from(self.0)])
    }
}
