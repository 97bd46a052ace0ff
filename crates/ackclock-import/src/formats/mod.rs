//! # Recordings that others make
//!
//! ## Source
//! Formats of tools and data sets: iperf3 3.12 (`-J`); flent 2.3; the G-NetTrack logs in the UCC and Irish 4G data sets (Raca et
//! al., MMSys 2018 and 2020); Lumos5G (Narayanan et al., IMC 2020); the logs of Riiser et al. (MMSys 2013) and of van
//! der Hooft et al. (IEEE Communications Letters 2016); irtt; LENS; `ping -D` of iputils; saturatr (Winstein et al.,
//! NSDI 2013); cake-autorate; tcpdump and Wireshark.
//!
//! ## What it does
//! The import detects a format by its content, and reads its rates, delays and losses. The import also grades how the
//! rates relate to the capacity of the link ([`Certainty`]). Tables of unknown formats are read by the names of their
//! columns ([`Columns`]). Lines that begin with `#` are skipped in every line-based format.
//!
//! ## Differences from the source
//! Half of an RTT measured on an idle link counts for each direction. RTTs of a loaded link are ignored, because they
//! include the queueing delay.
//!
//! ## Validation
//! Unit tests compare a sample of each format with rates calculated by hand.

mod autorate;
pub mod capture;
mod certainty;
mod clock;
mod data_sets;
mod flent;
mod iperf3;
mod probes;
mod rows;
mod saturatr;
mod table;

use std::io::Cursor;
use std::net::IpAddr;

use super::{Recording, TraceError, csv, json, plain_text};
use ackclock_core::{Rate, Span};

pub use certainty::{Certainty, Grade};
pub use clock::TimeUnit;
pub use table::{Columns, Unit, separator_named};

use rows::{Row, finish};

/// Error of a name that is not among the allowed names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is one of {allowed}")]
pub struct UnknownName {
    /// Allowed names, separated by commas.
    pub allowed: String,
}

impl UnknownName {
    fn of<const N: usize>(names: [&str; N]) -> Self {
        Self { allowed: names.join(", ") }
    }
}

/// Format of a recording's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// mahimahi trace: one line per opportunity to send 1500 bytes.
    Mahimahi,
    /// CSV with rates, the format of ackclock.
    Rates,
    /// JSON list of `duration_ms`, `bandwidth_kbps`, `latency_ms`.
    JsonList,
    /// JSON output of `iperf3 -J`.
    Iperf3,
    /// JSON of flent.
    Flent,
    /// G-NetTrack log as published by the UCC and Irish 4G data sets.
    Ucc,
    /// Lumos5G data set.
    Lumos5g,
    /// Raw logs of HSDPA in Norway, with times since the start.
    Norway,
    /// Raw logs of LTE in Ghent, with times since 1970.
    Ghent,
    /// JSON output of `irtt client -o`.
    Irtt,
    /// One-way delays of the LENS data set.
    Lens,
    /// Output of `ping -D`.
    Ping,
    /// Receiver log of saturatr.
    Saturatr,
    /// Log of cake-autorate.
    Autorate,
    /// Packet capture (pcap or pcapng).
    Pcap,
    /// Any other table, read by the names of its columns.
    Columns,
}

impl Form {
    /// All formats of recordings.
    pub const ALL: [Self; 16] = [
        Self::Mahimahi,
        Self::Rates,
        Self::JsonList,
        Self::Iperf3,
        Self::Flent,
        Self::Ucc,
        Self::Lumos5g,
        Self::Norway,
        Self::Ghent,
        Self::Irtt,
        Self::Lens,
        Self::Ping,
        Self::Saturatr,
        Self::Autorate,
        Self::Pcap,
        Self::Columns,
    ];

    /// Name of the format on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mahimahi => "mahimahi",
            Self::Rates => "rates",
            Self::JsonList => "json-list",
            Self::Iperf3 => "iperf3",
            Self::Flent => "flent",
            Self::Ucc => "ucc",
            Self::Lumos5g => "lumos5g",
            Self::Norway => "norway",
            Self::Ghent => "ghent",
            Self::Irtt => "irtt",
            Self::Lens => "lens",
            Self::Ping => "ping",
            Self::Saturatr => "saturatr",
            Self::Autorate => "autorate",
            Self::Pcap => "pcap",
            Self::Columns => "columns",
        }
    }

    /// Parses the name of a format.
    ///
    /// # Errors
    /// Fails if the name is unknown; the error lists the valid names.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|form| form.name() == name);
        found.ok_or_else(|| UnknownName::of(Self::ALL.map(Self::name)))
    }

    /// Whether the format is native to ackclock or mahimahi, and needs no import.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Mahimahi | Self::Rates | Self::JsonList)
    }
}

/// Direction of a link, seen from the mobile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Towards {
    /// Downlink, from the server to the mobile.
    #[default]
    Mobile,
    /// Uplink, from the mobile to the server.
    Server,
}

impl Towards {
    /// Parses the name of a direction: `down`, `up`.
    ///
    /// # Errors
    /// Fails if the name is unknown; the error lists the valid names.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        match name {
            "down" => Ok(Self::Mobile),
            "up" => Ok(Self::Server),
            _ => Err(UnknownName::of(["down", "up"])),
        }
    }
}

/// Treatment of a row without a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// A row without a rate is an error.
    #[default]
    Refuse,
    /// A row without a rate repeats the previous row's rate.
    Hold,
    /// A row without a rate has rate 0.
    Zero,
}

impl Missing {
    /// Parses the name of a treatment: `refuse`, `hold`, `zero`.
    ///
    /// # Errors
    /// Fails if the name is unknown; the error lists the valid names.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        match name {
            "refuse" => Ok(Self::Refuse),
            "hold" => Ok(Self::Hold),
            "zero" => Ok(Self::Zero),
            _ => Err(UnknownName::of(["refuse", "hold", "zero"])),
        }
    }
}

/// Options for reading a foreign recording.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Format of the file; detected from the content by default.
    pub form: Option<Form>,
    /// Direction to read from a recording with two directions; for other recordings the direction is only checked.
    pub towards: Option<Towards>,
    /// Columns of a table with time, rate, delay and loss.
    pub columns: Columns,
    /// Link rate of a recording of probes, which does not contain rates.
    pub rate: Option<Rate>,
    /// Number of the run to read from a file with several runs.
    pub run: Option<u64>,
    /// Whether to sort the rows by time.
    pub sort: bool,
    /// Treatment of rows without a rate.
    pub missing: Missing,
    /// Address of the mobile in a packet capture.
    pub host: Option<IpAddr>,
    /// Number of the interface to read from a packet capture, from 0 as in the file; by default the one with the most
    /// bytes near their receivers.
    pub interface: Option<u32>,
    /// Interval over which the rates of a packet capture are averaged, 100 ms by default.
    pub bin: Option<Span>,
    /// Whether to interpolate the rates of a packet capture where the link was not busy.
    pub fill: bool,
    /// Whether the delays of a log that has both are those measured, with the queue, instead of those of the empty line.
    pub measured_delay: bool,
}

/// Imported recording, with its format, grade and notes.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Detected or given format of the recording.
    pub form: Form,
    /// Recording that was imported.
    pub recording: Recording,
    /// Certainty of the rates; `None` if the way in which the rates were measured is unknown.
    pub certainty: Option<Certainty>,
    /// Number of rows without a rate.
    pub missing: usize,
    /// Whether all rows of the recording have the same duration.
    pub even: bool,
    /// Start of the recording in seconds since 1970 by the clock of the one who recorded it, if known.
    pub begins: Option<f64>,
    /// Intervals in which the rates of a packet capture are the capacity of the link; empty for other formats.
    pub capacity: Vec<(Span, Span)>,
    /// Data that was left out because a format cannot represent it, and assumptions made by the import.
    pub notes: Vec<String>,
}

impl Imported {
    /// Number of rows of the recording: opportunities, or rates.
    pub fn rows(&self) -> usize {
        match &self.recording {
            Recording::Opportunities(opportunities) => opportunities.millis().len(),
            Recording::Samples(samples) => samples.rows().len(),
        }
    }
}

impl Imported {
    /// Text of the imported recording: CSV with format and grade as comments, or the mahimahi format for opportunities.
    ///
    /// # Errors
    /// Fails if the text would exceed the size limit for reading.
    pub fn text(&self) -> Result<String, TraceError> {
        if let Recording::Opportunities(_) = self.recording {
            return self.recording.to_mahimahi();
        }
        let grade = self.certainty.as_ref().map(Certainty::comment).unwrap_or_default();
        let rows = self.recording.to_csv(Span::from_secs(1))?;
        Ok(format!("# form: {}\n{grade}{rows}", self.form.name()))
    }
}

/// Content read from a file before its rows are combined.
struct Read {
    rows: Vec<Row>,
    end: Option<f64>,
    certainty: Certainty,
    notes: Vec<String>,
}

/// Reads a recording of any format.
///
/// # Errors
/// The error names the line, the text found and what is allowed, or the reason why the format is not supported. The
/// parser never panics, whatever the input.
pub fn read(bytes: &[u8], options: &Options) -> Result<Imported, TraceError> {
    let (form, bytes) = form_of(bytes, options)?;
    let read = match form {
        Form::Mahimahi => {
            return own(form, super::Opportunities::parse(bytes).map(Recording::Opportunities)?, bytes);
        }
        Form::Rates => return own(form, csv::parse(bytes).map(Recording::Samples)?, bytes),
        Form::JsonList => return own(form, json::parse(bytes).map(Recording::Samples)?, bytes),
        Form::Saturatr => return saturatr::read(bytes),
        Form::Pcap => return capture::read(&mut Cursor::new(bytes), options),
        Form::Iperf3 => iperf3::read(bytes, options)?,
        Form::Flent => flent::read(bytes, options)?,
        Form::Ucc => data_sets::ucc(bytes, options)?,
        Form::Lumos5g => data_sets::lumos5g(bytes, options)?,
        Form::Norway | Form::Ghent => data_sets::bytes_and_times(bytes, form)?,
        Form::Autorate if autorate::has_records(bytes) => autorate::records(bytes, options)?,
        Form::Autorate => autorate::table(bytes, options)?,
        Form::Irtt => probes::irtt(bytes, options)?,
        Form::Lens => probes::lens(bytes, options)?,
        Form::Ping => probes::ping(bytes, options)?,
        Form::Columns => columns(bytes, options)?,
    };
    let mut notes = read.notes;
    let begins = read.rows.first().map(|first| first.begins).filter(|&begins| begins >= SINCE_1970);
    notes.extend(begins.map(|begins| format!("times count from its first row, at {begins} s since 1970")));
    let finished = finish(read.rows, read.end, options)?;
    notes.extend(finished.note);
    Ok(Imported {
        form,
        recording: Recording::Samples(finished.samples),
        certainty: Some(read.certainty),
        missing: finished.missing,
        even: finished.even,
        begins,
        capacity: Vec::new(),
        notes,
    })
}

/// Format of a file, and its bytes without a byte order mark.
fn form_of<'a>(bytes: &'a [u8], options: &Options) -> Result<(Form, &'a [u8]), TraceError> {
    let given = options.form.or(capture::is_capture(bytes).then_some(Form::Pcap));
    if given == Some(Form::Pcap) {
        return Ok((Form::Pcap, bytes));
    }
    if options.host.is_some() || options.interface.is_some() || options.bin.is_some() || options.fill {
        return Err(TraceError::whole(
            "--host, --interface, --bin and --fill are for packet captures, and the file is none",
        ));
    }
    let bytes = plain_text(bytes, "recordings are mahimahi files, CSV, JSON, logs and packet captures")?;
    let form = match given {
        Some(form) => form,
        None if options.columns != Columns::default() => Form::Columns,
        None => recognise(bytes)?.ok_or_else(|| unknown(bytes))?,
    };
    Ok((form, bytes))
}

fn columns(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let (rows, end) = table::read(bytes, options)?;
    let certainty = Certainty::new(Grade::LowerBound, "a table does not say how its rates were measured");
    Ok(Read { rows, end, certainty, notes: Vec::new() })
}

/// Certainty of the rates of a recording, if known. For native formats only the comments at the start of the file are
/// read.
pub fn certainty(bytes: &[u8]) -> Option<Certainty> {
    match form_of(bytes, &Options::default()).ok()?.0 {
        Form::Mahimahi => Some(capacity()),
        Form::Rates => Certainty::of_comments(bytes),
        Form::JsonList => Some(bulk()),
        _ => read(bytes, &Options::default()).ok()?.certainty,
    }
}

fn capacity() -> Certainty {
    Certainty::new(Grade::Capacity, "each line is a chance to send that the link gave")
}

fn bulk() -> Certainty {
    Certainty::new(Grade::LowerBound, "a bulk transfer")
}

/// Smallest number of seconds that counts as a time since 1970: the year 2001.
const SINCE_1970: f64 = 1e9;

fn own(form: Form, recording: Recording, bytes: &[u8]) -> Result<Imported, TraceError> {
    let mut notes = Vec::new();
    let certainty = match (form, &recording) {
        (Form::Mahimahi, _) => Some(capacity()),
        (Form::JsonList, Recording::Samples(samples)) => {
            let delay = samples.rows()[0].delay;
            if delay != ackclock_core::Span::ZERO && samples.rows().iter().all(|row| row.delay == delay) {
                notes.push(format!(
                    "every latency_ms is {}: such a constant was put in later, not measured",
                    delay.as_millis_f64()
                ));
            }
            Some(bulk())
        }
        _ => Certainty::of_comments(bytes),
    };
    let even = match &recording {
        Recording::Opportunities(_) => false,
        Recording::Samples(samples) => {
            let lasts = |index: usize| samples.end(index).saturating_sub(samples.rows()[index].begins);
            (0..samples.rows().len()).all(|index| lasts(index) == lasts(0))
        }
    };
    Ok(Imported { form, recording, certainty, missing: 0, even, begins: None, capacity: Vec::new(), notes })
}

/// Detects the format of a text; `None` for an unknown format.
///
/// # Errors
/// Fails if the text has a known format that is not a recording.
pub(super) fn recognise(bytes: &[u8]) -> Result<Option<Form>, TraceError> {
    let mut texts = super::lines(bytes).filter_map(|(_, line)| line.ok());
    let first = texts.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    if first.starts_with('{') {
        return iperf3::recognise_json(bytes);
    }
    if first.starts_with("PING ") || first.starts_with('[') && first.contains("bytes from") {
        return Ok(Some(Form::Ping));
    }
    if first.starts_with('[') {
        return Ok(Some(Form::JsonList));
    }
    if first.starts_with("DATA RECEIVED") || first.starts_with("ACK SENT") {
        return Ok(Some(Form::Saturatr));
    }
    if super::begins_with_number(bytes) {
        if is_table_of_numbers(first) {
            return Err(TraceError::whole(
                "each line holds several numbers and there is no header: `ackclock import FILE --time-column 1 --rate-column 2 --unit Mbit/s` reads time and rate (or another --unit)",
            ));
        }
        return Ok(data_sets::recognise_numbers(first).or(Some(Form::Mahimahi)));
    }
    if csv::is_header(first) {
        return Ok(Some(Form::Rates));
    }
    if autorate::has_records(bytes) {
        return Ok(Some(Form::Autorate));
    }
    by_names(bytes, first)
}

/// Detects the format of a table by the names of its columns, which are in the line `header`; `None` for an unknown
/// format.
fn by_names(bytes: &[u8], header: &str) -> Result<Option<Form>, TraceError> {
    let table = table::Table::of(bytes, &Columns::default()).ok();
    let names = table.as_ref().map(table::Table::names).unwrap_or_default();
    let has = |wanted: &[&str]| wanted.iter().all(|name| names.iter().any(|known| known == name));
    let begins = |start: &str| names.iter().any(|name| name.starts_with(start));
    let is_own = header.contains(',') && begins("time_") && begins("rate_");
    if has(&["timestamp_start", "timestamp_end", "download", "upload"]) {
        return Err(refused("WetLinks `net_iperf`: one mean a test"));
    }
    Ok(if has(&["timestamp", "dl_bitrate", "ul_bitrate"]) {
        Some(Form::Ucc)
    } else if has(&["run_num", "seq_num", "throughput"]) {
        Some(Form::Lumos5g)
    } else if has(&["log_time", "rx_load", "cur_dl_rate"]) {
        Some(Form::Autorate)
    } else if has(&["timestamp", "rtt", "uplink", "downlink"]) {
        Some(Form::Lens)
    } else if !is_own && table.is_some_and(|table| table.is_guessable()) {
        Some(Form::Columns)
    } else {
        csv::resembles_header(header).then_some(Form::Rates)
    })
}

/// Whether a line holds two to five numbers: a table without a header, and none of the known ones.
fn is_table_of_numbers(line: &str) -> bool {
    let fields = || line.split([',', ';', '\t', ' ']).filter(|field| !field.is_empty());
    (2..=5).contains(&fields().count()) && fields().all(|field| field.parse::<f64>().is_ok())
}

/// Error for a format with only one number per test, which is not supported.
fn refused(what: &str) -> TraceError {
    TraceError::whole(format!(
        "it is {what}; one number a test is no recording, and two values a minute cannot show outages"
    ))
}

fn unknown(bytes: &[u8]) -> TraceError {
    if let Err(error) = std::str::from_utf8(bytes) {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        return TraceError::at(line, "it is not text in UTF-8");
    }
    let begins: String = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
    let forms: Vec<&str> = Form::ALL.iter().map(|form| form.name()).collect();
    TraceError::whole(format!(
        "no known form begins with {begins:?}; forms are {}; --time-column, --rate-column and --unit read any table",
        forms.join(", ")
    ))
}
