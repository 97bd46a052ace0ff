//! Result files that get their final name only when complete.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::place::{Place, unique};
use crate::{Folders, WriteError};

/// A result file that gets its final name only when complete. Until then the file is in the same folder under a name
/// that no other user can predict, `NAME.RANDOM.partial`.
///
/// A file dropped before [`WholeFile::finish`] is removed. Data for devices and pipes is written directly.
#[derive(Debug)]
pub struct WholeFile {
    /// Path of the file as given by the caller.
    target: PathBuf,
    place: Place,
    partial: Option<OsString>,
    writer: BufWriter<File>,
}

/// Writes a complete file and creates missing folders.
///
/// # Errors
/// Fails under the same conditions as [`WholeFile::create`] and [`WholeFile::finish`]; no partial file is left behind.
pub fn write_whole(target: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let mut file = WholeFile::create(target, Folders::Created)?;
    file.write_all(bytes).map_err(|error| file.failure(error))?;
    file.finish()
}

impl WholeFile {
    /// Starts a result file under a temporary name.
    ///
    /// # Errors
    /// Fails if the file cannot be created, or another user has planted a link or file on its path.
    pub fn create(target: &Path, folders: Folders) -> Result<Self, WriteError> {
        let open = || {
            let place = Place::find(target, folders)?;
            let (file, partial) = if place.is_special() {
                (place.open_special()?, None)
            } else {
                let name = joined(&place.name, &format!(".{}{PARTIAL}", unique()?));
                (place.create(&name)?, Some(name))
            };
            Ok(Self { target: target.to_owned(), place, partial, writer: BufWriter::new(file) })
        };
        open().map_err(|error| WriteError::new(target, error))
    }

    /// Writes lines of text, given without newlines.
    ///
    /// # Errors
    /// Fails if the disk is full.
    pub fn put_lines<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) -> Result<(), WriteError> {
        let mut lines = lines.into_iter();
        lines.try_for_each(|line| writeln!(self, "{line}")).map_err(|error| self.failure(error))
    }

    /// Writes all buffered data and gives the file its final name.
    ///
    /// # Errors
    /// Fails if the disk is full or the folder was removed; in this case no partial file is left behind.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.complete().map_err(|error| self.failure(error))
    }

    /// Creates an error about this file.
    pub fn failure(&self, error: io::Error) -> WriteError {
        WriteError::new(&self.target, error)
    }

    /// Adds this file's path to the message of an error, for a writer that does not know the path.
    pub fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.target.display()))
    }

    fn complete(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        let Some(partial) = &self.partial else { return Ok(()) };
        // Some file systems report a full disk only when data is synchronised.
        self.writer.get_ref().sync_all()?;
        self.place.rename(partial, &self.place.name)?;
        self.partial = None;
        Ok(())
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // A destructor cannot report errors, so the result is ignored.
            let _ = self.place.remove(partial);
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

pub(crate) fn joined(name: &OsStr, ending: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(ending);
    name
}

pub(crate) const PARTIAL: &str = ".partial";

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};

    use rustix::process::geteuid;

    use super::*;

    fn create(path: &Path) -> WholeFile {
        WholeFile::create(path, Folders::Existing).unwrap()
    }

    #[test]
    fn a_file_takes_its_name_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let mut file = create(&path);
        file.write_all(b"line\n").unwrap();
        assert!(!path.exists());
        file.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"line\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_abandoned_file_leaves_the_old_one_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        fs::write(&path, "old").unwrap();
        drop(create(&path));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn own_links_stay_and_the_file_behind_them_is_exchanged() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("results")).unwrap();
        symlink("results/new", at("link")).unwrap();
        for text in ["one", "two"] {
            write_whole(&at("link"), text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(at("results/new")).unwrap(), text);
        }
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    }

    #[test]
    fn the_folder_that_was_checked_is_the_one_that_gets_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("out")).unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        let mut file = create(&at("out/a"));
        fs::rename(at("out"), at("moved")).unwrap();
        symlink("elsewhere", at("out")).unwrap();
        file.write_all(b"ours").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read(at("moved/a")).unwrap(), b"ours");
        assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 0);
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "a skipped test says why")]
    fn the_file_of_another_user_is_exchanged_and_its_owner_gets_nothing() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can make files of another user");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::write(&path, "").unwrap();
        lchown(&path, Some(65534), None).unwrap();
        write_whole(&path, b"ours").unwrap();
        assert_eq!((fs::metadata(&path).unwrap().uid(), fs::read(&path).unwrap()), (0, b"ours".to_vec()));
    }

    #[test]
    fn a_full_disk_is_one_error_and_the_device_stays() {
        let error = write_whole(Path::new("/dev/full"), &[0; 100_000]).unwrap_err().to_string();
        assert!(error.starts_with("/dev/full: cannot be written: No space left"), "{error}");
        assert!(Path::new("/dev/full").exists());
    }

    #[test]
    fn a_missing_folder_is_named() {
        let path = Path::new("/nowhere/at/all");
        let error = WholeFile::create(path, Folders::Existing).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/at/all: cannot be written: No such file"), "{error}");
    }
}
