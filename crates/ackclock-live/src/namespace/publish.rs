//! Published ports: programs on the machine reach a server inside across the link.
//!
//! ```text
//!   the machine                     outside            link      inside
//!   127.0.0.1:8080 (accepted by the outer relay) ----> ======> INSIDE:80 --redirected--> (accepted by the inner relay)
//!                                                                                      ----> 127.0.0.1:80 or [::1]:80
//! ```
//! The sockets of the machine are opened before the namespaces are created, and a socket stays in the namespace in which
//! it was opened. The outer relay accepts connections on these sockets, and connects to INSIDE from the network namespace
//! in which the link ends. Publishing needs neither root nor a route to the inside. The relays are processes of the link's
//! process namespace, so they end with the link.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use nix::sys::signal::SigSet;
use nix::sys::wait::waitpid;

use super::addresses::Pair;
use super::forward::{Forward, Forwarding};
use super::interface::Interface;
use super::obstacle::{Obstacle, Trying};
use super::process::{FAILED, apart, say};
use super::relay::Entrance;
use crate::reach::redirect;
use ackclock_netlink::Netlink;

/// Port of the machine, and the port inside to which it leads.
#[derive(Debug)]
pub struct Publish {
    at: SocketAddr,
    inside: u16,
    way: Way,
    entrance: Entrance,
}

/// Way from the port of the machine to the port inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Connections cross the link.
    Link,
    /// Connections pass beside the link, to a program whose own connections cross it.
    Beside,
}

impl Publish {
    /// Listens at an address of the machine, for TCP and UDP, on behalf of a port inside.
    ///
    /// # Errors
    /// Fails if the address is in use, belongs to another machine, or is not permitted to the user.
    pub fn open(at: SocketAddr, inside: u16, way: Way) -> io::Result<Self> {
        Ok(Self { at, inside, way, entrance: Entrance::open(at)? })
    }

    /// Port inside.
    pub const fn inside(&self) -> u16 {
        self.inside
    }
}

/// Starts the outer relay in the network namespace of this process, from which the inside is reached across the link.
/// Without a port across the link, nothing is started.
///
/// # Errors
/// Fails if the kernel refuses a process or a socket.
pub(crate) fn serve_outside(publishes: &[Publish], pair: Pair) -> Result<(), Obstacle> {
    let across = || publishes.iter().filter(|publish| publish.way == Way::Link);
    if across().next().is_none() {
        return Ok(());
    }
    let forwards = across().map(|publish| Forward {
        inside: publish.at.port(),
        servers: vec![(pair.inside, publish.inside).into()],
    });
    let entrances = across().map(|Publish { entrance, .. }| entrance.try_clone());
    let entrances = entrances.collect::<io::Result<_>>().trying(RELAYING)?;
    let relay = Forwarding::new(&forwards.collect::<Vec<_>>(), entrances).trying(RELAYING)?;
    // The inner relay accepts every connection, so the outer relay has nothing to tell.
    apart(|| serve(relay, |_| {})).map(drop)
}

/// Starts the inner relay, if a port is published, in the inside namespace. `link` is the interface towards the link.
///
/// # Errors
/// Returns the operation that this machine does not allow.
pub(crate) fn serve_inside(link: &Interface, pair: Pair, publishes: &[Publish]) -> Result<(), Obstacle> {
    if publishes.is_empty() {
        return Ok(());
    }
    let entrances = publishes.iter().map(|publish| match publish.way {
        Way::Link => entrance(pair.inside),
        Way::Beside => publish.entrance.try_clone(),
    });
    let entrances = entrances.collect::<io::Result<Vec<_>>>().trying(RELAYING)?;
    let table = redirected(link, pair, publishes, &entrances)?;
    let servers = |port: u16| {
        let loopback = [(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()];
        loopback.into_iter().chain([(pair.inside, port).into()]).collect()
    };
    let forwards = publishes
        .iter()
        .map(|publish| Forward { inside: publish.inside, servers: servers(publish.inside) })
        .collect::<Vec<_>>();
    let relay = Forwarding::new(&forwards, entrances).trying(RELAYING)?.inside();
    // The relay must not be a child of the command, which may wait for all of its children: the relay's parent ends at
    // once, and the keeper adopts the relay.
    let parent = apart(|| {
        let relay = apart(|| {
            let _table = table;
            serve(relay, |line| say(&format!("ackclock: {line}\n")))
        });
        if relay.is_ok() { 0 } else { FAILED }
    })?;
    waitpid(parent, None).trying(RELAYING).map(drop)
}

/// Redirects the ports that are reached across the link to the sockets of the inner relay.
fn redirected(
    link: &Interface,
    pair: Pair,
    publishes: &[Publish],
    entrances: &[Entrance],
) -> Result<Option<Netlink>, Obstacle> {
    let across = publishes.iter().zip(entrances).filter(|(publish, _)| publish.way == Way::Link);
    let ports = across.map(|(publish, entrance)| Ok((publish.inside, entrance.streams.local_addr()?.port())));
    let ports = ports.collect::<io::Result<Vec<_>>>().trying(RELAYING)?;
    if ports.is_empty() { Ok(None) } else { redirect::install_published(link, pair, &ports).map(Some) }
}

const RELAYING: &str = "relaying published ports";

/// Relays until the process is killed with the link. Keys of the terminal are for the command.
fn serve(relay: Forwarding, say: fn(&str)) -> u8 {
    if SigSet::all().thread_block().and_then(|()| relay.serve(say).map_err(|_| nix::Error::EIO)).is_err() {
        say("the relay of published ports broke down");
    }
    FAILED
}

/// Listens at a free port of an address, which is the same for TCP and UDP.
fn entrance(at: Ipv4Addr) -> io::Result<Entrance> {
    let streams = TcpListener::bind((at, 0))?;
    let datagrams = UdpSocket::bind(streams.local_addr()?)?;
    Ok(Entrance { datagrams, streams })
}
