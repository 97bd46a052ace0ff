//! Result rows that are stored one by one until their file is complete.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::found::{FoundRow, read_rows};
use crate::place::Place;
use crate::whole::{PARTIAL, joined};
use crate::{Folders, WholeFile, WriteError};

/// Rows of an incomplete result file. Each row is appended to `NAME.partial` at once, so that a killed process loses no
/// row; the next process continues with the stored rows.
#[derive(Debug)]
pub struct Rows {
    /// Path of the result file as given by the caller.
    target: PathBuf,
    place: Place,
    name: OsString,
    partial: File,
    /// Whether the partial file is empty and can be removed.
    empty: bool,
}

impl Rows {
    /// Opens the rows of `target`; `None` if the target is a device or a pipe, which stores nothing.
    ///
    /// # Errors
    /// Fails if the file cannot be written, another process is writing it, or another user has planted a link or file
    /// on its path.
    pub fn open(target: &Path, folders: Folders) -> Result<Option<Self>, WriteError> {
        let open = || {
            let place = Place::find(target, folders)?;
            if place.is_special() {
                return Ok(None);
            }
            let name = joined(&place.name, PARTIAL);
            let partial = place.open_locked(&name)?;
            let empty = partial.metadata()?.len() == 0;
            Ok(Some(Self { target: target.to_owned(), place, name, partial, empty }))
        };
        open().map_err(|error| WriteError::new(target, error))
    }

    /// Returns existing rows: first the rows of the result file, then the rows of its partial file. If the partial
    /// file's last row is incomplete, that row is removed.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or belongs to another user.
    pub fn found(&mut self) -> Result<Vec<FoundRow>, WriteError> {
        let read = || {
            let mut rows = Vec::new();
            if let Some(file) = self.place.read()? {
                read_rows(&file, &self.target, &mut rows)?;
            }
            let partial = self.place.path_of(&self.name);
            let whole = read_rows(&self.partial, &partial, &mut rows)?;
            self.partial.set_len(whole)?;
            Ok(rows)
        };
        read().map_err(|error| WriteError::new(&self.target, error))
    }

    /// Appends a row, which is a line without its newline.
    ///
    /// # Errors
    /// Fails if the disk is full.
    pub fn put(&mut self, row: &str) -> Result<(), WriteError> {
        self.empty = false;
        // The row is written in a single call, so that a killed process leaves a complete row or a row without newline.
        let written = self.partial.write_all(format!("{row}\n").as_bytes());
        written.map_err(|error| WriteError::new(&self.target, error))
    }

    /// Path of the partial file, if it has rows.
    pub fn unfinished(&self) -> Option<PathBuf> {
        (!self.empty).then(|| self.place.path_of(&self.name))
    }

    /// Writes the complete file with the given rows in this order, and removes the partial file.
    ///
    /// # Errors
    /// Fails if the disk is full; the partial file then remains.
    pub fn finish<'a>(mut self, rows: impl IntoIterator<Item = &'a str>) -> Result<(), WriteError> {
        let mut file = WholeFile::create(&self.target, Folders::Existing)?;
        file.put_lines(rows)?;
        file.finish()?;
        self.empty = true;
        Ok(())
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        if self.empty {
            // A destructor cannot report errors, so the result is ignored.
            let _ = self.place.remove(&self.name);
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn open(path: &Path) -> Rows {
        Rows::open(path, Folders::Existing).unwrap().unwrap()
    }

    fn texts(rows: &mut Rows) -> Vec<String> {
        rows.found().unwrap().into_iter().map(|row| row.text).collect()
    }

    #[test]
    fn rows_outlive_the_process_and_one_that_was_cut_off_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut rows = open(&at("runs.jsonl"));
        assert_eq!(texts(&mut rows), [""; 0]);
        rows.put("b").unwrap();
        rows.put("a").unwrap();
        drop(rows);
        fs::write(at("runs.jsonl.partial"), "b\na\nhalf").unwrap();
        let mut rows = open(&at("runs.jsonl"));
        assert_eq!(texts(&mut rows), ["b", "a"]);
        rows.put("c").unwrap();
        assert_eq!(fs::read_to_string(at("runs.jsonl.partial")).unwrap(), "b\na\nc\n");
        rows.finish(["a", "b", "c"]).unwrap();
        assert_eq!(fs::read_to_string(at("runs.jsonl")).unwrap(), "a\nb\nc\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let found = open(&at("runs.jsonl")).found().unwrap();
        assert!(found[2].place.ends_with("runs.jsonl:3"), "{found:?}");
    }

    #[test]
    fn one_process_at_a_time_writes_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let first = open(&folder.path().join("runs.jsonl"));
        let second = Rows::open(&folder.path().join("runs.jsonl"), Folders::Existing).unwrap_err();
        assert!(second.to_string().ends_with("another process is writing it"), "{second}");
        drop(first);
        open(&folder.path().join("runs.jsonl"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_has_the_unfinished_name_is_not_followed_and_a_device_keeps_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "as it was").unwrap();
        symlink(at("precious"), at("runs.jsonl.partial")).unwrap();
        Rows::open(&at("runs.jsonl"), Folders::Existing).unwrap_err();
        assert_eq!(fs::read(at("precious")).unwrap(), b"as it was");
        assert!(Rows::open(Path::new("/dev/null"), Folders::Existing).unwrap().is_none());
    }
}
