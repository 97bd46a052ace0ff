//! A veth pair: a wire between two network namespaces, with an interface at each end.
//!
//! Both ends have the same hardware address and seek no neighbours. The kernel of an end then writes its own address to
//! whomever it sends, which is right here because it is the other end's as well: the pair is as point-to-point as a TUN.

use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::sleep;
use std::time::Duration;

use nix::libc;
use nix::net::if_::{if_indextoname, if_nametoindex};

use super::interface::{Interface, attribute_of, link};
use super::netlink::{CREATE, Message, Netlink};
use super::obstacle::{Obstacle, Trying};

/// A pair with one end in the namespace in which it was made. It is gone when the namespace of either end is.
#[derive(Debug)]
pub(crate) struct Veth {
    pub(crate) near: Interface,
    /// The number of the other end in its own namespace.
    far: u32,
    /// Asks about the near end, wherever the calling thread is.
    netlink: Netlink,
}

impl Veth {
    /// A new pair between the namespace of the calling thread and `beyond`; nothing where the far name is taken.
    ///
    /// # Errors
    /// Where the kernel has no such interfaces, or one of the namespaces is not ours to change.
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

    /// The far end, asked for in its namespace.
    ///
    /// # Errors
    /// Where the calling thread is in another one.
    pub(crate) fn far(&self) -> Result<Interface, Obstacle> {
        let name = if_indextoname(self.far).trying("finding the veth pair")?;
        Ok(Interface { index: self.far, name: name.to_string_lossy().into_owned() })
    }

    /// Waits until packets pass: whichever end came up first drops what it is given until the kernel has noted that the other
    /// one is there.
    ///
    /// # Errors
    /// Where an end is not up, or the pair is gone.
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

/// A local address (IEEE 802 section 8.4: second bit of the first byte). Every pair is a wire of its own, so all may have it.
const HARDWARE: [u8; 6] = *b"\x02ackck";
/// `VETH_INFO_PEER` of `linux/veth.h`.
const PEER: u16 = 1;
/// `IF_OPER_UP` of `linux/if.h` (RFC 2863 section 3.1.14).
const OPERATIONAL: u8 = 6;
const LOOK: Duration = Duration::from_millis(1);
const LOOKS: u32 = 5000;

#[allow(clippy::disallowed_methods)] // The real world is waited for here; no model sleeps.
fn pause(length: Duration) {
    sleep(length);
}
