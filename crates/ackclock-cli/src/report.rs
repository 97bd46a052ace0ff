//! `--report`: an HTML file that Python draws of finished runs.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use ackclock_scenario::{RunResult, json_line};
use serde_json::Value;

use crate::failure::Failure;
use crate::python;
use crate::scenario_file::ScenarioFile;
use crate::statistics::Confidence;

/// A finished run and what was varied for it.
pub(crate) type Labelled<'a> = (&'a RunResult, &'a [(String, Value)]);

/// Writes the report of some runs to `path`, with the pictures of a time series where the file of one is given.
///
/// # Errors
/// Where Python's part is not installed or fails.
pub(crate) fn write<'a>(
    path: &Path,
    scenario: &ScenarioFile,
    runs: impl Iterator<Item = Labelled<'a>>,
    series: Option<&Path>,
    confidence: Confidence,
) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|error| Failure::writing("a temporary folder", &error))?;
    let lines = folder.path().join("runs.jsonl");
    write_lines(&lines, runs).map_err(|error| Failure::writing(lines.display(), &error))?;
    let mut arguments: Vec<OsString> = vec![
        "report".into(),
        lines.into(),
        "--out".into(),
        path.into(),
        "--title".into(),
        scenario.path().file_name().unwrap_or_default().to_owned(),
        "--confidence".into(),
        confidence.level().to_string().into(),
    ];
    arguments.extend(series.into_iter().flat_map(|series| ["--series".into(), series.into()]));
    python::call_module(&arguments)
}

fn write_lines<'a>(path: &Path, runs: impl Iterator<Item = Labelled<'a>>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for (result, labels) in runs {
        writeln!(file, "{}", json_line(result, labels))?;
    }
    file.flush()
}
