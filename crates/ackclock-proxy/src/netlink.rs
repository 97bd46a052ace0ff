//! Messages to and from the kernel by rtnetlink: headers only.

use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

/// Flag of a request: `NLM_F_REQUEST`.
pub(crate) const REQUEST: u16 = 0x1;
/// Flags of a request for a list: `NLM_F_REQUEST | NLM_F_DUMP`.
pub(crate) const DUMP: u16 = 0x301;
/// Kind of the last message of a list, `NLMSG_DONE`.
pub(crate) const DONE: u16 = 3;
/// Length of the header of a message, `struct nlmsghdr`.
pub(crate) const HEADER: usize = 16;
/// Kind of a message with an error, `NLMSG_ERROR`.
const ERROR: u16 = 2;

/// Opens an rtnetlink socket.
pub(crate) fn open() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    Ok(socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?)
}

/// Request of a kind with this body.
pub(crate) fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = ((HEADER + body.len()) as u32).to_ne_bytes();
    [&length[..], &kind.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8], body].concat()
}

/// First message of a datagram.
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) body: &'a [u8],
    /// Bytes of the datagram after the message.
    pub(crate) rest: &'a [u8],
}

/// Splits the first message off a datagram; `None` for an incomplete message.
///
/// # Errors
/// Fails with the error that the message contains.
pub(crate) fn split_message(datagram: &[u8]) -> io::Result<Option<Message<'_>>> {
    let Some(length) = u32_at(datagram, 0).map(|length| length as usize) else { return Ok(None) };
    let (Some(body), Some(kind)) = (datagram.get(HEADER..length), u16_at(datagram, 4)) else {
        return Ok(None);
    };
    if kind == ERROR {
        let error = u32_at(body, 0).map_or(0, |error| (error as i32).wrapping_neg());
        return Err(Errno::from_raw(error).into());
    }
    let rest = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    Ok(Some(Message { kind, body, rest }))
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
