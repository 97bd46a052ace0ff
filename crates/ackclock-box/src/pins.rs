//! Pinned maps and links of a box, in a folder below `/sys/fs/bpf/ackclock` that no other user can change.
//!
//! Any user may create entries in a BPF file system of mode 1777. A folder is therefore opened without following a
//! symbolic link, its owner and mode are read from the descriptor, and every pin is reached through the descriptor. aya
//! takes paths: `/proc/self/fd/N/PIN` is the pin in the open folder N, also on kernels before `BPF_F_PATH_FD` (6.5).
//!
//! A box belongs to a network namespace and an interface index. The name of an interface may change, and other
//! namespaces have interfaces of the same name.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use aya::maps::{Array, Map, MapData, PerCpuArray};
use aya::programs::links::{FdLink, PinnedLink};
use nix::sys::statfs::{BPF_FS_MAGIC, fstatfs};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, mkdirat, openat, readlinkat, symlinkat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::error::ClipError;
use crate::maps::{Counts, Knobs};
use crate::names::{LINKS, ROOT};
use crate::{clsact, interface};

/// Version of the memory layout of the maps. A running box with a different layout version is replaced, not taken over.
const LAYOUT: u32 = 6;
/// Name of the symbolic link among the pins that says how the interface got the queue discipline clsact. A BPF file
/// system has no files with content.
const QDISC: &str = "clsact";
/// Target of the symbolic link if the box added clsact.
const ADDED: &str = "added";
/// Target of the symbolic link if the interface had clsact before.
const FOUND: &str = "found";
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// An open folder that no user but its owner can change.
#[derive(Debug)]
pub(crate) struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens the BPF file system. Every user may create entries there if the sticky bit keeps these users from moving
    /// the entries of others.
    fn root() -> Result<Self, ClipError> {
        let opened = open(CWD, OsStr::new(ROOT)).map_err(|error| at(Path::new(ROOT), error))?;
        let folder = Self { descriptor: opened.ok_or(ClipError::NoFileSystem)?, path: ROOT.into() };
        let found = fstatfs(&folder.descriptor).map_err(|error| at(&folder.path, error.into()))?;
        if found.filesystem_type() != BPF_FS_MAGIC {
            return Err(ClipError::NoFileSystem);
        }
        folder.checked(STICKY)
    }

    /// Opens the folder of the pins of all boxes; `None` if it does not exist.
    pub(crate) fn pins() -> Result<Option<Self>, ClipError> {
        Self::root()?.subfolder(OsStr::new("ackclock"))
    }

    /// Opens a subfolder, which has to belong to this user or root and must be closed to other users; `None` if it does
    /// not exist.
    fn subfolder(&self, name: &OsStr) -> Result<Option<Self>, ClipError> {
        let path = self.path.join(name);
        let Some(descriptor) = open(&self.descriptor, name).map_err(|error| at(&path, error))? else {
            return Ok(None);
        };
        Self { descriptor, path }.checked(0).map(Some)
    }

    /// Opens a subfolder, and creates the subfolder if it does not exist.
    fn made(&self, name: &OsStr) -> Result<Self, ClipError> {
        let failed = |error: Errno| at(&self.path.join(name), error.into());
        match mkdirat(&self.descriptor, name, Mode::RWXU) {
            Err(Errno::EXIST) => {}
            made => made.map_err(failed)?,
        }
        self.subfolder(name)?.ok_or_else(|| failed(Errno::NOENT))
    }

    /// Refuses a folder that another user owns or can change. A bit of `tolerated` in the mode makes up for write
    /// permission of other users.
    fn checked(self, tolerated: u32) -> Result<Self, ClipError> {
        let stat = fstat(&self.descriptor).map_err(|error| at(&self.path, error.into()))?;
        let user = geteuid().as_raw();
        let path = self.path.display();
        let why = if ![user, 0].contains(&stat.st_uid) {
            format!("it belongs to user {}, not to user {user}, who runs this command", stat.st_uid)
        } else if stat.st_mode & OTHERS_WRITE != 0 && stat.st_mode & tolerated == 0 {
            format!(
                "other users can write in it (mode {:04o}); as root: chmod go-w {path}",
                stat.st_mode & 0o7777
            )
        } else {
            return Ok(self);
        };
        Err(ClipError::Unsafe(self.path, why))
    }

    /// Names of the entries.
    fn names(&self) -> Result<Vec<Vec<u8>>, ClipError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = || {
            let entries = Dir::new(openat(&self.descriptor, ".", flags, Mode::empty())?)?;
            let name = |entry: rustix::fs::DirEntry| entry.file_name().to_bytes().to_vec();
            entries.map(|entry| entry.map(name)).collect::<Result<Vec<_>, Errno>>()
        };
        let mut names = listed().map_err(|error| at(&self.path, error.into()))?;
        names.retain(|name| name != b"." && name != b"..");
        names.sort();
        Ok(names)
    }

    fn has(&self, name: &str) -> bool {
        openat(&self.descriptor, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
            .is_ok()
    }

    /// Path of an entry by way of the descriptor.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{name}", self.descriptor.as_raw_fd()).into()
    }

    /// Removes entries that are no folders; an entry that does not exist counts as removed.
    fn unlink(&self, names: &[Vec<u8>]) -> Result<(), ClipError> {
        for name in names {
            match unlinkat(&self.descriptor, &**name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(at(&self.path.join(OsStr::from_bytes(name)), error.into())),
            }
        }
        Ok(())
    }

    /// Error about an entry of this folder.
    pub(crate) fn error(
        &self,
        name: &str,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ClipError {
        at(&self.path.join(name), io::Error::other(error))
    }

    /// Whether the box added clsact to its interface; `None` if the box does not use clsact.
    pub(crate) fn qdisc(&self) -> Option<bool> {
        readlinkat(&self.descriptor, QDISC, Vec::new()).ok().map(|note| note.to_bytes() == ADDED.as_bytes())
    }

    /// Notes whether the box added clsact to its interface.
    pub(crate) fn note_qdisc(&self, is_added: bool) -> Result<(), ClipError> {
        let note = if is_added { ADDED } else { FOUND };
        symlinkat(note, &self.descriptor, QDISC).map_err(|error| self.error(QDISC, error))
    }
}

/// Opens a folder without following a symbolic link; `None` if it does not exist.
fn open(parent: impl AsFd, name: &OsStr) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags, Mode::empty()) {
        Ok(descriptor) => Ok(Some(descriptor)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => Err(io::Error::new(ErrorKind::NotADirectory, "it is no folder")),
        Err(error) => Err(error.into()),
    }
}

fn at(path: &Path, error: io::Error) -> ClipError {
    ClipError::File(path.to_owned(), error)
}

/// A folder's name: `INTERFACE:NAMESPACE:INDEX:LAYOUT`, with the name that the interface had when the box started.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Label {
    interface: String,
    namespace: u64,
    index: u32,
    layout: u32,
}

impl Label {
    fn read(name: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(name).ok()?.split(':');
        let mut next = || parts.next();
        let label = Self {
            interface: next()?.to_owned(),
            namespace: next()?.parse().ok()?,
            index: next()?.parse().ok()?,
            layout: next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(label)
    }

    /// Name without the layout version.
    fn base(&self) -> String {
        format!("{}:{}:{}", self.interface, self.namespace, self.index)
    }

    fn name(&self) -> String {
        format!("{}:{}", self.base(), self.layout)
    }

    /// Whether the interface existed under the name `interface` and was removed.
    fn was(&self, interface: &str) -> bool {
        self.interface == interface && interface::name(self.index).is_none()
    }
}

/// Pinned maps and links of the box of one interface.
#[derive(Clone, Debug)]
pub struct Pins {
    interface: String,
    label: Label,
}

impl Pins {
    /// Returns the pins of the box on the interface that is called `interface` now, or else of a box whose interface had
    /// this name and was removed.
    ///
    /// # Errors
    /// Fails if `interface` is not a valid name of a network interface, if there is neither an interface nor a box of this
    /// name, and if another user could change the pins.
    pub fn of(interface: &str) -> Result<Self, ClipError> {
        let (index, labels) = (index_of(interface)?, labels()?);
        let label = labels.iter().find(|label| Some(label.index) == index);
        match (label.or_else(|| labels.iter().find(|label| label.was(interface))), index) {
            (Some(label), _) => {
                let label = Label { layout: LAYOUT, ..label.clone() };
                Ok(Self { interface: interface.to_owned(), label })
            }
            (None, Some(_)) => Self::new(interface),
            (None, None) => Err(ClipError::NotRunning(interface.to_owned())),
        }
    }

    /// Returns the pins that a new box gets on the interface that is called `interface` now.
    ///
    /// # Errors
    /// Fails if there is no such interface.
    pub(crate) fn new(interface: &str) -> Result<Self, ClipError> {
        let index = index_of(interface)?.ok_or_else(|| ClipError::NotRunning(interface.to_owned()))?;
        let interface = interface.to_owned();
        let label = Label { interface: interface.clone(), namespace: namespace()?, index, layout: LAYOUT };
        Ok(Self { interface, label })
    }

    /// Name of the box: the name that the interface had when the box started, the network namespace and the interface's
    /// index.
    pub fn name(&self) -> String {
        self.label.base()
    }

    /// Name under which the interface is known.
    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }

    /// Index of the interface.
    pub(crate) const fn index(&self) -> u32 {
        self.label.index
    }

    /// Opens the folder of the box; `None` if it does not exist.
    pub(crate) fn folder(&self) -> Result<Option<Folder>, ClipError> {
        match Folder::pins()? {
            Some(pins) => pins.subfolder(OsStr::new(&self.label.name())),
            None => Ok(None),
        }
    }

    /// Opens the folder of the box, and creates the folder if it does not exist.
    pub(crate) fn make(&self) -> Result<Folder, ClipError> {
        Folder::root()?.made(OsStr::new("ackclock"))?.made(OsStr::new(&self.label.name()))
    }

    /// Returns whether the programs of the box are attached to its interface, and the interface is in this namespace.
    ///
    /// # Errors
    /// Fails if another user could change the pins.
    pub fn is_attached(&self) -> Result<bool, ClipError> {
        let Some(folder) = self.folder()? else { return Ok(false) };
        let index = self.label.index;
        if interface::name(index).is_none() {
            return Ok(false);
        }
        if folder.qdisc().is_some() {
            return Ok(clsact::is_attached(index).unwrap_or(false));
        }
        let links: Vec<_> = LINKS.into_iter().filter(|link| folder.has(link)).collect();
        let attached = |link: &&str| device_of(&folder.path(link)) == Some(index);
        Ok(!links.is_empty() && links.iter().all(attached))
    }

    /// Detaches the programs of a box whose interface left this namespace, and keeps the maps.
    pub(crate) fn detach(&self) -> Result<(), ClipError> {
        let links = LINKS.map(|link| link.as_bytes().to_vec());
        self.folder()?.map_or(Ok(()), |folder| folder.unlink(&links))
    }

    /// Removes all pins of the interface, for every layout version, and those of boxes whose interface had the same name
    /// and was removed. Removing the pins detaches the programs. Returns whether there were any pins.
    ///
    /// # Errors
    /// Fails with the name of the file that cannot be removed, or if another user could change the pins.
    pub fn remove(&self) -> Result<bool, ClipError> {
        let Some(pins) = Folder::pins()? else { return Ok(false) };
        let mut any = false;
        for label in labels()? {
            if label.index != self.label.index && !label.was(&self.interface) {
                continue;
            }
            let name = label.name();
            let Some(folder) = pins.subfolder(OsStr::new(&name))? else { continue };
            if let (Some(is_added), Some(interface)) = (folder.qdisc(), interface::name(label.index)) {
                clsact::remove(&interface, is_added).map_err(|error| at(&folder.path, error))?;
            }
            folder.unlink(&folder.names()?)?;
            unlinkat(&pins.descriptor, &*name, AtFlags::REMOVEDIR)
                .map_err(|error| at(&folder.path, error.into()))?;
            any = true;
        }
        // Removing the last box also removes the parent folder of all pins.
        let _ = unlinkat(&Folder::root()?.descriptor, "ackclock", AtFlags::REMOVEDIR);
        Ok(any)
    }

    fn map(&self, name: &str) -> Result<MapData, ClipError> {
        let missing = || ClipError::NotRunning(self.interface.clone());
        let folder = self.folder()?.ok_or_else(missing)?;
        MapData::from_pin(folder.path(name)).map_err(|_| missing())
    }

    /// Returns the packet and byte counters of the pinned box.
    ///
    /// # Errors
    /// Fails if no box is pinned for the interface.
    pub fn counts(&self) -> Result<Counts, ClipError> {
        let map = PerCpuArray::<_, Counts>::try_from(Map::PerCpuArray(self.map("counts")?))?;
        Ok(Counts::sum(&map.get(&0, 0)?))
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

/// Checks the name of an interface, and returns its index if the interface exists.
fn index_of(interface: &str) -> Result<Option<u32>, ClipError> {
    let plain = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
    if interface.is_empty()
        || interface.len() > 15
        || !interface.chars().all(plain)
        || interface.starts_with('.')
    {
        return Err(ClipError::Name(interface.to_owned()));
    }
    Ok(interface::index(interface))
}

fn namespace() -> Result<u64, ClipError> {
    interface::namespace().map_err(|error| at(Path::new(interface::NAMESPACE), error))
}

/// Boxes of this network namespace that have pins, those of the present layout first.
fn labels() -> Result<Vec<Label>, ClipError> {
    let Some(pins) = Folder::pins()? else { return Ok(Vec::new()) };
    let namespace = namespace()?;
    let mut labels: Vec<_> = pins.names()?.iter().filter_map(|name| Label::read(name)).collect();
    labels.retain(|label| label.namespace == namespace);
    labels.sort_by_key(|label| label.layout != LAYOUT);
    Ok(labels)
}

/// Index of the device to which a pinned link is attached, 0 after the device was removed. aya does not tell it, and the
/// kernel tells it beside the open descriptor of the link.
fn device_of(link: &Path) -> Option<u32> {
    let link = FdLink::from(PinnedLink::from_pin(link).ok()?);
    let id = link.info().ok()?.id();
    let value = |text: &str, key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u32>().ok())
    };
    let texts =
        fs::read_dir("/proc/self/fdinfo").ok()?.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok());
    texts.filter(|text| value(text, "link_id:") == Some(id)).find_map(|text| value(&text, "ifindex:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_named_by_interface_namespace_and_index() {
        let label = Label::read(b"wwan0:4026531840:3:6").unwrap();
        assert_eq!((&*label.base(), &*label.name()), ("wwan0:4026531840:3", "wwan0:4026531840:3:6"));
        for other in ["wwan0:6", "wwan0:1:2:3:4", "wwan0:1:x:3", ":1:-2:3"] {
            assert_eq!(Label::read(other.as_bytes()), None, "{other}");
        }
    }
}
