//! The router: a network namespace in which the link ends, joined to the machine's by a veth pair.
//!
//! The link must end at a TUN, because a TUN is where packets come out of the kernel and go back into it. Here the kernel
//! forwards between that and the pair. No process stays in this namespace: the open TUN keeps it, and with its last copy
//! go the namespace, the pair and all that the machine knew of it.

use std::fs::{self, File};
use std::os::fd::OwnedFd;

use nix::sched::{CloneFlags, setns, unshare};

use super::addresses::{Candidate, Pair};
use super::interface::{Interface, add_default_route, add_default_route_v6, bring_loopback_up};
use super::obstacle::{Obstacle, Trying};
use super::tun::Tun;
use super::veth::Veth;

/// Makes the router in front of the namespace of the calling process, with the first of these pairs that no other link has.
/// Gives the pair, the end of the link in the router, and that of the veth pair here, which has the base address.
///
/// # Errors
/// What this machine does not allow; the process may then be left in the router, which nothing leads out of.
pub(crate) fn stand(free: impl Iterator<Item = Candidate>) -> Result<(Pair, Tun, Interface), Obstacle> {
    let here: OwnedFd = File::open(HERE).trying(&format!("opening {HERE}"))?.into();
    unshare(CloneFlags::CLONE_NEWNET).trying("creating a network namespace")?;
    bring_loopback_up().trying("bringing loopback up")?;
    forward()?;
    let (pair, mut veth) = join(free, &here)?;
    let tun = Tun::open("ackclock%d")?;
    tun.interface.configure(pair.router(), pair.inside)?;
    veth.near.configure(pair.router(), pair.base)?;
    add_default_route(veth.near.index, pair.base).trying("routing to the machine")?;
    // A kernel without IPv6 is no obstacle.
    let _ = add_default_route_v6(veth.near.index);
    setns(&here, CloneFlags::CLONE_NEWNET).trying("returning from the router")?;
    let ours = veth.far()?;
    ours.configure(pair.base, pair.inside)?;
    veth.await_carrier()?;
    Ok((pair, tun, ours))
}

/// Makes the veth pair. Its interface here is called after the number of the addresses, so that whoever has the interface
/// has the addresses: the kernel gives a name once, and to administrators of this namespace alone.
fn join(free: impl Iterator<Item = Candidate>, here: &OwnedFd) -> Result<(Pair, Veth), Obstacle> {
    for Candidate { number, pair } in free {
        if let Some(veth) = Veth::create("machine", &format!("ackclock{number}"), here)? {
            return Ok((pair, veth));
        }
    }
    Err(Obstacle::new("joining the router to the machine", "every interface `ackclockN` is there already"))
}

const HERE: &str = "/proc/thread-self/ns/net";

/// Forwards every packet, in this namespace.
fn forward() -> Result<(), Obstacle> {
    let forwarding = "/proc/sys/net/ipv4/ip_forward";
    fs::write(forwarding, "1").trying(&format!("writing {forwarding}"))?;
    // A kernel without IPv6 is no obstacle.
    let _ = fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
    use std::thread::sleep;
    use std::time::Duration;

    use etherparse::PacketBuilder;
    use nix::net::if_::if_nametoindex;
    use nix::unistd::write;

    use super::*;

    /// Puts a datagram into the link's end, as if it came from inside.
    fn send(tun: &Tun, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) {
        // An empty virtio header: nothing is left to the device.
        let mut packet = vec![0; 10];
        PacketBuilder::ipv4(from.ip().octets(), to.ip().octets(), 64)
            .udp(from.port(), to.port())
            .write(&mut packet, payload)
            .unwrap();
        assert_eq!(write(&tun.file, &packet).unwrap(), packet.len());
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "a skipped test says why")]
    #[allow(clippy::disallowed_methods, reason = "the real world is waited for")]
    fn the_first_packet_passes_and_with_the_tun_goes_the_pair() {
        // This thread alone moves, to a machine that is empty.
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            eprintln!("skipped: creating a network namespace: {error}");
            return;
        }
        let pair = Pair { base: Ipv4Addr::new(100, 64, 0, 1), inside: Ipv4Addr::new(100, 64, 0, 2) };
        let free = [Candidate { number: 0, pair }, Candidate { number: 1, pair }];
        let (_, tun, veth) = match stand(free.into_iter()) {
            Ok(stands) => stands,
            Err(obstacle) => {
                eprintln!("skipped: {obstacle}");
                return;
            }
        };
        assert_eq!(veth.name, "ackclock0");
        let server = UdpSocket::bind((pair.base, 9)).unwrap();
        // What has not come after ten seconds never will.
        server.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let [from, to] = [pair.inside, pair.base].map(|address| SocketAddrV4::new(address, 9));
        send(&tun, from, to, b"first");
        let mut payload = [0; 5];
        assert_eq!(server.recv_from(&mut payload).unwrap(), (5, from.into()));
        drop(tun);
        let gone = (0..3000).any(|_| {
            sleep(Duration::from_millis(10));
            if_nametoindex(veth.name.as_str()).is_err()
        });
        assert!(gone, "the kernel takes some milliseconds to clear a namespace away, but not half a minute");
    }
}
