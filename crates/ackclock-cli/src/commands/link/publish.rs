//! `--publish`: makes servers inside reachable at ports of this machine.

use std::net::{Ipv4Addr, SocketAddr};

use ackclock_live::metrics::parse_address;
use ackclock_live::namespace::{MOST_PORTS, Publish, Way};

use super::forward::port;
use crate::failure::Failure;

/// Ports of one `--publish` option: each an address of the machine, and a port inside.
#[derive(Clone, Debug)]
pub(super) struct Ports(Vec<(SocketAddr, u16)>);

/// Parses the value of `--publish`: a list of `[ADDR:]PORT[:PORT]`.
pub(super) fn parse(text: &str) -> Result<Ports, String> {
    text.split(',').map(|item| one(item.trim())).collect::<Result<_, _>>().map(Ports)
}

fn one(item: &str) -> Result<(SocketAddr, u16), String> {
    if let Some((machine, inside)) = item.split_once('=') {
        return Err(format!("the ports are separated by a colon: {machine}:{inside}"));
    }
    let mut parts = item.rsplitn(2, ':');
    let (last, before) = (parts.next().unwrap_or_default(), parts.next());
    let inside = port(last)?;
    let Some(before) = before else { return Ok(((Ipv4Addr::LOCALHOST, inside).into(), inside)) };
    if let Ok(outside) = before.parse::<u16>() {
        return Ok(((Ipv4Addr::LOCALHOST, port(&outside.to_string())?).into(), inside));
    }
    match before.parse::<SocketAddr>() {
        Ok(at) if at.port() > 0 => Ok((at, inside)),
        // An address with one port is that of both sides: 0.0.0.0:8080.
        _ => match item.parse::<SocketAddr>() {
            Ok(at) => Ok((at, inside)),
            Err(_) if item.contains("localhost") => {
                Err(format!("`{item}`: a port alone is one of localhost: --publish {last}"))
            }
            Err(_) => Err(format!(
                "`{item}` is not PORT, PORT:PORT or ADDR:PORT:PORT, like 8080, 8080:80 or 0.0.0.0:8080:80"
            )),
        },
    }
}

/// Parses the value of `--proxy`: a port, or an address with a port.
pub(super) fn proxy(text: &str) -> Result<SocketAddr, String> {
    let at = parse_address(text).map_err(|error| error.to_string())?;
    if at.port() == 0 { Err("`0` is not a port; write a number from 1 to 65535".to_owned()) } else { Ok(at) }
}

/// Listens at the ports of all `--publish` options, and at that of `--proxy`.
///
/// # Errors
/// Fails with the option if there are too many ports, or if an address is in use or not permitted.
pub(super) fn listen(options: &[Ports], proxy: Option<SocketAddr>) -> Result<Vec<Publish>, Failure> {
    let all: Vec<_> = options.iter().flat_map(|ports| ports.0.iter().copied()).collect();
    if all.len() > MOST_PORTS {
        let number = all.len();
        return Err(Failure::Input(format!("--publish: {number} ports; at most {MOST_PORTS} are published")));
    }
    let open = |option: &str, at: SocketAddr, inside, way| {
        Publish::open(at, inside, way).map_err(|error| Failure::Input(format!("{option}: {at}: {error}")))
    };
    let published = all.into_iter().map(|(at, inside)| open("--publish", at, inside, Way::Link));
    let proxy = proxy.map(|at| open("--proxy", at, at.port(), Way::Beside));
    published.chain(proxy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_in_the_order_of_docker_and_of_this_machine_alone() {
        for (text, at, inside) in [
            ("8080", "127.0.0.1:8080", 8080),
            ("8080:80", "127.0.0.1:8080", 80),
            ("0.0.0.0:8080", "0.0.0.0:8080", 8080),
            ("0.0.0.0:8080:80", "0.0.0.0:8080", 80),
            ("[::1]:8080:80", "[::1]:8080", 80),
            ("[::]:8080", "[::]:8080", 8080),
        ] {
            let Ports(ports) = parse(text).unwrap();
            assert_eq!(ports, [(at.parse().unwrap(), inside)], "{text}");
        }
        assert_eq!(parse("81,82:83").unwrap().0.len(), 2);
    }

    #[test]
    fn a_wrong_port_is_named() {
        for (text, told) in [
            ("0", "`0` is not a port"),
            ("8080:0", "`0` is not a port"),
            ("0:80", "`0` is not a port"),
            ("8080=80", "separated by a colon: 8080:80"),
            ("localhost:8080", "`localhost:8080`: a port alone is one of localhost: --publish 8080"),
            ("http://localhost:8080", "a port alone is one of localhost: --publish 8080"),
            ("70000:80", "`70000:80` is not PORT"),
            ("", "`` is not a port"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
