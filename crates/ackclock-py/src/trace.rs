//! A recording as arrays over time.

use std::path::PathBuf;

use ackclock_core::Span;
use ackclock_core::text::printable;
use ackclock_link::trace::{Opportunities, Recording, Samples};
use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::number;
use crate::files::os_error;

/// A recording as the link model reads it: `time` (start of each interval, seconds) and `rate` (its mean, bit/s).
#[pyfunction]
#[pyo3(signature = (path, *, interval=Span::from_secs(1)))]
#[pyo3(text_signature = "(path, *, interval=1.0)")]
pub(crate) fn trace<'py>(
    py: Python<'py>,
    path: PathBuf,
    #[pyo3(from_py_with = bin)] interval: Span,
) -> PyResult<Bound<'py, PyDict>> {
    let bytes = std::fs::read(&path).map_err(|error| os_error(py, &path, &error))?;
    let recording = Recording::parse(&bytes)
        .map_err(|error| format!("{}: {error}", path.display()))
        .map_err(|message| PyValueError::new_err(printable(&message).into_owned()))?;
    let (length, bits) = match &recording {
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

fn bin(any: &Bound<'_, PyAny>) -> PyResult<Span> {
    let long = |seconds| Span::from_secs_f64(seconds) >= Span::from_millis(1);
    number("interval", any, "at least 0.001 seconds", long).map(Span::from_secs_f64)
}

/// Zeros, one for each interval of a recording.
fn bins(length: Span, bin: Span) -> Vec<f64> {
    vec![0.0; length.as_nanos().div_ceil(bin.as_nanos()) as usize]
}

fn opportunity_bits(opportunities: &Opportunities, bin: Span) -> Vec<f64> {
    let mut bits = bins(opportunities.length(), bin);
    let last = bits.len() - 1;
    for &millis in opportunities.millis() {
        // The last opportunity of the recording is at the edge of its last interval.
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
