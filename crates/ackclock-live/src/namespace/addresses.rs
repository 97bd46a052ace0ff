//! Addresses for the two ends of a link that do not conflict with other addresses on the machine.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A range of addresses: first address and prefix length.
pub(crate) type Prefix = (Ipv4Addr, u8);

/// Addresses of the two ends of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Address of the end on the wired side; programs inside find it in `$ACKCLOCK_BASE`.
    pub base: Ipv4Addr,
    /// Address of the end on the mobile side.
    pub inside: Ipv4Addr,
}

impl Pair {
    /// Address of the router between the two ends, if the link has one: the router answers when a packet's TTL expires.
    pub(crate) fn router(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.inside) + 1)
    }

    /// Addresses of a link in a network of four addresses: the ends have addresses 1 and 2, the router address 3.
    fn of(network: u32) -> Self {
        Self { base: Ipv4Addr::from(network + 1), inside: Ipv4Addr::from(network + 2) }
    }
}

/// IPv6 address of an end of a link: a unique local prefix (RFC 4193) followed by the IPv4 address.
pub(crate) fn v6(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets();
    let pair = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0xfdac, 0x6b63, 0x6c6f, 0x636b, 0, 0, pair(a, b), pair(c, d))
}

/// Address pair that no route covers, with its number in the list of all pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Number of the pair in the list.
    pub(crate) number: u32,
    /// Addresses of the two ends of the link.
    pub(crate) pair: Pair,
}

/// Address ranges to search: the shared address space of carriers (RFC 6598), like mahimahi, then the range for
/// benchmarks (RFC 2544).
const RANGES: [Prefix; 2] = [(Ipv4Addr::new(100, 64, 0, 0), 16), (Ipv4Addr::new(198, 18, 0, 0), 16)];
const NETWORK_BITS: u8 = 30;
const NETWORK: u32 = 1 << (32 - NETWORK_BITS);

/// All address pairs that no route covers.
pub(crate) fn free(routed: &[Prefix]) -> impl Iterator<Item = Candidate> + '_ {
    let networks = RANGES.iter().flat_map(|&(first, bits)| {
        (0..1 << (NETWORK_BITS - bits)).map(move |n| Ipv4Addr::from(u32::from(first) + n * NETWORK))
    });
    let numbered = (0..).zip(networks);
    numbered
        .filter(|&(_, network)| !routed.iter().any(|&route| overlap(route, (network, NETWORK_BITS))))
        .map(|(number, network)| Candidate { number, pair: Pair::of(network.into()) })
}

/// Routed parts of the address ranges, by network. Links nested inside cannot see the routes outside, but must not use
/// the routed addresses.
pub(crate) fn beyond(routed: &[Prefix]) -> BTreeSet<Prefix> {
    let within = routed.iter().filter(|route| RANGES.iter().any(|range| overlap(**route, *range)));
    within.map(|&(address, bits)| network(address, bits.min(NETWORK_BITS))).collect()
}

fn network(address: Ipv4Addr, bits: u8) -> Prefix {
    (Ipv4Addr::from(u32::from(address) & u32::MAX << (32 - bits)), bits)
}

/// Whether two prefixes overlap. Default routes are ignored, and so are the two half-routes that a VPN uses instead of
/// a default route.
fn overlap(a: Prefix, b: Prefix) -> bool {
    let bits = a.1.min(b.1);
    bits > 1 && network(a.0, bits) == network(b.0, bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(routed: &[Prefix]) -> Option<(u32, Ipv4Addr)> {
        free(routed).next().map(|candidate| (candidate.number, candidate.pair.base))
    }

    #[test]
    fn a_pair_is_free_where_no_route_covers_it_or_lies_in_it() {
        let carriers = Ipv4Addr::new(100, 64, 0, 0);
        assert_eq!(first(&[]), Some((0, Ipv4Addr::new(100, 64, 0, 1))));
        assert_eq!(first(&[(Ipv4Addr::new(100, 64, 0, 2), 32)]), Some((1, Ipv4Addr::new(100, 64, 0, 5))));
        assert_eq!(first(&[(Ipv4Addr::new(100, 64, 0, 4), 30)]).unwrap().0, 0);
        // 65536 addresses are 16384 networks of four addresses: the entire first range.
        assert_eq!(first(&[(carriers, 10)]), Some((16384, Ipv4Addr::new(198, 18, 0, 1))));
        assert_eq!(first(&[(carriers, 10), (Ipv4Addr::new(198, 18, 0, 0), 15)]), None);
    }

    #[test]
    fn a_default_route_in_two_halves_takes_no_pair() {
        let halves = [(Ipv4Addr::UNSPECIFIED, 1), (Ipv4Addr::new(128, 0, 0, 0), 1)];
        assert_eq!(first(&halves).unwrap().0, 0);
        assert!(beyond(&halves).is_empty());
    }

    #[test]
    fn links_inside_are_told_of_what_is_routed_in_the_ranges_alone() {
        let routed = [
            (Ipv4Addr::new(10, 0, 0, 0), 8),
            (Ipv4Addr::new(100, 64, 0, 1), 32),
            (Ipv4Addr::new(100, 64, 0, 2), 32),
            (Ipv4Addr::new(198, 18, 0, 0), 15),
        ];
        let expected = [(Ipv4Addr::new(100, 64, 0, 0), 30), (Ipv4Addr::new(198, 18, 0, 0), 15)];
        assert!(beyond(&routed).into_iter().eq(expected));
    }

    #[test]
    fn the_ipv6_addresses_are_local_ones() {
        let pair = Pair::of(u32::from(Ipv4Addr::new(100, 64, 0, 0)));
        assert_eq!(v6(pair.base).to_string(), "fdac:6b63:6c6f:636b::6440:1");
    }
}
