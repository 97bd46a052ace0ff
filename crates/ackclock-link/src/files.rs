//! The files that a scenario names.

use std::sync::Arc;

/// Reads the files that a scenario names; links do not open files themselves.
pub trait Files {
    /// Returns the contents of the file at `path`; `path` is as written in the scenario.
    ///
    /// # Errors
    /// Returns an error that names the file that could not be read, and the reason.
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String>;
}

impl<F: Files + ?Sized> Files for &F {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        (**self).read(path)
    }
}

/// A file reader that refuses to read any file.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        Err(format!("{path}: files cannot be read here"))
    }
}
