//! Result files on systems other than Linux: complete or absent. The checks against files planted by other users need
//! Linux.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::WriteError;
use crate::found::{FoundRow, read_rows};

/// Treatment of missing folders of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folders {
    /// Missing folders are an error.
    Existing,
    /// Missing folders are created.
    Created,
}

const PARTIAL: &str = ".partial";

fn joined(target: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = target.file_name().unwrap_or_else(|| OsStr::new("")).to_owned();
    name.push(ending);
    target.with_file_name(name)
}

fn prepare(target: &Path, folders: Folders) -> io::Result<()> {
    match target.parent() {
        Some(parent) if folders == Folders::Created && !parent.as_os_str().is_empty() => {
            fs::create_dir_all(parent)
        }
        _ => Ok(()),
    }
}

/// Whether a path is a device or a pipe, which is written in place.
fn is_special(target: &Path) -> bool {
    fs::metadata(target).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Opens an output file that grows under its final name. Earlier contents are removed.
///
/// # Errors
/// Fails if the file cannot be created.
pub fn create_in_place(target: &Path) -> Result<File, WriteError> {
    File::create(target).map_err(|error| WriteError::new(target, error))
}

/// A result file that gets its final name only when complete.
///
/// A file dropped before [`WholeFile::finish`] is removed. Data for devices and pipes is written directly.
#[derive(Debug)]
pub struct WholeFile {
    target: PathBuf,
    partial: Option<PathBuf>,
    writer: BufWriter<File>,
}

/// Writes a complete file and creates missing folders.
///
/// # Errors
/// Fails if the file cannot be written; no partial file is left behind.
pub fn write_whole(target: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let mut file = WholeFile::create(target, Folders::Created)?;
    file.write_all(bytes).map_err(|error| file.failure(error))?;
    file.finish()
}

impl WholeFile {
    /// Starts a result file under a temporary name.
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub fn create(target: &Path, folders: Folders) -> Result<Self, WriteError> {
        let open = || {
            prepare(target, folders)?;
            if is_special(target) {
                return Ok((OpenOptions::new().write(true).open(target)?, None));
            }
            let partial = joined(target, &format!(".{}{PARTIAL}", std::process::id()));
            Ok((File::create_new(&partial)?, Some(partial)))
        };
        let (file, partial) = open().map_err(|error| WriteError::new(target, error))?;
        Ok(Self { target: target.to_owned(), partial, writer: BufWriter::new(file) })
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
    /// Fails if the disk is full; no partial file is left behind.
    pub fn finish(mut self) -> Result<(), WriteError> {
        let mut complete = || {
            self.writer.flush()?;
            let Some(partial) = &self.partial else { return Ok(()) };
            self.writer.get_ref().sync_all()?;
            fs::rename(partial, &self.target)?;
            self.partial = None;
            Ok(())
        };
        complete().map_err(|error| WriteError::new(&self.target, error))
    }

    /// Writes all buffered data, keeps the incomplete file as `NAME.partial` and returns its path.
    ///
    /// # Errors
    /// Fails under the same conditions as [`WholeFile::finish`].
    pub fn leave_unfinished(mut self) -> Result<PathBuf, WriteError> {
        self.writer.flush().map_err(|error| self.failure(error))?;
        let Some(temporary) = self.partial.take() else { return Ok(self.target.clone()) };
        let unfinished = joined(&self.target, PARTIAL);
        Ok(if fs::rename(&temporary, &unfinished).is_ok() { unfinished } else { temporary })
    }

    /// Creates an error about this file.
    pub fn failure(&self, error: io::Error) -> WriteError {
        WriteError::new(&self.target, error)
    }

    /// Adds this file's path to the message of an error, for a writer that does not know the path.
    pub fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.target.display()))
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // A destructor cannot report errors, so the result is ignored.
            let _ = fs::remove_file(partial);
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

/// Rows of an incomplete result file. Each row is appended to `NAME.partial` at once.
#[derive(Debug)]
pub struct Rows {
    target: PathBuf,
    name: PathBuf,
    partial: File,
    empty: bool,
}

impl Rows {
    /// Opens the rows of `target`; `None` if the target is a device or a pipe, which stores nothing.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or another process is writing it.
    pub fn open(target: &Path, folders: Folders) -> Result<Option<Self>, WriteError> {
        let open = || {
            prepare(target, folders)?;
            let name = joined(target, PARTIAL);
            let partial = OpenOptions::new().read(true).append(true).create(true).open(&name)?;
            match partial.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another process is writing it"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            let empty = partial.metadata()?.len() == 0;
            Ok(Self { target: target.to_owned(), name, partial, empty })
        };
        if is_special(target) {
            return Ok(None);
        }
        open().map(Some).map_err(|error| WriteError::new(target, error))
    }

    /// Returns existing rows: first the rows of the result file, then the rows of its partial file. If the partial
    /// file's last row is incomplete, that row is removed.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub fn found(&mut self) -> Result<Vec<FoundRow>, WriteError> {
        let read = || {
            let mut rows = Vec::new();
            if self.target.is_file() {
                read_rows(&File::open(&self.target)?, &self.target, &mut rows)?;
            }
            let whole = read_rows(&self.partial, &self.name, &mut rows)?;
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
        let written = self.partial.write_all(format!("{row}\n").as_bytes());
        written.map_err(|error| WriteError::new(&self.target, error))
    }

    /// Path of the partial file, if it has rows.
    pub fn unfinished(&self) -> Option<PathBuf> {
        (!self.empty).then(|| self.name.clone())
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
            let _ = fs::remove_file(&self.name);
        }
    }
}
