//! Which way the fragments of a datagram go: only the first fragment has ports, so the rest follow it by identification.
//!
//! The table is bounded against hostile peers: a source keeps at most [`PER_SOURCE`] datagrams and the table at most
//! [`MOST`], so a flood of first fragments displaces the flood's own datagrams first.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ackclock_core::{Span, Time};

use crate::parse::Datagram;

/// Maximum number of datagrams in the table, and maximum number of datagrams from one source.
const MOST: usize = 4096;
const PER_SOURCE: usize = 256;
/// Time after which receivers give up the missing fragments of a datagram (RFC 8200 section 4.5 says 60 s; RFC 791
/// section 3.2 allows less).
const LIFETIME: Span = Span::from_secs(60);

/// Table of the datagrams whose first fragment was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fragments {
    /// Age number, time of the first fragment, and whether the datagram crosses the link.
    datagrams: BTreeMap<Datagram, (u64, Time, bool)>,
    /// Datagrams in order of age.
    ages: BTreeMap<u64, Datagram>,
    next_age: u64,
}

impl Fragments {
    /// Records whether the datagram of a first fragment crosses the link.
    pub(crate) fn on_first(&mut self, now: Time, datagram: Datagram, crosses: bool) {
        self.remove(datagram);
        if let Some(displaced) = self.displaced(datagram.source) {
            self.remove(displaced);
        }
        self.datagrams.insert(datagram, (self.next_age, now, crosses));
        self.ages.insert(self.next_age, datagram);
        self.next_age += 1;
    }

    /// Whether the datagram of a later fragment crosses the link; `None` if its first fragment was not seen.
    pub(crate) fn crosses(&self, now: Time, datagram: &Datagram) -> Option<bool> {
        let &(_, at, crosses) = self.datagrams.get(datagram)?;
        (now.since(at) < LIFETIME).then_some(crosses)
    }

    fn remove(&mut self, datagram: Datagram) {
        if let Some((age, ..)) = self.datagrams.remove(&datagram) {
            self.ages.remove(&age);
        }
    }

    /// Datagram that makes room for a new one from this source, if room is needed.
    fn displaced(&self, source: IpAddr) -> Option<Datagram> {
        let zero = match source {
            IpAddr::V4(_) => IpAddr::from([0; 4]),
            IpAddr::V6(_) => IpAddr::from([0; 16]),
        };
        let from = Datagram { source, destination: zero, protocol: 0, identification: 0 };
        let own = || self.datagrams.range(from..).take_while(|(datagram, _)| datagram.source == source);
        if own().count() >= PER_SOURCE {
            return own().min_by_key(|(_, (age, ..))| *age).map(|(datagram, _)| *datagram);
        }
        let oldest = self.ages.first_key_value().map(|(_, datagram)| *datagram);
        oldest.filter(|_| self.datagrams.len() >= MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(source: u32, identification: u32) -> Datagram {
        let [source, destination] = [source, 1].map(|number| IpAddr::from(number.to_be_bytes()));
        Datagram { source, destination, protocol: 17, identification }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn the_rest_follow_the_first_until_its_receiver_gives_up() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.crosses(at(0), &datagram(7, 1)), None);
        fragments.on_first(at(0), datagram(7, 1), true);
        fragments.on_first(at(0), datagram(7, 2), false);
        assert_eq!(fragments.crosses(at(59), &datagram(7, 1)), Some(true));
        assert_eq!(fragments.crosses(at(59), &datagram(7, 2)), Some(false));
        assert_eq!(fragments.crosses(at(60), &datagram(7, 1)), None);
        // The identification is used again by another datagram.
        fragments.on_first(at(60), datagram(7, 1), false);
        assert_eq!(fragments.crosses(at(61), &datagram(7, 1)), Some(false));
        assert_eq!((fragments.datagrams.len(), fragments.ages.len()), (2, 2));
    }

    #[test]
    fn a_flood_from_one_source_displaces_its_own_and_many_sources_the_oldest() {
        let mut fragments = Fragments::default();
        fragments.on_first(at(0), datagram(7, 1), true);
        for number in 0..100_000 {
            fragments.on_first(at(1), datagram(8, number), false);
        }
        assert_eq!(fragments.crosses(at(1), &datagram(7, 1)), Some(true));
        assert_eq!(fragments.crosses(at(1), &datagram(8, 99_999)), Some(false));
        assert_eq!(fragments.datagrams.len(), 1 + PER_SOURCE);
        for source in 1000..10_000 {
            fragments.on_first(at(2), datagram(source, 0), false);
        }
        assert_eq!((fragments.datagrams.len(), fragments.ages.len()), (MOST, MOST));
        assert_eq!(fragments.crosses(at(2), &datagram(7, 1)), None);
    }
}
