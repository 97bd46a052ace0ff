//! State of a kernel connection: `TCP_INFO` and `SIOCOUTQ`.

// These two calls have no safe wrapper. Each passes a buffer that lives during the call, together with its length.
#![allow(unsafe_code)]

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use ackclock_core::Span;
use nix::errno::Errno;
use nix::libc;

nix::ioctl_read_bad!(
    /// Bytes that are unacknowledged or unsent; Linux calls it `SIOCOUTQ` for sockets.
    output_queue,
    libc::TIOCOUTQ,
    libc::c_int
);

/// Number of bytes that were written to the socket and are unacknowledged or unsent.
///
/// # Errors
/// Fails if the socket is not connected.
pub fn outstanding(socket: &TcpStream) -> io::Result<usize> {
    let mut bytes = 0;
    // SAFETY: the kernel writes one integer, to `bytes`.
    unsafe { output_queue(socket.as_raw_fd(), &raw mut bytes) }?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Measurements of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Payload of a full-sized packet, bytes.
    pub mss: u32,
    /// Minimum round-trip time; `None` before the first sample.
    pub min_rtt: Option<Span>,
}

/// Offsets of `tcpi_snd_mss`, `tcpi_min_rtt` and `tcpi_snd_wnd` in `struct tcp_info` of `linux/tcp.h`.
const MSS: usize = 16;
const MIN_RTT: usize = 148;
const WINDOW: usize = 228;

/// Reads the measurements of a connection.
///
/// # Errors
/// Fails if the kernel does not return them, as kernels before Linux 4.6.
pub fn measured(socket: &TcpStream) -> io::Result<Measured> {
    let info: [u8; MIN_RTT + 4] = info(socket)?;
    // The kernel returns the maximum for a connection without a sample.
    let min_rtt = Some(field(&info, MIN_RTT)).filter(|&rtt| rtt != u32::MAX);
    Ok(Measured { mss: field(&info, MSS), min_rtt: min_rtt.map(|rtt| Span::from_micros(rtt.into())) })
}

/// Window that the peer advertises, and payload of a full-sized packet, bytes; `None` if the kernel does not return them,
/// as kernels before Linux 5.4.
pub(crate) fn advertised(socket: &TcpStream) -> Option<(u32, u32)> {
    let info: [u8; WINDOW + 4] = info(socket).ok()?;
    Some((field(&info, WINDOW), field(&info, MSS)))
}

/// The first `SIZE` bytes of `struct tcp_info`.
fn info<const SIZE: usize>(socket: &TcpStream) -> io::Result<[u8; SIZE]> {
    let mut info = [0; SIZE];
    let mut length = SIZE as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, to `info`.
    let result = unsafe {
        let to = info.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length)
    };
    Errno::result(result)?;
    if (length as usize) < SIZE { Err(io::ErrorKind::Unsupported.into()) } else { Ok(info) }
}

fn field(info: &[u8], at: usize) -> u32 {
    info[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}
