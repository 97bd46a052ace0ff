//! Names are resolved inside as outside, also where the machine asks a resolver on its own loopback address, which the
//! inside cannot reach.

use std::fs::{self, Permissions};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::addresses::Pair;
use super::obstacle::{Obstacle, Trying};
use super::relay::Relay;
use crate::reach::{Reach, pasta};

/// Whom the inside asks for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// The same servers as the machine.
    Same,
    /// A relay at the base address, which asks the machine's.
    Relay,
    /// An address that pasta takes for the machine's.
    Pasta,
}

const CONFIGURATION: &str = "/etc/resolv.conf";
const PORT: u16 = 53;

/// What the machine's configuration and the reach make necessary.
pub(crate) fn choose(reach: &Reach) -> Resolver {
    let text = fs::read_to_string(CONFIGURATION).unwrap_or_default();
    match (reach, server(&text)) {
        (Reach::Machine, Some(server)) if server.is_loopback() => Resolver::Relay,
        (Reach::Pasta, Some(server)) if server.is_loopback() => Resolver::Pasta,
        _ => Resolver::Same,
    }
}

/// Puts the inside's own configuration over the machine's, in the mounts of the calling process.
pub(crate) fn install(resolver: Resolver, pair: Pair) -> Result<(), Obstacle> {
    let server = match resolver {
        Resolver::Same => return Ok(()),
        Resolver::Relay => pair.base,
        Resolver::Pasta => pasta::RESOLVER,
    };
    let text = fs::read_to_string(CONFIGURATION).unwrap_or_default();
    mount_file(&with_server(&text, server)).trying("mounting the configuration of the resolver")
}

/// Mounts a file with this text over the configuration. It never has a name that anybody else could know: it lies in a file
/// system of its own, which is visible in the mounts of this process alone, and even there only until the file is mounted.
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

/// A folder that is there on every machine and that nobody looks into meanwhile.
const HIDDEN: &str = "/proc";

/// Answers at the base address for as long as the process lives; returns where that is impossible.
pub(crate) fn relay(base: Ipv4Addr) -> u8 {
    let text = fs::read_to_string(CONFIGURATION).unwrap_or_default();
    let Some(server) = server(&text) else { return 1 };
    // Where the machine's own resolver listens on every address, it answers here too and the port is taken.
    let relay = Relay::new((base, PORT).into(), (server, PORT).into());
    u8::from(relay.and_then(Relay::serve).is_err())
}

/// The first name server of a configuration.
fn server(text: &str) -> Option<IpAddr> {
    text.lines().find_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok())
}

/// The configuration with one server in the place of all.
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
        assert_eq!(server(text), Some("127.0.0.53".parse().unwrap()));
        assert_eq!(
            with_server(text, Ipv4Addr::new(100, 64, 0, 1)),
            "# by hand\noptions edns0\nsearch lan\nnameserver 100.64.0.1\n"
        );
    }

    #[test]
    fn a_configuration_without_servers_has_none() {
        assert_eq!(server("search lan\nnameserver\n"), None);
    }
}
