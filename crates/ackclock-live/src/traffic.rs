//! Packet counts of one direction by fate: delivered, dropped by the model, lost by this machine, or still inside the
//! link.

use std::fmt;

use ackclock_core::results::{RealTraffic, TooBig};

/// Packet counts of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of packets that arrived at the link.
    pub arrived: u64,
    /// Number of packets that a regulator retransmitted from copies.
    pub resent: u64,
    /// Number of copies of packets that the link made.
    pub duplicated: u64,
    /// Number of packets that left with a wrong bit.
    pub corrupted: u64,
    /// Number of packets built for segments that a regulator generated.
    pub built: u64,
    /// Number of packets that left the link, including retransmitted and built packets.
    pub left: u64,
    /// Total size of the packets that left the link, bytes.
    pub left_bytes: u64,
    /// Number of packets that arrived and were then dropped by the model or discarded by a regulator.
    pub removed: u64,
    /// Number of packets that arrived and are still inside the link.
    pub inside: u64,
    /// Number of generated segments still inside the link; a generated segment has no packet before it leaves.
    pub made_inside: u64,
    /// Number of packets that passed beside the link, because their flow was not selected. They count neither as arrived
    /// nor as left. `None` if all flows are selected.
    pub bypassed: Option<u64>,
    /// Number of fragments that passed or crossed by their addresses alone, although ports select flows, because the
    /// first fragment had not been seen.
    pub strays: u64,
    /// Packets that were too big for the hop in front of the link; a dropped packet did not arrive at the link. `None`
    /// without such a hop.
    pub too_big: Option<TooBig>,
    /// Packets that this machine lost, by cause.
    pub lost: Lost,
}

/// Number of packets of one direction that this machine lost, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Number of packets lost because the queue of the arrival device was full. The value is `None` if the kernel does
    /// not report the number of drops.
    pub device: Option<u64>,
    /// Number of packets that could not be read from the device: the pool was full, or a super-packet could not be
    /// split.
    pub unread: u64,
    /// Number of packets refused because this direction already had half of the packets allowed inside the link.
    pub no_room: u64,
    /// Number of generated segments for which no packet could be built: the connection was unknown, the segment had a
    /// payload or was too large, or the pool was full.
    pub unbuilt: u64,
    /// Number of packets refused by the departure device.
    pub refused: u64,
}

impl Traffic {
    /// Number of packets not accounted for: 0 unless ackclock has a bug.
    pub fn unaccounted(&self) -> i64 {
        let came = self.arrived + self.resent + self.duplicated + self.built;
        let went = self.left + self.removed + self.lost.no_room + self.inside;
        came.wrapping_sub(went).cast_signed()
    }

    /// Packet counts in the format of results.
    pub fn result(&self) -> RealTraffic {
        let Lost { device, unread, refused, .. } = self.lost;
        RealTraffic {
            sent: self.arrived + unread + device.unwrap_or(0),
            delivered: self.left - refused,
            delivered_bytes: self.left_bytes,
            lost_by_machine: self.lost.total(),
            waiting: self.inside + self.made_inside,
            bypassed: self.bypassed,
            too_big: self.too_big,
        }
    }
}

impl Lost {
    /// Number of packets lost for any cause; `None` if the kernel does not report one of the causes.
    pub fn total(&self) -> Option<u64> {
        Some(self.device? + self.unread + self.no_room + self.unbuilt + self.refused)
    }
}

/// Formats the causes of loss with their counts, on one line.
impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = [
            (self.device.unwrap_or(0), "before the link: the device's queue was full"),
            (self.unread, "before the link: they could not be read from the device"),
            (self.no_room, "before the link: as many packets were waiting as ackclock can hold"),
            (self.unbuilt, "made by the regulator: no packet could be built of them"),
            (self.refused, "behind the link: the device refused them"),
        ];
        let causes = causes.iter().filter(|(count, _)| *count > 0);
        let causes: Vec<_> = causes.map(|(count, cause)| format!("{count} {cause}")).collect();
        f.write_str(&causes.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAFFIC: Traffic = Traffic {
        arrived: 100,
        resent: 2,
        duplicated: 0,
        corrupted: 0,
        built: 3,
        left: 80,
        left_bytes: 80_000,
        removed: 10,
        inside: 11,
        made_inside: 1,
        bypassed: None,
        strays: 0,
        too_big: None,
        lost: Lost { device: Some(5), unread: 6, no_room: 4, unbuilt: 7, refused: 8 },
    };

    #[test]
    fn what_was_sent_is_delivered_dropped_lost_or_waiting() {
        // The counts balance: 100 + 2 + 3 = 80 + 10 + 4 + 11.
        assert_eq!(TRAFFIC.unaccounted(), 0);
        assert_eq!(Traffic { left: 81, ..TRAFFIC }.unaccounted(), -1);
        let RealTraffic { sent, delivered, lost_by_machine, waiting, .. } = TRAFFIC.result();
        assert_eq!((sent, delivered, lost_by_machine, waiting), (111, 72, Some(30), 12));
        // 11 segments were generated: 3 were built, 7 were not, and one is inside the link.
        assert_eq!(sent + 11 + 2, delivered + 10 + 30 + waiting);
    }

    #[test]
    fn a_device_that_does_not_tell_leaves_the_sum_unknown() {
        let lost = Lost { device: None, refused: 1, ..Lost::default() };
        assert_eq!(
            (lost.total(), lost.to_string().as_str()),
            (None, "1 behind the link: the device refused them")
        );
    }
}
