//! # ackclock-output
//!
//! Writes result files, which are complete or absent, and never through links or files planted by another user. The
//! command and the Python module write all files through this crate.
//!
//! A path is resolved one name at a time, relative to a folder that is held open, and the kernel follows no links. Each
//! check inspects the open descriptor, and the file is created and renamed in the checked folder, so that concurrent
//! changes of the path do not redirect the output.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod found;
#[cfg(target_os = "linux")]
mod in_place;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod rows;
#[cfg(target_os = "linux")]
mod whole;

use std::io;
use std::path::{Path, PathBuf};

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Folders, Rows, WholeFile, create_in_place, write_whole};
pub use found::FoundRow;
#[cfg(target_os = "linux")]
pub use in_place::create_in_place;
#[cfg(target_os = "linux")]
pub use place::Folders;
#[cfg(target_os = "linux")]
pub use rows::Rows;
#[cfg(target_os = "linux")]
pub use whole::{WholeFile, write_whole};

/// Error for a file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be written: {source}", path.display())]
pub struct WriteError {
    /// Path of the file as given by the caller.
    pub path: PathBuf,
    /// Reason for the error, without the path.
    pub source: io::Error,
}

impl WriteError {
    fn new(path: &Path, source: io::Error) -> Self {
        Self { path: path.to_owned(), source }
    }
}
