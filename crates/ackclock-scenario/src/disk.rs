//! Reads the input files of a scenario from disk. No other module of this crate opens files.
//!
//! Models get [`Files`] and do not depend on the source of the bytes. The command and the Python module use this
//! reader.

use ackclock_link::Files;
use ackclock_radio::synthetic;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Input files in a folder. Each file is read once and shared by all runs.
#[derive(Debug)]
pub struct DiskFiles {
    folder: PathBuf,
    reading: Reading,
    read: Mutex<BTreeMap<String, Arc<[u8]>>>,
}

/// Wrapper around the reading of a file, which may take long. The wrapper must call its last argument, which reads the
/// file.
pub type Reading = fn(&Path, &mut dyn FnMut());

impl DiskFiles {
    /// Maximum size of an input file in bytes. A file of this size holds hours of the fastest recordings.
    pub const MAX_BYTES: u64 = 256 << 20;

    /// Creates a reader of files whose paths are relative to `folder`.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), reading: |_, read| read(), read: Mutex::default() }
    }

    /// Sets a wrapper around the reading of each file.
    #[must_use]
    pub fn reading(self, reading: Reading) -> Self {
        Self { reading, ..self }
    }

    /// Creates a reader of files whose paths are relative to the folder of the scenario file at `scenario`.
    pub fn for_scenario(scenario: &Path) -> Self {
        Self::in_folder(scenario.parent().unwrap_or_else(|| Path::new("")))
    }
}

impl Files for DiskFiles {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        // A thread that panicked while holding the lock left only complete entries, so the map is still valid.
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = read.get(path) {
            return Ok(Arc::clone(bytes));
        }
        let bytes: Arc<[u8]> = match synthetic::read(path) {
            Some(text) => text.map_err(|error| error.to_string())?.into_bytes().into(),
            None => self.read_disk(path)?.into(),
        };
        read.insert(path.to_owned(), Arc::clone(&bytes));
        Ok(bytes)
    }
}

impl DiskFiles {
    fn read_disk(&self, path: &str) -> Result<Vec<u8>, String> {
        let whole = self.folder.join(path);
        let mut bytes = Ok(Vec::new());
        (self.reading)(&whole, &mut || bytes = read_bounded(&whole));
        bytes.map_err(|why| format!("{}: cannot be read: {why}", whole.display()))
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(DiskFiles::MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > DiskFiles::MAX_BYTES {
        return Err(io::Error::other(format!("it is larger than {} MiB", DiskFiles::MAX_BYTES >> 20)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_shared() {
        let files = DiskFiles::in_folder(env!("CARGO_MANIFEST_DIR"));
        let first = files.read("Cargo.toml").unwrap();
        assert!(first.starts_with(b"[package]"));
        assert!(Arc::ptr_eq(&first, &files.read("Cargo.toml").unwrap()));
    }

    #[test]
    fn the_built_in_recording_of_a_car_is_the_shipped_file() {
        let files = DiskFiles::in_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/recordings"));
        assert!(
            files.read("synthetic:evdo-driving").unwrap()
                == files.read("synthetic-evdo-driving.down").unwrap()
        );
        assert!(files.read("synthetic:walking").unwrap_err().contains("there are evdo-driving"));
    }

    #[test]
    fn errors_name_the_whole_path() {
        let files = DiskFiles::for_scenario(Path::new("/nowhere/case.toml"));
        let error = files.read("x.down").unwrap_err();
        assert!(error.starts_with("/nowhere/x.down: cannot be read: No such file"), "{error}");
        let error = DiskFiles::in_folder("/").read("tmp").unwrap_err();
        assert!(error.starts_with("/tmp: cannot be read: Is a directory"), "{error}");
    }

    #[test]
    fn an_endless_file_is_given_up() {
        let error = DiskFiles::in_folder("/dev").read("zero").unwrap_err();
        assert!(error.ends_with("it is larger than 256 MiB"), "{error}");
    }
}
