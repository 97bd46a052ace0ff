//! Counters of a network interface's queue (qdisc), read from the kernel by rtnetlink.

use std::io;

use ackclock_netlink::{Message, Netlink, attribute, u32_at};
use nix::libc;
use nix::net::if_::if_nametoindex;

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
    netlink: Netlink,
    interface: u32,
}

// Constants of `linux/rtnetlink.h` and `linux/gen_stats.h`.
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
        Ok(Self { netlink: Netlink::route()?, interface })
    }

    /// Reads the counters of the interface's root queue; `None` if the interface is gone or has no queue.
    ///
    /// # Errors
    /// Fails if the kernel does not answer the request.
    pub fn read(&mut self) -> io::Result<Option<Counters>> {
        let mut found = None;
        let request = Message::list(libc::RTM_GETQDISC, &[0; TCMSG]);
        self.netlink.list(request, |queue| found = found.or_else(|| parse(queue, self.interface)))?;
        Ok(found)
    }
}

/// Counters in a message about a queue; `None` for queues of other interfaces, inner queues and the absent queue
/// `noqueue`.
pub fn parse(message: &[u8], interface: u32) -> Option<Counters> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = 4 + payload.len();
        let mut bytes = [&(length as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), payload].concat();
        bytes.resize(length.next_multiple_of(4), 0);
        bytes
    }

    /// Message about a queue of kind `name` with 70 000 bytes sent and 3 packets, 4500 bytes, queued.
    fn queue(interface: u32, parent: u32, name: &[u8]) -> Vec<u8> {
        let basic = [&70_000_u64.to_ne_bytes()[..], &50_u32.to_ne_bytes(), &[0; 4]].concat();
        let lengths: Vec<u8> =
            [3, 4500, 1, 0, 9].iter().flat_map(|value: &u32| value.to_ne_bytes()).collect();
        let statistics = [tlv(TCA_STATS_BASIC, &basic), tlv(TCA_STATS_QUEUE, &lengths)].concat();
        let head = [0, interface, 0, parent, 0].map(u32::to_ne_bytes).concat();
        [head, tlv(TCA_KIND, name), tlv(TCA_STATS2, &statistics)].concat()
    }

    #[test]
    fn only_the_root_queue_of_the_interface_counts() {
        let counters = Some(Counters { sent: 70_000, packets: 3, bytes: 4500 });
        assert_eq!(parse(&queue(7, TC_H_ROOT, b"tbf\0"), 7), counters);
        for other in [
            queue(2, TC_H_ROOT, b"tbf\0"),
            queue(7, 0x10001, b"fq_codel\0"),
            queue(7, TC_H_ROOT, b"noqueue\0"),
        ] {
            assert_eq!(parse(&other, 7), None);
        }
    }

    #[test]
    fn a_truncated_message_has_no_counters() {
        let queue = queue(7, TC_H_ROOT, b"tbf\0");
        assert!((0..queue.len()).all(|length| parse(&queue[..length], 7).is_none()));
    }

    #[test]
    fn the_loopback_interface_has_no_queue() {
        assert_eq!(Reader::open("lo").unwrap().read().unwrap(), None);
        assert!(Reader::open("no-such-if").is_err());
    }
}
