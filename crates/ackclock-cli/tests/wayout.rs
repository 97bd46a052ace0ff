//! The way out of a link is tried before its command starts: what closes it is named, and the remedy that is told opens it.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use crate::common::real::{LINK, Machine, is_installed, ready};
use crate::common::{Ended, Folder};

/// What closes the way, what is told of it, and whether a download passes once the remedy is applied.
struct Closed {
    name: &'static str,
    program: &'static str,
    by: &'static str,
    told: &'static str,
    /// From where a download must come in then.
    server: &'static str,
}

/// A table of nftables with a chain at a hook and a rule in it.
macro_rules! rule {
    ($hook:literal, $rule:literal) => {
        concat!(
            "nft 'add table inet wall; add chain inet wall gate { type filter hook ",
            $hook,
            " priority 0; }; add rule inet wall gate ",
            $rule,
            "'"
        )
    };
}

const FORWARDING: &str = "echo 1 > /proc/sys/net/ipv4/conf/all/forwarding";

const CASES: [Closed; 9] = [
    Closed {
        name: "policy",
        program: "iptables-nft",
        by: "iptables-nft -P FORWARD DROP",
        told: "do not reach other hosts: its firewall drops their packets: policy of chain FORWARD in table ip filter; ",
        server: Machine::SERVER,
    },
    Closed {
        name: "docker",
        program: "iptables-nft",
        by: "echo 1 > /proc/sys/net/ipv4/conf/all/forwarding; iptables-nft -P FORWARD DROP",
        told: "do not reach other hosts: its firewall drops their packets: policy of chain FORWARD in table ip filter; ",
        server: Machine::SERVER,
    },
    Closed {
        name: "input",
        program: "nft",
        by: "nft 'add table inet wall; add chain inet wall gate { type filter hook input priority 0; policy drop; }'",
        told: "do not reach this machine at 100.64.0.1 or this machine at fdac:6b63:6c6f:636b::6440:1: its firewall drops their packets: policy of chain gate in table inet wall; ",
        server: "$ACKCLOCK_BASE",
    },
    Closed {
        name: "reject",
        program: "nft",
        by: rule!("forward", "reject"),
        told: "do not reach other hosts or other hosts by IPv6: its firewall drops their packets: \
               rule 1 of chain gate in table inet wall (reject); ",
        server: Machine::SERVER,
    },
    Closed {
        name: "carriers",
        program: "iptables-nft",
        by: "iptables-nft -N ts-input; iptables-nft -A INPUT -j ts-input; iptables-nft -A ts-input -s 100.115.92.0/23 -j RETURN; \
             iptables-nft -A ts-input -s 100.64.0.0/10 ! -i tailscale0 -j DROP",
        told: "do not reach this machine at 100.64.0.1: its firewall drops their packets: rule 2 of chain ts-input in table \
               ip filter (-A ts-input -s 100.64.0.0/10 ! -i tailscale0 -j DROP); ",
        server: "$ACKCLOCK_BASE",
    },
    Closed {
        name: "all",
        program: "iptables-nft",
        by: "iptables-nft -t raw -A PREROUTING -s 100.64.0.0/10 -j DROP",
        told: "do not reach this machine at 100.64.0.1 or other hosts: its firewall drops their packets: \
               rule 1 of chain PREROUTING in table ip raw (-A PREROUTING -s 100.64.0.0/10 -j DROP); ",
        server: Machine::SERVER,
    },
    Closed {
        name: "answers",
        program: "iptables-nft",
        by: "echo 1 > /proc/sys/net/ipv4/conf/all/forwarding; iptables-nft -A FORWARD -d 100.64.0.0/10 -j DROP",
        told: "do not reach other hosts: its firewall drops the answers: rule 1 of chain FORWARD in table ip filter \
               (-A FORWARD -d 100.64.0.0/10 -j DROP); ",
        server: Machine::SERVER,
    },
    Closed {
        name: "policy-routing",
        program: "ip",
        by: "ip rule add pref 100 from 100.64.0.0/10 blackhole",
        told: "do not reach this machine at 100.64.0.1 or other hosts: rule 100 of `ip rule` refuses their packets (blackhole); ",
        server: Machine::SERVER,
    },
    Closed {
        name: "six",
        program: "ip6tables-nft",
        by: "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding; ip6tables-nft -P FORWARD DROP",
        told: "do not reach other hosts by IPv6: its firewall drops their packets: policy of chain FORWARD in table ip6 filter; ",
        server: Machine::SERVER6,
    },
];

#[test]
fn what_closes_the_way_out_is_named_and_the_remedy_opens_it() {
    let Some(folder) = ready(&["python3", "ip"]) else { return };
    for case in CASES {
        if !is_installed(case.program) {
            eprintln!("skipped: {}: {} is not installed", case.name, case.program);
            continue;
        }
        let Some(machine) = Machine::new(case.name, &folder) else { return };
        closed_and_opened(&case, &machine, &folder);
    }
}

fn closed_and_opened(case: &Closed, machine: &Machine, folder: &Folder) {
    let runs = |script: &str| Ended::from(machine.command(script, folder).output().unwrap());
    let Closed { name, by, told, server, .. } = case;
    assert_eq!(runs(by).status, 0, "{name}");
    let told_of = runs(&format!("{LINK} true"));
    let (begins, remedy) = told_of.err.rsplit_once(": ").unwrap_or_else(|| panic!("{name}: {}", told_of.err));
    assert!(begins.contains(told) && told_of.err.lines().count() == 1, "{name}: {}", told_of.err);
    let closed = LINK.replace("link ", "link --closed ");
    assert_eq!(runs(&format!("{closed} true")).err, "", "{name}");
    let opened = runs(&format!("sudo() {{ \"$@\"; }}; {remedy}"));
    assert_eq!((opened.status, opened.err.as_str()), (0, ""), "{name}: {remedy}");
    let download = format!("{LINK} sh -c 'exec python3 client.py {server}'");
    let mut serving = machine.serve(300_000, folder);
    let ended = runs(&download);
    serving.kill().unwrap();
    serving.wait().unwrap();
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("300000\n", ""), "{name}: {remedy}");
}

#[test]
fn a_way_that_is_open_or_leads_to_silence_is_not_complained_of() {
    let Some(folder) = ready(&["python3", "ip"]) else { return };
    let Some(machine) = Machine::new("silent", &folder) else { return };
    let runs = |script: &str| Ended::from(machine.command(script, &folder).output().unwrap());
    let json = LINK.replace("link ", "link --json ");
    // A gateway that is not there, and none at all.
    for change in ["true", "ip route replace default via 10.78.0.9", "ip route del default"] {
        assert_eq!(runs(change).status, 0);
        let ended = runs(&format!("{json} true"));
        assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{change}");
    }
}

#[test]
fn no_packet_of_the_trial_enters_the_link() {
    let Some(folder) = ready(&["python3", "ip"]) else { return };
    let Some(machine) = Machine::new("clean", &folder) else { return };
    assert_eq!(Ended::from(machine.command(FORWARDING, &folder).output().unwrap()).status, 0);
    let json = LINK.replace("link ", "link --json ");
    let ended = Ended::from(machine.command(&format!("{json} sleep 0.3"), &folder).output().unwrap());
    let results = crate::common::real::last_object(&ended.out);
    // The kernel of the router reports its multicast groups (MLD) in a packet that is in the row `other`; it may still
    // be queued at the end.
    let flows = results["flows"].as_array().unwrap();
    let is_report = |flow: &serde_json::Value| {
        flow["protocol"] == "other" && (flow["delivered_bytes"] == 76 || flow["delivered_bytes"] == 0)
    };
    assert!(flows.iter().all(is_report), "{}", ended.out);
}
