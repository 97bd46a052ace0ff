//! Names are resolved inside as outside, also where the machine asks a resolver on its own loopback address, which the
//! inside cannot reach.

use std::fs;
use std::io::{self, copy};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use nix::mount::{MsFlags, mount};

use super::addresses::Pair;
use super::obstacle::{Obstacle, Trying};
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
    let file = std::env::temp_dir().join(format!("ackclock-resolv-{}-{}", std::process::id(), pair.base));
    fs::write(&file, with_server(&text, server)).trying("writing the configuration of the resolver")?;
    let mounted = mount(Some(&file), CONFIGURATION, None::<&str>, MsFlags::MS_BIND, None::<&str>);
    // A mounted file stays readable without its name, and so leaves nothing behind.
    fs::remove_file(&file).trying("removing a temporary file")?;
    mounted.trying("mounting the configuration of the resolver")
}

/// Answers at the base address for as long as the process lives; returns where that is impossible.
pub(crate) fn relay(base: Ipv4Addr) -> u8 {
    let text = fs::read_to_string(CONFIGURATION).unwrap_or_default();
    let Some(server) = server(&text) else { return 1 };
    let server = SocketAddr::new(server, PORT);
    std::thread::spawn(move || relay_streams(base, server));
    // Where the machine's own resolver listens on every address, it answers here too and the port is taken.
    u8::from(relay_datagrams(base, server).is_err())
}

fn relay_datagrams(base: Ipv4Addr, server: SocketAddr) -> io::Result<()> {
    let socket = Arc::new(UdpSocket::bind((base, PORT))?);
    let mut query = [0; LONGEST];
    loop {
        let (length, from) = socket.recv_from(&mut query)?;
        let (query, socket) = (query[..length].to_vec(), Arc::clone(&socket));
        std::thread::spawn(move || -> io::Result<()> {
            let upstream = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            upstream.set_read_timeout(Some(PATIENCE))?;
            upstream.connect(server)?;
            upstream.send(&query)?;
            let mut answer = [0; LONGEST];
            let length = upstream.recv(&mut answer)?;
            socket.send_to(&answer[..length], from).map(drop)
        });
    }
}

fn relay_streams(base: Ipv4Addr, server: SocketAddr) -> io::Result<()> {
    for stream in TcpListener::bind((base, PORT))?.incoming() {
        let stream = stream?;
        std::thread::spawn(move || -> io::Result<()> {
            let upstream = TcpStream::connect_timeout(&server, PATIENCE)?;
            let (mut from, mut to) = (stream.try_clone()?, upstream.try_clone()?);
            std::thread::spawn(move || copy(&mut from, &mut to).and_then(|_| to.shutdown(Shutdown::Write)));
            copy(&mut &upstream, &mut &stream).map(drop)
        });
    }
    Ok(())
}

const LONGEST: usize = 4096;
const PATIENCE: Duration = Duration::from_secs(10);

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
