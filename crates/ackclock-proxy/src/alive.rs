//! Detection of peers that no longer answer, for example a phone that lost the radio.
//!
//! A dead peer holds its connection, and a connection to the server, until the kernel notices: after two hours if the
//! connection is idle. The proxy probes idle connections, and gives up one whose data is not acknowledged.

use std::net::TcpStream;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};

use crate::kernel::advertised;

/// Idle time after which a peer is probed, seconds.
const IDLE_SECS: u32 = 30;
/// Time between two probes, seconds.
const INTERVAL_SECS: u32 = 10;
/// Number of probes without an answer after which a peer is dead.
const PROBES: u32 = 3;
/// Time after which a peer that acknowledges nothing is dead.
const UNACKNOWLEDGED: Duration = Duration::from_secs(60);
/// Interval at which [`spare_reader`] is called for each client.
pub(crate) const LOOK_AT_READERS: Duration = Duration::from_secs(10);

/// Probes an idle peer. Errors are ignored: the connection works without probes.
pub(crate) fn probe_idle(socket: &TcpStream) {
    let _ = setsockopt(socket, sockopt::TcpKeepIdle, &IDLE_SECS);
    let _ = setsockopt(socket, sockopt::TcpKeepInterval, &INTERVAL_SECS);
    let _ = setsockopt(socket, sockopt::TcpKeepCount, &PROBES);
    let _ = setsockopt(socket, sockopt::KeepAlive, &true);
}

/// Gives a client up that acknowledges no data, except a client that stopped to read and advertises no window: Linux
/// gives such a client up too, although it answers each probe of its window (RFC 9293 section 3.8.6.1).
pub(crate) fn spare_reader(socket: &TcpStream) {
    let is_reading = advertised(socket).is_none_or(|(window, mss)| window >= mss);
    let timeout = if is_reading { UNACKNOWLEDGED } else { Duration::ZERO };
    let _ = setsockopt(socket, sockopt::TcpUserTimeout, &(timeout.as_millis() as u32));
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use nix::sys::socket::getsockopt;

    use super::*;

    #[test]
    fn a_client_that_stopped_to_read_is_not_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut socket, _) = listener.accept().unwrap();
        probe_idle(&socket);
        assert_eq!(getsockopt(&socket, sockopt::TcpKeepIdle), Ok(IDLE_SECS));
        let timeout = |socket: &TcpStream| {
            spare_reader(socket);
            getsockopt(socket, sockopt::TcpUserTimeout).unwrap()
        };
        assert_eq!(timeout(&socket), 60_000);
        socket.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        while socket.write_all(&[7; 65_536]).is_ok() {}
        assert_eq!(timeout(&socket), 0, "the window is closed");
        client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        while client.read(&mut [0; 65_536]).is_ok() {}
        assert_eq!(timeout(&socket), 60_000, "the client reads again");
    }
}
