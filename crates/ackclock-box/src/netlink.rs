//! Requests to the kernel about network interfaces and their traffic control (rtnetlink).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, socket,
};

// Numbers of linux/netlink.h and linux/rtnetlink.h.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const GET_LINK: u16 = 18;
/// Flags of a request whose answer ends with an acknowledgement.
pub(crate) const ACKNOWLEDGE: u16 = 1 | 4;
/// Flags of a request for a list.
pub(crate) const DUMP: u16 = 1 | 0x300;
/// Attribute with the counters of a device.
const STATISTICS: u16 = 23;
/// Attribute with the XDP program of a device, and the attribute in it with the number of the program.
const XDP: u16 = 43;
const XDP_PROGRAM: u16 = 4;

/// Kind and content of a message.
pub(crate) type Message = (u16, Vec<u8>);

/// Sends a request, and returns the messages of the kernel's answer.
///
/// # Errors
/// Fails if the kernel refuses the request.
pub(crate) fn request(kind: u16, flags: u16, words: &[u32]) -> io::Result<Vec<Message>> {
    let netlink =
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    let mut message = (16 + 4 * words.len() as u32).to_ne_bytes().to_vec();
    message.extend([kind, flags].iter().flat_map(|half| half.to_ne_bytes()));
    let (number, port) = (1, 0);
    message.extend([number, port].iter().chain(words).flat_map(|word: &u32| word.to_ne_bytes()));
    send(netlink.as_raw_fd(), &message, MsgFlags::empty())?;
    let (mut buffer, mut answer) = (vec![0; 1 << 16], Vec::new());
    loop {
        let received = recv(netlink.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        let mut rest = buffer.get(..received).unwrap_or_default();
        while let Some((kind, body, after)) = first_message(rest) {
            match kind {
                DONE => return Ok(answer),
                ERROR => return acknowledged(body).map(|()| answer),
                _ => answer.push((kind, body.to_vec())),
            }
            rest = after;
        }
    }
}

/// Splits the first message off: its kind, its content, and the bytes after it.
fn first_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = word(bytes, 0)? as usize;
    let kind = half(bytes, 4)?;
    Some((kind, bytes.get(16..length)?, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// Checks the code of an acknowledgement; it is 0 if the kernel performed the request.
fn acknowledged(body: &[u8]) -> io::Result<()> {
    match word(body, 0).unwrap_or_default().cast_signed() {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Reads the 32-bit number at this place.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

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
    let answer = request(GET_LINK, ACKNOWLEDGE, &[family, index, flags, change])?;
    let read = |(_, link): &Message| {
        let attributes = link.get(16..)?;
        let xdp = attribute(attributes, XDP).and_then(|xdp| word(attribute(xdp, XDP_PROGRAM)?, 0));
        Some((half(link, 2)?, attribute(attributes, STATISTICS)?.to_vec(), xdp))
    };
    let incomplete = || io::Error::other("the kernel does not describe the device");
    let (kind, counters, xdp) = answer.iter().find_map(read).ok_or_else(incomplete)?;
    let counter = |number: usize| long(&counters, 8 * number).ok_or_else(incomplete);
    Ok(Device { kind, received: counter(0)?, sent: counter(1)?, xdp })
}

/// Group of the kernel's messages about devices (`RTMGRP_LINK`).
const LINK_GROUP: u32 = 1;

/// Receiver of the kernel's messages about devices that were added, changed or removed.
#[derive(Debug)]
pub(crate) struct DeviceEvents(OwnedFd);

impl DeviceEvents {
    /// Receives the messages about the devices of this network namespace from now on.
    ///
    /// # Errors
    /// Fails if the kernel has no rtnetlink.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let netlink = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        bind(netlink.as_raw_fd(), &NetlinkAddr::new(0, LINK_GROUP))?;
        Ok(Self(netlink))
    }

    /// Whether a device was added, changed or removed since the last call. This call does not wait.
    pub(crate) fn any(&self) -> bool {
        let mut any = false;
        loop {
            match recv(self.0.as_raw_fd(), &mut [0; 16], MsgFlags::empty()) {
                // ENOBUFS: the kernel dropped messages, because too many were waiting.
                Ok(_) | Err(Errno::ENOBUFS) => any = true,
                Err(_) => return any,
            }
        }
    }
}

/// Content of the attribute of this type.
pub(crate) fn attribute(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (length, kind) = (usize::from(half(rest, 0)?), half(rest, 2)?);
        let content = rest.get(4..length)?;
        if kind == wanted {
            return Some(content);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
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
