//! Ports: where packets come in from the world and go out to it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use ackclock_core::PacketId;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::Pool;
use crate::gso::{self, HEADER, Header};

/// The two ends of the emulated link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Towards the wired network and the servers.
    Wired = 0,
    /// Towards the mobiles.
    Radio = 1,
}

impl Side {
    /// Both, in the order in which they are served.
    pub const BOTH: [Self; 2] = [Self::Wired, Self::Radio];

    /// The end opposite.
    pub const fn other(self) -> Self {
        match self {
            Self::Wired => Self::Radio,
            Self::Radio => Self::Wired,
        }
    }
}

/// One end of the emulated link.
pub trait Port {
    /// Takes what has come next into the pool: one packet, or the parts of a super-packet, which follow each other in
    /// `into`. Nothing where nothing has come. What the pool has no room for is lost and counted.
    ///
    /// # Errors
    /// Where the device is gone.
    fn read(&mut self, pool: &mut Pool, into: &mut Vec<PacketId>) -> io::Result<Came>;

    /// Sends a packet out. One that the device does not take is lost, as on any interface.
    ///
    /// # Errors
    /// Where the device is gone.
    fn write(&mut self, packet: &[u8]) -> io::Result<Went>;
}

/// What reading a port gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// There was no packet.
    Nothing,
    /// Packets came, and this many more could not be taken in.
    Packets {
        /// Packets that were lost: the pool was full, or a super-packet could not be split.
        lost: u32,
    },
}

/// What writing to a port gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// The packet is out.
    Out,
    /// The device did not take it.
    Lost,
}

/// A TUN device opened with `IFF_TUN | IFF_NO_PI`, and with `IFF_VNET_HDR` where the driver knows it.
///
/// With `IFF_VNET_HDR` the kernel hands over super-packets of up to 64 KiB, as it would to a card that segments them; they are split at once. Without it packets come one by one with their checksums, which costs time and changes
/// nothing. What is written is written packet by packet, although the kernel would take super-packets too: a receiver acknowledges
/// what arrives as one packet once, and so merging would change the ACK clock that is studied here.
#[derive(Debug)]
pub struct TunPort {
    file: OwnedFd,
    /// Bytes that stand before every packet.
    header: usize,
    /// Where packets are read: a header and the largest super-packet.
    scratch: Box<[u8]>,
    /// Buffers that the parts of a super-packet are split into.
    parts: Vec<Box<[u8]>>,
    lengths: Vec<usize>,
}

/// Parts of a super-packet that can be split: 64 KiB at the smallest MSS that Linux uses, 48 bytes, of which timestamps take 12.
const PARTS: usize = 1821;

impl TunPort {
    /// Takes over an open device: it no longer blocks, and where it was opened with `IFF_VNET_HDR` the kernel may hand over
    /// TCP and UDP super-packets and leave checksums to us. `pool` must be the one that packets are read into.
    ///
    /// # Errors
    /// Where the file is not a TUN device.
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
        // Where the device puts no header, the zeros that stand there are one that says nothing.
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
            // The device is down or its queue is full (EAGAIN, ENOBUFS), or the kernel refuses what is no IP packet.
            Err(
                Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS | Errno::EIO | Errno::EINVAL | Errno::ENOMEM,
            ) => Ok(Went::Lost),
            Err(errno) => Err(errno.into()),
        }
    }
}
