//! # Recordings that others make
//!
//! ## Source
//! What the tools and data sets write: iperf3 3.12 (`-J`); the logs of G-NetTrack as UCC and the Irish 4G data set publish them (Raca et al.,
//! MMSys 2018 and 2020); Lumos5G (Narayanan et al., IMC 2020); the logs of Riiser et al. (MMSys 2013) and of van der Hooft et al. (IEEE
//! Communications Letters 2016); irtt; LENS; `ping -D` of iputils; saturatr (Winstein et al., NSDI 2013); cake-autorate.
//!
//! ## What it does
//! Recognises a form by its content, reads its rates, delays and losses, and says what the rates are to the capacity of the link
//! ([`Certainty`]). Other tables are read by the names of their columns ([`Columns`]). Lines that begin with `#` are skipped in every form of lines.
//!
//! ## Differences from the source
//! A round trip that was measured on an idle link counts half for each direction. Round trips of a loaded link are left out: they include the queue.
//!
//! ## Validation
//! A sample of each form with its rates by hand (unit tests).

mod certainty;
mod clock;
mod data_sets;
mod iperf3;
mod probes;
mod rows;
mod saturatr;
mod table;

use ackclock_core::Rate;

use super::{Recording, TraceError, csv, json, plain_text};

pub use certainty::{Certainty, Grade};
pub use clock::TimeUnit;
pub use table::{Columns, Unit, separator_named};

use rows::{Row, finish};

/// Form of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// mahimahi: a line for each chance to send 1500 bytes.
    Mahimahi,
    /// Our CSV.
    Rates,
    /// JSON list of `duration_ms`, `bandwidth_kbps`, `latency_ms`.
    JsonList,
    /// `iperf3 -J`.
    Iperf3,
    /// G-NetTrack as UCC and the Irish 4G data set publish it.
    Ucc,
    /// Lumos5G.
    Lumos5g,
    /// Raw logs of HSDPA in Norway: time since the start.
    Norway,
    /// Raw logs of LTE in Ghent: time since 1970.
    Ghent,
    /// `irtt client -o`.
    Irtt,
    /// One-way delays of LENS.
    Lens,
    /// `ping -D`.
    Ping,
    /// Log of the receiver of saturatr.
    Saturatr,
    /// Log of cake-autorate.
    Autorate,
    /// Another table, read by its columns.
    Columns,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Mahimahi,
        Self::Rates,
        Self::JsonList,
        Self::Iperf3,
        Self::Ucc,
        Self::Lumos5g,
        Self::Norway,
        Self::Ghent,
        Self::Irtt,
        Self::Lens,
        Self::Ping,
        Self::Saturatr,
        Self::Autorate,
        Self::Columns,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mahimahi => "mahimahi",
            Self::Rates => "rates",
            Self::JsonList => "json-list",
            Self::Iperf3 => "iperf3",
            Self::Ucc => "ucc",
            Self::Lumos5g => "lumos5g",
            Self::Norway => "norway",
            Self::Ghent => "ghent",
            Self::Irtt => "irtt",
            Self::Lens => "lens",
            Self::Ping => "ping",
            Self::Saturatr => "saturatr",
            Self::Autorate => "autorate",
            Self::Columns => "columns",
        }
    }

    /// The form of a name.
    ///
    /// # Errors
    /// Lists the names.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|form| form.name() == name);
        found.ok_or_else(|| format!("it is one of {}", Self::ALL.map(Self::name).join(", ")))
    }

    /// Whether it is a form of the project, or of mahimahi, and needs no import.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Mahimahi | Self::Rates | Self::JsonList)
    }
}

/// Direction of a link, seen from the mobile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Towards {
    /// Downlink.
    #[default]
    Mobile,
    /// Uplink.
    Server,
}

impl Towards {
    /// The direction of a name: `down`, `up`.
    ///
    /// # Errors
    /// Lists the names.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "down" => Ok(Self::Mobile),
            "up" => Ok(Self::Server),
            _ => Err("it is one of down, up".to_owned()),
        }
    }
}

/// What becomes of a row without a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// An error.
    #[default]
    Refuse,
    /// The rate of the row before.
    Hold,
    /// Rate 0.
    Zero,
}

impl Missing {
    /// The treatment of a name: `refuse`, `hold`, `zero`.
    ///
    /// # Errors
    /// Lists the names.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "refuse" => Ok(Self::Refuse),
            "hold" => Ok(Self::Hold),
            "zero" => Ok(Self::Zero),
            _ => Err("it is one of refuse, hold, zero".to_owned()),
        }
    }
}

/// How a foreign recording is read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The form; by its content unless given.
    pub form: Option<Form>,
    /// Direction, where a recording has both; else it is only checked.
    pub towards: Option<Towards>,
    /// Columns of a table.
    pub columns: Columns,
    /// Rate of probes, which have none.
    pub rate: Option<Rate>,
    /// Run of a file with several.
    pub run: Option<u64>,
    /// Whether rows are put in order of time.
    pub sort: bool,
    /// Rows without a rate.
    pub missing: Missing,
}

/// A recording, and what was made of it.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The form that it was taken for.
    pub form: Form,
    /// The recording.
    pub recording: Recording,
    /// How sure its rates are; `None` where nothing is known of how they were measured.
    pub certainty: Option<Certainty>,
    /// Rows without a rate.
    pub missing: usize,
    /// Whether its rows are equally long.
    pub even: bool,
    /// What the form or ours cannot hold and was left out, and what was assumed.
    pub notes: Vec<String>,
}

impl Imported {
    /// Its rows: opportunities, or rates.
    pub fn rows(&self) -> usize {
        match &self.recording {
            Recording::Opportunities(opportunities) => opportunities.millis().len(),
            Recording::Samples(samples) => samples.rows().len(),
        }
    }
}

impl Imported {
    /// The text to write: CSV with the form and the grade as comments, or mahimahi's form where there are opportunities.
    ///
    /// # Errors
    /// The text would be too long to be read again.
    pub fn text(&self) -> Result<String, TraceError> {
        if let Recording::Opportunities(_) = self.recording {
            return self.recording.to_mahimahi();
        }
        let grade = self.certainty.as_ref().map(Certainty::comment).unwrap_or_default();
        let rows = self.recording.to_csv(ackclock_core::Span::from_secs(1))?;
        Ok(format!("# form: {}\n{grade}{rows}", self.form.name()))
    }
}

/// What a form gave, before its rows are put together.
struct Read {
    rows: Vec<Row>,
    end: Option<f64>,
    certainty: Certainty,
    notes: Vec<String>,
}

/// Reads a recording of any form.
///
/// # Errors
/// Names the line, what stands there and what is allowed; of a form that is refused, the reason. Never panics, whatever the bytes.
pub fn read(bytes: &[u8], options: &Options) -> Result<Imported, TraceError> {
    let bytes = plain_text(bytes, "recordings are mahimahi files, CSV, JSON and logs")?;
    let form = match options.form {
        Some(form) => form,
        None if options.columns != Columns::default() => Form::Columns,
        None => recognise(bytes)?.ok_or_else(|| unknown(bytes))?,
    };
    let read = match form {
        Form::Mahimahi => {
            return own(form, super::Opportunities::parse(bytes).map(Recording::Opportunities)?, bytes);
        }
        Form::Rates => return own(form, csv::parse(bytes).map(Recording::Samples)?, bytes),
        Form::JsonList => return own(form, json::parse(bytes).map(Recording::Samples)?, bytes),
        Form::Saturatr => return saturatr::read(bytes),
        Form::Iperf3 => iperf3::read(bytes, options)?,
        Form::Ucc => data_sets::ucc(bytes, options)?,
        Form::Lumos5g => data_sets::lumos5g(bytes, options)?,
        Form::Norway | Form::Ghent => data_sets::bytes_and_times(bytes, form)?,
        Form::Autorate => data_sets::autorate(bytes, options)?,
        Form::Irtt => probes::irtt(bytes, options)?,
        Form::Lens => probes::lens(bytes, options)?,
        Form::Ping => probes::ping(bytes, options)?,
        Form::Columns => columns(bytes, options)?,
    };
    let mut notes = read.notes;
    if let Some(first) = read.rows.first().filter(|first| first.begins >= SINCE_1970) {
        notes.push(format!("times count from its first row, at {} s since 1970", first.begins));
    }
    let finished = finish(read.rows, read.end, options)?;
    Ok(Imported {
        form,
        recording: Recording::Samples(finished.samples),
        certainty: Some(read.certainty),
        missing: finished.missing,
        even: finished.even,
        notes,
    })
}

fn columns(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let (rows, end) = table::read(bytes, options)?;
    let certainty = Certainty::new(Grade::LowerBound, "a table does not say how its rates were measured");
    Ok(Read { rows, end, certainty, notes: Vec::new() })
}

/// How sure the rates of a recording are, where it is known; forms of the project are not read for it.
pub fn certainty(bytes: &[u8]) -> Option<Certainty> {
    match recognise(bytes).ok()?? {
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

/// Seconds from which a time counts from 1970: the year 2001.
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
    Ok(Imported { form, recording, certainty, missing: 0, even, notes })
}

/// The form of a text; `None` where it is none of these.
///
/// # Errors
/// Where it is a form that is no recording.
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
    if ["DATA RECEIVED", "ACK SENT"].iter().any(|begin| first.starts_with(begin)) {
        return Ok(Some(Form::Saturatr));
    }
    if super::begins_with_number(bytes) {
        return Ok(data_sets::recognise_numbers(first).or(Some(Form::Mahimahi)));
    }
    if csv::is_header(first) {
        return Ok(Some(Form::Rates));
    }
    let names = table::Table::of(bytes, &Columns::default()).map(|table| table.names()).unwrap_or_default();
    let has = |wanted: &[&str]| wanted.iter().all(|name| names.iter().any(|known| known == name));
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
    } else {
        table::is_guessable(&names).then_some(Form::Columns)
    })
}

/// Why a form with one number a test is not read.
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
