//! # ackclock-import
//!
//! Recordings of links: read, converted, and played by the link `trace`.
//!
//! ## Source
//! The trace files of mahimahi (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015), and
//! tables of rates such as the HSDPA logs of Riiser et al. (MMSys 2013).
//!
//! ## What it does
//! This module reads, describes and converts recordings of a link:
//! - **opportunities** ([`Opportunities`]): the format of mahimahi, one line per opportunity to send 1500 bytes;
//! - **samples** ([`Samples`]): rows of rate, optionally delay and loss, each valid until the next row: the CSV of
//!   ackclock, and JSON lists of `duration_ms`, `bandwidth_kbps`, `latency_ms`.
//!
//! The first line that is not a comment determines the format; [`formats`] parses the formats of other tools and data
//! sets. Recordings are played in a loop.
//!
//! ## Differences from the source
//! A recording file may have at most 256 MiB, read or written; opportunities may span at most 2^32 ms (49 days).
//!
//! ## Validation
//! Tests compare statistics of public recordings with the providers' published statistics, and convert recordings to
//! the other format and back (unit tests, `tests/trace.rs`).

mod begin;
mod by_load;
mod csv;
pub mod formats;
mod json;
mod link;
mod mahimahi;
mod opportunities;
mod samples;
mod statistics;

use ackclock_core::{Rate, Span, Time};

use ackclock_link::Loss;

pub use ackclock_link::text_file::{MAX_BYTES, TraceError, plain_text};
pub use begin::Begin;
pub use by_load::LightConfig;
pub use link::{Accounting, TraceConfig};
pub use mahimahi::Opportunities;
pub use samples::{Sample, Samples};
pub use statistics::Statistics;

/// A recording of a link, as opportunities or as rates.
#[derive(Clone, Debug, PartialEq)]
pub enum Recording {
    /// Opportunities to send 1500 bytes.
    Opportunities(Opportunities),
    /// Rates, each valid until the next row.
    Samples(Samples),
}

impl Recording {
    /// Parses a recording from the contents of its file.
    ///
    /// # Errors
    /// The error names the line, the text found and the text allowed. The parser never panics, whatever the input.
    pub fn parse(bytes: &[u8]) -> Result<Self, TraceError> {
        formats::read(bytes, &formats::Options::default()).map(|imported| imported.recording)
    }

    /// Converts the recording to the mahimahi format. A table of rates becomes one opportunity per 1500 bytes, rounded
    /// up to the next millisecond. The last opportunity is at the end of the recording, because mahimahi uses it as the
    /// end; the mean rate changes by less than half an opportunity or 0.1 %. The mahimahi format has no delays and
    /// losses: [`impairments`](Self::impairments) lists which of them this recording has.
    ///
    /// # Errors
    /// Fails if the recording has more opportunities or is longer than the mahimahi format allows, or the text would
    /// exceed the size limit for reading.
    pub fn to_mahimahi(&self) -> Result<String, TraceError> {
        match self {
            Self::Opportunities(opportunities) => readable(opportunities.to_string()),
            Self::Samples(samples) => readable(samples.opportunities()?.to_string()),
        }
    }

    /// Converts the recording to CSV. Opportunities are counted in intervals of length `bin`.
    ///
    /// # Errors
    /// Fails if the bin is shorter than 1 ms, or the text would exceed the size limit for reading.
    pub fn to_csv(&self, bin: ackclock_core::Span) -> Result<String, TraceError> {
        match self {
            Self::Opportunities(opportunities) => readable(csv::print(&opportunities.samples(bin)?)),
            Self::Samples(samples) => readable(csv::print(samples)),
        }
    }

    /// Properties of the recording besides rates: "delay", "loss".
    pub fn impairments(&self) -> Vec<&'static str> {
        let Self::Samples(samples) = self else { return Vec::new() };
        let any = |is: fn(&Sample) -> bool| samples.rows().iter().any(is);
        let said =
            [("delay", any(|row| row.delay != Span::ZERO)), ("loss", any(|row| row.loss != Loss::NONE))];
        said.into_iter().filter_map(|(name, is_said)| is_said.then_some(name)).collect()
    }

    /// Length of one pass through the recording.
    pub fn length(&self) -> Span {
        match self {
            Self::Opportunities(opportunities) => opportunities.length(),
            Self::Samples(samples) => samples.length(),
        }
    }

    /// Mean rate of the recording.
    pub fn mean_rate(&self) -> Rate {
        match self {
            Self::Opportunities(opportunities) => opportunities.mean_rate(),
            Self::Samples(samples) => samples.mean_rate(),
        }
    }

    /// Statistics of the recording.
    pub fn statistics(&self) -> Statistics {
        match self {
            Self::Opportunities(opportunities) => Statistics::of_opportunities(opportunities),
            Self::Samples(samples) => Statistics::of_samples(samples),
        }
    }
}

/// Whether the first line that is neither empty nor a comment begins with a number, optionally signed.
fn begins_with_number(bytes: &[u8]) -> bool {
    let mut texts = lines(bytes).filter_map(|(_, line)| line.ok());
    let first = texts.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    first.trim_start_matches(['+', '-']).starts_with(|first: char| first.is_ascii_digit())
}

/// Rejects a text that exceeds the size limit for reading.
fn readable(text: String) -> Result<String, TraceError> {
    match text.len() {
        ..=MAX_BYTES => Ok(text),
        long => Err(TraceError::whole(format!("it would take {long} bytes; at most {MAX_BYTES} are read"))),
    }
}

/// Number of completed passes through a recording of this length by `now`, and the offset in the current pass.
fn playing(length: Span, now: Time) -> (u64, Span) {
    let (plays, offset) = (now.as_nanos() / length.as_nanos(), now.as_nanos() % length.as_nanos());
    (plays, Span::from_nanos(offset))
}

/// Lines of a text file with their indices, without line ends.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, Result<&str, TraceError>)> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.split(|&byte| byte == b'\n').enumerate().map(|(index, line)| {
        let text = std::str::from_utf8(line).map(str::trim);
        (index, text.map_err(|_| TraceError::at(index, "it is not text in UTF-8")))
    })
}

/// Start of a text, short enough for an error message.
fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    if short.len() < text.len() { format!("{short}...") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_times_is_one_whatever_stands_before_the_first() {
        for (text, expected) in [
            (
                &b"# drive\n12\n"[..],
                "line 1: `# drive` is not a time: a line is a whole number of ms below 2^32 (mahimahi files have no comments)",
            ),
            (b"\n12\n", "line 1: `` is not a time: a line is a whole number of ms below 2^32"),
            (b"-1\n12\n", "line 1: `-1` is not a time: a line is a whole number of ms below 2^32"),
            (b"+1\n12\n", "line 1: `+1` is not a time: a line is a whole number of ms below 2^32"),
        ] {
            assert_eq!(Recording::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn nothing_is_written_that_is_too_long_to_be_read() {
        assert!(readable("1".repeat(MAX_BYTES)).is_ok());
        let error = readable("1".repeat(MAX_BYTES + 1)).unwrap_err().to_string();
        assert_eq!(error, "it would take 268435457 bytes; at most 268435456 are read");
        // A recording of 49 days, the longest that milliseconds can express.
        let long = Recording::parse(b"1\n4294967295\n").unwrap();
        let error = long.to_csv(Span::from_millis(1)).unwrap_err().to_string();
        assert_eq!(error, "it has 4294967295 bins of 1ms; at most 20000000 are counted");
    }
}
