//! Account of every packet of a capture: which are counted, and why the others are not.

use std::collections::{BTreeMap, VecDeque};

use super::packet::{Fate, Packet};

/// Smallest step of the clock back, in seconds: capture threads swap neighbouring packets by less.
const STEP_BACK: f64 = 0.1;
/// Largest time between a packet and its copy, in seconds, with and without an IP identification. A retransmission has
/// another identification; without one, it comes at least one RTT later.
const COPY: [f64; 2] = [1.0, 0.01];
/// Largest number of packets that are remembered.
const MOST_REMEMBERED: usize = 65_536;

/// Recent packets of a capture.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Latest time of each interface.
    latest: BTreeMap<u32, f64>,
    /// Digests by age, and the time of each.
    order: VecDeque<(f64, u64)>,
    times: BTreeMap<u64, f64>,
}

impl Recent {
    pub(super) fn fate(&mut self, packet: &Packet) -> Fate {
        let latest = self.latest.entry(packet.interface).or_insert(packet.at);
        if packet.at < *latest - STEP_BACK {
            return Fate::Back;
        }
        *latest = latest.max(packet.at);
        let Some(digest) = packet.digest else { return Fate::New };
        let is_old = |order: &VecDeque<(f64, u64)>| {
            order.front().is_some_and(|(at, _)| packet.at - at > COPY[0]) || order.len() >= MOST_REMEMBERED
        };
        while is_old(&self.order)
            && let Some((at, old)) = self.order.pop_front()
        {
            if self.times.get(&old) == Some(&at) {
                self.times.remove(&old);
            }
        }
        let most = COPY[usize::from(!packet.has_identification)];
        if self.times.get(&digest).is_some_and(|before| packet.at - before <= most) {
            return Fate::Repeated;
        }
        self.times.insert(digest, packet.at);
        self.order.push_back((packet.at, digest));
        Fate::New
    }
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    packets: u64,
    bytes: u64,
}

impl Count {
    pub(super) fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

/// Counts of all packets of a capture.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) counted: Count,
    pub(super) other_direction: Count,
    /// Packets of counted flows, captured at another interface.
    pub(super) elsewhere: Count,
    pub(super) other_interface: Count,
    pub(super) repeated: Count,
    pub(super) back: Count,
    pub(super) unread: Count,
    /// Whether the user chose the interface.
    pub(super) is_asked: bool,
}

/// Largest share of bytes that may be left out of a capture that is graded.
const LEFT_OUT: f64 = 0.01;

impl Account {
    fn parts(&self) -> [(&'static str, Count); 7] {
        [
            ("counted", self.counted),
            ("of the other direction or to other addresses", self.other_direction),
            ("of the same flows at another interface", self.elsewhere),
            ("of another interface", self.other_interface),
            ("seen twice", self.repeated),
            ("older than a packet before (the clock was set back)", self.back),
            ("not read: no IP, or no time", self.unread),
        ]
    }

    /// Sentence with the number of packets of each kind.
    pub(super) fn note(&self) -> String {
        let all: u64 = self.parts().iter().map(|(_, count)| count.packets).sum();
        let parts = self.parts().into_iter().filter(|(_, count)| count.packets > 0);
        let parts: Vec<String> = parts.map(|(name, count)| format!("{} {name}", count.packets)).collect();
        format!("{all} packets: {}", parts.join(", "))
    }

    /// Reason why the capture shows no capacity, if too much of it is left out. Packets of the other direction, of
    /// counted flows at other interfaces, and of interfaces that the user did not choose are no objection.
    pub(super) fn objection(&self) -> Option<String> {
        let all: u64 = self.parts().iter().map(|(_, count)| count.bytes).sum();
        let share = |count: Count| count.bytes as f64 / all.max(1) as f64;
        let judged = self.parts().into_iter().skip(if self.is_asked { 4 } else { 3 });
        let (name, most) = judged.max_by(|one, other| share(one.1).total_cmp(&share(other.1)))?;
        (share(most) > LEFT_OUT).then(|| format!("{:.1} % of the bytes are {name}", 100.0 * share(most)))
    }
}
