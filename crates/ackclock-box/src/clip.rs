//! Loads the BPF program into the kernel, attaches it to an interface, pins it, and removes it.
//!
//! Maps and links are pinned below `/sys/fs/bpf/ackclock`. The BPF program therefore keeps running after the process
//! that loaded it exits. The next box process takes over the pinned program without a gap.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::net::Ipv6Addr;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use ackclock_link::Side;
use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::links::{FdLink, LinkError, PinnedLink};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, ProgramError, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfError, EbpfLoader};

use crate::clsact;
use crate::maps::{Allowance, Counts, Flow, Knobs, Subscriber, Totals, Tuple};

#[cfg(target_endian = "little")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/clip.bpfel.o");
#[cfg(target_endian = "big")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/clip.bpfeb.o");

/// Folder that contains the pins of all boxes.
pub const PINS: &str = "/sys/fs/bpf/ackclock";

/// Version of the memory layout of the maps. A running box with a different layout version is replaced, not taken over.
const LAYOUT: u32 = 5;
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
/// Names of the BPF programs: the program that sees the packets from the servers, and the program that sees the packets
/// from the mobiles.
const PROGRAMS: [&str; 2] = ["clip_data", "clip_acks"];
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

/// Error while the BPF program is loaded, attached, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum ClipError {
    /// The given name is not a valid name of a network interface.
    #[error("`{0}` is not the name of a network interface")]
    Name(String),
    /// `/sys/fs/bpf` is not a BPF file system.
    #[error("/sys/fs/bpf is no BPF file system: mount -t bpf bpf /sys/fs/bpf")]
    NoFileSystem,
    /// No box is pinned for this interface.
    #[error("no box runs on `{0}`")]
    NotRunning(String),
    /// A pinned file could not be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// The kernel refused to load the BPF program.
    #[error("the kernel does not load the program: {0}")]
    Load(#[from] EbpfError),
    /// The kernel refused to attach the BPF program.
    #[error("the kernel does not attach the program: {0}")]
    Attach(#[from] ProgramError),
    /// A pinned link could not be opened or used.
    #[error("a pinned link: {0}")]
    Link(#[from] LinkError),
    /// A BPF map could not be opened, read or written.
    #[error("a map of the program: {0}")]
    Map(#[from] MapError),
}

/// Folder that contains the pinned maps and links of one interface.
#[derive(Clone, Debug)]
pub struct Pins {
    interface: String,
    folder: PathBuf,
}

impl Pins {
    /// Returns the pin folder of the box on `interface`.
    ///
    /// # Errors
    /// Fails if `interface` is not a valid name of a network interface.
    pub fn of(interface: &str) -> Result<Self, ClipError> {
        let plain = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
        if interface.is_empty()
            || interface.len() > 15
            || !interface.chars().all(plain)
            || interface.starts_with('.')
        {
            return Err(ClipError::Name(interface.to_owned()));
        }
        Ok(Self {
            interface: interface.to_owned(),
            folder: Path::new(PINS).join(format!("{interface}:{LAYOUT}")),
        })
    }

    /// Returns whether a box is pinned for this interface.
    pub fn exist(&self) -> bool {
        self.folder.join("knobs").exists()
    }

    /// Removes all pins of the interface, for every layout version. Removing the pins detaches the programs. Returns
    /// whether any pin of the interface existed.
    ///
    /// # Errors
    /// Fails with the name of the file that cannot be removed.
    pub fn remove(&self) -> Result<bool, ClipError> {
        let at = |path: &Path, error| ClipError::File(path.to_owned(), error);
        let folders = match fs::read_dir(PINS) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            listed => listed.map_err(|error| at(Path::new(PINS), error))?,
        };
        let mut any = false;
        for folder in folders.filter_map(Result::ok) {
            let name = folder.file_name();
            let ours = name.to_str().and_then(|name| name.rsplit_once(':'));
            if ours.is_none_or(|(interface, _)| interface != self.interface) {
                continue;
            }
            let folder = folder.path();
            if let Some(is_added) = qdisc(&folder) {
                clsact::remove(&self.interface, is_added).map_err(|error| at(&folder, error))?;
            }
            for file in fs::read_dir(&folder).map_err(|error| at(&folder, error))?.filter_map(Result::ok) {
                fs::remove_file(file.path()).map_err(|error| at(&file.path(), error))?;
            }
            fs::remove_dir(&folder).map_err(|error| at(&folder, error))?;
            any = true;
        }
        // Removing the last box also removes the parent folder of all pins.
        let _ = fs::remove_dir(PINS);
        Ok(any)
    }

    fn make(&self) -> Result<(), ClipError> {
        // `BPF_FS_MAGIC` is the type number of a BPF file system.
        let found = nix::sys::statfs::statfs("/sys/fs/bpf").ok();
        if found.is_none_or(|found| found.filesystem_type() != nix::sys::statfs::BPF_FS_MAGIC) {
            return Err(ClipError::NoFileSystem);
        }
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&self.folder)
            .map_err(|error| ClipError::File(self.folder.clone(), error))
    }

    /// Attaches a program by tcx and pins the link.
    fn attach_by_tcx(
        &self,
        program: &mut SchedClassifier,
        pin: &str,
        hook: TcAttachType,
    ) -> Result<(), ClipError> {
        let options = TcAttachOptions::TcxOrder(LinkOrder::default());
        let link = program.attach_with_options(&self.interface, hook, options)?;
        let (link, pin) = (FdLink::try_from(program.take_link(link)?)?, self.folder.join(pin));
        link.pin(&pin).map(drop).map_err(|error| ClipError::File(pin, io::Error::other(error)))
    }

    /// Attaches a program by clsact, and notes who added this queue discipline.
    fn attach_by_clsact(&self, program: &mut SchedClassifier, hook: TcAttachType) -> Result<(), ClipError> {
        if qdisc(&self.folder).is_none() {
            let note = if clsact::add(&self.interface)? { ADDED } else { FOUND };
            let path = self.folder.join(QDISC);
            symlink(note, &path).map_err(|error| ClipError::File(path, error))?;
        }
        Ok(clsact::attach(program, &self.interface, hook)?)
    }

    fn map(&self, name: &str) -> Result<MapData, ClipError> {
        MapData::from_pin(self.folder.join(name)).map_err(|_| ClipError::NotRunning(self.interface.clone()))
    }

    /// Returns the packet and byte counters of the pinned box.
    ///
    /// # Errors
    /// Fails if no box is pinned for the interface.
    pub fn counts(&self) -> Result<Counts, ClipError> {
        counts_of(&PerCpuArray::try_from(Map::PerCpuArray(self.map("counts")?))?)
    }

    /// Returns the current settings of the pinned box.
    ///
    /// # Errors
    /// Fails if no box is pinned for the interface.
    pub fn knobs(&self) -> Result<Knobs, ClipError> {
        Ok(Array::<_, Knobs>::try_from(Map::Array(self.map("knobs")?))?.get(&0, 0)?)
    }

    /// Applies the function `change` to the settings of the pinned box.
    ///
    /// # Errors
    /// Fails if no box is pinned for the interface.
    pub fn turn(&self, change: impl FnOnce(&mut Knobs)) -> Result<(), ClipError> {
        let mut map = Array::<_, Knobs>::try_from(Map::Array(self.map("knobs")?))?;
        let mut knobs = map.get(&0, 0)?;
        change(&mut knobs);
        Ok(map.set(0, knobs, 0)?)
    }
}

/// Name of the symbolic link among the pins that says how the interface got the queue discipline clsact. A BPF file system
/// has no files with content.
const QDISC: &str = "clsact";
/// Target of the symbolic link if the box added clsact.
const ADDED: &str = "added";
/// Target of the symbolic link if the interface had clsact before.
const FOUND: &str = "found";

/// Whether a box added clsact to its interface; `None` if the box does not use clsact.
fn qdisc(folder: &Path) -> Option<bool> {
    fs::read_link(folder.join(QDISC)).ok().map(|note| note == Path::new(ADDED))
}

fn counts_of(map: &PerCpuArray<impl std::borrow::Borrow<MapData>, Counts>) -> Result<Counts, ClipError> {
    Ok(Counts::sum(&map.get(&0, 0)?))
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
        if pins.exist()
            && let Ok(clip) = Self::take_over(pins, side, many)
        {
            return Ok((clip, true));
        }
        // The maps of a detached program are dropped, because they lack the windows advertised in the meantime. With
        // outdated maps, a right edge could move left.
        pins.remove()?;
        pins.make()?;
        let mut clip = Self::with_maps(pins, many)?;
        for (name, (pin, hook)) in PROGRAMS.into_iter().zip(hooks(side)) {
            let program = clip.program(name)?;
            match pins.attach_by_tcx(program, pin, hook) {
                Err(ClipError::Attach(error)) if clsact::is_needed(&error) => {
                    pins.attach_by_clsact(program, hook)?;
                }
                attached => attached?,
            }
        }
        Ok((clip, false))
    }

    /// Replaces the attached program and keeps its maps. Fails if a pinned link or a filter is missing, or the
    /// interface no longer exists.
    fn take_over(pins: &Pins, side: Side, many: bool) -> Result<Self, ClipError> {
        let mut clip = Self::with_maps(pins, many)?;
        let is_clsact = qdisc(&pins.folder).is_some();
        for (name, (pin, hook)) in PROGRAMS.into_iter().zip(hooks(side)) {
            let program = clip.program(name)?;
            if is_clsact {
                clsact::replace(program, &pins.interface, hook)?;
            } else {
                let link = FdLink::from(PinnedLink::from_pin(pins.folder.join(pin))?);
                program.attach_to_link(link.try_into()?)?;
            }
        }
        Ok(clip)
    }

    /// Loads the BPF program with the pinned maps, and creates the maps that are missing.
    fn with_maps(pins: &Pins, many: bool) -> Result<Self, ClipError> {
        let mut loader = EbpfLoader::new();
        if many {
            loader.map_max_entries("flows", MOST_FLOWS);
        }
        for map in MAPS {
            loader.map_pin_path(map, pins.folder.join(map));
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
        counts_of(&PerCpuArray::try_from(&*self.map("counts")?)?)
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
