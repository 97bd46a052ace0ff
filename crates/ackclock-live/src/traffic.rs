//! Packets of one direction by their fate: delivered, dropped by the model, lost by this machine, or still inside.

use std::fmt;

use ackclock_core::results::RealTraffic;

/// Packets of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets that arrived at the link.
    pub arrived: u64,
    /// Packets that a regulator retransmitted from copies.
    pub resent: u64,
    /// Packets built for segments that a regulator generated.
    pub built: u64,
    /// Packets that left the link, resent and built ones included.
    pub left: u64,
    /// Bytes of the packets that left the link.
    pub left_bytes: u64,
    /// Packets that arrived and were then dropped by the model or discarded by a regulator.
    pub removed: u64,
    /// Packets that arrived and are still inside.
    pub inside: u64,
    /// Generated segments that are still inside: they have no packet before they leave.
    pub made_inside: u64,
    /// Packets that this machine lost.
    pub lost: Lost,
}

/// Packets of one direction that this machine lost, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// The queue of the arrival device was full. `None` if the kernel does not report it.
    pub device: Option<u64>,
    /// They could not be read from the device: the pool was full, or a super-packet could not be split.
    pub unread: u64,
    /// This direction already had half of the packets that may be inside.
    pub no_room: u64,
    /// No packet could be built for a generated segment: its connection was unknown, it had a payload, it was too
    /// large, or the pool was full.
    pub unbuilt: u64,
    /// The departure device refused them.
    pub refused: u64,
}

impl Traffic {
    /// Packets not accounted for: 0 unless ackclock has a bug.
    pub fn unaccounted(&self) -> i64 {
        let came = self.arrived + self.resent + self.built;
        let went = self.left + self.removed + self.lost.no_room + self.inside;
        came.wrapping_sub(went).cast_signed()
    }

    /// The counts in the format of results.
    pub fn result(&self) -> RealTraffic {
        let Lost { device, unread, refused, .. } = self.lost;
        RealTraffic {
            sent: self.arrived + unread + device.unwrap_or(0),
            delivered: self.left - refused,
            delivered_bytes: self.left_bytes,
            lost_by_machine: self.lost.total(),
            waiting: self.inside + self.made_inside,
        }
    }
}

impl Lost {
    /// Sum of all causes; `None` if the kernel does not report them.
    pub fn total(&self) -> Option<u64> {
        Some(self.device? + self.unread + self.no_room + self.unbuilt + self.refused)
    }
}

/// Causes with their counts, on one line.
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
        built: 3,
        left: 80,
        left_bytes: 80_000,
        removed: 10,
        inside: 11,
        made_inside: 1,
        lost: Lost { device: Some(5), unread: 6, no_room: 4, unbuilt: 7, refused: 8 },
    };

    #[test]
    fn what_was_sent_is_delivered_dropped_lost_or_waiting() {
        // 100 + 2 + 3 = 80 + 10 + 4 + 11.
        assert_eq!(TRAFFIC.unaccounted(), 0);
        assert_eq!(Traffic { left: 81, ..TRAFFIC }.unaccounted(), -1);
        let RealTraffic { sent, delivered, lost_by_machine, waiting, .. } = TRAFFIC.result();
        assert_eq!((sent, delivered, lost_by_machine, waiting), (111, 72, Some(30), 12));
        // 11 segments were generated: 3 built, 7 not, and one is inside.
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
