//! Where results go: standard output, and files that are whole or not there.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use ackclock_core::text::printable;

use crate::failure::Failure;

/// Writes `text` to standard output; what a terminal would obey in it is escaped, as JSON and TOML escape it.
///
/// # Errors
/// [`Failure::Unread`] where the reader has gone, else what stands in the way.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()).map_err(|error| unprintable(&error))
}

/// Says something about the work itself on standard error, further lines of it indented; names and values in it may be
/// anybody's, and are escaped. A closed standard error hears nothing.
pub(crate) fn tell(message: &str) {
    // There is nobody left to whom a failure could be told.
    let _ =
        writeln!(io::stderr().lock(), "ackclock: {}", printable(message.trim_end()).replace('\n', "\n  "));
}

fn unprintable(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::Unread,
        _ => Failure::writing("standard output", error),
    }
}

/// Checks that what is written goes to different files, and none of it over the scenario that is read.
///
/// # Errors
/// Names the two that are one file.
pub(crate) fn keep_apart(
    scenario: Option<&Path>,
    written: &[(&str, Option<&PathBuf>)],
) -> Result<(), Failure> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut taken: Vec<_> = scenario.map(|path| ("the scenario", real(path))).into_iter().collect();
    for (name, path) in written.iter().filter_map(|(name, path)| Some((*name, path.as_ref()?))) {
        let path = real(path);
        if let Some((other, _)) = taken.iter().find(|(_, taken)| is_plain(&path) && *taken == path) {
            return Err(Failure::Input(format!("{name}: {} is {other} already", path.display())));
        }
        taken.push((name, path));
    }
    Ok(())
}

/// A file that takes its name only when it is whole: until then it is called `NAME.partial`.
///
/// Dropped before [`WholeFile::finish`] it is removed. Devices and pipes are written directly.
#[derive(Debug)]
pub(crate) struct WholeFile {
    target: PathBuf,
    partial: Option<PathBuf>,
    writer: BufWriter<File>,
}

impl WholeFile {
    /// Begins a file.
    ///
    /// # Errors
    /// Where it cannot be created.
    pub(crate) fn create(target: &Path) -> Result<Self, Failure> {
        // Through a symbolic link, so that the link stays and the file behind it is exchanged.
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let partial = is_plain(&target).then(|| partial_of(&target));
        let opened = partial.as_deref().unwrap_or(&target);
        let file = File::options()
            .write(true)
            .create(partial.is_some())
            .truncate(partial.is_some())
            .open(opened)
            .map_err(|error| Failure::writing(target.display(), &error))?;
        Ok(Self { target, partial, writer: BufWriter::new(file) })
    }

    /// Writes everything out and gives the file its name.
    ///
    /// # Errors
    /// Where the disk is full or the folder has gone; nothing is left behind then.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.complete().map_err(|error| Failure::writing(self.target.display(), &error))
    }

    /// Writes everything out and leaves the file under its unfinished name, which is returned.
    ///
    /// # Errors
    /// As [`WholeFile::finish`].
    pub(crate) fn leave_unfinished(mut self) -> Result<PathBuf, Failure> {
        self.writer.flush().map_err(|error| Failure::writing(self.target.display(), &error))?;
        Ok(self.partial.take().unwrap_or_else(|| self.target.clone()))
    }

    /// What an error about this file is called.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        Failure::writing(self.target.display(), error)
    }

    /// The same error with the name of this file, for a writer that does not know it.
    pub(crate) fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.target.display()))
    }

    fn complete(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        let Some(partial) = &self.partial else { return Ok(()) };
        // Some file systems tell of a full disk only here.
        self.writer.get_ref().sync_all()?;
        fs::rename(partial, &self.target)?;
        self.partial = None;
        Ok(())
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

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // An unfinished file that cannot be removed still bears the name that says so.
            let _ = fs::remove_file(partial);
        }
    }
}

/// Whether `path` is, or can become, an ordinary file; `/dev/null` and named pipes are not exchanged.
fn is_plain(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |data| data.is_file())
}

fn partial_of(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_its_name_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let mut file = WholeFile::create(&path).unwrap();
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
        drop(WholeFile::create(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_unfinished_file_says_so_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = WholeFile::create(&folder.path().join("a.jsonl")).unwrap();
        file.write_all(b"half").unwrap();
        let left = file.leave_unfinished().unwrap();
        assert!(left.ends_with("a.jsonl.partial"));
        assert_eq!(fs::read(left).unwrap(), b"half");
    }

    #[test]
    fn a_full_disk_is_one_error_and_the_device_stays() {
        let mut file = WholeFile::create(Path::new("/dev/full")).unwrap();
        let written = file.write_all(&[0; 100_000]).map_err(|error| file.failure(&error));
        let Err(Failure::Run(message)) = written else { panic!("{written:?}") };
        assert!(message.starts_with("/dev/full: cannot be written: No space left"), "{message}");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let Err(Failure::Input(message)) = WholeFile::create(Path::new("/nowhere/at/all")) else { panic!() };
        assert!(message.starts_with("/nowhere/at/all: cannot be written"), "{message}");
    }
}
