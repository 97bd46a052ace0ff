//! TUN devices: packet interfaces between the kernel of a namespace and a program.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::stat::Mode;

use super::interface::{Interface, attribute_of, link};
use super::obstacle::{Obstacle, Trying};
use ackclock_netlink::{Message, Netlink};

/// A TUN device in the namespace in which it was opened. The device disappears when the last copy of its file is
/// closed.
#[derive(Debug)]
pub(crate) struct Tun {
    /// Non-blocking file that reads and writes packets, each with a virtio header if the driver supports it.
    pub(crate) file: OwnedFd,
    pub(crate) interface: Interface,
    /// Netlink socket for the device, usable from any namespace.
    pub(crate) netlink: Netlink,
}

/// The kernel's counters of a device, readable from any namespace.
#[derive(Debug)]
pub struct DeviceCounters {
    netlink: Netlink,
    index: u32,
}

impl DeviceCounters {
    /// Creates counters of the interface with this index in the socket's namespace.
    pub(crate) const fn new(netlink: Netlink, index: u32) -> Self {
        Self { netlink, index }
    }

    /// Number of packets dropped because the device's queue was full; a super-packet counts once.
    ///
    /// # Errors
    /// Fails if the kernel does not report the counter.
    pub fn dropped(&mut self) -> io::Result<u64> {
        let all = attribute_of(&mut self.netlink, self.index, libc::IFLA_STATS64)?;
        let count = all.get(TX_DROPPED * 8..).and_then(|rest| rest.first_chunk());
        count.map(|bytes| u64::from_ne_bytes(*bytes)).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// Path of the device file that creates TUN devices.
pub(crate) const DEVICE: &str = "/dev/net/tun";
/// Index of the counter in `struct rtnl_link_stats64` of `linux/if_link.h`.
const TX_DROPPED: usize = 7;
/// Number of packets that a device queues until they are read. The kernel's default of 500 is too small for bursts: a
/// device drops the excess and does not block senders.
const QUEUE: u32 = 1 << 14;
/// Flag value for a device without headers before packets.
const PLAIN: libc::c_int = 0;

impl Tun {
    /// Creates a device in the calling thread's namespace; `%d` in the name becomes the first free number.
    ///
    /// # Errors
    /// Fails if the device file is missing or inaccessible, or the process has no right to change the namespace.
    pub(crate) fn open(pattern: &str) -> Result<Self, Obstacle> {
        let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = open(DEVICE, flags, Mode::empty()).trying("opening /dev/net/tun")?;
        let name = attach(&file, pattern, libc::IFF_VNET_HDR)
            // A driver without super-packets reports the flag IFF_VNET_HDR as invalid; without the flag packets arrive
            // one by one.
            .or_else(|error| match error.raw_os_error() {
                Some(libc::EINVAL) => attach(&file, pattern, PLAIN),
                _ => Err(error),
            })
            .trying("creating a TUN device")?;
        let index = if_nametoindex(name.as_str()).trying("finding the TUN device")?;
        let mut netlink = Netlink::route().trying("finding the TUN device")?;
        let longer = Message::new(libc::RTM_NEWLINK, 0, &link(index, 0, 0))
            .attribute(libc::IFLA_TXQLEN, &QUEUE.to_ne_bytes());
        // If the kernel refuses a longer queue, more packets are lost; the lost packets are counted.
        let _ = netlink.request(&[longer]);
        Ok(Self { file, interface: Interface { index, name }, netlink })
    }
}

/// Converts the open file to a TUN device, with the header before packets that `before` selects; returns the device's
/// name.
#[allow(unsafe_code)]
fn attach(file: &OwnedFd, pattern: &str, before: libc::c_int) -> io::Result<String> {
    // SAFETY: an interface request is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(pattern.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | before) as i16;
    // SAFETY: the file is open and the request outlives the call, which writes only into it.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    let name = request.ifr_name.iter().take_while(|byte| **byte != 0);
    Ok(name.map(|byte| char::from(*byte as u8)).collect())
}
