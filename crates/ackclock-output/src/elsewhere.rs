//! Names of result files on systems other than Linux, without checks against files planted by other users.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::Folders;

/// Path of a result file, and its name.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    pub(crate) name: OsString,
}

impl Place {
    pub(crate) fn find(path: &Path, folders: Folders) -> io::Result<Self> {
        if let (Folders::Created, Some(parent)) = (folders, path.parent()) {
            fs::create_dir_all(parent)?;
        }
        let name = path.file_name().unwrap_or_default().to_owned();
        Ok(Self { path: path.to_owned(), name })
    }

    pub(crate) fn is_special(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| !found.is_file() && !found.is_dir())
    }

    pub(crate) fn open_special(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(&self.path)
    }

    pub(crate) fn create(&self, name: &OsStr) -> io::Result<File> {
        File::create_new(self.path_of(name))
    }

    pub(crate) fn create_emptied(&self) -> io::Result<File> {
        File::create(&self.path)
    }

    pub(crate) fn read(&self) -> io::Result<Option<File>> {
        match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => file.map(Some),
        }
    }

    pub(crate) fn open_locked(&self, name: &OsStr) -> io::Result<File> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(self.path_of(name))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(io::Error::other("another process is writing it")),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::rename(self.path_of(from), self.path_of(to))
    }

    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.path_of(name))
    }

    pub(crate) fn path_of(&self, name: &OsStr) -> PathBuf {
        self.path.with_file_name(name)
    }
}

/// Text that no other running process has in the names of its files.
pub(crate) fn unique() -> io::Result<String> {
    Ok(std::process::id().to_string())
}
