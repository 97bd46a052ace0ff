//! TCP options as bytes of a header, and the options that forbid a change of the header.

use super::Flags;

/// TCP option that forbids changes of the header fields of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProtectingOption {
    /// Kind of the option (IANA, TCP Option Kind Numbers).
    pub kind: u8,
    /// Name of the option.
    pub name: &'static str,
    /// Segments on which the option forbids changes.
    pub scope: ProtectionScope,
    /// Document that makes the header unchangeable, and the reason.
    pub source: &'static str,
}

/// Segments on which an option forbids changes of the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtectionScope {
    /// Every segment with the option.
    Every,
    /// Every segment with the option except a SYN without ACK. Such a SYN only offers the option; without the option in
    /// the SYN-ACK, the connection is plain TCP.
    Agreed,
}

/// All options that forbid changes of the header, in ascending order of their kinds. TCP-ENO and tcpcrypt (kind 69) are
/// not among them: tcpcrypt tolerates changes of the header (RFC 8548, abstract).
pub const PROTECTING_OPTIONS: [ProtectingOption; 5] = [
    ProtectingOption {
        kind: 14,
        name: "Alternate Checksum Request",
        scope: ProtectionScope::Agreed,
        source: "RFC 1146: the checksum of later segments is not the sum that a change can update",
    },
    ProtectingOption {
        kind: 15,
        name: "Alternate Checksum Data",
        scope: ProtectionScope::Every,
        source: "RFC 1146: the option contains a checksum of the header",
    },
    ProtectingOption {
        kind: 19,
        name: "TCP-MD5",
        scope: ProtectionScope::Every,
        source: "RFC 2385 section 2.0: the digest covers the header",
    },
    ProtectingOption {
        kind: 29,
        name: "TCP-AO",
        scope: ProtectionScope::Every,
        source: "RFC 5925 section 5.1: the MAC covers the header",
    },
    ProtectingOption {
        kind: 30,
        name: "Multipath TCP",
        scope: ProtectionScope::Agreed,
        source: "RFC 8684 sections 3.1 and 3.3: the window counts the data of all subflows",
    },
];

/// Returns whether an option of this kind forbids changes of a segment that has these flags.
pub fn is_protecting(kind: u8, flags: Flags) -> bool {
    let is_offer = flags.intersects(Flags::SYN) && !flags.contains(Flags::ACK);
    PROTECTING_OPTIONS
        .iter()
        .any(|option| option.kind == kind && !(is_offer && option.scope == ProtectionScope::Agreed))
}

/// Returns whether the options of a segment with these flags forbid changes of its header. Options that cannot be read
/// to their end forbid them. If the options of a SYN or a SYN-ACK forbid changes, no segment of the connection may be
/// changed.
pub fn is_protected(options: &[u8], flags: Flags) -> bool {
    TcpOptions::new(options).any(|option| option.is_none_or(|(kind, _)| is_protecting(kind, flags)))
}

/// Iterator over kind and data of the options of a TCP header (RFC 9293 section 3.1). Padding is skipped. The last item
/// is `None` if the options cannot be read to their end.
#[derive(Clone, Copy, Debug)]
pub struct TcpOptions<'a> {
    rest: &'a [u8],
}

impl<'a> TcpOptions<'a> {
    /// Reads the bytes of a TCP header after its first 20 bytes.
    pub const fn new(options: &'a [u8]) -> Self {
        Self { rest: options }
    }
}

impl<'a> Iterator for TcpOptions<'a> {
    type Item = Option<(u8, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        const END: u8 = 0;
        const NO_OPERATION: u8 = 1;
        while let [NO_OPERATION, rest @ ..] = self.rest {
            self.rest = rest;
        }
        let rest = std::mem::take(&mut self.rest);
        let kind = *rest.first().filter(|&&kind| kind != END)?;
        let option = rest.get(1).and_then(|&length| rest.split_at_checked(length.into()));
        Some(option.filter(|(option, _)| option.len() >= 2).map(|(option, rest)| {
            self.rest = rest;
            (kind, &option[2..])
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: Flags = Flags::SYN;

    #[test]
    fn options_are_read_to_their_end_or_to_the_first_broken_one() {
        let read = |bytes| TcpOptions::new(bytes).collect::<Vec<_>>();
        let mss: &[u8] = &[5, 180];
        assert_eq!(read(&[1, 2, 4, 5, 180, 1, 99, 2, 0, 19]), [Some((2, mss)), Some((99, &[][..]))]);
        // A length beyond the end, lengths below 2, and a kind without length.
        for broken in [&[2, 5, 5, 180][..], &[8, 0], &[8, 1], &[1, 8]] {
            assert_eq!(read(broken), [None], "{broken:?}");
        }
        assert_eq!(read(&[]), []);
    }

    #[test]
    fn signed_segments_are_protected_and_agreed_options_from_the_answer_on() {
        let of = |kind, flags| is_protected(&[1, kind, 4, 0, 0], flags);
        for kind in [15, 19, 29] {
            assert!(of(kind, OFFER) && of(kind, OFFER | Flags::ACK) && of(kind, Flags::ACK), "{kind}");
        }
        for kind in [14, 30] {
            assert!(!of(kind, OFFER) && of(kind, OFFER | Flags::ACK) && of(kind, Flags::ACK), "{kind}");
        }
        // Timestamps, Fast Open, TCP-ENO and experiments.
        for kind in [8, 34, 69, 253] {
            assert!(!of(kind, OFFER) && !of(kind, Flags::ACK), "{kind}");
        }
        assert!(is_protected(&[8, 0], Flags::ACK), "a broken option");
        assert!(!is_protected(&[0, 19, 18], Flags::ACK), "bytes after the end of the list");
    }
}
