//! Detects connections from inside that closed ports of the loopback address refused. The intended server may run on
//! the machine, so the user is told how to reach the machine.
//!
//! A packet socket at the inside's loopback interface receives only refusals (resets with a sequence number of 0) and
//! SYN-ACKs of open ports. The socket belongs to the inside's namespace, even if a process outside reads the socket.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, socket};

/// Counts of refused connections of a link, and the socket that reports them.
#[derive(Debug)]
pub(crate) struct Refusals {
    socket: OwnedFd,
    refused: BTreeMap<SocketAddr, u64>,
    answered: BTreeSet<SocketAddr>,
}

/// Takes over a socket that was opened in another process.
impl From<OwnedFd> for Refusals {
    fn from(socket: OwnedFd) -> Self {
        Self { socket, refused: BTreeMap::new(), answered: BTreeSet::new() }
    }
}

impl AsRawFd for Refusals {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Refusals {
    /// Starts to receive refusals in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Fails if the kernel has no packet sockets.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        // An unbound packet socket receives no packets.
        let socket = socket(AddressFamily::Packet, SockType::Datagram, flags, None)?;
        attach(&socket, &FILTER)?;
        bind(&socket, if_nametoindex("lo")?)?;
        Ok(socket.into())
    }

    /// Counts the refusals and SYN-ACKs that have arrived.
    pub(crate) fn take(&mut self) {
        let mut packet = [0; LONGEST];
        while let Ok(length) = recv(self.socket.as_raw_fd(), &mut packet, MsgFlags::empty()) {
            match answer(&packet[..length]) {
                Some((server, Answer::Refused)) => *self.refused.entry(server).or_default() += 1,
                Some((server, Answer::Accepted)) => drop(self.answered.insert(server)),
                None => {}
            }
        }
    }

    /// Number of refused connections of each address that accepted no connection.
    pub(crate) fn all(&self) -> impl Iterator<Item = (SocketAddr, u64)> + '_ {
        let refused = self.refused.iter().filter(|(server, _)| !self.answered.contains(server));
        refused.map(|(server, count)| (*server, *count))
    }
}

/// Buffer size in bytes: the longest IP headers, and the first bytes of a TCP header.
const LONGEST: usize = 60 + 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Refused,
    Accepted,
}

/// Address that answers a SYN in this packet, and its answer: SYN-ACK or refusal.
fn answer(packet: &[u8]) -> Option<(SocketAddr, Answer)> {
    let (from, header): (IpAddr, usize) = match packet.first()? >> 4 {
        4 => {
            let bytes: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
            (Ipv4Addr::from(bytes).into(), usize::from(packet[0] & 0xf) * 4)
        }
        _ => {
            let bytes: [u8; 16] = packet.get(8..24)?.try_into().ok()?;
            (Ipv6Addr::from(bytes).into(), 40)
        }
    };
    let port = u16::from_be_bytes(packet.get(header..header + 2)?.try_into().ok()?);
    let flags = *packet.get(header + 13)?;
    let answer = if flags & RST == 0 { Answer::Accepted } else { Answer::Refused };
    Some(((from, port).into(), answer))
}

const RST: u8 = 4;

const fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
const LOAD_INDEXED: u32 = libc::BPF_LD | libc::BPF_IND;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const JUMP: u32 = libc::BPF_JMP | libc::BPF_JA;
const HEADER_LENGTH: u32 = libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH;
const SET_INDEX: u32 = libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM;
const TAKE: u32 = libc::BPF_RET | libc::BPF_K;
/// Offset from which a socket filter loads the packet type (linux/filter.h, `SKF_AD_OFF + SKF_AD_PKTTYPE`).
const PACKET_TYPE: u32 = (-0x1000_i32 + 4) as u32;
const OUTGOING: u32 = 4;

/// Socket filter for TCP over IPv4 or IPv6 that accepts each packet once: SYN and ACK, or RST and ACK with the sequence
/// number 0.
const FILTER: [libc::sock_filter; 21] = [
    step(LOAD_BYTE, 0, 0, PACKET_TYPE),
    step(EQUAL, 18, 0, OUTGOING),
    step(LOAD_BYTE, 0, 0, 0),
    step(AND, 0, 0, 0xf0),
    step(EQUAL, 1, 0, 0x40),
    step(EQUAL, 4, 14, 0x60),
    // IPv4 part of the filter: loads the protocol, then the length of the header.
    step(LOAD_BYTE, 0, 0, 9),
    step(EQUAL, 0, 12, libc::IPPROTO_TCP as u32),
    step(HEADER_LENGTH, 0, 0, 0),
    step(JUMP, 0, 0, 3),
    // IPv6 part of the filter: loads the next header, then the length of the header.
    step(LOAD_BYTE, 0, 0, 6),
    step(EQUAL, 0, 8, libc::IPPROTO_TCP as u32),
    step(SET_INDEX, 0, 0, 40),
    // TCP part of the filter: loads the flags.
    step(LOAD_INDEXED | libc::BPF_B, 0, 0, 13),
    step(AND, 0, 0, 0x16),
    step(EQUAL, 3, 0, 0x12),
    step(EQUAL, 0, 3, 0x14),
    step(LOAD_INDEXED | libc::BPF_W, 0, 0, 4),
    step(EQUAL, 0, 1, 0),
    step(TAKE, 0, 0, LONGEST as u32),
    step(TAKE, 0, 0, 0),
];

#[allow(unsafe_code)]
fn attach(socket: &OwnedFd, filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the socket is open; the kernel copies the program, which outlives the call, and does not write to it.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Binds the socket, which then receives packets of all protocols from one interface.
#[allow(unsafe_code)]
fn bind(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    // SAFETY: an address of the link layer is plain data, for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface as i32;
    // SAFETY: the socket is open, and the kernel reads the address, which outlives the call, in its full length.
    let done = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
