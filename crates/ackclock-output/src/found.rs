//! Rows of result files that earlier processes wrote.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

/// Row written by an earlier process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRow {
    /// File name and line number of the row, for messages.
    pub place: String,
    /// Text of the stored row.
    pub text: String,
    /// Modification time of the row's file.
    pub written: SystemTime,
}

/// Reads the complete rows of a file, and returns their total length in bytes.
pub(crate) fn read_rows(file: &File, path: &Path, rows: &mut Vec<FoundRow>) -> io::Result<u64> {
    let (mut lines, mut whole, written) = (BufReader::new(file), 0, file.metadata()?.modified()?);
    lines.seek(SeekFrom::Start(0))?;
    for number in 1.. {
        let mut line = Vec::new();
        let bytes = lines.read_until(b'\n', &mut line)? as u64;
        if line.pop_if(|last| *last == b'\n').is_none() {
            break;
        }
        whole += bytes;
        let place = format!("{}:{number}", path.display());
        rows.push(FoundRow { place, text: String::from_utf8_lossy(&line).into_owned(), written });
    }
    Ok(whole)
}
