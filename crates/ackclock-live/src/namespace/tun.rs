//! TUN devices: where the kernel of a namespace hands its packets over.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::stat::Mode;

use super::interface::Interface;
use super::obstacle::{Obstacle, Trying};

/// A TUN device in the namespace in which it was opened. It is gone when the last copy of its file is closed.
#[derive(Debug)]
pub(crate) struct Tun {
    /// Reads and writes packets, each with a virtio header where the driver knows them; never blocks.
    pub(crate) file: OwnedFd,
    pub(crate) interface: Interface,
}

const DEVICE: &str = "/dev/net/tun";
/// Nothing stands before a packet.
const PLAIN: libc::c_int = 0;

impl Tun {
    /// A new device in the namespace of the calling thread; `%d` in the name becomes the first free number.
    ///
    /// # Errors
    /// Where the device file is missing or closed to the user, or the namespace is not ours to change.
    pub(crate) fn open(pattern: &str) -> Result<Self, Obstacle> {
        let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = open(DEVICE, flags, Mode::empty()).map_err(|error| unopened(error.into()))?;
        let name = attach(&file, pattern, libc::IFF_VNET_HDR)
            // A driver without super-packets calls them invalid; packets come one by one then.
            .or_else(|error| match error.raw_os_error() {
                Some(libc::EINVAL) => attach(&file, pattern, PLAIN),
                _ => Err(error),
            })
            .trying("creating a TUN device")?;
        let index = if_nametoindex(name.as_str()).trying("finding the TUN device")?;
        Ok(Self { file, interface: Interface { index, name } })
    }
}

fn unopened(error: io::Error) -> Obstacle {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => "let everyone open it: sudo chmod 666 /dev/net/tun",
        io::ErrorKind::NotFound => "load the driver: sudo modprobe tun",
        _ => return Obstacle::new(format!("opening {DEVICE}"), error),
    };
    Obstacle::new(format!("opening {DEVICE}"), error).remedy(remedy)
}

/// Makes the open file a device with packets as they are, behind what `before` says, and gives its name.
#[allow(unsafe_code)]
fn attach(file: &OwnedFd, pattern: &str, before: libc::c_int) -> io::Result<String> {
    // SAFETY: an interface request is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(pattern.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | before) as i16;
    // SAFETY: the file is open and the request outlives the call, which writes only into it.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    let name = request.ifr_name.iter().take_while(|byte| **byte != 0);
    Ok(name.map(|byte| char::from(*byte as u8)).collect())
}
