//! Routing decisions of this machine, and the rules that refuse packets from inside a link.

use std::io;
use std::net::{IpAddr, Ipv6Addr};

use nix::libc;

use crate::namespace::interface::{Interface, octets};
use ackclock_netlink::{Message, Netlink, attributes};

/// Gateway for this machine's own packets to an address; `None` for an address in a directly connected network.
///
/// # Errors
/// Fails if the machine itself has no route to the address.
pub(super) fn gateway(to: IpAddr) -> io::Result<Option<IpAddr>> {
    let route = Netlink::route()?.ask(get_route(to))?;
    let mut found = attributes(route.get(BODY..).unwrap_or_default());
    Ok(found.find(|(kind, _)| *kind == libc::RTA_GATEWAY).and_then(|(_, value)| address(value)))
}

/// Reason why the machine does not route a packet from inside or the machine's own answer, with a remedy; `None` if the
/// packet is routed.
pub(super) fn refusal(from: IpAddr, to: IpAddr, link: &Interface, way: Heading) -> Option<String> {
    let comes_in = way == Heading::Outside;
    let inside = if comes_in { from } else { to };
    let mut request = get_route(to).attribute(libc::RTA_SRC, &octets(from));
    if comes_in {
        request = request.attribute(libc::RTA_IIF, &link.index.to_ne_bytes());
    }
    let error = Netlink::route().and_then(|mut netlink| netlink.ask(request)).err()?;
    let name = &link.name;
    let input = if comes_in { format!(" iif {name}") } else { String::new() };
    let Some(rule) = refusing_rule(from, to, comes_in.then_some(name)) else {
        return Some(format!(
            "this machine has no route for their packets ({error}); see: ip route get {to} from {from}{input}"
        ));
    };
    let Refusing { priority, action } = rule;
    let ip = if from.is_ipv6() { "ip -6 rule" } else { "ip rule" };
    let (before, links) = (priority.saturating_sub(1), network(inside));
    Some(format!(
        "rule {priority} of `{ip}` refuses their packets ({action}); to go before it: \
         sudo {ip} add iif {name} lookup main pref {before} && sudo {ip} add to {links} lookup main pref {before}"
    ))
}

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    /// The packet is sent from inside to the machine or beyond.
    Outside,
    /// The packet is sent from the machine to the inside.
    Inside,
}

/// Network that contains the addresses of all links that use one address range.
pub(super) fn network(of_link: IpAddr) -> String {
    match of_link {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            format!("{a}.{b}.0.0/16")
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

/// A policy routing rule that refuses packets.
struct Refusing {
    priority: u32,
    action: &'static str,
}

/// First policy routing rule that refuses a packet between the given addresses. Rules that refer to a routing table are
/// skipped, because the kernel's error already reports their result.
fn refusing_rule(from: IpAddr, to: IpAddr, link: Option<&String>) -> Option<Refusing> {
    let mut first: Option<Refusing> = None;
    let mut body = [0; BODY];
    body[0] = family(from);
    let listed = Netlink::route().and_then(|mut netlink| {
        netlink.list(Message::list(libc::RTM_GETRULE, &body), |rule| {
            if let Some(found) = refusing(rule, from, to, link)
                && first.as_ref().is_none_or(|first| found.priority < first.priority)
            {
                first = Some(found);
            }
        })
    });
    listed.ok().and(first)
}

fn refusing(rule: &[u8], from: IpAddr, to: IpAddr, link: Option<&String>) -> Option<Refusing> {
    let [_, to_bits, from_bits, _, _, _, _, action, ..] = *rule else { return None };
    let action = ACTIONS.iter().find(|(number, _)| *number == action)?.1;
    let mut priority = 0;
    for (kind, value) in attributes(rule.get(BODY..).unwrap_or_default()) {
        let fits = match kind {
            FRA_DST => begins(&octets(to), value, to_bits),
            FRA_SRC => begins(&octets(from), value, from_bits),
            FRA_IIFNAME => value.strip_suffix(&[0]) == link.map(|name| name.as_bytes()),
            // Rules for packet marks and outgoing interfaces do not match the tested packets.
            FRA_FWMARK | FRA_OIFNAME => false,
            _ => true,
        };
        if !fits {
            return None;
        }
        if kind == FRA_PRIORITY {
            priority = value.try_into().map_or(0, u32::from_ne_bytes);
        }
    }
    Some(Refusing { priority, action })
}

/// Whether the first `bits` bits of two addresses are equal.
fn begins(address: &[u8], with: &[u8], bits: u8) -> bool {
    (0..usize::from(bits)).all(|bit| {
        let of = |bytes: &[u8]| bytes.get(bit / 8).map(|byte| byte >> (7 - bit % 8) & 1);
        of(address) == of(with)
    })
}

fn get_route(to: IpAddr) -> Message {
    let mut body = [0; BODY];
    body[0] = family(to);
    let to = octets(to);
    body[1] = 8 * to.len() as u8;
    Message::new(libc::RTM_GETROUTE, 0, &body).attribute(libc::RTA_DST, &to)
}

fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

/// Converts an address from netlink's format.
pub(super) fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    }
}

/// Length in bytes of the fixed part of a message about a route or a rule (`linux/rtnetlink.h`, `linux/fib_rules.h`).
const BODY: usize = 12;
/// Rule actions that refuse a packet, with their names.
const ACTIONS: [(u8, &str); 3] = [(6, "blackhole"), (7, "unreachable"), (8, "prohibit")];
const FRA_DST: u16 = 1;
const FRA_SRC: u16 = 2;
const FRA_IIFNAME: u16 = 3;
const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
const FRA_OIFNAME: u16 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_compared_bit_by_bit() {
        let carriers = [100, 64, 0, 0];
        assert!(begins(&[100, 127, 1, 2], &carriers, 10));
        assert!(!begins(&[100, 128, 1, 2], &carriers, 10));
        assert!(begins(&[1, 2, 3, 4], &[], 0));
        assert!(!begins(&[100, 64, 0, 1], &carriers, 32));
    }

    #[test]
    fn malformed_rules_refuse_nothing() {
        let [from, to] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        assert!(refusing(&[2; 7], from, to, None).is_none());
        assert!(refusing(&[2, 0, 32, 0, 0, 0, 0, 6, 0, 0, 0, 0, 5, 0, 2, 0, 9], from, to, None).is_none());
    }
}
