//! Ports at which packets enter from and leave to the real network.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use ackclock_core::PacketId;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::Pool;
use crate::gso::{self, HEADER, Header};

/// End of the emulated link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Side of the wired network with the servers.
    Wired = 0,
    /// Side of the mobiles.
    Radio = 1,
}

impl Side {
    /// The two sides, in the order of service.
    pub const BOTH: [Self; 2] = [Self::Wired, Self::Radio];

    /// Opposite side of the link.
    pub const fn other(self) -> Self {
        match self {
            Self::Wired => Self::Radio,
            Self::Radio => Self::Wired,
        }
    }
}

/// Port at one end of the emulated link.
pub trait Port {
    /// Reads the next packet, or the parts of a super-packet in sequence, into the pool and appends their ids to
    /// `into`. Returns [`Came::Nothing`] if no packet has arrived. Packets that do not fit into the pool are lost and
    /// counted.
    ///
    /// # Errors
    /// Fails if the device has disappeared.
    fn read(&mut self, pool: &mut Pool, into: &mut Vec<PacketId>) -> io::Result<Came>;

    /// Writes a packet. A packet that the device refuses is lost, as on any interface.
    ///
    /// # Errors
    /// Fails if the device has disappeared.
    fn write(&mut self, packet: &[u8]) -> io::Result<Went>;
}

/// Result of reading a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// No packet was available at the port.
    Nothing,
    /// Packets arrived; `lost` further packets could not be read.
    Packets {
        /// Number of lost packets: the pool was full, or a super-packet could not be split.
        lost: u32,
    },
}

/// Result of writing to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// The packet was written to the device.
    Out,
    /// The device refused the packet.
    Lost,
}

/// A TUN device opened with `IFF_TUN | IFF_NO_PI`, and with `IFF_VNET_HDR` if the driver supports it.
///
/// With `IFF_VNET_HDR` the kernel passes super-packets of up to 64 KiB, as to a segmenting network card; the port
/// splits super-packets at once. Without `IFF_VNET_HDR` packets arrive one by one with their checksums, which only
/// costs time. Packets are always written one by one, although the kernel would accept super-packets. A receiver
/// acknowledges a merged packet once, which would change the ACK clock
/// (`docs/adr/0010-packets-are-written-one-by-one.md`).
#[derive(Debug)]
pub struct TunPort {
    file: OwnedFd,
    /// Length of the header before every packet, bytes.
    header: usize,
    /// Read buffer for a header and the largest super-packet.
    scratch: Box<[u8]>,
    /// Buffers for the parts of a super-packet.
    parts: Vec<Box<[u8]>>,
    lengths: Vec<usize>,
}

/// Maximum number of parts of a super-packet: 64 KiB at Linux's smallest MSS of 48 bytes, of which timestamps take 12
/// bytes.
const PARTS: usize = 1821;

impl TunPort {
    /// Takes over an open TUN device and makes it non-blocking. If the device was opened with `IFF_VNET_HDR`, the
    /// kernel may pass TCP and UDP super-packets and incomplete checksums. `pool` must be the pool into which packets
    /// are read.
    ///
    /// # Errors
    /// Fails if the file is not a TUN device.
    pub fn new(file: OwnedFd, pool: &Pool) -> io::Result<Self> {
        let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
        fcntl(&file, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        let header = gso::header(file.as_fd())?;
        if header > 0 {
            gso::offload(file.as_fd())?;
        }
        Ok(Self {
            file,
            header,
            scratch: vec![0; HEADER + usize::from(u16::MAX)].into_boxed_slice(),
            parts: (0..PARTS).map(|_| pool.buffer()).collect(),
            lengths: vec![0; PARTS],
        })
    }
}

impl AsFd for TunPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for TunPort {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.file.as_raw_fd()
    }
}

impl Port for TunPort {
    fn read(&mut self, pool: &mut Pool, into: &mut Vec<PacketId>) -> io::Result<Came> {
        // If the device writes no header, the zeros before the packet serve as an empty header.
        let start = HEADER - self.header;
        let length = match nix::unistd::read(&self.file, &mut self.scratch[start..]) {
            Ok(length) => start + length,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(Came::Nothing),
            Err(errno) => return Err(errno.into()),
        };
        let Some((header, packet)) = Header::split_off(&mut self.scratch[..length]) else {
            return Ok(Came::Packets { lost: 1 });
        };
        let Some(parts) = gso::split(header, packet, &mut self.parts, &mut self.lengths) else {
            return Ok(Came::Packets { lost: 1 });
        };
        let mut lost = 0;
        for (buffer, &length) in self.parts.iter_mut().zip(&self.lengths).take(parts) {
            match pool.claim(buffer, length) {
                Some(packet) => into.push(packet),
                None => lost += 1,
            }
        }
        Ok(Came::Packets { lost })
    }

    fn write(&mut self, packet: &[u8]) -> io::Result<Went> {
        let whole = [io::IoSlice::new(&Header::NONE[..self.header]), io::IoSlice::new(packet)];
        match nix::sys::uio::writev(&self.file, &whole) {
            Ok(_) => Ok(Went::Out),
            // A write fails, and the packet is lost, if the device is down, its queue is full (EAGAIN, ENOBUFS), or the
            // kernel refuses a packet that is not IP.
            Err(
                Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS | Errno::EIO | Errno::EINVAL | Errno::ENOMEM,
            ) => Ok(Went::Lost),
            Err(errno) => Err(errno.into()),
        }
    }
}
