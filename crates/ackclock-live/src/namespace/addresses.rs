//! Addresses for the two ends of a link that collide with nothing on the machine.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::interface::{Prefix, routed};

/// The addresses of the two ends of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The end on the wired side; programs inside find it in `$ACKCLOCK_BASE`.
    pub base: Ipv4Addr,
    /// The end on the mobile side.
    pub inside: Ipv4Addr,
}

impl Pair {
    /// The address of the router between the two ends, where there is one: it answers when a packet's hops run out.
    pub(crate) fn router(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.inside) + 1)
    }

    /// Addresses 1 and 2 of a network of four; 3 is the router's.
    fn of(network: u32) -> Self {
        Self { base: Ipv4Addr::from(network + 1), inside: Ipv4Addr::from(network + 2) }
    }
}

/// The IPv6 address of an end of a link: a unique local prefix (RFC 4193) with the IPv4 address behind it.
pub(crate) fn v6(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets();
    let pair = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0xfdac, 0x6b63, 0x6c6f, 0x636b, 0, 0, pair(a, b), pair(c, d))
}

/// A pair that nobody else has while this lives: the kernel frees the claim with the process.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The addresses.
    pub(crate) pair: Pair,
    /// A socket whose name stands for the pair.
    _socket: UnixDatagram,
}

/// Where pairs are sought: the shared address space of carriers (RFC 6598), as mahimahi does, then the one for
/// benchmarks (RFC 2544). The upper bits, and how many networks of four are tried.
const RANGES: [(u32, u32); 2] = [(0x6440_0000, 1 << 14), (0xc612_0000, 1 << 14)];
const NETWORK: u32 = 4;
const NETWORK_BITS: u8 = 30;

/// Claims the first pair that no route of the calling thread's namespace covers.
///
/// # Errors
/// Where routes cannot be read, or cover everything.
pub(crate) fn claim() -> io::Result<Claim> {
    let taken = routed()?;
    let networks = RANGES.iter().flat_map(|&(first, count)| (0..count).map(move |n| first + n * NETWORK));
    for network in networks.filter(|&network| !collides(network, &taken)) {
        match hold(Pair::of(network)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            outcome => return outcome,
        }
    }
    Err(io::Error::other("every address of 100.64.0.0/16 and 198.18.0.0/16 is routed somewhere already"))
}

/// Binds an abstract name: such names are kept by network namespace and vanish with the socket.
fn hold(pair: Pair) -> io::Result<Claim> {
    let name = SocketAddr::from_abstract_name(format!("ackclock/{}", pair.base))?;
    Ok(Claim { pair, _socket: UnixDatagram::bind_addr(&name)? })
}

fn collides(network: u32, taken: &[Prefix]) -> bool {
    taken.iter().any(|&(address, length)| {
        let shared = length.min(NETWORK_BITS);
        length > 0 && (u32::from(address) ^ network) >> (32 - u32::from(shared)) == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_collides_with_a_route_that_covers_it_and_one_that_lies_in_it() {
        let network = u32::from(Ipv4Addr::new(100, 64, 0, 4));
        for (route, length, expected) in [
            ([100, 64, 0, 0], 10, true),
            ([100, 64, 0, 6], 32, true),
            ([100, 64, 0, 8], 30, false),
            ([0, 0, 0, 0], 0, false),
            ([192, 168, 0, 0], 16, false),
        ] {
            assert_eq!(collides(network, &[(route.into(), length)]), expected, "{route:?}/{length}");
        }
    }

    #[test]
    fn two_claims_are_two_pairs() {
        let first = claim().unwrap();
        assert_ne!(first.pair, claim().unwrap().pair);
    }

    #[test]
    fn the_ipv6_addresses_are_local_ones() {
        let pair = Pair::of(u32::from(Ipv4Addr::new(100, 64, 0, 0)));
        assert_eq!(v6(pair.base).to_string(), "fdac:6b63:6c6f:636b::6440:1");
    }
}
