//! Asks the kernel where it sends the packets for an address (`RTM_GETROUTE`).
//!
//! The addresses of the interfaces are only a part of a machine's own addresses: a route of type `local` makes whole
//! networks its own. Only the routing tables answer completely.

use std::io;
use std::net::IpAddr;

use ackclock_netlink::{Message, Netlink};
use nix::libc::{self, AF_INET, AF_INET6};

/// Type of a route to another machine (`linux/rtnetlink.h`).
const RTN_UNICAST: u8 = 1;
/// Offset of `rtm_type` in `struct rtmsg`, and the length of the structure.
const TYPE: usize = 7;
const RTMSG: usize = 12;

/// Whether packets for an address leave this machine for another one; not if the kernel delivers them locally, or to a
/// multicast or broadcast address.
///
/// # Errors
/// Fails with the kernel's reason if no route leads to the address.
pub(crate) fn leave_machine(to: IpAddr) -> io::Result<bool> {
    let (family, octets) = match to {
        IpAddr::V4(to) => (AF_INET, to.octets().to_vec()),
        IpAddr::V6(to) => (AF_INET6, to.octets().to_vec()),
    };
    let mut body = [0; RTMSG];
    body[0] = family as u8;
    body[1] = 8 * octets.len() as u8;
    let request = Message::new(libc::RTM_GETROUTE, 0, &body).attribute(libc::RTA_DST, &octets);
    let route = Netlink::route()?.ask(request)?;
    if route.len() < RTMSG {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(route[TYPE] == RTN_UNICAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_for_the_machine_itself_do_not_leave_it() {
        for own in ["127.0.0.1", "127.255.0.9", "0.0.0.0", "::1"] {
            // Without IPv6 there is no route to ::1.
            assert!(!leave_machine(own.parse().unwrap()).unwrap_or(false), "{own}");
        }
        assert!(!leave_machine("127.0.0.1".parse().unwrap()).unwrap());
    }
}
