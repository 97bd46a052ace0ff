//! Start-up notification for systemd (`Type=notify`, sd_notify(3)).

use std::env;
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Tells systemd that the box is attached. Without systemd, nothing happens.
pub(super) fn ready() {
    // A notification that cannot be sent is systemd's to report: it ends the start by its time limit.
    let _ = env::var_os("NOTIFY_SOCKET").map(|socket| send(&socket));
}

fn send(socket: &OsStr) -> std::io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(socket),
    }?;
    UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address).map(drop)
}
