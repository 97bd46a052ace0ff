//! Loads the BPF program into the kernel, and attaches it to an interface.
//!
//! Maps and links are [pinned](crate::pins). The BPF program therefore keeps running after the process that loaded it
//! exits. The next box process takes over the pinned program without a gap.

use std::io::ErrorKind;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use ackclock_link::Side;
use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader};

use crate::clsact;
use crate::error::ClipError;
use crate::maps::{Allowance, Counts, Flow, Knobs, Subscriber, Totals, Tuple};
use crate::names::PROGRAMS;
use crate::pins::Folder;
pub use crate::pins::Pins;

#[cfg(target_endian = "little")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/clip.bpfel.o");
#[cfg(target_endian = "big")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/clip.bpfeb.o");

const MAPS: [&str; 11] = [
    "knobs",
    "prefixes",
    "allowances",
    "totals",
    "unlisted",
    "counts",
    "numbers",
    "opening",
    "opened",
    "flows",
    "records",
];
/// Largest number of subscribers with traffic, the size of the kernel's maps of subscribers.
pub const MOST_SUBSCRIBERS: usize = 4096;
/// Largest number of connections with data that the kernel knows, for a box with a list of networks. The program's own
/// size is that of a box with one subscriber.
pub(crate) const MOST_FLOWS: u32 = 131_072;

/// Hooks of the interface where the [`PROGRAMS`] are attached, each with the file name of the pinned link.
const fn hooks(side: Side) -> [(&'static str, TcAttachType); 2] {
    match side {
        Side::Mobile => [("data-in", TcAttachType::Ingress), ("acks-out", TcAttachType::Egress)],
        Side::Network => [("data-out", TcAttachType::Egress), ("acks-in", TcAttachType::Ingress)],
    }
}

/// Attaches a program by tcx before all other programs, and pins the link. A program that ends the chain hides packets
/// from the programs after it; the box's programs never end it.
fn attach_by_tcx(
    program: &mut SchedClassifier,
    interface: &str,
    folder: &Folder,
    pin: &str,
    hook: TcAttachType,
) -> Result<(), ClipError> {
    let options = TcAttachOptions::TcxOrder(LinkOrder::first());
    let link = program.attach_with_options(interface, hook, options)?;
    let link = FdLink::try_from(program.take_link(link)?)?;
    link.pin(folder.path(pin)).map(drop).map_err(|error| folder.error(pin, error))
}

/// Attaches a program by clsact, and notes who added this queue discipline.
fn attach_by_clsact(
    program: &mut SchedClassifier,
    interface: &str,
    folder: &Folder,
    hook: TcAttachType,
) -> Result<(), ClipError> {
    if folder.qdisc().is_none() {
        folder.note_qdisc(clsact::add(interface)?)?;
    }
    Ok(clsact::attach(program, interface, hook)?)
}

/// The loaded BPF program and its maps.
pub struct Clip {
    ebpf: Ebpf,
}

impl Clip {
    /// Loads the BPF program without pins and attaches it to no interface.
    ///
    /// # Errors
    /// Fails if the kernel refuses the BPF program.
    pub fn load() -> Result<Self, ClipError> {
        Self::prepared(Ebpf::load(OBJECT)?)
    }

    /// Loads, attaches and pins the BPF program. The box is on the side `side` of the radio, and `many` says whether it has
    /// a list of networks and therefore more connections. If an earlier program is attached, the new program replaces it without
    /// a gap and keeps its maps. The returned boolean says whether an earlier program was replaced.
    ///
    /// # Errors
    /// Fails if there is no BPF file system, or if the kernel refuses the program, a map or a link.
    pub fn attach(pins: &Pins, side: Side, many: bool) -> Result<(Self, bool), ClipError> {
        if pins.is_attached()?
            && let Some(folder) = pins.folder()?
            && let Ok(clip) = Self::take_over(pins, &folder, side, many)
        {
            return Ok((clip, true));
        }
        // The maps of a detached program are dropped, because they lack the windows advertised in the meantime. With
        // outdated maps, a right edge could move left.
        pins.remove()?;
        let folder = pins.make()?;
        let mut clip = Self::with_maps(&folder, many)?;
        for (name, (pin, hook)) in PROGRAMS.into_iter().zip(hooks(side)) {
            let program = clip.program(name)?;
            match attach_by_tcx(program, pins.interface(), &folder, pin, hook) {
                Err(ClipError::Attach(error)) if clsact::is_needed(&error) => {
                    attach_by_clsact(program, pins.interface(), &folder, hook)?;
                }
                attached => attached?,
            }
        }
        if pins.is_attached()? {
            Ok((clip, false))
        } else {
            Err(ClipError::Replaced(pins.interface().to_owned()))
        }
    }

    /// Replaces the attached program and keeps its maps. Fails if a pinned link or a filter is missing, or the
    /// interface no longer exists.
    fn take_over(pins: &Pins, folder: &Folder, side: Side, many: bool) -> Result<Self, ClipError> {
        let mut clip = Self::with_maps(folder, many)?;
        let is_clsact = folder.qdisc().is_some();
        for (name, (pin, hook)) in PROGRAMS.into_iter().zip(hooks(side)) {
            let program = clip.program(name)?;
            if is_clsact {
                clsact::replace(program, pins.interface(), hook)?;
            } else {
                let link = FdLink::from(PinnedLink::from_pin(folder.path(pin))?);
                program.attach_to_link(link.try_into()?)?;
            }
        }
        Ok(clip)
    }

    /// Loads the BPF program with the pinned maps, and creates the maps that are missing.
    fn with_maps(folder: &Folder, many: bool) -> Result<Self, ClipError> {
        let mut loader = EbpfLoader::new();
        if many {
            loader.map_max_entries("flows", MOST_FLOWS);
        }
        for map in MAPS {
            loader.map_pin_path(map, folder.path(map));
        }
        Self::prepared(loader.load(OBJECT)?)
    }

    fn prepared(mut ebpf: Ebpf) -> Result<Self, ClipError> {
        for name in PROGRAMS {
            if let Some(program) = ebpf.program_mut(name) {
                <&mut SchedClassifier>::try_from(program)?.load()?;
            }
        }
        Ok(Self { ebpf })
    }

    /// Returns the BPF program called `name`: `clip_data` or `clip_acks`.
    ///
    /// # Errors
    /// Fails if no BPF program is called `name`.
    pub fn program(&mut self, name: &str) -> Result<&mut SchedClassifier, ClipError> {
        let missing = || ClipError::File(PathBuf::from(name), ErrorKind::NotFound.into());
        Ok(self.ebpf.program_mut(name).ok_or_else(missing)?.try_into()?)
    }

    fn map(&mut self, name: &str) -> Result<&mut Map, ClipError> {
        let missing = || ClipError::File(PathBuf::from(name), ErrorKind::NotFound.into());
        self.ebpf.map_mut(name).ok_or_else(missing)
    }

    /// Writes new settings for the BPF program.
    ///
    /// # Errors
    /// Fails if the kernel refuses to write the map of settings.
    pub fn set(&mut self, knobs: Knobs) -> Result<(), ClipError> {
        Ok(Array::<_, Knobs>::try_from(self.map("knobs")?)?.set(0, knobs, 0)?)
    }

    /// Replaces the networks whose addresses belong to subscribers. Each network is an IPv6 prefix, its length, and the
    /// length of the prefix of one subscriber.
    ///
    /// # Errors
    /// Fails if the kernel refuses to write the map of networks.
    pub fn cover(&mut self, networks: &[(Ipv6Addr, u32, u32)]) -> Result<(), ClipError> {
        let mut map = LpmTrie::<_, [u32; 4], u32>::try_from(self.map("prefixes")?)?;
        let key =
            |(address, bits, _): (Ipv6Addr, u32, u32)| Key::new(bits, Subscriber::from(address).address);
        let wanted: Vec<_> = networks.iter().map(|network| key(*network)).collect();
        let known: Vec<_> = map.keys().collect::<Result<_, _>>()?;
        let same = |a: &Key<[u32; 4]>, b: &Key<_>| (a.prefix_len(), a.data()) == (b.prefix_len(), b.data());
        for old in known.iter().filter(|old| !wanted.iter().any(|new| same(old, new))) {
            map.remove(old)?;
        }
        for (key, (.., own)) in wanted.iter().zip(networks) {
            map.insert(key, own, 0)?;
        }
        Ok(())
    }

    /// Adds a subscriber, whose traffic the kernel counts from now on.
    ///
    /// # Errors
    /// Fails if the map of subscribers is full.
    pub fn admit(&mut self, subscriber: Ipv6Addr) -> Result<(), ClipError> {
        let mut map = HashMap::<_, Subscriber, Totals>::try_from(self.map("totals")?)?;
        match map.get(&subscriber.into(), 0) {
            Err(MapError::KeyNotFound) => {
                map.insert(Subscriber::from(subscriber), Totals::default(), 0)?;
            }
            known => drop(known?),
        }
        self.forget_unlisted(subscriber)
    }

    /// Removes the count of a subscriber that was not added before.
    fn forget_unlisted(&mut self, subscriber: Ipv6Addr) -> Result<(), ClipError> {
        let key = Subscriber::from(subscriber);
        match HashMap::<_, Subscriber, u64>::try_from(self.map("unlisted")?)?.remove(&key) {
            Err(MapError::SyscallError(error)) if error.io_error.kind() == ErrorKind::NotFound => Ok(()),
            Err(MapError::KeyNotFound) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Removes a subscriber and its allowance.
    ///
    /// # Errors
    /// Fails if the kernel refuses to write a map.
    pub fn dismiss(&mut self, subscriber: Ipv6Addr) -> Result<(), ClipError> {
        let key = Subscriber::from(subscriber);
        let known = |removed| match removed {
            Err(MapError::SyscallError(error)) if error.io_error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        known(HashMap::<_, Subscriber, Allowance>::try_from(self.map("allowances")?)?.remove(&key))?;
        Ok(known(HashMap::<_, Subscriber, Totals>::try_from(self.map("totals")?)?.remove(&key))?)
    }

    /// Writes a subscriber's allowance: the number of bytes that each of its servers may send beyond the base.
    ///
    /// # Errors
    /// Fails if the kernel refuses to write the map of allowances.
    pub fn allow(&mut self, subscriber: Ipv6Addr, allowance: Allowance) -> Result<(), ClipError> {
        let mut map = HashMap::<_, Subscriber, Allowance>::try_from(self.map("allowances")?)?;
        Ok(map.insert(Subscriber::from(subscriber), allowance, 0)?)
    }

    /// Returns the current allowance of every subscriber that has one.
    ///
    /// # Errors
    /// Fails if the kernel refuses to read the map of allowances.
    pub fn allowances(&mut self) -> Result<Vec<(Ipv6Addr, Allowance)>, ClipError> {
        let map = HashMap::<_, Subscriber, Allowance>::try_from(&*self.map("allowances")?)?;
        let pairs = map.iter().map(|pair| pair.map(|(key, value)| (key.into(), value)));
        Ok(pairs.collect::<Result<_, _>>()?)
    }

    /// Returns the traffic of every subscriber that was added.
    ///
    /// # Errors
    /// Fails if the kernel refuses to read the map of traffic.
    pub fn totals(&mut self) -> Result<Vec<(Ipv6Addr, Totals)>, ClipError> {
        let map = HashMap::<_, Subscriber, Totals>::try_from(&*self.map("totals")?)?;
        let pairs = map.iter().map(|pair| pair.map(|(key, value)| (key.into(), value)));
        Ok(pairs.collect::<Result<_, _>>()?)
    }

    /// Returns the bytes of subscribers that are not added, as far as the kernel's bounded map remembers them.
    ///
    /// # Errors
    /// Fails if the kernel refuses to read the map.
    pub fn unlisted(&mut self) -> Result<Vec<(Ipv6Addr, u64)>, ClipError> {
        let map = HashMap::<_, Subscriber, u64>::try_from(&*self.map("unlisted")?)?;
        // An entry may be evicted while the map is read.
        Ok(map.iter().filter_map(Result::ok).map(|(key, bytes)| (key.into(), bytes)).collect())
    }

    /// Returns the packet and byte counters of the BPF program.
    ///
    /// # Errors
    /// Fails if the kernel refuses to read the map of counters.
    pub fn counts(&mut self) -> Result<Counts, ClipError> {
        let map = PerCpuArray::<_, Counts>::try_from(&*self.map("counts")?)?;
        Ok(Counts::sum(&map.get(&0, 0)?))
    }

    /// Returns the BPF program's state of a connection, or `None` for an unknown connection.
    ///
    /// # Errors
    /// Fails if the kernel refuses to read the map of connections.
    pub fn flow(&mut self, tuple: Tuple) -> Result<Option<Flow>, ClipError> {
        for name in ["flows", "opened"] {
            match HashMap::<_, Tuple, Flow>::try_from(&*self.map(name)?)?.get(&tuple, 0) {
                Err(MapError::KeyNotFound) => {}
                found => return Ok(Some(found?)),
            }
        }
        Ok(None)
    }

    /// Returns the ring buffer from which the records of the BPF program are read.
    ///
    /// # Errors
    /// Fails if the ring buffer cannot be opened.
    pub fn records(&mut self) -> Result<RingBuf<MapData>, ClipError> {
        let missing = || ClipError::File(PathBuf::from("records"), ErrorKind::NotFound.into());
        Ok(RingBuf::try_from(self.ebpf.take_map("records").ok_or_else(missing)?)?)
    }
}
