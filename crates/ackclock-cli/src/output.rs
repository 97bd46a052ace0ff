//! Writes results to standard output, and checks the names of output files.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use ackclock_core::text::printable;

use crate::failure::Failure;

/// Writes `text` to standard output. Control characters are escaped as in JSON and TOML.
///
/// # Errors
/// Fails with [`Failure::Unread`] if the reader has closed standard output, otherwise with the write error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    #[cfg(feature = "live")]
    if !ackclock_live::standard_output::was_open() {
        return Err(unprintable(&rustix::io::Errno::BADF.into()));
    }
    let mut out = io::stdout().lock();
    out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()).map_err(|error| unprintable(&error))
}

/// Prints a message to standard error, with all lines after the first indented. Control characters are escaped, because
/// names and values in a message may come from untrusted files. A closed standard error is ignored.
pub(crate) fn remark(message: &str) {
    // If standard error cannot be written, the failure cannot be reported anywhere.
    let _ =
        writeln!(io::stderr().lock(), "ackclock: {}", printable(message.trim_end()).replace('\n', "\n  "));
}

fn unprintable(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::Unread,
        _ => Failure::writing("standard output", error),
    }
}

/// Checks that the output files are distinct and do not overwrite the scenario.
///
/// # Errors
/// Fails with the names of the two options that refer to the same file.
pub(crate) fn keep_apart(
    scenario: Option<&Path>,
    written: &[(&str, Option<&PathBuf>)],
) -> Result<(), Failure> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut taken: Vec<_> = scenario.map(|path| ("the scenario", real(path))).into_iter().collect();
    for (name, path) in written.iter().filter_map(|(name, path)| Some((*name, path.as_ref()?))) {
        let path = real(path);
        if let Some((other, _)) = taken.iter().find(|(_, taken)| is_plain(&path) && *taken == path) {
            return Err(Failure::Input(format!("{name}: {} is also {other}", path.display())));
        }
        taken.push((name, path));
    }
    Ok(())
}

/// Checks that the extension of an output file's name does not contradict its format `written`.
///
/// # Errors
/// Fails if the file name does not fit the format; the message names the option, its format, and a suitable file name.
pub(crate) fn keep_form(option: &str, path: Option<&PathBuf>, written: Form) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let ending = path.extension().map_or_else(String::new, |ending| ending.to_string_lossy().to_lowercase());
    match ENDINGS.iter().find(|(known, _)| *known == ending) {
        Some((_, form)) if *form != Some(written) => {
            let (what, fitting) = written.named();
            let name = path.with_extension(fitting);
            let name = name.display();
            Err(Failure::Input(format!(
                "{option} {}: the file would hold {what}; call it {name}",
                path.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Format of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Capture,
    Csv,
    Html,
    JsonLines,
}

/// File name extensions and their formats; `None` marks formats that ackclock does not write.
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
    /// Returns the name of the format, and its file name extension.
    fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::Capture => ("a capture (pcapng)", "pcapng"),
            Self::Csv => ("CSV", "csv"),
            Self::Html => ("HTML", "html"),
            Self::JsonLines => ("JSON lines", "jsonl"),
        }
    }
}

/// Returns whether `path` is, or can become, a regular file. `/dev/null` and named pipes are not regular files and are
/// written in place.
fn is_plain(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |data| data.is_file())
}
