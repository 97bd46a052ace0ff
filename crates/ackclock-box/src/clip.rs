//! The program in the kernel: loaded, attached to an interface, pinned, and removed again.
//!
//! Maps and links are pinned below `/sys/fs/bpf/ackclock`, so that the program goes on when the process that loaded it
//! has ended, and the next one takes it over without a gap.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::links::{FdLink, LinkError, PinnedLink};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, ProgramError, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfError, EbpfLoader};

use crate::maps::{Allowance, Counts, Flow, Knobs, Tuple};

#[cfg(target_endian = "little")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/clip.bpfel.o");
#[cfg(target_endian = "big")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/clip.bpfeb.o");

/// Where all boxes are pinned.
pub const PINS: &str = "/sys/fs/bpf/ackclock";

/// Layout of the maps. A box of another layout is not taken over.
const LAYOUT: u32 = 3;
const MAPS: [&str; 8] = ["knobs", "allowances", "counts", "numbers", "opening", "opened", "flows", "records"];
/// Programs, what they are pinned as, and which packets of the interface they see.
const PROGRAMS: [(&str, &str, TcAttachType); 2] =
    [("clip_in", "in", TcAttachType::Ingress), ("clip_out", "out", TcAttachType::Egress)];

/// Why the program cannot be loaded, attached, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum ClipError {
    /// The name is none of an interface.
    #[error("`{0}` is not the name of a network interface")]
    Name(String),
    /// No BPF file system.
    #[error("/sys/fs/bpf is no BPF file system: mount -t bpf bpf /sys/fs/bpf")]
    NoFileSystem,
    /// Nothing is pinned for this interface.
    #[error("no box runs on `{0}`")]
    NotRunning(String),
    /// A file of the pins.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// The kernel does not load the program.
    #[error("the kernel does not load the program: {0}")]
    Load(#[from] EbpfError),
    /// The kernel does not attach the program.
    #[error("the kernel does not attach the program: {0}")]
    Attach(#[from] ProgramError),
    /// A pinned link.
    #[error("a pinned link: {0}")]
    Link(#[from] LinkError),
    /// A map.
    #[error("a map of the program: {0}")]
    Map(#[from] MapError),
}

/// The folder of an interface's pins.
#[derive(Clone, Debug)]
pub struct Pins {
    interface: String,
    folder: PathBuf,
}

impl Pins {
    /// Where the box of `interface` is pinned.
    ///
    /// # Errors
    /// If no interface can have this name.
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

    /// Whether something is pinned.
    pub fn exist(&self) -> bool {
        self.folder.join("out").exists()
    }

    /// Removes all pins of the interface, of every layout: the programs are detached. Returns whether there were any.
    ///
    /// # Errors
    /// Names the file that cannot be removed.
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
            for file in fs::read_dir(&folder).map_err(|error| at(&folder, error))?.filter_map(Result::ok) {
                fs::remove_file(file.path()).map_err(|error| at(&file.path(), error))?;
            }
            fs::remove_dir(&folder).map_err(|error| at(&folder, error))?;
            any = true;
        }
        // The last box leaves nothing.
        let _ = fs::remove_dir(PINS);
        Ok(any)
    }

    fn make(&self) -> Result<(), ClipError> {
        // BPF_FS_MAGIC
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

    fn map(&self, name: &str) -> Result<MapData, ClipError> {
        MapData::from_pin(self.folder.join(name)).map_err(|_| ClipError::NotRunning(self.interface.clone()))
    }

    /// What was counted.
    ///
    /// # Errors
    /// If no box is pinned.
    pub fn counts(&self) -> Result<Counts, ClipError> {
        counts_of(&PerCpuArray::try_from(Map::PerCpuArray(self.map("counts")?))?)
    }

    /// What the program is told now.
    ///
    /// # Errors
    /// If no box is pinned.
    pub fn knobs(&self) -> Result<Knobs, ClipError> {
        Ok(Array::<_, Knobs>::try_from(Map::Array(self.map("knobs")?))?.get(&0, 0)?)
    }

    /// Tells the program something else.
    ///
    /// # Errors
    /// If no box is pinned.
    pub fn turn(&self, change: impl FnOnce(&mut Knobs)) -> Result<(), ClipError> {
        let mut map = Array::<_, Knobs>::try_from(Map::Array(self.map("knobs")?))?;
        let mut knobs = map.get(&0, 0)?;
        change(&mut knobs);
        Ok(map.set(0, knobs, 0)?)
    }
}

fn counts_of(map: &PerCpuArray<impl std::borrow::Borrow<MapData>, Counts>) -> Result<Counts, ClipError> {
    Ok(Counts::sum(&map.get(&0, 0)?))
}

/// The loaded program with its maps.
pub struct Clip {
    ebpf: Ebpf,
}

impl Clip {
    /// Loads the program for itself alone, attached to nothing.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn load() -> Result<Self, ClipError> {
        Self::prepared(Ebpf::load(OBJECT)?)
    }

    /// Loads the program, attaches it and pins it. Where an earlier one is attached, the new one takes its place and its maps
    /// without a gap. Returns whether there was one.
    ///
    /// # Errors
    /// If there is no BPF file system, or the kernel refuses something.
    pub fn attach(pins: &Pins) -> Result<(Self, bool), ClipError> {
        if pins.exist()
            && let Ok(clip) = Self::take_over(pins)
        {
            return Ok((clip, true));
        }
        // What was advertised while no program was attached is unknown: nothing of before is used, and no edge moves left.
        pins.remove()?;
        pins.make()?;
        let mut clip = Self::with_maps(pins)?;
        for (name, pin, side) in PROGRAMS {
            let program = clip.program(name)?;
            let options = TcAttachOptions::TcxOrder(LinkOrder::default());
            let link = program.attach_with_options(&pins.interface, side, options)?;
            let (link, pin) = (FdLink::try_from(program.take_link(link)?)?, pins.folder.join(pin));
            link.pin(&pin).map_err(|error| ClipError::File(pin, io::Error::other(error)))?;
        }
        Ok((clip, false))
    }

    /// Fails where a link is missing, or its interface is gone.
    fn take_over(pins: &Pins) -> Result<Self, ClipError> {
        let mut clip = Self::with_maps(pins)?;
        for (name, pin, _) in PROGRAMS {
            let link = FdLink::from(PinnedLink::from_pin(pins.folder.join(pin))?);
            clip.program(name)?.attach_to_link(link.try_into()?)?;
        }
        Ok(clip)
    }

    /// Loads the program with the pinned maps; those that are missing are made.
    fn with_maps(pins: &Pins) -> Result<Self, ClipError> {
        let mut loader = EbpfLoader::new();
        for map in MAPS {
            loader.map_pin_path(map, pins.folder.join(map));
        }
        Self::prepared(loader.load(OBJECT)?)
    }

    fn prepared(mut ebpf: Ebpf) -> Result<Self, ClipError> {
        for (name, ..) in PROGRAMS {
            if let Some(program) = ebpf.program_mut(name) {
                <&mut SchedClassifier>::try_from(program)?.load()?;
            }
        }
        Ok(Self { ebpf })
    }

    /// One of the two programs: `clip_in`, `clip_out`.
    ///
    /// # Errors
    /// If it has another name.
    pub fn program(&mut self, name: &str) -> Result<&mut SchedClassifier, ClipError> {
        let missing = || ClipError::File(PathBuf::from(name), ErrorKind::NotFound.into());
        Ok(self.ebpf.program_mut(name).ok_or_else(missing)?.try_into()?)
    }

    fn map(&mut self, name: &str) -> Result<&mut Map, ClipError> {
        let missing = || ClipError::File(PathBuf::from(name), ErrorKind::NotFound.into());
        self.ebpf.map_mut(name).ok_or_else(missing)
    }

    /// What the program is told.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn set(&mut self, knobs: Knobs) -> Result<(), ClipError> {
        Ok(Array::<_, Knobs>::try_from(self.map("knobs")?)?.set(0, knobs, 0)?)
    }

    /// What the sources may have ahead.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn allow(&mut self, allowance: Allowance) -> Result<(), ClipError> {
        Ok(Array::<_, Allowance>::try_from(self.map("allowances")?)?.set(0, allowance, 0)?)
    }

    /// What the sources may have ahead now.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn allowance(&mut self) -> Result<Allowance, ClipError> {
        Ok(Array::<_, Allowance>::try_from(&*self.map("allowances")?)?.get(&0, 0)?)
    }

    /// What was counted.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn counts(&mut self) -> Result<Counts, ClipError> {
        counts_of(&PerCpuArray::try_from(&*self.map("counts")?)?)
    }

    /// What the program knows of a connection; `None` if it knows none.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn flow(&mut self, tuple: Tuple) -> Result<Option<Flow>, ClipError> {
        for name in ["flows", "opened"] {
            match HashMap::<_, Tuple, Flow>::try_from(&*self.map(name)?)?.get(&tuple, 0) {
                Err(MapError::KeyNotFound) => {}
                found => return Ok(Some(found?)),
            }
        }
        Ok(None)
    }

    /// Gives each record that waits to `read`.
    ///
    /// # Errors
    /// If the ring cannot be opened.
    pub fn records(&mut self) -> Result<RingBuf<MapData>, ClipError> {
        let missing = || ClipError::File(PathBuf::from("records"), ErrorKind::NotFound.into());
        Ok(RingBuf::try_from(self.ebpf.take_map("records").ok_or_else(missing)?)?)
    }
}
