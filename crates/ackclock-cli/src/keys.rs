//! Key files of radio reports.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ackclock_proxy::reports::keys::{Key, parse};

use crate::failure::Failure;

/// Permission bits of the group and of others.
const OTHERS: u32 = 0o077;
/// Largest key file, bytes.
const LARGEST: u64 = 1 << 20;

/// Reads a key file, which only its owner may access. The permissions are those of the opened file, so that a file
/// replaced meanwhile is not read.
pub(crate) fn read(path: &Path) -> Result<Vec<Key>, Failure> {
    let reading = |error| Failure::reading(path, &error);
    let file = File::open(path).map_err(reading)?;
    let mode = file.metadata().map_err(reading)?.mode();
    if mode & OTHERS != 0 {
        let message = format!("other users can access the keys (mode {:03o}): chmod 600", mode & 0o777);
        return Err(Failure::Input(format!("{}: {message}", path.display())));
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(reading)?;
    parse(&text).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
}
