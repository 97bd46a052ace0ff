//! Gateway: the packets of the devices behind an interface of this machine cross the link.
//!
//! ```text
//!  devices -- interface ---- ackclock ---- the machine's routing, firewall and address translation -- network
//!             `-- TUN of the devices (mobile side)     `-- TUN of the network (wired side)
//! ```
//!
//! BPF programs at both hooks of the interface divert packets to one of two TUN devices, and packets that leave the link
//! go on where they left (`bpf/gateway.bpf.c`). The machine's routes, addresses, firewall
//! and settings stay as they are.
//!
//! No resource is left behind, whichever way the process ends: the kernel detaches the programs with the last copy of
//! their links, and removes a TUN with the last copy of its file.

use std::os::fd::OwnedFd;

use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader};
use nix::libc;
use nix::net::if_::if_nametoindex;

use crate::namespace::interface::{Interface, link};
use crate::namespace::tun::Tun;
use crate::namespace::{DeviceCounters, Obstacle, Trying};
use crate::plane_config::MOST_BYTES;
use ackclock_netlink::{Message, Netlink, attributes};

#[cfg(target_endian = "little")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/gateway.bpfel.o");
#[cfg(target_endian = "big")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/gateway.bpfeb.o");

/// Programs at the hooks of the interface. The program that brings packets in comes last.
const AT_INTERFACE: [(&str, TcAttachType); 2] =
    [("to_devices", TcAttachType::Egress), ("from_devices", TcAttachType::Ingress)];

/// Error for an interface that cannot have a gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The interface does not exist or is unsuitable.
    #[error("{0}")]
    Interface(String),
    /// The machine does not allow a gateway.
    #[error(transparent)]
    Obstacle(#[from] Obstacle),
}

/// Link for the devices behind an interface.
pub struct Gateway {
    interface: Interface,
    ebpf: Ebpf,
}

/// Open files of a gateway's link.
#[derive(Debug)]
pub struct GatewayEnds {
    /// Files of the TUN devices on the wired side and on the mobile side.
    pub tuns: [OwnedFd; 2],
    /// Counters of the TUN devices.
    pub counters: [DeviceCounters; 2],
}

impl Gateway {
    /// Creates the TUN devices and loads the programs; no packet is diverted yet.
    ///
    /// # Errors
    /// Fails if the interface does not exist or is unsuitable, or with the operation that this machine does not allow.
    pub fn prepare(name: &str) -> Result<(Self, GatewayEnds), GatewayError> {
        let found = Found::of(name)?;
        found.check(name)?;
        let network = Tun::open("ackclock%d").map_err(with_remedy)?;
        let devices = Tun::open("ackclock%d").map_err(with_remedy)?;
        let mut ebpf = EbpfLoader::new()
            .override_global("interface", &found.index, true)
            .override_global("devices_tun", &devices.interface.index, true)
            .override_global("network_tun", &network.interface.index, true)
            .override_global("header", &found.header(), true)
            .load(OBJECT)
            .trying("loading BPF programs")
            .map_err(with_remedy)?;
        for (tun, back) in [(&devices, "back_to_devices"), (&network, "back_to_network")] {
            attach(&mut ebpf, back, &tun.interface.name, TcAttachType::Ingress)?;
            tun.interface.bring_up()?;
        }
        let interface = Interface { index: found.index, name: name.to_owned() };
        let counters = |tun: Tun| (tun.file, DeviceCounters::new(tun.netlink, tun.interface.index));
        let [(outside, of_outside), (inside, of_inside)] = [network, devices].map(counters);
        let ends = GatewayEnds { tuns: [outside, inside], counters: [of_outside, of_inside] };
        Ok((Self { interface, ebpf }, ends))
    }

    /// Diverts the packets of the interface to the link, until the gateway is dropped.
    ///
    /// # Errors
    /// Returns the kernel's error if the kernel refuses the programs.
    pub fn divert(&mut self) -> Result<(), Obstacle> {
        AT_INTERFACE
            .iter()
            .try_for_each(|&(name, hook)| attach(&mut self.ebpf, name, &self.interface.name, hook))
    }

    /// Checks that the interface still exists.
    ///
    /// # Errors
    /// Fails if it was removed, or another interface has its name.
    pub fn check_interface(&self) -> Result<(), Disappeared> {
        let Interface { index, name } = &self.interface;
        match if_nametoindex(name.as_str()) {
            Ok(found) if found == *index => Ok(()),
            _ => Err(Disappeared(name.clone())),
        }
    }
}

/// The interface of a gateway, with this name, no longer exists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the interface {0} has disappeared")]
pub struct Disappeared(pub String);

/// Attaches a program before all others.
fn attach(ebpf: &mut Ebpf, name: &str, interface: &str, hook: TcAttachType) -> Result<(), Obstacle> {
    let attaching = format!("attaching BPF programs to {interface}");
    let program: &mut SchedClassifier = ebpf
        .program_mut(name)
        .ok_or_else(|| Obstacle::new(&attaching, format!("the object has no program {name}")))?
        .try_into()
        .trying(&attaching)?;
    program.load().trying("loading BPF programs").map_err(with_remedy)?;
    let options = TcAttachOptions::TcxOrder(LinkOrder::first());
    program
        .attach_with_options(interface, hook, options)
        .map(drop)
        .trying(&attaching)
        .map_err(|obstacle| obstacle.remedy("a gateway needs root, and Linux 6.6 or later"))
}

fn with_remedy(obstacle: Obstacle) -> Obstacle {
    if obstacle.remedy.is_some() {
        obstacle
    } else {
        obstacle.remedy("a gateway needs root, also in a container")
    }
}

/// What the kernel tells about an interface.
struct Found {
    index: u32,
    /// Type of the device, `ARPHRD_*`.
    kind: u16,
    mtu: u32,
    /// Kind and index of the device of which the interface is a part: a bridge or a bond.
    part_of: Option<(String, u32)>,
}

impl Found {
    fn of(name: &str) -> Result<Self, GatewayError> {
        let missing = || {
            GatewayError::Interface(format!(
                "`{name}` is not a network interface of this machine; `ip link` lists them"
            ))
        };
        let index = if_nametoindex(name).map_err(|_| missing())?;
        let mut found = None;
        let mut netlink = Netlink::route().trying("listing interfaces")?;
        netlink
            .list(Message::list(libc::RTM_GETLINK, &link(0, 0, 0)), |entry| {
                if entry.get(4..8) == Some(&index.to_ne_bytes()) {
                    found = Self::read(index, entry);
                }
            })
            .trying("listing interfaces")?;
        found.ok_or_else(missing)
    }

    /// Reads a message about an interface.
    fn read(index: u32, entry: &[u8]) -> Option<Self> {
        let kind = u16::from_ne_bytes(entry.get(2..4)?.try_into().ok()?);
        let all = || attributes(entry.get(16..).unwrap_or_default());
        let number = |wanted| {
            let value = all().find(|(kind, _)| *kind == wanted)?.1;
            Some(u32::from_ne_bytes(value.try_into().ok()?))
        };
        let part = all()
            .find(|(kind, _)| *kind == libc::IFLA_LINKINFO)
            .and_then(|(_, inside)| attributes(inside).find(|(kind, _)| *kind == INFO_SLAVE_KIND))
            .map(|(_, text)| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned());
        let part_of = part.filter(|kind| kind != "vrf").zip(number(libc::IFLA_MASTER));
        Some(Self { index, kind, mtu: number(libc::IFLA_MTU)?, part_of })
    }

    /// Length of the link header, bytes.
    fn header(&self) -> u32 {
        if self.kind == libc::ARPHRD_ETHER { ETHERNET } else { 0 }
    }

    /// Checks that a gateway is possible.
    fn check(&self, name: &str) -> Result<(), GatewayError> {
        let refused = |why: String| Err(GatewayError::Interface(format!("{name}: {why}")));
        if let Some((kind, index)) = &self.part_of {
            let whole = nix::net::if_::if_indextoname(*index).map(|name| name.to_string_lossy().into_owned());
            return refused(format!(
                "it is part of a {kind}; name the {kind}, `{}`",
                whole.unwrap_or_else(|_| index.to_string())
            ));
        }
        if ![libc::ARPHRD_ETHER, libc::ARPHRD_NONE, libc::ARPHRD_PPP, RAWIP].contains(&self.kind) {
            return refused(match self.kind {
                libc::ARPHRD_LOOPBACK => {
                    "no device is behind the loopback interface; for programs of this machine: \
                                          ackclock link ... -- COMMAND"
                        .to_owned()
                }
                kind => format!(
                    "devices of type {kind} are not supported; a gateway takes Ethernet, Wi-Fi, bridges, PPP and tunnels of IP"
                ),
            });
        }
        if self.mtu > MOST_BYTES {
            return refused(format!(
                "its MTU is {}, and a link carries packets of at most {MOST_BYTES} bytes: ip link set {name} mtu {MOST_BYTES}",
                self.mtu
            ));
        }
        let programs = SchedClassifier::query_tcx(name, TcAttachType::Ingress).map(|(_, programs)| programs);
        if programs.unwrap_or_default().iter().any(|program| program.name() == b"from_devices") {
            return refused("a gateway runs there already".to_owned());
        }
        Ok(())
    }
}

/// Length of an Ethernet header, bytes.
const ETHERNET: u32 = 14;
/// Type of modems' interfaces without a link header (`ARPHRD_RAWIP` of `linux/if_arp.h`).
const RAWIP: u16 = 519;
/// Attribute of `linux/if_link.h` with the kind of the device of which an interface is a part.
const INFO_SLAVE_KIND: u16 = 4;
