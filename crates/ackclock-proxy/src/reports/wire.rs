//! Format of a report on the network: 80 bytes, integers in network byte order.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0-3 | magic `RNF1` |
//! | 4-5 | number of the key |
//! | 6 | reason: 0 periodic, 1 change of the rate |
//! | 7 | zero |
//! | 8-15 | epoch: start of the sender, nanoseconds since 1970 |
//! | 16-23 | sequence number within the epoch |
//! | 24-31 | time of the sample, nanoseconds since 1970 |
//! | 32-47 | user: IPv6 address, or IPv4 address mapped to IPv6 |
//! | 48-55 | rate, bit/s; zero during an outage |
//! | 56-59 | packets in the queue |
//! | 60-63 | bytes in the queue |
//! | 64-79 | HMAC-SHA-256 of bytes 0-63, first 16 bytes |

use std::net::{IpAddr, Ipv6Addr};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Length of a report, bytes.
pub const LENGTH: usize = 80;
const SIGNED: usize = 64;
const MAGIC: &[u8; 4] = b"RNF1";

/// Secret that a radio shares with the proxy.
pub type Secret = [u8; 32];

/// Report of a radio about one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Number of the key that signs the report.
    pub key: u16,
    /// Whether the report announces a change of the rate; otherwise it is a periodic sample.
    pub change: bool,
    /// Start of the sender, nanoseconds since 1970.
    pub epoch: u64,
    /// Sequence number within the epoch.
    pub sequence: u64,
    /// Time of the sample by the radio's clock, nanoseconds since 1970.
    pub taken: u64,
    /// Address of the user.
    pub user: IpAddr,
    /// Rate of the user's bearer, bit/s; zero during an outage.
    pub rate: u64,
    /// Number of packets in the queue.
    pub packets: u32,
    /// Number of bytes in the queue.
    pub bytes: u32,
}

/// Reads the key number of a datagram; `None` if the datagram has a different length or magic.
pub fn key_of(datagram: &[u8]) -> Option<u16> {
    let report: &[u8; LENGTH] = datagram.try_into().ok()?;
    report.starts_with(MAGIC).then(|| u16::from_be_bytes([report[4], report[5]]))
}

/// Encodes and signs a report.
pub fn encode(report: &Report, secret: &Secret) -> [u8; LENGTH] {
    let user = match report.user {
        IpAddr::V4(user) => user.to_ipv6_mapped(),
        IpAddr::V6(user) => user,
    };
    let mut bytes = [0; LENGTH];
    bytes[..4].copy_from_slice(MAGIC);
    bytes[4..6].copy_from_slice(&report.key.to_be_bytes());
    bytes[6] = report.change.into();
    bytes[8..16].copy_from_slice(&report.epoch.to_be_bytes());
    bytes[16..24].copy_from_slice(&report.sequence.to_be_bytes());
    bytes[24..32].copy_from_slice(&report.taken.to_be_bytes());
    bytes[32..48].copy_from_slice(&user.octets());
    bytes[48..56].copy_from_slice(&report.rate.to_be_bytes());
    bytes[56..60].copy_from_slice(&report.packets.to_be_bytes());
    bytes[60..64].copy_from_slice(&report.bytes.to_be_bytes());
    let tag = signer(secret, &bytes[..SIGNED]).finalize().into_bytes();
    bytes[SIGNED..].copy_from_slice(&tag[..LENGTH - SIGNED]);
    bytes
}

/// Verifies and decodes a report; `None` if the length, magic, reason or signature is wrong.
pub fn decode(datagram: &[u8], secret: &Secret) -> Option<Report> {
    let key = key_of(datagram)?;
    signer(secret, &datagram[..SIGNED]).verify_truncated_left(&datagram[SIGNED..]).ok()?;
    if datagram[6] > 1 || datagram[7] != 0 {
        return None;
    }
    Some(Report {
        key,
        change: datagram[6] == 1,
        epoch: u64::from_be_bytes(field(datagram, 8)?),
        sequence: u64::from_be_bytes(field(datagram, 16)?),
        taken: u64::from_be_bytes(field(datagram, 24)?),
        user: Ipv6Addr::from(field::<16>(datagram, 32)?).to_canonical(),
        rate: u64::from_be_bytes(field(datagram, 48)?),
        packets: u32::from_be_bytes(field(datagram, 56)?),
        bytes: u32::from_be_bytes(field(datagram, 60)?),
    })
}

fn field<const N: usize>(datagram: &[u8], at: usize) -> Option<[u8; N]> {
    datagram.get(at..at + N)?.try_into().ok()
}

/// HMAC of `signed`. The key is padded to one block of SHA-256 here, because HMAC pads it in the same way.
fn signer(secret: &Secret, signed: &[u8]) -> Hmac<Sha256> {
    let mut block = [0; 64];
    block[..secret.len()].copy_from_slice(secret);
    let mut signer = Hmac::<Sha256>::new(&block.into());
    signer.update(signed);
    signer
}
