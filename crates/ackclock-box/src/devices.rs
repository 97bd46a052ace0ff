//! Type and counters of network devices, and their changes (rtnetlink).

use std::io;

use ackclock_netlink::{Message, Netlink, attribute, u32_at, u64_at};
use nix::libc;

/// Attribute with the number of the XDP program, in that of a device's XDP (`linux/if_link.h`).
const XDP_PROGRAM: u16 = 4;

/// Type and counters of a network device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// Device type (ARPHRD).
    pub(crate) kind: u16,
    /// Packets that the device received.
    pub(crate) received: u64,
    /// Packets that the device sent.
    pub(crate) sent: u64,
    /// Number of the XDP program of the device.
    pub(crate) xdp: Option<u32>,
}

/// Reads type and counters of the device with this index.
///
/// # Errors
/// Fails if there is no such device.
pub(crate) fn device(index: u32) -> io::Result<Device> {
    let (family, flags, change) = (0, 0, 0);
    let body = [family, index, flags, change].map(u32::to_ne_bytes).concat();
    let link = Netlink::route()?.ask(Message::new(libc::RTM_GETLINK, 0, &body))?;
    let read = || {
        let attributes = link.get(16..)?;
        let xdp =
            attribute(attributes, libc::IFLA_XDP).and_then(|xdp| u32_at(attribute(xdp, XDP_PROGRAM)?, 0));
        let counters = attribute(attributes, libc::IFLA_STATS64)?;
        let kind = u16::from_ne_bytes(*link.get(2..)?.first_chunk()?);
        Some(Device { kind, received: u64_at(counters, 0)?, sent: u64_at(counters, 8)?, xdp })
    };
    read().ok_or_else(|| io::Error::other("the kernel does not describe the device"))
}

/// Receiver of the kernel's messages about devices that were added, changed or removed.
#[derive(Debug)]
pub(crate) struct DeviceEvents(Netlink);

impl DeviceEvents {
    /// Receives the messages about the devices of this network namespace from now on.
    ///
    /// # Errors
    /// Fails if the kernel has no rtnetlink.
    pub(crate) fn open() -> io::Result<Self> {
        Netlink::route_reports(libc::RTNLGRP_LINK).map(Self)
    }

    /// Whether a device was added, changed or removed since the last call. This call does not wait.
    pub(crate) fn any(&self) -> bool {
        let mut any = false;
        let is_incomplete = self.0.take(|_| any = true);
        any || is_incomplete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_is_described() {
        let index = nix::net::if_::if_nametoindex("lo").unwrap();
        // ARPHRD_LOOPBACK of linux/if_arp.h.
        assert_eq!(device(index).unwrap().kind, 772);
    }

    #[test]
    fn an_unknown_device_is_refused() {
        assert_eq!(device(1 << 30).unwrap_err().raw_os_error(), Some(nix::errno::Errno::ENODEV as i32));
    }
}
