//! Traces how the firewall handles packets of a link. Packets are marked for tracing (`meta nftrace set 1`), and the
//! kernel reports each nftables rule that a marked packet traverses. Firewalls of `iptables-nft` are nftables too;
//! firewalls of `iptables-legacy` report nothing.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;

use nix::libc;

use super::nftables::{
    AFTER_DSTNAT, ELEMENT, META_IIF, REGISTER, Table, address_is, expression, interface, set,
};
use super::routing::{address, network};
use ackclock_netlink::{Message, Netlink, attributes};

/// Trace of packets from and to the inside of a link. Dropping this value ends the trace.
pub(super) struct Trace {
    reports: Netlink,
    /// Source and destination of each traced packet in the packet's first report, by the kernel's trace number.
    packets: BTreeMap<u32, (IpAddr, IpAddr)>,
    _table: Netlink,
}

/// Report that a packet traverses a rule or reaches the end of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Source and destination address of the traced packet.
    pub(super) packet: (IpAddr, IpAddr),
    pub(super) dropped: bool,
    pub(super) place: Place,
}

/// Firewall rule, or chain whose policy drops packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    family: u8,
    pub(super) table: String,
    pub(super) chain: String,
    /// Kernel's handle of the rule.
    handle: Option<u64>,
}

impl Trace {
    /// Starts tracing packets that come from inside through interface `link`, and packets sent to the inside.
    ///
    /// # Errors
    /// Returns the kernel's error if the kernel refuses the request.
    pub(super) fn begin(link: u32, inside: IpAddr) -> io::Result<Self> {
        let reports = Netlink::netfilter_reports(libc::NFNLGRP_NFTRACE.cast_unsigned())?;
        let table = Table { name: format!("ackclock{link}probe"), link, inside };
        let _table = table.commit(table.traced())?;
        Ok(Self { reports, packets: BTreeMap::new(), _table })
    }

    /// Trace steps reported since the last call.
    pub(super) fn steps(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        let packets = &mut self.packets;
        self.reports.take(|report| steps.extend(step(report, packets)));
        steps
    }
}

impl AsFd for Trace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }
}

impl Table {
    fn traced(&self) -> Vec<Message> {
        let from = |list| interface(list, META_IIF, libc::NFT_CMP_EQ, self.link);
        let from = |list| trace(address_is(from(list), self.source(), self.inside));
        let to = |list| trace(address_is(list, self.destination(), self.inside));
        vec![
            self.chain("from", "filter", (libc::NF_INET_PRE_ROUTING, FIRST)),
            self.rule("from", from),
            // The chain runs after addresses are translated back, and before replies are sent to the link.
            self.chain("to", "filter", (libc::NF_INET_PRE_ROUTING, AFTER_DSTNAT - 1)),
            self.rule("to", to),
            self.chain("own", "filter", (libc::NF_INET_LOCAL_OUT, FIRST)),
            self.rule("own", to),
        ]
    }
}

fn trace(list: Message) -> Message {
    set(list, REGISTER, &[1]).nested(ELEMENT, |it| {
        expression(it, "meta", |data| data.number(2, libc::NFT_META_NFTRACE as u32).number(3, REGISTER))
    })
}

/// Parses a trace report. Only the first report of each chain contains headers.
fn step(report: &[u8], packets: &mut BTreeMap<u32, (IpAddr, IpAddr)>) -> Option<Step> {
    let all = attributes(report.get(4..)?).collect::<BTreeMap<_, _>>();
    let number =
        |kind| all.get(&kind).and_then(|value| <[u8; 4]>::try_from(*value).ok()).map(u32::from_be_bytes);
    let text = |kind| {
        let bytes: &[u8] = all.get(&kind)?;
        Some(String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).into_owned())
    };
    let id = number(ID)?;
    if let Some(packet) = all.get(&NETWORK_HEADER).and_then(|header| ends(header)) {
        packets.entry(id).or_insert(packet);
    }
    let verdict = all.get(&VERDICT).and_then(|nested| attributes(nested).find(|(kind, _)| *kind == 1));
    let verdict = verdict.and_then(|(_, value)| <[u8; 4]>::try_from(value).ok()).map(u32::from_be_bytes);
    let decided = if number(KIND) == Some(BY_POLICY) { number(POLICY) } else { verdict };
    let handle = all.get(&HANDLE).and_then(|value| <[u8; 8]>::try_from(*value).ok()).map(u64::from_be_bytes);
    let family = *report.first()?;
    Some(Step {
        packet: *packets.get(&id)?,
        dropped: decided == Some(libc::NF_DROP as u32),
        place: Place { family, table: text(TABLE)?, chain: text(CHAIN)?, handle },
    })
}

/// Source and destination address of an IP header.
pub(super) fn ends(header: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let (from, to) = match header.first()? >> 4 {
        4 => (12..16, 16..20),
        6 => (8..24, 24..40),
        _ => return None,
    };
    Some((address(header.get(from)?)?, address(header.get(to)?)?))
}

impl Place {
    /// Description of the rule or chain, with the rule as its program prints it if available.
    pub(super) fn describe(&self) -> String {
        let Self { table, chain, .. } = self;
        let family = self.family_name();
        let Some(handle) = self.handle else {
            return format!("policy of chain {chain} in table {family} {table}");
        };
        let number = self.handles().iter().position(|other| *other == handle).map(|index| index + 1);
        let rule =
            number.map_or_else(|| format!("rule with handle {handle}"), |number| format!("rule {number}"));
        let text = match (self.iptables(), number) {
            (Some(program), Some(number)) => {
                output(program, &["-t", table, "-S", chain, &number.to_string()])
            }
            _ => output("nft", &["-a", "list", "chain", family, table, chain]).and_then(|listed| {
                let mark = format!(" # handle {handle}");
                listed.lines().find_map(|line| Some(line.strip_suffix(&mark)?.trim().to_owned()))
            }),
        };
        let text = text.map_or_else(String::new, |text| format!(" ({})", text.trim()));
        format!("{rule} of chain {chain} in table {family} {table}{text}")
    }

    /// Command that lets this rule or chain accept packets from the inside of links, and their replies.
    pub(super) fn remedy(&self, inside: IpAddr, from: bool, to: bool) -> String {
        let Self { table, chain, .. } = self;
        let links = network(inside);
        if table == "firewalld" {
            return format!("sudo firewall-cmd --zone=trusted --add-source={links}");
        }
        let (before, rules, after) = match self.iptables() {
            Some(program) => {
                let table = if table == "filter" { String::new() } else { format!("-t {table} ") };
                let replies = format!("-d {links} -m conntrack --ctstate RELATED,ESTABLISHED");
                let before = format!("sudo {program} {table}-I {chain} ");
                (before, ["-i ackclock+".to_owned(), replies], " -j ACCEPT")
            }
            None => {
                let family = self.family_name();
                let to = match family {
                    "ip" | "ip6" => format!("{family} daddr {links}"),
                    _ => "oifname \"ackclock*\"".to_owned(),
                };
                let replies = format!("{to} ct state related,established");
                let before = format!("sudo nft 'insert rule {family} {table} {chain} ");
                (before, ["iifname \"ackclock*\"".to_owned(), replies], " accept'")
            }
        };
        let needed = rules.iter().zip([from, to]).filter(|(_, needed)| *needed);
        let commands: Vec<String> = needed.map(|(rule, _)| format!("{before}{rule}{after}")).collect();
        commands.join(" && ")
    }

    /// Name of the iptables program that created the table, if any.
    fn iptables(&self) -> Option<&'static str> {
        let program = match i32::from(self.family) {
            libc::NFPROTO_IPV4 => "iptables-nft",
            libc::NFPROTO_IPV6 => "ip6tables-nft",
            _ => return None,
        };
        // iptables cannot change tables that it did not create.
        let is_one = ["filter", "nat", "mangle", "raw", "security"].contains(&self.table.as_str());
        (is_one && output(program, &["-t", &self.table, "-S", &self.chain]).is_some()).then_some(program)
    }

    /// Handles of the chain's rules, in order.
    fn handles(&self) -> Vec<u64> {
        let kind = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | libc::NFT_MSG_GETRULE as u16;
        let request = Message::list(kind, &[self.family, 0, 0, 0]).text(1, &self.table).text(2, &self.chain);
        let mut handles = Vec::new();
        // If the rules cannot be listed, the rule's position stays unknown.
        let _ = Netlink::netfilter().and_then(|mut netlink| {
            netlink.list(request, |rule| {
                let handle = attributes(rule.get(4..).unwrap_or_default()).find(|(kind, _)| *kind == 3);
                handles.extend(handle.and_then(|(_, value)| value.try_into().ok()).map(u64::from_be_bytes));
            })
        });
        handles
    }

    fn family_name(&self) -> &'static str {
        match i32::from(self.family) {
            libc::NFPROTO_IPV4 => "ip",
            libc::NFPROTO_IPV6 => "ip6",
            libc::NFPROTO_INET => "inet",
            libc::NFPROTO_NETDEV => "netdev",
            _ => "bridge",
        }
    }
}

/// Output of a program, if it exists and succeeds.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Hook priority before every firewall and before connection tracking.
const FIRST: i32 = -400;
// Attributes of a report: `enum nft_trace_attributes` of `linux/netfilter/nf_tables.h`.
const TABLE: u16 = 1;
const CHAIN: u16 = 2;
const HANDLE: u16 = 3;
const KIND: u16 = 4;
const VERDICT: u16 = 5;
const ID: u16 = 6;
const NETWORK_HEADER: u16 = 8;
const POLICY: u16 = 16;
/// Kind of a report about the end of a chain.
const BY_POLICY: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_reports_are_no_steps() {
        let mut packets = BTreeMap::new();
        for report in [&[][..], &[2, 0, 0, 0], &[255; 64], &[0; 64]] {
            assert_eq!(step(report, &mut packets), None);
        }
        assert_eq!((ends(&[0x45; 8]), ends(&[0x60; 39]), ends(&[])), (None, None, None));
    }
}
