//! Listeners of the proxy: for requests of clients, and for connections that the firewall diverts (TPROXY).
//!
//! The local address of a diverted connection is the address that the client wanted to reach.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use crate::alive::probe_idle;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, connect, listen, setsockopt, socket,
    sockopt,
};

/// How clients reach a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Clients know the proxy and send it requests.
    Requests,
    /// The firewall diverts the connections of clients that do not know the proxy.
    Diverted,
}

impl Way {
    /// Key of the listener's address in the configuration.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Requests => "listen",
            Self::Diverted => "transparent",
        }
    }
}

/// Listening socket of the proxy.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) way: Way,
    pub(crate) socket: TcpListener,
}

impl Listener {
    /// Listens at an address. A listener for diverted connections needs the capability `CAP_NET_ADMIN`.
    pub(crate) fn new(way: Way, address: SocketAddr) -> io::Result<Self> {
        let socket = match way {
            Way::Requests => TcpListener::bind(address)?,
            Way::Diverted => diverted(address)?,
        };
        socket.set_nonblocking(true)?;
        Ok(Self { way, socket })
    }
}

fn diverted(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(family(address), SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::IpTransparent, &true)?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    if address.is_ipv6() {
        // A client's address must have the family of the server's address.
        setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
    }
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    listen(&socket, Backlog::MAXCONN)?;
    Ok(socket.into())
}

/// Starts a connection to `to` without waiting until it is established. With `from`, the server sees that address as
/// the client.
pub(crate) fn begin(from: Option<SocketAddr>, to: SocketAddr) -> io::Result<TcpStream> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let stream = TcpStream::from(socket(family(to), SockType::Stream, flags, None)?);
    let _ = stream.set_nodelay(true);
    probe_idle(&stream);
    if let Some(from) = from {
        setsockopt(&stream, sockopt::IpTransparent, &true)?;
        setsockopt(&stream, sockopt::ReuseAddr, &true)?;
        bind(stream.as_raw_fd(), &SockaddrStorage::from(from))?;
    }
    match connect(stream.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(stream),
        Err(errno) => Err(errno.into()),
    }
}

const fn family(address: SocketAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}
