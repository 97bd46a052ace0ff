//! Where results go: standard output, and files that are whole or not there.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ackclock_core::text::printable;
use ackclock_live::standard_output;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use tempfile::{NamedTempFile, PathPersistError, TempPath};

use crate::failure::Failure;

/// Writes `text` to standard output; what a terminal would obey in it is escaped, as JSON and TOML escape it.
///
/// # Errors
/// [`Failure::Unread`] where the reader has gone, else what stands in the way.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    if !standard_output::was_open() {
        return Err(unprintable(&Errno::BADF.into()));
    }
    let mut out = io::stdout().lock();
    out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()).map_err(|error| unprintable(&error))
}

/// Says something about the work itself on standard error, further lines of it indented; names and values in it may be
/// anybody's, and are escaped. A closed standard error hears nothing.
pub(crate) fn remark(message: &str) {
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

/// Checks that a file is not called as if it held something else than `written`, by the ending of its name.
///
/// # Errors
/// Names the option, what it writes, and a name that fits.
pub(crate) fn keep_form(option: &str, path: Option<&PathBuf>, written: Form) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let ending = path.extension().map_or_else(String::new, |ending| ending.to_string_lossy().to_lowercase());
    match ENDINGS.iter().find(|(known, _)| *known == ending) {
        Some((_, form)) if *form != Some(written) => {
            let (what, fitting) = written.named();
            let name = path.with_extension(fitting);
            let name = name.display();
            Err(Failure::Input(format!("{option} {}: it writes {what}; call it {name}", path.display())))
        }
        _ => Ok(()),
    }
}

/// What is written into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Capture,
    Csv,
    Html,
    JsonLines,
}

/// Endings that say what a file holds; none of ours where there is no form.
const ENDINGS: [(&str, Option<Form>); 15] = [
    ("pcap", Some(Form::Capture)),
    ("pcapng", Some(Form::Capture)),
    ("csv", Some(Form::Csv)),
    ("html", Some(Form::Html)),
    ("htm", Some(Form::Html)),
    ("json", Some(Form::JsonLines)),
    ("jsonl", Some(Form::JsonLines)),
    ("ndjson", Some(Form::JsonLines)),
    ("parquet", None),
    ("pdf", None),
    ("png", None),
    ("svg", None),
    ("toml", None),
    ("tsv", None),
    ("xlsx", None),
];

impl Form {
    /// What it is called, and the ending that says so.
    fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::Capture => ("a capture (pcapng)", "pcapng"),
            Self::Csv => ("CSV", "csv"),
            Self::Html => ("HTML", "html"),
            Self::JsonLines => ("JSON lines", "jsonl"),
        }
    }
}

/// A file that takes its name only when it is whole: until then it lies beside it under a name that nobody could know in
/// advance, made by this process alone, `NAME.RANDOM.partial`.
///
/// Dropped before [`WholeFile::finish`] it is removed. Devices and pipes are written directly. Of another user who may write
/// to the same folder nothing is followed and nothing filled.
#[derive(Debug)]
pub(crate) struct WholeFile {
    target: PathBuf,
    partial: Option<TempPath>,
    writer: BufWriter<File>,
}

impl WholeFile {
    /// Begins a file.
    ///
    /// # Errors
    /// Where it cannot be created, or its name stands for something of another user.
    pub(crate) fn create(target: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::writing(target.display(), &error);
        let target = behind_links(target).map_err(failed)?;
        let (file, partial) = if is_plain(&target) {
            let (file, path) = partial_file(&target).map_err(failed)?.into_parts();
            (file, Some(path))
        } else {
            (File::options().write(true).open(&target).map_err(failed)?, None)
        };
        Ok(Self { target, partial, writer: BufWriter::new(file) })
    }

    /// Writes everything out and gives the file its name.
    ///
    /// # Errors
    /// Where the disk is full or the folder has gone; nothing is left behind then.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.complete().map_err(|error| Failure::writing(self.target.display(), &error))
    }

    /// Writes everything out and leaves the file as `NAME.partial`, or under the name it has where that is somebody else's.
    /// The name is returned.
    ///
    /// # Errors
    /// As [`WholeFile::finish`].
    pub(crate) fn leave_unfinished(mut self) -> Result<PathBuf, Failure> {
        self.writer.flush().map_err(|error| self.failure(&error))?;
        let Some(partial) = self.partial.take() else { return Ok(self.target) };
        let unfinished = partial_of(&self.target);
        // What bears the name gives way to the file; were it a link, it would not be followed.
        match partial.persist(&unfinished) {
            Ok(()) => Ok(unfinished),
            Err(PathPersistError { path, .. }) => {
                path.keep().map_err(|error| Failure::writing(self.target.display(), &error.error))
            }
        }
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
        let Some(partial) = self.partial.take() else { return Ok(()) };
        // Some file systems tell of a full disk only here.
        self.writer.get_ref().sync_all()?;
        partial.persist(&self.target).map_err(|refused| refused.error)
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

/// Opens a file that grows under its own name, so that it can be watched. What stood in it is gone.
///
/// # Errors
/// Where it cannot be created, or its name stands for something of another user.
pub(crate) fn create_in_place(target: &Path) -> Result<File, Failure> {
    let open = || {
        let path = behind_links(target)?;
        let mut options = File::options();
        options.write(true).create(true);
        // A link that was put there since is not followed; one of `/proc` leads to what is open already.
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
        }
        let file = options.open(path)?;
        let found = file.metadata()?;
        if found.is_file() {
            if found.uid() != geteuid().as_raw() {
                return Err(io::Error::new(ErrorKind::PermissionDenied, "it belongs to another user"));
            }
            file.set_len(0)?;
        }
        Ok(file)
    };
    open().map_err(|error| Failure::writing(target.display(), &error))
}

/// Whether `path` is, or can become, an ordinary file; `/dev/null` and named pipes are not exchanged.
fn is_plain(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |data| data.is_file())
}

/// A new file in the folder of `target`, open to whom the user's mask leaves it.
fn partial_file(target: &Path) -> io::Result<NamedTempFile> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".");
    let mut unguessable = tempfile::Builder::new();
    unguessable.prefix(&name).suffix(PARTIAL).rand_bytes(12);
    unguessable.make_in(folder_of(target), |path| File::options().write(true).create_new(true).open(path))
}

/// The file that is meant: the links stay, and what is behind them is exchanged.
fn behind_links(target: &Path) -> io::Result<PathBuf> {
    let mut path = target.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(found) = fs::symlink_metadata(&path) else { return Ok(path) };
        check_owner(&path, &found)?;
        if !found.is_symlink() {
            return Ok(path);
        }
        let next = folder_of(&path).join(fs::read_link(&path)?);
        // The links of `/proc` lead to open files, which need have no name.
        if fs::symlink_metadata(&next).is_err() && fs::metadata(&path).is_ok() {
            return Ok(path);
        }
        path = next;
    }
    Err(Errno::LOOP.into())
}

/// Checks that what bears the name of a result was not put there by somebody who may merely write to the folder too: a link
/// would lead the result elsewhere, a pipe hand it over, and a file that only its owner may exchange would stand in its way.
fn check_owner(path: &Path, found: &Metadata) -> io::Result<()> {
    let folder = fs::metadata(folder_of(path))?;
    let user = geteuid();
    let strange = ![user.as_raw(), 0, folder.uid()].contains(&found.uid());
    let exchanged = found.is_file() && (user.is_root() || folder.mode() & STICKY == 0);
    if strange && !exchanged {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// As many as the kernel follows (path_resolution(7)).
const MOST_LINKS: u32 = 40;
const STICKY: u32 = 0o1000;
const PARTIAL: &str = ".partial";

fn partial_of(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(PARTIAL);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

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
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_bears_the_unfinished_name_is_neither_followed_nor_filled() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "as it was").unwrap();
        symlink(at("precious"), at("a.jsonl.partial")).unwrap();
        let mut file = WholeFile::create(&at("a.jsonl")).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(file.leave_unfinished().unwrap(), at("a.jsonl.partial"));
        assert!(!fs::symlink_metadata(at("a.jsonl.partial")).unwrap().is_symlink());
        assert_eq!(fs::read(at("a.jsonl.partial")).unwrap(), b"half");
        assert_eq!(fs::read(at("precious")).unwrap(), b"as it was");
    }

    #[test]
    fn a_folder_of_the_unfinished_name_does_not_cost_the_results() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("a.jsonl.partial");
        fs::create_dir(&taken).unwrap();
        let mut file = WholeFile::create(&folder.path().join("a.jsonl")).unwrap();
        file.write_all(b"half").unwrap();
        let left = file.leave_unfinished().unwrap();
        assert_ne!(left, taken);
        assert!(left.to_string_lossy().ends_with(".partial"), "{}", left.display());
        assert_eq!(fs::read(left).unwrap(), b"half");
    }

    #[test]
    fn own_links_stay_and_the_file_behind_them_is_exchanged() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("results")).unwrap();
        symlink("results/new", at("second")).unwrap();
        symlink(at("second"), at("first")).unwrap();
        for text in ["one", "two"] {
            let mut file = WholeFile::create(&at("first")).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.finish().unwrap();
            assert_eq!(fs::read_to_string(at("results/new")).unwrap(), text);
        }
        symlink("round", at("round")).unwrap();
        let Err(Failure::Run(message)) = WholeFile::create(&at("round")) else { panic!() };
        assert!(message.contains("Too many levels of symbolic links"), "{message}");
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "a skipped test says why")]
    fn nothing_of_another_user_in_a_shared_folder_is_followed_or_filled() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can make files of another user");
            return;
        }
        let stranger = Some(65534);
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::write(at("precious"), "as it was").unwrap();
        symlink("precious", at("link")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for name in ["link", "pipe"] {
            lchown(at(name), stranger, None).unwrap();
            let Err(Failure::Input(message)) = WholeFile::create(&at(name)) else { panic!("{name}") };
            let expected = format!("{}: cannot be written: it belongs to another user", at(name).display());
            assert_eq!(message, expected);
        }
        assert_eq!(fs::read(at("precious")).unwrap(), b"as it was");
        // Root exchanges a file, and its owner gets nothing of what is written.
        fs::write(at("file"), "").unwrap();
        lchown(at("file"), stranger, None).unwrap();
        let mut file = WholeFile::create(&at("file")).unwrap();
        file.write_all(b"ours").unwrap();
        file.finish().unwrap();
        assert_eq!(
            (fs::metadata(at("file")).unwrap().uid(), fs::read(at("file")).unwrap()),
            (0, b"ours".to_vec())
        );
    }

    #[test]
    fn a_full_disk_is_one_error_and_the_device_stays() {
        let mut file = WholeFile::create(Path::new("/dev/full")).unwrap();
        let written = file.write_all(&[0; 100_000]).map_err(|error| file.failure(&error));
        let Err(Failure::Run(message)) = written else { panic!("{written:?}") };
        assert!(message.starts_with("/dev/full: cannot be written: No space left"), "{message}");
    }

    #[test]
    fn a_file_that_grows_in_place_fills_nothing_of_another_user() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("own"), "old").unwrap();
        symlink(at("own"), at("link")).unwrap();
        create_in_place(&at("link")).unwrap().write_all(b"new").unwrap();
        create_in_place(&at("fresh")).unwrap().write_all(b"new").unwrap();
        assert_eq!([at("own"), at("fresh")].map(|path| fs::read(path).unwrap()), [b"new", b"new"]);
        create_in_place(Path::new("/dev/null")).unwrap();
        if !geteuid().is_root() {
            return;
        }
        fs::write(at("theirs"), "old").unwrap();
        lchown(at("theirs"), Some(65534), None).unwrap();
        let Err(Failure::Input(said)) = create_in_place(&at("theirs")) else { panic!() };
        assert!(said.ends_with("theirs: cannot be written: it belongs to another user"), "{said}");
        assert_eq!(fs::read(at("theirs")).unwrap(), b"old");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let Err(Failure::Input(message)) = WholeFile::create(Path::new("/nowhere/at/all")) else { panic!() };
        assert!(message.starts_with("/nowhere/at/all: cannot be written"), "{message}");
    }
}
