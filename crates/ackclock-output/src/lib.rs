//! # ackclock-output
//!
//! Writes result files, which are complete or absent, and never through links or files planted by another user. The
//! command and the Python module write all files through this crate.
//!
//! A path is resolved one name at a time, relative to a folder that is held open, and the kernel follows no links. Each
//! check inspects the open descriptor, and the file is created and renamed in the checked folder, so that concurrent
//! changes of the path do not redirect the output.

mod in_place;
mod place;
mod rows;
mod whole;

use std::io;
use std::path::{Path, PathBuf};

pub use in_place::create_in_place;
pub use place::Folders;
pub use rows::{FoundRow, Rows};
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
