//! IP networks, written as a prefix.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

/// An IP network: the addresses that share the first bits of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct Prefix {
    address: IpAddr,
    bits: u32,
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a network, as 192.0.2.0/24 or 2001:db8::/56");
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits <= most { Ok(Self { address, bits }) } else { Err(wrong()) }
    }
}

crate::text_value!(Prefix);

impl Prefix {
    /// Whether this is an IPv4 network.
    pub const fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// Returns the first address of the network, an IPv4 address as IPv4-mapped IPv6 address, and the length of the
    /// prefix of this IPv6 address.
    pub fn mapped(&self) -> (Ipv6Addr, u32) {
        match self.address {
            IpAddr::V4(address) => leading(address.to_ipv6_mapped(), self.bits + 96),
            IpAddr::V6(address) => leading(address, self.bits),
        }
    }

    /// Whether an address belongs to the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let shared = |a: u128, b: u128, width: u32| (a ^ b).checked_shr(width - self.bits).unwrap_or(0) == 0;
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => shared(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => shared(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

fn leading(address: Ipv6Addr, bits: u32) -> (Ipv6Addr, u32) {
    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
    (Ipv6Addr::from_bits(address.to_bits() & mask), bits)
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_network_is_a_network_of_mapped_addresses() {
        let mapped = |text: &str| text.parse::<Prefix>().map(|prefix| prefix.mapped());
        assert_eq!(mapped("192.0.2.77/24"), Ok(("::ffff:192.0.2.0".parse().unwrap(), 120)));
        assert_eq!(mapped("192.0.2.77"), Ok(("::ffff:192.0.2.77".parse().unwrap(), 128)));
        assert_eq!(mapped("2001:db8:1:2:3::/64"), Ok(("2001:db8:1:2::".parse().unwrap(), 64)));
        assert_eq!(mapped("::/0"), Ok(("::".parse().unwrap(), 0)));
    }
}
