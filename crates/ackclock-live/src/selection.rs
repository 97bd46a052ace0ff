//! Selection of the flows that cross the link; the packets of all other flows pass beside the link.

use std::net::IpAddr;
use std::str::FromStr;

use crate::parse::{End, Tuple};
use crate::port::Side;

/// Flows that cross the link: those that match `only`, or all without `only`, except those that match `except`.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Flows that cross the link; empty for all flows.
    pub only: Vec<Match>,
    /// Flows that pass beside the link although they match `only`.
    pub except: Vec<Match>,
    /// Ends of a flow whose addresses count.
    pub ends: MatchedEnds,
}

/// Ends of a flow whose address the network of a [`Match`] may contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchedEnds {
    /// The end beyond the link: behind a link is one host, whose address selects nothing.
    #[default]
    Far,
    /// Either end: behind the link are several devices.
    Either,
}

impl Selection {
    /// Whether a packet that arrives from the side `from` crosses the link. A packet without readable addresses matches
    /// nothing.
    pub(crate) fn selects(&self, from: Side, tuple: Option<&Tuple>) -> bool {
        let any = |list: &[Match]| {
            tuple.is_some_and(|tuple| list.iter().any(|one| one.matches(from, tuple, self.ends)))
        };
        (self.only.is_empty() || any(&self.only)) && !any(&self.except)
    }

    /// Whether a port decides which packets cross the link.
    pub(crate) fn depends_on_ports(&self) -> bool {
        self.only.iter().chain(&self.except).any(|one| one.port.is_some())
    }

    /// Whether all flows cross the link.
    pub fn is_everything(&self) -> bool {
        self.only.is_empty() && self.except.is_empty()
    }
}

/// Condition on the flow of a packet: `tcp:5432`, `udp:443`, `10.0.0.0/8`, `[fd00::]/8:443`, `dns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// IP protocol number.
    protocol: Option<u8>,
    /// Network with the flow's end beyond the link, or with either end ([`MatchedEnds`]).
    network: Option<Network>,
    /// Port of either end of the flow.
    port: Option<u16>,
}

/// Range of addresses: an address and the number of its leading bits that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u8,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const DNS: u16 = 53;

impl Match {
    /// Whether a packet that arrives from the side `from` matches.
    pub(crate) fn matches(&self, from: Side, tuple: &Tuple, ends: MatchedEnds) -> bool {
        let (near, far) = match from {
            Side::Radio => (tuple.source, tuple.destination),
            Side::Wired => (tuple.destination, tuple.source),
        };
        let has_ports = matches!(tuple.protocol, TCP | UDP);
        let at = |end: End, port: u16| has_ports && end.port == port;
        self.protocol.is_none_or(|protocol| protocol == tuple.protocol)
            && self.network.is_none_or(|network| {
                network.contains(far.address)
                    || (ends == MatchedEnds::Either && network.contains(near.address))
            })
            && self.port.is_none_or(|port| at(near, port) || at(far, port))
    }
}

impl FromStr for Match {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "dns" {
            return Ok(Self { port: Some(DNS), ..Self::default() });
        }
        let (protocol, place) = match text.split_once(':') {
            Some(("tcp", place)) => (Some(TCP), place),
            Some(("udp", place)) => (Some(UDP), place),
            _ => (None, text),
        };
        if let Some(port) = protocol.and(place.parse().ok()).filter(|port| *port > 0) {
            return Ok(Self { protocol, port: Some(port), network: None });
        }
        let parsed = match place.parse() {
            Ok(network) => Some((network, None)),
            Err(()) => place.rsplit_once(':').and_then(|(network, port)| {
                Some((network.parse().ok()?, Some(port.parse().ok().filter(|port| *port > 0)?)))
            }),
        };
        let (network, port) = parsed.ok_or_else(|| {
            format!("`{text}` matches no flow; write tcp:5432, udp:443, 10.0.0.0/8, 192.0.2.1:80, [fd00::]/8:443 or dns")
        })?;
        Ok(Self { protocol, network: Some(network), port })
    }
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        let differs = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => u128::from(u32::from(own) ^ u32::from(other)) << 96,
            (IpAddr::V6(own), IpAddr::V6(other)) => u128::from(own) ^ u128::from(other),
            _ => return false,
        };
        differs.leading_zeros() >= self.bits.into()
    }
}

/// Parses `10.0.0.0/8`, `10.0.0.1`, `[fd00::]/8` and `[fd00::1]`.
impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let address: IpAddr = match bare {
            Some(bare) => IpAddr::V6(bare.parse().map_err(drop)?),
            None => IpAddr::V4(address.parse().map_err(drop)?),
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(drop))?;
        if bits <= most { Ok(Self { address, bits }) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str) -> End {
        let address: std::net::SocketAddr = text.parse().unwrap();
        End { address: address.ip(), port: address.port() }
    }

    fn crosses(only: &str, except: &str, protocol: u8, far: &str) -> bool {
        crosses_at(MatchedEnds::Far, only, except, protocol, far)
    }

    fn crosses_at(ends: MatchedEnds, only: &str, except: &str, protocol: u8, far: &str) -> bool {
        let list = |text: &str| text.split_whitespace().map(|one| one.parse().unwrap()).collect();
        let selection = Selection { only: list(only), except: list(except), ends };
        let near = if far.starts_with('[') { "[fd01::1]:4000" } else { "10.1.1.1:4000" };
        let up = Tuple { source: end(near), destination: end(far), protocol };
        let down = Tuple { source: up.destination, destination: up.source, protocol };
        let both = [selection.selects(Side::Radio, Some(&up)), selection.selects(Side::Wired, Some(&down))];
        assert_eq!(both[0], both[1], "both directions of a flow go the same way");
        both[0]
    }

    #[test]
    fn a_flow_crosses_if_it_matches_and_is_not_excepted() {
        for (only, except, protocol, far, expected) in [
            ("", "", TCP, "192.0.2.1:80", true),
            ("tcp:5432", "", TCP, "192.0.2.1:5432", true),
            ("tcp:5432", "", UDP, "192.0.2.1:5432", false),
            ("tcp:5432", "", TCP, "192.0.2.1:80", false),
            ("tcp:5432 udp:443", "", UDP, "192.0.2.1:443", true),
            ("tcp:4000", "", TCP, "192.0.2.1:80", true),
            ("dns", "", UDP, "192.0.2.1:53", true),
            ("dns", "", TCP, "192.0.2.1:53", true),
            ("dns", "", 1, "192.0.2.1:53", false),
            ("10.0.0.0/8", "", UDP, "10.9.9.9:1", true),
            ("10.0.0.0/8", "", UDP, "11.0.0.1:1", false),
            ("192.0.2.1", "", TCP, "192.0.2.1:1", true),
            ("192.0.2.1:80", "", TCP, "192.0.2.1:81", false),
            ("udp:192.0.2.0/24:80", "", TCP, "192.0.2.1:80", false),
            ("[fd00::]/8:443", "", UDP, "[fd77::1]:443", true),
            ("[fd00::]/8:443", "", UDP, "[fe80::1]:443", false),
            ("[fd00::]/8", "", TCP, "10.0.0.1:443", false),
            ("[::]/0", "", TCP, "[2001:db8::1]:1", true),
            ("", "dns", UDP, "192.0.2.1:53", false),
            ("", "dns", UDP, "192.0.2.1:80", true),
            ("10.0.0.0/8", "tcp:22", TCP, "10.0.0.1:22", false),
        ] {
            assert_eq!(
                crosses(only, except, protocol, far),
                expected,
                "{only} except {except}: {protocol} {far}"
            );
        }
    }

    #[test]
    fn a_gateway_selects_its_devices_by_address_too() {
        for (only, except, expected) in [
            ("10.1.1.1", "", true),
            ("10.1.1.2", "", false),
            ("192.0.2.1", "", true),
            ("10.1.1.1:80", "", true),
            ("10.1.1.1:81", "", false),
            ("", "10.1.1.0/24", false),
        ] {
            let crosses = crosses_at(MatchedEnds::Either, only, except, TCP, "192.0.2.1:80");
            assert_eq!(crosses, expected, "{only} except {except}");
        }
        assert!(!crosses("10.1.1.1", "", TCP, "192.0.2.1:80"), "the address of the command selects nothing");
    }

    #[test]
    fn a_packet_without_addresses_matches_nothing() {
        let only = Selection { only: vec!["dns".parse().unwrap()], ..Selection::default() };
        assert!(!only.selects(Side::Radio, None) && Selection::default().selects(Side::Radio, None));
    }

    #[test]
    fn what_is_no_match_is_refused_with_examples() {
        for text in [
            "",
            "5432",
            "tcp:",
            "tcp:0",
            "tcp:70000",
            "http",
            "10.0.0.0/33",
            "fd00::/8",
            "[10.0.0.1]",
            "10.0.0.1:x",
            "[fd00::]/129",
        ] {
            let error = text.parse::<Match>().unwrap_err();
            assert!(error.contains("write tcp:5432"), "{text}: {error}");
        }
    }
}
