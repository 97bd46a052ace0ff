//! Where results go: standard output, and files that are called as what they hold.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use ackclock_core::text::printable;
use ackclock_live::standard_output;
use rustix::io::Errno;

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

/// Whether `path` is, or can become, an ordinary file; `/dev/null` and named pipes are not exchanged.
fn is_plain(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |data| data.is_file())
}
