//! Readers of JSON: of any file, and of a list of `{"duration_ms", "bandwidth_kbps", "latency_ms"}`, the format of public 3G and LTE logs.
//!
//! The latency is used as one-way delay. In the public logs the latency is a constant that was added later, not a
//! measurement.

use ackclock_core::{Rate, Span};
use serde::Deserialize;
use serde_json::Value;

use super::TraceError;
use super::samples::{Sample, Samples};
use ackclock_link::Loss;

/// Reads a file with one JSON value.
pub(super) fn object(bytes: &[u8]) -> Result<Value, TraceError> {
    serde_json::from_slice(bytes)
        .map_err(|error| TraceError { line: Some(error.line()), message: format!("not JSON: {error}") })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    duration_ms: f64,
    bandwidth_kbps: f64,
    latency_ms: Option<f64>,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Samples, TraceError> {
    let entries: Vec<Entry> = serde_json::from_slice(bytes)
        .map_err(|error| TraceError { line: Some(error.line()), message: error.to_string() })?;
    let measured = entries.iter().any(|entry| entry.latency_ms.is_some());
    let (mut rows, mut begins) = (Vec::with_capacity(entries.len()), Span::ZERO);
    for (index, entry) in entries.iter().enumerate() {
        let check = |name: &str, value: f64, most: f64| {
            if (0.0..=most).contains(&value) {
                return Ok(value);
            }
            Err(TraceError::whole(format!("entry {}: {name} {value} is not from 0 to {most}", index + 1)))
        };
        let rate = check("bandwidth_kbps", entry.bandwidth_kbps, 1e12)?;
        let latency = entry.latency_ms.or((!measured).then_some(0.0)).ok_or_else(|| {
            TraceError::whole(format!("entry {}: no latency_ms, which other entries have", index + 1))
        })?;
        let delay = check("latency_ms", latency, 1e9)?;
        let lasts = check("duration_ms", entry.duration_ms, 1e12)?;
        if lasts == 0.0 {
            continue;
        }
        rows.push(Sample {
            begins,
            rate: Rate::from_bps_f64(rate * 1e3),
            delay: Span::from_secs_f64(delay / 1e3),
            loss: Loss::NONE,
        });
        begins += Span::from_secs_f64(lasts / 1e3);
    }
    Samples::new(rows, begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_follow_each_other() {
        let text = br#"[{"duration_ms": 1005, "bandwidth_kbps": 1600, "latency_ms": 100},
                        {"duration_ms": 500, "bandwidth_kbps": 0, "latency_ms": 100}]"#;
        let samples = parse(text).unwrap();
        assert_eq!(samples.length(), Span::from_millis(1505));
        assert_eq!(samples.rows()[1].begins, Span::from_millis(1005));
        assert_eq!(samples.rows()[0].delay, Span::from_millis(100));
    }

    #[test]
    fn bad_files_are_refused() {
        for (text, part) in [
            ("[", "line 1: EOF"),
            ("[]", "no row"),
            ("[{\"duration_ms\": 1}]", "bandwidth_kbps"),
            ("[\n{\"duration_ms\": 1, \"bandwidth_kbps\": -1}]", "entry 1: bandwidth_kbps -1"),
            ("[{\"duration_ms\": 1, \"bandwidth_kbps\": 1, \"colour\": 3}]", "unknown field `colour`"),
            (
                "[{\"duration_ms\": 1, \"bandwidth_kbps\": 1, \"latency_ms\": 9}, {\"duration_ms\": 1, \"bandwidth_kbps\": 1}]",
                "entry 2: no latency_ms",
            ),
            ("[{\"duration_ms\": 1, \"bandwidth_kbps\": 0}]", "every rate is zero"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
