//! # ackclock-netlink
//!
//! Netlink requests to the kernel about interfaces, routes, traffic control and firewall rules. Builds messages, checks
//! acknowledgements, and reads the attributes of answers.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, socket,
};

const ACK: u16 = 0x4;
const REQUEST: u16 = 0x1;
const DUMP: u16 = 0x300;
const NESTED: u16 = 0x8000;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const HEADER: usize = 16;

/// Flags of a request that creates an object, and fails if the object exists.
pub const CREATE: u16 = 0x400 | 0x200;

/// Netlink request under construction.
#[derive(Clone, Debug)]
pub struct Message(Vec<u8>);

impl Message {
    /// Starts a request of this kind with the fixed part of its body. The kernel acknowledges the request.
    pub fn new(kind: u16, flags: u16, body: &[u8]) -> Self {
        Self::bare(kind, flags | REQUEST | ACK, body)
    }

    /// Starts a request without acknowledgement: a message that begins or ends a batch.
    pub fn bracket(kind: u16, body: &[u8]) -> Self {
        Self::bare(kind, REQUEST, body)
    }

    /// Starts a request for a list of objects.
    pub fn list(kind: u16, body: &[u8]) -> Self {
        Self::bare(kind, REQUEST | DUMP, body)
    }

    /// Adds the fixed part of an attribute's value.
    pub fn fixed(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self.pad();
        self
    }

    /// Adds an attribute to the message.
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let length = (value.len() + 4) as u16;
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.pad();
        self
    }

    /// Adds a numeric attribute in network byte order, as the firewall expects.
    pub fn number(self, kind: u16, value: u32) -> Self {
        self.attribute(kind, &value.to_be_bytes())
    }

    /// Adds a text attribute, terminated by a zero byte.
    pub fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    /// Adds an attribute that contains nested attributes.
    pub fn nested(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend((kind | NESTED).to_ne_bytes());
        let mut filled = fill(self);
        let length = (filled.0.len() - start) as u16;
        filled.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        filled
    }

    fn bare(kind: u16, flags: u16, body: &[u8]) -> Self {
        let mut message = Self(vec![0; HEADER]);
        message.0[4..6].copy_from_slice(&kind.to_ne_bytes());
        message.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        message.0.extend(body);
        message.pad();
        message
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn wants_ack(&self) -> bool {
        u16::from_ne_bytes([self.0[6], self.0[7]]) & ACK != 0
    }

    /// Bytes of the message to send, with length and sequence number.
    fn finished(&self, sequence: u32) -> Vec<u8> {
        let mut bytes = self.0.clone();
        bytes[0..4].copy_from_slice(&(self.0.len() as u32).to_ne_bytes());
        bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        bytes
    }
}

/// Socket of one netlink family, bound to the network namespace in which the socket was opened.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

/// A socket opened in another namespace still belongs to that namespace.
impl From<OwnedFd> for Netlink {
    fn from(socket: OwnedFd) -> Self {
        Self { socket, sequence: 0 }
    }
}

impl AsRawFd for Netlink {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Netlink {
    /// Opens a socket for interfaces, addresses, routes and traffic control.
    ///
    /// # Errors
    /// Returns the kernel's error if the kernel has no rtnetlink.
    pub fn route() -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkRoute)
    }

    /// Opens a socket for the firewall.
    ///
    /// # Errors
    /// Returns the kernel's error if the kernel has no firewall.
    pub fn netfilter() -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkNetFilter)
    }

    /// Opens a socket for the kernel's reports to a multicast group about interfaces, addresses and routes.
    ///
    /// # Errors
    /// Returns the kernel's error if the kernel has no rtnetlink.
    pub fn route_reports(group: u32) -> io::Result<Self> {
        Self::route()?.joined(group)
    }

    /// Opens a socket for the firewall's reports to a multicast group.
    ///
    /// # Errors
    /// Returns the kernel's error if the kernel has no firewall.
    pub fn netfilter_reports(group: u32) -> io::Result<Self> {
        Self::netfilter()?.joined(group)
    }

    /// Calls `report` with the body of each pending report, without waiting. Returns whether the kernel dropped reports,
    /// because too many were pending.
    pub fn take(&self, mut report: impl FnMut(&[u8])) -> bool {
        let (mut buffer, mut is_incomplete) = (vec![0; BUFFER], false);
        loop {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => replies(&buffer[..length]).for_each(|(_, body)| report(body)),
                Err(Errno::ENOBUFS) => is_incomplete = true,
                Err(_) => return is_incomplete,
            }
        }
    }

    /// Requests one object and returns the body of the kernel's answer.
    ///
    /// # Errors
    /// Returns the kernel's error if the kernel refuses the request.
    pub fn ask(&mut self, request: Message) -> io::Result<Vec<u8>> {
        self.send(&[request])?;
        let mut buffer = vec![0; BUFFER];
        let mut answer = None;
        loop {
            for (kind, body) in replies(self.receive(&mut buffer)?) {
                match kind {
                    ERROR => {
                        refusal(body)?;
                        return answer.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT));
                    }
                    _ => answer = Some(body.to_vec()),
                }
            }
        }
    }

    /// Sends the messages together and waits for all acknowledgements.
    ///
    /// # Errors
    /// Returns the first error if the kernel refuses a request.
    pub fn request(&mut self, messages: &[Message]) -> io::Result<()> {
        self.send(messages)?;
        let mut awaited = messages.iter().filter(|message| message.wants_ack()).count();
        let mut buffer = vec![0; BUFFER];
        while awaited > 0 {
            for (kind, body) in replies(self.receive(&mut buffer)?) {
                if kind == ERROR {
                    refusal(body)?;
                    awaited = awaited.saturating_sub(1);
                }
            }
        }
        Ok(())
    }

    /// Requests a list and calls `entry` with the body of each entry.
    ///
    /// # Errors
    /// Returns the kernel's error if the kernel refuses the request.
    pub fn list(&mut self, request: Message, mut entry: impl FnMut(&[u8])) -> io::Result<()> {
        self.send(&[request])?;
        let mut buffer = vec![0; BUFFER];
        loop {
            for (kind, body) in replies(self.receive(&mut buffer)?) {
                match kind {
                    DONE => return Ok(()),
                    ERROR => refusal(body)?,
                    _ => entry(body),
                }
            }
        }
    }

    fn open(protocol: SockProtocol) -> io::Result<Self> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        Ok(Self { socket, sequence: 0 })
    }

    fn joined(self, group: u32) -> io::Result<Self> {
        bind(self.socket.as_raw_fd(), &NetlinkAddr::new(0, 1 << (group - 1)))?;
        Ok(self)
    }

    fn send(&mut self, messages: &[Message]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for message in messages {
            self.sequence += 1;
            bytes.extend(message.finished(self.sequence));
        }
        send(self.socket.as_raw_fd(), &bytes, MsgFlags::empty())?;
        Ok(())
    }

    fn receive<'a>(&self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let length = recv(self.socket.as_raw_fd(), buffer, MsgFlags::empty())?;
        // The end of an answer without any message would be awaited forever.
        if length < HEADER { Err(io::ErrorKind::InvalidData.into()) } else { Ok(&buffer[..length]) }
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Buffer size in bytes: more than the kernel puts into one datagram of a list.
const BUFFER: usize = 64 << 10;

/// Message kind and body of each message in a datagram.
fn replies(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(bytes.get(0..4)?.try_into().ok()?) as usize;
        let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
        let body = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// Attribute kind and value of each attribute in the variable part of a message.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(0..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & !NESTED, value))
    })
}

/// Value of the first attribute of this kind in the variable part of a message.
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|&(kind, _)| kind == wanted).map(|(_, value)| value)
}

/// Reads the 32-bit number at an offset.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Reads the 64-bit number at an offset.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Error code of a kernel reply; an acknowledgement has error code zero.
fn refusal(body: &[u8]) -> io::Result<()> {
    let code = body.get(0..4).and_then(|bytes| bytes.try_into().ok()).map_or(-libc::EIO, i32::from_ne_bytes);
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested_lengths_count_what_they_hold() {
        let message =
            Message::new(16, 0, &[7; 4]).nested(1, |inner| inner.text(2, "ab").number(3, 5)).finished(9);
        // The message has 16 bytes of header, 4 of body, 4 of nested header, 4 + 3 of text padded to 8, and 4 + 4 of
        // number.
        assert_eq!(message.len(), 40);
        assert_eq!(u32::from_ne_bytes(message[0..4].try_into().unwrap()), 40);
        let inside: Vec<_> = attributes(&message[20..]).collect();
        assert_eq!((inside.len(), inside[0].0, inside[0].1.len()), (1, 1, 16));
        let within: Vec<_> = attributes(inside[0].1).collect();
        assert_eq!(within, [(2, b"ab\0".as_slice()), (3, &[0, 0, 0, 5])]);
    }

    #[test]
    fn malformed_replies_end_the_list() {
        assert_eq!(replies(&[1, 2, 3]).count(), 0);
        assert_eq!(replies(&[255; 40]).count(), 0);
        assert_eq!(attributes(&[0; 8]).count(), 0, "a length of zero is no attribute");
    }

    #[test]
    fn the_kernel_lists_routes_without_any_privilege() {
        let mut routes = 0;
        let body = [libc::AF_INET as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        Netlink::route().unwrap().list(Message::list(libc::RTM_GETROUTE, &body), |_| routes += 1).unwrap();
        assert!(routes > 0, "even a fresh namespace has local routes once loopback is up");
    }
}
