//! Bits of the bytes of a [`Head`](super::Head) that contain several fields. No bit is declared elsewhere.

/// Bits of `options` that count SACK blocks.
pub(super) const BLOCK_COUNT: u8 = 0x03;
/// Bit of `options` of the first retransmission of a reduction after duplicate or selective ACKs.
pub(super) const FAST_RETRANSMIT: u8 = 0x04;
/// Bit of `options` of the first retransmission of a reduction after a timeout.
pub(super) const TIMEOUT: u8 = 0x08;
/// Bit of `options` that is set if the segment has timestamps.
pub(super) const HAS_TIMESTAMPS: u8 = 0x10;
/// Bit of `options` that is set if the space of SACK blocks contains other options: those of a SYN, with the bit
/// `HAS_ACC_ECN` the AccECN option, or with the bit `OPAQUE` the words of a datagram.
pub(super) const HAS_OTHER_OPTIONS: u8 = 0x20;
/// Bit of `options` that is set if the segment is not TCP or its headers could not be parsed.
pub(super) const OPAQUE: u8 = 0x40;
/// Bit of `options` that is set if the segment has raw bytes.
pub(super) const HAS_PACKET: u8 = 0x80;

/// Bits of `scale` that contain the window scale shift.
pub(super) const SHIFT: u8 = 0x0f;
/// Value of the bits `SHIFT` for an unknown window scale; a shift is at most 14.
pub(super) const NO_SHIFT: u8 = 0x0f;
/// Bit of `scale` that is set if a link changed a bit of the payload.
pub(super) const CORRUPT: u8 = 0x10;
/// Bit of `scale` that contains the TCP control bit AE (RFC 9768 section 3.1).
pub(super) const AE: u8 = 0x20;
/// Bit of `scale` that is set if the last slot of SACK blocks contains the AccECN option.
pub(super) const HAS_ACC_ECN: u8 = 0x40;

/// Bit of `scale` that is set if only the ends of the connection can read the transport header.
pub(super) const ENCRYPTED: u8 = 0x80;

const _: () = {
    let options =
        [BLOCK_COUNT, FAST_RETRANSMIT, TIMEOUT, HAS_TIMESTAMPS, HAS_OTHER_OPTIONS, OPAQUE, HAS_PACKET];
    assert!(
        are_apart(&options) && are_apart(&[SHIFT, CORRUPT, AE, HAS_ACC_ECN, ENCRYPTED]),
        "a bit has two meanings"
    );
};

/// Whether no bit is in two of the fields.
const fn are_apart(fields: &[u8]) -> bool {
    let (mut used, mut at) = (0, 0);
    while at < fields.len() {
        if used & fields[at] != 0 {
            return false;
        }
        used |= fields[at];
        at += 1;
    }
    true
}
