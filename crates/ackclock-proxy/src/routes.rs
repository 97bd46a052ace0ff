//! Asks the kernel where it sends the packets for an address (`RTM_GETROUTE`).
//!
//! The addresses of the interfaces are only a part of a machine's own addresses: a route of type `local` makes whole
//! networks its own. Only the routing tables answer completely.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use nix::libc::{AF_INET, AF_INET6};
use nix::sys::socket::{MsgFlags, recv, send};

use crate::netlink::{Message, REQUEST, open, request, split_message};

// Constants of `linux/rtnetlink.h`.
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTA_DST: u16 = 1;
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
    let mut body = vec![0; RTMSG];
    body[0] = family as u8;
    body[1] = 8 * octets.len() as u8;
    body.extend_from_slice(&(octets.len() as u16 + 4).to_ne_bytes());
    body.extend_from_slice(&RTA_DST.to_ne_bytes());
    body.extend_from_slice(&octets);
    let (socket, mut answer) = (open()?, [0; 4096]);
    send(socket.as_raw_fd(), &request(RTM_GETROUTE, REQUEST, &body), MsgFlags::empty())?;
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    match split_message(&answer[..length])? {
        Some(Message { kind: RTM_NEWROUTE, body, .. }) if body.len() >= RTMSG => {
            Ok(body[TYPE] == RTN_UNICAST)
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
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
