//! `--forward`: makes servers of this machine reachable at the loopback address inside the link.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use ackclock_live::namespace::{Forward, MOST_PORTS, World};

use crate::failure::Failure;
use crate::output;

/// Ports of one `--forward` option.
#[derive(Clone, Debug)]
pub(super) struct Ports(Vec<Forward>);

/// Parses the value of `--forward`: a list of `[ADDR:]PORT[=PORT]` and `FIRST-LAST`.
pub(super) fn parse(text: &str) -> Result<Ports, String> {
    let lists = text.split(',').map(|item| ports(item.trim()));
    Ok(Ports(lists.collect::<Result<Vec<_>, _>>()?.concat()))
}

fn ports(item: &str) -> Result<Vec<Forward>, String> {
    let item = if item.contains("://") { item.trim_end_matches('/') } else { item };
    if let Some((first, last)) = item.split_once('-') {
        return Ok(range(first, last)?.map(|port| Forward::loopback(port, port)).collect());
    }
    let (server, inside) = item.split_once('=').unwrap_or((item, item.rsplit(':').next().unwrap_or(item)));
    let inside = port(inside)?;
    Ok(vec![match server.rsplit_once(':') {
        None => Forward::loopback(inside, port(server)?),
        Some((_, number)) => {
            port(number)?;
            let address: SocketAddr = server.parse().map_err(|_| no_address(server, number))?;
            Forward { inside, servers: vec![address] }
        }
    }])
}

/// Answers a server that is not written as an address with a port.
fn no_address(server: &str, port: &str) -> String {
    let host = server.strip_suffix(port).map_or(server, |host| host.trim_end_matches(':'));
    if host.rsplit('/').next() == Some("localhost") {
        return format!("`{server}`: a port alone is one of localhost: --forward {port}");
    }
    format!("`{server}` is not an address and a port, like 192.0.2.1:80 or [2001:db8::1]:80")
}

/// Parses a port, which is not 0.
pub(super) fn port(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|port| *port > 0);
    number.ok_or_else(|| format!("`{text}` is not a port; write a number from 1 to 65535"))
}

fn range(first: &str, last: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = (port(first)?, port(last)?);
    if first > last {
        return Err(format!("the range {first}-{last} is empty; write {last}-{first}"));
    }
    Ok(first..=last)
}

/// Returns the ports of all `--forward` options.
///
/// # Errors
/// Fails if a port inside the link is forwarded twice, or if there are too many ports.
pub(super) fn all(options: &[Ports]) -> Result<Vec<Forward>, Failure> {
    let all: Vec<Forward> = options.iter().flat_map(|ports| ports.0.clone()).collect();
    let mut ports: Vec<u16> = all.iter().map(|forward| forward.inside).collect();
    ports.sort_unstable();
    if let Some(pair) = ports.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::Input(format!("--forward: port {} inside is forwarded twice", pair[0])));
    }
    if all.len() > MOST_PORTS {
        let number = all.len();
        return Err(Failure::Input(format!("--forward: {number} ports; at most {MOST_PORTS} are forwarded")));
    }
    Ok(all)
}

/// Reports the congestion control with which forwarded servers send their replies.
pub(super) fn say_congestion_control(world: &World) {
    if let Some(name) = world.forwarding_congestion_control() {
        output::remark(&format!(
            "--forward: ackclock's relay sends what the machine's servers answer, with this machine's congestion control, {name}"
        ));
    }
}

/// Reports how to reach the machine's servers if connections of the command were refused. Connections to published ports are
/// those of ackclock's relay.
pub(super) fn say_refused(world: &World, forwards: &[Forward], published: &[u16]) {
    let forwarded =
        forwards.iter().zip(world.used_ports()).filter(|(_, used)| *used).map(|(forward, _)| forward.inside);
    let used: Vec<u16> = forwarded.chain(published.iter().copied()).collect();
    let refused: Vec<(SocketAddr, u64)> = world.refusals().collect();
    hints(&refused, forwards, &used).iter().for_each(|hint| output::remark(hint));
}

/// Maximum number of refused addresses for which hints are printed.
const MOST_HINTS: usize = 3;

fn hints(refused: &[(SocketAddr, u64)], forwards: &[Forward], used: &[u16]) -> Vec<String> {
    let is_forwarded = |port| forwards.iter().any(|forward| forward.inside == port);
    // Clients that connect to `localhost` try its IPv4 and its IPv6 address.
    let has_both = |at: &SocketAddr| {
        at.is_ipv6() && refused.iter().any(|(other, _)| other.is_ipv4() && other.port() == at.port())
    };
    let told = refused.iter().filter(|(at, _)| !has_both(at) && !used.contains(&at.port()));
    let hint = |(at, count): &(SocketAddr, u64)| {
        let connects = if *count == 1 { "1 connect".to_owned() } else { format!("{count} connects") };
        let were = if *count == 1 { "was" } else { "were" };
        let port = at.port();
        let remedy = if is_forwarded(port) {
            format!("a forwarded port is reached at 127.0.0.1:{port} or localhost:{port}")
        } else {
            format!("--forward {port} brings the machine's server inside")
        };
        format!("{connects} to {at} inside {were} refused; {remedy}")
    };
    told.take(MOST_HINTS).map(hint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(u16, Vec<String>)> {
        let named =
            |forward: Forward| (forward.inside, forward.servers.iter().map(SocketAddr::to_string).collect());
        parse(text).unwrap().0.into_iter().map(named).collect()
    }

    #[test]
    fn a_port_stands_for_both_loopback_addresses_of_the_machine() {
        let both = |port: u16| vec![format!("127.0.0.1:{port}"), format!("[::1]:{port}")];
        assert_eq!(parsed("8080"), [(8080, both(8080))]);
        assert_eq!(parsed("8080=80, 5173"), [(80, both(8080)), (5173, both(5173))]);
        assert_eq!(parsed("3000-3002"), [3000, 3001, 3002].map(|port| (port, both(port))));
        assert_eq!(parsed("[::1]:81=82"), [(82, vec!["[::1]:81".to_owned()])]);
        assert_eq!(parsed("10.0.0.1:81"), [(81, vec!["10.0.0.1:81".to_owned()])]);
    }

    #[test]
    fn a_wrong_port_is_named() {
        for (text, named) in [
            ("0", "`0`"),
            ("65536", "`65536`"),
            ("80=0", "`0`"),
            ("", "``"),
            ("3-1", "1-3"),
            ("localhost:80", "`localhost:80`: a port alone is one of localhost: --forward 80"),
            ("http://localhost:80/", "--forward 80"),
            ("https://localhost:81=82", "--forward 81"),
            ("example.org:80", "`example.org:80` is not an address and a port"),
            ("::1:80", "`::1:80`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
        let twice = all(&[parse("80").unwrap(), parse("81=80").unwrap()]).unwrap_err();
        assert!(twice.message().unwrap().contains("port 80"));
        assert!(all(&[parse("1-64").unwrap()]).is_ok());
        assert!(all(&[parse("1-65").unwrap()]).unwrap_err().message().unwrap().contains("65 ports"));
    }

    #[test]
    fn a_hint_names_the_option_once_a_port() {
        let at = |text: &str, count| (text.parse().unwrap(), count);
        let refused = [at("127.0.0.1:8010", 3), at("[::1]:8010", 3), at("[::1]:9000", 1)];
        assert_eq!(
            hints(&refused, &[], &[]),
            [
                "3 connects to 127.0.0.1:8010 inside were refused; --forward 8010 brings the machine's server inside",
                "1 connect to [::1]:9000 inside was refused; --forward 9000 brings the machine's server inside"
            ]
        );
        let forwards = [Forward::loopback(9000, 9000)];
        assert!(hints(&refused[2..], &forwards, &[]).concat().contains("reached at 127.0.0.1:9000"));
        assert!(hints(&refused[2..], &forwards, &[9000]).is_empty());
    }
}
