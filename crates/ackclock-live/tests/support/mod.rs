//! Hosts of our own: network namespaces with TUN devices or wires between them. What is sent there reaches nobody else.
//!
//! Needs root and iproute2; where that is missing [`Lab::new`] says so, and the test is skipped.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::fs::File;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use ackclock_core::{Span, Time};
use ackclock_edge::EdgeConfig;
use ackclock_link::NoFiles;
use ackclock_live::{Driver, Orders, Plane, PlaneConfig, RealClock, Remote, Side, TunPort};
use nix::sched::{CloneFlags, setns};

/// How a TUN device hands over what the kernel sends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Packets {
    /// As super-packets, each behind a virtio header.
    Super,
    /// One by one, nothing before them.
    Plain,
}

/// Two hosts, a server and a mobile.
pub struct Lab {
    /// Namespaces, removed when the lab is.
    names: Vec<String>,
}

pub const SERVER: usize = 0;
pub const MOBILE: usize = 1;
pub const ADDRESS: [&str; 2] = ["10.77.0.1", "10.77.0.2"];
pub const ADDRESS6: [&str; 2] = ["fd77::1", "fd77::2"];

impl Lab {
    /// Makes the hosts, with nothing between them.
    ///
    /// # Errors
    /// Says what this machine forbids.
    pub fn new(purpose: &str) -> Result<Self, String> {
        let mut lab = Self { names: Vec::new() };
        for host in ["server", "mobile", "router"] {
            let name = format!("ackclock-{purpose}-{}-{host}", std::process::id());
            ip(&["netns", "add", &name])?;
            lab.names.push(name);
        }
        for host in [SERVER, MOBILE] {
            lab.ip(host, &["link", "set", "lo", "up"])?;
        }
        Ok(lab)
    }

    /// The namespace of a host.
    pub fn name(&self, host: usize) -> &str {
        &self.names[host]
    }

    /// Runs `ip` in a host.
    pub fn ip(&self, host: usize, arguments: &[&str]) -> Result<(), String> {
        ip(&[&["-n", self.name(host)], arguments].concat())
    }

    /// A thread that lives in a host.
    pub fn within<T: Send + 'static>(
        &self,
        host: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let path = format!("/run/netns/{}", self.name(host));
        std::thread::spawn(move || {
            let namespace = File::open(path).expect("the namespace was made");
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("root may enter it");
            work()
        })
    }

    /// A command that will run in a host.
    pub fn command(&self, host: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", self.name(host), program])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A TUN device in each host, by side, through which it reaches the other.
    pub fn tuns(&self, packets: Packets) -> Result<[OwnedFd; 2], String> {
        let open = |host: usize| {
            let device = self.within(host, move || {
                let builder = tun_rs::DeviceBuilder::new().name("tun0").mtu(1500);
                let device = builder.offload(packets == Packets::Super).build_sync();
                device
                    .map(|device| device.into_raw_fd())
                    .map_err(|error| format!("opening a TUN device: {error}"))
            });
            let raw = device.join().map_err(|_| "the thread died".to_owned())??;
            let other = 1 - host;
            self.ip(host, &["addr", "add", ADDRESS[host], "peer", ADDRESS[other], "dev", "tun0"])?;
            self.ip(
                host,
                &["-6", "addr", "add", ADDRESS6[host], "peer", ADDRESS6[other], "dev", "tun0", "nodad"],
            )?;
            self.ip(host, &["link", "set", "tun0", "up"])?;
            // SAFETY: the device was given up to us and nobody else has the number.
            #[allow(unsafe_code)]
            Ok::<_, String>(unsafe { OwnedFd::from_raw_fd(raw) })
        };
        Ok([open(SERVER)?, open(MOBILE)?])
    }

    /// Wires between the hosts, through a router that forwards as the kernel does. Packets stay as small as senders make
    /// them where `split`, as they would on a link.
    pub fn wires(&self, split: bool) -> Result<(), String> {
        const ROUTER: usize = 2;
        for host in [SERVER, MOBILE] {
            let (near, far) = (format!("wire{host}"), ADDRESS[1 - host]);
            let gateway = format!("10.77.{}.254", host + 1);
            self.ip(
                ROUTER,
                &["link", "add", &near, "type", "veth", "peer", "name", "eth0", "netns", self.name(host)],
            )?;
            self.ip(ROUTER, &["addr", "add", &gateway, "dev", &near])?;
            self.ip(ROUTER, &["link", "set", &near, "up"])?;
            self.ip(host, &["addr", "add", ADDRESS[host], "dev", "eth0"])?;
            self.ip(host, &["link", "set", "eth0", "up"])?;
            self.ip(ROUTER, &["route", "add", ADDRESS[host], "dev", &near])?;
            self.ip(host, &["route", "add", &gateway, "dev", "eth0"])?;
            self.ip(host, &["route", "add", far, "via", &gateway])?;
            if split {
                let off = ["tso", "off", "gso", "off", "gro", "off"];
                run(self.command(host, "ethtool").args(["-K", "eth0"]).args(off))?;
                run(self.command(ROUTER, "ethtool").args(["-K", &near]).args(off))?;
            }
        }
        run(self.command(ROUTER, "sysctl").args(["-qw", "net.ipv4.ip_forward=1"]))
    }

    /// Packets that a host's interface has received.
    pub fn received(&self, host: usize, interface: &str) -> u64 {
        let interface = format!("{interface}:");
        let count = self.within(host, move || {
            let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
            let row =
                table.lines().find(|line| line.trim_start().starts_with(&interface)).map(str::to_owned)?;
            // face |bytes packets ...
            row.split_whitespace().nth(2)?.parse().ok()
        });
        count.join().ok().flatten().unwrap_or(0)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in &self.names {
            // A namespace that is left behind holds nothing but itself.
            let _ = ip(&["netns", "del", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    run(Command::new("ip").args(arguments))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// A driver in a thread of its own, between the TUN devices of a lab.
pub struct Running {
    pub remote: Remote,
    thread: JoinHandle<Driver<RealClock, TunPort>>,
}

impl Running {
    pub fn start(
        tuns: [OwnedFd; 2],
        edge: &EdgeConfig,
        delay: Span,
        spin: Span,
        core: Option<usize>,
    ) -> Self {
        let plane =
            Plane::new(&PlaneConfig { delay, ..PlaneConfig::new(edge) }, &NoFiles).expect("a sound edge");
        let ports = tuns.map(|tun| TunPort::new(tun, plane.pool()).expect("a TUN device"));
        let (orders, remote) = Orders::new().expect("an event file");
        let thread = std::thread::spawn(move || {
            if let Some(core) = core {
                pin(core);
            }
            let [wired, radio] = &ports;
            use std::os::fd::AsFd;
            let clock =
                RealClock::new([wired.as_fd(), radio.as_fd()], orders.as_fd(), spin).expect("a clock");
            let mut driver = Driver::new(plane, clock, ports);
            driver.run(&orders, None).expect("the devices stay");
            driver
        });
        Self { remote, thread }
    }

    pub fn stop(self) -> Driver<RealClock, TunPort> {
        self.remote.stop();
        self.thread.join().expect("the driver does not panic")
    }
}

/// Keeps the calling thread on one core.
pub fn pin(core: usize) {
    let mut cores = nix::sched::CpuSet::new();
    // On a machine with fewer cores the thread stays where it is.
    if cores.set(core).is_ok() {
        let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &cores);
    }
}

/// The side of a host.
pub const fn side(host: usize) -> Side {
    if host == SERVER { Side::Wired } else { Side::Radio }
}

/// Nothing has happened yet.
pub const START: Time = Time::ZERO;
