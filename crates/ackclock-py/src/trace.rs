//! Recordings as arrays of rates over time.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use ackclock_core::Span;
use ackclock_core::text::printable;
use ackclock_core::units::time_unit;
use ackclock_import::formats::{
    self as import, Form, Missing, Options, TimeUnit, Towards, Unit, separator_named,
};
use ackclock_import::{Opportunities, Recording, Samples, TraceError};
use ackclock_radio::synthetic;
use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::arguments::number;
use crate::files::os_error;

/// Reads a recording in the same way as the link model. Returns the arrays `time` (start of each interval, seconds) and
/// `rate` (mean rate in the interval, bit/s).
#[pyfunction]
#[pyo3(signature = (path, *, interval=Span::from_secs(1)))]
#[pyo3(text_signature = "(path, *, interval=1.0)")]
pub(crate) fn trace<'py>(
    py: Python<'py>,
    path: PathBuf,
    #[pyo3(from_py_with = bin)] interval: Span,
) -> PyResult<Bound<'py, PyDict>> {
    let bytes = bytes_of(py, &path)?;
    let recording = Recording::parse(&bytes)
        .map_err(|error| format!("{}: {error}", path.display()))
        .map_err(|message| PyValueError::new_err(printable(&message).into_owned()))?;
    means(py, &recording, interval)
}

/// Content of a recording: of a file, or of a built-in one such as `synthetic:lte-driving`.
fn bytes_of(py: Python<'_>, path: &Path) -> PyResult<Vec<u8>> {
    match path.to_str().and_then(synthetic::read) {
        Some(built_in) => {
            built_in.map(String::into_bytes).map_err(|error| PyValueError::new_err(error.to_string()))
        }
        None => std::fs::read(path).map_err(|error| os_error(py, path, &error)),
    }
}

/// Arrays `time` (s) and `rate` (bit/s) of a recording, by intervals.
fn means<'py>(py: Python<'py>, recording: &Recording, interval: Span) -> PyResult<Bound<'py, PyDict>> {
    let (length, bits) = match recording {
        Recording::Opportunities(opportunities) => {
            (opportunities.length(), opportunity_bits(opportunities, interval))
        }
        Recording::Samples(samples) => (samples.length(), sample_bits(samples, interval)),
    };
    let start = |index: usize| interval * index as u64;
    let time: Vec<f64> = (0..bits.len()).map(|index| start(index).as_secs_f64()).collect();
    let lasts = |index: usize| length.min(start(index) + interval).saturating_sub(start(index)).as_secs_f64();
    let rate: Vec<f64> = bits.iter().enumerate().map(|(index, bits)| bits / lasts(index)).collect();
    let columns = PyDict::new(py);
    columns.set_item("time", time.into_pyarray(py))?;
    columns.set_item("rate", rate.into_pyarray(py))?;
    Ok(columns)
}

/// Reads a recording of any format, like the command `import`. Returns the arrays that `trace` returns, a description
/// of the import as JSON, and the converted text.
#[pyfunction]
#[pyo3(signature = (path, options, *, interval=Span::from_secs(1)))]
#[pyo3(text_signature = "(path, options, *, interval=1.0)")]
pub(crate) fn read_recording<'py>(
    py: Python<'py>,
    path: PathBuf,
    options: BTreeMap<String, String>,
    #[pyo3(from_py_with = bin)] interval: Span,
) -> PyResult<(Bound<'py, PyDict>, String, String)> {
    let wrong = |message: String| PyValueError::new_err(printable(&message).into_owned());
    let mut asked = Options::default();
    for (name, value) in &options {
        set(&mut asked, name, value).map_err(|why| wrong(format!("{name}: `{value}`: {why}")))?;
    }
    let bytes = bytes_of(py, &path)?;
    let bad = |error: TraceError| wrong(format!("{}: {error}", path.display()));
    let imported = import::read(&bytes, &asked).map_err(bad)?;
    let text = imported.text().map_err(bad)?;
    let about =
        json!({"form": imported.form.name(), "certainty": imported.certainty, "notes": imported.notes});
    Ok((means(py, &imported.recording, interval)?, about.to_string(), text))
}

/// Sets an import option by its name.
fn set(options: &mut Options, name: &str, value: &str) -> Result<(), Box<dyn Error>> {
    let columns = &mut options.columns;
    let text = || Some(value.to_owned());
    let whole = || value.parse::<u64>().map_err(|_| "it is a whole number");
    match name {
        "form" => options.form = Some(Form::named(value)?),
        "direction" => options.towards = Some(Towards::named(value)?),
        "missing" => options.missing = Missing::named(value)?,
        "probe_rate" => options.rate = Some(value.parse()?),
        "run" => options.run = Some(whole()?),
        "sort" => options.sort = value == "true",
        "time" => columns.time = text(),
        "time_unit" => columns.time_unit = TimeUnit::named(value)?,
        "rate" => columns.rate = text(),
        "unit" => columns.unit = Some(Unit::named(value)?),
        "delay" => columns.delay = text(),
        "delay_unit" => {
            columns.delay_unit = Some(time_unit(value).ok_or("it is one of s, ms, us, ns")?);
        }
        "loss" => columns.loss = text(),
        "percent" => columns.percent = value == "true",
        "separator" => columns.separator = Some(separator_named(value)?),
        "decimal" => columns.decimal_comma = value == ",",
        "skip" => columns.skip = whole()? as usize,
        _ => return Err("there is no such option".into()),
    }
    Ok(())
}

fn bin(any: &Bound<'_, PyAny>) -> PyResult<Span> {
    let long = |seconds| Span::from_secs_f64(seconds) >= Span::from_millis(1);
    number("interval", any, "at least 0.001 seconds", long).map(Span::from_secs_f64)
}

/// Creates an array of zeros, one for each interval of a recording.
fn bins(length: Span, bin: Span) -> Vec<f64> {
    vec![0.0; length.as_nanos().div_ceil(bin.as_nanos()) as usize]
}

fn opportunity_bits(opportunities: &Opportunities, bin: Span) -> Vec<f64> {
    let mut bits = bins(opportunities.length(), bin);
    let last = bits.len() - 1;
    for &millis in opportunities.millis() {
        // The last opportunity of the recording is at the end of its last interval.
        let index = Span::from_millis(millis.into()).as_nanos() / bin.as_nanos();
        bits[last.min(index as usize)] += (Opportunities::BYTES * 8) as f64;
    }
    bits
}

fn sample_bits(samples: &Samples, bin: Span) -> Vec<f64> {
    let mut bits = bins(samples.length(), bin);
    let rows = samples.rows();
    let ends = rows.iter().skip(1).map(|next| next.begins).chain([samples.length()]);
    for (sample, end) in rows.iter().zip(ends) {
        let mut at = sample.begins;
        while at < end {
            let index = at.as_nanos() / bin.as_nanos();
            let until = end.min(bin * (index + 1));
            bits[index as usize] += sample.rate.as_bps() as f64 * until.saturating_sub(at).as_secs_f64();
            at = until;
        }
    }
    bits
}
