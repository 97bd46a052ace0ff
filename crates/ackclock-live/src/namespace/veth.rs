//! A veth pair: a virtual cable between two network namespaces, with an interface at each end.
//!
//! The two ends have the same hardware address and use no neighbour discovery. The kernel addresses packets to its own
//! hardware address, which is correct because the peer's address is equal. The pair is point-to-point like a TUN.

use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::sleep;
use std::time::Duration;

use nix::libc;
use nix::net::if_::{if_indextoname, if_nametoindex};

use super::interface::{Interface, attribute_of, link};
use super::obstacle::{Obstacle, Trying};
use ackclock_netlink::{CREATE, Message, Netlink};

/// A veth pair with one end in the namespace in which it was created. The pair disappears with the namespace of either
/// end.
#[derive(Debug)]
pub(crate) struct Veth {
    pub(crate) near: Interface,
    /// Index of the pair's far interface in its namespace.
    far: u32,
    /// Netlink socket for the near end, usable from any namespace.
    netlink: Netlink,
}

impl Veth {
    /// Creates a veth pair between the calling thread's namespace and `beyond`; `None` if the name `far` is taken.
    ///
    /// # Errors
    /// Fails if the kernel does not support veth, or the process has no right to change one of the namespaces.
    pub(crate) fn create(near: &str, far: &str, beyond: &OwnedFd) -> Result<Option<Self>, Obstacle> {
        let mut netlink = Netlink::route().trying(CREATING)?;
        if let Err(error) = netlink.request(&[request(near, far, beyond)]) {
            let obstacle = Obstacle::new(CREATING, &error);
            return match error.raw_os_error() {
                Some(libc::EEXIST) => Ok(None),
                Some(libc::EOPNOTSUPP) => Err(obstacle.remedy("load the driver: sudo modprobe veth")),
                _ => Err(obstacle),
            };
        }
        let near = Interface { index: if_nametoindex(near).trying(CREATING)?, name: near.to_owned() };
        let far = attribute_of(&mut netlink, near.index, libc::IFLA_LINK).trying(CREATING)?;
        let far = far.try_into().map_or(0, u32::from_ne_bytes);
        Ok(Some(Self { near, far, netlink }))
    }

    /// Interface at the far end of the pair; call this function in the far end's namespace.
    ///
    /// # Errors
    /// Fails if the calling thread is in another namespace.
    pub(crate) fn far(&self) -> Result<Interface, Obstacle> {
        let name = if_indextoname(self.far).trying("finding the veth pair")?;
        Ok(Interface { index: self.far, name: name.to_string_lossy().into_owned() })
    }

    /// Waits until the pair forwards packets: the end that came up first drops packets until the kernel has detected
    /// the peer.
    ///
    /// # Errors
    /// Fails if one end is not up, or the pair has disappeared.
    pub(crate) fn await_carrier(&mut self) -> Result<(), Obstacle> {
        for _ in 0..LOOKS {
            let state = attribute_of(&mut self.netlink, self.near.index, libc::IFLA_OPERSTATE);
            if state.trying(JOINING)? == [OPERATIONAL] {
                return Ok(());
            }
            pause(LOOK);
        }
        Err(Obstacle::new(JOINING, "its ends do not see each other"))
    }
}

const CREATING: &str = "creating a veth pair";
const JOINING: &str = "joining the router to the machine";

fn request(near: &str, far: &str, beyond: &OwnedFd) -> Message {
    let silent = libc::IFF_NOARP as u32;
    let body = link(0, silent, silent);
    Message::new(libc::RTM_NEWLINK, CREATE, &body)
        .text(libc::IFLA_IFNAME, near)
        .attribute(libc::IFLA_ADDRESS, &HARDWARE)
        .nested(libc::IFLA_LINKINFO, |kind| {
            kind.text(libc::IFLA_INFO_KIND, "veth").nested(libc::IFLA_INFO_DATA, |data| {
                data.nested(PEER, |peer| {
                    peer.fixed(&body)
                        .text(libc::IFLA_IFNAME, far)
                        .attribute(libc::IFLA_ADDRESS, &HARDWARE)
                        .attribute(libc::IFLA_NET_NS_FD, &beyond.as_raw_fd().to_ne_bytes())
                })
            })
        })
}

/// Locally administered hardware address (IEEE 802 section 8.4: second bit of the first byte). Every pair is a separate
/// cable, so all pairs may use the same address.
const HARDWARE: [u8; 6] = *b"\x02ackck";
/// Attribute `VETH_INFO_PEER` of `linux/veth.h`.
const PEER: u16 = 1;
/// Interface state `IF_OPER_UP` of `linux/if.h` (RFC 2863 section 3.1.14).
const OPERATIONAL: u8 = 6;
const LOOK: Duration = Duration::from_millis(1);
const LOOKS: u32 = 5000;

#[allow(clippy::disallowed_methods)] // The real world is waited for here; no model sleeps.
fn pause(length: Duration) {
    sleep(length);
}
