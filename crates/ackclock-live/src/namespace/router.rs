//! The router: a network namespace in which the link ends, connected to the machine's network namespace by a veth pair.
//!
//! The link must end at a TUN, where packets leave and enter the kernel. The kernel forwards between the TUN and the
//! veth pair. No process stays in the router's namespace; the open TUN keeps the namespace alive. When the last copy of
//! the TUN's file is closed, the namespace, the pair and the pair's routes on the machine disappear.

use std::fs::{self, File};
use std::os::fd::OwnedFd;

use nix::sched::{CloneFlags, setns, unshare};

use super::addresses::{Candidate, Pair};
use super::forward::{self, Forward};
use super::interface::{Interface, add_default_route, add_default_route_v6, bring_loopback_up};
use super::obstacle::{Obstacle, Trying};
use super::relay::Entrance;
use super::tun::Tun;
use super::veth::Veth;

/// Creates the router in front of the calling process's namespace, with the first address pair that no other link uses.
/// Returns the address pair, the link's end in the router, the local end of the veth pair (with the base address), and
/// the sockets of forwarded ports in the router.
///
/// # Errors
/// Returns the operation that this machine does not allow. The process may then be left in the router, which has no
/// route out.
pub(crate) fn stand(
    free: impl Iterator<Item = Candidate>,
    forwards: &[Forward],
) -> Result<(Pair, Tun, Interface, Vec<Entrance>), Obstacle> {
    let here: OwnedFd = File::open(HERE).trying(&format!("opening {HERE}"))?.into();
    unshare(CloneFlags::CLONE_NEWNET).trying("creating a network namespace")?;
    bring_loopback_up().trying("bringing loopback up")?;
    forward_packets()?;
    let (pair, mut veth) = join(free, &here)?;
    let tun = Tun::open("ackclock%d")?;
    tun.interface.configure(pair.router(), pair.inside)?;
    veth.near.configure(pair.router(), pair.base)?;
    add_default_route(veth.near.index, pair.base).trying("routing to the machine")?;
    // A kernel without IPv6 returns an error, which is ignored.
    let _ = add_default_route_v6(veth.near.index);
    let entrances = forward::open(pair, forwards)?;
    setns(&here, CloneFlags::CLONE_NEWNET).trying("returning from the router")?;
    let ours = veth.far()?;
    ours.configure(pair.base, pair.inside)?;
    veth.await_carrier()?;
    Ok((pair, tun, ours, entrances))
}

/// Creates the veth pair. The name of the pair's local interface contains the number of the address pair, so that the
/// interface reserves the addresses. The kernel allows each interface name once, and only administrators of this
/// namespace can take a name.
fn join(free: impl Iterator<Item = Candidate>, here: &OwnedFd) -> Result<(Pair, Veth), Obstacle> {
    for Candidate { number, pair } in free {
        if let Some(veth) = Veth::create("machine", &format!("ackclock{number}"), here)? {
            return Ok((pair, veth));
        }
    }
    Err(Obstacle::new("joining the router to the machine", "every interface `ackclockN` is there already"))
}

const HERE: &str = "/proc/thread-self/ns/net";

/// Enables forwarding of packets in this namespace.
fn forward_packets() -> Result<(), Obstacle> {
    let forwarding = "/proc/sys/net/ipv4/ip_forward";
    fs::write(forwarding, "1").trying(&format!("writing {forwarding}"))?;
    // A kernel without IPv6 returns an error, which is ignored.
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

    /// Writes a datagram into the link's end, as if it came from inside.
    fn send(tun: &Tun, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) {
        // The virtio header is empty, because the checksum is complete.
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
        // Only this thread moves to a new, empty network namespace.
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            eprintln!("skipped: creating a network namespace: {error}");
            return;
        }
        let pair = Pair { base: Ipv4Addr::new(100, 64, 0, 1), inside: Ipv4Addr::new(100, 64, 0, 2) };
        let free = [Candidate { number: 0, pair }, Candidate { number: 1, pair }];
        let (_, tun, veth, _) = match stand(free.into_iter(), &[]) {
            Ok(stands) => stands,
            Err(obstacle) => {
                eprintln!("skipped: {obstacle}");
                return;
            }
        };
        assert_eq!(veth.name, "ackclock0");
        let server = UdpSocket::bind((pair.base, 9)).unwrap();
        // A packet missing after ten seconds is lost.
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
