//! Counters of a network interface's queue (qdisc), read from the kernel by rtnetlink.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{MsgFlags, recv, send};

use crate::netlink::{DONE, DUMP, HEADER, open, request, split_message, u16_at, u32_at};

/// Counters of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Bytes that left the queue since its creation, with link-layer headers.
    pub sent: u64,
    /// Packets in the queue. A packet can be a batch of segments that is divided later (GSO).
    pub packets: u32,
    /// Bytes in the queue, with link-layer headers.
    pub bytes: u32,
}

/// Reader of the counters of one interface.
#[derive(Debug)]
pub struct Reader {
    socket: OwnedFd,
    interface: u32,
    buffer: Vec<u8>,
}

// Constants of `linux/rtnetlink.h` and `linux/gen_stats.h`.
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const TC_H_ROOT: u32 = u32::MAX;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
/// Length of `struct tcmsg`.
const TCMSG: usize = 20;

impl Reader {
    /// Opens the reader of an interface.
    ///
    /// # Errors
    /// Fails if there is no interface of this name, or if the kernel has no rtnetlink.
    pub fn open(interface: &str) -> io::Result<Self> {
        let interface = if_nametoindex(interface)?;
        Ok(Self { socket: open()?, interface, buffer: vec![0; 1 << 16] })
    }

    /// Reads the counters of the interface's root queue; `None` if the interface is gone or has no queue.
    ///
    /// # Errors
    /// Fails if the kernel does not answer the request.
    pub fn read(&mut self) -> io::Result<Option<Counters>> {
        send(self.socket.as_raw_fd(), &request(RTM_GETQDISC, DUMP, &[0; TCMSG]), MsgFlags::empty())?;
        let mut found = None;
        loop {
            let length = recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty())?;
            let part = parse(&self.buffer[..length], self.interface)?;
            found = found.or(part.counters);
            if part.is_last {
                return Ok(found);
            }
        }
    }
}

/// One datagram of the kernel's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Counters of the root queue of the interface.
    pub counters: Option<Counters>,
    /// Whether the answer ends here.
    pub is_last: bool,
}

/// Parses one datagram of the kernel's answer about the interface with this index. Incomplete messages are ignored.
///
/// # Errors
/// Fails with the error that the kernel returns.
pub fn parse(datagram: &[u8], interface: u32) -> io::Result<Part> {
    let mut part = Part::default();
    let mut rest = datagram;
    while let Some(message) = split_message(rest)? {
        match message.kind {
            DONE => part.is_last = true,
            RTM_NEWQDISC => part.counters = part.counters.or_else(|| counters(message.body, interface)),
            _ => {}
        }
        rest = message.rest;
    }
    // An answer without any message would be awaited forever.
    part.is_last |= datagram.len() < HEADER;
    Ok(part)
}

/// Counters in a message about a queue; `None` for queues of other interfaces, inner queues and the absent queue
/// `noqueue`.
fn counters(message: &[u8], interface: u32) -> Option<Counters> {
    let is_root = u32_at(message, 4)? == interface && u32_at(message, 12)? == TC_H_ROOT;
    let attributes = message.get(TCMSG..).filter(|_| is_root)?;
    if attribute(attributes, TCA_KIND)?.starts_with(b"noqueue\0") {
        return None;
    }
    let statistics = attribute(attributes, TCA_STATS2)?;
    let basic = attribute(statistics, TCA_STATS_BASIC)?;
    let queue = attribute(statistics, TCA_STATS_QUEUE)?;
    let sent = u64::from_ne_bytes(*basic.first_chunk()?);
    Some(Counters { sent, packets: u32_at(queue, 0)?, bytes: u32_at(queue, 4)? })
}

/// Payload of the first attribute of this kind.
fn attribute(attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut rest = attributes;
    loop {
        let (length, kind) = (usize::from(u16_at(rest, 0)?), u16_at(rest, 2)?);
        let payload = rest.get(4..length)?;
        if kind == wanted {
            return Some(payload);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = 4 + payload.len();
        let mut bytes = [&(length as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), payload].concat();
        bytes.resize(length.next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = (HEADER + payload.len()) as u32;
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], payload].concat()
    }

    /// Message about a queue of kind `name` with 70 000 bytes sent and 3 packets, 4500 bytes, queued.
    fn queue(interface: u32, parent: u32, name: &[u8]) -> Vec<u8> {
        let basic = [&70_000_u64.to_ne_bytes()[..], &50_u32.to_ne_bytes(), &[0; 4]].concat();
        let lengths: Vec<u8> =
            [3, 4500, 1, 0, 9].iter().flat_map(|value: &u32| value.to_ne_bytes()).collect();
        let statistics = [tlv(TCA_STATS_BASIC, &basic), tlv(TCA_STATS_QUEUE, &lengths)].concat();
        let head = [0, interface, 0, parent, 0].map(u32::to_ne_bytes).concat();
        message(RTM_NEWQDISC, &[head, tlv(TCA_KIND, name), tlv(TCA_STATS2, &statistics)].concat())
    }

    #[test]
    fn the_root_queue_of_the_interface_is_found_among_others() {
        let others = [queue(2, TC_H_ROOT, b"tbf\0"), queue(7, 0x10001, b"fq_codel\0")].concat();
        let found = [others.clone(), queue(7, TC_H_ROOT, b"tbf\0"), message(DONE, &[0; 4])].concat();
        let counters = Some(Counters { sent: 70_000, packets: 3, bytes: 4500 });
        assert_eq!(parse(&found, 7).unwrap(), Part { counters, is_last: true });
        assert_eq!(parse(&others, 7).unwrap(), Part { counters: None, is_last: false });
        assert_eq!(parse(&queue(7, TC_H_ROOT, b"noqueue\0"), 7).unwrap().counters, None);
        let refused = message(2, &[&(-1_i32).to_ne_bytes()[..], &[0; 16]].concat());
        assert_eq!(parse(&refused, 7).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn each_truncated_answer_is_survived() {
        let answer = [queue(7, TC_H_ROOT, b"tbf\0"), message(DONE, &[0; 4])].concat();
        for length in 0..answer.len() {
            let part = parse(&answer[..length], 7).unwrap();
            assert!(!part.is_last || length < HEADER);
        }
    }

    #[test]
    fn the_loopback_interface_has_no_queue() {
        assert_eq!(Reader::open("lo").unwrap().read().unwrap(), None);
        assert!(Reader::open("no-such-if").is_err());
    }
}
