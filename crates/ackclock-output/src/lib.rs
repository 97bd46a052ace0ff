//! # ackclock-output
//!
//! Writes result files, which are complete or absent, and never through links or files planted by another user. The
//! command and the Python module write all files through this crate.
//!
//! A path is resolved one name at a time, relative to a folder that is held open, and the kernel follows no links. Each
//! check inspects the open descriptor, and the file is created and renamed in the checked folder, so that concurrent
//! changes of the path do not redirect the output. These checks need Linux; on other systems files are complete or absent.

mod found;
mod in_place;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod place;
mod rows;
mod whole;

use std::io;
use std::path::{Path, PathBuf};

pub use found::FoundRow;
pub use in_place::create_in_place;
pub use rows::Rows;
pub use whole::{WholeFile, write_whole};

/// Treatment of missing folders of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folders {
    /// Missing folders are an error.
    Existing,
    /// Missing folders are created.
    Created,
}

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
