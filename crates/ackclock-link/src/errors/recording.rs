//! # Recorded errors
//!
//! ## Source
//! Source: traces of link-level errors with one mark per block, as used since the first studies of TCP over wireless
//! links.
//!
//! ## What it does
//! Plays a recording in a loop from the start of the run. The recording is a text with one character per interval: 0 if
//! data sent in the interval arrives, 1 if the data is lost. White space is skipped, and `#` starts a comment up to the
//! end of the line.
//!
//! ## Differences from the source
//! A recording may have at most 256 MiB; in memory it takes an eighth of the file's size.
//!
//! ## Validation
//! Unit tests compare outcomes worked out by hand. `tests/errors.rs` checks loss share, bursts and repetition.

use ackclock_core::{Config, ConfigError, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AnyErrorProcess, ErrorConfig, ErrorContext, ErrorProcess, check_interval};
use crate::text_file::{TraceError, plain_text};
use crate::{Fate, Files};

/// Recorded errors: a text of 0 (arrives) and 1 (lost), one per interval, played in a loop from the start of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecordingConfig {
    /// Path of the file with the recording.
    pub file: String,
    /// Duration of an interval; default: the TTI of `umts-rlc`, the slot of a cell, 10ms for any other link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
}

impl Config for RecordingConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if self.file.is_empty() {
            return Err(ConfigError::new("file", "recorded errors need a file, a text of 0 and 1"));
        }
        check_interval(self.interval)
    }
}

impl RecordingConfig {
    fn marks(&self, files: &dyn Files) -> Result<Marks, ConfigError> {
        let bytes = files.read(&self.file).map_err(|message| ConfigError::new("file", message))?;
        Marks::parse(&bytes).map_err(|error| ConfigError::new("file", format!("{}: {error}", self.file)))
    }
}

impl ErrorConfig for RecordingConfig {
    fn share(&self, files: &dyn Files) -> Result<f64, ConfigError> {
        let marks = self.marks(files)?;
        let lost: u64 = marks.bits.iter().map(|word| u64::from(word.count_ones())).sum();
        Ok(lost as f64 / marks.count as f64)
    }

    fn build(&self, context: ErrorContext<'_>) -> Result<AnyErrorProcess, ConfigError> {
        let (marks, interval) = (self.marks(context.files)?, self.interval.unwrap_or(context.block));
        Ok(AnyErrorProcess::Other(Box::new(Recording { marks, interval })))
    }
}

/// Error process that plays a recording.
struct Recording {
    marks: Marks,
    interval: Span,
}

impl ErrorProcess for Recording {
    fn fate(&mut self, at: Time) -> Fate {
        self.marks.fate(at.as_nanos() / self.interval.as_nanos())
    }
}

/// Outcome of each interval, stored as one bit.
#[derive(Debug, Default)]
struct Marks {
    bits: Vec<u64>,
    count: u64,
}

impl Marks {
    fn parse(bytes: &[u8]) -> Result<Self, TraceError> {
        let text = plain_text(bytes, "an error recording is a text of 0 and 1")?;
        let mut marks = Self::default();
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            for &byte in line.iter().take_while(|&&byte| byte != b'#') {
                match byte {
                    b'0' => marks.push(0),
                    b'1' => marks.push(1),
                    space if space.is_ascii_whitespace() => {}
                    other => {
                        let what = format!("`{}` is neither 0 (arrives) nor 1 (lost)", other.escape_ascii());
                        return Err(TraceError::at(index, what));
                    }
                }
            }
        }
        if marks.count == 0 {
            return Err(TraceError::whole("the file contains neither 0 nor 1"));
        }
        Ok(marks)
    }

    fn push(&mut self, mark: u64) {
        let place = self.count % 64;
        if place == 0 {
            self.bits.push(0);
        }
        if let Some(word) = self.bits.last_mut() {
            *word |= mark << place;
        }
        self.count += 1;
    }

    /// Fate of data that is sent in an interval.
    fn fate(&self, interval: u64) -> Fate {
        let mark = interval % self.count;
        if self.bits[(mark / 64) as usize] >> (mark % 64) & 1 == 1 { Fate::Lost } else { Fate::Arrives }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Marks::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn marks_are_read_across_lines_and_begin_again() {
        let marks =
            Marks::parse(b"\xef\xbb\xbf# errors of a drive, 1 is lost\r\n0 0 1 # first\n\n1\t0").unwrap();
        let lost = |interval| marks.fate(interval) == Fate::Lost;
        assert_eq!(
            (0..10).map(lost).collect::<Vec<_>>(),
            [0, 0, 1, 1, 0, 0, 0, 1, 1, 0].map(|mark| mark == 1)
        );
    }

    #[test]
    fn a_recording_longer_than_a_word_keeps_every_mark() {
        let text: String = (0..200).map(|n| if n % 7 == 3 { '1' } else { '0' }).collect();
        let marks = Marks::parse(text.as_bytes()).unwrap();
        assert!((0..400u64).all(|n| (marks.fate(n) == Fate::Lost) == (n % 200 % 7 == 3)));
    }

    #[test]
    fn what_is_no_recording_is_refused_with_its_line() {
        assert_eq!(error("01\n0\n0 2\n"), "line 3: `2` is neither 0 (arrives) nor 1 (lost)");
        assert_eq!(error("0\x1b"), "line 1: `\\x1b` is neither 0 (arrives) nor 1 (lost)");
        assert_eq!(error("# nothing\n \n"), "the file contains neither 0 nor 1");
        assert_eq!(error(""), "the file is empty");
    }
}
