//! Key files of radio reports.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ackclock_proxy::reports::keys::{Key, parse};

use rustix::fs::{Mode, OFlags};

use crate::failure::Failure;

/// Permission bits of the group and of others.
const OTHERS: u32 = 0o077;
/// User who may own a key file of every user.
const ROOT: u32 = 0;
/// Largest key file, bytes.
const LARGEST: u64 = 1 << 20;

/// Reads a key file of this user or of root, which only its owner may access. Type, owner and permissions are those of
/// the opened file, so that a file replaced meanwhile is not read.
pub(crate) fn read(path: &Path) -> Result<Vec<Key>, Failure> {
    let reading = |error| Failure::reading(path, &error);
    let wrong = |error: String| Failure::Input(format!("{}: {error}", path.display()));
    let file = open(path).map_err(reading)?;
    let metadata = file.metadata().map_err(reading)?;
    check(&metadata, rustix::process::geteuid().as_raw()).map_err(wrong)?;
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(reading)?;
    parse(&text).map_err(|error| wrong(error.to_string()))
}

/// Opens a file without waiting for the writer of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Checks type, size, owner and permissions of a key file that `user` reads.
fn check(file: &Metadata, user: u32) -> Result<(), String> {
    let (owner, mode) = (file.uid(), file.mode());
    if !file.is_file() {
        return Err("not a file".to_owned());
    }
    if owner != user && owner != ROOT {
        return Err(format!(
            "belongs to user {owner}, who can change the keys: it must belong to user {user} or to root"
        ));
    }
    if mode & OTHERS != 0 {
        return Err(format!("other users can access the keys (mode {:03o}): chmod 600", mode & 0o777));
    }
    if file.len() > LARGEST {
        return Err(format!("has {} bytes, more than {LARGEST}", file.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn a_key_file_belongs_to_its_reader_or_to_root() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o600)).unwrap();
        let metadata = || file.as_file().metadata().unwrap();
        let owner = metadata().uid();
        assert_eq!(check(&metadata(), owner), Ok(()));
        // Only root can give a file to another user.
        if chown(file.path(), Some(4711), None).is_ok() {
            for reader in [0, 4712] {
                assert!(check(&metadata(), reader).unwrap_err().contains("belongs to user 4711"));
            }
            assert_eq!(check(&metadata(), 4711), Ok(()));
            chown(file.path(), Some(0), None).unwrap();
        }
        assert_eq!(check(&metadata(), 4711).is_ok(), metadata().uid() == ROOT);
        let folder = open(std::env::temp_dir().as_path()).unwrap().metadata().unwrap();
        assert_eq!(check(&folder, folder.uid()), Err("not a file".to_owned()));
    }
}
