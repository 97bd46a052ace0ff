//! Resolves a path to a name in a folder that is held open.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, PROC_SUPER_MAGIC, Stat, flock, fstat, fstatfs,
    mkdirat, openat, readlinkat, renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::Folders;

/// Name in an open folder, with the directory entry that existed when the path was resolved.
#[derive(Debug)]
pub(crate) struct Place {
    folder: Folder,
    pub(crate) name: OsString,
    found: Found,
}

/// Kind of directory entry.
#[derive(Debug)]
enum Found {
    Nothing,
    File,
    /// Device, named pipe or socket.
    Special,
    /// Link in `/proc` to a pipe, device or deleted file that the process with this number has open.
    Opened,
}

/// Folder that is held open.
#[derive(Debug)]
struct Folder {
    descriptor: OwnedFd,
    /// Path of the folder without symbolic links, for messages.
    path: PathBuf,
    owner: u32,
    mode: u32,
    /// Whether links and files created by the folder's owner are trusted like links and files of root and of this user.
    owner_trusted: bool,
}

/// An entry of a folder, opened without access to its content.
struct Entry {
    descriptor: OwnedFd,
    stat: Stat,
}

impl Place {
    /// Resolves `path` to a name in an open folder. Links are followed only if this user, root or the owner of their
    /// folder created them.
    ///
    /// # Errors
    /// Fails if a folder is missing, or another user has planted a link, a folder or a special file on the path.
    pub(crate) fn find(path: &Path, folders: Folders) -> io::Result<Self> {
        let mut walk = Walk { folder: Folder::start(path)?, ahead: names(path), links: 0 };
        while let Some(name) = walk.ahead.pop() {
            if !walk.ahead.is_empty() {
                walk.step(name, folders)?;
            } else if let Some(found) = walk.last(&name)? {
                return Ok(Self { folder: walk.folder, name, found });
            }
        }
        Err(if path.as_os_str().is_empty() { Errno::NOENT } else { Errno::ISDIR }.into())
    }

    /// Opens the directory entry for writing. Only links in `/proc` are followed.
    ///
    /// # Errors
    /// Fails if the entry cannot be opened, or was replaced by a link, a file, or another user's entry.
    pub(crate) fn open_special(&self) -> io::Result<File> {
        let follow = if matches!(self.found, Found::Opened) { OFlags::empty() } else { OFlags::NOFOLLOW };
        let file = self.folder.open(&self.name, OFlags::WRONLY | OFlags::NOCTTY | follow)?;
        if !matches!(self.found, Found::Opened) {
            let stat = fstat(&file)?;
            self.folder.check_owner(&stat)?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                return Err(denied("it was replaced meanwhile"));
            }
        }
        Ok(file)
    }

    /// Whether the directory entry is a device, a pipe or another open file without a path, which is written directly.
    pub(crate) const fn is_special(&self) -> bool {
        matches!(self.found, Found::Special | Found::Opened)
    }

    /// Creates a file with this name in the same folder.
    ///
    /// # Errors
    /// Fails if the name exists.
    pub(crate) fn create(&self, name: &OsStr) -> io::Result<File> {
        self.folder.open(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens the file for writing, creates it if it is missing, and removes its contents.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, or is not this user's.
    pub(crate) fn create_emptied(&self) -> io::Result<File> {
        // Without the flag NONBLOCK the call would block if a named pipe without a reader had replaced the file.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = self.folder.open(&self.name, flags)?;
        self.check_own(&file)?;
        file.set_len(0)?;
        Ok(file)
    }

    /// Opens the file for reading; `None` if it did not exist when the path was resolved.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, or is not this user's.
    pub(crate) fn read(&self) -> io::Result<Option<File>> {
        if !matches!(self.found, Found::File) {
            return Ok(None);
        }
        let file = self.folder.open(&self.name, OFlags::RDONLY | OFlags::NOFOLLOW)?;
        self.check_own(&file)?;
        Ok(Some(file))
    }

    /// Opens a file with this name in the same folder for reading and appending, and locks it for this process.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, is not this user's, or is locked by another process.
    pub(crate) fn open_locked(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        loop {
            let file = self.folder.open(name, flags)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => return Err(io::Error::other("another process is writing it")),
                locked => locked?,
            }
            // The process that held the lock may have completed the file and removed the partial file.
            if fstat(&file)?.st_nlink != 0 {
                self.check_own(&file)?;
                return Ok(file);
            }
        }
    }

    /// Renames a file of the same folder; a link with the new name is replaced, not followed.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.folder.descriptor, from, &self.folder.descriptor, to)?)
    }

    /// Removes a file of the same folder.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.folder.descriptor, name, AtFlags::empty())?)
    }

    /// Path of a name in the same folder, without symbolic links.
    pub(crate) fn path_of(&self, name: &OsStr) -> PathBuf {
        self.folder.path.join(name)
    }

    /// Checks that an open file is a regular file of this user, and that no other user has given it a second name (hard
    /// link).
    fn check_own(&self, file: &File) -> io::Result<()> {
        let found = file.metadata()?;
        if found.uid() != geteuid().as_raw() {
            return Err(denied(OF_ANOTHER_USER));
        }
        // Through a second name (hard link), another user could make this user overwrite the file.
        if !found.is_file() || found.nlink() != 1 && self.folder.is_open_to_all() {
            return Err(denied("it was replaced meanwhile, or has another name"));
        }
        Ok(())
    }
}

/// Text of 24 random digits, which no other user can predict.
pub(crate) fn unique() -> io::Result<String> {
    let mut random = [0; 12];
    // The kernel always fills requests below 256 bytes completely (getrandom(2)).
    getrandom(&mut random, GetRandomFlags::empty())?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A partly resolved path.
struct Walk {
    folder: Folder,
    /// Names still to be resolved, in reverse order: the next name is last.
    ahead: Vec<OsString>,
    links: u32,
}

impl Walk {
    /// Continues the walk in the folder `name`.
    fn step(&mut self, name: OsString, folders: Folders) -> io::Result<()> {
        let Some(entry) = self.folder.entry(&name)? else {
            self.folder.create(&name, folders)?;
            self.ahead.push(name);
            return Ok(());
        };
        match entry.kind() {
            FileType::Symlink => self.follow(&entry),
            FileType::Directory => self.folder.enter(&name, entry).map(|folder| self.folder = folder),
            _ => Err(Errno::NOTDIR.into()),
        }
    }

    /// Returns the directory entry of the last name of a path; `None` for a link, whose names are then queued in
    /// `ahead`.
    fn last(&mut self, name: &OsStr) -> io::Result<Option<Found>> {
        let Some(entry) = self.folder.entry(name)? else { return Ok(Some(Found::Nothing)) };
        match entry.kind() {
            FileType::Symlink if self.folder.is_link_to_open_file(name)? => Ok(Some(Found::Opened)),
            FileType::Symlink => self.follow(&entry).map(|()| None),
            FileType::Directory => Err(Errno::ISDIR.into()),
            FileType::RegularFile => self.folder.check_replaceable(&entry.stat).map(|()| Some(Found::File)),
            _ => self.folder.check_owner(&entry.stat).map(|()| Some(Found::Special)),
        }
    }

    fn follow(&mut self, link: &Entry) -> io::Result<()> {
        self.folder.check_owner(&link.stat)?;
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        let text = OsString::from_vec(readlinkat(&link.descriptor, "", Vec::new())?.into_bytes());
        let path = Path::new(&text);
        if path.is_absolute() {
            self.folder = Folder::start(path)?;
        }
        self.ahead.extend(names(path));
        Ok(())
    }
}

impl Entry {
    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }
}

impl Folder {
    /// Folder that contains the first name of `path`: the root, or the working directory.
    fn start(path: &Path) -> io::Result<Self> {
        let path = if path.is_absolute() { "/" } else { "" };
        let name = if path.is_empty() { "." } else { path };
        let descriptor =
            openat(CWD, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let stat = fstat(&descriptor)?;
        Ok(Self::new(Entry { descriptor, stat }, path.into(), true))
    }

    /// Opens the directory entry with this name, without access to its content.
    fn entry(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.descriptor, name, flags, Mode::empty()) {
            Ok(descriptor) => Ok(Some(Entry { stat: fstat(&descriptor)?, descriptor })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Enters a subfolder, or the parent folder if `name` is `..`.
    ///
    /// A folder of another user is refused if any user could have planted the folder. If only the owner and group of
    /// the parent folder can write to the parent, the folder is entered, but links and special files of the folder's
    /// owner are not followed.
    fn enter(&self, name: &OsStr, entry: Entry) -> io::Result<Self> {
        let path = match self.path.file_name() {
            Some(_) if name == ".." => self.path.parent().unwrap_or(Path::new("")).to_owned(),
            _ => self.path.join(name),
        };
        let owner_trusted = self.trusts(&entry.stat);
        if !owner_trusted && self.is_open_to_all() {
            return Err(denied(&format!("{} belongs to another user", path.display())));
        }
        Ok(Self::new(entry, path, owner_trusted))
    }

    fn new(entry: Entry, path: PathBuf, owner_trusted: bool) -> Self {
        let Entry { descriptor, stat } = entry;
        Self { descriptor, path, owner: stat.st_uid, mode: stat.st_mode, owner_trusted }
    }

    fn create(&self, name: &OsStr, folders: Folders) -> io::Result<()> {
        if folders == Folders::Existing || name == ".." {
            return Err(Errno::NOENT.into());
        }
        match mkdirat(&self.descriptor, name, Mode::from_raw_mode(0o777)) {
            // Another process of this user may have created the folder; the next step inspects it.
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file in this folder; the umask determines the permissions of a new file.
    fn open(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        Ok(openat(&self.descriptor, name, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o666))?.into())
    }

    /// Whether a directory entry was created by root, this user or a trusted owner of this folder.
    fn trusts(&self, stat: &Stat) -> bool {
        [geteuid().as_raw(), 0].contains(&stat.st_uid) || self.owner_trusted && stat.st_uid == self.owner
    }

    /// Whether any user may create entries in this folder.
    fn is_open_to_all(&self) -> bool {
        self.mode & EVERY_USER_WRITES != 0
    }

    fn check_owner(&self, stat: &Stat) -> io::Result<()> {
        if self.trusts(stat) { Ok(()) } else { Err(denied(OF_ANOTHER_USER)) }
    }

    /// Rejects a file that only another user may replace.
    fn check_replaceable(&self, stat: &Stat) -> io::Result<()> {
        let replaceable = geteuid().is_root() || self.mode & STICKY == 0;
        if replaceable { Ok(()) } else { self.check_owner(stat) }
    }

    /// Whether a link in `/proc` refers to a file without a path: a pipe, a terminal, a deleted file.
    fn is_link_to_open_file(&self, name: &OsStr) -> io::Result<bool> {
        if fstatfs(&self.descriptor)?.f_type != PROC_SUPER_MAGIC {
            return Ok(false);
        }
        let Ok(target) = openat(&self.descriptor, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else {
            return Ok(false);
        };
        let stat = fstat(&target)?;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => false,
            FileType::RegularFile => stat.st_nlink == 0,
            _ => true,
        })
    }
}

/// Components of a path, the first component last.
fn names(path: &Path) -> Vec<OsString> {
    let name = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

fn denied(why: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, why)
}

const OF_ANOTHER_USER: &str = "it belongs to another user";
/// Maximum number of followed links, as in the kernel (path_resolution(7)).
const MOST_LINKS: u32 = 40;
const STICKY: u32 = 0o1000;
const EVERY_USER_WRITES: u32 = 0o002;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};
    use std::process::Command;

    use super::*;

    fn find(path: PathBuf) -> Result<Found, String> {
        Place::find(&path, Folders::Existing).map(|place| place.found).map_err(|error| error.to_string())
    }

    /// A folder with these permissions, and a function that returns paths inside the folder.
    fn folder(mode: u32) -> (tempfile::TempDir, impl Fn(&str) -> PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        let path = folder.path().to_owned();
        (folder, move |name| path.join(name))
    }

    fn make_pipe(path: PathBuf) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    fn give_away(path: PathBuf) {
        lchown(path, Some(65534), None).unwrap();
    }

    #[allow(clippy::print_stderr, reason = "a skipped test says why")]
    fn is_root() -> bool {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can make files of another user");
        }
        geteuid().is_root()
    }

    #[test]
    fn a_path_ends_at_a_name_whatever_own_links_it_has() {
        let (_folder, at) = folder(0o700);
        fs::create_dir_all(at("real/deep")).unwrap();
        fs::write(at("real/file"), "").unwrap();
        symlink("real", at("short")).unwrap();
        symlink(at("short/deep"), at("long")).unwrap();
        symlink("../long/../file", at("real/around")).unwrap();
        for (path, expected) in
            [("short/file", "real/file"), ("long/new", "real/deep/new"), ("real/around", "real/file")]
        {
            let place = Place::find(&at(path), Folders::Existing).unwrap();
            assert_eq!(place.folder.path.join(&place.name), at(expected));
        }
    }

    #[test]
    fn what_is_no_place_for_a_file_is_refused() {
        let (_folder, at) = folder(0o700);
        fs::write(at("file"), "").unwrap();
        symlink("round", at("round")).unwrap();
        for (path, expected) in [
            (at("round"), "Too many levels of symbolic links"),
            (at("."), "Is a directory"),
            ("/".into(), "Is a directory"),
            ("".into(), "No such file or directory"),
            (at("missing/file"), "No such file or directory"),
            (at("file/below"), "Not a directory"),
        ] {
            let message = find(path).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn missing_folders_are_created_where_the_caller_wants_them() {
        let (_folder, at) = folder(0o700);
        let place = Place::find(&at("a/b/file"), Folders::Created).unwrap();
        assert_eq!((place.folder.path, at("a/b").is_dir()), (at("a/b"), true));
    }

    #[test]
    fn a_link_of_proc_leads_to_what_is_open_even_where_that_has_no_name() {
        let nameless = tempfile::tempfile().unwrap();
        let named = tempfile::NamedTempFile::new().unwrap();
        let link =
            |file: &dyn std::os::fd::AsRawFd| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let (reader, writer) = std::io::pipe().unwrap();
        for (path, opened) in [(link(&nameless), true), (link(&writer), true), (link(named.as_file()), false)]
        {
            let place = Place::find(&path, Folders::Existing).unwrap();
            assert_eq!(matches!(place.found, Found::Opened), opened, "{place:?}");
        }
        let place = Place::find(&link(&writer), Folders::Existing).unwrap();
        io::Write::write_all(&mut place.open_special().unwrap(), b"through").unwrap();
        drop((place, writer));
        assert_eq!(io::read_to_string(reader).unwrap(), "through");
    }

    #[test]
    fn a_special_file_that_is_swapped_for_a_link_or_a_file_is_not_opened() {
        let (_folder, at) = folder(0o700);
        fs::write(at("precious"), "as it was").unwrap();
        make_pipe(at("pipe"));
        let place = Place::find(&at("pipe"), Folders::Existing).unwrap();
        for target in [at("precious"), "/dev/null".into()] {
            fs::remove_file(at("pipe")).unwrap();
            symlink(target, at("pipe")).unwrap();
            let message = place.open_special().unwrap_err().to_string();
            assert!(message.starts_with("Too many levels of symbolic links"), "{message}");
        }
        fs::rename(at("precious"), at("pipe")).unwrap();
        assert_eq!(place.open_special().unwrap_err().to_string(), "it was replaced meanwhile");
        assert_eq!(fs::read(at("pipe")).unwrap(), b"as it was");
    }

    #[test]
    fn nothing_that_another_user_planted_is_followed_or_opened() {
        if !is_root() {
            return;
        }
        let (_folder, at) = folder(0o1777);
        fs::write(at("precious"), "").unwrap();
        symlink("precious", at("link")).unwrap();
        make_pipe(at("pipe"));
        fs::create_dir(at("planted")).unwrap();
        symlink("../precious", at("planted/link")).unwrap();
        ["link", "pipe", "planted/link", "planted"].into_iter().for_each(|name| give_away(at(name)));
        let planted = format!("{} belongs to another user", at("planted").display());
        for (name, expected) in [
            ("link", OF_ANOTHER_USER),
            ("pipe", OF_ANOTHER_USER),
            ("planted/new", &*planted),
            ("planted/link", &*planted),
        ] {
            assert_eq!(find(at(name)).unwrap_err(), expected, "{name}");
        }
    }

    #[test]
    fn in_the_folder_of_a_colleague_results_find_room_and_his_links_are_not_followed() {
        if !is_root() {
            return;
        }
        let (_folder, at) = folder(0o775);
        fs::create_dir(at("theirs")).unwrap();
        symlink("anywhere", at("theirs/link")).unwrap();
        ["theirs", "theirs/link"].into_iter().for_each(|name| give_away(at(name)));
        assert!(matches!(find(at("theirs/new")), Ok(Found::Nothing)));
        assert_eq!(find(at("theirs/link")).unwrap_err(), OF_ANOTHER_USER);
    }
}
