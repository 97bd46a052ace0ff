//! Name resolution inside a link, even if the machine's resolver is unreachable from inside. The resolver may be on the
//! machine's loopback address, behind one of its interfaces, or at an IPv6 address although the link has no IPv6.

use std::fs::{self, Permissions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::net::if_::if_nametoindex;

use super::addresses::Pair;
use super::obstacle::{Obstacle, Trying};
use super::relay::Entrance;
use crate::reach::{Reach, V6, Way, pasta};

/// Name servers that the inside uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// The inside uses the same name servers as the machine.
    Same,
    /// The inside uses a relay at this address, which queries the machine's name servers.
    Relay(Ipv4Addr),
}

const CONFIGURATION: &str = "/etc/resolv.conf";
const PORT: u16 = 53;

/// Chooses the resolver from the machine's configuration and the route out of the link.
pub(crate) fn choose(way: &Way, pair: Pair) -> Resolver {
    // Without a resolver configuration file there is no file over which to mount another file.
    let Ok(text) = fs::read_to_string(CONFIGURATION) else { return Resolver::Same };
    let at = match way.reach {
        Reach::Machine => pair.base,
        Reach::Pasta => pasta::RESOLVER,
        Reach::Closed(_) => return Resolver::Same,
    };
    let same = servers(&text).iter().all(|server| server.is_reached_from_inside(way.v6));
    if same { Resolver::Same } else { Resolver::Relay(at) }
}

impl Resolver {
    /// Returns the sockets of the relay, if a relay is needed and its port is free. If the port is in use, a resolver
    /// of the machine listens on all addresses and also answers at the relay's address.
    pub(crate) fn entrance(self) -> Option<Entrance> {
        match self {
            Self::Same => None,
            Self::Relay(at) => Entrance::open((at, PORT).into()).ok(),
        }
    }

    /// Mounts the inside's resolver configuration over the machine's, in the calling process's mounts.
    pub(crate) fn install(self) -> Result<(), Obstacle> {
        let Self::Relay(at) = self else { return Ok(()) };
        let text = fs::read_to_string(CONFIGURATION).unwrap_or_default();
        mount_file(&with_server(&text, at)).trying("mounting the configuration of the resolver")
    }
}

/// Mounts a file with this text over the resolver configuration. The file's name is never visible to other processes,
/// because the file is in a separate file system. This file system is visible only in this process's mounts, and only
/// until the file is mounted.
fn mount_file(text: &str) -> io::Result<()> {
    let none = None::<&str>;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("tmpfs"), HIDDEN, Some("tmpfs"), flags, Some("mode=0755,size=1m"))?;
    let file = Path::new(HIDDEN).join("resolv.conf");
    let written =
        fs::write(&file, text).and_then(|()| fs::set_permissions(&file, Permissions::from_mode(0o644)));
    let mounted = written.and_then(|()| Ok(mount(Some(&file), CONFIGURATION, none, MsFlags::MS_BIND, none)?));
    umount2(HIDDEN, MntFlags::MNT_DETACH)?;
    mounted
}

/// Mount point of the temporary file system: a folder that exists on every machine and is not needed while the file is
/// mounted.
const HIDDEN: &str = "/proc";

/// Name servers of the machine in order, as seen by the calling thread.
pub(crate) fn of_machine() -> Vec<SocketAddr> {
    servers(&fs::read_to_string(CONFIGURATION).unwrap_or_default()).iter().map(Server::socket).collect()
}

/// Name server in a resolver configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    address: IpAddr,
    /// Interface of a link-local address: its name or index.
    zone: Option<String>,
}

impl Server {
    fn of(text: &str) -> Option<Self> {
        let (address, zone) =
            text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
        Some(Self { address: address.parse().ok()?, zone: zone.map(str::to_owned) })
    }

    fn is_reached_from_inside(&self, v6: V6) -> bool {
        match self.address.to_canonical() {
            IpAddr::V4(address) => !address.is_loopback() && !address.is_unspecified(),
            IpAddr::V6(address) => {
                let elsewhere =
                    address.is_loopback() || address.is_unspecified() || address.is_unicast_link_local();
                v6 == V6::Beyond && !elsewhere
            }
        }
    }

    fn socket(&self) -> SocketAddr {
        let zone = self.zone.as_deref().unwrap_or("0");
        let number = zone.parse().ok().or_else(|| if_nametoindex(zone).ok()).unwrap_or(0);
        match self.address {
            IpAddr::V4(address) => (address, PORT).into(),
            IpAddr::V6(address) => SocketAddrV6::new(address, PORT, 0, number).into(),
        }
    }
}

/// Name servers of a resolver configuration; with a configuration that names no servers, a stub resolver queries its
/// own host (resolv.conf(5)).
fn servers(text: &str) -> Vec<Server> {
    let named = text.lines().filter_map(|line| {
        let (key, rest) = line.trim().split_once([' ', '\t'])?;
        Server::of(rest.split_whitespace().next()?).filter(|_| key == "nameserver")
    });
    let mut servers: Vec<Server> = named.collect();
    if servers.is_empty() {
        servers.push(Server { address: Ipv4Addr::LOCALHOST.into(), zone: None });
    }
    servers
}

/// Resolver configuration with all name servers replaced by this server.
fn with_server(text: &str, server: Ipv4Addr) -> String {
    let others = text.lines().filter(|line| !line.trim_start().starts_with("nameserver"));
    let mut lines: Vec<String> = others.map(str::to_owned).collect();
    lines.push(format!("nameserver {server}\n"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_takes_the_place_of_all_and_the_rest_stays() {
        let text = "# by hand\nnameserver 127.0.0.53\noptions edns0\nnameserver ::1\nsearch lan\n";
        assert_eq!(
            with_server(text, Ipv4Addr::new(100, 64, 0, 1)),
            "# by hand\noptions edns0\nsearch lan\nnameserver 100.64.0.1\n"
        );
    }

    #[test]
    fn all_servers_are_asked_in_their_order_whatever_their_address() {
        let text = "nameserver 192.0.2.53 # first\nnameserver fe80::1%lo\n\tnameserver\t::1\nnameserver fe80::2%7\nnameserver x\n";
        let sockets: Vec<String> = servers(text).iter().map(|server| server.socket().to_string()).collect();
        // The loopback interface has index 1 in every network namespace.
        assert_eq!(sockets, ["192.0.2.53:53", "[fe80::1%1]:53", "[::1]:53", "[fe80::2%7]:53"]);
        let sockets: Vec<String> =
            servers("search lan\nnameserver\n").iter().map(|server| server.socket().to_string()).collect();
        assert_eq!(sockets, ["127.0.0.1:53"]);
    }

    #[test]
    fn the_inside_reaches_servers_that_are_not_of_this_host_or_of_a_neighbourhood() {
        for (server, without, with_v6) in [
            ("192.0.2.53", true, true),
            ("169.254.169.253", true, true),
            ("2001:db8::53", false, true),
            ("127.0.0.53", false, false),
            ("0.0.0.0", false, false),
            ("::1", false, false),
            ("::ffff:127.0.0.1", false, false),
            ("fe80::1%eth0", false, false),
        ] {
            let reached =
                [V6::OtherEnd, V6::Beyond].map(|v6| Server::of(server).unwrap().is_reached_from_inside(v6));
            assert_eq!(reached, [without, with_v6], "{server}");
        }
    }
}
