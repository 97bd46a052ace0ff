//! # Super-packets
//!
//! ## Source
//! The header `struct virtio_net_hdr` (Virtio 1.2 section 5.1.6), which the kernel puts before packets of a TUN device
//! opened with `IFF_VNET_HDR`.
//!
//! ## What it does
//! This module splits a super-packet before the link, into parts of the size given in its header. Each part of a
//! super-packet gets its own length, IP identification, sequence number and checksums. Only the last part has the flags
//! FIN and PSH, and only the first part has CWR. Checksums that the kernel left to the device are completed. The crate
//! `tun-rs` splits the packet; this module checks the crate's preconditions.
//!
//! ## Differences from the source
//! Packets are not merged when they are written (see [`TunPort`](crate::TunPort)).
//!
//! ## Validation
//! Tests check that the lengths of the parts add up, and that each part parses with valid checksums (unit tests, fuzz
//! target `live_gso`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;
use tun_rs::{VIRTIO_NET_HDR_LEN, VirtioNetHdr};

/// Length of the header before every packet, bytes.
pub const HEADER: usize = VIRTIO_NET_HDR_LEN;

/// Kernel's header in front of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Header(VirtioNetHdr);

impl Header {
    /// Header of a single packet with complete checksums.
    pub const NONE: [u8; HEADER] = [0; HEADER];

    /// Splits read bytes into header and packet; `None` if the bytes contain no packet.
    pub fn split_off(read: &mut [u8]) -> Option<(Self, &mut [u8])> {
        let (header, packet) = read.split_at_mut_checked(HEADER)?;
        let header = VirtioNetHdr::decode(header).ok()?;
        if packet.is_empty() { None } else { Some((Self(header), packet)) }
    }
}

/// Splits `packet` into `parts`, writes their lengths to `lengths`, and returns their number. A packet that is not a
/// super-packet is copied. Returns `None` if the packet does not fit or its header is invalid.
pub fn split(
    header: Header,
    packet: &mut [u8],
    parts: &mut [Box<[u8]>],
    lengths: &mut [usize],
) -> Option<usize> {
    let Header(mut header) = header;
    if header.gso_type == GSO_NONE {
        if header.flags & NEEDS_CHECKSUM != 0 {
            complete_checksum(packet, header.csum_start.into(), header.csum_offset.into())?;
        }
        parts.first_mut()?.get_mut(..packet.len())?.copy_from_slice(packet);
        *lengths.first_mut()? = packet.len();
        return Some(1);
    }
    // The header length that the kernel reports for a forwarded packet may include a complete part.
    let transport = usize::from(header.csum_start);
    let transport_header = if header.gso_type == tun_rs::VIRTIO_NET_HDR_GSO_UDP_L4 {
        UDP_HEADER
    } else {
        u16::from(packet.get(transport + TCP_DATA_OFFSET)? >> 4) * 4
    };
    header.hdr_len = header.csum_start.checked_add(transport_header)?;
    let v6 = match packet.first()? >> 4 {
        4 => false,
        6 => true,
        _ => return None,
    };
    tun_rs::gso_split(packet, header, parts, lengths, 0, v6).ok()
}

/// Length in bytes of the header before every packet of an open TUN device; 0 if the device uses none.
pub(crate) fn header(file: BorrowedFd<'_>) -> io::Result<usize> {
    Ok(if flags(file)? & libc::IFF_VNET_HDR == 0 { 0 } else { HEADER })
}

#[allow(unsafe_code, reason = "a request of the TUN driver that no safe wrapper offers")]
fn flags(file: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    // SAFETY: an interface request is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // SAFETY: the file is open and the request outlives the call, which writes only into it.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNGETIFF, &raw mut request) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the driver has written the flags, and the initial zeros are a valid number as well.
    Ok(unsafe { request.ifr_ifru.ifru_flags }.into())
}

/// Enables super-packets of TCP and, if supported, UDP.
pub(crate) fn offload(file: BorrowedFd<'_>) -> io::Result<()> {
    let tcp = (libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6) as libc::c_ulong;
    let udp = (libc::TUN_F_USO4 | libc::TUN_F_USO6) as libc::c_ulong;
    // Linux supports UDP super-packets since version 6.2.
    set_offload(file, tcp | udp).or_else(|_| set_offload(file, tcp))
}

#[allow(unsafe_code, reason = "a request of the TUN driver that no safe wrapper offers")]
fn set_offload(file: BorrowedFd<'_>, offloads: libc::c_ulong) -> io::Result<()> {
    // SAFETY: the file is open for the whole call, and the argument of this request is a number, not a pointer.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, offloads) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Computes the checksum from `start` and adds it to the pseudo-header sum at `start + offset`.
fn complete_checksum(packet: &mut [u8], start: usize, offset: usize) -> Option<()> {
    let field = start.checked_add(offset)?;
    let &[high, low] = packet.get(field..field + 2)? else { return None };
    packet[field..field + 2].fill(0);
    let sum = !tun_rs::checksum(packet.get(start..)?, u16::from_be_bytes([high, low]).into());
    // By RFC 768, a UDP checksum of zero means that the packet has no checksum. For TCP the values 0 and 0xffff are
    // equivalent.
    let sum = if sum == 0 && offset == UDP_CHECKSUM { u16::MAX } else { sum };
    packet[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    Some(())
}

const GSO_NONE: u8 = 0;
const NEEDS_CHECKSUM: u8 = 1;
const UDP_HEADER: u16 = 8;
const UDP_CHECKSUM: usize = 6;
const TCP_DATA_OFFSET: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use ackclock_core::{Flags, Seq};
    use etherparse::PacketBuilder;

    fn super_packet(v6: bool, payload: &[u8]) -> Vec<u8> {
        let ip = if v6 {
            PacketBuilder::ipv6([1; 16], [2; 16], 9)
        } else {
            PacketBuilder::ipv4([1; 4], [2; 4], 9)
        };
        let mut bytes = vec![0; HEADER];
        ip.tcp(1, 2, 1000, 3).ack(4).psh().fin().write(&mut bytes, payload).unwrap();
        let transport = if v6 { 40u16 } else { 20 };
        // Fields of the header: flags, type, header length (wrong, as from a forwarded packet), size, start and offset
        // of the checksum.
        bytes[0] = NEEDS_CHECKSUM;
        bytes[1] = if v6 { tun_rs::VIRTIO_NET_HDR_GSO_TCPV6 } else { tun_rs::VIRTIO_NET_HDR_GSO_TCPV4 };
        bytes[2..4].copy_from_slice(&1000u16.to_ne_bytes());
        bytes[4..6].copy_from_slice(&100u16.to_ne_bytes());
        bytes[6..8].copy_from_slice(&transport.to_ne_bytes());
        bytes[8..10].copy_from_slice(&16u16.to_ne_bytes());
        bytes
    }

    fn parts_of(mut read: Vec<u8>) -> Option<Vec<Vec<u8>>> {
        let (header, packet) = Header::split_off(&mut read)?;
        let mut parts = vec![vec![0; 1500].into_boxed_slice(); 8];
        let mut lengths = vec![0; 8];
        let count = split(header, packet, &mut parts, &mut lengths)?;
        Some((0..count).map(|i| parts[i][..lengths[i]].to_vec()).collect())
    }

    #[test]
    fn parts_follow_each_other_and_only_the_last_ends_the_stream() {
        let payload: Vec<u8> = (0..=249).collect();
        for v6 in [false, true] {
            let parts = parts_of(super_packet(v6, &payload)).unwrap();
            let read: Vec<_> = parts.iter().map(|part| parse(part).segment).collect();
            let shape: Vec<_> = read.iter().map(|segment| (segment.seq, segment.payload)).collect();
            assert_eq!(shape, [(Seq(1000), 100), (Seq(1100), 100), (Seq(1200), 50)]);
            let ends: Vec<_> = read.iter().map(|segment| segment.flags.intersects(Flags::FIN)).collect();
            assert_eq!(ends, [false, false, true]);
            let whole: Vec<u8> =
                parts.iter().flat_map(|part| part[part.len() - part.len().min(100)..].to_vec()).collect();
            assert!(whole.ends_with(&payload[200..]));
            if !v6 {
                let ids: Vec<_> = parts.iter().map(|part| u16::from_be_bytes([part[4], part[5]])).collect();
                assert_eq!((ids[1].wrapping_sub(ids[0]), ids[2].wrapping_sub(ids[1])), (1, 1));
            }
        }
    }

    #[test]
    fn a_checksum_that_was_left_to_the_device_is_completed() {
        let mut read = super_packet(false, b"data");
        read[1] = GSO_NONE;
        let sound = read[HEADER..].to_vec();
        // The kernel leaves the sum over the pseudo-header: addresses, protocol 6, length 24.
        let pseudo = [1, 1, 1, 1, 2, 2, 2, 2, 0, 6, 0, 24];
        let sum = tun_rs::checksum(&pseudo, 0);
        read[HEADER + 36..HEADER + 38].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(parts_of(read).unwrap(), [sound]);
    }

    #[test]
    fn headers_that_make_no_sense_are_refused() {
        assert!(parts_of(vec![0; HEADER]).is_none(), "no packet");
        let changes: [(&str, usize, u8); 5] = [
            ("no size", 4, 0),
            ("transport beyond the packet", 7, 0xff),
            ("checksum beyond the packet", 9, 0xff),
            ("more parts than there are buffers", 4, 1),
            ("an unknown kind", 1, 77),
        ];
        for (what, at, value) in changes {
            let mut read = super_packet(false, &[0; 250]);
            read[at] = value;
            assert!(parts_of(read).is_none(), "{what}");
        }
    }
}
